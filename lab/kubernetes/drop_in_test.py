#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuslice in HAMi-core's place:  drop_in_test.py SOURCE BUILD

What KAI-Scheduler's end-to-end tests of HAMi-core look at in a pod, here in containers of runc: CUDA_DEVICE_MEMORY_LIMIT is
there and the library named by /etc/ld.so.preload is in the program; NVML's total is that limit; more than it is out of
memory; a container that opts out has the whole GPU.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]
FOLDERS = [name for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64") if os.path.exists(name)]
RUNC = shutil.which("runc", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
PRELOAD = "/etc/ld.so.preload"

# Tells the library in the program, NVML's total, CUDA's, and how many blocks of 64 MiB it got.
PROGRAM = """
import ctypes, sys
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
handle, memory = ctypes.c_void_p(), Memory()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
context, free, total, block = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
    sys.exit(print("no room for a context") or 0)
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
blocks = 0
while (code := cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(64 << 20))) == 0:
    blocks += 1
assert code == 2, code
print("libvgpu.so" in open("/proc/self/maps").read(), memory.total >> 20, total.value >> 20, blocks, flush=True)
if "hold" in sys.argv:
    sys.stdin.read()
"""


class DropIn(unittest.TestCase):
    def setUp(self):
        if not RUNC or os.geteuid() != 0:
            self.skipTest("needs runc, and root")
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)
        (self.folder / "program.py").write_text(PROGRAM)
        (self.folder / "books").mkdir()
        self.count = 0
        self.vgpu = self.folder / "vgpu"
        done = subprocess.run([SOURCE / "integrations/kubernetes/drop-in.sh", BUILD, self.vgpu], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((self.vgpu / "ld.so.preload").read_text(), "/usr/local/vgpu/libvgpu.so\n")
        (self.vgpu / "fake").symlink_to(BUILD / "lib/cuslice/fake")  # where a driver would be
        if self.run_in("true", preload=False)[0]:
            self.skipTest("runc can make no container here")

    def run_in(self, script, preload=True, **variables):
        """A root whose /etc is its own: nothing is ever put into this machine's."""
        self.count += 1
        bundle = self.folder / f"bundle{self.count}"
        etc = bundle / "root/etc"
        etc.mkdir(parents=True)
        shutil.copy("/etc/ld.so.cache", etc)
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
                  {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777", "size=64m"]},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": ["mode=1777"]}]
        local = [path for path in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share")
                 if os.path.isdir(path) and not os.path.islink(path)]
        local += [f"/usr/local/{name}" for name in ("bin", "lib") if os.path.isdir(f"/usr/local/{name}")]
        for path in [*(path for path in FOLDERS if path != "/usr"), *local, *{sys.prefix} - {"/usr", "/usr/local"},
                     str(self.folder / "program.py"), str(BUILD)]:
            mounts.append({"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]})
        mounts.append({"destination": "/usr/local/vgpu", "type": "bind", "source": str(self.vgpu), "options": ["rbind", "ro"]})
        mounts.append({"destination": str(self.folder / "books"), "type": "bind", "source": str(self.folder / "books"),
                       "options": ["rbind", "rw"]})
        if preload:
            mounts.append({"destination": PRELOAD, "type": "bind", "source": str(self.vgpu / "ld.so.preload"),
                           "options": ["bind", "ro"]})
        env = {"PATH": os.environ["PATH"], "CUSLICE_FAKE": "1xt4", "CUSLICE_FAKE_DIR": str(self.folder / "books"),
               "LD_LIBRARY_PATH": "/usr/local/vgpu/fake", **variables}
        (bundle / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2", "mounts": mounts, "root": {"path": "root"},
            "process": {"args": ["/bin/sh", "-c", script], "cwd": "/", "user": {"uid": 0, "gid": 0},
                        "env": [f"{name}={value}" for name, value in env.items()]},
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]}}))
        done = subprocess.run([RUNC, "--root", self.folder / "state", "run", "--bundle", bundle,
                               f"cuslice-drop-in-{os.getpid()}-{self._testMethodName}-{self.count}"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    @property
    def program(self):
        return f"{sys.executable} {self.folder}/program.py"

    def test_the_variable_is_there_and_so_is_the_library(self):
        code, out, err = self.run_in(f"echo $CUDA_DEVICE_MEMORY_LIMIT; cat {PRELOAD}; {self.program}",
                                     CUDA_DEVICE_MEMORY_LIMIT="2027m")
        self.assertEqual(out.splitlines()[:2], ["2027m", "/usr/local/vgpu/libvgpu.so"], err)
        self.assertTrue(out.splitlines()[2].startswith("True "), out)

    def test_the_total_is_the_limit_and_more_is_out_of_memory(self):
        for variables in ({"CUDA_DEVICE_MEMORY_LIMIT": "2027m"}, {"CUDA_DEVICE_MEMORY_LIMIT_0": "2027m"},
                          {"CUDA_DEVICE_MEMORY_LIMIT_0": "2027m", "CUDA_DEVICE_MEMORY_LIMIT": "1g"}):
            code, out, err = self.run_in(self.program, **variables)
            self.assertEqual(out.split()[:3], ["True", "2027", "2027"], err)
            self.assertLessEqual(int(out.split()[3]) * 64, 2027)
            self.assertRegex(" ".join(err.split()), f"[Tt]he limit is from {next(iter(variables))}")

    def test_who_opts_out_has_the_whole_gpu(self):
        _, out, err = self.run_in(self.program, preload=False, CUDA_DEVICE_MEMORY_LIMIT="2027m")
        present, of_nvml, of_cuda, _ = out.split()
        self.assertEqual(present, "False", err)
        self.assertGreater(int(of_nvml), 15000)
        self.assertGreater(int(of_cuda), 15000)

    def test_the_limit_is_the_containers(self):
        script = (f"mkfifo /tmp/end; {self.program} hold </tmp/end >/tmp/first & exec 3>/tmp/end; while ! [ -s /tmp/first ]; do "
                  f"sleep 0.05; done; {self.program}; CUSLICE_PER_PROCESS=yes {self.program}; exec 3>&-; wait")
        _, out, err = self.run_in(script, CUDA_DEVICE_MEMORY_LIMIT="1g", CUDA_DEVICE_MEMORY_SHARED_CACHE="/usr/local/vgpu/a.cache")
        lines = out.splitlines()
        self.assertEqual(lines[0], "no room for a context", err)
        self.assertEqual(lines[1].split()[:3], ["True", "1024", "1024"], err)

    def test_what_is_not_served_is_named(self):
        served = {"CUDA_DEVICE_MEMORY_LIMIT": "1g", "CUDA_DEVICE_SM_LIMIT": "0", "LIBCUDA_LOG_LEVEL": "1"}
        said = [line for line in self.run_in(self.program, **served)[2].splitlines() if "no effect" in line]
        self.assertEqual(said, [])
        asked = {"CUDA_OVERSUBSCRIBE": "true", "ACTIVE_OOM_KILLER": "true",
                 "CUDA_TASK_PRIORITY": "1", "GPU_CORE_UTILIZATION_POLICY": "force"}
        said = [line for line in self.run_in(self.program, **{**served, **asked})[2].splitlines() if "no effect" in line]
        self.assertEqual(sorted(line.split(": ")[1] for line in said), sorted(asked))
        for name, value in asked.items():
            self.assertTrue(any(line.startswith(f"cuslice: {name}: {value}: has no effect here: ") for line in said), said)

    def test_the_log_level(self):
        for level, shown in ("1", False), ("3", True), ("4", True):
            err = self.run_in(self.program, CUDA_DEVICE_MEMORY_LIMIT="1g", LIBCUDA_LOG_LEVEL=level)[2]
            self.assertEqual("the driver is " in err, shown, err)
        self.assertNotIn("the driver is ", self.run_in(self.program, CUSLICE_LOG="warn", LIBCUDA_LOG_LEVEL="4")[2])

    def test_other_programs_notice_nothing(self):
        self.assertEqual(self.run_in("echo out; ls / >/dev/null; exit 7", CUDA_DEVICE_MEMORY_LIMIT="1g"), (7, "out\n", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
