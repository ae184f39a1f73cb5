# SPDX-License-Identifier: Apache-2.0
"""The timeline of scripts/turns_svg.py."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/turns_svg.py"
HEAD = "gpu,pid,engine,begin,end\n"
# Two processes take turns of 2 ms, twice as many for the first; that one copies as well.
START = 5_000_000_000
TURNS = [(7, "compute", 0, 2), (9, "compute", 2, 4), (7, "compute", 4, 6), (7, "copy_in", 1, 5)]


def csv(turns=TURNS, gpu=0):
    return "".join(f"{gpu},{pid},{engine},{START + begin * 10**6},{START + end * 10**6}\n" for pid, engine, begin, end in turns)


class Drawn:
    def __init__(self, text, *words):
        with tempfile.TemporaryDirectory() as folder:
            turns, picture = pathlib.Path(folder) / "turns.csv", pathlib.Path(folder) / "picture.svg"
            turns.write_text(text)
            self.ended = subprocess.run(
                [sys.executable, SCRIPT, turns, picture, *words], capture_output=True, text=True, check=False
            )
            self.svg = picture.read_text() if picture.exists() else ""
        if self.svg:
            xml.etree.ElementTree.fromstring(self.svg)
        self.texts = re.findall(r"<text [^>]*>([^<]*)</text>", self.svg)

    def bars(self):
        """Of each row the places where its bars begin, and how long they are."""
        paths = re.findall(r'<path d="(M[^"]*)" class="process\d-fill"', self.svg)
        return [[tuple(map(float, bar)) for bar in re.findall(r"M([\d.]+) \d+h([\d.]+)", path)] for path in paths]


class Timeline(unittest.TestCase):
    def test_each_process_has_its_share_of_compute(self):
        texts = Drawn(HEAD + csv()).texts
        self.assertIn("process 7: 67% of compute", texts)
        self.assertIn("process 9: 33% of compute", texts)

    def test_there_is_a_row_for_each_process_and_engine(self):
        drawn = Drawn(HEAD + csv(), "--name", "7=train.py")
        rows = [text for text in drawn.texts if ", " in text]
        self.assertEqual(rows, ["train.py, compute", "train.py, copies in", "process 9, compute"])
        first, copies, second = drawn.bars()
        (begin, length), (again, _) = first
        self.assertAlmostEqual(again - begin, 2 * length, delta=0.05)
        self.assertAlmostEqual(second[0][0], begin + length, delta=0.05)
        self.assertAlmostEqual(copies[0][1], 2 * length, delta=0.05)

    def test_times_count_from_the_first_turn(self):
        numbers = [text for text in Drawn(HEAD + csv()).texts if re.fullmatch(r"[\d.]+", text)]
        self.assertEqual(numbers, ["0", "1", "2", "3", "4", "5", "6"])

    def test_a_part_of_the_time_is_drawn_alone(self):
        drawn = Drawn(HEAD + csv(), "--from", "3", "--to", "5")
        self.assertIn("process 7: 50% of compute", drawn.texts)
        self.assertEqual([len(bars) for bars in drawn.bars()], [1, 1, 1])
        self.assertLess(drawn.svg.index("process 7:"), drawn.svg.index("process 9:"))

    def test_rows_of_several_gpus_say_which(self):
        texts = Drawn(HEAD + csv() + csv(gpu=1)).texts
        self.assertIn("GPU 0: process 9, compute", texts)
        self.assertIn("GPU 1: process 9, compute", texts)

    def test_turns_that_follow_each_other_are_one_bar(self):
        turns = [(7, "compute", i, i + 1) for i in range(1000)]
        self.assertEqual(len(Drawn(HEAD + csv(turns)).bars()[0]), 1)

    def test_both_themes_have_a_colour_for_each_process(self):
        light, _, dark = Drawn(HEAD + csv()).svg.partition(".process0-fill")[2].partition("prefers-color-scheme:dark")
        for number in 1, 2, 3, 4, 5:
            self.assertIn(f".process{number}-fill", light)
            self.assertIn(f".process{number}-fill", dark)

    def test_what_has_no_turns_is_said(self):
        for text, why in ("a,b\n", "the first line isn't gpu,pid,engine,begin,end"), (HEAD, "no turns between these times"):
            ended = Drawn(text).ended
            self.assertEqual(ended.returncode, 1)
            self.assertIn(why, ended.stderr)


if __name__ == "__main__":
    unittest.main()
