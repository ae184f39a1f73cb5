# SPDX-License-Identifier: Apache-2.0
"""A neighbour for programs that only show memory: a process that takes memory of every GPU until it is refused, and
holds it.

  holding.py        as a program: fills all GPUs by the driver's functions, tells what it got, and waits for its input's end
"""

import ctypes
import json
import subprocess
import sys

MIB = 1 << 20


class Holder:
    """`with Holder() as (pid, got)`: `got` is MiB for each GPU."""

    def __enter__(self):
        self.child = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"the program that should hold memory ended with {self.child.wait()}")
        return self.child.pid, json.loads(line)

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()


def expect(status, function):
    if status != 0:
        sys.exit(f"{function} returned {status}")


def hold():
    cuda, count, got = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
    expect(cuda.cuInit(0), "cuInit")
    expect(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    for gpu in range(count.value):
        context, block, blocks = ctypes.c_void_p(), ctypes.c_uint64(), 0
        expect(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu), "cuDevicePrimaryCtxRetain")
        expect(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        while (status := cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(64 * MIB))) == 0:
            blocks += 1
        if status != 2:
            sys.exit(f"cuMemAlloc_v2 returned {status}")
        got.append(blocks * 64)
    print(json.dumps(got), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    hold()
