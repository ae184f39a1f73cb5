#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two forms of a recording: one picture, what a killed program leaves behind, and what is no recording.

forms_test.py SOURCE_FOLDER
"""

import pathlib
import random
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
from cuslice import recording_compact, recording_csv, recordings  # noqa: E402
from made import MICROSECONDS_OF_A_DAY as DAY  # noqa: E402
from made import UNIT, Compact, InAFolder, Row, as_compact, as_csv  # noqa: E402

MIB = 1 << 20
NOON = 20_000 * DAY + DAY // 2
UUIDS = ("GPU-830cff1a-1f2e-4a55-9c0b-3a0b1c2d3e4f", "GPU-5f01aa77-22bb-4c11-8d10-99aabbccddee")
ROWS = [
    Row(NOON, "allocate", 0x7F3A40000000, 64 * MIB, UUIDS[0], 1 << 30, 80 * MIB),
    Row(NOON + 10, "allocate", 0x7F3A48000000, 5 << 30, UUIDS[1], 6 << 30, 5 << 30, 8, 0x55AA),
    Row(NOON + 20, "allocate failure", 0, 3 << 30, UUIDS[0], 1 << 30, 80 * MIB),
    Row(NOON + 30, "free", 0x7F3A40000000, 64 * MIB, UUIDS[0], 2 << 30, 80 * MIB),
]


class Both(InAFolder):
    def test_both_forms_are_one_picture(self):
        text, compact = (self.picture(form(ROWS))[0]["vconcat"] for form in (as_csv, as_compact))
        self.assertEqual(text, compact)
        self.assertEqual([panel["title"]["subtitle"].split(" · ")[1] for panel in compact], [*UUIDS])
        text, compact = (self.page_data(form(ROWS)) for form in (as_csv, as_compact))
        self.assertEqual((text.pop("processes"), compact.pop("processes")), ([""], ["812"]))
        self.assertEqual(text, compact)

    def test_what_the_compact_form_can_say(self):
        for row in (
            Row(NOON, "allocate", 1, 0),
            Row(NOON, "allocate", (1 << 56) - 1, (1 << 40) - 1),
            Row(NOON, "allocate", 1 << 56, 1),
            Row(NOON, "allocate", 1, 1 << 40),
            Row(NOON, "allocate", (1 << 64) - 1, (1 << 64) - 1, held=0, limit=0),
            Row(NOON, "allocate", 1, 2, "", -1, 7 * UNIT),
            Row(NOON, "allocate failure", 0, (1 << 64) - 1, "GPU-" + "long" * 20, 5, 0),
        ):
            for following in ((), [row._replace(time=NOON + 1, action="free")]):
                rows = [row, *following]
                drawn = [self.replay(form(rows))[0].gpus() for form in (as_csv, as_compact)]
                self.assertEqual(drawn[0], drawn[1])
                self.assertEqual(sum(drawn[0][0].moments[0].live), row.size if row.action == "allocate" else 0)

    def test_times_are_those_of_the_recording(self):
        """They are written as low halves: over borders of 2³² microseconds, backwards and after pauses."""
        border = (NOON >> 32) + 1 << 32
        for times in (
            (border - 1, border, border + 1),
            (border + 5, border - 5, border + 6),
            tuple(NOON + hour * 3_600_000_000 for hour in range(9)),
            (NOON // DAY * DAY - 1, NOON // DAY * DAY + 1),
        ):
            rows = [Row(time, "allocate", 16 + 16 * i, 100) for i, time in enumerate(times)]
            for began in (times[0], times[0] - 1000, times[0] + 3):
                drawn = [self.replay(content)[0] for content in (as_csv(rows), as_compact(rows, began))]
                self.assertEqual((drawn[0].first, drawn[0].last), (drawn[1].first, drawn[1].last))
                self.assertEqual(drawn[0].gpus(), drawn[1].gpus())

    def test_the_name_says_nothing(self):
        name = self.file(as_compact(ROWS), "a.csv")
        self.assertEqual(len(recordings.replay([name], []).gpus()), 2)
        name = self.file(as_csv(ROWS), "a.trace")
        self.assertEqual(len(recordings.replay([name], []).gpus()), 2)


class Python(InAFolder):
    """The program's name, and stacks of its threads."""

    STACKS = (
        ("<module> (train.py:33)", 'two, words;100%\x7f\n" (/home/π/a.py:7)'),
        ("…",) + ("f (torch/a.py:1)",) * 120,
    )

    def rows(self):
        return [
            Row(NOON, "allocate", 16, 3 * MIB, stack=self.STACKS[0], thread=8),
            Row(NOON + 1, "allocate", 32, 2 * MIB),
            Row(NOON + 2, "allocate", 1 << 60, MIB, stack=self.STACKS[1]),
            Row(NOON + 3, "allocate failure", 0, 9 * MIB, stack=self.STACKS[1], thread=9),
            Row(NOON + 4, "allocate failure", 0, 9 * MIB),
        ]

    def test_blocks_and_refusals_have_the_stack_of_their_thread(self):
        for form in (as_csv, as_compact):
            for size in (24, 2400, 1 << 16):
                with mock.patch.object(recording_compact, "READ_AT_ONCE", size):
                    (gpu,) = self.replay(form(self.rows()))[0].gpus()
                stacks = [block.stack for block in gpu.moments[-1].largest]
                self.assertEqual(stacks, [self.STACKS[0], (), self.STACKS[1]])
                self.assertEqual([one.stack for one in gpu.refusals], [self.STACKS[1], ()])
                self.assertEqual([one.thread for one in gpu.refusals], [9, 7])

    def test_of_refusals_that_share_a_mark_the_largest_says_who_asked(self):
        stacks = [(f"f (a.py:{i})",) for i in range(900)]
        rows = [Row(NOON + i, "allocate failure", 0, i % 3, thread=i, stack=stack) for i, stack in enumerate(stacks)]
        for form in (as_csv, as_compact):
            (gpu,) = self.replay(form(rows))[0].gpus()
            self.assertLessEqual(len(gpu.refusals), 200)
            for one in gpu.refusals:
                at = one.time - gpu.moments[0].time
                self.assertEqual((one.size, one.thread, one.stack), (2, at, stacks[at]))

    def test_rows_that_are_read_one_by_one_have_them_too(self):
        for change in (
            lambda text: text.replace("\n", "\r\n"),
            lambda text: "".join(reversed_columns(line) for line in text.splitlines()),
        ):
            text = change(as_csv(self.rows(), program="a, b").decode())
            result, _ = self.replay(text)
            self.assertEqual(result.programs, ["a, b"])
            self.assertEqual(result.gpus(), self.replay(as_compact(self.rows()))[0].gpus())

    def test_the_programs_name_stands_in_the_first_row(self):
        for form in (as_csv, as_compact):
            for name in ("", "python train.py", 'a,b;%2C\n"π', "long " * 300):
                self.assertEqual(self.replay(form(ROWS, program=name))[0].programs, [name])
            self.assertEqual(self.replay(form(ROWS))[0].programs, [""])
        header, first, second = as_csv(ROWS[:2], program="").decode().splitlines(keepends=True)
        self.assertEqual(self.replay(header + first + second.replace(",,", ",python,"))[0].programs, [""])

    def test_a_stack_without_its_event_means_nothing(self):
        def made(change):
            compact = Compact(NOON)
            compact.add(ROWS[0])
            compact.add(ROWS[1])
            change(compact)
            compact.add(ROWS[1]._replace(address=64))
            compact.add(ROWS[2])
            return bytes(compact.data)

        def torn(at):
            def change(compact):
                compact.text(10, "f (a.py:1);g (a.py:2)")
                compact.data[at:] = bytes([0]) + compact.data[at:][1:]

            return change

        stack = "f (a.py:1);g (a.py:2);h (a.py:3)"
        for change in (
            torn(-48),  # the first piece
            torn(-24),  # the last one
            lambda one: (one.text(10, stack), one.record(0)),
            lambda one: (one.text(10, stack), one.data.extend(bytes(24 * 2000))),
            lambda one: (one.text(10, stack), one.record(5, address=NOON)),
            lambda one: (one.text(10, stack), one.text(9, "python")),
            lambda one: (one.text(10, stack), one.record(8), one.record(5, address=NOON)),
            lambda one: (one.text(10, stack), one.record(10, 1, time=len(stack))),  # a piece twice
            lambda one: (one.text(10, stack), one.record(10, 3, time=len(stack))),  # one too many
            lambda one: one.record(10, 0, time=(1 << 32) - 1),
            lambda one: one.record(10, 1, time=32),
            lambda one: one.record(10, 0, time=0),
            lambda one: [one.record(10, piece, time=48) for piece in (0, 2, 1)],
            lambda one: [one.record(10, min(piece, 255), time=4800) for piece in range(300)],
        ):
            for size in (24, 1 << 16):
                with mock.patch.object(recording_compact, "READ_AT_ONCE", size):
                    gpus = self.replay(made(change))[0].gpus()
                self.assertEqual(gpus, self.replay(made(lambda one: None))[0].gpus())

    def test_of_two_stacks_the_one_before_the_event_is_its(self):
        compact = Compact(NOON)
        compact.add(ROWS[0])
        compact.text(10, "f (a.py:1);killed (a.py:2)")
        compact.add(ROWS[0]._replace(address=64, stack=("g (a.py:3)",)))
        gpu = self.replay(bytes(compact.data))[0].gpus()[0]
        self.assertEqual([block.stack for block in gpu.moments[-1].largest], [(), ("g (a.py:3)",)])

    def test_half_a_programs_name_is_none(self):
        whole = as_compact(ROWS, program="python a/long/path/to/train.py")
        self.assertEqual(self.replay(whole)[0].programs, ["python a/long/path/to/train.py"])
        for piece in (48, 72):
            self.assertEqual(self.replay(whole[:piece] + bytes(24) + whole[piece + 24 :])[0].programs, [""])


def reversed_columns(line):
    return ",".join(reversed(line.split(","))) + "\n"


class Killed(InAFolder):
    def test_filler_behind_and_between_rows_is_passed_over(self):
        wanted = self.gpus(as_csv(ROWS))
        for filler in (1, 2, 100, 300_000):
            header, *lines = as_csv(ROWS).splitlines(keepends=True)
            for text in (
                as_csv(ROWS) + b"\n" * filler,
                header + b"\n" * filler + b"".join(lines),
                header + lines[0] + b"\n" * filler + b"".join(lines[1:]) + b"\n" * filler,
            ):
                for size in (10, 100, 1 << 16):
                    with mock.patch.object(recording_csv, "READ_AT_ONCE", size if filler <= 100 else 1 << 16):
                        result, notes = self.replay(text)
                    self.assertEqual(({gpu.name: gpu for gpu in result.gpus()}, notes), (wanted, []))
        compact, zeros = as_compact(ROWS), bytes(24 * 7)
        event = len(compact) - 24
        for size in (24, 240, 1 << 16):
            for content in (compact + bytes(24 * 5000 + 5), compact[:event] + zeros + compact[event:] + zeros):
                with mock.patch.object(recording_compact, "READ_AT_ONCE", size):
                    result, notes = self.replay(content)
                self.assertEqual(({gpu.name: gpu for gpu in result.gpus()}, notes), (wanted, []))

    def test_a_row_that_a_killed_program_had_not_finished_is_left_out_and_noted(self):
        header, *lines = as_csv(ROWS).decode().splitlines(keepends=True)
        torn = lines[1].partition(",")[2][:-1]
        for end in range(1, len(torn) + 1):
            hole = "\n\n" + torn[:end] + "\n" * (len(torn) + 1 - end)
            text = header + lines[0] + hole + "".join(lines[2:])
            result, notes = self.replay(text)
            self.assertEqual([gpu.name for gpu in result.gpus()], [UUIDS[0]])
            self.assertEqual(notes, ["0.csv: 1 rows that a killed program had not finished are left out"])

    def test_nothing_else_is_taken_for_such_a_row(self):
        header, *lines = as_csv(ROWS).decode().splitlines(keepends=True)
        torn = lines[1].partition(",")[2]
        for hole in (
            torn,  # no empty line before it
            "\n\n12,\n",
            "\n\n12," + torn[:30] + "\n",
            "\n\n12:00:0x\n",
            "\n\n12:00:00.0000000\n",
            "\n\n1:2\n",
            "\n\n,allocate\n",
            "\n\n" + torn + torn,
            "\n\nx\n",
            "\n\n \n",
        ):
            with self.subTest(hole=hole):
                code, message = self.refused(header + lines[0] + hole + "".join(lines[2:]))
            self.assertEqual(code, 65)
            self.assertRegex(message, r"0.csv:[3456]: is no row of a recording: ")

    def test_an_unfinished_record_is_left_out(self):
        compact = as_compact(ROWS)
        unfinished = bytes(1) + compact[-23:]
        result, notes = self.replay(compact[:-24] + unfinished + compact[-24:])
        self.assertEqual((result.gpus(), notes), (self.replay(compact)[0].gpus(), []))

    def test_a_last_record_that_was_cut_off_is_left_out_and_noted(self):
        compact = as_compact(ROWS)
        for cut in range(1, 24):
            result, notes = self.replay(compact + compact[-24:][:cut])
            self.assertEqual(result.gpus(), self.replay(compact)[0].gpus())
            number = len(compact) // 24
            self.assertEqual(notes, [f"0.csv: record {number}: the last row is cut off, and is left out"])

    def test_only_filler_is_no_recording(self):
        header = as_csv([])
        for content in (header + b"\n" * 100_000, bytes(Compact(NOON).data) + bytes(240_000)):
            self.assertEqual(self.refused(content), (65, "0.csv: has no rows: nothing was allocated"))


class Mistakes(InAFolder):
    def test_a_compact_recording_that_makes_no_sense_is_refused_with_the_record(self):
        row = ROWS[0]

        def made(change, then=()):
            compact = Compact(NOON)
            compact.add(row)
            compact.add(row)
            number = len(compact.data) // 24
            change(compact)
            for record in then:
                compact.data += record
            return number, bytes(compact.data)

        event = as_compact([row])[-24:]
        wide = bytes([0x11]) + event[1:]
        for change, later in (
            (lambda one: one.record(11), 0),
            (lambda one: one.record(0x14, 1, 1), 0),
            (lambda one: one.record(4, 0), 0),
            (lambda one: one.record(1, 2, 1), 0),  # a place that nothing defines
            (lambda one: one.record(1, 1, 2), 0),  # a source
            (lambda one: (one.record(4, 1, 5), one.record(1, 1, 1)), 1),  # a GPU without a name
            (lambda one: (one.record(7, 0, 3, 17), one.record(4, 1, 3), one.record(1, 1, 1)), 2),  # half of one
            (lambda one: one.data.extend(wide), 0),  # no size before it
            (lambda one: (one.record(8), one.data.extend(event), one.data.extend(wide)), 2),
            (lambda one: (one.record(8), one.record(0), one.data.extend(wide)), 2),
        ):
            number, content = made(change, [event])
            for size in (24, 1 << 16):
                with mock.patch.object(recording_compact, "READ_AT_ONCE", size):
                    refused = self.refused(content)
                self.assertEqual(refused, (65, f"0.csv: record {number + later}: is no row of a recording"))

    def test_a_size_for_nobody_means_nothing(self):
        compact = Compact(NOON)
        for row in ROWS:
            compact.record(8, address=5)
            compact.add(row)
        self.assertEqual(self.replay(bytes(compact.data))[0].gpus(), self.replay(as_csv(ROWS))[0].gpus())

    def test_numbers_may_be_defined_anew(self):
        rows = [Row(NOON + i, "allocate", 16 * i + 16, 100, f"GPU-{i % 3}", 1000 + i, 0, thread=i) for i in range(1000)]
        self.assertEqual(self.replay(as_compact(rows))[0].gpus(), self.replay(as_csv(rows))[0].gpus())

    def test_headers(self):
        whole = as_compact(ROWS)
        for end in (8, 24, 47):
            self.assertEqual(self.refused(whole[:end]), (65, "0.csv: is no recording: its header is cut off"))
        for header in ({"version": 2}, {"size": 32}):
            content = bytes(Compact(NOON, **header).data) + whole[48:]
            self.assertEqual(self.refused(content), (65, "0.csv: is of a newer version of cuslice"))
        self.assertEqual(self.refused(whole[:48])[1], "0.csv: has no rows: nothing was allocated")
        self.assertEqual(self.refused(bytes(1000))[0], 65)

    def test_any_bytes_are_an_answer(self):
        chance = random.Random(3)
        whole = as_compact([Row(NOON + i, "allocate", 16 * i, 100) for i in range(50)])
        for _ in range(500):
            content = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                content[chance.randrange(48, len(content))] = chance.randrange(256)
            try:
                self.picture(bytes(content))
                self.page(bytes(content))
            except recordings.RecordingError:
                pass


if __name__ == "__main__":
    unittest.main()
