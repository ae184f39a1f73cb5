# SPDX-License-Identifier: Apache-2.0
# A CUDA program in Python that throws its environment away before the first call, where only what a fake GPU needs comes
# back. Answers a guest's lines.
import ctypes
import os
import sys

machine = {name: os.environ[name] for name in ("CUSLICE_FAKE", "CUSLICE_FAKE_DIR")}
os.environ.clear()
os.environ.update(machine)
cuda = ctypes.CDLL("libcuda.so.1")
size, other, context = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
blocks = []


def answer(words):
    if words[0] == "init":
        return cuda.cuInit(0)
    if words[0] == "retain":
        return cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(words[1]))
    if words[0] == "current":
        return cuda.cuCtxSetCurrent(context)
    if words[0] == "total":
        return f"{cuda.cuDeviceTotalMem_v2(ctypes.byref(size), int(words[1]))} {size.value}"
    if words[0] == "info":
        return f"{cuda.cuMemGetInfo_v2(ctypes.byref(size), ctypes.byref(other))} {size.value}"
    if words[0] == "alloc":
        block = ctypes.c_ulonglong()
        result = cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(words[2])))
        if result == 0:
            blocks.append(block)
        return result
    if words[0] == "freeall":
        return max((cuda.cuMemFree_v2(blocks.pop()) for _ in range(len(blocks))), default=0)
    return "there is no such command"


for line in sys.stdin:
    print(answer(line.split()), flush=True)
