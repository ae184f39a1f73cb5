# SPDX-License-Identifier: Apache-2.0
"""ffmpeg: frames that are uploaded to each GPU and held there, as the filter `reverse` wants all of them first."""

import ctypes
import re
import subprocess
import sys

from filling import main, tell

FRAME = 3840 * 2160 * 3 / 2 / (1 << 20)  # MiB, in NV12
FRAMES = 500  # more than any GPU of these runs has room for


def upload(gpu, frames):
    """Exit code, frames that came to the GPU, and ffmpeg's errors."""
    filters = "format=nv12,hwupload,showinfo=checksum=0,reverse"
    ended = subprocess.run(
        [sys.argv[1], "-hide_banner", "-nostdin", "-init_hw_device", f"cuda=gpu:{gpu}", "-filter_hw_device", "gpu",
         "-f", "lavfi", "-i", f"color=size=3840x2160:rate=30:duration={frames / 30}", "-vf", filters, "-f", "null", "-"],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    sys.stderr.write("".join(line + "\n" for line in ended.stderr.splitlines() if line.startswith("cuslice")))
    reached = len(re.findall(r"\] n: *\d+ pts:", ended.stderr))
    errors = [line.split("] ", 1)[-1] for line in ended.stderr.splitlines() if "CUDA_ERROR" in line]
    return ended.returncode, reached, (errors or ended.stderr.strip().splitlines() or [""])[0]


def body():
    cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        raise RuntimeError("no GPU")
    tell(gpus=[{}] * count.value)
    for gpu in range(count.value):
        status, frames, error = upload(gpu, FRAMES)
        oom = status != 0 and "CUDA_ERROR_OUT_OF_MEMORY" in error
        tell(device=gpu, got=int(frames * FRAME), error=error if status else "", oom=oom)
        status, reached, error = upload(gpu, frames // 2)
        if status == 0:
            tell(device=gpu, again=int(reached * FRAME))


main(body)
