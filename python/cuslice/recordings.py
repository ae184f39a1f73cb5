"""Recordings of memory (`cuslice run --record`): their rows, and what of a GPU's memory was live and held at each moment.

Reads RMM's own logs too, and what older versions of cuslice have recorded.
"""

from __future__ import annotations

import heapq
import math
import os
from array import array
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, TextIO, Tuple

BAD_DATA, NO_INPUT = 65, 66  # as in sysexits.h

NO_ROWS = "has no rows: nothing was allocated"
NEEDED = ("Time", "Action", "Pointer", "Size")
# A row is much shorter. What has no newline within so many characters is no text of ours.
LONGEST_LINE = 4096
DAY = 86_400_000_000  # microseconds
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


class RecordingError(Exception):
    """What ends the command: one line for people, and its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Event(NamedTuple):
    """A row of a recording. Times are in microseconds since the midnight (UTC) before its first row."""

    time: int
    action: str
    address: int
    size: int
    gpu: str  # "" where the recording names none
    limit: Optional[int]
    held: Optional[int]


def size_class(size: int) -> int:
    return next(i for i, (most, _) in enumerate(CLASSES) if size <= most)


def time_of_day(text: str) -> int:
    """Microseconds of "09:12:03.000417", or as RMM has it "09:12:03:000417"."""
    hours, minutes, seconds, fraction = text.replace(".", ":").split(":")
    if not (hours + minutes + seconds + fraction).isdecimal():
        raise ValueError(text)
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(fraction[:6].ljust(6, "0"))


def number(text: str, base: int = 10) -> int:
    value = int(text, base)
    if not 0 <= value < 1 << 64:
        raise ValueError(text)
    return value


def read_rows(file: TextIO, name: str, notes: List[str]) -> Iterator[Event]:
    """The rows of a recording, cuslice's or RMM's own, in the order of the file. A last row that was cut off, as a
    killed program leaves it, is left out and noted; any other broken row is an error, with its line."""
    header = file.readline(LONGEST_LINE).rstrip("\r\n").split(",")
    missing = [column for column in NEEDED if column not in header]
    if header == [""]:
        raise RecordingError(f"{name}: is empty", BAD_DATA)
    if missing:
        raise RecordingError(f"{name}: is no recording: line 1 has no column {missing[0]}", BAD_DATA)
    time_at, action_at, address_at, size_at = (header.index(column) for column in NEEDED)
    gpu_at, limit_at, held_at = (
        header.index(column) if column in header else -1 for column in ("GPU", "Limit", "Held")
    )
    last, days = -1, 0
    for line_number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 2):
        if not line.endswith("\n") and len(line) < LONGEST_LINE:
            notes.append(f"{name}:{line_number}: the last row is cut off, and is left out")
            return
        fields = line.rstrip("\r\n").split(",")
        try:
            if len(fields) != len(header):
                raise ValueError(line)
            time = time_of_day(fields[time_at]) + days
            # Threads write their rows in an order of their own. Half a day back is the next day.
            if time < last - DAY // 2:
                days += DAY
                time += DAY
            last = time = max(time, last)
            action = fields[action_at]
            if action not in ("allocate", "free", "allocate failure"):
                raise ValueError(action)
            limit = fields[limit_at] if limit_at >= 0 else ""
            held = fields[held_at] if held_at >= 0 else ""
            yield Event(
                time,
                action,
                number(fields[address_at], 16),
                number(fields[size_at]),
                fields[gpu_at] if gpu_at >= 0 else "",
                number(limit) if limit else None,
                number(held) if held else None,
            )
        except ValueError:
            raise RecordingError(
                f"{name}:{line_number}: is no row of a recording: {line.rstrip()[:80]!r}", BAD_DATA
            ) from None


class Refusal(NamedTuple):
    time: int
    size: int  # the largest, of several
    requests: int


@dataclass
class Gpu:
    """What happened on one GPU: its moments, in the order of time, and what was refused."""

    name: str
    processes: Set[int] = field(default_factory=set)
    times: array[int] = field(default_factory=lambda: array("q"))
    live: List[array[int]] = field(default_factory=lambda: [array("q") for _ in CLASSES])  # bytes, by class
    held: array[int] = field(default_factory=lambda: array("q"))  # bytes; -1: not known
    limits: array[int] = field(default_factory=lambda: array("q"))  # the same
    refusals: List[Refusal] = field(default_factory=list)
    now: List[int] = field(default_factory=lambda: [0] * len(CLASSES))
    held_by: Dict[int, int] = field(default_factory=dict)  # by process
    limit: int = -1

    def note(self, time: int) -> None:
        self.times.append(time)
        for row, value in zip(self.live, self.now):
            row.append(value)
        self.held.append(sum(self.held_by.values()) if self.held_by else -1)
        self.limits.append(self.limit)

    def live_at(self, moment: int) -> int:
        return sum(row[moment] for row in self.live)

    @property
    def peak(self) -> int:
        return max(map(self.live_at, range(len(self.times))), default=0)


class Replay:
    """Follows the rows of several processes' recordings through time."""

    def __init__(self, last_times: Sequence[int]) -> None:
        self.gpus: Dict[str, Gpu] = {}
        self.strays = 0  # frees of what no row allocates
        self.first = self.last = -1
        self._last_times = last_times  # by process
        self._blocks: List[Dict[int, Tuple[int, Gpu]]] = [{} for _ in last_times]

    def _end(self, process: int) -> None:
        for size, gpu in self._blocks[process].values():
            gpu.now[size_class(size)] -= size
        self._blocks[process].clear()
        for gpu in self.gpus.values():
            gpu.held_by.pop(process, None)

    def take(self, process: int, event: Event) -> None:
        self.first = event.time if self.first < 0 else self.first
        self.last = event.time
        gpu = self.gpus.setdefault(event.gpu, Gpu(event.gpu))
        gpu.processes.add(process)
        blocks = self._blocks[process]
        changed = [gpu]
        if event.action == "allocate":
            if event.address in blocks:
                self._forget(blocks, event.address, changed)
            blocks[event.address] = (event.size, gpu)
            gpu.now[size_class(event.size)] += event.size
        elif event.action == "free":
            if event.address in blocks:
                self._forget(blocks, event.address, changed)
            else:
                self.strays += 1
        else:
            gpu.refusals.append(Refusal(event.time, event.size, 1))
        if event.limit is not None:
            gpu.limit = min(event.limit, (1 << 63) - 1)
        if event.held is not None:
            gpu.held_by[process] = event.held
            # All of them share the limit, and what they hold never stays above it: where it would, a process whose
            # recording is over has ended.
            over = [other for other in gpu.held_by if self._last_times[other] < event.time]
            while over and sum(gpu.held_by.values()) > gpu.limit >= 0:
                self._end(over.pop(0))
                changed = list(self.gpus.values())
        for one in changed:
            one.note(event.time)

    @staticmethod
    def _forget(blocks: Dict[int, Tuple[int, Gpu]], address: int, changed: List[Gpu]) -> None:
        size, gpu = blocks.pop(address)
        gpu.now[size_class(size)] -= size
        if gpu not in changed:
            changed.append(gpu)


def replay(names: Sequence[str], notes: List[str]) -> Replay:
    """Reads the files and follows all of them at once. Several are read twice: when each ends is known beforehand."""
    if len(names) == 1:
        alone = Replay([1 << 62])
        with open_recording(names[0]) as file:
            for event in read_rows(file, names[0], notes):
                alone.take(0, event)
        return checked(alone, names[0], notes)
    last_times, shifts = [], []
    start: Optional[int] = None
    for name in names:
        with open_recording(name) as file:
            first = last = None
            for event in read_rows(file, name, notes):
                first, last = event.time if first is None else first, event.time
        if first is None or last is None:
            raise RecordingError(f"{name}: {NO_ROWS}", BAD_DATA)
        start = first if start is None else start
        # Of recordings of one run, one may begin before midnight and another one after it.
        shift = DAY if first < start - DAY // 2 else -DAY if first > start + DAY // 2 else 0
        shifts.append(shift)
        last_times.append(last + shift)
    earliest = DAY if min(shifts) < 0 else 0

    result = Replay([last + earliest for last in last_times])
    files = [open_recording(name) for name in names]
    try:

        def rows(process: int) -> Iterator[Tuple[int, int, Event]]:
            shift = shifts[process] + earliest
            for event in read_rows(files[process], names[process], []):
                yield event.time + shift, process, event._replace(time=event.time + shift)

        for _, process, event in heapq.merge(*map(rows, range(len(files))), key=lambda row: row[:2]):
            result.take(process, event)
    finally:
        for file in files:
            file.close()
    return checked(result, names[0], notes)


def checked(result: Replay, name: str, notes: List[str]) -> Replay:
    if result.first < 0:
        raise RecordingError(f"{name}: {NO_ROWS}", BAD_DATA)
    if result.strays:
        notes.append(f"{result.strays} frees of memory that no row allocates are left out")
    return result


def open_recording(name: str) -> TextIO:
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            raise RecordingError(f"{name}: is not a regular file", NO_INPUT)
        return open(name, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise RecordingError(f"{name}: {error.strerror}", NO_INPUT) from None
