# SPDX-License-Identifier: Apache-2.0
"""Numba in a slice: the driver API through ctypes, and a kernel that Numba compiles where it can."""
import os

import numpy
from numba import cuda

from watched import finish, held, take_all, tell

free, total = cuda.current_context().get_memory_info()
tell("total", total)
tell("free", free)
# The class differs between Numba's own driver and the one through NVIDIA's bindings; the driver's word does not.
blocks = take_all(
    lambda size: cuda.device_array(size, dtype=numpy.uint8), lambda e: "CUDA_ERROR_OUT_OF_MEMORY" in str(e)
)
held()
del blocks
cuda.current_context().deallocations.clear()

problems, left_out = [], ""
x = numpy.arange(1 << 20, dtype=numpy.float64)
if not numpy.array_equal(cuda.to_device(x).copy_to_host(), x):
    problems.append("copies")
if "CUSLICE_FAKE" not in os.environ:

    @cuda.jit
    def twice(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] *= 2

    there = cuda.to_device(x)
    # A Numba that doesn't go with the installed NumPy can't compile anything, with cuslice or without.
    try:
        twice.compile("void(float64[::1])")
    except (AttributeError, ImportError) as error:
        left_out = f"no kernel: Numba can't compile here, {error}"
    else:
        twice[(x.size + 255) // 256, 256](there)
        if not numpy.array_equal(there.copy_to_host(), 2 * x):
            problems.append("kernel")
finish(problems, left_out)
