#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version's scripts of scripts/release, changelog.py and chart.py:  changelog_test.py SOURCE"""

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
from contextlib import redirect_stderr

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "scripts/release"), str(SOURCE / "tests/checks")]
import changelog  # noqa: E402
import chart  # noqa: E402
import packages  # noqa: E402

PAGE = """# Changelog

## Unreleased

### Added
- `cuslice moon`.

## 0.2.0 - 2026-11-22

Not yet.

## 0.1.0

The first.
"""
PROJECT = 'cmake_minimum_required(VERSION 3.25)\nproject(cuslice VERSION 0.2.0 DESCRIPTION "A" LANGUAGES C)\n'


class Changelog(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.root = pathlib.Path(owner.name)
        self.write(PAGE)

    def write(self, page):
        (self.root / "CHANGELOG.md").write_text(page)
        (self.root / "CMakeLists.txt").write_text(PROJECT)

    def refused(self, call, *words):
        """The exit code and the line of a call that is refused, with everything left as it was."""
        before = [path.read_text() for path in sorted(self.root.iterdir())]
        said = io.StringIO()
        with self.assertRaises(SystemExit) as ended, redirect_stderr(said):
            call(*words, self.root)
        self.assertEqual([path.read_text() for path in sorted(self.root.iterdir())], before)
        return ended.exception.code, said.getvalue()

    def test_a_section_is_what_stands_below_its_heading(self):
        self.assertEqual(changelog.section("0.2.0", self.root), "Not yet.\n")
        self.assertEqual(changelog.section("0.1.0", self.root), "The first.\n")
        self.assertIsNone(changelog.section("0.1", self.root))

    def test_a_cut_moves_what_is_unreleased_and_leaves_the_rest(self):
        with unittest.mock.patch.dict("os.environ", {"SOURCE_DATE_EPOCH": "1800000000"}):
            changelog.cut("0.3.0", self.root)
        cut = PAGE.replace("## Unreleased\n", "## Unreleased\n\n## 0.3.0 - 2027-01-15\n")
        self.assertEqual((self.root / "CHANGELOG.md").read_text(), cut)
        self.assertEqual((self.root / "CMakeLists.txt").read_text(), PROJECT.replace("0.2.0", "0.3.0"))
        self.assertEqual(changelog.version(self.root), "0.3.0")
        changelog.check("v0.3.0", self.root)
        self.assertEqual(changelog.section("0.3.0", self.root), "### Added\n- `cuslice moon`.\n")
        # A second one has nothing to cut.
        self.assertIn('nothing under "Unreleased"', self.refused(changelog.cut, "0.4.0")[1])

    def test_a_cut_that_makes_no_sense_changes_nothing(self):
        for version, code, reason in (
            ("0.1.5", 1, "0.1.5 is older than 0.2.0"),
            ("0.2.0", 1, "has a section of 0.2.0 already"),
            ("next", 64, "next is no version such as 1.2.3"),
            ("0.3.0; rm", 64, "is no version"),
        ):
            with self.subTest(version):
                ended, said = self.refused(changelog.cut, version)
                self.assertEqual(ended, code)
                self.assertIn(reason, said)

    def test_a_tag_that_is_no_release_is_refused(self):
        changelog.check("v0.2.0", self.root)
        for tag in ("v0.3.0", "0.2.0", "v0.2.0-rc1"):
            self.assertIn(f"the tag is {tag}", self.refused(changelog.check, tag)[1])
        self.write(PAGE.replace("## 0.2.0", "## 0.2.1"))
        self.assertIn("no section of 0.2.0", self.refused(changelog.check, "v0.2.0")[1])

    def test_the_sources_have_a_version_with_a_section(self):
        def said(*words):
            command = [SOURCE / "scripts/release/changelog.py", *words]
            return subprocess.run(command, capture_output=True, text=True)

        version = said("version").stdout.strip()
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(said("notes").stdout, changelog.section(version))
        self.assertEqual(said("check", f"v{version}").returncode, 0)
        for words in ([], ["cut"], ["version", "1"], ["moon"]):
            self.assertEqual(said(*words).returncode, 64, words)


class Chart(unittest.TestCase):
    def test_a_chart_is_packed_with_the_version_and_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            first, second = (chart.pack(out / name, "1.2.3") for name in ("one", "two"))
            self.assertEqual((first.name, first.read_bytes()), ("cuslice-1.2.3.tgz", second.read_bytes()))
            packages.wrong.clear()
            packages.look_at_chart(first, out / "unpacked")
            self.assertEqual(packages.wrong, [])
            with tarfile.open(first) as archive:
                names = {name.removeprefix("cuslice/") for name in archive.getnames()}
            self.assertEqual(
                names, {str(one.relative_to(chart.CHART)) for one in chart.CHART.rglob("*") if one.is_file()}
            )
            packages.look_at_chart(first.rename(out / "cuslice-1.2.4.tgz"), out / "again")
            self.assertEqual(len(packages.wrong), 1)

    def test_a_chart_without_a_version_is_not_packed(self):
        with self.assertRaisesRegex(SystemExit, "0 lines of appVersion"):
            chart.filled("version: 1\n", "1.2.3")


if __name__ == "__main__":
    unittest.main(verbosity=2)
