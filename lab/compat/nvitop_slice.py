# SPDX-License-Identifier: Apache-2.0
"""nvitop in a slice of each GPU: the totals and the processes that it shows.

  nvitop_slice.py MIB...    the size of the slice of each GPU, or `whole` for a GPU without a limit
"""
import subprocess
import sys

from checks import check, finish
from neighbours import Neighbours
from nvitop import Device

slices = sys.argv[1:]
with Neighbours() as (member, stranger):
    devices = Device.all()
    check(len(devices) == len(slices), f"it lists {len(slices)} GPUs", ", ".join(device.name() for device in devices))
    for device, size in zip(devices, slices):
        total, used = device.memory_total() >> 20, device.memory_used() >> 20
        if size == "whole":
            check(total > 8192, f"GPU {device.index} has no limit", f"{used} of {total} MiB used")
        else:
            check(total == int(size), f"GPU {device.index}: the total is the slice's {size} MiB", f"{used} of {total} MiB used")
    pids = sorted(devices[0].processes())
    check(pids == [member], "GPU 0: the job's process and nobody else's", f"{pids}; {stranger} is a stranger's")
    held = devices[0].processes()[member].gpu_memory() >> 20
    check(held == devices[0].memory_used() >> 20, "GPU 0: what it holds is all that is used", f"{held} MiB")
    once = subprocess.run([sys.executable, "-m", "nvitop", "--once"], capture_output=True, text=True)
    check(once.returncode == 0 and str(member) in once.stdout and str(stranger) not in once.stdout,
          "a person sees the same", f"exit code {once.returncode}")
finish()
