# SPDX-License-Identifier: Apache-2.0
"""Recordings that the tests make up, in both forms."""

import json
import os
import pathlib
import re
import struct
import tempfile
import unittest
from typing import NamedTuple

from cuslice import plot_page, plot_text, plot_vega, recordings

HEADER = "Thread,Time,Action,Pointer,Size,Stream,GPU,Limit,Held\n"  # without a program's name and stacks
ACTIONS = ("", "allocate", "free", "allocate failure")
MICROSECONDS_OF_A_DAY = 86_400_000_000
UNIT = 4096  # of what is held, in the compact form
MOST_HELD = (1 << 44) - 2 * UNIT  # the same


class Row(NamedTuple):
    time: int  # microseconds since 1970
    action: str
    address: int
    size: int
    gpu: str = "GPU-a"
    limit: int = -1  # not known
    held: int = -1
    thread: int = 7
    stream: int = 0
    stack: tuple = ()  # frames, outermost first

    def csv(self, *more):
        seconds, fraction = divmod(self.time, 1_000_000)
        clock = f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
        limit, held = (str(number) if number >= 0 else "" for number in (self.limit, self.held))
        words = [self.thread, clock, self.action, f"{self.address:#x}", self.size, f"{self.stream:#x}"]
        return ",".join(map(str, [*words, self.gpu, limit, held, *more])) + "\n"


def quoted(text):
    """As a program's name and frames are written."""
    return re.sub('[%,";\0-\x1f\x7f]', lambda found: f"%{ord(found[0]):02X}", text)


def stack_of(row):
    return ";".join(map(quoted, row.stack))


def header_of(*more):
    return ",".join([HEADER.strip(), *more]) + "\n"


def as_csv(rows, program=None):
    """Without a program's name and stacks, as older versions write it."""
    if program is None and not any(row.stack for row in rows):
        return (HEADER + "".join(row.csv() for row in rows)).encode()
    names = [quoted(program or ""), *[""] * len(rows)]
    texts = [row.csv(name, stack_of(row)) for name, row in zip(names, rows)]
    return (header_of("Program", "Stack") + "".join(texts)).encode()


class Compact:
    """Writes the compact form, as docs/design/recording.md has it."""

    MAGIC = b"\x89CUSL\r\n\x1a"
    CLOCK_EVERY = 1 << 30  # microseconds

    def __init__(self, began, version=1, size=24):
        self.data = bytearray(struct.pack("<8sIIQII16x", self.MAGIC, version, 812, began, size, UNIT))
        self.clock, self.gpus, self.places, self.sources = began, {}, {}, {}

    def record(self, kind, place=0, source=0, time=0, size=0, held=0, address=0):
        self.data += struct.pack("<BBHIIIQ", kind, place, source, time, size, held, address)

    def text(self, kind, text, number=0):
        encoded = text.encode()
        for piece in range(0, len(encoded) or 1, 16):
            self.data += struct.pack("<BBHI16s", kind, piece // 16, number, len(encoded), encoded[piece : piece + 16])

    def place_of(self, row):
        if row.gpu == "" and row.limit < 0:
            return 0
        if row.gpu not in self.gpus:
            self.gpus[row.gpu] = len(self.gpus)
            self.text(7, row.gpu, self.gpus[row.gpu])
        if (row.gpu, row.limit) not in self.places:
            self.places[row.gpu, row.limit] = len(self.places) % 255 + 1
            limit = row.limit if row.limit >= 0 else (1 << 64) - 1
            self.record(4, self.places[row.gpu, row.limit], self.gpus[row.gpu], address=limit)
        return self.places[row.gpu, row.limit]

    def source_of(self, row):
        if (row.thread, row.stream) not in self.sources:
            self.sources[row.thread, row.stream] = len(self.sources) + 1
            self.record(6, 0, self.sources[row.thread, row.stream], time=row.thread, address=row.stream)
        return self.sources[row.thread, row.stream]

    def add(self, row):
        place, source = self.place_of(row), self.source_of(row)
        if abs(row.time - self.clock) > self.CLOCK_EVERY:
            self.clock = row.time
            self.record(5, address=row.time)
        kind, low = ACTIONS.index(row.action), row.time & 0xFFFFFFFF
        held = row.held // UNIT if row.held >= 0 else 0xFFFFFFFF
        if row.stack:
            self.text(10, stack_of(row))
        if row.address >> 56 or row.size >> 40:
            self.record(8, address=row.size)
            self.record(kind + 0x10, place, source, low, 0, held, row.address)
        else:
            self.record(kind, place, source, low, row.size & 0xFFFFFFFF, held, row.size >> 32 << 56 | row.address)


def as_compact(rows, began=None, program=None):
    made = Compact(rows[0].time if began is None else began)
    if program is not None:
        made.text(9, quoted(program))
    for row in rows:
        made.add(row)
    return bytes(made.data)


STACKS = (
    (),
    ("<module> (train.py:33)", "train (train.py:12)", "_call_impl (torch/nn/modules/module.py:1553)"),
    ("…", 'a,b;c%3B"\n (/home/π/two words.py:7)'),
    ("<module> (<stdin>:1)",),
)


def some_rows(chance, count, gpus=("GPU-a", "GPU-b"), start=0, pause=3000):
    """What a program may record, and what it may not: blocks that come and go, requests that are refused, frees of
    what is unknown, blocks that come twice or go from another GPU, limits that change, threads out of order."""
    time, blocks, held = start, [], dict.fromkeys(gpus, 100 << 20)
    limits = {gpu: chance.choice((1 << 31, 1 << 33, -1)) for gpu in gpus}
    sizes = [chance.choice((100, 70_000, 5 << 20, 100 << 20, 900 << 20, 3 << 30)) for _ in range(4)]
    rows = []
    for _ in range(count):
        time += chance.randrange(pause) if chance.random() > 0.0005 else chance.randrange(MICROSECONDS_OF_A_DAY // 3)
        gpu, address, size, kind = chance.choice(gpus), chance.randrange(1, 4000) * 512, 7, chance.random()
        if kind < 0.45:
            action, size = "allocate", chance.choice(sizes) if chance.random() < 0.8 else chance.randrange(1 << 41)
            blocks.append((address, size, gpu))
            held[gpu] = min(held[gpu] + size, MOST_HELD)
        elif kind < 0.9 and blocks:
            action = "free"
            address, size, gpu = blocks.pop(chance.randrange(len(blocks)))
            held[gpu] = max(0, held[gpu] - size)
            gpu = gpu if chance.random() < 0.98 else chance.choice(gpus)
        elif kind < 0.92:
            action = "free"
        else:
            action, address, size = "allocate failure", 0, chance.randrange(8 << 30)
        if chance.random() < 0.002:
            limits[gpu] = chance.randrange(1 << 34)
        known = limits[gpu] >= 0 and chance.random() < 0.999
        early = chance.randrange(10 * pause) if chance.random() < 0.03 else 0
        rows.append(
            Row(
                max(start, time - early),
                action,
                address,
                size,
                gpu if chance.random() < 0.999 else "",
                limits[gpu] if known else -1,
                held[gpu] // UNIT * UNIT if known else -1,
                chance.randrange(5),
                chance.choice((0, 0, 0x55AA00)),
                chance.choice(STACKS) if action != "free" and size >= 1 << 20 else (),
            )
        )
    return rows


def data_of(page):
    return json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


class InAFolder(unittest.TestCase):
    """Files that are gone afterwards, and what is made of them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, content, name="a.csv"):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def replay(self, *contents):
        """What these recordings come to, and what is noted beside it."""
        notes = []
        names = [self.file(content, f"{i}.csv") for i, content in enumerate(contents)]
        return recordings.replay(names, notes), [note.replace(self.folder + "/", "") for note in notes]

    def picture(self, *contents, title=None):
        """The specification in Vega-Lite, and what is noted beside it."""
        followed, notes = self.replay(*contents)
        gpus = followed.gpus()
        heading = plot_text.heading_of(followed, gpus, title, ["a.csv"])
        return plot_vega.specification(followed, gpus, heading), notes

    def page(self, *contents, title=None):
        followed, notes = self.replay(*contents)
        gpus = followed.gpus()
        heading = plot_text.heading_of(followed, gpus, title, ["a.csv"])
        return plot_page.page(followed, gpus, heading, notes)

    def page_data(self, *contents):
        """What the page's charts are drawn from."""
        return data_of(self.page(*contents))

    def gpus(self, *contents):
        """What is drawn of each GPU."""
        return {gpu.name: gpu for gpu in self.replay(*contents)[0].gpus()}

    def refused(self, *contents):
        with self.assertRaises(recordings.RecordingError) as caught:
            self.replay(*contents)
        return caught.exception.code, str(caught.exception).replace(self.folder + "/", "")
