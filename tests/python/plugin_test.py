#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the pytest plugin: pytest runs small test files as users write them, on the fake GPUs of a build.

  plugin_test.py SOURCE BIN

Needs a Python with pytest and pytest-xdist, which scripts/setup.sh puts into build/pytest; 77, skipped, without one.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PROJECT = (SOURCE / "pyproject.toml").read_text()
ENTRY_POINT = re.search(r'^\[project\.entry-points\.pytest11\]\ncuslice = "(.+)"$', PROJECT, re.M)[1]

# One worker's memory would not fit beside another's.
FULL = """
import os, sys
import grow, pytest

@pytest.mark.parametrize("n", range(4))
def test_most_of_the_gpu(n, fake_gpus):
    assert grow.take(9000) == 0
    assert fake_gpus.held(0, os.getpid()) == 9104 << 20
    assert fake_gpus.held(1) == 0
    assert grow.reset() == 0
    assert fake_gpus.held() == 0
"""
OWN = """
import subprocess, sys
import grow, pytest

PROGRAM = [sys.executable, grow.__file__, "600"]

def run(machine):
    return machine.run(PROGRAM, input="", capture_output=True, text=True).stdout

def test_a_failure_is_injected(fake_machine):
    fake_machine.fail("cuMemAlloc_v2", 1)
    assert run(fake_machine) == "2\\n"
    assert fake_machine.held() == 0

def test_nothing_is_left_of_another_test(fake_machine):
    assert fake_machine.peak() == 0
    assert run(fake_machine) == "0\\n"
    assert fake_machine.peak(0) == 704 << 20
    assert fake_machine.unfreed() == 600 << 20

@pytest.mark.fake_gpus("2xlaptop-2g")
def test_other_gpus(fake_machine):
    assert fake_machine.gpus == "2xlaptop-2g"
    assert run(fake_machine) == "0\\n"
    assert fake_machine.peak() == 900 << 20
"""
EARLY = """
import ctypes, sys
# Before any test, and even at the import of conftest.py.
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
print("conftest was here")
"""

OUT_OF_MEMORY = """
import grow, pytest

def test_the_second_allocation_fails(fake_gpus):
    fake_gpus.fail("cuMemAlloc", 2)
    assert [grow.take(1) for _ in range(3)] == [0, 2, 0]

def test_it_ends_with_its_test(fake_gpus):
    assert grow.take(1) == 0
    fake_gpus.fail("cuMemAlloc", result="CUDA_ERROR_UNKNOWN")
    fake_gpus.fail("cuMemFree", optional=True)
    assert grow.take(1) == 999
    fake_gpus.clear_failures()
    assert grow.take(1) == 0

def test_a_lost_device_would_stay_lost(fake_gpus):
    with pytest.raises(RuntimeError, match="stays lost"):
        fake_gpus.lose(0, 1)
"""
NEVER = """
import subprocess, sys
import cuslice, grow, pytest

PROGRAM = [sys.executable, grow.__file__, "600"]

def test_own_process(fake_gpus):
    fake_gpus.fail("cuMemAlloc", 3)
    assert grow.take(1) == 0

def test_own_process_cleared(fake_gpus):
    fake_gpus.fail("cuMemAlloc", 3)
    fake_gpus.clear_failures()

def test_child_of_the_own_machine(fake_gpus):
    fake_gpus.fail("cuMemFree")
    assert fake_gpus.run(PROGRAM, input="", capture_output=True, text=True).stdout == "0\\n"

def test_child(fake_machine):
    fake_machine.fail("cuMemAlloc", 2)
    fake_machine.run(PROGRAM, input="", capture_output=True)

def test_closed(fake_machine):
    fake_machine.fail("cuMemAlloc", 2)
    fake_machine.close()

def test_with_block():
    with cuslice.FakeMachine() as machine:
        machine.fail("cuMemAlloc", 2)

@pytest.mark.xfail(strict=True)
def test_expected(fake_machine):
    fake_machine.fail("cuMemAlloc", 2)

def test_other_error(fake_machine):
    fake_machine.fail("cuMemAlloc", 2)
    raise KeyError("another error")

def test_nothing_of_the_others_is_left(fake_gpus):
    assert grow.take(1) == 0
    fake_gpus.fail("cuMemAlloc", 1)
    assert grow.take(1) == 2

def test_child_of_the_own_machine_that_fails(fake_gpus):
    fake_gpus.fail("cuMemAlloc")
    assert fake_gpus.run(PROGRAM, input="", capture_output=True, text=True).stdout == "2\\n"
"""
GPU_MEMORY = """
import cuslice, grow, pytest, unittest

@pytest.mark.gpu_memory("600MiB")
def test_takes_less():
    assert grow.take(300) == 0

@pytest.mark.gpu_memory("600MiB")
def test_takes_as_much_again_on_top():
    assert grow.take(300) == 0

@pytest.mark.gpu_memory("600MiB")
def test_takes_more_and_goes_on():
    assert grow.take(700) == 2

@pytest.mark.gpu_memory("600MiB")
def test_takes_more_and_fails_by_it():
    assert grow.take(700) == 0

def test_without_the_marker():
    assert grow.take(700) == 0

@pytest.mark.gpu_memory("100MiB")
@pytest.mark.xfail(strict=True)
def test_expected():
    grow.take(200)

@pytest.mark.gpu_memory("4X")
def test_no_size(): pass

@pytest.mark.gpu_memory()
def test_no_argument(): pass

class TestOld(unittest.TestCase):
    @pytest.mark.gpu_memory("1GiB")
    def test_of_unittest(self): pass
"""
COVERED = """
import helper
def test_covered(fake_gpus):
    assert helper.double(2) == 4
"""

INNER = """
import subprocess, sys
def test_inner():
    inner = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_full.py"]
    assert subprocess.run(inner).returncode == 0
"""
PLAIN = """
import os
def test_plain():
    assert "LD_PRELOAD" not in os.environ and "CUSLICE_FAKE" not in os.environ
"""


class Plugin(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, True)
        # As pip would have installed it, but for the files.
        info = self.folder / "site/cuslice-1.2.3.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cuslice\nVersion: 1.2.3\n")
        (info / "entry_points.txt").write_text(f"[pytest11]\ncuslice = {ENTRY_POINT}\n")
        (self.folder / "tests").mkdir()
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("CUSLICE_", "CUDA_", "PYTEST_"))
        }
        self.environment.update(
            PATH=f"{BIN}:{os.environ['PATH']}",
            PYTHONPATH=":".join(map(str, (self.folder / "site", SOURCE / "python", SOURCE / "tests/python"))),
            PYTHONDONTWRITEBYTECODE="1",
            CUSLICE_FAKE_DIR=str(self.folder / "machines"),
            HOME=str(self.folder),
        )

    def run_in_tests(self, *words):
        """What a command prints, which has to end well."""
        done = subprocess.run(
            words,
            cwd=self.folder / "tests",
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def pytest(self, *words, code=0, script=False, **files):
        for name, text in files.items():
            (self.folder / "tests" / f"{name}.py").write_text(text)
        start = [os.path.join(os.path.dirname(PYTHON), "pytest")] if script else [PYTHON, "-m", "pytest"]
        done = subprocess.run(
            [*start, "-p", "no:cacheprovider", "-q", *words],
            cwd=self.folder / "tests",
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def test_tests_run_on_the_fake_gpus_that_are_asked_for(self):
        for words in ([], ["-n", "3"]):
            said = self.pytest("--fake-gpus", "2xt4", *words, test_full=FULL)
            self.assertIn("4 passed", said)
            self.assertEqual(said.count(" passed"), 1)

    def test_pytest_is_started_anew_before_anything_else_and_with_its_output(self):
        said = self.pytest("--fake-gpus=2xt4", "-s", "-k", "0", script=True, conftest=EARLY, test_full=FULL)
        self.assertEqual(said.count("conftest was here"), 1)
        self.assertIn("1 passed, 3 deselected", said)

    def test_the_option_may_stand_in_a_file_and_an_inner_pytest_has_a_machine_of_its_own(self):
        (self.folder / "tests/pytest.ini").write_text("[pytest]\naddopts = --fake-gpus=2xt4\n")
        self.assertIn("5 passed", self.pytest(test_a_inner=INNER, test_full=FULL))

    def test_calls_of_the_tests_own_process_fail_on_demand(self):
        self.assertIn("3 passed", self.pytest("--fake-gpus", "1xt4", test_here=OUT_OF_MEMORY))
        # In whatever order: nothing is left for the next test.
        for name in ("it_ends", "second"):
            self.assertIn("1 passed", self.pytest("--fake-gpus", "1xt4", "-k", name, test_here=OUT_OF_MEMORY))

    def test_a_failure_that_was_asked_for_and_never_happened_fails_the_test(self):
        for words in ([], ["-n", "2"]):
            said = self.pytest("--fake-gpus", "1xt4", "-rA", *words, code=1, test_never=NEVER)
            self.assertRegex(said, r"\b7 failed, 2 passed, 1 xfailed\b")
            self.assertNotIn("ERROR", said)
            failed = sorted(set(re.findall(r"FAILED test_never\.py::test_(\w+)", said)))
            self.assertEqual(
                failed,
                ["child", "child_of_the_own_machine", "closed", "other_error", "own_process", "own_process_cleared"]
                + ["with_block"],
            )
            for line in (
                "fail('cuMemAlloc', 3) never happened: call 3 of cuMemAlloc never came",
                "fail('cuMemFree') never happened: no call of cuMemFree came",
            ):
                self.assertIn(f"AssertionError: {line}", said)

    def test_a_test_that_takes_more_memory_than_its_marker_says_fails(self):
        for words in ([], ["-n", "2"]):
            said = self.pytest("--fake-gpus", "1xt4", "-rA", *words, code=1, test_memory=GPU_MEMORY)
            self.assertRegex(said, r"\b5 failed, 3 passed, 1 xfailed\b")
            failed = sorted(set(re.findall(r"FAILED test_memory\.py::(?:TestOld::)?test_(\w+)", said)))
            self.assertEqual(failed, ["no_argument", "no_size", "of_unittest", "takes_more_and_fails_by_it", "takes_more_and_goes_on"])
            self.assertRegex(said, r"GPU 0: the test took more than 600\.0 MiB: 1 request was refused\. The process held")
            self.assertRegex(said, r"\d+\.0 MiB at its end, 104\.0 MiB of these by contexts and modules")
        said = self.pytest("-rA", code=1, test_memory=GPU_MEMORY)
        self.assertIn("NotPreloadedError", said)

    def test_options_of_python_are_kept(self):
        test = "import sys\ndef test_options(fake_gpus):\n    assert sys.flags.optimize == 1 and sys.flags.dev_mode\n"
        (self.folder / "tests/test_options.py").write_text(test)
        done = self.run_in_tests(PYTHON, "-O", "-X", "dev", "-m", "pytest", "-q", "--fake-gpus=1xt4", "test_options.py")
        self.assertIn("1 passed", done)

    def test_a_program_that_calls_pytest_is_not_repeated(self):
        tests = self.folder / "tests"
        (tests / "pytest.ini").write_text("[pytest]\naddopts = -q --fake-gpus=1xt4\n")
        (tests / "test_one.py").write_text("def test_one(fake_gpus):\n    assert fake_gpus.held() == 0\n")
        for arguments in ([], ["test_one.py"]):
            program = f"import pytest, sys; print('was here', flush=True); sys.exit(pytest.main({arguments}))"
            said = self.run_in_tests(PYTHON, "-c", program)
            self.assertEqual((said.count("was here"), said.count("1 passed")), (1, 1))

    def test_coverage_that_is_measured_around_pytest_is_kept(self):
        if subprocess.run([PYTHON, "-c", "import coverage"], stderr=subprocess.DEVNULL).returncode != 0:
            return self.skipTest("coverage is not here: scripts/setup.sh tests")
        tests = self.folder / "tests"
        (tests / "helper.py").write_text("def double(number):\n    return 2 * number\n")
        (tests / "test_covered.py").write_text(COVERED)
        (tests / "start.py").write_text(
            "import pytest, sys\nsys.exit(pytest.main(['-q', '--fake-gpus=1xt4', 'test_covered.py']))\n"
        )
        pytest = ["-q", "--fake-gpus=1xt4", "test_covered.py"]
        for started in (["-m", "pytest", *pytest], ["start.py"]):
            with self.subTest(started):
                (tests / ".coverage").unlink(missing_ok=True)
                said = self.run_in_tests(PYTHON, "-m", "coverage", "run", *started)
                self.assertEqual(said.count("1 passed"), 1)
                report = self.run_in_tests(PYTHON, "-m", "coverage", "report", "--include=helper.py")
                self.assertRegex(report, r"helper\.py +2 +0 +100%")

    def test_without_the_option_nothing_is_changed(self):
        self.assertIn("1 passed, 4 skipped", self.pytest(test_plain=PLAIN, test_full=FULL))

    def test_each_test_has_a_machine_of_its_own(self):
        for words in ([], ["-n", "2"], ["--fake-gpus", "1xt4"]):
            self.assertIn("3 passed", self.pytest(*words, test_own=OWN))
        # Nothing of theirs is left: what pytest itself ran on goes when its last process has ended.
        end = time.monotonic() + 120
        while list((self.folder / "machines").iterdir()) and time.monotonic() < end:
            time.sleep(0.005)
        self.assertEqual(list((self.folder / "machines").iterdir()), [])

    def test_what_can_not_be_had_is_said_in_a_line(self):
        self.assertIn("there is no profile 't5'", self.pytest("--fake-gpus", "1xt5", code=78))
        self.environment["PATH"] = str(self.folder)
        self.assertIn("neither installed with this package nor in PATH", self.pytest("--fake-gpus", "1xt4", code=4))
        program = "import pytest, sys; sys.exit(pytest.main(['--fake-gpus', '1xt4'], plugins=[object()]))"
        done = subprocess.run([PYTHON, "-c", program], env=self.environment, text=True, capture_output=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("cuslice run --fake 1xt4 --fake-machine new", done.stderr)


def python_with_pytest():
    for python in (str(SOURCE / "build/pytest/bin/python3"), sys.executable):
        look = [python, "-c", "import pytest, xdist"]
        if os.access(python, os.X_OK) and subprocess.run(look, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    print("SKIPPED: pytest and pytest-xdist are not here: scripts/setup.sh tests")
    sys.exit(77)


PYTHON = python_with_pytest()
unittest.main(argv=sys.argv[:1])
