#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The list of scripts/fuzz_seeded.sh: each mistake is of a target that there is, and still changes its source."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Seeded(unittest.TestCase):
    def test_each_mistake_changes_one_line_of_its_source(self):
        for row in (ROOT / "tests/fuzz/seeded.txt").read_text().splitlines():
            if not row or row.startswith("#"):
                continue
            target, mistake, file, expression = (word.strip() for word in row.split("|", 3))
            with self.subTest(target=target, mistake=mistake):
                self.assertTrue((ROOT / f"tests/fuzz/{target}_fuzz.cpp").exists())
                before = (ROOT / file).read_text().splitlines()
                after = subprocess.run(["sed", expression, ROOT / file], check=True, capture_output=True,
                                       text=True).stdout.splitlines()
                self.assertEqual(sum(a != b for a, b in zip(before, after, strict=True)), 1)


unittest.main()
