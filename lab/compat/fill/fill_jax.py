# SPDX-License-Identifier: Apache-2.0
"""JAX: arrays that are put on each GPU, in the pool that JAX takes of it, and a function under jit."""

from filling import MIB, attempt, fill, main, tell


def body():
    import jax
    import numpy

    gpus = jax.devices("gpu")
    tell(gpus=[{"name": gpu.device_kind} for gpu in gpus])
    for number, gpu in enumerate(gpus):

        def take(size):
            return jax.device_put(numpy.empty(size, numpy.uint8), gpu).block_until_ready()

        fill(number, take, lambda error: "RESOURCE_EXHAUSTED" in str(error))
        stats = gpu.memory_stats() or {}
        tell(device=number, pool=stats.get("bytes_limit", 0) / MIB)
        with jax.default_device(gpu):
            attempt("jax.jit", lambda: jax.jit(lambda x: x @ x + 1)(numpy.ones((64, 64), numpy.float32)))


main(body)
