# SPDX-License-Identifier: Apache-2.0
"""gpustat in a slice of each GPU: the totals that it shows.

  gpustat_slice.py MIB...    the size of the slice of each GPU, or `whole` for a GPU without a limit
"""
import json
import re
import subprocess
import sys

from checks import check, finish
from neighbours import Neighbours

slices = sys.argv[1:]
ended = subprocess.run([sys.executable, "-m", "gpustat", "--json"], capture_output=True, text=True)
if not check(ended.returncode == 0, "gpustat runs", ended.stderr.strip() or "and prints JSON"):
    finish()
gpus = json.loads(ended.stdout)["gpus"]
check(len(gpus) == len(slices), f"it lists {len(slices)} GPUs", ", ".join(gpu["name"] for gpu in gpus))

largest = max(int(size) for size in slices if size != "whole")
for gpu, size in zip(gpus, slices):
    total, used = gpu["memory.total"], gpu["memory.used"]
    seen = f"{used} of {total} MiB used"
    if size == "whole":
        check(total > largest, f"GPU {gpu['index']} has no limit, and its total is the GPU's", seen)
    else:
        check(total == int(size) and used <= total, f"GPU {gpu['index']}: the total is the slice's {size} MiB", seen)

table = subprocess.run([sys.executable, "-m", "gpustat", "--no-color"], capture_output=True, text=True)
for gpu, size, line in zip(gpus, slices, table.stdout.splitlines()[1:]):
    shown = size == "whole" or re.search(rf"/ +{size} MB", line) is not None
    check(shown, f"GPU {gpu['index']}: a person reads the same", line.strip())

with Neighbours() as (member, stranger):
    ended = subprocess.run([sys.executable, "-m", "gpustat", "--json"], capture_output=True, text=True)
    gpu = json.loads(ended.stdout)["gpus"][0]
    pids = [process["pid"] for process in gpu["processes"]]
    check(pids == [member], "GPU 0: the job's process and nobody else's", f"{pids}; {stranger} is a stranger's")
    held = gpu["processes"][0]["gpu_memory_usage"]
    check(held == gpu["memory.used"], "GPU 0: what it holds is all that is used", f"{held} MiB")
finish()
