# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a slice: what it is shown, what its caching allocator gets, and whether cuBLAS, cuDNN and its kernels
compute rightly in what is left."""
import torch

from watched import finish, held, take_all, tell

free, total = torch.cuda.mem_get_info()
tell("total", total)
tell("free", free)
blocks = take_all(
    lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"),
    lambda e: isinstance(e, torch.cuda.OutOfMemoryError),
)
held()
del blocks
torch.cuda.empty_cache()

problems = []
if torch.cuda.get_device_properties(0).total_memory != total:
    problems.append("total_memory and mem_get_info differ")
a, b = torch.rand(512, 512, dtype=torch.float64), torch.rand(512, 512, dtype=torch.float64)
if not torch.allclose((a.cuda() @ b.cuda()).cpu(), a @ b):
    problems.append("matmul")
image, weights = torch.rand(2, 3, 64, 64), torch.rand(8, 3, 5, 5)
if not torch.allclose(
    torch.nn.functional.conv2d(image.cuda(), weights.cuda()).cpu(),
    torch.nn.functional.conv2d(image, weights),
    rtol=1e-2,
    atol=1e-1,
):
    problems.append("conv2d")
# One training step on the GPU and on the CPU from the same start.
losses = []
for device in ("cuda", "cpu"):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).double()
    batch = torch.rand(32, 64, dtype=torch.float64)
    model.to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(batch.to(device)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    losses.append(loss.item())
if abs(losses[0] - losses[1]) > 1e-9:
    problems.append(f"training: {losses}")
finish(problems)
