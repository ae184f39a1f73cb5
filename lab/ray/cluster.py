# SPDX-License-Identifier: Apache-2.0
"""A cluster of Ray on this machine: a head and a node without the plugin, which have no GPUs, and nodes that each have a
fake machine of their own.

Import this before Ray: it clears the environment. Nothing here uses `ray stop`, which would end other people's Ray.
"""

import atexit
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PLUGINS = '[{"class": "cuslice.ray.Plugin"}]'
#: Who has waited for so many seconds waits for what will not come.
PATIENCE = 900
#: Ray's own deadlines, which a busy machine misses: until a node answers, a worker is there, or a node counts as dead.
#: Nor is a worker to be killed because others fill the machine's memory.
CALM = {
    "RAY_worker_register_timeout_seconds": 300,
    "RAY_agent_register_timeout_ms": PATIENCE * 1000,
    "RAY_health_check_timeout_ms": PATIENCE * 1000,
    "RAY_gcs_rpc_server_connect_timeout_s": PATIENCE,
    "RAY_gcs_rpc_server_reconnect_timeout_s": PATIENCE,
    "RAY_gcs_server_request_timeout_seconds": PATIENCE,
    "RAY_gcs_server_port_wait_time_s": PATIENCE,
    "RAY_memory_monitor_refresh_ms": 0,
    "RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": PATIENCE,
    "RAY_SERVE_MAX_QUEUE_LENGTH_RESPONSE_DEADLINE_S": PATIENCE,
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": PATIENCE,
}
#: What `ray start` says when a node has missed the one deadline that can't be set.
SLOW_START = "timed out during startup"
RAY = pathlib.Path(sys.executable).with_name("ray")

for name in [name for name in os.environ if name.startswith(("CUSLICE_", "CUDA_", "RAY_"))]:
    del os.environ[name]
os.environ.update(RAY_AUTH_MODE="disabled", RAY_DEDUP_LOGS="0", PYTHONDONTWRITEBYTECODE="1")
os.environ.update({name: str(value) for name, value in CALM.items()})


def end_with_parent():
    """Also where the parent is killed, as by a timeout."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def soon(condition):
    """What comes by itself and tells nobody."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """`nodes` nodes of `gpus` with the resource `plugin`, a head without GPUs, and a node without GPUs and without the
    plugin, with the resource `bare`. All of them end with this process."""

    def __init__(self, source, binaries, nodes, gpus):
        atexit.register(self.close)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cuslice-ray-"))
        self.processes = []
        self.machines = []
        os.environ["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        os.environ["PYTHONPATH"] = os.pathsep.join(str(source / part) for part in ("python", "tests/python", "lab/ray"))
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        head = ["--head", f"--port={port}", "--num-gpus=0", "--include-dashboard=false"]
        try:
            # One after the other: nodes that start at once take each other's sockets.
            self._start({**os.environ, "RAY_RUNTIME_ENV_PLUGINS": PLUGINS}, head)
            for _ in range(nodes):
                machine = tempfile.mkdtemp(prefix="cuslice-ray-", dir="/dev/shm")
                self.machines.append(machine)
                fake = str(binaries.parent / "lib/cuslice/fake")
                own = {"CUSLICE_FAKE": gpus, "CUSLICE_FAKE_DIR": machine, "LD_LIBRARY_PATH": fake}
                words = [f"--address={self.address}", '--resources={"plugin": 99}']
                # Ray finds the GPUs by itself, through NVML.
                self._start({**os.environ, **own, "RAY_RUNTIME_ENV_PLUGINS": PLUGINS}, words)
            bare = [f"--address={self.address}", "--num-gpus=0", '--resources={"bare": 9}']
            self._start(dict(os.environ), bare, 0)
        except BaseException:
            self.close()
            raise

    def _start(self, environment, words, cpus=64):
        said = self.folder / f"node{len(self.processes)}.log"
        while not self._start_once(environment, words, cpus, said):
            pass

    def _start_once(self, environment, words, cpus, said):
        """False if the node was too slow for Ray, and has ended."""
        common = ["--block", f"--num-cpus={cpus}", "--object-store-memory=80000000", "--disable-usage-stats"]
        with open(said, "wb") as out:
            words = [RAY, "start", *common, *words]
            process = subprocess.Popen(
                words, env=environment, stdout=out, stderr=subprocess.STDOUT, preexec_fn=end_with_parent
            )
        self.processes.append(process)

        def started():
            return "Ray runtime started" in said.read_text(errors="replace")

        soon(lambda: started() or process.poll() is not None)
        if not started():
            text = said.read_text(errors="replace")
            if process.poll() is None or SLOW_START not in text:
                raise RuntimeError(f"a node didn't start: {text[-2000:]}")
            self.processes.remove(process)
        return started()

    def held(self):
        """Bytes that processes hold on the nodes' fake GPUs."""
        from cuslice import FakeMachine

        return sum(FakeMachine(folder=machine).held() for machine in self.machines)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        for folder in [self.folder, *self.machines]:
            shutil.rmtree(folder, ignore_errors=True)
