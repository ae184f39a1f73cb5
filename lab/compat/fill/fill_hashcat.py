# SPDX-License-Identifier: Apache-2.0
"""hashcat: the memory that it shows of each GPU, which is all that it tells of it, and its benchmark of one hash."""

import os
import re
import subprocess
import sys
import tempfile

from filling import attempt, main, tell


def body():
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        asked = subprocess.run([sys.argv[1], "-I"], capture_output=True, text=True, check=False)
        names = re.findall(r"Name\.+: (.*)", asked.stdout)
        totals = [int(size) for size in re.findall(r"Memory\.Total\.+: (\d+) MB", asked.stdout)]
        free = [int(size) for size in re.findall(r"Memory\.Free\.+: (\d+) MB", asked.stdout)]
        if asked.returncode or not totals or len(totals) != len(free):
            raise RuntimeError(f"hashcat -I: {(asked.stdout + asked.stderr).strip()[-300:]}")
        tell(gpus=[{"name": name, "total": total} for name, total in zip(names, totals)])
        for gpu, (total, left) in enumerate(zip(totals, free)):
            tell(device=gpu, shown=total - left, holds=0, listed=None)

            def benchmark():
                ended = subprocess.run([sys.argv[1], "-b", "-m", "0", "-d", str(gpu + 1)], capture_output=True,
                                       text=True, check=False)  # fmt: skip
                if "Speed.#" not in ended.stdout:
                    raise RuntimeError(f"exit code {ended.returncode}: {(ended.stdout + ended.stderr).strip()[-300:]}")

            attempt("hashcat -b -m 0", benchmark)


main(body)
