# SPDX-License-Identifier: Apache-2.0
"""What is kept of a recording for its picture, however long it is: some moments and refusals of each GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .recording_blocks import Block, Blocks, number_of
from .recording_rows import UNKNOWN, Rows, Source
from .recording_stacks import frames_of

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Up to which size an allocation belongs to a class, and what the class is called.
CLASSES: Tuple[Tuple[float, str], ...] = (
    (64 * KIB, "up to 64 KiB"),
    (MIB, "up to 1 MiB"),
    (16 * MIB, "up to 16 MiB"),
    (128 * MIB, "up to 128 MiB"),
    (GIB, "up to 1 GiB"),
    (math.inf, "over 1 GiB"),
)

MOST_MOMENTS = 900  # of more, each stretch of time keeps those at which most was live or held, and its last one
STRETCHES = MOST_MOMENTS // 3
MOST_REFUSALS = 200  # of more, each stretch of time has one for all of them
HIGHEST_LIMIT = (1 << 63) - 1
MOST_ENTRIES = 4096
NOTHING_YET = -2  # less than what isn't known


def size_class(size: int) -> int:
    return next(i for i, (most, _) in enumerate(CLASSES) if size <= most)


class Stretches:
    """The time from a recording's first row to its last, in pieces of one length."""

    def __init__(self, first: int, last: int, pieces: int) -> None:
        self.first, self._most = first, pieces - 1
        self._length = max(1, (last - first) // pieces + 1)

    def at(self, time: int) -> int:
        """The last one has all that comes later, too."""
        return min((time - self.first) // self._length, self._most)

    def end(self, at: int) -> float:
        return self.first + (at + 1) * self._length if at < self._most else math.inf


class Refusal(NamedTuple):
    time: int
    size: int  # the largest, of several
    requests: int
    thread: int  # that asked for the largest; UNKNOWN where nothing tells
    stack: Tuple[str, ...]  # the same thread's


NO_REFUSAL = Refusal(-1, -1, 0, UNKNOWN, ())


def refusal_of(time: int, size: int, source: Source) -> Refusal:
    return Refusal(time, size, 1, number_of(source[0], 10), frames_of(source[2]))


class Refusals:
    """All of them or, of many, one for each stretch of time: the largest, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self._first: List[Refusal] = []
        self._largest: Dict[int, Refusal] = {}

    def add(self, time: int, size: int, source: Source, stretches: Stretches) -> None:
        self.count += 1
        if self.count <= MOST_REFUSALS:
            self._first.append(refusal_of(time, size, source))
        at = stretches.at(time)
        before = self._largest.get(at, NO_REFUSAL)
        largest = refusal_of(time, size, source) if size > before.size else before
        self._largest[at] = largest._replace(requests=before.requests + 1)

    @property
    def thinned(self) -> bool:
        return self.count > MOST_REFUSALS

    @property
    def in_memory(self) -> int:
        return len(self._first) + len(self._largest)

    @property
    def kept(self) -> List[Refusal]:
        return list(self._largest.values()) if self.thinned else self._first


class Moment(NamedTuple):
    time: int
    live: Tuple[int, ...]  # bytes, by class
    held: int  # bytes; -1: not known
    limit: int  # the same
    largest: Tuple[Block, ...] = ()  # of the live blocks


@dataclass
class Gpu:
    """What is drawn of one GPU: its moments, in the order of time, and what was refused."""

    name: str
    processes: int
    moments: List[Moment]
    refusals: List[Refusal]
    refused: int  # requests, all of them
    peak: int  # the most that was live
    highest_held: int  # -1: not known
    highest_limit: int  # the same
    thinned: bool  # not all of its moments are kept
    unlisted: int  # smaller blocks than this may be missing among the largest ones; 0: none is

    def stay_until(self, time: int) -> None:
        """It stays as it was."""
        if self.moments[-1].time < time:
            self.moments.append(self.moments[-1]._replace(time=time))


# A block: its size, the size's class, and the GPU that it is on. A NamedTuple is slower to read.
Entry = Tuple[int, int, "Tally"]

# A moment: the number of its row, live, held and limit; and where its time is to be found, which is seldom asked for.
Snapshot = Tuple[int, Tuple[int, ...], int, int, Sequence[int], int]
NO_ROW = -1


class Tally:
    """How one GPU is at the moment, and what is kept of what was. Of many moments each stretch of time keeps three at
    most, and among them the highest."""

    __slots__ = (
        *("name", "processes", "refusals", "live", "total", "held", "held_by", "limit", "highest_limit"),
        *("blocks", "entries", "row", "most_live", "most_held", "peaks", "_last", "_at_most_live"),
        *("_at_most_held", "_peak", "_highest_held", "_all", "_kept"),
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.processes: Set[int] = set()
        self.refusals = Refusals()
        self.live = [0] * len(CLASSES)  # bytes, by class
        self.total = 0  # of all classes
        self.held = -1  # bytes; -1: not known
        self.held_by: Dict[int, int] = {}  # by process that is here; -1: not known
        self.limit = self.highest_limit = -1  # the same
        self.blocks = Blocks()
        self.entries: Dict[int, Entry] = {}  # by size
        self.row = NO_ROW  # the last one of a batch, if nothing but its peaks was noted
        self.most_live = self.most_held = NOTHING_YET  # in this stretch
        self.peaks = (NO_ROW, NO_ROW)  # the numbers of the rows at which that was
        self._last: Tuple[int, Sequence[int], int] = (-1, (), -1)  # the last moment's number; where its time is
        self._at_most_live: Snapshot = (-1, (), -1, -1, (), -1)
        self._at_most_held: Snapshot = self._at_most_live
        self._peak, self._highest_held = 0, -1
        self._all: Optional[List[Moment]] = []
        self._kept: List[Moment] = []

    @property
    def crowded(self) -> bool:
        """It has more moments than are all kept."""
        return self._all is None

    def entry(self, size: int) -> Entry:
        """The one entry for all blocks of this size: there may be millions of them."""
        if len(self.entries) > MOST_ENTRIES:
            self.entries.clear()
        return self.entries.setdefault(size, (size, size_class(size), self))

    def hold(self, process: int, held: int) -> None:
        """This process is here, and holds as much."""
        if len(self.held_by) == 1:  # all of it, and nobody keeps the one up to date beside the other
            self.held_by = dict.fromkeys(self.held_by, self.held)
        self.processes.add(process)
        if held >= 0 and self.held_by.get(process, -1) < 0:
            self.held_by.pop(process, None)  # their order is that in which they are known
        self.held_by[process] = held if held >= 0 else self.held_by.get(process, -1)
        self._add_up()

    def forget(self, process: int) -> None:
        self.held_by.pop(process, None)
        self._add_up()

    def _add_up(self) -> None:
        known = [held for held in self.held_by.values() if held >= 0]
        self.held = sum(known) if known else -1

    def change(self, size: int, size_class: int) -> None:
        """So much more is live, or less."""
        self.live[size_class] += size
        self.total += size

    def set_limit(self, limit: int) -> None:
        self.limit = min(limit, HIGHEST_LIMIT)
        self.highest_limit = max(self.limit, self.highest_limit)

    def note(self, rows: Rows, row: int, before: int) -> None:
        """A moment: how it is behind this row."""
        self.row = row
        self.note_peaks(rows.times, row, before)
        self._settle_row(rows.times, before)
        if self._all is not None:
            self.blocks.settle(rows, before)
            listed = self.blocks.listed(before + row)
            self._all.append(Moment(rows.times[row], tuple(self.live), self.held, self.limit, listed))
            if len(self._all) > MOST_MOMENTS:
                self._all = None

    def note_peaks(self, times: Sequence[int], row: int, before: int) -> None:
        """The same, of which nothing is kept but what is the most so far."""
        if self.total > self.most_live:
            self.most_live = self.total
            self._at_most_live = before + row, tuple(self.live), self.held, self.limit, times, row
            self.peaks = before + row, self.peaks[1]
        if self.held > self.most_held:
            self.most_held = self.held
            self._at_most_held = before + row, tuple(self.live), self.held, self.limit, times, row
            self.peaks = self.peaks[0], before + row

    def end_block(self, key: int, rows: Rows, row: int, before: int) -> None:
        """This row frees a block, which may be one that nobody follows."""
        self.blocks.end(key, row, rows, before, self.peaks)

    def settle(self, rows: Rows, before: int) -> None:
        """These rows are over."""
        self.blocks.settle(rows, before)
        self._settle_row(rows.times, before)

    def _settle_row(self, times: Sequence[int], before: int) -> None:
        """The last moment was behind `row`."""
        if self.row >= 0:
            self._last = before + self.row, times, self.row
            self.row = NO_ROW

    @property
    def kept(self) -> int:
        """How many moments and refusals are in memory."""
        return len(self._kept) + len(self._all or ()) + self.refusals.in_memory

    def end_stretch(self) -> None:
        if self.most_live == NOTHING_YET:
            return
        number, times, row = self._last
        last = number, tuple(self.live), self.held, self.limit, times, row
        snapshots = {snapshot[0]: snapshot for snapshot in (self._at_most_live, self._at_most_held, last)}
        for number, (_, live, held, limit, times, row) in sorted(snapshots.items()):
            self._kept.append(Moment(times[row], live, held, limit, self.blocks.listed(number)))
        self.blocks.end_stretch()
        self.peaks = (NO_ROW, NO_ROW)
        self._peak = max(self._peak, self.most_live)
        self._highest_held = max(self._highest_held, self.most_held)
        self.most_live = self.most_held = NOTHING_YET

    def drawn(self) -> Gpu:
        self.end_stretch()
        return Gpu(
            self.name,
            len(self.processes),
            self._kept if self._all is None else self._all,
            self.refusals.kept,
            self.refusals.count,
            self._peak,
            self._highest_held,
            self.highest_limit,
            self.crowded,
            self.blocks.unlisted,
        )
