#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `cuslice plot` without a browser: its figures are the recording's, its words stay words.

page_test.py SOURCE_FOLDER
"""

import base64
import hashlib
import html.parser
import itertools
import os
import pathlib
import random
import re
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
import plain  # noqa: E402
from cuslice import gpu_names, plot_page, plot_stacks, plot_text, recordings  # noqa: E402
from made import MICROSECONDS_OF_A_DAY as DAY  # noqa: E402
from made import HEADER, InAFolder, Row, as_compact, as_csv, data_of, some_rows  # noqa: E402

MIB = 1 << 20
NOON = 20_000 * DAY + DAY // 2
T4, SECOND_T4 = "GPU-830cff1a-d0c1-4138-8db3-860e8072f9a3", "GPU-14a7499b-18a7-4c8b-989b-39e03ea73eb2"
REAL = "GPU-5f01aa77-22bb-4c11-8d10-99aabbccddee"
STACK = ("<module> (/home/a/run.py:33)", "train (train.py:12)", "_call_impl (torch/nn/modules/module.py:1553)")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;\"\u202e]]><!--"


class Elements(html.parser.HTMLParser):
    """The elements of a page, as a browser finds them, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


def scripts_of(page):
    return re.findall("<script>(.*?)</script>", page, re.S)


class Figures(InAFolder):
    def assert_drawn(self, data, gpus, first):
        self.assertEqual(len(data["gpus"]), len(gpus))
        for drawn, gpu in zip(data["gpus"], gpus):
            there = gpu.moments
            self.assertEqual(drawn["times"][: len(there)], [moment.time - first for moment in there])
            for moment, live, held, limit in zip(there, drawn["live"], drawn["held"], drawn["limit"]):
                classes = [0] * len(recordings.CLASSES)
                for at, size in zip(drawn["classes"], live):
                    classes[at] = size
                self.assertEqual((tuple(classes), held, limit), (moment.live, moment.held, moment.limit))
            self.assertEqual(drawn["refusals"], [[one.time - first, one.size, one.requests] for one in gpu.refusals])
            self.assert_blocks(drawn, there, first)

    def assert_blocks(self, drawn, moments, first):
        for moment, numbers in zip(moments, drawn["largest"]):
            listed = [drawn["blocks"][number] for number in numbers]
            right = [
                [
                    block.begun - first,
                    block.ended - first if block.ended >= 0 else -1,
                    block.size,
                    f"{block.address:#x}",
                    block.thread,
                    block.stream,
                    block.process,
                    *([drawn["frames"].index(plot_stacks.short_frame(block.stack))] if block.stack else []),
                ]
                for block in moment.largest[: drawn["listed"]]
            ]
            self.assertEqual(listed, right)

    def test_they_are_those_of_the_recording(self):
        for seed in range(6):
            chance = random.Random(seed)
            rows = [
                some_rows(chance, chance.choice((20, 600, 2000)), start=NOON + chance.randrange(99))
                for _ in range(chance.choice((1, 2)))
            ]
            of_day = [[row._replace(time=row.time - NOON + DAY // 2) for row in those] for those in rows]
            first = min(those[0].time for those in of_day)
            for form in (as_csv, as_compact):
                with self.subTest(seed=seed, form=form):
                    data = self.page_data(*map(form, rows))
                    self.assertEqual(data["start"], first)
                    self.assert_drawn(data, plain.drawn(of_day), first)

    def test_a_block_is_written_once_with_where_it_came_from(self):
        weights = Row(NOON, "allocate", 0x7F00, 64 * MIB, thread=11, stream=0x55AA)
        rows = [weights]
        for i in range(20):
            rows += [
                Row(NOON + 10 * i + 1, "allocate", 16 + 16 * i, MIB, thread=12),
                Row(NOON + 10 * i + 6, "free", 16 + 16 * i, MIB, thread=12),
            ]
        (gpu,) = self.page_data(as_csv(rows))["gpus"]
        self.assertEqual(gpu["frames"], [])
        self.assertEqual(gpu["blocks"][0], [0, -1, 64 * MIB, "0x7f00", 11, 0x55AA, 0])
        self.assertEqual(gpu["blocks"][1], [1, 6, MIB, "0x10", 12, 0, 0])
        self.assertEqual(len(gpu["blocks"]), 21)
        self.assertEqual(gpu["largest"][:4], [[0], [0, 1], [0], [0, 2]])

    def test_a_frame_is_written_once(self):
        stacks = (STACK, (), STACK, ("f (a.py:1)",))
        rows = [Row(NOON + i, "allocate", 16 + 16 * i, MIB, stack=stack) for i, stack in enumerate(stacks)]
        for form in (as_csv, as_compact):
            (gpu,) = self.page_data(form(rows))["gpus"]
            self.assertEqual(gpu["frames"], ["train (train.py:12)", "f (a.py:1)"])
            self.assertEqual([block[7:] for block in gpu["blocks"]], [[0], [], [0], [1]])

    def test_a_page_of_a_long_recording_is_bounded_and_says_what_it_leaves_out(self):
        chance = random.Random(4)
        rows = some_rows(chance, 20_000, ("GPU-a",), NOON)
        rows = [row._replace(size=chance.randrange(1 << 30)) if row.action == "allocate" else row for row in rows]
        with mock.patch.object(plot_page, "MOST_BLOCKS", 40):
            page = self.page(as_compact(rows))
        (gpu,) = (gpu for gpu in data_of(page)["gpus"] if gpu["name"] != "GPU 1")
        self.assertLessEqual(len(gpu["times"]), 901)
        self.assertLessEqual(len(gpu["blocks"]), 40)
        self.assertLess(gpu["listed"], 10)
        self.assertLess(len(page), 400_000)
        for wanted in ("each of 300 stretches", "share a mark", f"only the {gpu['listed']} largest"):
            self.assertIn(wanted, page)
        self.assertNotIn("stretch", self.page(as_csv(rows[:50])))

    def test_what_was_noted_while_reading_is_in_the_page(self):
        self.assertIn("the last row is cut off", self.page(HEADER + Row(NOON, "allocate", 16, 1).csv() + "7,09:"))

    def test_processes_have_the_numbers_that_files_tell(self):
        rows = [Row(NOON, "allocate", 16, 1)]
        names = [
            self.file(as_csv(rows), "a.csv"),
            self.file(as_csv(rows), "a.csv.4711"),
            self.file(as_compact(rows), "b"),
        ]
        followed = recordings.replay(names, [])
        self.assertEqual(followed.processes, ["", "4711", "812"])


class Asked(InAFolder):
    """The lists of who asked, below a chart."""

    def details(self, *contents):
        """The text of each."""
        found = re.findall("<details.*?</details>", self.page(*contents), re.S)
        return [Elements(re.sub("(</p>|</li>|</h3>)", "\\1\n", one)).text for one in found]

    def test_refusals_and_the_blocks_at_the_peak_have_their_whole_stacks(self):
        rows = [
            Row(NOON, "allocate", 0x7F00, 64 * MIB, thread=11, stack=STACK),
            Row(NOON + 1500, "allocate", 0x10, MIB, thread=12),
            Row(NOON + 2_000_000, "allocate failure", 0, 2 << 30, thread=13, stack=STACK[:2]),
            Row(NOON + 3_000_000, "free", 0x10, MIB),
            Row(NOON + 4_000_000, "allocate", 0x20, 100, "GPU-b"),
        ]
        wanted = [
            "Who asked",
            "Python's stacks, most recent call last.",
            "Refused requests",
            "2 GiB, after 2 s (12:00:02 UTC), thread 13",
            *STACK[:2],
            "The largest live blocks at the peak, after 1.5 ms (12:00:00 UTC)",
            "64 MiB, 0x7f00, thread 11, allocated after 0 µs (12:00:00 UTC)",
            *STACK,
            "1 MiB, 0x10, thread 12, allocated after 1.5 ms (12:00:00 UTC)",
            "No Python stack.",
        ]
        for form in (as_csv, as_compact):
            (text,) = self.details(form(rows))
            self.assertEqual([line for line in text.splitlines() if line], wanted)
            self.assertEqual(self.details(form([row._replace(stack=()) for row in rows])), [])

    def test_of_several_processes_each_block_has_its_own(self):
        rows = [Row(NOON, "allocate", 16, MIB, stack=STACK)]
        (text,) = self.details(as_compact(rows), as_csv(rows))
        self.assertIn("0x10, thread 7, process 812, allocated", text)
        self.assertIn("0x10, thread 7, process of file 2, allocated", text)

    def test_of_many_refusals_the_largest_are_listed(self):
        rows = [Row(NOON + i, "allocate failure", 0, MIB + i % 100, stack=STACK) for i in range(1000)]
        (text,) = self.details(as_compact(rows))
        self.assertIn("The 20 largest refused requests", text)
        self.assertEqual(text.count(STACK[0]), 20)
        self.assertIn("the largest of 5,", text)

    def test_the_programs_own_frame_stands_for_a_stack(self):
        library, frozen = STACK[2], "_run_code (<frozen runpy>:88)"
        for stack, wanted in (
            (STACK, "train (train.py:12)"),
            ((STACK[0], library, frozen), "<module> (a/run.py:33)"),
            ((library,), "_call_impl (modules/module.py:1553)"),
            (("<module> (<stdin>:1)", library), "<module> (<stdin>:1)"),
            (("f (/home/a (b)/c:d.py:3)", library), "f (a (b)/c:d.py:3)"),
            (("…", library), "_call_impl (modules/module.py:1553)"),
            (("…",), "…"),
            (("nothing that is known\u202e",), "nothing that is known?"),
            (("",), ""),
        ):
            self.assertEqual(plot_stacks.short_frame(stack), wanted)


class Words(InAFolder):
    def test_the_heading_is_the_program(self):
        rows = [Row(NOON, "allocate", 16, MIB)]
        for programs, title, files in (
            (["python train.py"], "python train.py", "a.csv"),
            ([None], "a.csv", ""),
            ([""], "a.csv", ""),
            (["a", "a", "a"], "a", "a.csv and 2 more"),
            (["a", "b", "a"], "a and 1 more", "a.csv and 2 more"),
            ([None, "b", None], "b and 1 more", "a.csv and 2 more"),
            (["x" * 300], "x" * 199 + "…", "a.csv"),
            (["a\u202e"], "a?", "a.csv"),
        ):
            for form in (as_csv, as_compact):
                followed, _ = self.replay(*(form(rows, program=program) for program in programs))
                names = ["a.csv", *(f"a.csv.{number}" for number in range(1, len(programs)))]
                heading = plot_text.heading_of(followed, followed.gpus(), None, names)
                self.assertEqual((heading.title, heading.files), (title, files))
                heading = plot_text.heading_of(followed, followed.gpus(), "batch 64", names)
                self.assertEqual((heading.title, heading.files), ("batch 64", ""))

    def test_the_file_is_named_below_the_programs_name(self):
        rows = [Row(NOON, "allocate", 16, MIB)]
        page = self.page(as_compact(rows, program="python a&b.py"))
        self.assertIn("<h1>python a&amp;b.py</h1>", page)
        self.assertIn('<p class="when">a.csv, 4 October 2024, 12:00:00 UTC', page)
        picture, _ = self.picture(as_compact(rows, program="python a&b.py"))
        self.assertEqual(picture["title"]["text"], "python a?b.py")
        self.assertNotIn("a.csv", picture["title"]["subtitle"])

    def test_nothing_of_a_recording_is_markup(self):
        def rows(words):
            gpu, stack = words.replace(",", ""), (words, words)
            return [
                Row(NOON, "allocate", 16, MIB, gpu, stack=stack),
                Row(NOON, "allocate", 16, MIB, T4),
                Row(NOON, "allocate failure", 0, MIB, gpu, stack=stack),
            ]

        wanted = Elements(self.page(as_csv(rows("GPU-a"))))
        for form, title in itertools.product((as_csv, as_compact), (HOSTILE, None)):
            page = self.page(form(rows(HOSTILE), program=HOSTILE), title=title)
            found = Elements(page)
            self.assertEqual((found.tags, found.attributes), (wanted.tags, wanted.attributes))
            self.assertIn("alert(2)", found.text)
            self.assertNotIn("\u202e", page)
            self.assertEqual(len(scripts_of(page)), 1)

    def test_nothing_runs_but_the_pages_own_script(self):
        page = self.page(as_csv([Row(NOON, "allocate", 16, MIB)]))
        policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1]
        (script,) = scripts_of(page)
        (style,) = re.findall("<style>(.*?)</style>", page, re.S)
        for kind, text in (("script", script), ("style", style)):
            hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{kind}-src 'sha256-{hashed}'", policy)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(page, r"(src|href)=")
        self.assertNotIn("style=", page)

    def test_gpus_have_the_names_that_this_machine_knows(self):
        folder = pathlib.Path(self.folder, "gpus/0000:04:00.0")
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\nGPU UUID: \t {REAL}\n")
        with mock.patch.object(gpu_names, "INFORMATION", os.path.join(self.folder, "gpus/*/information")):
            self.assertEqual(gpu_names.name_of(REAL), "NVIDIA H200")
            self.assertEqual(gpu_names.name_of(REAL[:-1] + "0"), "")
            rows = [Row(NOON, "allocate", 16 * i, MIB, gpu) for i, gpu in enumerate((T4, REAL, SECOND_T4, "GPU-a", ""))]
            followed, _ = self.replay(as_csv(rows))
            headings = plot_text.gpu_headings(followed.gpus())
        wanted = ["Tesla T4 (fake), GPU 0", "NVIDIA H200", "Tesla T4 (fake), GPU 2", "GPU 3", "GPU 4"]
        self.assertEqual([heading.name for heading in headings], wanted)
        self.assertEqual([heading.uuid for heading in headings], [T4, REAL, SECOND_T4, "GPU-a", ""])

    def test_a_gpu_that_nothing_knows_is_just_a_gpu(self):
        page = self.page(as_csv([Row(NOON, "allocate", 16, MIB, "")]))
        self.assertIn("<h2>GPU <small>not named in the recording</small></h2>", page)

    def test_facts_of_a_gpu(self):
        rows = [
            Row(NOON, "allocate", 16, 3 * MIB, limit=1 << 30, held=5 * MIB),
            Row(NOON + 1, "allocate failure", 0, 2 << 30, limit=1 << 30, held=5 * MIB),
            Row(NOON + 2, "allocate failure", 0, 2 << 30, limit=1 << 30, held=5 * MIB),
        ]
        (heading,) = plot_text.gpu_headings(self.replay(as_csv(rows))[0].gpus())
        wanted = {"limit": "1 GiB", "peak live": "3 MiB", "peak held": "5 MiB", "refused": "2 times"}
        self.assertEqual(dict(heading.facts), wanted)

    def test_the_day_is_said_where_the_recording_or_its_file_tells(self):
        rows = [Row(NOON + 3_000_000, "allocate", 16, 1), Row(NOON + 5_500_000, "free", 16, 1)]
        day = "4 October 2024, 12:00:03 UTC, 2.5 s"
        for form, changed, wanted in (
            (as_compact, 0, day),
            (as_csv, NOON + 9_000_000, day),
            (as_csv, NOON + 900_000_000, "12:00:03 UTC, 2.5 s"),  # a copy, maybe
            (as_csv, NOON, "12:00:03 UTC, 2.5 s"),
        ):
            name = self.file(form(rows))
            os.utime(name, (changed / 1e6, changed / 1e6))
            self.assertEqual(plot_text.written_time(recordings.replay([name], [])), wanted)

    def test_sizes_and_durations(self):
        for size, text in (
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (3 << 30, "3 GiB"),
            (1 << 65, "32 EiB"),
        ):
            self.assertEqual(plot_text.written_size(size), text)
        for length, text in (
            (7, "7 µs"),
            (1500, "1.5 ms"),
            (2_230_000, "2.23 s"),
            (200_000_000, "3 min 20 s"),
            (7_500_000_000, "2 h 5 min"),
        ):
            self.assertEqual(plot_text.written_duration(length), text)


if __name__ == "__main__":
    unittest.main()
