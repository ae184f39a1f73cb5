# SPDX-License-Identifier: Apache-2.0
# A CUDA program in Python, as many people write one: answers as the guest in C++ does, so far as the route table asks it.
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
for line in sys.stdin:
    words = line.split()
    if words[0] == "init":
        answer = cuda.cuInit(0)
    elif words[0] == "retain":
        context = ctypes.c_void_p()
        answer = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(words[1])) or cuda.cuCtxSetCurrent(context)
    elif words[0] == "fill":
        granted = 0
        block = ctypes.c_ulonglong()
        while not (result := cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(words[1])))):
            granted += 1
        answer = f"{result} {granted}"
    else:
        answer = os.getpid()
    print(answer, flush=True)
