#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries limits that a process sets for itself, on fake GPUs: slice_test.py SOURCE BIN."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "python"))
for name in [name for name in os.environ if name.startswith(("CUSLICE_", "CUDA_"))]:
    del os.environ[name]
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
import cuslice  # noqa: E402
from cuslice._bars import bars  # noqa: E402
from cuslice._size import bytes_of, text_of  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
START = f"""
import json, os, sys, threading
sys.dont_write_bytecode = True
sys.path[:0] = {[str(SOURCE / "python"), str(SOURCE / "tests/python")]}
import cuslice, grow
MIB, GIB = 1 << 20, 1 << 30
def limits(): return [one.limit // MIB for one in cuslice.own_slices()]
"""
CAPTURED = {"capture_output": True, "text": True, "input": ""}


class Sliced(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.environ["CUSLICE_FAKE_DIR"] = self.folder
        os.environ["HOME"] = self.folder

    def python(self, code, **options):
        """What a program in a slice prints, as JSON, and its stderr."""
        done = cuslice.run([sys.executable, "-c", START + code], **CAPTURED, **{"fake": "1xt4", **options})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr


class Slices(Sliced):
    def test_a_call_holds_from_then_on_and_a_block_within(self):
        code = """
cuslice.slice("1GiB")
seen = [grow.take(1200), grow.take(300), limits()]
with cuslice.slice("512MiB"):
    seen += [limits(), grow.take(200)]
seen += [limits(), grow.take(200)]
cuslice.slice("2GiB")
seen += [limits(), grow.take(600)]
cuslice.slice("100GiB")
print(json.dumps(seen + [limits()]))
"""
        found, said = self.python(code, limit="3GiB")
        self.assertEqual(found, [2, 0, [1024], [512], 2, [1024], 0, [2048], 0, [3072]])
        self.assertIn("The limit is from the program itself (cuslice_set_slice)", said)

    def test_the_fakes_accounting_never_has_more(self):
        code = """
cuslice.slice("1GiB")
while grow.take(50) == 0: pass
print(json.dumps(cuslice.own_slices()[0].used))
sys.stdin.read()
"""
        with cuslice.FakeMachine("1xt4") as machine:
            command = [sys.executable, "-c", START + code]
            process = machine.popen(command, limit="3GiB", stdin=-1, stdout=-1, stderr=-3, text=True)
            used = int(process.stdout.readline())
            self.assertEqual(machine.held(pid=process.pid), used)
            self.assertTrue(900 * MIB < used <= GIB)
            process.communicate("")
            self.assertLessEqual(machine.peak(), GIB)

    def test_blocks_that_threads_leave_in_any_order_take_their_own_limit_with_them(self):
        code = """
grow.take(1)
entered, leave, seen = threading.Barrier(3), [threading.Event(), threading.Event()], []
def hold(index, size):
    with cuslice.slice(size):
        entered.wait()
        leave[index].wait()
threads = [threading.Thread(target=hold, args=one) for one in ((0, "2GiB"), (1, "1GiB"))]
for one in threads: one.start()
entered.wait()
seen.append(limits())
for index in (0, 1):
    leave[index].set()
    threads[index].join()
    seen.append(limits())
# In a thread that has called nothing of cuslice's.
cuslice.slice("512MiB")
taken = threading.Thread(target=lambda: seen.append(grow.take(600)))
taken.start(); taken.join()
print(json.dumps(seen))
"""
        self.assertEqual(self.python(code, limit="3GiB")[0], [[1024], [1024], [3072], 2])

    def test_functions_of_each_kind_are_limited_while_they_run(self):
        code = """
import asyncio
grow.take(1)
seen = []
@cuslice.slice("1GiB")
def plain(x): "doc"; seen.append(limits()); return x
@cuslice.slice("1GiB")
def steps():
    yield limits()
@cuslice.slice("1GiB")
async def later():
    await asyncio.sleep(0); return limits()
seen += [limits(), plain(x=5), plain.__doc__, limits(), list(steps()), asyncio.run(later()), limits()]
try:
    @cuslice.slice("1GiB")
    async def stream(): yield 1
except TypeError as error: seen.append("asynchronous generator" in str(error))
@cuslice.slice("1GiB")
def fails(): raise KeyError
try: fails()
except KeyError: seen.append(limits())
print(json.dumps(seen))
"""
        all_of_it, less = [2048], [1024]
        expected = [less, all_of_it, 5, "doc", all_of_it, [less], less, all_of_it, True, all_of_it]
        self.assertEqual(self.python(code, limit="2GiB")[0], expected)

    def test_a_forked_child_has_the_limit_of_that_moment_and_its_own_from_then_on(self):
        code = """
cuslice.slice("1GiB")
read, write = os.pipe()
held = threading.Event()
def lock():  # another thread is in the middle of it
    cuslice._slice._in_effect._lock.acquire(); held.set()
threading.Thread(target=lock).start(); held.wait()
if os.fork() == 0:
    grow.take(1)
    before = limits()
    cuslice.slice("512MiB")
    os.write(write, json.dumps([before, limits()]).encode()); os._exit(0)
print(os.read(read, 99).decode())
os._exit(0 if sys.stdout.flush() is None else 1)
"""
        self.assertEqual(self.python(code, limit="3GiB")[0], [[1024], [512]])

    def test_one_gpu_of_several_or_one_partition_alone(self):
        code = 'grow.take(1); cuslice.slice("1GiB", gpu=1); print(json.dumps(limits()))'
        self.assertEqual(self.python(code, fake="2xt4", limit="3GiB")[0], [3072, 1024])
        self.assertEqual(self.python(code, split="0=2GiB+2GiB")[0], [2048, 1024])
        # The latest call for a GPU counts, for all of them or for one.
        code = """
grow.take(1); seen = []
for arguments in (("1GiB",), ("2GiB", 0), ("512MiB", 1), ("1GiB",)):
    cuslice.slice(*arguments); seen.append(limits())
with cuslice.slice("2GiB", 0), cuslice.slice("512MiB", 0): seen.append(limits())
print(json.dumps(seen + [limits()]))
"""
        expected = [[1024, 1024], [2048, 1024], [2048, 512], [1024, 1024], [512, 1024], [1024, 1024]]
        self.assertEqual(self.python(code, fake="2xt4", limit="3GiB")[0], expected)

    def test_without_a_limit_of_its_own_it_has_to_be_said_before_cuda_starts(self):
        code = """
seen = []
if {before}: cuslice.slice("1GiB")
grow.take(1)
try: cuslice.slice("512MiB"); seen.append(limits())
except RuntimeError as error: seen.append(str(error).partition(",")[0])
print(json.dumps(seen + [limits()]))
"""
        self.assertEqual(self.python(code.replace("{before}", "1"))[0], [[512], [512]])
        self.assertEqual(self.python(code.replace("{before}", "0"))[0], ["nothing is counted on any GPU", []])

    def test_mistakes_are_named_and_change_nothing(self):
        code = """
grow.take(1); cuslice.slice("1GiB"); seen = []
for arguments in (["4"], ["4 GiB"], ["-1GiB"], ["4X"], [0], [-5], [1.5], [True], ["1GiB", 7], ["1GiB", -1], ["1GiB", "0"],
                  ["0.000000000001GiB"], [1 << 63]):
    try: cuslice.slice(*arguments); seen.append("nothing")
    except (TypeError, ValueError) as error: seen.append(type(error).__name__)
print(json.dumps([seen, limits()]))
"""
        text, number = "ValueError", "TypeError"
        expected = [text] * 4 + [text, text, number, number, text, text, number, text, text]
        self.assertEqual(self.python(code, limit="2GiB")[0], [expected, [1024]])

    def test_outside_of_cuslice_one_error_says_what_to_do(self):
        for call in (lambda: cuslice.slice("1GiB"), cuslice.own_slices):
            with self.assertRaisesRegex(cuslice.NotPreloadedError, "cuslice run -- python .*cuslice.ensure"):
                call()
        self.assertFalse(cuslice.is_preloaded())

    def test_rows_and_the_picture_of_what_is_held(self):
        code = """
import dataclasses
grow.take(400)
rows = cuslice.own_slices()
print(json.dumps([[dataclasses.asdict(one) for one in rows], repr(rows), rows._repr_html_()]))
"""
        rows, text, picture = self.python(code, limit="1GiB")[0]
        self.assertEqual(rows, [{"device": 0, "limit": GIB, "used": 504 * MIB, "driver": 104 * MIB, "refused": 0}])
        self.assertEqual(text, "GPU 0: 504.0 MiB of 1.0 GiB")
        self.assertIn('aria-label="GPU 0: 504.0 MiB of 1.0 GiB"', picture)
        self.assertIn('width="158"', picture)
        self.assertEqual(bars([]), "")
        self.assertIn("&lt;x&gt;", bars([("<x>", 1, 0)]))

    def test_sizes_are_read_as_the_settings_read_them(self):
        for text in ("4GiB", "512mib", "1.5G", "0.25Ti", "3000MB", "7.000000001GB", "2Ki", "9K"):
            asked = cuslice._launcher.ask(["config", f"--headroom={text}", "--json"])
            said = next(row for row in asked["settings"] if row["key"] == "headroom")
            self.assertEqual(bytes_of(text, "size"), bytes_of(f"{said['value']}", "size"), text)
        self.assertEqual([text_of(size) for size in (0, 1023, 1024, 5 << 29)], ["0 B", "1023 B", "1.0 KiB", "2.5 GiB"])


class Ensure(Sliced):
    def script(self, text, *words, before=(), stdin="", **environment):
        path = pathlib.Path(self.folder, "script.py")
        path.write_text(START + text)
        command = [sys.executable, *before, str(path), *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env={**os.environ, **environment}, cwd=self.folder
        )

    def test_a_script_is_started_anew_with_its_words_and_its_id_and_once(self):
        code = """
print("started", os.getpid())
cuslice.ensure(fake="1xt4", limit="1GiB")
cuslice.ensure(limit="5GiB")
print(json.dumps([sys.argv[1:], sys.flags.dev_mode, grow.take(1200), grow.take(100), limits(), sys.stdin.read()]))
"""
        done = self.script(code, "a b", "--c", before=["-X", "dev"], stdin="typed")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second, rest = done.stdout.splitlines()
        self.assertEqual(first, second)
        self.assertEqual(json.loads(rest), [["a b", "--c"], True, 2, 0, [1024], "typed"])

    def test_where_it_would_go_wrong_it_is_refused_by_name(self):
        code = """
import ctypes, multiprocessing
def try_it(*_):
    try: cuslice.ensure(limit="1GiB")
    except cuslice.CannotRestartError as error: print(str(error).partition("cuslice: ")[2].partition(":")[0], flush=True)
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=try_it); process.start(); process.join()
    thread = threading.Thread(target=try_it); thread.start(); thread.join()
    ctypes.CDLL(sys.argv[1]); try_it()
    import builtins; builtins.__IPYTHON__ = True; try_it()
"""
        driver = str(BIN.parent / "lib/cuslice/fake/libcuda.so.1")
        done = self.script(code, driver)
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "a worker",
                "another thread than the main one called it",
                "CUDA's driver is loaded already",
                "a notebook or IPython session",
            ],
            done.stderr,
        )
        text = START + "cuslice.ensure()\n"
        for words in ([], ["-"]):
            done = subprocess.run([sys.executable, *words], input=text, capture_output=True, text=True, cwd=self.folder)
            self.assertIn("its script came from standard input", done.stderr)
        self.assertIn("an interactive session", self.script("cuslice.ensure()", before=["-i"]).stderr)

    def test_a_process_that_was_started_anew_is_not_started_again(self):
        code = """
os.environ["PYTHON_CUSLICE_STARTED"] = str(os.getpid())
cuslice.ensure(limit="1GiB")
"""
        done = self.script(code)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cuslice doctor", done.stderr)

    def test_a_wrong_setting_is_an_error_of_the_launchers_and_a_wrong_name_is_pythons(self):
        done = self.script('cuslice.ensure(limit="4X")')
        self.assertEqual(done.returncode, 78)
        self.assertIn("--limit: 4X", done.stderr)
        self.assertIn("TypeError", self.script('cuslice.ensure(limt="4GiB")').stderr)


class Notebooks(Sliced):
    def test_the_magic_limits_a_session_or_a_cell_and_shows_what_is_held(self):
        code = """
class Result:
    def raise_error(self): pass
class Shell:
    def register_magic_function(self, function, magic_kind, magic_name): self.magic = function
    def run_cell(self, cell): seen.append([cell, limits()]); return Result()
seen, shell = [], Shell()
cuslice.load_ipython_extension(shell)
grow.take(100)
seen.append(repr(shell.magic("")))
seen.append(repr(shell.magic("1GiB")))
shell.magic("512MiB 0", "train()")
seen.append(limits())
for line in ("1GiB x", "1 2 3", ""):
    try: shell.magic(line, "cell"); seen.append("nothing")
    except ValueError as error: seen.append(str(error)[:6])
print(json.dumps(seen))
"""
        found = self.python(code, limit="2GiB")[0]
        held = "GPU 0: 204.0 MiB of "
        self.assertEqual(found[:4], [held + "2.0 GiB", held + "1.0 GiB", ["train()", [512]], [1024]])
        self.assertEqual(found[4:], ["usage:"] * 3)

    def install(self, *words, code=0):
        done = subprocess.run([cuslice.launcher(), "jupyter", "install", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_kernel_is_installed_that_starts_in_its_slice(self):
        data = os.path.join(self.folder, "data")
        os.environ["JUPYTER_DATA_DIR"] = data
        self.addCleanup(os.environ.pop, "JUPYTER_DATA_DIR")
        # An environment's own interpreter, and not the one that it links to.
        python = os.path.join(self.folder, "python")
        os.symlink(sys.executable, python)
        done = self.install("--limit", "4GiB", "--python", python)
        place = pathlib.Path(data, "kernels/cuslice-limit-4gib")
        self.assertEqual(done.stdout, f"kernel cuslice-limit-4gib: {place}\n")
        kernel = json.loads((place / "kernel.json").read_text())
        self.assertEqual([file.name for file in place.iterdir()], ["kernel.json"])
        self.assertEqual(kernel["argv"][1:4], ["run", "--limit=4GiB", "--"])
        self.assertEqual(kernel["argv"][4:], [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"])
        self.assertEqual(kernel["display_name"], "Python 3 (cuslice --limit=4GiB)")
        # Anew, elsewhere, and by another name.
        words = ["--prefix", self.folder, "--name", "small", "--display-name", "Small", "--limit=0=1GiB,1=2GiB"]
        self.install(*words, "--summary")
        self.install(*words)
        kernel = json.loads(pathlib.Path(self.folder, "share/jupyter/kernels/small/kernel.json").read_text())
        self.assertEqual((kernel["argv"][1:4], kernel["display_name"]), (["run", "--limit=0=1GiB,1=2GiB", "--"], "Small"))
        self.assertTrue(os.path.isabs(kernel["argv"][4]))
        # As Jupyter starts it: the interpreter runs in the slice.
        command = [*json.loads((place / "kernel.json").read_text())["argv"][:5], "-c", START + "print(limits() == [])"]
        self.assertEqual(subprocess.run(command, capture_output=True, text=True).stdout, "True\n")

    def test_an_interpreter_without_ipykernel_is_named(self):
        python = pathlib.Path(self.folder, "python")
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)
        words = ["--prefix", self.folder, "--limit", "1GiB", "--python", str(python)]
        self.assertIn(f"{python} -m pip install ipykernel", self.install(*words).stderr)
        python.write_text("#!/bin/sh\nexit 0\n")
        self.assertEqual(self.install(*words).stderr, "")

    def test_a_kernel_that_could_not_start_is_not_installed(self):
        os.environ["JUPYTER_DATA_DIR"] = self.folder
        self.addCleanup(os.environ.pop, "JUPYTER_DATA_DIR")
        for words, code, said in (
            (["--limit", "4X"], 78, "--limit: 4X"),
            (["--fake", "2xt9"], 78, "there is no profile 't9'"),
            (["4GiB"], 64, "takes options only"),
            (["--limit", "4GiB", "--", "python"], 64, "takes options only"),
            (["--limit=4GiB", "--name", "a/b"], 64, "letters, digits"),
            (["--limit=4GiB", "--python", "no-such-python"], 127, "no-such-python"),
        ):
            self.assertIn(said, self.install(*words, code=code).stderr)
        self.assertFalse(pathlib.Path(self.folder, "kernels").exists())
        os.environ["JUPYTER_DATA_DIR"] = "/proc/1"
        self.assertIn("cannot be made", self.install("--limit", "1GiB", code=73).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
