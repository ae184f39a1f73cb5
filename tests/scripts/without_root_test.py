# SPDX-License-Identifier: Apache-2.0
"""scripts/run.sh and scripts/setup.sh as somebody without root starts them.

What setup.sh would download is not downloaded: apt-get, dpkg-deb and the Python of build/tools are scripts that note
how they were called. In a container of bubblewrap, so that the machine's own headers aren't seen.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = "bash sed sort head ls id mkdir rm dirname cat env python3 git make readelf file".split()
INSIDE = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/usr/include",
          "--unshare-user", "--uid", "1000", "--gid", "1000"]  # fmt: skip

APT = """#!/bin/sh
echo "apt-get $*" >>"$LOG"
case " $* " in
*" update "*) : >"$LOG.lists" ;;
*" download "*)
    [ -z "$NO_LISTS" ] || [ -e "$LOG.lists" ] || exit 100
    [ -z "$NO_ARCHIVE" ] || exit 100
    : >libtomlplusplus-dev.deb; : >libcli11-dev.deb ;;
esac
"""
DPKG = """#!/bin/sh
echo "dpkg-deb $1 ${2##*/} $3" >>"$LOG"
mkdir -p "$3/usr/include/toml++" "$3/usr/include/CLI"
: >"$3/usr/include/toml++/toml.h"; : >"$3/usr/include/CLI/CLI.hpp"
"""
PIP = '#!/bin/sh\necho "python3 $*" >>"$LOG"\n'
CMAKE = "#!/bin/sh\necho cmake version 3.31.0\n"


def contained():
    """Whether such a container can be made here."""
    return shutil.which("bwrap") and subprocess.run([*INSIDE, "true"], capture_output=True, check=False).returncode == 0


class Run(unittest.TestCase):
    def run_it(self, *words):
        return subprocess.run([ROOT / "scripts/run.sh", *words], capture_output=True, text=True, check=False)

    def test_a_word_is_refused_before_anything_is_built(self):
        ended = self.run_it("dev")
        self.assertEqual((ended.returncode, ended.stdout), (64, ""))
        self.assertIn("takes no arguments", ended.stderr)

    def test_help_is_no_error(self):
        for word in "-h", "--help":
            ended = self.run_it(word)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn("build/release", ended.stdout)


class Setup(unittest.TestCase):
    def setUp(self):
        if not contained():
            print("SKIPPED: bubblewrap can make no container here")
            self.skipTest("bubblewrap can make no container here")
        self.folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "bin").mkdir()
        for tool in TOOLS:
            if found := shutil.which(tool, path="/usr/bin:/bin"):
                (self.folder / "bin" / tool).symlink_to(found)
        self.script("bin/apt-get", APT)
        self.script("bin/dpkg-deb", DPKG)
        self.script("build/tools/bin/python3", PIP)
        self.script("build/tools/bin/cmake", CMAKE)

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def setup(self, **variables):
        """What it said, how it ended, and what it called."""
        log = self.folder / "log"
        log.write_text("")
        environment = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), "LOG": str(log), **variables}
        ended = subprocess.run([shutil.which("bwrap"), *INSIDE[1:], "bash", ROOT / "scripts/setup.sh"], cwd=self.folder,
                               env=environment, capture_output=True, text=True, check=False)  # fmt: skip
        return ended.returncode, ended.stdout + ended.stderr, log.read_text()

    def test_headers_come_from_debians_packages_and_the_rest_from_the_index(self):
        status, said, called = self.setup()
        self.assertEqual(status, 0, said)
        self.assertRegex(called, r"apt-get .*download libtomlplusplus-dev libcli11-dev\n")
        self.assertIn(f"dpkg-deb -x libcli11-dev.deb {self.folder}/build/tools/root", called)
        self.assertRegex(called, r"python3 -m pip install .*ninja.*nlohmann-json")
        self.assertIn("ziglang", called)
        self.assertNotIn("update", called)
        self.assertFalse((self.folder / "build/tools/debian").exists())

    def test_a_second_time_nothing_is_fetched(self):
        self.setup()
        status, said, called = self.setup()
        self.assertEqual((status, called), (0, ""), said)

    def test_without_lists_it_reads_some_of_its_own(self):
        status, said, called = self.setup(NO_LISTS="1")
        self.assertEqual(status, 0, said)
        update = next(line for line in called.splitlines() if line.endswith(" update"))
        self.assertIn("Dir::State::lists=" + str(self.folder), update)

    def test_what_can_not_be_had_is_said(self):
        status, said, called = self.setup(NO_ARCHIVE="1")
        self.assertEqual(status, 1)
        self.assertIn("CMAKE_INCLUDE_PATH", said)
        self.assertIn("apt-get install -y --no-install-recommends", said)
        self.assertNotIn("-m pip ", called)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
