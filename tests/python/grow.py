# SPDX-License-Identifier: Apache-2.0
"""A CUDA program: takes so many MiB on device 0, prints the driver's answer, and waits for its input to end."""

import ctypes
import sys

held = []


def take(mib):
    """The driver's answer."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    for result in (
        cuda.cuInit(0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        cuda.cuCtxSetCurrent(context),
        cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)),
    ):
        if result != 0:
            return result
    held.append(pointer)
    return 0


def reset():
    """Gives everything back."""
    held.clear()
    return ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxReset_v2(0)


if __name__ == "__main__":
    print(take(int(sys.argv[1])), flush=True)
    sys.stdin.read()
