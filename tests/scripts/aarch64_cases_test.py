# SPDX-License-Identifier: Apache-2.0
"""scripts/aarch64_cases.py: what scripts/test_aarch64.sh runs one after the other, and the figures of its reports."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/aarch64_cases.py"
CASES = {
    "test_cli: a": ["cli"],
    "test_cli: b": ["cli", "slow"],
    "test_config: drawn at random": ["config", "fuzz"],
    "genuine_cudart-12": ["genuine", "slow"],
    "genuine_document": ["checks", "genuine"],
    "fuzz_all": ["fuzz"],
    "test_top_was_not_built": [],
}
TESTS = json.dumps({"tests": [{"name": name, "properties": [{"name": "LABELS", "value": labels}] if labels else []}
                              for name, labels in CASES.items()]})  # fmt: skip


def script(*words):
    return subprocess.run([sys.executable, SCRIPT, *words], input=TESTS, capture_output=True, text=True, check=False)


def report(folder, **cases):
    """A report of ctest's: each status with the names that have it."""
    rows = "".join(f'<testcase name="{name}" status="{state}"/>' for state, names in cases.items() for name in names)
    path = pathlib.Path(folder)
    path.write_text(f"<testsuite>{rows}</testsuite>")
    return path


class Folders(unittest.TestCase):
    def test_each_case_is_in_one_folder(self):
        ended = script("folders")
        self.assertEqual(
            ended.stdout.splitlines(),
            [
                "cli --label-regex ^cli$",
                "config --label-regex ^config$ --label-exclude ^(cli)$",
                "genuine --label-regex ^genuine$ --label-exclude ^(cli|config)$",
                "checks --label-regex ^checks$ --label-exclude ^(cli|config|genuine)$",
                "fuzz --label-regex ^fuzz$ --label-exclude ^(cli|config|genuine|checks)$",
                "none --label-exclude ^(cli|config|genuine|checks|fuzz)$",
            ],
        )


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rows(self, ended):
        return {line.split()[0]: line.split()[1:] for line in ended.stdout.splitlines() if line[:1].isalpha()}

    def test_figures_are_those_of_the_folders_that_were_run(self):
        cli = report(self.folder / "cli.xml", run=["test_cli: a"], fail=["test_cli: b"])
        config = report(self.folder / "config.xml", notrun=["test_config: drawn at random"])
        fuzz = report(self.folder / "fuzz.xml", run=["fuzz_all"])
        ended = script("count", cli, config, fuzz)
        self.assertEqual(self.rows(ended)["cli"], ["2", "1", "1", "0", "0"])
        self.assertEqual(self.rows(ended)["config"], ["1", "0", "0", "1", "0"])
        self.assertEqual(self.rows(ended)["fuzz"], ["1", "1", "0", "0", "0"])
        self.assertIn("Of 4 cases 2 passed (50.0 %), 1 failed, 1 skipped themselves, and 0 are excluded", ended.stdout)
        self.assertIn("failed: test_cli: b", ended.stdout)
        self.assertIn("Not run, and not counted: genuine checks\n", ended.stdout)
        self.assertEqual(ended.returncode, 1)

    def test_an_excluded_case_counts_and_one_that_was_forgotten_is_named(self):
        ended = script("count", report(self.folder / "genuine.xml"))
        self.assertEqual(self.rows(ended)["genuine"], ["2", "0", "0", "0", "2"])
        self.assertNotIn("neither run nor excluded: genuine_cudart-12", ended.stdout)
        self.assertIn("neither run nor excluded: genuine_document", ended.stdout)
        self.assertEqual(ended.returncode, 1)

    def test_a_program_that_was_not_built_is_named(self):
        ended = script("count", report(self.folder / "cli.xml", run=["test_cli: a", "test_cli: b"]))
        self.assertIn("not built, and its cases are not counted: test_top\n", ended.stdout)
        self.assertEqual(ended.returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
