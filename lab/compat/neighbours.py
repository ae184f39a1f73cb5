# SPDX-License-Identifier: Apache-2.0
"""Two programs that hold memory of GPU 0: one in this job, and one that is no part of it."""
import os
import subprocess
import sys

HOLD = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(100 << 20)) == 0
print("ready", flush=True)
sys.stdin.read()
"""


class Neighbours:
    """`with Neighbours() as (member, stranger)`: their process ids."""

    def _start(self, environment):
        child = subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        if child.stdout.readline() != "ready\n":
            raise RuntimeError("a program that should hold memory does not")
        return child

    def __enter__(self):
        stranger = {name: value for name, value in os.environ.items() if name != "CUSLICE_JOB"}
        self.children = [self._start(dict(os.environ)), self._start(stranger)]
        return [child.pid for child in self.children]

    def __exit__(self, *_):
        for child in self.children:
            child.stdin.close()
            child.wait()
