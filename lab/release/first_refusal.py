# SPDX-License-Identifier: Apache-2.0
"""A CUDA program of a user's: takes memory by the driver's API, 64 MiB at a time, until it is refused. Ends with 0 if
that is before it has LIMIT MiB, which is its one argument."""

import ctypes
import sys

limit = int(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
    if result != 0:
        sys.exit(f"a call failed: {result}")
held = 0
while held <= 4 * limit:
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20))
    if result != 0:
        break
    held += 64
print(f"{held} MiB, then {result}")
# 2 is CUDA_ERROR_OUT_OF_MEMORY. The context takes its part of the limit.
sys.exit(0 if result == 2 and 0 < held < limit else 1)
