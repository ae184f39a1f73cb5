#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries slices of Ray's workers on a cluster on this machine, two nodes of which have two fake T4 each.

ray_test.py SOURCE BIN [CASE…]

Exits with 77 where Ray isn't installed.
"""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

if importlib.util.find_spec("ray") is None:
    print("SKIPPED: Ray is not installed: scripts/integrations.sh ray installs it and runs this")
    sys.exit(77)

from cluster import PATIENCE, Cluster, soon  # noqa: E402

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "python")]
TOTAL = 15109.75  # MiB of a T4, as CUDA counts
QUARTER = TOTAL / 4
STEP = 64
CHILD = """
import grow, sys
taken = 0
while grow.take(64) == 0: taken += 64
print(taken, flush=True)
sys.stdin.read()
"""
cluster = None
cr = ray = None


def filled():
    """(MiB that could be taken, the refusal, GPU, node, pid)"""
    import os

    import grow
    import ray

    taken = 0
    while (answer := grow.take(64)) == 0:
        taken += 64
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
    return taken, answer, gpu, ray.get_runtime_context().get_node_id(), os.getpid()


def seen():
    """What CUDA, the runtime and NVML say of the worker's GPU: how many there are, its UUID, PCI id and memory."""
    import ctypes
    import os

    def ask(function, *arguments):
        answer = function(*arguments)
        assert answer == 0, (function.__name__, answer)

    cuda, runtime, nvml = (ctypes.CDLL(name) for name in ("libcuda.so.1", "libcudart.so.12", "libnvidia-ml.so.1"))
    count, total, used = ctypes.c_int(), ctypes.c_size_t(), (ctypes.c_uint64 * 3)()
    uuid, text, properties = (ctypes.create_string_buffer(bytes) for bytes in (16, 96, 4096))
    ask(cuda.cuInit, 0)
    ask(cuda.cuDeviceGetCount, ctypes.byref(count))
    ask(cuda.cuDeviceGetUuid, uuid, 0)
    ask(cuda.cuDeviceTotalMem_v2, ctypes.byref(total), 0)
    answers = {"pid": os.getpid(), "count": count.value, "uuid": uuid.raw.hex(), "total": total.value}
    ask(cuda.cuDeviceGetPCIBusId, text, 96, 0)
    answers["pci"] = text.value.decode()
    # cudaDeviceProp begins with the name, the UUID, the LUID and its mask, and the memory.
    ask(runtime.cudaGetDeviceCount, ctypes.byref(count))
    ask(runtime.cudaGetDeviceProperties_v2, properties, 0)
    answers["runtime"] = count.value, properties.raw[256:272].hex(), int.from_bytes(properties.raw[288:296], "little")
    handle = ctypes.c_void_p()
    ask(nvml.nvmlInit_v2)
    # NVML knows nothing of CUDA_VISIBLE_DEVICES.
    ask(nvml.nvmlDeviceGetHandleByIndex_v2, int(os.environ["CUDA_VISIBLE_DEVICES"]), ctypes.byref(handle))
    ask(nvml.nvmlDeviceGetUUID, handle, text, 96)
    ask(nvml.nvmlDeviceGetMemoryInfo, handle, used)
    answers["nvml"] = text.value.decode()[4:].replace("-", ""), used[0]
    return answers


class Filler:
    def fill(self):
        return filled()

    def see(self):
        return seen()

    def pid(self):
        return os.getpid()


def setUpModule():
    global cluster, ray, cr
    cluster = Cluster(SOURCE, BIN, 2, "2xt4")
    import ray as the_ray

    ray = the_ray
    import cuslice.ray as the_module

    cr = the_module


def tearDownModule():
    cluster.close()


class Slices(unittest.TestCase):
    def setUp(self):
        # Ray waits neither for the end of what it kills nor for that of a task's worker, which holds its memory until
        # then. All that a test leaves behind ends with its job.
        self.empty()
        ray.init(cluster.address, log_to_driver=False)
        self.addCleanup(ray.shutdown)

    def empty(self):
        """Waits until nobody holds anything."""
        self.assertTrue(soon(lambda: cluster.held() == 0))

    def take(self, future):
        return ray.get(future, timeout=PATIENCE)

    def ended(self, pids):
        """Killed is not yet gone."""
        self.assertTrue(soon(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids)))

    def is_share(self, taken, share=0.25):
        """Full, but for a context, the headroom and a step; and never past the share."""
        self.assertLessEqual(taken[0], share * 4 * QUARTER)
        self.assertGreater(taken[0], share * 4 * QUARTER - 400)
        self.assertEqual(taken[1], 2, taken)

    def test_four_quarters_of_each_gpu_of_two_nodes_and_a_killed_one_gives_back(self):
        self.assertEqual(ray.cluster_resources()["GPU"], 4)
        kind = ray.remote(num_gpus=0.25, num_cpus=0, runtime_env=cr.runtime_env(), max_restarts=0)(Filler)
        actors = [kind.remote() for _ in range(16)]
        answers = self.take([actor.fill.remote() for actor in actors])
        for answer in answers:
            self.is_share(answer)
        places = [answer[2:4] for answer in answers]
        self.assertEqual(len(set(places)), 4)
        self.assertEqual({places.count(place) for place in places}, {4})
        # The GPU is full: only what the killed one held can be had again, and all of it.
        os.kill(answers[5][4], signal.SIGKILL)
        self.ended([answers[5][4]])
        again = kind.remote()
        answer = self.take(again.fill.remote())
        self.is_share(answer)
        self.assertEqual(answer[2:4], places[5])
        for actor in [*actors, again]:
            ray.kill(actor)

    def test_without_cuslice_a_quarter_takes_what_it_wants(self):
        kind = ray.remote(num_gpus=0.25, num_cpus=0)(Filler)
        actor = kind.remote()
        answer = self.take(actor.fill.remote())
        self.assertGreater(answer[0], 3.8 * QUARTER)
        ray.kill(actor)

    def test_a_task_and_its_children_share_the_slice(self):
        def with_child(child):
            import subprocess
            import sys

            with subprocess.Popen(
                [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as one:
                taken = int(one.stdout.readline())
                own = filled()
                one.stdin.close()
            return taken, own

        task = ray.remote(num_gpus=0.25, runtime_env=cr.runtime_env())(with_child)
        childs, own = self.take(task.remote(CHILD))
        self.assertGreater(childs, QUARTER - 400)
        self.assertEqual(own[:2], (0, 2))

    def test_a_limit_and_options_of_the_launcher(self):
        env = cr.runtime_env(limit=2 << 30, allocator="growth")
        task = ray.remote(num_gpus=0.5, runtime_env=env)(filled)
        self.is_share(self.take(task.remote()), 2048 / TOTAL)

    def bundle(self, **resources):
        """A strategy that places tasks and actors in one bundle of a group: on one GPU, if it has no more."""
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = placement_group([resources])
        self.addCleanup(remove_placement_group, group)
        return PlacementGroupSchedulingStrategy(group, 0)

    def test_a_bundle_of_a_placement_group(self):
        strategy = self.bundle(CPU=1, GPU=0.5)
        task = ray.remote(num_gpus=0.5, runtime_env=cr.runtime_env(), scheduling_strategy=strategy)(filled)
        self.is_share(self.take(task.remote()), 0.5)

    def is_one_gpu(self, saw, total):
        """Alone, of this size in MiB, and the same to all three libraries."""
        self.assertEqual((saw["count"], saw["total"]), (1, total * (1 << 20)))
        self.assertEqual(saw["runtime"], (1, saw["uuid"], saw["total"]))
        self.assertEqual(saw["nvml"], (saw["uuid"], saw["total"]))

    def test_each_of_four_quarters_of_a_gpu_is_a_virtual_gpu_of_its_own(self):
        strategy = self.bundle(GPU=1)

        def actor(**settings):
            env = cr.runtime_env(**settings)
            kind = ray.remote(num_gpus=0.25, num_cpus=0, runtime_env=env, scheduling_strategy=strategy)(Filler)
            return kind.remote()

        # Without it, workers have their quarters of one and the same GPU.
        plain = self.take([one.see.remote() for one in [actor(), actor()]])
        for saw in plain:
            self.is_one_gpu(saw, QUARTER)
        self.assertEqual(plain[0]["uuid"], plain[1]["uuid"])
        self.ended([one["pid"] for one in plain])

        actors = [actor(virtual_gpu=True) for _ in range(4)]
        saw = self.take([one.see.remote() for one in actors])
        for one in saw:
            self.is_one_gpu(one, QUARTER)
        for key in ("uuid", "pci"):
            self.assertEqual(len({plain[0][key], *(one[key] for one in saw)}), 5)
        answers = self.take([one.fill.remote() for one in actors])
        for answer in answers:
            self.is_share(answer)
        # The memory of a killed one is to be had again.
        os.kill(answers[2][4], signal.SIGKILL)
        self.ended([answers[2][4]])
        actors[2] = actor(virtual_gpu=True)
        again = self.take(actors[2].see.remote())
        for key in ("uuid", "pci"):
            self.assertEqual(again[key], saw[2][key])
        self.is_share(self.take(actors[2].fill.remote()))

    def test_a_limit_can_be_a_virtual_gpu_and_a_whole_gpu_stays_itself(self):
        def both():
            return seen(), filled()

        def ask(num_gpus, **settings):
            self.empty()  # the worker before it may be ending
            return self.take(ray.remote(num_gpus=num_gpus, runtime_env=cr.runtime_env(**settings))(both).remote())

        whole, _ = ask(1)
        self.assertEqual(ask(1, virtual_gpu=True)[0]["uuid"], whole["uuid"])
        saw, taken = ask(1, limit="2GiB", virtual_gpu=True)
        self.is_one_gpu(saw, 2048)
        self.assertNotEqual(saw["uuid"], whole["uuid"])
        self.is_share(taken, 2048 / TOTAL)

    def test_without_num_gpus_there_is_no_gpu_and_a_whole_one_is_whole(self):
        env = cr.runtime_env()
        none = ray.remote(runtime_env=env, resources={"plugin": 1})(filled)
        self.assertEqual(self.take(none.remote())[:2], (0, 100))
        whole = ray.remote(num_gpus=1, runtime_env=env)(filled)
        self.assertGreater(self.take(whole.remote())[0], 3.8 * QUARTER)

    def test_a_worker_that_is_used_again_has_the_new_slice(self):
        # With num_gpus among the options Ray hands the same worker on.
        task = ray.remote(runtime_env=cr.runtime_env(), max_retries=3)(filled)
        for share in (0.25, 0.5, 0.25):
            answer = self.take(task.options(num_gpus=share).remote())
            self.is_share(answer, share)
        # It stands idle and keeps what it took, as Ray's workers do.
        os.kill(answer[4], signal.SIGKILL)

    def test_a_hook_of_the_users_is_called_too(self):
        def hooked():
            import os

            return os.environ.get("SEEN_BY_HOOK"), filled()

        env = {"env_vars": {cr._HOOK: "user_hook.setup"}, "cuslice": {}}
        seen, taken = self.take(ray.remote(num_gpus=0.25, runtime_env=env)(hooked).remote())
        self.assertEqual(seen, "none")
        self.is_share(taken)

    def test_a_node_without_the_plugin_runs_no_such_worker(self):
        kind = ray.remote(resources={"bare": 1}, num_cpus=0, runtime_env=cr.runtime_env())(Filler)
        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "started without the plugin"):
            self.take(kind.remote().pid.remote())

    def library(self, name, module):
        if importlib.util.find_spec(module) is None:
            self.skipTest(f"needs ray[{name}]: there is no {module}")
        words = [sys.executable, SOURCE / "lab/ray/libraries.py", name, cluster.address]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
        answers = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(len(answers), 2)
        for answer in answers:
            self.is_share(answer)

    def test_replicas_of_serve_under_the_runtime_env_of_the_job(self):
        self.library("serve", "fastapi")

    def test_workers_of_train_under_the_runtime_env_of_the_job(self):
        self.library("train", "pandas")

    def test_wrong_settings_are_refused_by_name(self):
        for wrong, said in (
            ({"fraction": 0.5, "limit": "1GiB"}, "say the same"),
            ({"limit": True}, "a size is"),
            ({"virtual_gpu": 4}, "True or False is expected"),
            ({"split": 2}, "split: no such key"),
            ("4GiB", "a dictionary is expected"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                cr.Plugin.validate({"cuslice": wrong})
        with self.assertRaisesRegex(ValueError, "not together with image_uri"):
            cr.Plugin.validate({"cuslice": {}, "image_uri": "x"})
        task = ray.remote(num_gpus=0.25, runtime_env={"cuslice": {"limt": "1GiB"}})(filled)
        with self.assertRaisesRegex(ray.exceptions.RuntimeEnvSetupError, "limt: no such key"):
            self.take(task.remote())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
