#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot` as a command: words, files and codes, with a stand-in for what draws.

command_test.py SOURCE_FOLDER
"""

import contextlib
import html
import io
import os
import pathlib
import subprocess
import sys
import tracemalloc
import types
import unittest
import webbrowser
from unittest import mock

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
        module = types.ModuleType("vl_convert")
        module.vegalite_to_svg = lambda spec: "<svg/>"
        module.vegalite_to_png = lambda spec, scale: b"PNG"
        self.with_converter(module)
        recording = self.file(WHOLE, "trace.csv")
        page = os.path.join(self.folder, "trace.html")
        self.assertEqual(self.run_main(recording), (0, page + "\n", ""))
        content = pathlib.Path(page).read_text()
        self.assertIn("default-src 'none'", content)
        self.assertIn("<title>trace.csv</title>", content)
        for ending, content in ((".svg", b"<svg/>"), (".PNG", b"PNG")):
            out = os.path.join(self.folder, "b" + ending)
            self.assertEqual(self.run_main("-o", out, recording), (0, out + "\n", ""))
            self.assertEqual(pathlib.Path(out).read_bytes(), content)
        code, _, err = self.run_main(recording, "-o", os.path.join(self.folder, "none/b.svg"))
        self.assertEqual((code, err.endswith("none/b.svg: No such file or directory\n")), (73, True))

    def test_a_page_needs_no_package(self):
        """Nor does a Python that has nothing installed, and is started as the launcher does."""
        self.with_converter(None)  # importing it fails
        recording = self.file(WHOLE, "trace.csv")
        self.assertEqual(self.run_main(recording)[0], 0)
        made = pathlib.Path(self.folder, "trace.html")
        content = made.read_bytes()
        made.unlink()
        words = [sys.executable, "-I", "-S", "-B", plot.__file__, recording]
        done = subprocess.run(words, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{made}\n", ""))
        self.assertEqual(made.read_bytes(), content)

    def test_the_heading_is_the_title_that_is_asked_for(self):
        recording = self.file(WHOLE, "trace.csv")
        given = []
        module = types.ModuleType("vl_convert")
        module.vegalite_to_svg = lambda spec: given.append(spec["title"]["text"]) or "<svg/>"
        self.with_converter(module)
        page, drawing = os.path.join(self.folder, "trace.html"), os.path.join(self.folder, "b.svg")
        for words, title in (
            (("--title", "Batch 64 & more"), "Batch 64 & more"),
            ((), "trace.csv"),
            (("--title=",), "trace.csv"),
        ):
            self.assertEqual(self.run_main(recording, *words)[0], 0)
            self.assertIn(f"<h1>{html.escape(title)}</h1>", pathlib.Path(page).read_text())
            self.assertEqual(self.run_main(recording, "-o", drawing, *words)[0], 0)
        self.assertEqual(given, ["Batch 64 ? more", "trace.csv", "trace.csv"])
        self.run_main(recording, self.file(WHOLE, "trace.csv.812"), self.file(WHOLE, "trace.csv.813"))
        self.assertIn("<h1>trace.csv and 2 more</h1>", pathlib.Path(page).read_text())
        self.run_main(self.file(as_csv([ROW], program="python train.py"), "trace.csv"))
        self.assertIn("<h1>python train.py</h1>", pathlib.Path(page).read_text())

    def test_the_page_is_opened_once_it_is_there(self):
        recording = self.file(WHOLE, "a #1.csv")
        page = pathlib.Path(self.folder, "a #1.html")
        opened = []

        def browser(address):
            opened.append((address, page.exists()))
            return True

        with mock.patch("webbrowser.open", browser):
            self.assertEqual(self.run_main(recording, "--open"), (0, f"{page}\n", ""))
            self.assertEqual(opened, [(page.as_uri(), True)])
            code, _, err = self.run_main(recording, "--open", "-o", os.path.join(self.folder, "a.svg"))
            self.assertEqual((code, len(opened)), (64, 1))
            self.assertIn("--open shows a page", err)

    def test_without_a_browser_there_is_a_line_and_the_page(self):
        recording = self.file(WHOLE, "trace.csv")
        page = pathlib.Path(self.folder, "trace.html")
        for answer in ({"return_value": False}, {"side_effect": webbrowser.Error("no")}):
            with mock.patch("webbrowser.open", **answer):
                code, out, err = self.run_main(recording, "--open")
            self.assertEqual((code, out), (0, f"{page}\n"))
            self.assertEqual(err, f"cuslice: there is no browser here to open {page} with\n")
            page.unlink()

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

    def test_what_draws_is_asked_for_before_anything_is_read(self):
        recording = self.file(WHOLE + "1,", "trace.csv")
        self.with_converter(None)  # importing it fails
        for ending in (".svg", ".png"):
            out = os.path.join(self.folder, "b" + ending)
            code, _, err = self.run_main(recording, "-o", out)
            self.assertEqual(code, 69)
            self.assertIn("vl-convert-python", err)
            self.assertNotIn("trace.csv", err)  # which may take minutes to read
            self.assertFalse(os.path.exists(out))


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
