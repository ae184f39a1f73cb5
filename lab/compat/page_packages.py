# SPDX-License-Identifier: Apache-2.0
"""The packages of docs/results/compatibility/packages.md: where each comes from, and the program that tries it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    program: str  # in fill/
    distribution: str = ""  # the package of the Python index whose version is told
    wanted: tuple = ()  # requirements for pip
    debian: str = ""  # a package of Debian instead
    environment: str = ""  # whose virtual environment it shares, instead of having its own
    libraries: tuple = ()  # folders in site-packages that LD_LIBRARY_PATH gets, as the package doesn't find them itself
    device_files: bool = False  # it looks for /dev/nvidiactl before it asks for a driver
    one_gpu: bool = False  # it uses one GPU only, and is started once for each
    shows: bool = False  # it takes no memory, and shows what others have
    headers: bool = False  # it is built from its source, with CUDA's headers and a compiler
    python: str = "python3"  # the version of Python that it has a wheel for
    redirected: bool = False  # it carries NVIDIA's static runtime, with its symbols
    note: str = ""  # what else a reader should know of how it was run


PACKAGES = (
    Package("torch", "fill_torch.py", "torch", ("torch==2.15.0", "numpy==2.4.6")),
    Package("tensorflow", "fill_tensorflow.py", "tensorflow", ("tensorflow[and-cuda]==2.21.0",),
            libraries=("nvidia/cusolver/lib",),
            note="with `nvidia/cusolver/lib` of its packages in `LD_LIBRARY_PATH`, which it doesn't find by itself"),
    Package("torch-cuda11", "fill_torch.py", "torch", ("torch==2.0.1", "numpy==1.26.4"), python="python3.11",
            note="the last one that the Python index has for CUDA 11, on Python 3.11"),
    Package("tensorflow-cuda11", "fill_tensorflow.py", "tensorflow",
            ("tensorflow==2.11.1", "numpy==1.23.5", "nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cublas-cu11==11.11.3.6",
             "nvidia-cufft-cu11==10.9.0.58", "nvidia-curand-cu11==10.3.0.86", "nvidia-cusolver-cu11==11.4.1.48",
             "nvidia-cusparse-cu11==11.7.5.86", "nvidia-cudnn-cu11==8.6.0.163"), python="python3.9",
            libraries=("nvidia/cublas/lib", "nvidia/cufft/lib", "nvidia/curand/lib", "nvidia/cusolver/lib",
                       "nvidia/cusparse/lib", "nvidia/cudnn/lib", "nvidia/cuda_runtime/lib"),
            note="on Python 3.9, with the folders of NVIDIA's packages in `LD_LIBRARY_PATH`, where it expects a toolkit's"),
    Package("jax", "fill_jax.py", "jax", ("jax[cuda12]==0.10.2",), device_files=True,
            note="with an empty `/dev/nvidiactl`, for which it looks before it asks for a driver"),
    Package("cupy", "fill_cupy.py", "cupy-cuda13x", ("cupy-cuda13x[ctk]==14.2.0",), redirected=True,
            note="with `--redirect-runtime=all`, as it carries NVIDIA's runtime"),
    Package("numba", "fill_numba.py", "numba-cuda", ("numba-cuda[cu13]==0.30.4",)),
    Package("cuda-core", "fill_cuda_core.py", "cuda-core", ("cuda-core[cu13]==1.2.2",)),
    Package("triton", "fill_triton.py", "triton", environment="torch", note="with the tensors of torch"),
    Package("rmm", "fill_rmm.py", "rmm-cu12", ("rmm-cu12==26.10.0",)),
    Package("warp-lang", "fill_warp.py", "warp-lang", ("warp-lang==1.19.0",)),
    Package("taichi", "fill_taichi.py", "taichi", ("taichi==1.7.4",), one_gpu=True,
            note="which uses one GPU, so that it ran once on each part"),
    Package("onnxruntime-gpu", "fill_onnxruntime.py", "onnxruntime-gpu",
            ("onnxruntime-gpu[cuda,cudnn]==1.31.1", "onnx==1.23.2")),
    Package("nvidia-dali", "fill_dali.py", "nvidia-dali-cuda130",
            ("nvidia-dali-cuda130==2.4.0", "cuda-bindings==13.5.0"), redirected=True,
            note="with `--redirect-runtime=all`, as it carries NVIDIA's runtime"),
    Package("pycuda", "fill_pycuda.py", "pycuda", ("pycuda==2026.1", "numpy==2.4.6"), headers=True,
            note="built from its source, with the headers of NVIDIA's packages"),
    Package("hashcat", "fill_hashcat.py", debian="hashcat", shows=True,
            note="with NVRTC of NVIDIA's package, which it looks for", wanted=("nvidia-cuda-nvrtc-cu12==12.9.86",),
            libraries=("nvidia/cuda_nvrtc/lib",)),
    Package("ffmpeg", "fill_ffmpeg.py", debian="ffmpeg"),
    Package("nvitop", "show_nvitop.py", "nvitop", ("nvitop==1.7.2", "nvidia-ml-py==13.615.71"), shows=True),
    Package("gpustat", "show_gpustat.py", "gpustat", ("gpustat==1.1.1", "nvidia-ml-py==13.615.71"), shows=True),
    Package("nvtop", "show_nvtop.py", debian="nvtop", shows=True),
)  # fmt: skip


def named(name):
    """The package of that name, or None."""
    return next((package for package in PACKAGES if package.name == name), None)
