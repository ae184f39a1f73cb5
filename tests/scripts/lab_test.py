# SPDX-License-Identifier: Apache-2.0
"""scripts/lab.sh: what it lists, and a folder that isn't there."""
import pathlib
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def lab(*words):
    return subprocess.run([SOURCE / "scripts/lab.sh", *words], capture_output=True, text=True)


class Lab(unittest.TestCase):
    def test_every_folder_is_listed(self):
        folders = sorted(path.parent.name for path in (SOURCE / "lab").glob("*/CMakeLists.txt"))
        for words in (["--list"], []):
            listed = lab(*words)
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()], folders)

    def test_what_is_named_by_hand_is_there(self):
        by_hand = [line[64:].split() for line in lab("--list").stdout.splitlines()]
        scripts = [words[0] for words in by_hand if words]
        self.assertGreater(len(scripts), 5)
        for script in scripts:
            self.assertTrue((SOURCE / script).is_file(), script)

    def test_another_folder_is_refused(self):
        for name in ("nothing", "../tests/bench", ""):
            refused = lab(name)
            self.assertEqual(refused.returncode, 64, name)
            self.assertIn("it is one of: compat genuine hardware", refused.stderr)


if __name__ == "__main__":
    unittest.main()
