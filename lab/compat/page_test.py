# SPDX-License-Identifier: Apache-2.0
"""docs/results/compatibility/packages.md is what the runs of page_runs.json make of it, and nothing else; what
page_text.py calls a success is one; and what scripts/compat.sh --page accepts."""

import copy
import json
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import page
import page_runs
import page_text
from page_packages import PACKAGES, named

MEMORY, SHOWS = named("numba"), named("nvitop")
RUN = {
    "status": 0,
    "told": [
        {"gpus": [{"name": "Tesla T4", "total": 2048}]},
        {"device": 0, "got": 1928, "error": "OutOfMemory: no", "oom": True},
        {"device": 0, "again": 960},
    ],
    "held": 2024,
    "said": [],
    "seconds": 1,
}
SHOWN = copy.deepcopy(RUN)
SHOWN["told"][1:] = [{"device": 0, "shown": 2024, "holds": 1920, "listed": True}]


def changed(run, line=None, told=None, **more):
    """A run with other words: `told` of line `line`, or of the run."""
    other = copy.deepcopy(run)
    if line is not None:
        other["told"][line] |= told
    return other | more


def words(run, package=MEMORY, mode="limit"):
    return page_text.cell(package, {"version": "1", "modes": {mode: run}}, mode)


class Cells(unittest.TestCase):
    def test_a_success_is_told_with_its_figures(self):
        self.assertEqual(words(RUN), "refused at the limit: 1928 of 2048 MiB")
        self.assertEqual(words(SHOWN, SHOWS), "ok: shows 2024 of 2048 MiB, and the process")

    def test_anything_else_fails_by_what_it_was(self):
        whole = {"gpus": [{"name": "Tesla T4", "total": 4096}]}
        for run, said in (
            (changed(RUN, held=2049), "2049 MiB were held, of 2048"),
            (changed(RUN, 0, whole), "4096 MiB are shown, not 2048"),
            (changed(RUN, 0, {"gpus": []}), "0 GPUs are shown, not 1"),
            (changed(RUN, 1, {"oom": False}), "after 1928 MiB: OutOfMemory: no"),
            (changed(RUN, 1, {"oom": False, "error": ""}), "it was never refused"),
            (changed(RUN, 1, {"got": 512}), "was refused after 512 of 2048 MiB"),
            (changed(RUN, status=-11), "ended by signal 11"),
            (changed(RUN, status=139), "ended by signal 11"),
            (changed(RUN, status=3), "ended with exit code 3"),
            (changed(RUN, status="late"), "did not come to its end in time"),
            (RUN | {"status": 1, "told": [{"failed": "RuntimeError: no"}]}, "RuntimeError: no"),
            (RUN | {"told": RUN["told"][:1]}, "0 of 1 GPUs were filled"),
            (RUN | {"told": RUN["told"][:2]}, "got nothing any more after all was given back"),
        ):
            with self.subTest(said):
                self.assertTrue(words(run).startswith("**fails**: "), words(run))
                self.assertIn(said, words(run))

    def test_a_package_with_nvidias_runtime_is_told_apart(self):
        said = ["cuslice fake GPU: …/runtime.so carries NVIDIA's own CUDA runtime, which needs a GPU; see docs/fake-gpu.md"]
        run = changed(RUN, 1, {"oom": False}, said=said)
        self.assertEqual(words(run), "**fails**: it carries NVIDIA's own CUDA runtime, which needs a GPU")
        self.assertEqual(words(RUN | {"said": said}), words(RUN))

    def test_what_only_shows_memory_has_to_show_use_and_process(self):
        for told, said in (
            ({"shown": 1000}, "are shown as used, where a process holds 1920"),
            ({"shown": 4000}, "4000 MiB are shown as used"),
            ({"listed": False}, "is not listed"),
        ):
            self.assertIn(said, words(changed(SHOWN, 1, told), SHOWS))

    def test_what_was_not_run_or_not_to_be_had_says_so(self):
        self.assertEqual(page_text.cell(MEMORY, None, "fake"), "not run")
        self.assertEqual(page_text.cell(MEMORY, {"missing": "there is none"}, "fake"), "–")


class Held(unittest.TestCase):
    def test_it_is_the_most_of_one_process(self):
        rows = [
            {"gpu": 0, "pid": 7, "peak": 900 << 20},
            {"gpu": 1, "pid": 7, "peak": 200 << 20},
            {"gpu": 0, "pid": 8, "peak": 1000 << 20},
        ]
        self.assertEqual(page_runs.held('[Taichi] a line\n{"gpus": []}\n[\n' + json.dumps(rows)[1:]), 1100)
        self.assertEqual(page_runs.held("nothing"), 0)


class Page(unittest.TestCase):
    def test_it_is_what_the_runs_say(self):
        self.assertEqual(page.PAGE.read_text(), page_text.page(page.read()))

    def test_it_has_a_row_for_every_package_and_a_column_for_every_mode(self):
        text = page.PAGE.read_text()
        self.assertEqual(list(page_runs.MODES), ["fake", "limit", "growth", "split"])
        for package in PACKAGES:
            self.assertEqual(text.count(f"| [{package.name}]("), 1, package.name)
            self.assertTrue((page_runs.HERE / "fill" / package.program).is_file(), package.program)

    def test_it_names_what_was_not_run(self):
        runs = page.read()
        runs.pop("numba", None)
        self.assertRegex(page_text.page(runs), r"\*\*Not run\*\*: [^.]*numba")

    def test_nothing_of_this_machine_is_in_it(self):
        self.assertNotRegex(page.RUNS.read_text() + page.PAGE.read_text(), r"/(root|tmp|work|home)/")


class Arguments(unittest.TestCase):
    def test_an_unknown_package_is_refused_before_anything_is_built(self):
        script = pathlib.Path(page_runs.HERE.parents[1], "scripts/compat.sh")
        ended = subprocess.run([script, "--page", "numba", "nosuch"], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 64)
        self.assertIn("there is no nosuch on that page", ended.stderr)
        self.assertEqual(ended.stdout, "")


unittest.main(argv=sys.argv[:1])
