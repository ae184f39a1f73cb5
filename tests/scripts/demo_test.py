# SPDX-License-Identifier: Apache-2.0
"""What scripts/run.sh ends with, scripts/demo.py:  demo_test.py BUILD"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
LIMIT = 8192
# A launcher that passes everything on but the limit.
FORGETS = """#!/bin/sh
for word; do
    shift
    case $word in --limit) ;; 8GiB) ;; *) set -- "$@" "$word" ;; esac
done
exec {launcher} "$@"
"""


def demo(*words, build=BUILD, **environment):
    return subprocess.run(
        [sys.executable, ROOT / "scripts/demo.py", build, *words],
        env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


@functools.cache
def usual():
    """A run whose contexts are known."""
    return demo("--contexts", "208,566")


def rows(text):
    """The figures of each run: context, allocated, held."""
    return [tuple(map(int, found)) for found in re.findall(r"(?:alone|limited) .* (\d+) +(\d+) +(\d+)$", text, re.M)]


class Demo(unittest.TestCase):
    def test_a_program_has_the_same_context_alone_and_limited(self):
        ended = usual()
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual([context for context, _, _ in rows(ended.stdout)], [208, 208, 566, 566])

    def test_the_limited_runs_are_within_the_limit_and_the_others_are_not(self):
        ended = usual()
        for number, (context, allocated, held) in enumerate(rows(ended.stdout)):
            self.assertLess(abs(context + allocated - held), 8)
            self.assertEqual(held <= LIMIT, number % 2 == 1)
        self.assertRegex(ended.stdout, r"(?m)^held under --limit 8GiB: \d+ MiB of 8192$")

    def test_contexts_drawn_at_random_are_said_and_can_be_had_again(self):
        first = demo()
        again = re.search(r"--contexts (\d+,\d+)$", first.stdout, re.M)
        self.assertIsNotNone(again, first.stdout)
        self.assertEqual(rows(demo("--contexts", again[1]).stdout), rows(first.stdout))

    def test_bars_are_of_what_the_terminal_can_show(self):
        fine = usual().stdout
        self.assertIn("driver API    limited  ▒███████████▊│ ", fine)
        self.assertIn("alone    ▒██████████████", fine)
        plain = demo("--contexts", "208,566", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").stdout
        self.assertIn("driver API    limited  +############| ", plain)
        self.assertTrue(plain.isascii(), plain)
        self.assertEqual(rows(plain), rows(fine))

    def test_no_line_is_wider_than_a_window(self):
        # A command is one line, however long the path of the tree is.
        shown = demo("--from", str(BUILD.parent)).stdout.replace(str(BUILD.parent), "build")
        self.assertLessEqual(max(map(len, shown.splitlines())), 100)

    def test_the_next_command_is_one_that_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = demo("--from", str(BUILD.parent), CUSLICE_FAKE_DIR=folder).stdout
            command = shown[shown.index("Next") :].partition("\n")[2]
            if "YOUR-PROGRAM" in command:
                self.skipTest("SKIPPED: there is a GPU here")
            ended = subprocess.run(
                ["bash", "-c", command],
                cwd=BUILD.parent,
                env={**os.environ, "CUSLICE_FAKE_DIR": folder, "CUSLICE_DIR": folder},
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("Number of devices: 2", ended.stdout)

    def test_sizes_that_are_none_are_refused(self):
        for words in "208", "99,566", "208,601", "a,b", "208,-566":
            ended = demo(f"--contexts={words}")
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn("sizes of 100 to 600 MiB", ended.stderr)

    def test_a_limit_that_does_not_hold_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            for name in "lib", "samples":
                (build / name).symlink_to(BUILD / name)
            (build / "bin").mkdir()
            (build / "bin/cuslice").write_text(FORGETS.format(launcher=BUILD / "bin/cuslice"))
            (build / "bin/cuslice").chmod(0o755)
            ended = demo("--contexts", "208,566", build=build)
        self.assertEqual(ended.returncode, 1)
        # All of the GPU, but for the end that a program's last block doesn't fit in.
        self.assertRegex(ended.stdout, "NOT held under --limit 8GiB: 2421[0-8] MiB of 8192")
        self.assertIn("driver_fill, limited: it saw 24217.3 MiB in total", ended.stderr)
        self.assertNotIn("Next", ended.stdout)

    def test_a_program_that_fails_is_shown_with_what_it_said(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            for name in "lib", "bin":
                (build / name).symlink_to(BUILD / name)
            (build / "samples").mkdir()
            shutil.copy("/bin/false", build / "samples/driver_fill")
            ended = demo(build=build)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("ended with 1", ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
