#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/plot.svg, and shows the same run as a page in Chromium: docs/images/plot-page.png.

  python3 docs/images/plot.py build/release

It needs what `scripts/setup.sh browser` installs; the Python that runs this has to have vl-convert-python. Started by
itself below, it is the program that is recorded: training steps on two fake GPUs, on the second with batches that grow
until one is refused.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/plot"))
from browser import Browser, find_browser  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
# The picture's size, and the place in the second chart that it points at, as shares of its width and height.
WIDTH, HEIGHT, POINT = 1200, 950, (0.47, 0.4)
CHART = "document.querySelectorAll('.chart')[1].getBoundingClientRect()"


def train():
    cuda = ctypes.CDLL("libcuda.so.1")
    assert cuda.cuInit(0) == 0
    contexts = [ctypes.c_void_p(), ctypes.c_void_p()]
    for ordinal, context in enumerate(contexts):
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) == 0

    def take(size):
        address = ctypes.c_uint64()
        time.sleep(0.006)
        return address if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0 else None

    weights = []
    for context in contexts:
        cuda.cuCtxSetCurrent(context)
        weights += [take(size) for size in [160 * MIB, 48 * MIB] + [6 * MIB] * 8 + [600 * KIB] * 8]
    for step in range(10):
        for ordinal, context in enumerate(contexts):
            cuda.cuCtxSetCurrent(context)
            batch = (24 + 14 * step * ordinal) * MIB
            kept = [take(size) for _ in range(4) for size in (batch, batch // 4, 600 * KIB)]
            for address in reversed(kept):
                time.sleep(0.002)
                if address:
                    cuda.cuMemFree_v2(address)


def photograph(page, picture, folder):
    if not find_browser():
        sys.exit("plot.py: there is no Chromium here: scripts/setup.sh browser")
    browser = Browser(folder)
    browser.look(page, WIDTH, HEIGHT)
    x, y, width, height = browser.run(f"(({{x, y, width, height}}) => [x, y, width, height])({CHART})")
    browser.move(x + width * POINT[0], y + height * POINT[1])
    browser.settle()
    picture.write_bytes(browser.picture())
    browser.close()


def main():
    build, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(__file__).resolve().with_name("plot.svg")
    launcher = build / "bin/cuslice"
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        recording = f"{folder}/trace.csv"
        words = ["--fake", "2xt4", "--limit", "1GiB", "--allocator", "growth", "--record", recording]
        environment = {**os.environ, "CUSLICE_FAKE_DIR": folder, "PATH": path}
        subprocess.run([launcher, "run", *words, "--", sys.executable, __file__], env=environment, check=True)
        page = pathlib.Path(folder, "memory.html")
        for drawn in (out, page):
            words = [launcher, "plot", recording, "-o", drawn, "--title", "python train.py"]
            subprocess.run(words, env=environment, check=True)
        photograph(page, out.with_name("plot-page.png"), folder)


if __name__ == "__main__":
    main() if len(sys.argv) > 1 else train()
