# SPDX-License-Identifier: Apache-2.0
"""What PyTorch sees of a GPU that is split, and whether each part computes and keeps to its limit."""
import sys

import torch

wrong = 0
count = torch.cuda.device_count()
print(f"{count} devices, PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
for device in range(count):
    free, total = torch.cuda.mem_get_info(device)
    a = torch.rand(512, 512, device=f"cuda:{device}")
    error = (a @ a - (a.cpu() @ a.cpu()).to(a.device)).abs().max().item()
    try:
        torch.empty(total, dtype=torch.uint8, device=a.device)
        refused = False
    except torch.OutOfMemoryError:
        refused = True
    same = torch.equal(a.to(f"cuda:{(device + 1) % count}").cpu(), a.cpu())
    wrong += error > 1e-2 or not refused or not same
    print(f"cuda:{device}: {torch.cuda.get_device_properties(device).uuid}, {total >> 20} MiB, {free >> 20} free; product is off by "
          f"{error:.1e}, {total >> 20} MiB {'refused' if refused else 'GIVEN'}, copy to the next {'the same' if same else 'DIFFERENT'}")
sys.exit(1 if wrong or count != 2 else 0)
