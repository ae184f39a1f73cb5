# SPDX-License-Identifier: Apache-2.0
"""How .ci/run and scripts/ci_full.sh count, with stand-ins for the scripts that they call; and that the first one's
stages are among the second one's, of which CONTRIBUTING lists the others.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ("setup", "test", "failing_calls", "every_step", "random_turns", "interleavings", "fuzz", "models", "tidy",
           "thread_safety", "mutate", "coverage", "site")
# Output of four tests, one of them skipped.
TESTS = """mkdir -p "build/$1/Testing/Temporary"
echo '    SKIPPED: no GPU' >"build/$1/Testing/Temporary/LastTest.log"
echo '2/4 Test  #2: two ......***Skipped   0.01 sec'
echo '{percent}% tests passed, {bad} tests failed out of 4'
exit {status}"""
GOOD = TESTS.format(percent=100, bad=0, status=0)


def stages(script):
    """Each with its words."""
    lines = (SOURCE / script).read_text().split(". scripts/ci_stages.sh\n")[1].split("\n")
    return [line for line in lines if line and line not in ("programs", "summary")]


class Ci(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in (".ci/run", "scripts/ci_stages.sh", "scripts/ci_full.sh"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, self.folder / name)
        (self.folder / "bin").mkdir()
        for name in SCRIPTS:
            self.stand_in(f"scripts/{name}.sh", "exit 0")
        self.stand_in("scripts/test.sh", GOOD)
        self.stand_in("scripts/mutate.sh", "echo mutate: result: 8 of 10 were noticed")
        self.stand_in("scripts/coverage.sh", "echo 'policy 92.9% 534/575 79.4% 402/506'")
        self.stand_in("scripts/failed_tests.py", "echo which ones")
        self.stand_in("bin/clang-format-14", "exit 0")
        self.stand_in("bin/git", "exit 0")

    def stand_in(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_it(self, script):
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        done = subprocess.run([self.folder / script], capture_output=True, text=True, env=environment, cwd="/", stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout

    def check_failure(self, line, script=".ci/run"):
        status, said = self.run_it(script)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, rf"FAILED +\d+ s  {line}")
        return said

    def test_where_all_passes_tests_and_checks_are_counted_together(self):
        status, said = self.run_it(".ci/run")
        self.assertEqual(status, 0, said)
        self.assertEqual(said.splitlines()[-1], "7 passed, 0 failed")
        self.assertRegex(said, r"passed +\d+ s  preset dev: 3 of 4 tests, 1 skipped")
        self.assertRegex(said, r"\n\d+ minutes on \d+ cores, ")

    def test_the_whole_counts_every_preset(self):
        status, said = self.run_it("scripts/ci_full.sh")
        self.assertEqual(status, 0, said)
        self.assertEqual(said.splitlines()[-1], "22 passed, 0 failed")
        for line in ("preset asan: 3 of 4", "preset tsan: 3 of 4", "mutants of what the last commit changed: 8 of 10", "policy 92.9% 79.4%"):
            self.assertIn(line, said)

    def test_a_test_that_fails_is_counted_and_named(self):
        self.stand_in("scripts/test.sh", TESTS.format(percent=75, bad=1, status=8))
        said = self.check_failure("preset dev: 2 of 4 tests, 1 skipped")
        self.assertIn("which ones", said)
        self.assertEqual(said.splitlines()[-1], "6 passed, 1 failed")

    def test_tests_that_never_come_to_an_end_are_a_failure(self):
        self.stand_in("scripts/test.sh", "echo 'ninja: build stopped'; exit 1")
        self.check_failure("preset dev: it did not come to a summary .exit 1.")
        self.stand_in("scripts/test.sh", TESTS.format(percent=100, bad=0, status=3))
        self.check_failure("preset dev: ctest ended with 3 although no test failed")

    def test_each_stage_that_fails_is_a_failure_and_the_others_run(self):
        for name, line in {
            "scripts/setup.sh": "the programs that the checks need",
            "scripts/tidy.sh": "clang-tidy, of what the last commit changed",
            "scripts/thread_safety.sh": "thread-safety annotations",
            "bin/clang-format-14": "clang-format",
        }.items():
            good = (self.folder / name).read_text()
            # git names a file to format.
            self.stand_in("bin/git", "printf 'one.cpp\\0'")
            self.stand_in(name, "exit 1")
            said = self.check_failure(line)
            self.assertEqual(said.splitlines()[-1], "6 passed, 1 failed", said)
            (self.folder / name).write_text(good)
        for name, line in {
            "scripts/failing_calls.sh": "each call into the C library",
            "scripts/every_step.sh": "killed before every step",
            "scripts/random_turns.sh": "turns of six jobs",
            "scripts/interleavings.sh": "threads that meet",
            "scripts/fuzz.sh": "fuzzing",
            "scripts/models.sh": "models of the ledger",
            "scripts/mutate.sh": "mutants",
            "scripts/coverage.sh": "lines and branches",
            "scripts/site.sh": "the documentation site",
        }.items():
            good = (self.folder / name).read_text()
            self.stand_in(name, "exit 1")
            self.check_failure(line, "scripts/ci_full.sh")
            (self.folder / name).write_text(good)

    def test_what_guards_a_commit_is_a_part_of_the_whole(self):
        first, whole = stages(".ci/run"), stages("scripts/ci_full.sh")
        self.assertTrue(first)
        self.assertEqual([stage for stage in whole if stage in first], first)
        left_out = [stage for stage in whole if stage not in first]
        listed = re.findall(r"^\| `(.+?)` \|", (SOURCE / "CONTRIBUTING.md").read_text().split("## What guards a commit")[1].split("\n## ")[0], re.M)
        self.assertEqual(listed, left_out)

    def test_the_workflows_run_them(self):
        for workflow, script in {"ci.yml": ".ci/run", "nightly.yml": "scripts/ci_full.sh"}.items():
            text = (SOURCE / ".github/workflows" / workflow).read_text()
            self.assertIn(f"run: {script}\n", text)
            self.assertTrue(os.access(SOURCE / script, os.X_OK), script)
            # clang-tidy and the mutants compare the last commit with the one before.
            self.assertIn("fetch-depth: 2", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
