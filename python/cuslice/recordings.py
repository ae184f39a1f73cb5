# SPDX-License-Identifier: Apache-2.0
"""Recordings of memory (`cuslice run --record`): what of a GPU's memory was live and held at each moment.

Reads both forms of a recording, RMM's own logs too, and what older versions of cuslice have recorded.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from contextlib import ExitStack, contextmanager
from itertools import islice, repeat
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .recording_blocks import key_of
from .recording_compact import MAGIC, Compact
from .recording_csv import Csv
from .recording_moments import CLASSES, GIB, KIB, MIB, MOST_REFUSALS, STRETCHES
from .recording_moments import Entry, Gpu, Moment, Refusal, Stretches, Tally
from .recording_rows import ALLOCATE, BAD_DATA, DAY, FREE, NO_ROWS, UNKNOWN
from .recording_rows import RecordingError, Rows, Span, open_recording

__all__ = [
    "CLASSES",
    "GIB",
    "KIB",
    "MIB",
    "UNKNOWN",
    "Gpu",
    "Moment",
    "RecordingError",
    "Refusal",
    "Replay",
    "open_recording",
    "replay",
]

UNUSUAL = -2  # less than what isn't known
SOON = 60_000_000  # microseconds


class Replay:
    """Follows the rows of several processes' recordings through time."""

    def __init__(self, spans: Sequence[Span]) -> None:
        first, last = min(span.first for span in spans), max(span.last for span in spans)
        self.first = self.last = -1
        self.processes: List[str] = []  # the number of each, empty where nothing tells it
        self.programs: List[str] = []  # the name of each, the same
        self.midnight = UNKNOWN  # from which the times count, in microseconds since 1970
        self.strays = 0  # frees of what no row allocates
        # All of them share the limit, and what they hold never stays above it: where it would, a process whose
        # recording is over has ended.
        self._ends = [span.last if len(spans) > 1 else math.inf for span in spans]  # by process
        self._blocks: List[Dict[int, Entry]] = [{} for _ in spans]  # by process and address
        self._tallies: Dict[str, Tally] = {}  # by GPU
        self._crowded: Dict[str, Tally] = {}  # those whose moments are not all kept
        self._moments, self._refusals = Stretches(first, last, STRETCHES), Stretches(first, last, MOST_REFUSALS)
        self._stretch, self._rows = -1, 0

    @property
    def thinned(self) -> bool:
        """What is kept depends on the times of the first and the last row."""
        return bool(self._crowded) or any(tally.refusals.thinned for tally in self._tallies.values())

    @property
    def kept(self) -> int:
        """How many things are in memory, but for live blocks."""
        return sum(tally.kept for tally in self._tallies.values())

    def gpus(self) -> List[Gpu]:
        return [tally.drawn() for tally in self._tallies.values()]

    def name_processes(self, recordings: Sequence[Recording]) -> None:
        """Says whose files they are, and of which day."""
        self.processes = [recording.process for recording in recordings]
        self.programs = [recording.program for recording in recordings]
        if recordings[0].midnight != UNKNOWN:
            self.midnight = recordings[0].midnight - shifts_of([recording.guess for recording in recordings])[0]

    def take(self, rows: Rows, processes: Sequence[int] = ()) -> None:
        """The next rows in the order of time; without `processes` all are of the first one."""
        times = rows.times
        self.first = times[0] if self.first < 0 else self.first
        begin = 0
        while begin < len(times):
            stretch = self._moments.at(times[begin])
            next_begins = self._moments.end(stretch)
            end = len(times) if times[-1] < next_begins else bisect_left(times, next_begins, begin)
            if stretch != self._stretch:
                self._end_stretch()
            self._stretch = stretch
            self._take_some(rows, processes, begin, end)
            begin = end
        self.last = times[-1]
        self._rows += len(times)

    def _end_stretch(self) -> None:
        for tally in self._tallies.values():
            tally.end_stretch()

    def _take_some(self, rows: Rows, processes: Sequence[int], begin: int, end: int) -> None:
        """Rows of one stretch of time. Here the time goes when a long recording is read, so the usual rows are followed
        in one loop: blocks that come and go, on a GPU of many moments. All others are _take_row's."""
        times, before, crowded = rows.times, self._rows, self._crowded
        several, blocks = len(self._blocks) > 1, self._blocks[0]
        some_end = any(last < times[end - 1] for last in self._ends)
        columns: List[Any] = [processes or repeat(0), *rows[1:-1]]
        if end - begin < len(times):
            columns = [islice(column, begin, end) for column in columns]
        for row, process, action, address, size, name, limit, held in zip(range(begin, end), *columns):
            tally = crowded.get(name)
            if tally is not None and (limit is tally.limit or limit == tally.limit):
                total = held if held >= 0 else tally.held
                if several:
                    blocks = self._blocks[process]
                    total = self._total(tally, process, held, some_end)
                entry = None
                key = address if process == 0 else process << 64 | address
                if total == UNUSUAL:
                    pass
                elif action is FREE:
                    entry = blocks.pop(address, None)
                    if entry is None:
                        pass
                    elif entry[2] is tally:
                        more = -entry[0]
                        young = tally.blocks.young.pop(key, None)
                        if young is not None:
                            if before + young[1] <= tally.peaks[0] or before + young[1] <= tally.peaks[1]:
                                tally.blocks.end_young(key, young, row, rows, before, tally.peaks)
                        elif key in tally.blocks.old:
                            tally.end_block(key, rows, row, before)
                    else:
                        blocks[address] = entry
                        entry = None
                elif action is ALLOCATE and address not in blocks:
                    entry = blocks[address] = tally.entries.get(size) or tally.entry(size)
                    more = size
                    if size >= tally.blocks.floor:
                        tally.blocks.young[key] = size, row
                if entry is not None:
                    tally.live[entry[1]] += more
                    tally.total = live = tally.total + more
                    tally.held = total
                    tally.row = row
                    if live > tally.most_live or total > tally.most_held:
                        tally.note_peaks(times, row, before)
                    continue
            self._take_row(rows, row, process, action, address, size, name, limit, held)
        for tally in self._tallies.values():
            tally.settle(rows, before)

    @staticmethod
    def _total(tally: Tally, process: int, held: int, some_end: bool) -> int:
        """How much all processes hold as soon as this one holds so much."""
        before = tally.held_by.get(process)
        if before is None or (before >= 0) is not (held >= 0):
            return UNUSUAL
        total = tally.held + held - before
        if some_end and total > tally.limit >= 0:
            return UNUSUAL
        tally.held_by[process] = held
        return total

    def _take_row(
        self,
        rows: Rows,
        row: int,
        process: int,
        action: str,
        address: int,
        size: int,
        name: str,
        limit: int,
        held: int,
    ) -> None:
        tally = self._tallies.get(name) or self._tallies.setdefault(name, Tally(name))
        changed = {name: tally}
        if action == ALLOCATE:
            self._free(rows, row, process, address, changed)
            entry = self._blocks[process][address] = tally.entry(size)
            tally.change(size, entry[1])
            if size >= tally.blocks.floor:
                tally.blocks.young[key_of(process, address)] = size, row
        elif action == FREE:
            self.strays += not self._free(rows, row, process, address, changed)
        else:
            tally.refusals.add(rows.times[row], size, rows.sources[row], self._refusals)
        if limit >= 0:
            tally.set_limit(limit)
        tally.hold(process, held)
        if held >= 0:
            time = rows.times[row]
            over = [other for other, known in tally.held_by.items() if known >= 0 and self._ends[other] < time]
            while over and tally.held > tally.limit >= 0:
                self._end(over.pop(0), rows, row)
                changed = self._tallies
        for one in changed.values():
            one.note(rows, row, self._rows)
            if one.crowded:
                self._crowded[one.name] = one

    def _free(self, rows: Rows, row: int, process: int, address: int, changed: Dict[str, Tally]) -> bool:
        entry = self._blocks[process].pop(address, None)
        if entry is None:
            return False
        size, size_class, tally = entry
        tally.change(-size, size_class)
        tally.end_block(key_of(process, address), rows, row, self._rows)
        changed[tally.name] = tally
        return True

    def _end(self, process: int, rows: Rows, row: int) -> None:
        for address, (size, size_class, tally) in self._blocks[process].items():
            tally.change(-size, size_class)
            tally.end_block(key_of(process, address), rows, row, self._rows)
        self._blocks[process].clear()
        for tally in self._tallies.values():
            tally.forget(process)


class Recording:
    """A file, as long as it is when it is first looked at."""

    def __init__(self, name: str) -> None:
        self.name = name
        with open_recording(name) as file:
            self._compact = file.read(len(MAGIC)) == MAGIC
            self._size = file.seek(0, os.SEEK_END)
            changed = os.fstat(file.fileno()).st_mtime_ns // 1000
        with self.reading([]) as reader:
            self.guess = reader.span()
            self.program = reader.program
            if isinstance(reader, Compact):
                self.process, self.midnight = str(reader.pid), reader.midnight
            else:
                self.process, self.midnight = pid_in(name), midnight_before(self.guess.last, changed)

    @contextmanager
    def reading(self, notes: List[str]) -> Iterator[Union[Csv, Compact]]:
        form = Compact if self._compact else Csv
        with open_recording(self.name) as file:
            yield form(file, self.name, self._size, notes)


def pid_in(name: str) -> str:
    """All processes of a run but the first have their number behind the file's name. Empty where there is none."""
    ending = os.path.splitext(name)[1][1:]
    return ending if ending.isdecimal() else ""


def midnight_before(last: int, changed: int) -> int:
    """The midnight from which the times of a text count, in microseconds since 1970, if the file was changed soon after
    its last row; UNKNOWN where it wasn't: a text has times of day alone, and the file may be a copy."""
    after = (changed - last) % DAY
    return changed - last - after if after < SOON else UNKNOWN


def replay(names: Sequence[str], notes: List[str]) -> Replay:
    """Reads the files and follows all of them at once. What is kept depends on when each of them begins and ends. That
    is guessed beforehand, and where the guess was wrong they are read again."""
    recordings = [Recording(name) for name in names]
    guess = [recording.guess for recording in recordings]
    result, spans, said = follow(recordings, guess)
    if spans != guess and (len(names) > 1 or result.thinned):
        result, _, said = follow(recordings, spans)
    if result.first < 0:
        raise RecordingError(f"{names[0]}: {NO_ROWS}", BAD_DATA)
    result.name_processes(recordings)
    notes += said
    if result.strays:
        notes.append(f"{result.strays} frees of memory that no row allocates are left out")
    return result


def follow(recordings: Sequence[Recording], spans: Sequence[Span]) -> Tuple[Replay, List[Span], List[str]]:
    """What comes of them, the times at which each has really begun and ended, and what is to be said beside it."""
    shifts = shifts_of(spans)
    result = Replay([Span(span.first + shift, span.last + shift) for span, shift in zip(spans, shifts)])
    notes: List[List[str]] = [[] for _ in recordings]
    seen = [Seen() for _ in recordings]
    with ExitStack() as files:
        batches = [
            one.look(files.enter_context(recording.reading(said)).batches())
            for recording, said, one in zip(recordings, notes, seen)
        ]
        if len(recordings) == 1:
            for rows in batches[0]:
                result.take(rows)
        else:
            for rows, processes in merged(batches, shifts):
                result.take(rows, processes)
    return result, [one.span for one in seen], [note for said in notes for note in said]


class Seen:
    """When the rows begin and end that went by."""

    span = Span(-1, -1)

    def look(self, batches: Iterator[Rows]) -> Iterator[Rows]:
        for rows in batches:
            first = self.span.first
            self.span = Span(rows.times[0] if first < 0 else first, rows.times[-1])
            yield rows


def shifts_of(spans: Sequence[Span]) -> List[int]:
    """What is added to each recording's times: of one run, one may begin before midnight and another one after it."""
    start = spans[0].first
    shifts = [DAY if span.first < start - DAY // 2 else -DAY if span.first > start + DAY // 2 else 0 for span in spans]
    earliest = DAY if min(shifts) < 0 else 0
    return [shift + earliest for shift in shifts]


def merged(batches: Sequence[Iterator[Rows]], shifts: Sequence[int]) -> Iterator[Tuple[Rows, Sequence[int]]]:
    """The rows of all in the order of time, those of one time in the order of the files; and of which file each is."""
    pending: List[List[Tuple[Any, ...]]] = [[] for _ in batches]
    going_on = set(range(len(batches)))
    while going_on or any(pending):
        for process in sorted(going_on):
            if not pending[process]:
                rows = next(batches[process], None)
                if rows is None:
                    going_on.discard(process)
                else:
                    shifted = map(shifts[process].__add__, rows.times)
                    pending[process] = list(zip(shifted, repeat(process), *rows[1:]))
        # Up to here all rows are known: of this one the next may be of the same time.
        until, least = min(((pending[process][-1][0], process) for process in going_on), default=(math.inf, -1))
        ready: List[Tuple[Any, ...]] = []
        for process, known in enumerate(pending):
            at = bisect_left(known, (until + (process <= least),))
            ready += known[:at]
            pending[process] = known[at:]
        ready.sort(key=itemgetter(0))
        if ready:
            times, processes, *others = zip(*ready)
            yield Rows(times, *others), processes
