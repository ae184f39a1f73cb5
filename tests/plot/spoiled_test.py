#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings that somebody has spoiled: `cuslice plot` reads them, or says in one line what is wrong with which row.

spoiled_test.py SOURCE_FOLDER

CUSLICE_TEST_SPOILED is how many of each form are tried; a number that fails is in the message, and fails again.
"""

import os
import pathlib
import random
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
from cuslice import plot_page, plot_text, recordings  # noqa: E402
from made import InAFolder, as_compact, as_csv, some_rows  # noqa: E402

COUNT = int(os.environ.get("CUSLICE_TEST_SPOILED", "500"))
SECONDS = 20  # for one; usual are some milliseconds
WORDS = (b"", b"-1", b"0x", b"18446744073709551616", b"1e9", b"\xff\xfe", b"nan", b",", b"\n", b"\r\n", b"\0", b"free")


def spoil(chance, data, unit):
    """One to four mistakes: bytes that are others, missing, added, twice or elsewhere; records of `unit` bytes too."""
    spoiled = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(spoiled) + 1)
        length = chance.choice((1, 2, 8, unit, 3 * unit, chance.randrange(1, 200)))
        what = chance.randrange(7)
        if what == 0 and at < len(spoiled):
            spoiled[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            spoiled[at : at + length] = bytes(chance.randrange(256) for _ in range(length))
        elif what == 2:
            del spoiled[at : at + length]
        elif what == 3:
            spoiled[at:at] = spoiled[at : at + length]
        elif what == 4:
            begin = at // unit * unit
            spoiled[begin:begin] = bytes(spoiled[begin : begin + unit * chance.randrange(1, 4)])
        elif what == 5:
            spoiled[at : at + length] = chance.choice(WORDS)
        else:
            del spoiled[at:]
    return bytes(spoiled)


class Late(Exception):
    pass


def give_up(*_):
    raise Late


class Spoiled(InAFolder):
    def check(self, number, write, unit):
        chance = random.Random(number)
        data = spoil(chance, write(some_rows(chance, chance.choice((1, 5, 60))), program="python train.py"), unit)
        signal.alarm(SECONDS)
        try:
            result, notes = self.replay(data)
        except recordings.RecordingError as error:
            said = str(error)
            self.assertIn(self.folder, said)
            self.assertEqual(said.splitlines(), [said])
            return False
        finally:
            signal.alarm(0)
        gpus = result.gpus()
        plot_page.page(result, gpus, plot_text.heading_of(result, gpus, None, ["a"]), notes)
        for note in notes:
            self.assertEqual(note.splitlines(), [note])
        for gpu in gpus:
            self.assertGreaterEqual(gpu.peak, 0)
            self.assertTrue(all(sum(moment.live) >= 0 for moment in gpu.moments))
        return True

    def check_all(self, write, unit):
        signal.signal(signal.SIGALRM, give_up)
        read = 0
        for number in range(COUNT):
            with self.subTest(number=number):
                read += self.check(number, write, unit)
        # Some of each, or nothing is tried.
        self.assertGreater(read, COUNT // 20)
        self.assertLess(read, COUNT - COUNT // 20)

    def test_rows_of_text(self):
        self.check_all(as_csv, 1)

    def test_compact_records(self):
        self.check_all(as_compact, 24)


if __name__ == "__main__":
    unittest.main()
