# SPDX-License-Identifier: Apache-2.0
"""scripts/qemu_start_time.py: of a program that is laid out as qemu is, one entry is renamed, and nothing else."""

import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/qemu_start_time.py"
BASE = 0x10000  # where the file is loaded, so that addresses are no places in it
NAMES = ["maps", "smaps", "stat", "auxv", "cmdline"]
HEADERS, TEXTS, DYNAMIC, RELOCATIONS, TABLE = 64, 0x100, 0x200, 0x300, 0x1000


def program(names):
    """A program with a table of names, each entry of which has an address and two functions' addresses."""
    texts, places = b"", {}
    for name in names:
        places[name] = BASE + TEXTS + len(texts)
        texts += name.encode() + b"\0"
    relocations = b"".join(struct.pack("<QQq", BASE + TABLE + 24 * i, 8, places[name]) for i, name in enumerate(names))
    dynamic = struct.pack("<QQQQQQ", 7, BASE + RELOCATIONS, 8, len(relocations), 0, 0)
    image = bytearray(TABLE + 24 * len(names))
    image[:4] = b"\x7fELF"
    struct.pack_into("<Q", image, 32, HEADERS)
    struct.pack_into("<HH", image, 54, 56, 2)
    struct.pack_into("<IIQQQQ", image, HEADERS, 1, 0, 0, BASE, BASE, len(image))
    struct.pack_into("<IIQQQQ", image, HEADERS + 56, 2, 0, DYNAMIC, BASE + DYNAMIC, BASE + DYNAMIC, len(dynamic))
    for place, part in ((TEXTS, texts), (DYNAMIC, dynamic), (RELOCATIONS, relocations)):
        image[place : place + len(part)] = part
    return bytes(image), places


class Copies(unittest.TestCase):
    def copy(self, image):
        with tempfile.TemporaryDirectory() as folder:
            source, copy = pathlib.Path(folder, "qemu"), pathlib.Path(folder, "copy")
            source.write_bytes(image)
            ended = subprocess.run([sys.executable, SCRIPT, source, copy], capture_output=True, text=True, check=False)
            self.assertEqual(source.read_bytes(), image)
            return ended, copy.read_bytes() if copy.exists() else None

    def test_the_entry_has_another_ones_name(self):
        image, places = program(NAMES)
        ended, copy = self.copy(image)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        changed = bytearray(image)
        struct.pack_into("<q", changed, RELOCATIONS + 24 * NAMES.index("stat") + 16, places["smaps"])
        self.assertEqual(copy, bytes(changed))

    def test_another_table_is_left_alone(self):
        ended, copy = self.copy(program(["maps", "smaps", "status", "auxv", "cmdline"])[0])
        self.assertEqual((ended.returncode, copy), (1, None))
        self.assertIn("has 0 tables of files with the entries maps smaps stat auxv cmdline", ended.stderr)

    def test_what_is_no_program_is_said(self):
        ended, copy = self.copy(b"#!/bin/sh\n")
        self.assertEqual((ended.returncode, copy), (1, None))
        self.assertIn("is no program", ended.stderr)


if __name__ == "__main__":
    unittest.main()
