# SPDX-License-Identifier: Apache-2.0
"""A CUDA graph of PyTorch whose memory is allocated while it is captured, replayed three times."""
import torch

x = torch.zeros(1 << 20, device="cuda")
ones = torch.ones(1 << 20, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    for _ in range(2):
        (x * 2 + 1).relu() @ ones
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    a = torch.empty(1 << 24, device="cuda").fill_(3)
    total = (a * 2).sum()
    large = torch.empty(1 << 28, dtype=torch.uint8, device="cuda").fill_(1)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
right = total.item() == 6 * (1 << 24) and int(large[-1]) == 1
print("replayed: right" if right else f"replayed: wrong, {total.item()}, {int(large[-1])}")
