#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `cuslice plot` in Chromium: as wide as the window, readable in both themes, zoomed and read by mouse, keys
and fingers.

  browser_test.py SOURCE_FOLDER FOLDER                the second one is for files that are gone afterwards

scripts/setup.sh browser installs Chromium; without it the test is skipped (77).
"""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv.pop(1), "python")))
FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
from browser import Browser, find_browser  # noqa: E402
from cuslice import plot_page, plot_text, recordings  # noqa: E402
from made import MICROSECONDS_OF_A_DAY as DAY  # noqa: E402
from made import Row, as_compact  # noqa: E402

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NOON = 20_000 * DAY + DAY // 2
SECOND = 1_000_000
T4, UNKNOWN_GPU = "GPU-830cff1a-d0c1-4138-8db3-860e8072f9a3", "GPU-5f01aa77-22bb-4c11-8d10-99aabbccddee"
STACK = (
    "<module> (/home/alice/projects/a-model-with-a-long-name/examples/train.py:33)",
    "train (/home/alice/projects/a-model-with-a-long-name/examples/train.py:120)",
    *["_call_impl (torch/nn/modules/module.py:1553)", "forward (torch/nn/modules/container.py:219)"] * 4,
    "f" * 300 + " (torch/nn/functional.py:1)",
)
LARGE = Row(NOON + 4 * SECOND, "allocate", 0x7F3A48000000, 900 * MIB, T4, 2 * GIB, 1100 * MIB, 812, 0x55AA00, STACK)
REFUSED = Row(NOON + 6 * SECOND, "allocate failure", 0, 3 * GIB, T4, 2 * GIB, 1100 * MIB, 812, stack=STACK)

# The page's texts, each with its box, its colour and what is behind it.
TEXTS = """(() => {
  const seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
  };
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || element.closest("script, style, noscript") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const style = getComputedStyle(element), svg = element.namespaceURI.endsWith("svg");
    for (const box of range.getClientRects()) {
      seen.push({
        text: node.textContent, box: [box.left, box.top, box.right, box.bottom], readout: !!element.closest("#readout"),
        colour: svg ? style.fill : style.color, behind: behind(element), size: parseFloat(style.fontSize),
      });
    }
  }
  return seen;
})()"""


def rows():
    """Ten seconds on two GPUs: weights, steps with activations, a large block, and a request that is refused."""
    made = [Row(NOON + i, "allocate", 4096 * i + 4096, 6 * MIB, T4, 2 * GIB, 200 * MIB, 812) for i in range(12)]
    made.append(Row(NOON + 100, "allocate", 0x10, 700 * MIB, UNKNOWN_GPU, GIB, 800 * MIB, 813))
    for step in range(40):
        begun = NOON + step * SECOND // 4 + 1000
        if step == 16:
            made.append(LARGE)
        if step == 24:
            made.append(REFUSED)
        for number, size in enumerate((40 * KIB, 600 * KIB, 40 * MIB, 90 * MIB)):
            address = 0x1000_0000 + number * 0x1000
            made.append(Row(begun + number * 20_000, "allocate", address, size, T4, 2 * GIB, 1300 * MIB, 814))
        for number in range(4):
            address = 0x1000_0000 + number * 0x1000
            made.append(Row(begun + 120_000 + number * 20_000, "free", address, 1, T4, 2 * GIB, 1300 * MIB, 814))
    return sorted(made, key=lambda row: row.time)


def channels(colour):
    return [float(number) for number in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def overlap(one, other):
    """By how many pixels two boxes lie on each other, in the direction in which it is least."""
    return min(min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1]))


def setUpModule():
    global browser, page
    # Not in /tmp, which some browsers may not read.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="plot-", dir=FOLDER))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    recording, page = folder / "trace.csv", folder / "a.html"
    recording.write_bytes(as_compact(rows(), program="python train.py --batch 64"))
    followed = recordings.replay([str(recording)], [])
    gpus = followed.gpus()
    heading = plot_text.heading_of(followed, gpus, None, [str(recording)])
    page.write_text(plot_page.page(followed, gpus, heading, ["the last row is cut off"]))
    browser = Browser(folder)
    unittest.addModuleCleanup(browser.close)


class Page(unittest.TestCase):
    @property
    def browser(self):
        return browser

    def look(self, width=1400, **how):
        browser.look(page, width, **how)
        self.addCleanup(lambda: self.assertEqual(self.browser.said, []))

    def box(self, selector, number=0):
        return self.browser.run(
            f"(() => {{ const box = document.querySelectorAll('{selector}')[{number}].getBoundingClientRect();"
            " return [box.left, box.top, box.right, box.bottom]; })()"
        )

    def x_of(self, seconds, chart=0):
        """Where this time is in an unzoomed chart: between the first tick and the last one, which are labelled."""
        left, _, right, _ = self.box(".chart", chart)
        plot_left, plot_right = left + 70, right - 14
        return plot_left + (plot_right - plot_left) * seconds / self.length()

    @staticmethod
    def length():
        made = rows()
        return (made[-1].time - made[0].time) / SECOND

    def hover(self, seconds, chart=0):
        _, top, _, bottom = self.box(".chart", chart)
        self.browser.move(self.x_of(seconds, chart), (top + bottom) / 2)
        self.browser.settle()

    def open_details(self):
        self.browser.run("document.querySelectorAll('summary').forEach(summary => summary.click())")
        self.browser.settle()

    def readout(self):
        return self.browser.run("document.getElementById('readout').innerText")

    def ticks(self):
        return self.browser.run(
            "[...document.querySelectorAll('.chart')].map(chart =>"
            " [...chart.querySelectorAll('text.time')].map(text => text.textContent))"
        )

    def cursors(self):
        return self.browser.run(
            "[...document.querySelectorAll('.cursor')].map(line => line.getAttribute('visibility') === 'visible' ?"
            " line.getBoundingClientRect().left : null)"
        )


class Layout(Page):
    def texts(self):
        return self.browser.run(TEXTS)

    def assert_tidy(self, texts, width):
        for one in texts:
            self.assertGreaterEqual(one["box"][0], 0, one)
            self.assertLessEqual(one["box"][2], width + 0.5, one)
        for at, one in enumerate(texts):
            for other in texts[at + 1 :]:
                if one["readout"] == other["readout"]:
                    self.assertLessEqual(overlap(one["box"], other["box"]), 2, (one, other))

    def assert_readable(self, texts):
        for one in texts:
            self.assertGreaterEqual(contrast(one["colour"], one["behind"]), 4.5, one)
            self.assertGreaterEqual(one["size"], 11)

    def test_nothing_is_cut_off_or_lies_on_other_text(self):
        for width in (360, 400, 768, 1400):
            for reading in (False, True):
                with self.subTest(width=width, reading=reading):
                    self.look(width)
                    if reading:
                        self.hover(5)
                    texts = self.texts()
                    self.assertGreater(len(texts), 30)
                    self.assert_tidy(texts, width)
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_nor_do_stacks(self):
        for width in (360, 1400):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.look(width, dark=dark)
                    self.open_details()
                    texts = self.texts()
                    self.assert_tidy(texts, width)
                    self.assert_readable(texts)
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                    self.assertEqual({frame for frame in STACK if frame not in [one["text"] for one in texts]}, set())

    def test_nor_does_it_at_any_zoom(self):
        for width in (360, 1400):
            self.look(width)
            for _ in range(9):
                self.browser.run("document.getElementById('in').click()")
                self.assert_tidy(self.texts(), width)
                self.assertGreater(len(self.ticks()[0]), 0)
            self.browser.run("for (let i = 0; i < 20; i++) document.getElementById('in').click()")
            self.assert_tidy(self.texts(), width)

    def test_a_phones_readout_leaves_the_finger_alone(self):
        self.look(400, height=700)
        for chart in (0, 1):
            self.browser.run(f"document.querySelectorAll('.chart')[{chart}].scrollIntoView({{block: 'center'}})")
            _, top, _, bottom = self.box(".chart", chart)
            self.hover(5, chart)
            left, readout_top, right, readout_bottom = self.box("#readout")
            self.assertTrue(readout_bottom <= (top + bottom) / 2 or readout_top >= (top + bottom) / 2)
            self.assertEqual((left, right), (0, 400))

    def test_the_readout_is_within_the_window(self):
        for width in (400, 1400):
            self.look(width)
            for seconds in (0.2, 5, 9.8):
                for chart in (0, 1):
                    self.hover(seconds, chart)
                    left, top, right, bottom = self.box("#readout")
                    self.assertGreaterEqual(min(left, top), 0)
                    self.assertLessEqual((right, bottom), (width, 900))
                    texts = [one for one in self.texts() if one["readout"]]
                    for one in texts:
                        self.assertLessEqual(overlap(one["box"], (right, 0, 9999, 9999)), 0, one)

    def test_text_stands_out_in_both_themes(self):
        paper = {}
        for dark in (False, True):
            self.look(dark=dark)
            self.hover(6)
            paper[dark] = luminance(self.browser.run("getComputedStyle(document.body).backgroundColor"))
            self.assert_readable(self.texts())
        self.assertGreater(paper[False], 0.9)
        self.assertLess(paper[True], 0.05)

    def test_charts_are_as_wide_as_the_window_also_when_it_changes(self):
        self.look(1400)
        wide = self.box(".chart svg")
        self.assertGreater(wide[2] - wide[0], 1300)
        self.browser.call(
            "Emulation.setDeviceMetricsOverride", width=500, height=900, deviceScaleFactor=1, mobile=False
        )
        self.browser.settle()
        self.browser.settle()
        narrow = self.box(".chart svg")
        self.assertGreater(narrow[2] - narrow[0], 460)
        self.assertLess(narrow[2], 500)
        drawn = self.browser.run("document.querySelector('.chart .held').getBBox().width")
        self.assertLess(drawn, 460)

    def test_the_heading_says_what_ran_and_how_it_went(self):
        self.look()
        text = self.browser.run("document.querySelector('main').innerText")
        for wanted in (
            "python train.py --batch 64",
            "trace.csv, 4 October 2024, 12:00:00 UTC, 9.93 s",
            "Tesla T4 (fake)",
            T4,
            "GPU 1",
            "limit\n2 GiB",
            "refused\nonce",
            "the last row is cut off",
        ):
            self.assertIn(wanted, text)

    def test_ticks_are_round(self):
        self.look()
        self.assertEqual(self.ticks(), [[f"{second} s" for second in range(10)]] * 2)
        texts = [one["text"] for one in self.texts()]
        for wanted in ("0", "512 MiB", "1 GiB", "1.5 GiB", "2 GiB"):
            self.assertIn(wanted, texts)


class Reading(Page):
    def test_the_pointer_shows_the_largest_blocks_of_that_moment(self):
        self.look()
        self.hover(4.5)
        read = self.readout()
        for wanted in ("Tesla T4 (fake)", "12:00:04.", "held\t1.27 GiB", "limit\t2 GiB"):
            self.assertIn(wanted.replace("\t", "\n"), read.replace("\t", "\n"))
        first = self.browser.run("document.querySelector('#readout tbody tr').innerText").split()
        self.assertEqual(first[:4], ["900", "MiB", "0x7f3a48000000", "812"])
        self.assertEqual(first[4], "0x55aa00")
        self.assertAlmostEqual(float(first[5]) * (1 if first[6] == "s" else 0.001), 0.5, delta=0.02)
        self.hover(3.5)
        self.assertNotIn("900 MiB", self.readout())
        self.hover(3.5, 1)
        self.assertIn("700 MiB", self.readout())
        self.assertIn("The largest live block\n", self.readout())

    def test_a_block_has_its_python_frame_where_there_is_room(self):
        for width in (360, 1400):
            for dark in (False, True):
                self.look(width, dark=dark)
                self.hover(4.5)
                cells = "[...document.querySelectorAll('#readout .python')].map(cell => cell.innerText)"
                wanted = ["Python", "train (examples/train.py:120)", *["–"] * 9] if width == 1400 else []
                self.assertEqual(self.browser.run(cells), wanted)
        self.hover(4.5, 1)  # a GPU whose blocks have no stacks
        self.assertEqual(self.browser.run(cells), [])

    def test_who_asked_is_told_below_a_chart_that_has_stacks(self):
        self.look()
        text = "document.querySelector('main').innerText"
        self.assertEqual(self.browser.run("document.querySelectorAll('section details').length"), 1)
        self.assertNotIn(STACK[0], self.browser.run(text))
        self.open_details()
        for wanted in (
            "3 GiB, after 6 s (12:00:06 UTC), thread 812\n" + STACK[0],
            "900 MiB, 0x7f3a48000000",
            STACK[-1],
        ):
            self.assertIn(wanted, re.sub("\n+", "\n", self.browser.run(text)))

    def test_a_refusal_is_read_where_its_mark_is(self):
        self.look()
        self.hover(6)
        self.assertIn("refused\n3 GiB", self.readout().replace("\t", "\n"))
        self.hover(7)
        self.assertNotIn("refused", self.readout())

    def test_all_charts_have_the_cursor(self):
        self.look()
        self.assertEqual(self.cursors(), [None, None])
        self.hover(5, 1)
        for x in self.cursors():
            self.assertAlmostEqual(x, self.x_of(5), delta=1)
        self.browser.move(5, 5)
        self.browser.settle()
        self.assertEqual(self.cursors(), [None, None])
        self.assertEqual(self.readout(), "")

    def test_keys_read_and_zoom(self):
        self.look()
        self.browser.run("document.querySelectorAll('.chart')[0].focus()")
        self.browser.key("Home")
        self.browser.key("ArrowRight")
        before = self.cursors()[0]
        self.browser.key("ArrowRight")
        self.assertGreater(self.cursors()[0], before)
        whole = self.ticks()
        self.browser.key("+")
        self.assertNotEqual(self.ticks(), whole)
        self.browser.key("Escape")
        self.assertEqual(self.ticks(), whole)


class Zooming(Page):
    def drag(self, begin, end, chart=0):
        _, top, _, bottom = self.box(".chart", chart)
        self.browser.drag(self.x_of(begin, chart), (top + bottom) / 2, self.x_of(end, chart))

    def test_a_drag_zooms_all_charts_and_a_double_click_shows_all(self):
        self.look()
        whole = self.ticks()
        for chart in (0, 1):
            self.drag(3, 5, chart)
            first, second = self.ticks()
            self.assertEqual(first, second)
            self.assertNotEqual(first, whole[0])
            seconds = [float(text.split()[0]) for text in first]
            self.assertTrue(all(2.9 <= one <= 5.1 for one in seconds), first)
            self.assertGreater(len(seconds), 4)
            _, top, _, bottom = self.box(".chart", chart)
            self.browser.double_click(self.x_of(4), (top + bottom) / 2)
            self.assertEqual(self.ticks(), whole)

    def test_it_goes_on_to_microseconds(self):
        self.look()
        for _ in range(12):
            self.drag(4, 5)
        # Dashes of a line of millions of pixels would take seconds to draw.
        wide = "Math.max(...[...document.querySelectorAll('.chart path')].map(path => path.getBBox().width))"
        self.assertLess(self.browser.run(wide), 1500)
        first = self.ticks()[0]
        self.assertEqual(len(set(first)), len(first))
        self.assertGreater(len(first), 2)
        self.browser.key("Escape")
        self.assertEqual(self.ticks()[0][0], "0 s")

    def test_buttons(self):
        self.look()
        whole = self.ticks()
        click = "document.getElementById('{}').click()"
        self.assertEqual(self.browser.run("document.getElementById('reset').getAttribute('aria-disabled')"), "true")
        self.browser.run(click.format("in"))
        inside = self.ticks()
        self.assertNotEqual(inside, whole)
        self.browser.run(click.format("later"))
        self.assertNotEqual(self.ticks(), inside)
        self.browser.run(click.format("earlier"))
        self.assertEqual(self.ticks(), inside)
        self.browser.run(click.format("out"))
        self.assertEqual(self.ticks(), whole)
        self.browser.run(click.format("in"))
        self.browser.run(click.format("reset"))
        self.assertEqual(self.ticks(), whole)

    def test_a_finger_reads_and_two_zoom(self):
        self.look(400, touch=True)
        # The browser itself scrolls the page by a finger that moves up or down, and zooms by none.
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.chart')).touchAction"), "pan-y")
        whole = self.ticks()
        _, top, _, bottom = self.box(".chart")
        middle = (top + bottom) / 2
        self.browser.fingers("Start", (self.x_of(3), middle))
        self.browser.fingers("Move", (self.x_of(4.5), middle))
        self.browser.fingers("End")
        self.browser.settle()
        self.assertEqual(self.ticks(), whole)
        self.assertIn("900 MiB", self.readout())
        self.browser.fingers("Start", (self.x_of(4), middle), (self.x_of(6), middle))
        self.browser.fingers("Move", (self.x_of(3), middle), (self.x_of(7), middle))
        self.browser.fingers("Move", (self.x_of(1), middle), (self.x_of(9), middle))
        self.browser.fingers("End")
        self.browser.settle()
        first, second = self.ticks()
        self.assertEqual(first, second)
        seconds = [float(text.split()[0]) for text in first]
        self.assertTrue(all(3.5 <= one <= 6.5 for one in seconds), first)


if __name__ == "__main__":
    if not find_browser():
        print("SKIPPED: there is no Chromium: scripts/setup.sh browser")
        sys.exit(77)
    unittest.main()
