#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a frame of `cuslice top` in a terminal of its own, while jobs run on fake GPUs, as a picture.

  top_picture.py BUILD [FILE.svg [COLUMNS]]

The file is docs/images/top.svg unless another is named, and the terminal 100 columns wide. Jobs, sizes and times are
those of this run.
"""
import fcntl
import html
import itertools
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ROWS, COLUMNS = 31, int(sys.argv[3]) if len(sys.argv) > 3 else 100
FAKE = "2xa100-40g"
PATIENCE = 60  # seconds
FRAMES = 12  # with all jobs in them: the GPUs' last moments begin before these
# A CUDA program that holds what it is told to, "GPU=MiB" for each GPU, until it is ended.
PROGRAM = """#!{python}
import ctypes, signal, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
context, block = ctypes.c_void_p(), ctypes.c_uint64()
for gpu, mib in (word.split("=") for word in sys.argv[1:]):
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(gpu))
    cuda.cuCtxSetCurrent(context)
    for size in map(int, mib.split("-")):
        cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(abs(size) << 20))
    if "-" in mib:
        cuda.cuMemFree_v2(block)
signal.pause()
"""
# Options of cuslice run, the program's name and what it holds: "A-B" allocates A and B, and frees B.
JOBS = [
    (["--gpus", "0", "--fraction", "0.4"], "train.py", ["0=11000"]),
    (["--gpus", "0", "--limit", "8GiB", "--allocator", "growth"], "serve.py", ["0=3000-2500"]),
    (["--gpus", "0", "--limit", "4GiB", "--group", "lab", "--group-limit", "6GiB"], "notebook.py", ["0=1500"]),
    (["--gpus", "0", "--limit", "4GiB", "--group", "lab", "--group-limit", "6GiB"], "notebook.py", ["0=700"]),
    (["--gpus", "1", "--split", "1=2"], "ranks.py", ["0=9000", "1=17500"]),
    (["--gpus", "0", "--fraction", "0.5", "--wait"], "evaluate.py", ["0=1000"]),
]
# As docs/demo.svg has them.
BACK, INK, FAINT, BOLD = "#16181d", "#d7dae0", "#8b93a1", "#ffffff"
COLOURS = {"90": FAINT, "32": "#57ab5a", "33": "#d4a72c", "36": "#4a7f8f", "31": "#e5534b"}
EIGHTHS, HEIGHTS = " ▏▎▍▌▋▊▉█", " ▁▂▃▄▅▆▇█"
SHADES = {"▒": 1, "░": 0.35}
BLOCKS = EIGHTHS[1:] + HEIGHTS[1:-1] + "".join(SHADES)


class Screen:
    """What is on a terminal after the sequences that cuslice top writes."""

    def __init__(self):
        self.cells = [[(" ", "")] * COLUMNS for _ in range(ROWS)]

    def write(self, text):
        row = column = 0
        style = ""
        for control, char in re.findall(r"(\x1b\[[?\d;]*[A-Za-z])|([^\x1b\r\n])", text):
            if char:
                if column < COLUMNS:
                    self.cells[row][column] = (char, style)
                column += 1
                continue
            numbers, what = control[2:-1], control[-1]
            if what == "H":
                row, column = (int(number) - 1 for number in numbers.split(";"))
            elif what == "m":
                style = "" if numbers == "0" else numbers
            elif what == "K":
                self.cells[row][column:] = [(" ", "")] * (COLUMNS - column)
            elif what == "J":
                self.cells[row:] = [[(" ", "")] * COLUMNS for _ in range(ROWS - row)]

    def text(self):
        return "\n".join("".join(char for char, _ in row).rstrip() for row in self.cells)


def svg(screen):
    """Bars as shapes, as fonts have gaps between such characters; each text at its own column."""

    def shape(column, y, char, count, colour):
        tall = 11 * HEIGHTS.index(char) / 8 if char in HEIGHTS[1:-1] else 11
        wide_part = EIGHTHS.index(char) / 8 if char in EIGHTHS else 1
        opacity = f' opacity="{SHADES[char]}"' if SHADES.get(char, 1) != 1 else ""
        return (f'<rect x="{left + column * wide:.1f}" y="{y + 1 - tall:.1f}" width="{(count - 1 + wide_part) * wide:.1f}"'
                f' height="{tall:.1f}" fill="{colour}"{opacity}/>')  # fmt: skip

    wide, high, left, top = 7.9, 18, 16, 44
    width, height = round(2 * left + COLUMNS * wide), top + ROWS * high
    parts = [f'<text x="{left}" y="24" fill="{FAINT}">$ cuslice top</text>']
    for i, row in enumerate(screen.cells):
        y = top + i * high
        for (char, style), cells in itertools.groupby(range(COLUMNS), key=lambda j: row[j]):
            cells = list(cells)
            if char in BLOCKS:
                parts.append(shape(cells[0], y, char, len(cells), COLOURS.get(style, INK)))
        runs, column = [], 0
        while column < COLUMNS:
            end = column
            while end < COLUMNS and row[end][1] == row[column][1]:
                end += 1
            runs.append((column, "".join(char for char, _ in row[column:end]), row[column][1]))
            column = end
        for column, text, style in runs:
            # Words apart: where a reader's font is of another width, columns stay below one another.
            for word in re.finditer(rf"[^ {BLOCKS}]+(?: [^ {BLOCKS}]+)*", text):
                colour = BOLD if style == "1" else COLOURS.get(style, INK)
                bold = ' font-weight="bold"' if style == "1" else ""
                parts.append(f'<text x="{left + (column + word.start()) * wide:.1f}" y="{y}" textLength="'
                             f'{len(word.group()) * wide:.1f}" fill="{colour}"{bold}>{html.escape(word.group())}</text>')  # fmt: skip
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-label="A frame of cuslice top">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>',
        "<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\">",
        *parts, "</g></svg>", ""])  # fmt: skip


def start_jobs(launcher, folder, environment, started):
    """One after the other, so that the GPUs fill while they are watched."""
    for options, name, held in JOBS:
        program = folder / name
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        command = [launcher, "run", "--fake", FAKE, *options, "--", program, *held]
        started.append(subprocess.Popen([str(word) for word in command], env=environment, stderr=subprocess.DEVNULL))
        if "--wait" not in options:
            wait_for(launcher, environment, len(started))
            time.sleep(1)


def wait_for(launcher, environment, jobs):
    """Until so many jobs hold something."""
    for _ in range(PATIENCE * 10):
        command = [launcher, "ps", "--json", "--fake", FAKE]
        said = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
        rows = json.loads(said)["processes"] if said else []
        if len({row["name"] for row in rows if row["kind"] == "job" and row["used"] > 0}) >= jobs:
            return
        time.sleep(0.1)
    sys.exit(f"not all of {jobs} jobs hold memory:\n{said}")


def record(launcher, environment):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(launcher, [str(launcher), "top", "--fake", FAKE, "--interval", "500ms"], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written, end, complete = b"", time.monotonic() + PATIENCE, 0
    while time.monotonic() < end and complete < FRAMES:
        if select.select([terminal], [], [], 1)[0]:
            written += os.read(terminal, 1 << 16)
        # Each frame begins in the first row; what follows the last such place may be half of one.
        frames = written.decode(errors="ignore").split("\x1b[1;1H")[1:-1]
        complete = sum(all(word in frame for word in ("GPU 1  ", "WAITING", "CACHES")) for frame in frames)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    screen = Screen()
    screen.write("\x1b[1;1H" + frames[-1])
    if complete < FRAMES:
        sys.exit("cuslice top didn't show everything:\n" + screen.text())
    return screen


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    default = pathlib.Path(__file__).resolve().parent.parent / "docs/images/top.svg"
    picture = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else default
    launcher = build / "bin/cuslice"
    with tempfile.TemporaryDirectory(prefix="cuslice-top-") as folder:
        books = pathlib.Path(folder) / "books"
        books.mkdir()
        environment = {**os.environ, "CUSLICE_FAKE_DIR": str(books), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        jobs = []
        starting = threading.Thread(target=start_jobs, args=(launcher, pathlib.Path(folder), environment, jobs))
        try:
            starting.start()
            screen = record(launcher, environment)
        finally:
            starting.join()
            for job in jobs:
                job.kill()
                job.wait()
    picture.write_text(svg(screen))
    print(screen.text())


main()
