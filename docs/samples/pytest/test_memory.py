# SPDX-License-Identifier: Apache-2.0
"""Tests of a program that takes GPU memory, without a GPU: pytest --fake-gpus 1xt4 -n 2 docs/samples/pytest

The program here takes 1 GiB on device 0 and ends with the driver's answer. Yours is whatever you test.
"""

import ctypes
import os
import sys

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
sys.exit(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 30)))
"""
OUT_OF_MEMORY = 2


def test_it_fits(fake_machine):
    assert fake_machine.run([sys.executable, "-c", PROGRAM]).returncode == 0
    assert fake_machine.held() == 0  # the process has ended, and nobody else is on this machine
    assert fake_machine.peak(gpu=0) > 1 << 30


def test_it_is_refused_in_a_small_slice(fake_machine):
    assert fake_machine.run([sys.executable, "-c", PROGRAM], limit="1GiB").returncode == OUT_OF_MEMORY


def test_it_survives_a_driver_that_refuses_once(fake_machine):
    fake_machine.fail("cuMemAlloc", call=1)
    assert fake_machine.run([sys.executable, "-c", PROGRAM]).returncode == OUT_OF_MEMORY


def test_in_this_process(fake_gpus):
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert fake_gpus.held(pid=os.getpid()) > 0
    assert fake_gpus.allocated(pid=os.getpid()) == 0
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    assert fake_gpus.held(pid=os.getpid()) == 0
