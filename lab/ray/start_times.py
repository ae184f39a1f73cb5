#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a task, and an actor, of a quarter of a GPU takes to its first answer, with cuslice and without.

start_times.py SOURCE BIN [COUNT]

COUNT (100) of each, on one node of one fake GPU. One runs at a time, and the next begins when its worker has ended. The
ways take turns, in an order that moves on with each round:

  plain        without a runtime_env: Ray may have a worker ready
  environment  with a runtime_env of one variable: a new worker, without cuslice
  cuslice      with that of cuslice.ray.runtime_env()
  virtual      the same with virtual_gpu=True

Ray starts more workers of a runtime_env than it was asked for: an actor, which comes after the task of its way, mostly
finds one ready.
"""

import os
import pathlib
import sys
import time

from cluster import Cluster, soon

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 100
UNCOUNTED = 2  # rounds in which the runtime_envs are made
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests/python")]
from percentiles import percentiles  # noqa: E402


def show(times):
    for (kind, way), taken in sorted(times.items()):
        print(f"{kind:5}  {way:11}  {percentiles(taken)}", flush=True)


def main():
    if COUNT < 2:
        sys.exit("start_times: COUNT is 2 or more")
    cluster = Cluster(SOURCE, BIN, 1, "1xt4")
    try:
        import ray

        ray.init(cluster.address, log_to_driver=False)
        import cuslice.ray

        def pid():
            import os

            return os.getpid()

        class Actor:
            def pid(self):
                return os.getpid()

        def ended(worker):
            assert soon(lambda: not os.path.exists(f"/proc/{worker}")), worker

        ways = {
            "plain": {},
            "environment": {"env_vars": {"SOME": "variable"}},
            "cuslice": cuslice.ray.runtime_env(),
            "virtual": cuslice.ray.runtime_env(virtual_gpu=True),
        }
        names = list(ways)
        times = {}
        for number in range(COUNT + UNCOUNTED):
            for way in names[number % len(names) :] + names[: number % len(names)]:
                options = {"num_gpus": 0.25, "num_cpus": 0, "runtime_env": ways[way]}
                begin = time.monotonic()
                worker = ray.get(ray.remote(**options)(pid).remote())
                task = time.monotonic() - begin
                ended(worker)
                begin = time.monotonic()
                actor = ray.remote(**options)(Actor).remote()
                worker = ray.get(actor.pid.remote())
                start = time.monotonic() - begin
                ray.kill(actor)
                ended(worker)
                if number >= UNCOUNTED:
                    times.setdefault(("task", way), []).append(task)
                    times.setdefault(("actor", way), []).append(start)
        show(times)
        ray.shutdown()
    finally:
        cluster.close()


main()
