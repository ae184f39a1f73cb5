# SPDX-License-Identifier: Apache-2.0
"""Numba: arrays on each GPU, and a kernel."""

from filling import MIB, attempt, fill, main, tell


def body():
    import numpy
    from numba import cuda

    @cuda.jit
    def double(values):
        values[cuda.grid(1)] *= 2

    shown = []
    for gpu in cuda.gpus:
        with gpu:
            name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
            shown.append({"name": name, "total": cuda.current_context().get_memory_info().total / MIB})
    tell(gpus=shown)
    for number in range(len(shown)):
        with cuda.gpus[number]:
            fill(
                number,
                lambda size: cuda.device_array(size, dtype=numpy.uint8),
                lambda error: "OUT_OF_MEMORY" in str(error),
                lambda: cuda.current_context().deallocations.clear(),
            )

            def launch():
                double[1, 32](cuda.to_device(numpy.ones(32)))
                cuda.synchronize()

            attempt("a kernel", launch)


main(body)
