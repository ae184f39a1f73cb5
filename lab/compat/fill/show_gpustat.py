# SPDX-License-Identifier: Apache-2.0
"""gpustat, while another process of the same job holds all memory that it gets: totals, use and processes."""

import json
import subprocess
import sys

from filling import main, tell
from holding import Holder


def body():
    with Holder() as (pid, got):
        asked = subprocess.run(
            [sys.executable, "-m", "gpustat", "--json", "--show-pid"], capture_output=True, text=True, check=False
        )
        if asked.returncode:
            raise RuntimeError(f"gpustat ended with {asked.returncode}: {asked.stderr[-300:]}")
        gpus = json.loads(asked.stdout)["gpus"]
        tell(gpus=[{"name": gpu["name"], "total": gpu["memory.total"]} for gpu in gpus])
        for number, gpu in enumerate(gpus):
            pids = [process["pid"] for process in gpu["processes"] or ()]
            tell(device=number, shown=gpu["memory.used"], holds=got[number], listed=pid in pids)


main(body)
