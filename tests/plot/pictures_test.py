#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot` from beginning to end: a program on two fake GPUs is recorded until it is refused, and drawn as a page,
an SVG and a PNG. The page is looked at in a browser.

  pictures_test.py SOURCE_FOLDER BUILD_FOLDER

What it needs beside the build, scripts/setup.sh browser installs: vl-convert-python and Chromium. Without them the rest
is tried, and the test is skipped (77).
"""

import contextlib
import html
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

source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
del sys.argv[1:3]
launcher = build / "bin/cuslice"


def python_that_draws():
    for python in (sys.executable, source / "build/tools/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import vl_convert"], stderr=subprocess.DEVNULL).returncode == 0:
                return python
    return None


def find_browser():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


drawing, browser = python_that_draws(), find_browser()


def look_at(page, folder):
    """The page's elements once its scripts have run, without those, and what they have said on the console."""
    words = [browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    # It takes root for a mistake, unless it is told so.
    words += ["--no-sandbox"] if os.getuid() == 0 else []
    words += [
        f"--user-data-dir={folder}/profile",
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*words, page.as_uri()], text=True, capture_output=True, timeout=300, env={**os.environ, "HOME": str(folder)}
    )
    return re.sub("<script.*?</script>", "", done.stdout, flags=re.S), [
        line for line in done.stderr.splitlines() if ":CONSOLE" in line
    ]


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

    def plot(self, *words, python=drawing, code=0):
        path = {"PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}" if python else str(self.folder)}
        done = subprocess.run(
            [launcher, "plot", *words], text=True, capture_output=True, env={**self.environment, **path}
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def drawn(self, name):
        out = self.folder / name
        self.assertEqual(self.plot(self.recording, "-o", out).stdout, f"{out}\n")
        return out

    def test_the_recording_has_both_gpus_and_their_refusals(self):
        self.assertEqual(len(self.gpus), 2)
        self.assertGreaterEqual(self.refused, 2)

    def test_without_python_there_is_a_line_on_what_is_needed(self):
        said = self.plot(self.recording, python=None, code=69).stderr
        self.assertEqual(said.count("\n"), 1)
        self.assertIn("vl-convert-python", said)

    def test_a_python_without_the_package_says_what_is_needed(self):
        bare = self.folder / "bare"
        bare.mkdir()
        (bare / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        (bare / "python3").chmod(0o755)
        said = self.plot(self.recording, "-o", self.folder / "x.svg", python=bare / "python3", code=69).stderr
        self.assertIn("vl-convert-python", said)
        self.assertFalse((self.folder / "x.svg").exists())

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    def test_svg(self):
        tree = xml.etree.ElementTree.parse(self.drawn("a.svg"))
        text = " ".join(element.text or "" for element in tree.iter() if element.tag.endswith("text"))
        for wanted in (*self.gpus, "limit 512.0 MiB", "limit 1.0 GiB", "refused", "MiB", "held"):
            self.assertIn(wanted, text)

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    def test_png(self):
        content = self.drawn("a.png").read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        self.assertGreater(min(width, height), 500)
        self.assertGreater(len(content), 10_000)

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    @unittest.skipUnless(browser, "there is no Chromium: scripts/setup.sh browser")
    def test_page_in_a_browser(self):
        page = self.drawn("a.html")
        counted = (
            "<script>setTimeout(() => document.title = performance.getEntriesByType('resource').length, 1000)</script>"
        )
        page.write_text(counted.join(page.read_text().rpartition("</body>")[::2]))
        seen, said = look_at(page, self.folder)
        self.assertEqual(said, [])
        self.assertEqual(re.findall("<title>(.*?)</title>", seen), ["0"])
        self.assertTrue("<svg" in seen)  # whose text is too long to be shown
        for gpu in self.gpus:
            self.assertTrue(gpu in html.unescape(seen), gpu)

        def marks(kind):
            groups = re.findall(rf'<g class="mark-{kind}[^"]*"[^>]*>(.*?)</g>', seen, re.S)
            return [d for group in groups for d in re.findall(r'<path[^>]* d="([^"]+)"', group)]

        # Areas of both GPUs have a height, and there is a mark at least for each GPU's refusal.
        self.assertGreaterEqual(len([d for d in marks("area") if len(d) > 50]), 2)
        self.assertGreaterEqual(len(marks("line")), 4)
        self.assertGreaterEqual(len(marks("symbol")), 2)
        self.assertFalse("Vega Editor" in seen)

    @unittest.skipUnless(drawing, "vl-convert-python is missing: scripts/setup.sh browser")
    @unittest.skipUnless(browser, "there is no Chromium: scripts/setup.sh browser")
    def test_a_page_can_ask_for_nothing(self):
        """And the test above would see what a page says."""
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
        written = self.drawn("b.html").read_text()
        image = f'<img src="http://127.0.0.1:{server.server_port}/a.png"><script>console.error("mistake")</script>'
        page = self.folder / "c.html"
        for policy in (True, False):
            text = image.join(written.rpartition("</body>")[::2])
            page.write_text(text if policy else re.sub("<meta http-equiv[^>]*>", "", text))
            _, said = look_at(page, self.folder)
            self.assertTrue(any("mistake" in line for line in said), said)
            self.assertEqual(asked, [] if policy else ["/a.png"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for case, why in result.skipped:
        print(f"SKIPPED {case.id().rsplit('.', 1)[-1]}: {why}")
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
