# SPDX-License-Identifier: Apache-2.0
"""PyCUDA: blocks of memory, in a context on each GPU."""

from filling import MIB, fill, main, tell


def body():
    import pycuda.driver as cuda

    cuda.init()
    gpus = [cuda.Device(gpu) for gpu in range(cuda.Device.count())]
    tell(gpus=[{"name": gpu.name(), "total": gpu.total_memory() / MIB} for gpu in gpus])
    for number, gpu in enumerate(gpus):
        context = gpu.make_context()
        try:
            fill(number, cuda.mem_alloc, lambda error: isinstance(error, cuda.MemoryError))
        finally:
            context.pop()
            context.detach()


main(body)
