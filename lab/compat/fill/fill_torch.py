# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors that nobody writes, and a product of matrices."""

from filling import MIB, attempt, fill, main, tell


def body():
    import torch

    cuda = torch.cuda
    count = cuda.device_count()
    properties = [cuda.get_device_properties(gpu) for gpu in range(count)]
    tell(gpus=[{"name": found.name, "total": found.total_memory / MIB} for found in properties])
    for gpu in range(count):
        fill(
            gpu,
            lambda size: torch.empty(size, dtype=torch.uint8, device=f"cuda:{gpu}"),
            lambda error: isinstance(error, cuda.OutOfMemoryError),
            cuda.empty_cache,
        )
        ones = torch.zeros(64, 64, device=f"cuda:{gpu}")
        attempt("torch.matmul", lambda: (torch.matmul(ones, ones), cuda.synchronize(gpu)))


main(body)
