#!/usr/bin/env python3
"""How long a task, and an actor, of a quarter of a GPU takes to its first answer, with cuslice and without.

start_times.py SOURCE BIN [COUNT]

One after the other, COUNT (100) of each, on one node of one fake GPU; the two ways take turns.
"""

import pathlib
import statistics
import sys
import time

from cluster import Cluster

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 100
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "python")]


def show(times):
    for (kind, way), taken in times.items():
        cuts = statistics.quantiles(taken, n=100, method="inclusive")
        print(f"{kind:5}  {way:15}  {len(taken)}: p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms", flush=True)


def main():
    cluster = Cluster(SOURCE, BIN, 1, "1xt4")
    try:
        import ray

        ray.init(cluster.address, log_to_driver=False)
        import cuslice.ray

        def nothing():
            return 0

        class Nothing:
            def nothing(self):
                return 0

        ways = {"without cuslice": {}, "with cuslice": cuslice.ray.runtime_env()}
        times = {}
        for number in range(COUNT + 2):
            for way, env in ways.items():
                options = {"num_gpus": 0.25, "num_cpus": 0, "runtime_env": env}
                begin = time.monotonic()
                ray.get(ray.remote(**options)(nothing).remote())
                task = time.monotonic()
                actor = ray.remote(**options)(Nothing).remote()
                ray.get(actor.nothing.remote())
                end = time.monotonic()
                ray.kill(actor)
                if number >= 2:  # the first ones make the runtime_env
                    times.setdefault(("task", way), []).append(task - begin)
                    times.setdefault(("actor", way), []).append(end - task)
        show(times)
        ray.shutdown()
    finally:
        cluster.close()


main()
