# SPDX-License-Identifier: Apache-2.0
"""CuPy in a slice: its pool, a kernel that it compiles at run time, and cuBLAS."""
import cupy
import numpy

from watched import finish, held, take_all, tell

free, total = cupy.cuda.runtime.memGetInfo()
tell("total", total)
tell("free", free)
blocks = take_all(
    lambda size: cupy.empty(size, dtype=cupy.uint8), lambda e: isinstance(e, cupy.cuda.memory.OutOfMemoryError)
)
held()
del blocks
cupy.get_default_memory_pool().free_all_blocks()

problems = []
x = numpy.arange(1 << 20, dtype=numpy.float64)
axpy = cupy.ElementwiseKernel("float64 x, float64 a", "float64 y", "y = a * x + 1", "axpy")
if not numpy.array_equal(cupy.asnumpy(axpy(cupy.asarray(x), 3.0)), 3.0 * x + 1):
    problems.append("kernel")
a = numpy.random.default_rng(7).random((512, 512))
if not numpy.allclose(cupy.asnumpy(cupy.asarray(a) @ cupy.asarray(a)), a @ a):
    problems.append("matmul")
finish(problems)
