#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot` as a command: words, files and codes, with a stand-in for what draws.

command_test.py SOURCE_FOLDER
"""

import contextlib
import io
import os
import pathlib
import sys
import tracemalloc
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
from cuslice import plot  # noqa: E402
from made import MICROSECONDS_OF_A_DAY as DAY  # noqa: E402
from made import HEADER, InAFolder, Row, as_csv  # noqa: E402

MIDNIGHT = 20_000 * DAY
ROW = Row(MIDNIGHT + DAY // 2, "allocate", 16, 1)
WHOLE = HEADER + ROW.csv()


class Command(InAFolder):
    def run_main(self, *words):
        out, err = io.StringIO(), io.StringIO()
        before, sys.argv = sys.argv, ["plot", *words]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = plot.main()
        finally:
            sys.argv = before
        return code, out.getvalue(), err.getvalue()

    def with_converter(self, module):
        before = sys.modules.get("vl_convert")
        sys.modules["vl_convert"] = module

        def undo():
            sys.modules.pop("vl_convert")
            if before:
                sys.modules["vl_convert"] = before

        self.addCleanup(undo)


class CommandLine(Command):
    def test_the_ending_says_what_is_made(self):
        given = []
        module = types.ModuleType("vl_convert")
        module.vegalite_to_html = lambda spec, bundle: given.append(bundle) or "<head><title>Chart</title></head>"
        module.vegalite_to_svg = lambda spec: "<svg/>"
        module.vegalite_to_png = lambda spec, scale: b"PNG"
        self.with_converter(module)
        recording = self.file(WHOLE, "trace.csv")
        page = os.path.join(self.folder, "trace.html")
        self.assertEqual(self.run_main(recording), (0, page + "\n", ""))
        self.assertEqual(given, [True])
        content = pathlib.Path(page).read_text()
        self.assertIn("default-src 'none'", content)
        self.assertIn("<title>GPU memory", content)
        for ending, content in ((".svg", b"<svg/>"), (".PNG", b"PNG")):
            out = os.path.join(self.folder, "b" + ending)
            self.assertEqual(self.run_main("-o", out, recording), (0, out + "\n", ""))
            self.assertEqual(pathlib.Path(out).read_bytes(), content)
        code, _, err = self.run_main(recording, "-o", os.path.join(self.folder, "none/b.svg"))
        self.assertEqual((code, err.endswith("none/b.svg: No such file or directory\n")), (73, True))

    def test_mistakes_have_a_line_and_a_code(self):
        recording = self.file(WHOLE + "1,", "trace.csv")
        self.assertEqual(
            self.run_main(),
            (64, "", "cuslice: plot: the following arguments are required: FILE: " "cuslice plot FILE... [-o OUT]\n"),
        )
        self.assertEqual(self.run_main("--json", recording)[0], 64)
        self.assertEqual(self.run_main(recording, "-o", "a.pdf")[2].count("\n"), 1)
        self.assertEqual(self.run_main(recording, "-o", "a.pdf")[0], 64)
        as_page = self.file(WHOLE, "recording.svg")
        code, _, err = self.run_main(as_page, "-o", as_page)
        self.assertEqual(code, 64)
        self.assertIn("is a recording itself", err)
        self.assertEqual(pathlib.Path(as_page).read_text()[:6], "Thread")
        self.with_converter(None)  # importing it fails
        code, _, err = self.run_main(recording)
        self.assertEqual(code, 69)
        self.assertIn("vl-convert-python", err)
        self.assertNotIn("trace.csv", err)  # which may take minutes to read
        self.assertFalse(os.path.exists(os.path.join(self.folder, "trace.html")))


class Recordings(Command):
    """What a whole run of the command makes of them."""

    def picture(self, content):
        """The picture, and what is said beside it."""
        pictures = []
        module = types.ModuleType("vl_convert")
        module.vegalite_to_svg = lambda spec: pictures.append(spec) or "<svg/>"
        self.with_converter(module)
        code, _, said = self.run_main(self.file(content), "-o", os.path.join(self.folder, "a.svg"))
        self.assertEqual(code, 0, said)
        return pictures[0], said

    def test_what_a_killed_program_leaves_behind_is_no_mistake(self):
        later = ROW._replace(address=32)
        torn = later.csv().partition(",")[2]
        wanted, _ = self.picture(as_csv([ROW, later]))
        picture, said = self.picture(as_csv([ROW]) + f"\n\n{torn}{later.csv()}".encode() + b"\n" * 100_000)
        self.assertEqual(picture, wanted)
        self.assertEqual(said.count("\n"), 1)

    def test_memory_does_not_grow_with_the_rows(self):
        most = []
        for count in (5000, 20_000):
            rows = [
                row
                for i in range(0, count, 2)
                for row in (ROW._replace(time=ROW.time + i), ROW._replace(time=ROW.time + i + 1, action="free"))
            ]
            content = as_csv(rows)
            del rows
            tracemalloc.start()
            self.picture(content)
            most.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.assertLess(most[1], most[0] * 1.25)

    def test_threads_around_midnight_do_not_make_it_a_day_longer(self):
        rows = [ROW._replace(time=MIDNIGHT + when, address=16 + when % 1000) for when in (-50, 10, -20, 20)]
        (panel,) = self.picture(as_csv(rows))[0]["vconcat"]
        self.assertLess(panel["layer"][0]["encoding"]["x"]["scale"]["domain"][1], 1)


if __name__ == "__main__":
    unittest.main()
