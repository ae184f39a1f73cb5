#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of integrations/ are read by what they are for, and give programs their slices:

  recipes_test.py SOURCE BUILD

systemd's by systemd-analyze, Jupyter's by jupyter_client with ipykernel, Compose's by PyYAML: each where it is here, else
that case is skipped. What they start runs on fake GPUs, with this build in the place of /opt/cuslice.
"""
import configparser
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]
sys.dont_write_bytecode = True
sys.path[:0] = map(str, (SOURCE / "build/pytest").glob("lib/python3*/site-packages"))
FOLDER = SOURCE / "integrations"
TOTAL = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, free, total, block = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
print(total.value >> 20, cuda.cuMemAlloc_v2(ctypes.byref(block), total), flush=True)
"""


class Recipes(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)
        (self.folder / "total.py").write_text(TOTAL)

    def here(self, text):
        """/opt/cuslice and /run/cuslice as this test has them."""
        return text.replace("/opt/cuslice", str(BUILD)).replace("/run/cuslice", str(self.folder / "ledgers"))

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUSLICE_", "LD_"))}
        return {**kept, "CUSLICE_FAKE": "1xt4", "CUSLICE_FAKE_DIR": str(self.folder), **more}

    def run_program(self, words, **more):
        done = subprocess.run(words, env=self.environment(**more), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "4096 2\n", done.stderr)

    def test_compose(self):
        try:
            import yaml
        except ImportError as missing:
            self.skipTest(f"{missing}: scripts/setup.sh tests")
        (service,) = yaml.safe_load((FOLDER / "containers/compose.yaml").read_text())["services"].values()
        self.assertEqual({one["target"]: one["source"] for one in service["volumes"]},
                         {path: path for path in ("/opt/cuslice", "/run/cuslice")})
        self.assertEqual([one.get("read_only", False) for one in service["volumes"]], [True, False])
        self.run_program([sys.executable, self.folder / "total.py"],
                         **{name: self.here(value) for name, value in service["environment"].items()})

    def unit(self, name):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        parser.read_string((FOLDER / "systemd" / name).read_text())
        return parser["Service"]

    def test_systemd_takes_the_units(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("there is no systemd-analyze here")
        units = [path.name for path in (FOLDER / "systemd").glob("*.service")]
        self.assertEqual(sorted(units), ["cuslice-ledgers.service", "slice@.service"])
        for name in units:
            (self.folder / name).write_text(self.here((FOLDER / "systemd" / name).read_text()))

        def verify():
            return subprocess.run(["systemd-analyze", "verify", *(self.folder / name for name in units)], capture_output=True, text=True)

        done = verify()
        about = [line for line in (done.stdout + done.stderr).splitlines() if any(name.split(".")[0] in line for name in units)]
        self.assertEqual(about, [])
        self.assertEqual(done.returncode, 0, done.stderr)
        # The check can fail.
        text = (self.folder / "slice@.service").read_text()
        (self.folder / "slice@.service").write_text(text.replace("Type=exec", "Type=exact"))
        self.assertIn("slice@", verify().stderr)

    def test_what_the_units_start(self):
        ledgers = shlex.split(self.here(self.unit("cuslice-ledgers.service")["ExecStart"]))
        subprocess.run(ledgers, check=True)
        self.assertEqual((self.folder / "ledgers").stat().st_mode & 0o7777, 0o1777)
        service = self.unit("slice@.service")
        words = shlex.split(self.here(service["ExecStart"]).replace("%i", "4GiB"))
        self.assertEqual(words[-2:], ["--", "/usr/bin/nvidia-smi"])
        name, _, value = self.here(service["Environment"]).partition("=")
        self.run_program([*words[:-1], sys.executable, self.folder / "total.py"], **{name: value})
        documented = set(re.findall(r"\b\d+\b", service["RestartPreventExitStatus"] + " " + service["RestartForceExitStatus"]))
        self.assertEqual(documented, {"64", "75", "78", "126", "127"})

    def dmem(self, user):
        """The drop-in's command, on a made-up cgroup folder; its exit code and the folder of the user's cgroup."""
        group = self.folder / "cgroup/user.slice" / f"user-{user}.slice"
        prefixes, _, command = self.unit("user-dmem.conf")["ExecStartPre"].partition("/")
        self.assertEqual(prefixes, "-+")
        words = shlex.split(("/" + command).replace("%i", user).replace("/sys/fs/cgroup", str(self.folder / "cgroup")))
        return subprocess.run(words, capture_output=True, text=True).returncode, group

    def test_dmem_of_a_user(self):
        self.assertNotEqual(self.dmem("1001")[0], 0)
        group = self.dmem("1001")[1]
        group.mkdir(parents=True)
        self.assertEqual(self.dmem("1001")[0], 0)
        for parent in (group.parent, group.parent.parent):
            self.assertEqual((parent / "cgroup.subtree_control").read_text(), "+dmem\n")
        text = (group / "dmem.max").read_text()
        self.assertRegex(text, r"^drm/[0-9a-f:.]{12}/vram0 8589934592\n$")
        if not shutil.which("bwrap"):
            self.skipTest("there is no bubblewrap here: scripts/setup.sh tests")
        # The kernel's file, with the fake GPU's place on its bus, as a program in that cgroup finds it.
        (group / "dmem.max").write_text(text.replace("0000:03:00.0", "0000:04:00.0"))
        (group / "cgroup.controllers").write_text("cpu dmem\n")
        words = ["bwrap", "--dev-bind", "/", "/", "--bind", group, "/sys/fs/cgroup", "--", sys.executable, self.folder / "total.py"]
        done = subprocess.run(words, env=self.environment(LD_PRELOAD=str(BUILD / "lib/cuslice/libcuslice.so")),
                              capture_output=True, text=True)
        if done.stderr.startswith("bwrap: "):
            self.skipTest(done.stderr)
        self.assertEqual(done.stdout, "8192 2\n", done.stderr)
        self.assertIn("dmem.max of cgroup /", done.stderr)

    def test_systemd_takes_the_drop_in(self):
        unit = pathlib.Path("/lib/systemd/system/user@.service")
        if not shutil.which("systemd-analyze") or not unit.exists():
            self.skipTest("there is no systemd here")
        place = self.folder / "units/user@.service.d"
        place.mkdir(parents=True)
        shutil.copy(unit, place.parent)
        text = (FOLDER / "systemd/user-dmem.conf").read_text()

        def said(text):
            (place / "dmem.conf").write_text(text)
            done = subprocess.run(["systemd-analyze", "verify", "user@1001.service"], capture_output=True, text=True,
                                  env={**os.environ, "SYSTEMD_UNIT_PATH": f"{place.parent}:"})
            return [line for line in (done.stdout + done.stderr).splitlines() if "dmem.conf" in line]

        self.assertEqual(said(text), [])
        self.assertNotEqual(said(text.replace("ExecStartPre=-+/bin/sh", "ExecStartPre=-+sh/")), [])

    def spec(self):
        spec = json.loads(self.here((FOLDER / "jupyter/kernel.json").read_text()))
        self.assertIn("{connection_file}", spec["argv"])
        return spec

    def test_what_jupyter_starts(self):
        (self.folder / "ipykernel_launcher.py").write_text(TOTAL + "import sys; assert sys.argv[1:] == ['-f', 'connection']\n")
        words = [word.replace("{connection_file}", "connection") for word in self.spec()["argv"]]
        self.run_program(words, PYTHONPATH=str(self.folder))

    def test_a_kernel_of_jupyter(self):
        try:
            import ipykernel  # noqa: F401
            import jupyter_client
        except ImportError as missing:
            self.skipTest(f"{missing}: pip install jupyter_client ipykernel")
        kernels = self.folder / "kernels/slice"
        kernels.mkdir(parents=True)
        spec = self.spec()
        spec["argv"] = [sys.executable if word == "python3" else word for word in spec["argv"]]
        (kernels / "kernel.json").write_text(json.dumps(spec))
        specs = jupyter_client.kernelspec.KernelSpecManager(kernel_dirs=[str(kernels.parent)])
        manager = jupyter_client.KernelManager(kernel_name="slice", kernel_spec_manager=specs)
        manager.start_kernel(env=self.environment(), stderr=subprocess.DEVNULL)
        client = manager.client()
        try:
            client.start_channels()
            client.wait_for_ready(timeout=60)
            said = []
            client.execute_interactive(TOTAL, timeout=60, output_hook=lambda message: said.append(message["content"].get("text", "")))
            self.assertIn("4096 2\n", "".join(said))
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
