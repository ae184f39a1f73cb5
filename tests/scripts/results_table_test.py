# SPDX-License-Identifier: Apache-2.0
"""scripts/results_table.py: the table of measured GPUs, and what it takes for a record."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/results"
RECORD = RESULTS / "h200-580.159.04-2026-11-26.md"


def table(*words, root=ROOT):
    script = root / "scripts/results_table.py"
    return subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)


def fields(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


class Row(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "mine.md"
        self.text = RECORD.read_text()

    def row(self, text):
        self.path.write_text(text)
        ended = table("--row", self.path)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        heads, _, row = ended.stdout.splitlines()
        return dict(zip(fields(heads), fields(row)))

    def refused(self, text):
        self.path.write_text(text)
        ended = table("--row", self.path)
        self.assertEqual((ended.returncode, ended.stdout), (65, ""))
        return ended.stderr

    def test_a_record_has_a_row(self):
        self.assertEqual(
            self.row(self.text),
            {
                "GPU": "NVIDIA H200",
                "capability": "9.0",
                "memory": "143155.94 MiB",
                "driver": "580.159.04",
                "CUDA": "13.0",
                "a context": "518 MiB",
                "within the limit": "25 of 25 programs",
                "frameworks": "PyTorch 2.11.0, JAX 0.11.2, CuPy 14.2.0, Numba 0.68.0",
                "steps": "26 done, 2 skipped",
                "cuslice": "0.2.0 (6b164dd58780)",
                "date": "2026-11-26",
            },
        )

    def test_a_program_over_its_limit_is_counted(self):
        over = self.text.replace("| 960.00 MiB | yes | right |", "| 1060.00 MiB | **no** | right |", 1)
        self.assertNotEqual(over, self.text)
        self.assertEqual(self.row(over)["within the limit"], "24 of 25 programs")

    def test_a_program_that_nobody_saw_is_no_proof(self):
        unseen = self.text.replace("| 960.00 MiB | yes | right |", "| – | not seen | right |", 1)
        self.assertEqual(self.row(unseen)["within the limit"], "24 of 24 programs, 1 not seen")

    def test_a_step_that_failed_is_counted_and_its_framework_is_not_listed(self):
        for verdict in "**failed** (1)", "**time-out** after 56 s", "not run: the time is over":
            failed = self.text.replace("PyTorch: the limit | done |", f"PyTorch: the limit | {verdict} |")
            self.assertEqual(self.row(failed)["steps"], "25 done, 2 skipped, 1 failed")
            self.assertEqual(self.row(failed)["frameworks"], "JAX 0.11.2, CuPy 14.2.0, Numba 0.68.0")

    def test_a_record_that_was_cut_short_has_a_row_of_what_it_has(self):
        row = self.row(self.text.split("## 6. ")[0])
        self.assertEqual((row["a context"], row["GPU"]), ("–", "NVIDIA H200"))
        self.assertRegex(row["within the limit"], r"^(1\d) of \1 programs$")

    def test_what_is_no_record_is_refused_by_name(self):
        self.assertIn("mine.md: its first table has no field GPU", self.refused("# A page\n"))
        self.assertIn("mine.md: its summary has no step", self.refused(self.text.split("## Summary")[0]))
        marked = "".join(f"NOT A GPU  {line}\n" for line in self.text.splitlines())
        self.assertIn("mine.md: this is the plan on the fake GPU", self.refused(marked))

    def test_what_a_field_may_not_have_reaches_no_table(self):
        for field, value in (
            ("GPU", "NVIDIA H200<script>, compute capability 9.0, 143155.94 MiB"),
            ("GPU", "[H200](https://example.com), compute capability 9.0, 143155.94 MiB"),
            ("driver", "580.159.04`, CUDA 13.0, libcuda.so.1"),
            ("GPU", "NVIDIA \u05d0200, compute capability 9.0, 143155.94 MiB"),
            ("date", "today (UTC)"),
            ("cuslice", "cuslice 0.2.0, commit <img>"),
            ("torch", "2.11.0 <b>"),
        ):
            row = re.search(rf"^\| {field} \| .* \|$", self.text, re.M)[0]
            forged = self.text.replace(row, f"| {field} | {value} |", 1)
            self.assertIn(field, self.refused(forged))

    def test_a_file_that_is_missing_is_named(self):
        ended = table("--row", self.path)
        self.assertEqual(ended.returncode, 65)
        self.assertIn("mine.md", ended.stderr)

    def test_other_words_are_wrong_usage(self):
        for words in ("--row",), ("--rows", "x"), ("x",):
            self.assertEqual(table(*words).returncode, 64)


class Table(unittest.TestCase):
    def test_it_is_that_of_the_records(self):
        ended = table("--check")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_a_record_that_is_added_gets_a_row_with_a_link(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(RESULTS, root / "docs/results")
            (root / "scripts").mkdir()
            shutil.copy(ROOT / "scripts/results_table.py", root / "scripts")
            page = root / "docs/results/README.md"
            before = page.read_text()
            other = RECORD.read_text().replace("NVIDIA H200", "NVIDIA GeForce RTX 4090")
            (root / "docs/results/rtx-4090.md").write_text(other)

            ended = table("--check", root=root)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("scripts/results_table.py writes it", ended.stderr)
            self.assertEqual(page.read_text(), before)

            self.assertEqual(table(root=root).returncode, 0)
            self.assertEqual(table("--check", root=root).returncode, 0)
            rows = [line for line in page.read_text().splitlines() if line.startswith("| [")]
            measured = [f"[NVIDIA H200]({record.name})" for record in sorted(RESULTS.glob("h200-*.md"))]
            links = ["[NVIDIA GeForce RTX 4090](rtx-4090.md)"] + measured
            self.assertEqual([fields(row)[0] for row in rows], links)

            page.write_text("# Results\n")
            self.assertEqual(table(root=root).returncode, 65)
            self.assertEqual(page.read_text(), "# Results\n")


if __name__ == "__main__":
    unittest.main()
