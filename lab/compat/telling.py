# SPDX-License-Identifier: Apache-2.0
"""What the programs of compat.sh tell whoever runs them: lines of JSON, errors in short, and the fake driver's books."""

import json
import os
import subprocess

MIB = 1 << 20


def tell(**seen):
    """One line for whoever runs this."""
    print(json.dumps(seen), flush=True)


def first_words(error):
    """An error's kind, and as much of its text as tells it from others."""
    text = " ".join(str(error).split())
    return type(error).__name__ + ": " + (text if len(text) < 600 else text[:200] + " … " + text[-400:])


def books():
    """What the fake driver has on record for this process, in MiB: what is held of each GPU, and the program's own
    allocations among that, of all GPUs together."""
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    text = subprocess.run(
        [os.environ["COMPAT_WATCH"], "--json", "--list"], env=clean, check=True, capture_output=True, text=True
    )
    rows = [row for row in json.loads(text.stdout) if row["pid"] == os.getpid()]
    return (
        [row["used"] / MIB for row in rows],
        sum(row["used"] - row["context"] - row["modules"] for row in rows) / MIB,
    )
