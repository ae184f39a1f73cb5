#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cuslice cdi` writes is a specification as CDI documents it, and gives containers their slices:

  cdi_test.py BUILD

The specification is held against the rules of CDI's SPEC.md. Its edits are made to bundles of runc, as Podman, Docker
and containerd make them, and where Podman is installed it makes them itself.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
LAUNCHER = BUILD / "bin/cuslice"
FOLDERS = [name for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc") if os.path.exists(name)]
RUNC = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
PODMAN = shutil.which("podman")

# Fills the GPU in blocks of 64 MiB and says what it is: total MiB, blocks. With `hold` it then waits for its input's end.
FILL = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total, block = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
retained = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
if retained:
    sys.exit(print(f"context {retained}") or 0)
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
blocks = 0
while (code := cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(64 << 20))) == 0:
    blocks += 1
assert code == 2, code
print(total.value >> 20, blocks, flush=True)
if "hold" in sys.argv:
    sys.stdin.read()
"""


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUSLICE_", "LD_"))}
    return {**kept, "LC_ALL": "C.UTF-8"}


def cuslice(*words, **more):
    return subprocess.run([LAUNCHER, "cdi", *words], capture_output=True, text=True, env=environment(), **more)


def gpu_memory():
    listed = subprocess.run([LAUNCHER, "devices", "--json", "--fake", "1xt4"], capture_output=True, env=environment(), check=True)
    return json.loads(listed.stdout)["devices"][0]["total"]


def check_edits(edits):
    """`containerEdits`: nothing that CDI 0.5.0 doesn't know, and what is needed of what it knows."""
    assert set(edits) <= {"env", "deviceNodes", "mounts", "hooks"}, edits.keys()
    for line in edits.get("env", []):
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", line), line
    for mount in edits.get("mounts", []):
        assert {"hostPath", "containerPath"} <= set(mount) <= {"hostPath", "containerPath", "type", "options"}, mount
        assert mount["hostPath"].startswith("/") and mount["containerPath"].startswith("/"), mount
        assert all(isinstance(option, str) for option in mount["options"]), mount


def check(specification):
    assert set(specification) <= {"cdiVersion", "kind", "devices", "containerEdits"}, specification.keys()
    assert re.fullmatch(r"\d+\.\d+\.\d+", specification["cdiVersion"])
    vendor, _, kind = specification["kind"].partition("/")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", vendor) and len(vendor) <= 253
    assert re.fullmatch(r"[A-Za-z0-9]([\w-]*[A-Za-z0-9])?", kind) and len(kind) <= 63
    assert specification["devices"], "at least one device must be there"
    names = [device["name"] for device in specification["devices"]]
    assert len(names) == len(set(names)), names
    for device in specification["devices"]:
        assert set(device) == {"name", "containerEdits"}, device
        assert re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", device["name"]), device["name"]
        check_edits(device["containerEdits"])
    check_edits(specification["containerEdits"])
    return specification


class Specification(unittest.TestCase):
    def written(self, *words, warning=None):
        done = cuslice(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        if warning is not None:
            self.assertEqual(done.stderr, warning)
        return check(json.loads(done.stdout))

    def devices(self, *words):
        written = self.written(*words)
        return {device["name"]: device["containerEdits"]["env"] for device in written["devices"]}

    def test_a_device_for_each_value(self):
        self.assertEqual(self.devices("--fraction", "0.25", "--limit", "4GiB", "--fraction=.5"),
                         {"0.25": ["CUSLICE_FRACTION=0.25"], "4GiB": ["CUSLICE_LIMIT=4GiB"], "0.5": ["CUSLICE_FRACTION=.5"]})
        self.assertEqual(self.devices("--fraction", "40%", "--limit=0=4GiB,1=2GiB"),
                         {"40-percent": ["CUSLICE_FRACTION=40%"], "0-4GiB_1-2GiB": ["CUSLICE_LIMIT=0=4GiB,1=2GiB"]})
        usual = self.devices()
        self.assertEqual(len(usual), 11)
        self.assertEqual(usual["0.75"], ["CUSLICE_FRACTION=0.75"])

    def test_what_all_devices_have(self):
        with tempfile.TemporaryDirectory() as ledgers:
            edits = self.written("--dir", ledgers, "--allocator", "growth", "--headroom", "0=64MiB", "--headroom",
                                 "1=32MiB", warning="")["containerEdits"]
            library = str(BUILD / "lib/cuslice/libcuslice.so")
            self.assertEqual(sorted(edits["env"]), sorted([
                f"LD_PRELOAD={library}", "CUSLICE_ALLOCATOR=growth", "CUSLICE_GROUP=@container",
                "CUSLICE_HEADROOM=0=64MiB,1=32MiB", f"CUSLICE_DIR={ledgers}"]))
            mounts = {mount["containerPath"]: mount for mount in edits["mounts"]}
            self.assertIn("ro", mounts[str(BUILD / "lib/cuslice")]["options"])
            self.assertIn("ro", mounts[str(LAUNCHER)]["options"])
            self.assertIn("rw", mounts[ledgers]["options"])
            for mount in mounts.values():
                self.assertTrue({"nosuid", "nodev"} <= set(mount["options"]))
                self.assertTrue(os.path.exists(mount["hostPath"]), mount)
        self.assertIn("CUSLICE_GROUP=lab", self.written("--group", "lab")["containerEdits"]["env"])
        self.assertNotIn("CUSLICE_GROUP", json.dumps(self.written("--per-process")))
        self.assertIn("libcuslice-runtime.so", json.dumps(self.written("--split", "0=2")))

    def test_a_folder_of_ledgers_that_is_missing_is_named(self):
        self.written("--dir", "/nowhere/ledgers", warning="cuslice: /nowhere/ledgers: no such folder yet, and no container "
                     "with a slice starts without it: install -d -m 1777 /nowhere/ledgers\n")

    def test_what_is_refused(self):
        for words, code, why in (
                (["--fraction", "1.5"], 78, "--fraction: 1.5: "), (["--limit", "1024"], 78, "did you mean 1024MiB"),
                (["--limit", "4GiB+context"], 78, "+context can't be had in a group"),
                (["--limit", "0=4GiB", "--limit", "0-4GiB"], 78, "--limit: 0-4GiB: "),
                (["--fraction", "0.5", "--fraction", ".5"], 78, "two devices would have the name 0.5"),
                (["--gpus", "0"], 64, "--gpus: not an option of cuslice cdi"), (["--json"], 64, "--json"),
                (["-o"], 64, "a value is needed after it: --output FILE"), (["--output="], 64, "a file is needed"),
                (["--fake", "./machine.toml"], 78, "a file is not in the container"),
                (["-o", "/nowhere/cuslice.json"], 73, "/nowhere/cuslice.json: cannot be written: No such file")):
            with self.subTest(words):
                done = cuslice(*words)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(why, done.stderr.splitlines()[-1])

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "cuslice.json")
            path.write_text("of before")
            for option in (["-o", path], [f"--output={path}"]):
                done = cuslice(*option)
                self.assertEqual((done.returncode, done.stdout), (0, ""))
                check(json.loads(path.read_text()))
                self.assertEqual(path.stat().st_mode & 0o777, 0o644)
                self.assertEqual(os.listdir(folder), ["cuslice.json"])


class Containers(unittest.TestCase):
    """The same cases however the edits come into the container."""

    def setUp(self):
        self.owner = tempfile.TemporaryDirectory()
        self.addCleanup(self.owner.cleanup)
        self.folder = pathlib.Path(self.owner.name)
        (self.folder / "fill.py").write_text(FILL)
        self.ledgers, self.books = self.folder / "ledgers", self.folder / "books"
        self.ledgers.mkdir()
        self.books.mkdir()
        done = cuslice("--fake", "1xt4", "--headroom", "16MiB", "--limit", "1GiB", "--fraction", "0.5", "--dir", self.ledgers)
        self.assertEqual(done.stderr, "")
        self.specification = check(json.loads(done.stdout))
        self.count = 0

    def start(self, device, script, stdin=subprocess.DEVNULL):
        return subprocess.Popen(self.command(device, script), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=environment())

    def run_in(self, device, script):
        process = self.start(device, script)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out

    def look(self):
        fill = f"{sys.executable} {self.folder}/fill.py"
        # The total is the limit, and less fits than that.
        total, blocks = self.run_in("1GiB", fill).split()
        self.assertEqual(total, "1024")
        self.assertLessEqual(int(blocks), 15)
        self.assertGreaterEqual(int(blocks), 10)
        self.assertEqual(self.run_in("0.5", fill).split()[0], str(gpu_memory() // 2 >> 20))
        # Programs of one container share the slice, with whichever environment they are started.
        self.assertEqual(self.run_in("1GiB", f"mkfifo /tmp/end; {fill} hold </tmp/end >/tmp/first & exec 3>/tmp/end; "
                                             f"while ! [ -s /tmp/first ]; do sleep 0.05; done; cat /tmp/first; {fill}; "
                                             f"exec 3>&-; wait").splitlines(), [f"1024 {blocks}", "context 2"])
        # Another container has one of its own, and both are in the one ledger.
        first = self.start("1GiB", f"{fill} hold", stdin=subprocess.PIPE)
        self.assertEqual(first.stdout.readline().split(), ["1024", blocks])
        self.assertEqual(self.run_in("1GiB", fill).split(), ["1024", blocks])
        held = subprocess.run([LAUNCHER, "ps", "--json", "--dir", self.ledgers], capture_output=True, text=True,
                              env=environment(), check=True).stdout
        self.assertEqual(held.count('"container-'), 1, held)
        first.communicate("", timeout=60)
        # The launcher is there too.
        self.assertRegex(self.run_in("1GiB", f"{LAUNCHER} --version"), r"^cuslice \d")


class Runc(Containers):
    def setUp(self):
        if not RUNC or os.geteuid() != 0:
            self.skipTest("needs runc, and root")
        super().setUp()
        if subprocess.run(self.command(None, "true"), capture_output=True, env=environment()).returncode:
            self.skipTest("runc can make no container here")

    def command(self, device, script):
        """A bundle whose root is an empty folder with this machine's programs bound into it, and the edits."""
        self.count += 1
        bundle = self.folder / f"bundle{self.count}"
        (bundle / "root").mkdir(parents=True)
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
                  {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": ["mode=1777"]}]
        bound = [*FOLDERS, sys.prefix, str(self.folder)]
        mounts += [{"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]} for path in bound]
        mounts.append({"destination": str(self.books), "type": "bind", "source": str(self.books), "options": ["rbind", "rw"]})
        env = {"PATH": os.environ["PATH"], "CUSLICE_FAKE_DIR": str(self.books)}
        for edits in [self.specification["containerEdits"],
                      *(one["containerEdits"] for one in self.specification["devices"] if one["name"] == device)]:
            if device is None:
                break
            env |= dict(line.split("=", 1) for line in edits.get("env", []))
            mounts += [{"destination": mount["containerPath"], "source": mount["hostPath"], "type": "bind",
                        "options": mount["options"]} for mount in edits.get("mounts", [])]
        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2", "mounts": mounts, "root": {"path": "root"},
            "process": {"args": ["/bin/sh", "-c", script], "cwd": "/", "user": {"uid": 0, "gid": 0},
                        "env": [f"{name}={value}" for name, value in env.items()]},
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]}}))
        return [RUNC, "--root", self.folder / "state", "run", "--bundle", bundle,
                f"cuslice-cdi-{os.getpid()}-{self._testMethodName}-{self.count}"]

    def test_slices(self):
        self.look()


class Podman(Containers):
    def setUp(self):
        if not PODMAN or not RUNC or os.geteuid() != 0:
            self.skipTest("needs podman and runc, and root")
        super().setUp()
        (self.folder / "cdi").mkdir()
        (self.folder / "cdi/cuslice.json").write_text(json.dumps(self.specification))
        probe = subprocess.run(self.command(None, "true"), capture_output=True, text=True, env=environment())
        if probe.returncode:
            self.skipTest(f"podman can make no container here: {(probe.stderr.splitlines() or ['?'])[-1]}")

    def command(self, device, script):
        """Podman looks for specifications in /etc/cdi and /run/cdi: it gets a /run of its own, in a mount namespace."""
        self.count += 1
        root = self.folder / f"root{self.count}"
        for name in ("tmp", "dev", "proc", "sys", "run", *(path[1:] for path in FOLDERS if path != "/etc"), "etc"):
            (root / name).mkdir(parents=True, exist_ok=True)
        words = [PODMAN, "--root", self.folder / "storage", "--runroot", "/run/storage", "--storage-driver", "vfs",
                 "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", RUNC, "run", "--rm", "--network", "none",
                 "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--security-opt", "seccomp=unconfined", "-i",
                 "--env", f"CUSLICE_FAKE_DIR={self.books}", "--env", f"PATH={os.environ['PATH']}", "--volume", f"{self.books}:{self.books}"]
        for path in (*(path for path in FOLDERS if path != "/etc"), sys.prefix, str(self.folder / "fill.py")):
            words += ["--volume", f"{path}:{path}:ro"]
        if device:
            words += ["--device", f"cuslice/slice={device}"]
        words += ["--rootfs", root, "/bin/sh", "-c", script]
        inside = f"mount -t tmpfs none /run && mkdir /run/cdi && cp {self.folder}/cdi/* /run/cdi/ && exec \"$@\""
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, "sh", *map(str, words)]

    def test_slices(self):
        self.look()


if __name__ == "__main__":
    unittest.main(verbosity=2)
