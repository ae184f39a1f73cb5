# SPDX-License-Identifier: Apache-2.0
"""The place in which a document's commands run: fake GPUs, the programs that documents name, and who else is there."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# GPUs of this machine where a command names no fake ones: four, which have the names that documents use.
MACHINE = """
[[gpu]]
profile = "t4"
pci = "0000:41:00.0"

[[gpu]]
profile = "t4"
uuid = "GPU-5f1c4b1e-07a6-4a39-9f5c-6f0f1f4a2b11"
pci = "0000:61:00.0"

[[gpu]]
profile = "t4"
pci = "0000:81:00.0"

[[gpu]]
profile = "t4"
pci = "0000:a1:00.0"
"""

# Stands for the documents' Python programs, which need packages and hours: takes 200 MiB of the first GPU in blocks of
# 20 MiB, and gives them back. With `hold` it keeps them until its input ends, with `until-waiting` until another program
# waits for memory.
PROGRAM = '''
import ctypes, json, subprocess, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        sys.exit(f"{name}: CUDA error {result}")
context, device, blocks = ctypes.c_void_p(), ctypes.c_int(), []
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
for _ in range(10):
    blocks.append(ctypes.c_uint64())
    call("cuMemAlloc_v2", ctypes.byref(blocks[-1]), ctypes.c_size_t(20 << 20))
if "hold" in sys.argv:
    print("holding", flush=True)
    sys.stdin.read()
if "until-waiting" in sys.argv:
    print("holding", flush=True)
    while not json.loads(subprocess.check_output(["cuslice", "ps", "--json"]))["waiting"]:
        time.sleep(0.05)
for block in blocks:
    call("cuMemFree_v2", block)
'''
PYTHON_PROGRAMS = ("train.py", "serve.py", "program.py", "mirrored.py")

# Starts the Python program among its words once, as one rank would be.
TORCHRUN = """#!/bin/sh
for word; do case $word in *.py) exec python "$word" ;; esac; done
"""

# Each node is this machine, behind a shell as it is behind sshd.
SSH = """#!/bin/sh
while case $1 in -p) shift ;; -*) ;; *) false ;; esac; do shift; done
shift
exec sh -c "$*"
"""


class Stage:
    def __init__(self, root, build, static):
        self.root, self.build, self.static = root, build, static

    def __enter__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="cuslice-docs-"))
        self.ledgers = pathlib.Path(tempfile.mkdtemp(prefix="cuslice-docs-", dir="/dev/shm"))
        self.folder, programs, fakes = self.top / "work", self.top / "programs", self.top / "fakes"
        for folder in (self.folder, programs, fakes, self.top / "home/.config/fish/completions"):
            folder.mkdir(parents=True)
        (self.folder / "lib").symlink_to(self.build / "lib")
        # No more of the scripts: those that build and test had better not be started from here.
        (self.folder / "scripts").mkdir()
        (self.folder / "scripts/list_functions.py").symlink_to(self.root / "scripts/list_functions.py")
        (self.folder / "build").mkdir()
        for preset in ("dev", "release"):
            (self.folder / "build" / preset).symlink_to(self.build)
        self.prefix = self.top / "prefix"
        self.prefix.mkdir()
        for name in ("bin", "lib"):
            (self.prefix / name).symlink_to(self.build / name)
        for section, page in ((1, "cuslice"), (5, "cuslice.toml")):
            manual = self.prefix / f"share/man/man{section}"
            manual.mkdir(parents=True)
            source = subprocess.check_output([self.build / "bin/cuslice", "help", "--man", page])
            (manual / f"{page}.{section}").write_bytes(source)
        machine = self.top / "machine.toml"
        machine.write_text(MACHINE)
        for name in PYTHON_PROGRAMS:
            (self.folder / name).write_text(PROGRAM)
        for name in ("a.out", "program", "multi_gpu_test"):
            shutil.copy(self.build / "samples/driver_fill", self.folder / name)
        shutil.copy(self.static, self.folder / "static")
        self.install_package(programs)
        for name in ("python", "python3"):
            (programs / name).symlink_to(os.path.realpath(sys.executable))
        for name, text in (("torchrun", TORCHRUN), ("ssh", SSH)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        path = [programs, self.prefix / "bin", self.build / "lib/cuslice/samples", self.build / "samples"]
        self.environment = {
            "PATH": ":".join([*map(str, path), os.environ["PATH"]]), "HOME": str(self.top / "home"), "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(self.top / "site"), "CUSLICE_DIR": str(self.ledgers), "CUSLICE_FAKE_DIR": str(fakes), "CUSLICE_FAKE": str(machine)}
        self.count = 0
        return self

    def install_package(self, programs):
        """The Python package as pip would have installed it, and pytest where scripts/setup.sh has put one."""
        info = self.top / "site/cuslice.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cuslice\nVersion: 0\n")
        (info / "entry_points.txt").write_text("[pytest11]\ncuslice = cuslice.pytest_plugin\n")
        (info.parent / "cuslice").symlink_to(self.root / "python/cuslice")
        pytest = self.root / "build/pytest/bin/pytest"
        if pytest.exists():
            (programs / "pytest").symlink_to(pytest)

    def __exit__(self, *_):
        shutil.rmtree(self.top)
        shutil.rmtree(self.ledgers)

    def scratch(self):
        self.count += 1
        folder = self.top / f"block{self.count}"
        folder.mkdir()
        return folder

    def prepare(self, words, beside):
        """What is run for a document's words. 812 is the pid of the first program beside it."""
        if beside:
            words = re.sub(r"\b812\b", str(beside[0]), words)
        return re.sub(r"/opt/cuslice\b", str(self.prefix), words)

    @contextlib.contextmanager
    def beside(self, words):
        """Runs a command until the caller is done, once it holds memory or waits for some; its pid."""
        child = subprocess.Popen(["bash", "-c", "exec " + self.prepare(words, [])], cwd=self.folder, env=self.environment,
                                 text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said = []
            while not said or not re.search("holding|waiting for", said[-1]):
                said.append(child.stdout.readline())
                if not said[-1]:
                    raise RuntimeError(f"{words}: it ended before it held any memory: {''.join(said)}")
            yield child.pid
        finally:
            child.stdin.close()
            if "--wait" in words:
                child.terminate()
            child.wait(60)
            child.stdout.close()

    def plain(self, output):
        """Output with the names that documents have for folders."""
        for folder, name in ((self.prefix, "/opt/cuslice"), (self.build, "/opt/cuslice"),
                             (self.ledgers, "/dev/shm/cuslice"), (self.folder, ".")):
            output = output.replace(str(folder), name)
        return output
