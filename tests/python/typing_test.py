#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets mypy read the package, and uses of it: it finds those that are wrong, and no other.

  typing_test.py SOURCE BIN

Needs a Python with mypy, which scripts/setup.sh puts into build/pytest; 77, skipped, without one.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
USES = SOURCE / "tests/python/uses.py"
# Modules that need nothing but the standard library.
MODULES = ("__init__", "__main__", "_arguments", "_bars", "_ensure", "_failures", "_ipython", "_launcher", "_log")
MODULES += ("_memory", "_numbers", "_restart", "_run", "_settings", "_size", "_slice", "fake")
MODULES += ("recordings", "recording_blocks", "recording_compact", "recording_csv", "recording_moments")
MODULES += ("recording_rows", "recording_stacks", "gpu_names", "plot_page", "plot_stacks", "plot_text")


def mypy(*paths):
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [PYTHON, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={cache}", *map(str, paths)],
            cwd=cache,
            env={**os.environ, "MYPYPATH": str(SOURCE / "python")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    return done.stdout


class Types(unittest.TestCase):
    def test_the_package_is_typed(self):
        self.assertEqual(mypy(*(SOURCE / "python/cuslice" / f"{name}.py" for name in MODULES)), "")

    def test_wrong_uses_are_found_and_right_ones_are_not(self):
        lines = USES.read_text().splitlines()
        wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
        self.assertGreaterEqual(len(wrong), 8)
        said = mypy(USES)
        found = {int(number) for number in re.findall(r"uses\.py:(\d+): error", said)}
        self.assertEqual(found, wrong, said)


def python_with_mypy():
    for python in (str(SOURCE / "build/pytest/bin/python3"), sys.executable):
        look = [python, "-c", "import mypy"]
        if os.access(python, os.X_OK) and subprocess.run(look, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    print("SKIPPED: mypy is not here: scripts/setup.sh tests")
    sys.exit(77)


PYTHON = python_with_mypy()
unittest.main(argv=sys.argv[:1])
