# SPDX-License-Identifier: Apache-2.0
"""One rank of several, started by torchrun: torch_ranks.py gloo|nccl. Each sums a tensor over all, on the GPU that it is
given; without a split all are on the same one."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as distributed

backend = sys.argv[1]
local = int(os.environ["LOCAL_RANK"])
count = torch.cuda.device_count()
device = torch.device("cuda", local % count)
torch.cuda.set_device(device)
distributed.init_process_group(backend, timeout=timedelta(seconds=10))
world = distributed.get_world_size()

tensor = torch.full((1 << 20,), float(local + 1), device=device)
distributed.all_reduce(tensor)
expected = world * (world + 1) / 2
right = bool((tensor == expected).all())
free, total = torch.cuda.mem_get_info(device)
print(f"rank {local} of {world}, {backend}: {count} devices, on {device}, {torch.cuda.get_device_properties(device).uuid}, "
      f"{total >> 20} MiB; the sum is {'right' if right else 'WRONG'}", flush=True)
distributed.destroy_process_group()
sys.exit(0 if right else 1)
