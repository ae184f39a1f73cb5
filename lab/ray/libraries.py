# SPDX-License-Identifier: Apache-2.0
"""Two workers of Ray Train, or two replicas of Ray Serve, each with a quarter of a GPU by num_gpus alone.

libraries.py train|serve ADDRESS

Prints what each could take, as a line of JSON.
"""

import json
import os
import sys
import tempfile

from cluster import PATIENCE, soon

import ray
from ray import serve
from ray.train import RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

import cuslice.ray


def filled():
    import grow

    taken = 0
    while (answer := grow.take(64)) == 0:
        taken += 64
    return taken, answer


def train_loop(settings):
    import os

    with open(os.path.join(settings["folder"], str(ray.train.get_context().get_world_rank())), "w") as out:
        json.dump(filled(), out)


@serve.deployment(num_replicas=2, ray_actor_options={"num_gpus": 0.25, "num_cpus": 0})
class Replica:
    def __init__(self):
        self.filled = filled()

    def __call__(self):
        import os

        return os.getpid(), self.filled


def trained():
    with tempfile.TemporaryDirectory() as folder:
        DataParallelTrainer(
            train_loop,
            train_loop_config={"folder": folder},
            scaling_config=ScalingConfig(
                num_workers=2, use_gpu=True, resources_per_worker={"GPU": 0.25, "CPU": 1}
            ),
            run_config=RunConfig(storage_path=folder),
        ).fit()
        answers = []
        for rank in "01":
            with open(f"{folder}/{rank}") as one:
                answers.append(json.load(one))
        return answers


def served():
    handle = serve.run(Replica.bind())
    replicas = {}
    while len(replicas) < 2:
        pid, taken = handle.remote().result(timeout_s=PATIENCE)
        replicas[pid] = taken

    def ended():
        # It gives up in silence where the controller doesn't answer in 5 seconds.
        serve.shutdown()
        return not any(os.path.exists(f"/proc/{pid}") for pid in replicas)

    assert soon(ended)
    return list(replicas.values())


ray.init(sys.argv[2], log_to_driver=False, runtime_env=cuslice.ray.runtime_env())
print(json.dumps({"train": trained, "serve": served}[sys.argv[1]]()))
