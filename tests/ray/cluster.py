"""A cluster of Ray on this machine: a head and a node without the plugin, which have no GPUs, and nodes that each have a
fake machine of their own.

Import this before Ray: it clears the environment. Nothing here uses `ray stop`, which would end other people's Ray.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PLUGINS = '[{"class": "cuslice.ray.Plugin"}]'
RAY = pathlib.Path(sys.executable).with_name("ray")

for name in [name for name in os.environ if name.startswith(("CUSLICE_", "CUDA_", "RAY_"))]:
    del os.environ[name]
os.environ.update(RAY_AUTH_MODE="disabled", RAY_DEDUP_LOGS="0", PYTHONDONTWRITEBYTECODE="1")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """`nodes` nodes of `gpus` besides the head, which has the resource `head` and no plugin; theirs is `plugin`."""

    def __init__(self, source, binaries, nodes, gpus):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cuslice-ray-"))
        self.processes = []
        self.machines = []
        os.environ["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        os.environ["PYTHONPATH"] = os.pathsep.join(str(source / part) for part in ("python", "tests/python", "tests/ray"))
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
        common = ["--block", f"--num-cpus={cpus}", "--object-store-memory=80000000", "--disable-usage-stats"]
        with open(said, "wb") as out:
            words = [RAY, "start", *common, *words]
            self.processes.append(subprocess.Popen(words, env=environment, stdout=out, stderr=subprocess.STDOUT))
        end = time.monotonic() + 120
        while "Ray runtime started" not in said.read_text(errors="replace"):
            if self.processes[-1].poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"a node didn't start: {said.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for folder in [self.folder, *self.machines]:
            shutil.rmtree(folder, ignore_errors=True)
