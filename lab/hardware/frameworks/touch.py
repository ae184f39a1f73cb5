# SPDX-License-Identifier: Apache-2.0
"""Uses one framework a little, for the observer: touch.py torch|cupy|jax|numba|triton."""
import sys


def use_torch():
    import torch

    torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8, device="cuda"), torch.ones(1, 1, 3, 3, device="cuda"))
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")


def use_cupy():
    import cupy

    cupy.ones((8, 8)) @ cupy.ones((8, 8))


def use_jax():
    import jax

    jax.jit(lambda m: m @ m)(jax.numpy.ones((8, 8))).block_until_ready()


def use_numba():
    import numpy
    from numba import cuda

    cuda.to_device(numpy.ones(8)).copy_to_host()


def use_triton():
    import torch
    import triton
    import triton.runtime.driver

    triton.runtime.driver.active.get_current_device()
    triton.runtime.driver.active.utils.get_device_properties(torch.cuda.current_device())


globals()["use_" + sys.argv[1]]()
