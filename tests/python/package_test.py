#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the Python package on fake GPUs, with the launcher of a build: package_test.py SOURCE BIN."""

import ast
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

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "python"))
GROW = str(SOURCE / "tests/python/grow.py")
MIB = 1 << 20
for name in [name for name in os.environ if name.startswith(("CUSLICE_", "CUDA_"))]:
    del os.environ[name]
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
import cuslice  # noqa: E402
from cuslice._run import words_of  # noqa: E402

# The beginning of a program that is handed to Python as a text.
START = f"""
import json, sys
sys.dont_write_bytecode = True
sys.path[:0] = {[str(SOURCE / "python"), str(SOURCE / "tests/python")]}
import cuslice, grow
"""
CAPTURED = {"capture_output": True, "text": True, "input": ""}


def soon(condition):
    """What comes by itself and tells nobody. Who has waited for so long waits for what will not come."""
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.environ["CUSLICE_FAKE_DIR"] = self.folder
        os.environ["HOME"] = self.folder
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def python(self, code, **options):
        """What a program in a slice prints, as JSON, and its stderr."""
        done = cuslice.run([sys.executable, "-c", START + code], **CAPTURED, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_a_program_runs_in_its_slice_and_its_end_is_told(self):
        done = cuslice.run([sys.executable, GROW, "600"], fake="1xt4", limit=512 * MIB + 1, **CAPTURED)
        self.assertEqual((done.returncode, done.stdout), (0, "2\n"))
        self.assertIn("of the 512.0 MiB limit", done.stderr)
        done = cuslice.run(["sh", "-c", "cat; exit 3"], fake="1xt4", capture_output=True, input=b"x")
        self.assertEqual((done.returncode, done.stdout), (3, b"x"))
        # Its descriptors are the program's own: none is added.
        look = "import os; print([n for n in range(3, 300) if os.path.islink(f'/proc/self/fd/{n}')])"
        self.assertEqual(cuslice.run([sys.executable, "-c", look], **CAPTURED).stdout, "[]\n")
        self.assertNotIn("CUSLICE_REPORT", cuslice.run("env", **CAPTURED).stdout)
        with self.assertRaises(subprocess.CalledProcessError):
            cuslice.run("false", check=True)
        with self.assertRaises(subprocess.TimeoutExpired):
            cuslice.run(["sleep", "1000"], timeout=0.01)

    def test_options_are_written_as_on_the_command_line(self):
        self.assertEqual(
            words_of(
                limit={0: 4 << 30, "GPU-5f": "1GiB"},
                fraction={1: 0.25},
                split=4,
                gpus="0-2",
                wait=True,
                record=pathlib.Path("/x.csv"),
                summary=True,
                options=["--per-process"],
            )[1:],
            [
                "run",
                "--limit=0=4194304KiB,GPU-5f=1GiB",
                "--fraction=1=0.250000000",
                "--split=4",
                "--gpus=0-2",
                "--wait=yes",
                "--record=/x.csv",
                "--summary=yes",
                "--per-process",
                "--",
            ],
        )
        for wrong in (1.5, True):
            with self.assertRaises(TypeError):
                words_of(limit=wrong)
        with self.assertRaises(ValueError):
            cuslice.popen("true", shell=True)

    def test_what_was_not_started_raises_with_the_launchers_line(self):
        for code, line, command, options in (
            (78, "--limit: 4x: 'x' is not a unit of size", "true", {"limit": "4x"}),
            (64, "--limt: 3: no such option; did you mean --limit", "true", {"options": ["--limt=3"]}),
            (127, "/nonexistent: No such file or directory", "/nonexistent", {}),
            (126, "/: Is a directory", "/", {}),
        ):
            with self.assertRaises(cuslice.LauncherError) as raised:
                cuslice.run(command, stderr=subprocess.DEVNULL, **options)
            self.assertEqual(raised.exception.returncode, code)
            self.assertIn(line, raised.exception.line)
        # A program's own exit code of that number is its own.
        self.assertEqual(cuslice.run(["sh", "-c", "exit 78"]).returncode, 78)

    def test_a_slice_that_others_hold_is_an_error_of_its_own(self):
        with cuslice.popen(["sleep", "1000"], fake="1xt4", fraction=0.9) as first:
            with self.assertRaisesRegex(cuslice.SliceTakenError, r"Held: pid \d+ \(sleep") as raised:
                cuslice.run("true", fake="1xt4", fraction=0.9, stderr=subprocess.DEVNULL)
            self.assertEqual(raised.exception.returncode, 75)
            first.kill()

    def test_a_process_knows_its_limits_and_what_it_uses(self):
        code = "grow.take(100)\nprint(json.dumps([vars(one) for one in cuslice.limit()]))"
        (first, second), _ = self.python(code, fake="2xt4", limit={0: "1GiB"})
        self.assertEqual((first["device"], first["limit"], first["origin"]), (0, 1 << 30, "--limit"))
        self.assertEqual((first["used"], first["job_used"]), (204 * MIB, 204 * MIB))
        self.assertLess(first["usable"], first["limit"] - 104 * MIB)
        self.assertEqual((second["limit"], second["used"], second["origin"]), (second["total"], None, None))

    def test_what_can_still_be_allocated_is_what_cuda_says_is_free(self):
        code = (
            "import ctypes, os\n"
            "before = cuslice.limit()[0].can_allocate\n"
            "grow.take(100)\n"
            "free, total = ctypes.c_size_t(), ctypes.c_size_t()\n"
            "ctypes.CDLL('libcuda.so.1').cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))\n"
            "print(json.dumps([before, cuslice.limit()[0].can_allocate, free.value]))"
        )
        own = [f"--dir={self.folder}/ledger"]
        for options in (
            {"limit": "4GiB"},
            {"limit": "1GiB", "headroom": "100MiB"},
            {"limit": "1GiB+context"},
            {"limit": "4GiB", "group": "lab", "group_limit": "1GiB"},
        ):
            with self.subTest(options):
                (before, after, free), _ = self.python(code, fake="1xt4", options=own, **options)
                self.assertEqual((before, after), (free + 100 * MIB, free))
        (_, after, free), _ = self.python(code, fake="1xt4", options=own)
        self.assertEqual(after, free)
        (before, after, free), _ = self.python(code, fake="1xt4", limit="4GiB", options=["--per-process"])
        self.assertEqual((before, after), (None, None))

    def test_former_names_of_a_limit_warn(self):
        (gpu,) = (cuslice.GpuLimit(0, "T4", "GPU-1", 9, 8, 7, 6, 5, 4, 3, None),)
        with self.assertWarnsRegex(DeprecationWarning, "can_allocate"):
            self.assertEqual(gpu.free, gpu.gpu_free)
        with self.assertWarnsRegex(DeprecationWarning, "can_allocate"):
            self.assertEqual(gpu.left, gpu.usable)

    def test_the_package_shows_what_is_for_others_alone(self):
        self.assertEqual(dir(cuslice), sorted(cuslice.__all__))
        self.assertFalse([name for name in dir(cuslice) if not hasattr(cuslice, name)])

    def test_gpus_waits_and_paths_are_written_as_people_say_them(self):
        for parameter, value, word in (
            ("gpus", [0, 1], "--gpus=0,1"),
            ("gpus", 1, "--gpus=1"),
            ("gpus", (0, "GPU-5f"), "--gpus=0,GPU-5f"),
            ("gpus", [], "--gpus=none"),
            ("wait", True, "--wait=yes"),
            ("wait", False, "--wait=no"),
            ("wait", 0, "--wait=no"),
            ("wait", 1, "--wait=1000ms"),
            ("wait", 0.0001, "--wait=1ms"),
            ("wait", float("inf"), "--wait=yes"),
            ("wait", "10m", "--wait=10m"),
            ("fake", pathlib.Path("/lab.toml"), "--fake=/lab.toml"),
            ("log", pathlib.Path("/x.log"), "--log=warn:/x.log"),
            ("log", "info", "--log=info"),
            ("record", pathlib.Path("/x.csv"), "--record=/x.csv"),
            ("idle_release", {0: 0.5, "GPU-5f": "2s"}, "--idle-release=0=500ms,GPU-5f=2s"),
            ("share", 0.3, "--share=0.300000000"),
            ("share", {0: 1, 1: "30%"}, "--share=0=1.000000000,1=30%"),
            ("allocator", {1: "growth"}, "--allocator=1=growth"),
            ("per_process", True, "--per-process=yes"),
            ("summary", False, "--summary=no"),
            ("options", [pathlib.Path("--dir=/x")], "--dir=/x"),
        ):
            with self.subTest(parameter=parameter, value=value):
                self.assertEqual(words_of(**{parameter: value})[2], word)
        for parameter, wrong, error in (
            ("gpus", True, TypeError),
            ("gpus", [0.5], TypeError),
            ("wait", -1, ValueError),
            ("wait", float("nan"), ValueError),
            ("wait", [1], TypeError),
            ("idle_release", True, TypeError),
            ("idle_release", float("inf"), ValueError),
            ("summary", 1, TypeError),
            ("options", "--per-process", TypeError),
        ):
            with self.subTest(parameter=parameter, wrong=wrong), self.assertRaisesRegex(error, parameter):
                words_of(**{parameter: wrong})

    def test_a_wait_of_some_time_ends_when_it_has_passed(self):
        with cuslice.popen(["sleep", "1000"], fake="1xt4", fraction=0.9) as first:
            with self.assertRaises(cuslice.SliceTakenError):
                cuslice.run("true", fake="1xt4", fraction=0.9, wait=0.01, stderr=subprocess.DEVNULL)
            first.kill()

    def test_a_name_that_is_none_is_refused_with_the_nearest(self):
        machine = cuslice.FakeMachine()
        self.addCleanup(machine.close)
        for function, name, near in (
            (cuslice.run, "limt", "limit"),
            (cuslice.popen, "fractions", "fraction"),
            (cuslice.run, "timout", "timeout"),
            (cuslice.popen, "std_out", "stdout"),
            (machine.run, "capture_ouput", "capture_output"),
            (machine.popen, "head_room", "headroom"),
        ):
            text = rf"{function.__name__}\(\) has no parameter '{name}'; did you mean '{near}'\?"
            with self.subTest(name), self.assertRaisesRegex(TypeError, text):
                function("true", **{name: "1GiB"})
        with self.assertRaisesRegex(TypeError, "has no parameter 'zzzzz'$"):
            cuslice.run("true", zzzzz=1)
        with self.assertRaisesRegex(TypeError, "no 'fake'"):
            machine.run("true", fake="1xt4")
        with self.assertRaisesRegex(ValueError, "executable is not taken"):
            cuslice.run("true", executable="/bin/false")
        with self.assertRaisesRegex(ValueError, "input and stdin"):
            cuslice.run("true", input="", stdin=subprocess.DEVNULL)
        with self.assertRaisesRegex(ValueError, "capture_output"):
            cuslice.run("true", capture_output=True, stdout=subprocess.DEVNULL)

    def test_a_launcher_that_can_not_answer_says_why(self):
        os.environ["CUSLICE_FAKE"] = "1xt5"
        self.addCleanup(os.environ.pop, "CUSLICE_FAKE")
        with self.assertRaisesRegex(cuslice.LauncherError, "there is no profile 't5'") as raised:
            cuslice.limit()
        self.assertEqual(raised.exception.returncode, 78)

    def test_the_caches_figures_are_the_same_from_inside_and_outside(self):
        self.assertEqual(cuslice.stats(), [])
        code = "grow.take(100)\nprint(cuslice.stats()[0].requested.current, flush=True)\nsys.stdin.read()"
        with cuslice.popen(
            [sys.executable, "-c", START + code],
            fake="1xt4",
            allocator="growth",
            options=[f"--dir={self.folder}/ledger"],
            stdin=-1,
            stdout=-1,
        ) as process:
            self.assertEqual(int(process.stdout.readline()), 100 * MIB)
            os.environ["CUSLICE_DIR"] = f"{self.folder}/ledger"
            self.addCleanup(os.environ.pop, "CUSLICE_DIR")
            (outside,) = cuslice.stats(process.pid)
            self.assertEqual(outside.requested, cuslice.Tally(100 * MIB, 100 * MIB, 100 * MIB, 0))
            self.assertEqual((outside.allocations, outside.ooms, outside.device), (1, 0, None))
            process.communicate(b"")
        with self.assertRaises(cuslice.LauncherError):
            cuslice.stats(process.pid)

    LOGGED = """
import logging, os
records = []
class Keep(logging.Handler):
    def emit(self, record):
        found = [getattr(record, name, None) for name in ("levelname", "gpu", "function")]
        records.append([*found, record.getMessage()])
logging.getLogger("cuslice").addHandler(Keep())
with cuslice.forward_log(interval=1000) as log:
    grow.take(5000)
print(json.dumps([records, os.path.exists(log.path)]))
"""

    def test_refusals_become_records_and_no_lines(self):
        (((level, gpu, function, text),), left), err = self.python(self.LOGGED, fake="1xt4", limit="1GiB")
        self.assertEqual((level, gpu, function, left), ("WARNING", 0, "cuMemAlloc_v2", False))
        self.assertIn("tried to allocate 5000.0 MiB", text)
        self.assertEqual(err, "")

    def test_a_log_that_goes_to_a_file_is_read_there_and_one_that_an_option_names_is_not_overruled(self):
        file = os.path.join(self.folder, "log")
        pathlib.Path(file).write_text("cuslice: an old line\n")
        ((record,), left), _ = self.python(self.LOGGED, fake="1xt4", limit="1GiB", log=f"warn:{file}")
        self.assertEqual((record[1], left), (0, True))
        code = "try: cuslice.forward_log()\nexcept RuntimeError as error: print(json.dumps(str(error)))"
        self.assertIn("--log info", self.python(code, fake="1xt4", log="info")[0])

    def test_a_fake_machine_shows_what_was_held_and_lets_calls_fail(self):
        os.environ["CUSLICE_LIMIT"] = "4x"  # what is set outside still holds, but for what belongs to another machine
        with cuslice.FakeMachine("2xt4") as machine:
            with self.assertRaises(cuslice.LauncherError):
                machine.run("true", stderr=subprocess.DEVNULL)
            del os.environ["CUSLICE_LIMIT"]
            with machine.popen([sys.executable, GROW, "600"], stdin=-1, stdout=-1, text=True) as process:
                self.assertEqual(process.stdout.readline(), "0\n")
                self.assertEqual((machine.held(), machine.held(0), machine.held(1)), (704 * MIB, 704 * MIB, 0))
                self.assertEqual((machine.allocated(pid=process.pid), machine.allocated(pid=1)), (600 * MIB, 0))
                self.assertEqual(machine.unfreed(), 0)
                process.communicate("")
            self.assertEqual((machine.held(), machine.peak(), machine.unfreed()), (0, 704 * MIB, 600 * MIB))
            grow = [sys.executable, GROW, "600"]
            machine.fail("cuMemAlloc_v2", 1)
            self.assertEqual(machine.run(grow, **CAPTURED).stdout, "2\n")
            machine.clear_failures()
            machine.fail("cuMemAlloc_v2", result=999)
            self.assertEqual(machine.run(grow, **CAPTURED).stdout, "999\n")
            machine.clear_failures()
            machine.lose(0, 2)
            machine.delay("*", "1ns")
            self.assertNotEqual(machine.run(grow, **CAPTURED).stdout, "0\n")
            machine.clear_failures()
            self.assertEqual(machine.run(grow, **CAPTURED).stdout, "0\n")
            # A name as in source means the version that programs call; a result may have its name too.
            for result, code in ((2, "2\n"), ("CUDA_ERROR_UNKNOWN", "999\n")):
                machine.fail("cuMemAlloc", result=result)
                self.assertEqual(machine.run(grow, **CAPTURED).stdout, code)
                machine.clear_failures()
            # Another machine's memory is its own.
            with cuslice.FakeMachine("2xt4") as other:
                self.assertEqual((other.held(), other.peak()), (0, 0))
        self.assertFalse(os.path.exists(machine.folder))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_failure_that_never_happened_fails_the_test(self):
        """Each kind of injection, each way by which a test ends with it."""
        kinds = (  # happens in a program that allocates once; never does; what is said
            (("fail", "cuMemAlloc", 1), ("fail", "cuMemAlloc", 2), "call 2 of cuMemAlloc never came"),
            (("fail", "cuMemAlloc_v2"), ("fail", "cuMemFree"), "fail('cuMemFree') never happened: no call of cuMemFree"),
            (("lose", 0, 1), ("lose", 1, 100000), "no program made more than 100000 calls of the driver"),
            (("delay", "*", "1ns"), ("delay", "cuMemFree", "1ns"), "delay('cuMemFree', '1ns') never happened"),
        )
        grow = [sys.executable, GROW, "600"]
        for happens, never, said in kinds:
            with self.subTest(never), cuslice.FakeMachine("2xt4") as machine:
                ask = getattr(machine, happens[0])
                ask(*happens[1:])
                with self.assertRaises(AssertionError):  # no program yet
                    machine.check_failures()
                machine.run(grow, **CAPTURED)
                machine.check_failures()
                ask(*never[1:], optional=True)
                machine.run(grow, **CAPTURED)
                machine.clear_failures()
                ask(*never[1:])
                machine.run(grow, **CAPTURED)
                with self.assertRaisesRegex(AssertionError, re.escape(said)) as caught:
                    machine.clear_failures()
                self.assertNotIn(str(happens), str(caught.exception))
                # Once is enough, and nothing of the past is believed: the same item is new.
                machine.check_failures()
                ask(*happens[1:])
                with self.assertRaises(AssertionError):
                    machine.check_failures()
                machine.run(grow, **CAPTURED)
        with self.assertRaisesRegex(AssertionError, "call 3 of cuMemAlloc never came"):
            with cuslice.FakeMachine() as machine:
                machine.fail("cuMemAlloc", 3)
                machine.run(grow, **CAPTURED)
        # The error that a test fails by is not hidden.
        with self.assertRaises(KeyError), cuslice.FakeMachine() as machine:
            machine.fail("cuMemAlloc", 3)
            raise KeyError

    def test_what_a_fake_machine_does_not_have_is_refused_at_the_call(self):
        with cuslice.FakeMachine("2xt4") as machine:
            for call, error, text in (
                (lambda: machine.fail("cuMemAloc_v2"), ValueError, "did you mean cuMemAlloc_v2"),
                (lambda: machine.fail("cudaMalloc"), ValueError, "the driver's that it calls, cuMemAlloc$"),
                (lambda: machine.fail("cudaNew"), ValueError, "a function of the CUDA runtime"),
                (lambda: machine.fail("cuMemAlloc", 0), ValueError, "call: 0: counted from 1"),
                (lambda: machine.fail("cuMemAlloc", "x"), TypeError, "call: 'x'"),
                (lambda: machine.fail("cuMemAlloc", result=0), ValueError, "is no failure"),
                (lambda: machine.fail("cuMemAlloc", result=-1), ValueError, "result: -1: no CUresult"),
                (lambda: machine.fail("cuMemAlloc", result="OUT"), ValueError, "result: 'OUT': no CUresult"),
                (lambda: machine.lose(2, 1), ValueError, "device: 2: the machine has 2 GPUs"),
                (lambda: machine.lose(0, -1), ValueError, "after: -1"),
                (lambda: machine.delay("cuMemAlloc", "5"), ValueError, "time: '5'"),
                (lambda: machine.delay("cuMemAlloc", "3601s"), ValueError, "at most 3600"),
                (lambda: machine.held(gpu=5), ValueError, "gpu: 5: the machine has 2 GPUs"),
                (lambda: machine.peak("0"), TypeError, "gpu: '0'"),
                (lambda: machine.held(pid=-1), ValueError, "pid: -1"),
            ):
                with self.subTest(text), self.assertRaisesRegex(error, text):
                    call()
            # Nothing of this is left in what programs are told.
            self.assertNotIn("CUSLICE_FAKE_INJECT", machine.environment())
            machine.delay("cuMemAlloc", 0.001, optional=True)
            self.assertEqual(machine.environment()["CUSLICE_FAKE_INJECT"], "delay:cuMemAlloc=1000000ns")
            self.assertIn("2xt4", repr(machine))
        for call in (machine.held, machine.environment, lambda: machine.run("true")):
            with self.assertRaisesRegex(ValueError, "is closed"):
                call()
        for wrong in ("t5", "", "2xt4,", "0xt4", "100xt4", "nowhere/machine.toml"):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "^gpus: "):
                cuslice.FakeMachine(wrong)
        path = pathlib.Path(self.folder, "lab.toml")
        path.write_text('[[gpu]]\nprofile = "t4"\n')
        with cuslice.FakeMachine(path) as machine:
            self.assertEqual(machine.run([sys.executable, GROW, "600"], **CAPTURED).stdout, "0\n")
        self.assertEqual(os.listdir(self.folder), ["lab.toml"])

    def test_a_machine_of_a_process_that_was_killed_is_removed_by_the_next_launcher(self):
        code = START + "machine = cuslice.FakeMachine()\nprint(machine.folder, flush=True)\nsys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
            folder = process.stdout.readline().strip()
            self.assertEqual(os.path.dirname(folder), self.folder)
            cuslice.run("true", fake="1xt4", fake_machine="new")
            self.assertTrue(os.path.isdir(folder))
            process.kill()
        cuslice.run("true", fake="1xt4", fake_machine="new")
        self.assertFalse(os.path.exists(folder))

    def test_numbers_are_free_on_all_gpus_and_come_back_when_their_process_is_killed(self):
        from cuslice._numbers import COUNT, GpuNumbers

        def another(*gpus, until=0):
            """A process that has a number, and all that are below `until`."""
            code = (
                f"from cuslice._numbers import GpuNumbers; numbers = GpuNumbers({self.folder!r})\n"
                f"print(numbers.take({gpus!r}), flush=True)\n"
                f"for number in range({until}): numbers._lock(number)\n"
                "print(flush=True); sys.stdin.read()"
            )
            process = subprocess.Popen([sys.executable, "-c", START + code], stdin=-1, stdout=-1, text=True)
            self.addCleanup(lambda: (process.kill(), process.communicate()))
            number = int(process.stdout.readline())
            process.stdout.readline()
            return process, number

        first, number = another("0")
        self.assertEqual(number, 0)
        self.assertEqual(another("1", "0")[1], 1)
        numbers = GpuNumbers(self.folder)
        self.assertEqual(numbers.take(["1"]), 0)
        self.assertEqual(numbers.take(["0"]), 2)  # and gives 0 of the other one back
        self.assertEqual(another("1")[1], 0)
        first.kill()
        first.wait()
        self.assertEqual(numbers.take(["0"]), 0)
        numbers.give_back()
        self.assertEqual(another("0", "1")[1], 2)
        another("2", until=COUNT - 1)
        self.assertEqual(numbers.take(["3", "2"]), COUNT - 1)
        another("4", until=COUNT)
        with self.assertRaisesRegex(RuntimeError, "64 virtual GPUs of this user are in use on GPU 3,4 already"):
            numbers.take(["3", "4"])

    def test_a_folder_of_numbers_that_others_could_write_is_not_used(self):
        from cuslice._numbers import GpuNumbers

        path = os.path.join(self.folder, f"cuslice-numbers-{os.geteuid()}")
        os.symlink(self.folder, path)
        with self.assertRaisesRegex(RuntimeError, "not a folder of this user's alone"):
            GpuNumbers(self.folder).take(["0"])
        os.remove(path)
        os.mkdir(path)
        os.chmod(path, 0o770)
        with self.assertRaisesRegex(RuntimeError, "not a folder of this user's alone"):
            GpuNumbers(self.folder).take(["0"])

    def test_the_package_is_written_for_python_3_8(self):
        for path in sorted((SOURCE / "python").rglob("*.py")):
            ast.parse(path.read_text(), str(path), feature_version=(3, 8))

    def test_a_new_machine_lasts_as_long_as_a_child_that_inherited_nothing(self):
        code = (
            "import subprocess, sys\n"
            f"child = subprocess.Popen([sys.executable, '-B', {GROW!r}, '100'], stdin=0, stdout=-1, stderr=-3)\n"
            "child.stdout.readline()\n"
            "print(child.pid)"
        )
        read, write = os.pipe()
        try:
            done = cuslice.run(
                [sys.executable, "-c", code], fake="1xt4", fake_machine="new", stdin=read, stdout=-1, text=True
            )
            (machine,) = os.listdir(self.folder)
            live = cuslice.FakeMachine("1xt4", folder=os.path.join(self.folder, machine))
            self.assertEqual(live.held(pid=int(done.stdout)), 204 * MIB)
            # Nor does the next run take it for abandoned.
            cuslice.run("true", fake="1xt4", fake_machine="new")
            self.assertEqual(live.held(), 204 * MIB)
        finally:
            os.close(write)
            os.close(read)
        self.assertTrue(soon(lambda: os.listdir(self.folder) == []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
