# SPDX-License-Identifier: Apache-2.0
"""CuPy: blocks of its memory pool."""

from filling import MIB, attempt, fill, main, tell


def body():
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    properties = [cupy.cuda.runtime.getDeviceProperties(gpu) for gpu in range(count)]
    tell(gpus=[{"name": found["name"].decode(), "total": found["totalGlobalMem"] / MIB} for found in properties])
    for gpu in range(count):
        with cupy.cuda.Device(gpu):
            fill(
                gpu,
                cupy.cuda.alloc,
                lambda error: isinstance(error, cupy.cuda.memory.OutOfMemoryError),
                cupy.get_default_memory_pool().free_all_blocks,
            )
            attempt("an elementwise kernel", lambda: cupy.zeros(16) + 1)


main(body)
