# SPDX-License-Identifier: Apache-2.0
"""nvitop, while another process of the same job holds all memory that it gets: totals, use and processes."""

import subprocess
import sys

from filling import main, tell
from holding import Holder


def body():
    from nvitop import Device

    with Holder() as (pid, got):
        devices = Device.all()
        tell(gpus=[{"name": device.name(), "total": device.memory_total() >> 20} for device in devices])
        for gpu, device in enumerate(devices):
            tell(device=gpu, shown=device.memory_used() >> 20, holds=got[gpu], listed=pid in device.processes())
        once = subprocess.run([sys.executable, "-m", "nvitop", "--once"], capture_output=True, text=True, check=False)
        tell(did="nvitop --once", error="" if once.returncode == 0 and str(pid) in once.stdout else once.stderr[-300:])


main(body)
