# SPDX-License-Identifier: Apache-2.0
"""Triton, with the memory of PyTorch's tensors, as it is used: its own kernel is compiled and launched on each GPU."""

from filling import MIB, attempt, fill, main, tell


def body():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(out, left, right, count, BLOCK: tl.constexpr):
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = places < count
        sums = tl.load(left + places, mask=inside) + tl.load(right + places, mask=inside)
        tl.store(out + places, sums, mask=inside)

    cuda = torch.cuda
    count = cuda.device_count()
    properties = [cuda.get_device_properties(gpu) for gpu in range(count)]
    tell(gpus=[{"name": found.name, "total": found.total_memory / MIB} for found in properties])
    tell(target=str(triton.runtime.driver.active.get_current_target()))
    for gpu in range(count):
        with cuda.device(gpu):
            values = torch.zeros(4096, device="cuda")

            def launch():
                add[(4,)](torch.empty_like(values), values, values, 4096, BLOCK=1024)
                cuda.synchronize()

            attempt("a kernel", launch)

            def take(size):
                block = torch.empty(size // 4, device="cuda")
                add[(4,)](block, values, values, 4096, BLOCK=1024)
                return block

            fill(gpu, take, lambda error: isinstance(error, torch.OutOfMemoryError), cuda.empty_cache)


main(body)
