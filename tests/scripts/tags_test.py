#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/tags.py: every hook of the driver has a tag, and each tag finds its line."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tags(unittest.TestCase):
    def test_hooks_are_found_where_their_macros_stand(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder, "tags")
            subprocess.run([sys.executable, ROOT / "scripts/tags.py", target], check=True, stdout=subprocess.DEVNULL)
            lines = target.read_text().splitlines()[1:]
        self.assertEqual(lines, sorted(lines))
        found = {}
        for line in lines:
            name, file, pattern, kind = line.split("\t")
            start = re.fullmatch(r"/\^(.*)/;\"", pattern)[1]
            self.assertTrue(any(row.startswith(start) for row in (ROOT / file).read_text().splitlines()), line)
            self.assertEqual(kind, "f")
            found.setdefault(name, set()).add(file.split("/")[0])
        for name in ("cuMemAlloc_v2", "cuCtxCreate_v2", "cuMemFree_v2", "nvmlDeviceGetMemoryInfo"):
            self.assertIn("shim", found.get(name, ()), name)


unittest.main()
