#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `srun` takes for a program that makes its first CUDA context, in a slice and without the plugin.

start_times.py BUILD PLUGIN GUEST [COUNT]

COUNT (100) jobs of each, one after the other, in pairs that begin with the one and the other in turns: with the plugin
in plugstack.conf, which makes a limit of a shard, and with an empty plugstack.conf. cluster.py has the Slurm, and says
where this is skipped.
"""
import os
import pathlib
import sys
import time

from cluster import GUEST, INSIDE, MEMORY, SOURCE, Cluster, outside

sys.path.append(str(SOURCE / "tests/python"))
from percentiles import percentiles  # noqa: E402

WAYS = {"without the plugin": (None, MEMORY), "with the plugin": ("shards_per_gpu=4", MEMORY // 4)}
WARM_UP = 2  # pairs that are not counted


def main():
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 100
    cluster = Cluster(pathlib.Path(os.environ.pop(INSIDE)))
    command = ["srun", "-Q", "-w", "n1", "--gres=shard:1", "sh", "-c",
               f"printf 'init\\nretain 0\\ninfo\\n' | exec {GUEST} linked"]
    times = {way: [] for way in WAYS}
    for number in range(count + WARM_UP):
        for way in list(WAYS)[:: -1 if number % 2 else 1]:
            arguments, total = WAYS[way]
            cluster.plugin(arguments)
            begun = time.monotonic()
            said = cluster.call(*command)
            taken = time.monotonic() - begun
            # That it had the slice, or the whole GPU.
            assert said.stdout.split()[-1:] == [str(total)], (way, said.stdout, said.stderr)
            if number >= WARM_UP:
                times[way].append(taken)
    for way, taken in times.items():
        print(f"srun {way:18}  {percentiles(taken)}")


if __name__ == "__main__":
    sys.exit(main() if INSIDE in os.environ else outside())
