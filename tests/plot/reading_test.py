#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cuslice plot` reads out of recordings, and the picture's specification.

reading_test.py SOURCE_FOLDER
"""

import json
import os
import pathlib
import random
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
from cuslice import plot_text, plot_vega, recordings  # noqa: E402
from made import HEADER, InAFolder  # noqa: E402

MIB = 1 << 20


def row(second, action, address, size, gpu="GPU-a", limit="", held=""):
    whole, fraction = divmod(round(second * 1_000_000), 1_000_000)
    time = f"{whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}.{fraction:06}"
    return f"7,{time},{action},{address:#x},{size},0x0,{gpu},{limit},{held}\n"


def live(gpu):
    return [sum(moment.live) for moment in gpu.moments]


def held(gpu):
    return [moment.held for moment in gpu.moments]


class Reading(InAFolder):
    def test_each_gpu_has_its_own_memory_limit_and_refusals(self):
        result, notes = self.replay(
            HEADER
            + row(1, "allocate", 16, 100, "GPU-a", 1000, 300)
            + row(2, "allocate", 32, 2 * MIB, "GPU-b", 5 * MIB, 3 * MIB)
            + row(3, "allocate failure", 0, 900, "GPU-a", 1000, 300)
            + row(4, "free", 32, 2 * MIB, "GPU-b", 5 * MIB, 3 * MIB)
        )
        self.assertEqual(notes, [])
        a, b = result.gpus()
        self.assertEqual((a.name, b.name), ("GPU-a", "GPU-b"))
        self.assertEqual((live(a), live(b)), ([100, 100], [2 * MIB, 0]))
        self.assertEqual([moment.live[2] for moment in b.moments], [2 * MIB, 0])
        self.assertEqual([moment.limit for moment in a.moments + b.moments], [1000] * 2 + [5 * MIB] * 2)
        self.assertEqual((held(a), held(b)), ([300] * 2, [3 * MIB] * 2))
        self.assertEqual(a.refusals, [recordings.Refusal(3_000_000, 900, 1, 7, ())])
        self.assertEqual(b.refusals, [])

    def test_rmm_and_older_recordings_have_one_nameless_gpu(self):
        old = "Thread,Time,Action,Pointer,Size,Stream\n"
        for time in ("10:00:00.000002", "10:00:00:000002"):
            result, _ = self.replay(old + f"1,{time},allocate,0x10,100,0\n1,{time},allocate failure,0x0,7,0x0\n")
            (gpu,) = result.gpus()
            self.assertEqual((gpu.name, gpu.peak), ("", 100))
            self.assertEqual([(moment.held, moment.limit) for moment in gpu.moments], [(-1, -1)] * 2)
            self.assertEqual(result.first, 36_000_000_002)

    def test_columns_are_found_by_name_and_others_passed_over(self):
        for header, line in (
            ("Size,New,Pointer,Action,Time", "5,x,0x1,allocate,00:00:01.000000"),
            ("New,Size,Pointer,Action,Time,Held", "x,5,0x1,allocate,00:00:01.000000,7"),
        ):
            self.assertEqual(self.gpus(f"{header}\n{line}\n")[""].peak, 5)

    def test_a_last_row_that_was_cut_off_is_left_out_and_noted(self):
        whole = HEADER + row(1, "allocate", 16, 100)
        for cut in range(1, len(row(2, "allocate", 32, 50))):
            result, notes = self.replay(whole + row(2, "allocate", 32, 50)[:cut])
            self.assertEqual(result.gpus()[0].peak, 100)
            self.assertEqual(len(notes), 1)
            self.assertIn("0.csv:3: the last row is cut off", notes[0])

    def test_what_is_no_recording_is_refused_with_the_line(self):
        good = row(1, "allocate", 16, 100)
        self.assertEqual(self.refused(""), (65, "0.csv: is empty"))
        self.assertEqual(self.refused(HEADER), (65, "0.csv: has no rows: nothing was allocated"))
        self.assertEqual(self.refused("a,b\n1,2\n"), (65, "0.csv: is no recording: line 1 has no column Time"))
        self.assertEqual(self.refused(bytes(range(256)) * 100)[0], 65)
        self.assertEqual(self.refused(b"\0" * 100_000)[0], 65)
        for broken in (
            "\r\n",
            "1,2,3\n",
            good.replace("allocate", "lose"),
            good.replace("0x10", "here"),
            good.replace(",100,", ",-1,"),
            good.replace(",100,", f",{1 << 64},"),
            good.replace("00:00:01", "yesterday"),
            good.replace("0x0", "0x0,0x0"),
            good.replace("GPU-a,,", "GPU-a,much,"),
            "1" * 10_000 + "\n",
            good.replace("GPU-a", "G" * 5000),
            # A longer row and a shorter one, which are as many fields together as two rows.
            good[:-1] + ",7\n" + good[2:],
        ):
            code, message = self.refused(HEADER + good + broken + good)
            self.assertEqual(code, 65)
            self.assertTrue(message.startswith("0.csv:3: is no row of a recording: "), message)
            self.assertLess(len(message), 200)
        self.assertEqual(self.refused(HEADER + good, "")[1], "1.csv: is empty")

    def test_files_that_cannot_be_read(self):
        for name, why in (("none.csv", "No such file or directory"), (".", "is not a regular file")):
            with self.assertRaisesRegex(recordings.RecordingError, why) as caught:
                recordings.replay([os.path.join(self.folder, name)], [])
            self.assertEqual(caught.exception.code, 66)
        os.mkfifo(os.path.join(self.folder, "pipe"))  # which nobody writes to: reading it would wait
        with self.assertRaisesRegex(recordings.RecordingError, "is not a regular file"):
            recordings.replay([os.path.join(self.folder, "pipe")], [])

    def test_midnight_is_between_two_rows_or_two_files(self):
        late, early = row(86_399, "allocate", 16, 1), row(1, "allocate", 32, 2)
        for texts in ((HEADER + late + early,), (HEADER + late, HEADER + early), (HEADER + early, HEADER + late)):
            result, _ = self.replay(*texts)
            self.assertEqual(result.last - result.first, 2_000_000)
            self.assertEqual(result.gpus()[0].peak, 3)

    def test_threads_that_write_out_of_order_do_not_go_back_in_time(self):
        result, _ = self.replay(HEADER + row(2, "allocate", 16, 1) + row(1, "allocate", 32, 1))
        self.assertEqual([moment.time for moment in result.gpus()[0].moments], [2_000_000] * 2)

    def test_threads_that_write_out_of_order_at_midnight_do_not_make_it_a_day_later(self):
        """And a pause of most of a day is one."""
        late, early = row(86_399.9, "allocate", 16, 1), row(0.1, "allocate", 32, 1)
        for texts, length in (
            ([late, early, row(86_399.95, "free", 16, 1), row(0.2, "free", 32, 1)], 300_000),
            ([early, late, row(0.2, "free", 32, 1)], 100_000),
            ([early, row(86_000, "free", 32, 1)], 85_999_900_000),
        ):
            for padding in (0, 2000):  # read one by one, and many at once
                first, *others = texts
                rows = [first, *[first.replace("allocate", "allocate failure")] * padding, *others]
                result, _ = self.replay(HEADER + "".join(rows))
                self.assertEqual(result.last - result.first, length)

    def test_processes_that_share_a_gpu_are_added_up(self):
        gpus = self.gpus(
            HEADER + row(1, "allocate", 16, 100, held=300, limit=2000) + row(3, "free", 16, 100, held=300, limit=2000),
            HEADER + row(2, "allocate", 16, 50, held=250, limit=2000) + row(4, "free", 16, 50, held=250, limit=2000),
        )
        gpu = gpus["GPU-a"]
        self.assertEqual((live(gpu), held(gpu)), ([100, 150, 50, 0], [300, 550, 550, 550]))
        self.assertEqual(gpu.processes, 2)

    def test_a_process_whose_recording_is_over_makes_room_where_the_limit_says_that_it_has_ended(self):
        gpus = self.gpus(
            HEADER + row(1, "allocate", 16, 600, held=700, limit=1000),
            HEADER
            + row(2, "allocate", 16, 100, held=200, limit=1000)
            + row(3, "allocate", 32, 500, held=700, limit=1000),
        )
        gpu = gpus["GPU-a"]
        self.assertEqual((live(gpu), held(gpu)), ([600, 700, 600], [700, 900, 700]))

    def test_figures_beyond_what_a_machine_can_have_are_drawn(self):
        most = (1 << 64) - 1
        text = HEADER + row(1, "allocate", most, most, held=most) + row(2, "allocate", 16, most, limit=most, held=most)
        for texts in ((text,), (text, text), (text, text.replace("00:00:02", f"{10**20}:00:02"))):
            json.dumps(self.picture(*texts)[0])
            self.page(*texts)
            self.assertGreaterEqual(self.replay(*texts)[0].gpus()[0].peak, 2 * most)

    def test_frees_of_unknown_memory_are_noted(self):
        result, notes = self.replay(HEADER + row(1, "allocate", 16, 1) + row(2, "free", 32, 5))
        self.assertEqual(live(result.gpus()[0]), [1, 1])
        self.assertEqual(notes, ["1 frees of memory that no row allocates are left out"])


class Picture(InAFolder):
    @staticmethod
    def data(panel, layer):
        return panel["layer"][layer]["data"]["values"]

    def test_a_panel_for_each_gpu_with_areas_lines_and_marks(self):
        limit = 100 * MIB
        picture, _ = self.picture(
            HEADER
            + row(1, "allocate", 16, 1024, "GPU-a", limit, 30 * MIB)
            + row(2, "allocate", 32, 8 * MIB, "GPU-a", limit, 38 * MIB)
            + row(2.5, "allocate failure", 0, 90 * MIB, "GPU-a", limit, 38 * MIB)
            + row(3, "allocate", 48, MIB, "GPU-b")
        )
        json.dumps(picture)
        self.assertEqual([panel["title"]["text"] for panel in picture["vconcat"]], ["GPU 0", "GPU 1"])
        first, second = picture["vconcat"]
        self.assertEqual(
            first["title"]["subtitle"], "limit 100 MiB, peak live 8 MiB, peak held 38 MiB, refused once · GPU-a"
        )
        self.assertEqual(second["title"]["subtitle"], "limit not recorded, peak live 1 MiB, refused never · GPU-b")
        areas = self.data(first, 0)
        self.assertEqual([point["b"] for point in areas if point["c"] == "up to 16 MiB"], [0, 8, 8, 8])
        self.assertEqual([point["s"] for point in areas if point["c"] == "up to 64 KiB"], [0, 1, 1.5, 2])
        lines = {(line["line"], line["s"], line["b"]) for line in self.data(first, 1)}
        self.assertEqual(
            lines, {("limit", 0, 100), ("limit", 2, 100), ("held", 0, 30), ("held", 1, 38), ("held", 2, 38)}
        )
        (mark,) = self.data(first, 2)
        self.assertEqual((mark["s"], mark["label"]), (1.5, "90 MiB"))
        self.assertEqual(self.data(second, 1), [])
        self.assertNotIn("http", json.dumps(picture))

    def test_a_million_rows_would_be_thinned_out_and_keep_peaks_and_refusals(self):
        random.seed(5)
        rows, blocks = [], []
        for i in range(20_000):
            if blocks and random.random() < 0.5:
                rows.append(row(i / 100, "free", *blocks.pop()))
            else:
                blocks.append((16 * (i + 1), random.randrange(1, 1000)))
                rows.append(row(i / 100, "allocate", *blocks[-1]))
            if i == 7777:
                rows.append(row(i / 100, "allocate", 1, 5 << 30))
                rows.append(row(i / 100, "free", 1, 5 << 30))
            if i in (5554, 5555, 5556):
                rows.append(row(i / 100, "allocate failure", 0, 1, limit=1 << 40, held=1 << 39 if i == 5555 else 6))
            if i % 20 == 0:
                rows.append(row(i / 100, "allocate failure", 0, (4 << 30) + i * 7 % 9973))
        result, _ = self.replay(HEADER + "".join(rows))
        (gpu,) = result.gpus()
        self.assertLessEqual(len(gpu.moments), 900)
        self.assertGreater(len(gpu.moments), 900 // 4)
        self.assertEqual(max(live(gpu)), gpu.peak)
        self.assertGreater(gpu.peak, 5 << 30)
        self.assertEqual(max(held(gpu)), 1 << 39)
        self.assertEqual(gpu.moments, sorted(gpu.moments, key=lambda moment: moment.time))
        self.assertEqual(gpu.moments[-1].time, result.last)
        self.assertLessEqual(len(gpu.refusals), 200)
        self.assertEqual(sum(refusal.requests for refusal in gpu.refusals), gpu.refused)
        self.assertEqual(gpu.refused, sum(",allocate failure," in one for one in rows))
        largest = (4 << 30) + max(i * 7 % 9973 for i in range(0, 20_000, 20))
        self.assertEqual(max(refusal.size for refusal in gpu.refusals), largest)
        scales = plot_vega.Scales(result.first, result.last, plot_vega.unit_of([gpu]))
        panel = plot_vega.panel(gpu, plot_text.GpuHeading("GPU", "", []), scales)
        marks = self.data(panel, 2)
        self.assertLessEqual(len([mark for mark in marks if mark["label"]]), plot_vega.MOST_LABELS + 1)

    def test_nothing_of_a_recording_is_markup(self):
        hostile = "</script><script>alert(1)</script>&\"'"
        written = json.dumps(self.picture(HEADER + row(1, "allocate", 16, 1, hostile), title=hostile)[0])
        self.assertNotIn("<", written)
        self.assertNotIn("&", written)

    def test_all_at_one_moment_and_of_no_size(self):
        picture, _ = self.picture(HEADER + row(1, "allocate failure", 0, 0))
        x, y = (picture["vconcat"][0]["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
        self.assertGreater(x[1], x[0])
        self.assertGreater(y[1], y[0])


if __name__ == "__main__":
    unittest.main()
