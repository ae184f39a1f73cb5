# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's genuine libraries that the tests hold cuslice against: which, from which package, and which may be missing.

An item is one library in one version, or one driver's user space, in a folder of its own below the cache. A new version
takes a line here; fetch.py, matrix.py, CMake and docs/results/tests/genuine.md all read this list.
"""
import dataclasses
import os
import pathlib


@dataclasses.dataclass(frozen=True)
class Item:
    name: str  # also the folder in the cache and the name of the test
    family: str
    source: str  # "debian" (apt, component non-free), "wheel" (pip download) or "python" (pip install)
    packages: tuple  # as the package manager's command line takes them
    files: tuple = ()  # patterns of the file names that are kept
    release: str = ""  # the Debian release that has these packages itself: there they may not be missing
    large: bool = False  # hundreds of megabytes: fetched only with --large


DRIVER = ("libcuda.so.*", "libnvidia-ml.so.*", "nvidia-smi")

ITEMS = (
    Item("driver-535", "driver", "debian", ("libcuda1=535.*", "libnvidia-ml1=535.*", "nvidia-smi=535.*"), DRIVER, "bookworm"),
    Item("driver-470", "driver", "debian",
         ("libnvidia-tesla-470-cuda1=470.*", "libnvidia-tesla-470-ml1=470.*", "nvidia-tesla-470-smi=470.*"), DRIVER, "bookworm"),
    Item("driver-550", "driver", "debian", ("libcuda1=550.*", "libnvidia-ml1=550.*", "nvidia-smi=550.*"), DRIVER, "trixie"),
    Item("driver-555", "driver", "debian", ("libcuda1=555.*", "libnvidia-ml1=555.*", "nvidia-smi=555.*"), DRIVER),
    Item("cudart-11.8", "runtime", "debian", ("libcudart11.0=11.8.*",), ("libcudart.so.*",), "bookworm"),
    Item("cudart-12", "runtime", "wheel", ("nvidia-cuda-runtime-cu12==12.9.79",), ("libcudart.so.*",)),
    Item("cudart-13", "runtime", "wheel", ("nvidia-cuda-runtime==13.0.96",), ("libcudart.so.*",)),
    Item("python", "python", "python", ("gpustat==1.1.1", "nvidia-ml-py==13.580.82")),
    Item("cupti-11.8", "library", "debian", ("libcupti11.8=11.8.*",), ("libcupti.so.*",), "bookworm"),
    Item("cupti-12", "library", "wheel", ("nvidia-cuda-cupti-cu12==12.9.79",), ("libcupti.so.*",)),
    Item("cupti-13", "library", "wheel", ("nvidia-cuda-cupti==13.5.25",), ("libcupti.so.*",)),
    Item("nvrtc-11.8", "library", "debian", ("libnvrtc11.2=11.8.*", "libnvrtc-builtins11.8=11.8.*"), ("libnvrtc*.so.*",), "bookworm"),
    Item("nvrtc-13", "library", "wheel", ("nvidia-cuda-nvrtc==13.5.37",), ("libnvrtc.so.*", "libnvrtc-builtins.so.*")),
    Item("cublas-11.8", "library", "debian", ("libcublas11=11.*", "libcublaslt11=11.*"), ("libcublas*.so.*",), "bookworm"),
    Item("nccl-2", "library", "wheel", ("nvidia-nccl-cu12==2.32.3",), ("libnccl.so.*",), large=True),
    Item("cublas-13", "library", "wheel", ("nvidia-cublas==13.10.0.20",), ("libcublas*.so.*",), large=True),
    Item("cudnn-9", "library", "wheel", ("nvidia-cudnn-cu13==9.28.0.42",), ("libcudnn*.so.*",), large=True),
)
BY_NAME = {item.name: item for item in ITEMS}


def cache():
    """Where the items lie: one folder for all presets."""
    default = pathlib.Path(__file__).resolve().parents[2] / "build/genuine"
    return pathlib.Path(os.environ.get("CUSLICE_GENUINE_CACHE") or default).resolve()


def release():
    """The code name of this machine's Debian release, or nothing on another system."""
    try:
        lines = pathlib.Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return ""
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields.get("VERSION_CODENAME", "").strip('"') if fields.get("ID", "").strip('"') == "debian" else ""


def missing(item):
    """Why the item is not in the cache; nothing if it is there."""
    if (cache() / item.name).is_dir():
        return ""
    note = cache() / f"{item.name}.missing"
    return note.read_text().strip() if note.exists() else "lab/genuine/fetch.py has not brought it"


def may_be_missing(item):
    """In continuous integration, what the machine's own release has must be there; a version elsewhere may have gone."""
    return not (os.environ.get("CI") and item.release and item.release == release())
