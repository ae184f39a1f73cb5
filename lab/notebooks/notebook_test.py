#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes notebooks by nbconvert, in a kernel that `cuslice jupyter install` has made, on fake GPUs.

notebook_test.py SOURCE BIN [CASE…]

Exits with 77 where nbconvert or ipykernel isn't installed.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

for package in ("nbconvert", "ipykernel"):
    if importlib.util.find_spec(package) is None:
        print(f"SKIPPED: {package} is not installed: scripts/integrations.sh notebook installs it and runs this")
        sys.exit(77)

SOURCE, BIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.dont_write_bytecode = True
BEGIN = f"""
import sys
sys.dont_write_bytecode = True
sys.path[:0] = [{str(SOURCE / "python")!r}, {str(SOURCE / "tests/python")!r}]
import cuslice, grow
"""


class Notebook(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory(prefix="cuslice-notebook-")
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CUSLICE_", "JUPYTER_"))},
            "CUSLICE_DIR": str(self.folder / "books"),
            "CUSLICE_FAKE_DIR": str(self.folder / "books"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "HOME": str(self.folder),
        }
        (self.folder / "books").mkdir(mode=0o700)

    def install(self, *options):
        """The name of a kernel with these options."""
        command = [BIN / "cuslice", "jupyter", "install", "--fake", "1xt4", "--python", sys.executable, *options]
        said = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout
        return said.split()[1].rstrip(":")

    def execute(self, kernel, *cells):
        """What each cell has printed, and how it failed."""
        notebook = {
            "cells": [
                {"cell_type": "code", "execution_count": None, "id": f"cell-{i}", "metadata": {}, "outputs": [],
                 "source": cell.strip("\n")}
                for i, cell in enumerate((BEGIN, *cells))
            ],
            "metadata": {"kernelspec": {"display_name": kernel, "language": "python", "name": kernel}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }  # fmt: skip
        path = self.folder / "notebook.ipynb"
        path.write_text(json.dumps(notebook))
        command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--allow-errors"]
        done = subprocess.run(
            [*command, "--output", "executed", str(path)], env=self.environment, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        executed = json.loads((self.folder / "executed.ipynb").read_text())
        return [self.said(cell) for cell in executed["cells"]][1:]

    @staticmethod
    def said(cell):
        texts = []
        for output in cell["outputs"]:
            if output["output_type"] == "stream" and output["name"] == "stdout":
                texts.append("".join(output["text"]))
            elif output["output_type"] == "error":
                texts.append(output["ename"])
            elif "data" in output:
                texts.append("".join(output["data"].get("text/html", output["data"].get("text/plain", ""))))
        return "".join(texts).strip()

    def test_the_magic_lowers_the_limit_of_a_notebook_and_of_a_cell_and_draws_what_is_held(self):
        kernel = self.install("--limit", "2GiB")
        said = self.execute(
            kernel,
            "%load_ext cuslice\nprint(grow.take(100))",
            "%slice",
            "print(grow.take(1500))",
            "%slice 1GiB",
            "print(grow.take(500), cuslice.own_slices()[0].limit >> 20)",
            "%%slice 512MiB\nprint(grow.take(500), cuslice.own_slices()[0].limit >> 20)",
            "print(cuslice.own_slices()[0].limit >> 20)",
        )
        self.assertEqual(said[0], "0")
        self.assertIn("204.0 MiB of 2.0 GiB", said[1])
        self.assertIn("<", said[1], "bars, and not text")
        self.assertEqual(said[2], "0")
        self.assertIn("of 1.0 GiB", said[3])
        self.assertEqual(said[4], "2 1024")  # more is held than the new limit
        self.assertEqual(said[5], "2 512")
        self.assertEqual(said[6], "1024")

    def test_a_function_of_the_notebook_is_limited_while_it_runs(self):
        kernel = self.install("--limit", "2GiB", "--name", "small")
        self.assertEqual(kernel, "small")
        said = self.execute(
            kernel,
            '@cuslice.slice("1GiB")\ndef train(mib):\n    return grow.take(mib)',
            "print(train(800), grow.take(800), train(100), grow.reset())",
            'with cuslice.slice("256MiB"):\n    print(grow.take(400))\nprint(grow.take(400))',
            "import pandas" if importlib.util.find_spec("pandas") else "pass",
        )
        self.assertEqual(said[1:3], ["0 0 2 0", "2\n0"])

    def test_a_notebook_that_has_no_slice_is_told_how_to_get_one(self):
        environment = dict(self.environment)
        command = [sys.executable, "-m", "ipykernel", "install", "--prefix", self.folder / "p", "--name", "plain"]
        subprocess.run(command, env=environment, capture_output=True, check=True)
        self.environment["JUPYTER_PATH"] = str(self.folder / "p/share/jupyter")
        said = self.execute("plain", "%load_ext cuslice", "%slice 1GiB", 'cuslice.ensure(limit="1GiB")')
        self.assertEqual(said[1:], ["NotPreloadedError", "CannotRestartError"])


if __name__ == "__main__":
    unittest.main()
