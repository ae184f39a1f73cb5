# SPDX-License-Identifier: Apache-2.0
"""One rank of a job on the parts of one GPU: PyTorch under torchrun, each rank on the GPU with its local number.

  torchrun --nproc-per-node N torch_ranks.py MIB     the size of each part
"""
import os
import sys

import torch
import torch.distributed as dist

from checks import check, finish

MIB = 1 << 20
size = int(sys.argv[1])
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("gloo")
ranks = dist.get_world_size()

# Every rank takes most of its part at once, so that none lives of another's.
held = torch.empty((size - 1024) * MIB, dtype=torch.uint8, device="cuda")
dist.barrier()
try:
    torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda")
    refused = False
except torch.OutOfMemoryError:
    refused = True
sent = torch.full((1 << 16,), rank, dtype=torch.int64)
came = sent.to("cuda").cpu()
dist.all_reduce(came)

mine = (str(torch.cuda.get_device_properties(rank).uuid), held.device.index, torch.cuda.mem_get_info()[1] // MIB, refused,
        torch.cuda.device_count(), int(came.unique().item()))
told = [None] * ranks
dist.all_gather_object(told, mine)
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    uuids, devices, sizes, over, counts, sums = zip(*told)
    check(set(counts) == {ranks}, f"every rank counts {ranks} GPUs", f"{counts}")
    check(devices == tuple(range(ranks)) and len(set(uuids)) == ranks, f"{ranks} ranks have {ranks} GPUs", ", ".join(uuids))
    check(set(sizes) == {size}, f"each of {size} MiB", f"{sizes}")
    check(all(over), "each to its own limit, at the same time", f"{size - 1024} MiB held, 1024 MiB refused: {over}")
    check(set(sums) == {sum(range(ranks))}, "what they sent came together", f"{sums}")
    finish()
