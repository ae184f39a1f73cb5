# SPDX-License-Identifier: Apache-2.0
"""Programs under cuslice run whose log, recording and stats file lie in folders that others can write to:

  shared_folder_test.py BUILD
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
del sys.argv[1:2]
LAUNCHER = BUILD / "bin/cuslice"
# Takes 100 MiB, is refused 10 GiB, shows its stats file and ends as it is told.
PROGRAM = """
import ctypes, glob, os, stat, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
small, large = ctypes.c_size_t(100 << 20), ctypes.c_size_t(10 << 30)
codes = cuda.cuMemAlloc_v2(ctypes.byref(block), small), cuda.cuMemAlloc_v2(ctypes.byref(block), large)
modes = [oct(stat.S_IMODE(os.stat(path).st_mode)) for path in glob.glob(os.environ["LEDGERS"] + "/*.figures")]
print(*codes, *modes, flush=True)
if sys.argv[1:] == ["killed"]:
    os.kill(os.getpid(), 9)
"""


class SharedFolder(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)
        self.ledgers, self.shared = self.folder / "ledgers", self.folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self.precious = self.folder / "precious"
        self.precious.write_text("precious\n")
        self.environment = {"PATH": os.environ["PATH"], "CUSLICE_FAKE": "1xt4", "CUSLICE_DIR": str(self.ledgers),
                            "LEDGERS": str(self.ledgers),
                            "CUSLICE_FAKE_DIR": str(self.folder / "fake")}

    def cuslice(self, *words):
        return subprocess.run([LAUNCHER, *words], env=self.environment, capture_output=True, text=True)

    def run_program(self, *options, end=()):
        return self.cuslice("run", "--limit", "1GiB", "--allocator", "growth", *options, "--", sys.executable, "-c", PROGRAM, *end)

    def files(self):
        return list(self.ledgers.glob("*.figures"))

    def test_a_log_goes_nowhere_that_others_chose(self):
        log = self.shared / "log"

        def symlink():
            log.symlink_to(self.precious)

        def dangling():
            log.symlink_to(self.folder / "new")

        def hard_link():
            os.link(self.precious, log)

        def folder():
            (self.shared / "sub").symlink_to(self.folder)

        for attack, reason in ((symlink, "a symbolic link"), (dangling, "a symbolic link"), (hard_link, "another name"),
                               (folder, "a symbolic link")):
            with self.subTest(attack.__name__):
                attack()
                path = self.shared / "sub/precious" if attack is folder else log
                done = self.run_program("--log", f"info:{path}")
                self.assertEqual((done.returncode, done.stdout), (0, "0 2 0o600\n"), done.stderr)
                self.assertEqual(self.precious.read_text(), "precious\n")
                self.assertFalse((self.folder / "new").exists())
                refused = [line for line in done.stderr.splitlines() if "is not written to" in line]
                self.assertEqual(len(refused), 1, done.stderr)
                self.assertIn(reason, refused[0])
                self.assertIn("out of memory", done.stderr)
                log.unlink(missing_ok=True)

    def test_ones_own_log_there_is_written_to(self):
        for _ in range(2):
            done = self.run_program("--log", f"warn:{self.shared}/log")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreaterEqual((self.shared / "log").read_text().count("out of memory"), 2)

    def test_a_recording_goes_nowhere_that_others_chose(self):
        (self.shared / "rows").symlink_to(self.folder / "new")
        (self.shared / "sub").symlink_to(self.folder)
        for path in "rows", "sub/new":
            done = self.run_program("--record", str(self.shared / path))
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("a symbolic link leads there", done.stderr)
            self.assertFalse((self.folder / "new").exists())
            # Under LD_PRELOAD alone nobody looked before: the program goes on without.
            self.environment |= {"LD_PRELOAD": str(BUILD / "lib/cuslice/libcuslice.so"), "CUSLICE_LIMIT": "1GiB",
                                 "CUSLICE_RECORD": str(self.shared / path)}
            done = subprocess.run([sys.executable, "-c", PROGRAM], env=self.environment, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, "0 2\n"), done.stderr)
            self.assertFalse((self.folder / "new").exists())
            for name in "LD_PRELOAD", "CUSLICE_LIMIT", "CUSLICE_RECORD":
                del self.environment[name]

    def test_stats_files_end_with_their_processes(self):
        self.assertEqual(self.run_program().stdout, "0 2 0o600\n")
        self.assertEqual(self.files(), [])
        looks = (["ps"], ["ps", "--prometheus"], ["top", "--json"], ["stats", "1"])
        for look in looks:
            with self.subTest(look):
                self.assertEqual(self.run_program(end=["killed"]).returncode, -signal.SIGKILL)
                self.assertEqual(len(self.files()), 1)
                self.cuslice(*look)
                self.assertEqual(self.files(), [])

    def test_a_file_that_may_not_be_read_is_named(self):
        program = PROGRAM.replace("print(", "import subprocess; print(") + "sys.stdin.read()\n"
        child = subprocess.Popen([LAUNCHER, "run", "--limit", "1GiB", "--allocator", "growth", "--", sys.executable, "-c", program],
                                 env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "0 2 0o600\n")
        self.assertEqual(self.cuslice("stats", str(child.pid)).returncode, 0)
        [file] = self.files()
        file.chmod(0)
        bare = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("root reads every file, and there is no setpriv here")
            bare = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
        done = subprocess.run([*bare, LAUNCHER, "stats", str(child.pid)], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stderr, f"cuslice: the figures of process {child.pid} can't be read: {file}: Permission denied\n")
        for look in ["ps"], ["ps", "--prometheus"], ["top", "--json"]:
            done = subprocess.run([*bare, LAUNCHER, *look], env=self.environment, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        child.communicate()


if __name__ == "__main__":
    unittest.main(verbosity=2)
