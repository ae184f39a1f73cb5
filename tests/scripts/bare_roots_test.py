# SPDX-License-Identifier: Apache-2.0
"""The places of scripts/bare_roots.sh, without going there: they are those of a stranger's, each night has one, and the
workflow of the night goes to it.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts/bare_roots.sh"


def bare_roots(*words, **environment):
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def places():
    """Rows of name, suite, path and way in."""
    return [line.split() for line in bare_roots("--list").stdout.splitlines()]


class BareRoots(unittest.TestCase):
    def test_every_kind_of_place_is_there(self):
        rows = places()
        self.assertEqual({row[1] for row in rows}, {"bookworm", "trixie"})
        self.assertEqual({row[3] for row in rows}, {"root", "user", "chroot", "container"})
        paths = {row[2] for row in rows}
        self.assertTrue({5, 90} <= {len(path) for path in paths}, paths)
        self.assertTrue({"/root/cuslice", "/opt/cuslice"} <= paths, paths)

    def test_nights_in_a_row_have_every_place(self):
        names = [row[0] for row in places()]
        nights = [bare_roots("--which", CUSLICE_NIGHT=str(night)).stdout.strip() for night in range(len(names))]
        self.assertEqual(sorted(nights), sorted(names))

    def test_an_unknown_place_is_refused_before_anything_is_made(self):
        with tempfile.TemporaryDirectory() as folder:
            said = bare_roots("nowhere", ROOTS=f"{folder}/roots")
            self.assertEqual(said.returncode, 64)
            self.assertIn("there is no place nowhere", said.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_the_workflow_goes_to_the_place_of_the_night(self):
        text = (SOURCE / ".github/workflows/nightly.yml").read_text()
        self.assertIn("run: sudo scripts/bare_roots.sh --tonight", text)
        self.assertRegex(text, r"cron: \"\d+ \d+ \* \* \*\"")
        for script in re.findall(r"\bscripts/\w+\.sh\b", text):
            self.assertTrue(os.access(SOURCE / script, os.X_OK), script)


if __name__ == "__main__":
    unittest.main(verbosity=2)
