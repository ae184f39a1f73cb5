# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model with PyTorch as a program would, on sentences whose lengths vary from step to step, so that its
allocations can be recorded:

  PYTORCH_NO_CUDA_MEMORY_CACHING=1 cuslice run --fake 1xh200 --record FILE -- python lab/compat/torch_training.py [STEPS [SEED]]

On the fake GPU no kernel runs. In place of each matrix product stands memory of its shape, so that no recording depends on what
a release of cuBLAS takes. Nothing is learnt; what is allocated and freed, and when, is PyTorch's own.
"""
import random
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

WIDTH, HEADS, LAYERS, WORDS, BATCH, LONGEST = 768, 12, 12, 50257, 8, 512
aten = torch.ops.aten


class Products(TorchDispatchMode):
    """Matrix products without cuBLAS."""
    shapes = {
        aten.mm.default: lambda a, b: (a.shape[0], b.shape[1]),
        aten.addmm.default: lambda _, a, b: (a.shape[0], b.shape[1]),
        aten.bmm.default: lambda a, b: (a.shape[0], a.shape[1], b.shape[2]),
        aten.baddbmm.default: lambda _, a, b: (a.shape[0], a.shape[1], b.shape[2]),
    }

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        shape = self.shapes.get(function)
        if shape is None:
            return function(*arguments, **(keywords or {}))
        return arguments[-1].new_empty(shape(*arguments))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_wide = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.inwards, self.outwards = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        rows, length, _ = x.shape
        parts = self.inwards(self.before_attention(x)).view(rows, length, 3, HEADS, WIDTH // HEADS).transpose(1, 3)
        seen = functional.scaled_dot_product_attention(*parts.unbind(2), is_causal=True, dropout_p=0.1)
        x = x + self.outwards(seen.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.wide(self.before_wide(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.last(x), self.words.weight)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    choose = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    lengths = [choose.randrange(64, LONGEST + 1) for _ in range(steps // 2)] * 2  # the second half repeats the first
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    with Products():
        for length in lengths:
            words = torch.randint(WORDS, (BATCH, length + 1)).cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                scores = model(words[:, :-1])
                loss = functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    torch.cuda.synchronize()
    print(f"{len(lengths)} steps, {sum(p.numel() for p in model.parameters()) / 1e6:.0f} million parameters")


if __name__ == "__main__":
    main()
