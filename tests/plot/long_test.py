#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of any length and form: the picture is that of everything, and what is kept for it does not grow.

long_test.py SOURCE_FOLDER
"""

import contextlib
import pathlib
import random
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
import plain  # noqa: E402
from cuslice import recording_blocks, recording_compact, recording_csv  # noqa: E402
from cuslice import recording_moments, recording_stacks, recordings  # noqa: E402
from made import MICROSECONDS_OF_A_DAY as DAY  # noqa: E402
from made import InAFolder, Row, as_compact, as_csv, some_rows  # noqa: E402

MIB, SECOND = 1 << 20, 1_000_000
NOON = 20_000 * DAY + DAY // 2
FORMS = (as_csv, as_compact)


class InPieces(InAFolder):
    """Short recordings, too, are read in several pieces."""

    def setUp(self):
        super().setUp()
        for module, size in ((recording_csv, 5000), (recording_compact, 2400)):
            reads = mock.patch.object(module, "READ_AT_ONCE", size)
            reads.start()
            self.addCleanup(reads.stop)

    def assert_drawn(self, files, *contents):
        result, _ = self.replay(*contents)
        midnight = files[0][0].time // DAY * DAY
        if any(rows[0].time < midnight for rows in files):
            midnight -= DAY
        of_day = [[row._replace(time=row.time - midnight) for row in rows] for rows in files]
        self.assertEqual(result.gpus(), plain.drawn(of_day))


class Pictures(InPieces):
    def test_random_recordings_are_drawn_as_if_everything_were_kept(self):
        for seed in range(24):
            chance = random.Random(seed)
            start = 20_000 * DAY + chance.choice((3600, 50_000, 86_390)) * SECOND
            pause, gpus = chance.choice((40, 3000, SECOND)), ("GPU-a", "GPU-b", "GPU-c")[: chance.choice((1, 2, 3))]
            files = [
                some_rows(chance, chance.choice((5, 400, 1800)), gpus, start + chance.randrange(20) * SECOND, pause)
                for _ in range(chance.choice((1, 1, 2, 3)))
            ]
            for forms in ((as_csv,) * 3, (as_compact,) * 3, (as_csv, as_compact, as_csv)):
                with self.subTest(seed=seed, forms=forms):
                    self.assert_drawn(files, *(form(rows) for form, rows in zip(forms, files)))

    def test_peaks_are_exact_in_each_stretch(self):
        rows = []
        for i in range(10_000):
            size, held = 1000 + i * 7919 % 5000, (1000 + i * 104729 % 7000) << 12
            rows.append(Row(NOON + 30 * i, "allocate", 16, size, held=held, limit=1 << 40))
            rows.append(Row(NOON + 30 * i + 5, "free", 16, size, held=0, limit=1 << 40))
        for form in FORMS:
            (gpu,) = self.replay(form(rows))[0].gpus()
            self.assertLessEqual(len(gpu.moments), 900)
            length = (rows[-1].time - rows[0].time) // 300 + 1
            stretches = {}
            for moment in gpu.moments:
                stretches.setdefault((moment.time - DAY // 2) // length, []).append(moment)
            self.assertEqual(len(stretches), 300)
            for at, moments in stretches.items():
                there = [row for row in rows if (row.time - NOON) // length == at]
                live = max(row.size for row in there if row.action == "allocate")
                self.assertEqual(max(sum(moment.live) for moment in moments), live)
                self.assertEqual(max(moment.held for moment in moments), max(row.held for row in there))


class Largest(InPieces):
    """Blocks that are listed beside the picture: the largest at each moment."""

    def test_of_more_blocks_than_are_followed_the_large_ones_stay_right(self):
        chance = random.Random(2)
        rows = some_rows(chance, 6000, ("GPU-a",))
        rows = [row._replace(gpu="GPU-a", time=NOON + 1000 * i) for i, row in enumerate(rows)]
        (wanted,) = plain.drawn([[row._replace(time=row.time - NOON + DAY // 2) for row in rows]])
        for form in FORMS:
            with mock.patch.object(recording_blocks, "MOST_FOLLOWED", 12):
                with mock.patch.object(recording_blocks, "FEW_FOLLOWED", 2):
                    (gpu,) = self.replay(form(rows))[0].gpus()
            self.assertGreater(gpu.unlisted, 0)
            for moment, right in zip(gpu.moments, wanted.moments):
                listed, live = (
                    [block for block in one.largest if block.size > gpu.unlisted] for one in (moment, right)
                )
                self.assertEqual(listed, live)

    def test_what_is_followed_does_not_grow_with_the_rows(self):
        rows = [Row(NOON + i, "allocate", 16 * i + 16, 4096 + i % 1000) for i in range(20_000)]
        for form in FORMS:
            result, _ = self.replay(form(rows))
            self.assertLessEqual(len(result._tallies["GPU-a"].blocks.old), recording_blocks.MOST_FOLLOWED)
        rows = [
            row._replace(time=NOON + 2 * i + at, action=action)
            for i, row in enumerate(rows)
            for at, action in enumerate(("allocate", "free"))
        ]
        for form in FORMS:
            result, _ = self.replay(form(rows))
            self.assertLessEqual(len(result._tallies["GPU-a"].blocks._ended), recording_blocks.MOST_ENDED)


class Memory(InPieces):
    def test_what_is_kept_does_not_grow_with_the_rows(self):
        kept = {}
        for count in (6000, 24_000):
            chance = random.Random(5)
            rows = [row._replace(gpu="GPU-a") for row in some_rows(chance, count, ("GPU-a",))]
            for form in FORMS:
                result, _ = self.replay(form(rows))
                kept[count, form] = result.kept
        self.assertLessEqual(max(kept.values()), 900 + 2 * 200)

    def test_blocks_of_one_size_share_what_is_remembered_of_them(self):
        rows = [Row(NOON + i, "allocate", 16 * i, 4096) for i in range(5000)]
        for form in FORMS:
            result, _ = self.replay(form(rows))
            self.assertEqual(len({id(entry) for entry in result._blocks[0].values()}), 1)
        rows = [row._replace(size=row.address + 1) for row in rows]
        with mock.patch.object(recording_moments, "MOST_ENTRIES", 100):
            result, _ = self.replay(as_csv(rows))
        self.assertLessEqual(len(result._tallies["GPU-a"].entries), 101)

    def test_equal_stacks_are_kept_once(self):
        stack = ("<module> (train.py:33)",)
        rows = [Row(NOON + i, "allocate", 16 + 16 * i, 4096, stack=stack) for i in range(500)]
        for form in FORMS:
            result, _ = self.replay(form(rows))
            blocks = result._tallies["GPU-a"].blocks.old.values()
            self.assertEqual(len({id(block.source[2]) for block in blocks}), 1)
        shared = recording_stacks.SharedStacks()
        for i in range(5000):
            shared.of(b"%d" % i)
        self.assertLessEqual(len(shared._known), recording_stacks.MOST_SHARED)

    def test_a_file_is_read_in_pieces_and_once(self):
        read = []

        class Counting:
            def __init__(self, file):
                self.file = file

            def __getattr__(self, name):
                return getattr(self.file, name)

            def read(self, size):
                read.append(size)
                return self.file.read(size)

        rows = some_rows(random.Random(1), 20_000, ("GPU-a",), pause=50)
        for form in FORMS:
            content = form([row._replace(time=NOON + i, stack=()) for i, row in enumerate(rows)])
            name = self.file(content)
            real, read[:] = recordings.open_recording, []

            @contextlib.contextmanager
            def counted(name):
                with real(name) as file:
                    yield Counting(file)

            with mock.patch.object(recordings, "open_recording", counted):
                recordings.replay([name], [])
            self.assertLessEqual(max(read), 5000 + 4096)
            self.assertLess(sum(read), len(content) + 100 * 2 * 4096)

    def test_where_the_end_was_guessed_wrong_it_is_read_again(self):
        """Two days and a half, of which the middle of the file knows the most."""
        later = [0] * 1500 + [DAY * third // 3 for third in range(1, 7)] + [DAY * 7 // 3] * 1500
        rows = [Row(NOON + wait + i, "allocate", 16 * i, 100) for i, wait in enumerate(later)]
        for form in FORMS:
            result, _ = self.replay(form(rows))
            self.assertEqual(result.last - result.first, rows[-1].time - rows[0].time)
            self.assert_drawn([rows], form(rows))


if __name__ == "__main__":
    unittest.main()
