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
import shutil
import subprocess
import sys
import tempfile
import time

KIB, MIB = 1 << 10, 1 << 20
# Put into the page: points at the last refusal, as a reader's mouse would, once it is drawn.
POINTING = """<script>
const pointing = setInterval(() => {
  const mark = [...document.querySelectorAll("svg .mark-symbol.role-mark path")].pop();
  if (!mark) return;
  clearInterval(pointing);
  const box = mark.getBoundingClientRect();
  const where = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
  for (const kind of ["pointerover", "mouseover", "pointermove", "mousemove"])
    mark.dispatchEvent(new MouseEvent(kind, where));
}, 100);
</script>"""


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
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        sys.exit("plot.py: there is no Chromium here: scripts/setup.sh browser")
    page.write_text(POINTING.join(page.read_text().rpartition("</body>")[::2]))
    words = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
    # It takes root for a mistake, unless it is told so.
    words += ["--no-sandbox"] if os.getuid() == 0 else []
    words += [f"--user-data-dir={folder}/profile", "--window-size=1010,640", "--virtual-time-budget=5000"]
    environment = {**os.environ, "HOME": folder}
    subprocess.run(
        [browser, *words, f"--screenshot={picture}", page.as_uri()],
        env=environment,
        check=True,
        stderr=subprocess.DEVNULL,
    )


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
            subprocess.run([launcher, "plot", recording, "-o", drawn], env=environment, check=True)
        photograph(page, out.with_name("plot-page.png"), folder)


if __name__ == "__main__":
    main() if len(sys.argv) > 1 else train()
