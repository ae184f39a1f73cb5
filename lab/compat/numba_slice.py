# SPDX-License-Identifier: Apache-2.0
"""Numba in a slice of each GPU: what it lists, allocates, and is refused.

  numba_slice.py MIB...    the size of the slice of each GPU
"""
import sys

import numpy
from numba import cuda
from numba.cuda.cudadrv import driver

from checks import check, finish

MIB = 1 << 20
OUT_OF_MEMORY = 2

slices = [int(word) * MIB for word in sys.argv[1:]]
names = [gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name for gpu in cuda.gpus]
check(len(names) == len(slices), f"numba.cuda.gpus lists {len(slices)} devices", ", ".join(names))

for ordinal, size in enumerate(slices):
    with cuda.gpus[ordinal]:
        context = cuda.current_context()
        who = f"GPU {ordinal}"
        before = context.get_memory_info()
        check(before.total == size, f"{who}: total is the slice's {size // MIB} MiB", f"{before.total / MIB:g} MiB")
        check(before.free < before.total, f"{who}: free is less, for the context is counted", f"{before.free / MIB:g} MiB")

        values = numpy.arange(16 * MIB, dtype=numpy.uint8)
        array = cuda.to_device(values)
        same = bool((array.copy_to_host() == values).all())
        taken = before.free - context.get_memory_info().free
        check(same and taken >= values.nbytes, f"{who}: 16 MiB there and back",
              f"{'the same' if same else 'different'} contents, free is {taken / MIB:g} MiB less")

        # Past the slice, and yet within the GPU: only the limit can refuse it.
        try:
            cuda.device_array(before.free + MIB, dtype=numpy.uint8)
            check(False, f"{who}: {before.free / MIB + 1:g} MiB are refused", "they were given")
        except driver.CudaAPIError as error:
            check(error.code == OUT_OF_MEMORY, f"{who}: {before.free / MIB + 1:g} MiB are refused", repr(error))

        # Everything that is free can be had, in two parts, and goes back.
        del array
        context.deallocations.clear()
        half = context.get_memory_info().free // 2 // MIB * MIB
        parts = [cuda.device_array(half, dtype=numpy.uint8) for _ in range(2)]
        check(True, f"{who}: what is free can be had", f"2 x {half // MIB} MiB")
        del parts
        context.deallocations.clear()
        check(context.get_memory_info().free >= 2 * half, f"{who}: and given back",
              f"{context.get_memory_info().free / MIB:g} MiB free")
finish()
