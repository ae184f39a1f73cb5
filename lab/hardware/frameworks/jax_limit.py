# SPDX-License-Identifier: Apache-2.0
"""JAX in a slice. Its allocator takes its pool as the environment says (the plan runs it both ways), so what it got is
the pool's doing; what it was shown is the pool's own bound."""
import jax
import numpy

from watched import finish, held, take_all, tell

device = jax.devices("gpu")[0]
stats = device.memory_stats() or {}
if "bytes_limit" in stats:
    tell("free", stats["bytes_limit"])


def allocate(size):
    block = jax.device_put(numpy.empty(size, dtype=numpy.uint8), device)
    block.block_until_ready()
    return block


# Its allocator waits 10 s for memory before it refuses: once is enough.
blocks = take_all(allocate, lambda e: "RESOURCE_EXHAUSTED" in str(e) or "Out of memory" in str(e), least=64 << 20)
held()
del blocks

problems = []
a = numpy.random.default_rng(7).random((256, 256)).astype(numpy.float32)
if not numpy.allclose(numpy.asarray(jax.jit(lambda m: (m @ m) + 1)(a)), a @ a + 1, rtol=1e-2):
    problems.append("jit")
finish(problems)
