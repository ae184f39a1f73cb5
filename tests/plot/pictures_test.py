#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot` from beginning to end: a program on two fake GPUs is recorded until it is refused, and drawn as a page,
an SVG and a PNG. A browser opens the page.

  pictures_test.py SOURCE_FOLDER BUILD_FOLDER

scripts/setup.sh browser installs what it needs beside the build: vl-convert-python for SVG and PNG, and Chromium.
Without them the rest is tried, and the test is skipped (77).
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.dont_write_bytecode = True
from browser import Browser, find_browser  # noqa: E402

source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]
launcher = build / "bin/cuslice"


def python_that_draws():
    for python in (sys.executable, source / "build/tools/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import vl_convert"], stderr=subprocess.DEVNULL).returncode == 0:
                return python
    return None


drawing, browser = python_that_draws(), find_browser()
bare = f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n'  # a Python that has no package


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # In the build folder: there are browsers that may not read /tmp.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="plot-", dir=build))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.environment = {**os.environ, "CUSLICE_FAKE_DIR": str(cls.folder / "books")}
        (cls.folder / "books").mkdir()
        cls.recording = cls.folder / "trace.csv"
        done = subprocess.run(
            [launcher, "demo", "--fake", "2xlaptop-2g", "--limit", "0=512MiB,1=1GiB", "--record", cls.recording],
            text=True,
            capture_output=True,
            env=cls.environment,
        )
        assert done.returncode == 0, done.stderr
        rows = [line.split(",") for line in cls.recording.read_text().splitlines()]
        cls.gpus = sorted({row[6] for row in rows[1:]})
        cls.refused = sum(row[2] == "allocate failure" for row in rows)

        cls.bare = cls.folder / "bare/python3"
        cls.bare.parent.mkdir()
        cls.bare.write_text(bare)
        cls.bare.chmod(0o755)

    def plot(self, *words, python=drawing, code=0):
        path = {"PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}" if python else str(self.folder)}
        done = subprocess.run(
            [launcher, "plot", *words], text=True, capture_output=True, env={**self.environment, **path}
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def drawn(self, name, python=drawing, words=()):
        out = self.folder / name
        self.assertEqual(self.plot(self.recording, "-o", out, *words, python=python).stdout, f"{out}\n")
        return out

    def opened(self):
        """A browser with a profile of its own."""
        started = Browser(self.folder)
        self.addCleanup(started.close)
        return started

    def test_the_recording_has_both_gpus_and_their_refusals(self):
        self.assertEqual(len(self.gpus), 2)
        self.assertGreaterEqual(self.refused, 2)

    def test_without_python_there_is_a_line_on_what_is_needed(self):
        said = self.plot(self.recording, python=None, code=69).stderr
        self.assertEqual(said.count("\n"), 1)
        self.assertIn("Python 3.8", said)

    def test_a_python_without_the_package_says_what_is_needed(self):
        said = self.plot(self.recording, "-o", self.folder / "x.svg", python=self.bare, code=69).stderr
        self.assertIn("vl-convert-python", said)
        self.assertFalse((self.folder / "x.svg").exists())

    def test_a_page_is_made_without_the_package(self):
        text = self.drawn("a.html", self.bare, ["--title", "a <demo>"]).read_text()
        self.assertIn("<h1>a &lt;demo&gt;</h1>", text)
        (data,) = re.findall('<script type="application/json" id="data">(.*?)</script>', text, re.S)
        data = json.loads(data)
        rows = [line.split(",") for line in self.recording.read_text().splitlines()[1:]]
        self.assertEqual(len(data["gpus"]), 2)
        for gpu, limit in zip(data["gpus"], (512 << 20, 1 << 30)):
            self.assertEqual(max(gpu["limit"]), limit)
            largest = max(block[2] for block in gpu["blocks"])
            self.assertIn(str(largest), {row[4] for row in rows if row[2] == "allocate"})
        self.assertEqual(sum(len(gpu["refusals"]) for gpu in data["gpus"]), self.refused)

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    def test_svg(self):
        tree = xml.etree.ElementTree.parse(self.drawn("a.svg"))
        text = " ".join(element.text or "" for element in tree.iter() if element.tag.endswith("text"))
        for wanted in (*self.gpus, "limit 512 MiB", "limit 1 GiB", "refused", "MiB", "held", "trace.csv"):
            self.assertIn(wanted, text)
        self.assert_legend_fits(tree.getroot())

    def assert_legend_fits(self, svg):
        """The last word of the legend ends before the picture does."""
        width, end = float(svg.get("width")), 0
        for element in svg.iter():
            if (element.text or "") == "refused":
                at = [float(x) for x in re.findall(r"translate\(([0-9.]+),", element.get("transform", ""))]
                end = max([end, *at])
        self.assertGreater(width, 1000)
        self.assertGreater(end, 0)
        self.assertLess(end, width - 60)

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    def test_png(self):
        content = self.drawn("a.png").read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        self.assertGreater(min(width, height), 500)
        self.assertGreater(len(content), 10_000)

    @unittest.skipUnless(browser, "there is no Chromium: scripts/setup.sh browser")
    def test_page_in_a_browser(self):
        started = self.opened()
        started.look(self.drawn("a.html", self.bare))
        self.assertEqual(started.said, [])
        self.assertEqual(started.run("performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(started.run("document.title"), "cuslice-demo")
        text = started.run("document.querySelector('main').innerText")
        for gpu in self.gpus:
            self.assertIn(gpu, text)
        # Areas of both GPUs have a height, and there is a mark at least for each GPU's refusal.
        heights = "[...document.querySelectorAll('.chart')].map(chart => chart.querySelector('.area').getBBox().height)"
        self.assertGreater(min(started.run(heights)), 20)
        marks = "[...document.querySelectorAll('.chart')].map(chart => chart.querySelectorAll('path.refused').length)"
        self.assertGreater(min(started.run(marks)), 0)

    @unittest.skipUnless(browser, "there is no Chromium: scripts/setup.sh browser")
    def test_a_page_can_ask_for_nothing(self):
        """Nor does a script run that it didn't come with. And the test above would see what a page says."""
        asked = []

        class Listening(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_error(404)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Listening)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        written = self.drawn("b.html", self.bare).read_text()
        image = f'<img src="http://127.0.0.1:{server.server_port}/a.png"><script>document.title = "mistake"</script>'
        page = self.folder / "c.html"
        started = self.opened()
        for policy in (True, False):
            text = image.join(written.rpartition("</body>")[::2])
            page.write_text(text if policy else re.sub("<meta http-equiv[^>]*>", "", text))
            started.look(page)
            self.assertEqual(started.run("document.title"), "cuslice-demo" if policy else "mistake")
            self.assertTrue(any("Content Security Policy" in said for said in started.said) if policy else asked)
            self.assertEqual(asked, [] if policy else ["/a.png"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for case, why in result.skipped:
        print(f"SKIPPED {case.id().rsplit('.', 1)[-1]}: {why}")
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
