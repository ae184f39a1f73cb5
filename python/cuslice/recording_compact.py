# SPDX-License-Identifier: Apache-2.0
"""Recordings in the compact form: records of 24 bytes. docs/design/recording.md has them."""

from __future__ import annotations

import re
import struct
import sys
from array import array
from itertools import accumulate, islice
from operator import le
from typing import BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple

from .recording_rows import ALLOCATE, BAD_DATA, DAY, FREE, NO_ROWS, REFUSE, UNKNOWN
from .recording_rows import RecordingError, Rows, Source, Span
from .recording_stacks import SharedStacks, decoded

MAGIC = b"\x89CUSL\r\n\x1a"
HEADER = struct.Struct("<8sIIQII16x")
VERSION = 1
RECORD = struct.Struct("<BBHIIIQ")
BYTES = RECORD.size
READ_AT_ONCE = 1000 * BYTES

FILLER, PLACE, CLOCK, SOURCE, NAME, SIZE, PROGRAM, STACK = 0, 4, 5, 6, 7, 8, 9, 10
EVENT_KINDS, WIDE_KINDS = b"\x01\x02\x03", b"\x11\x12\x13"
KINDS_BEHIND_A_STACK = WIDE_KINDS + bytes([SIZE])
ACTIONS = ("", ALLOCATE, FREE, REFUSE)
ALIKE = re.compile(b"[\1\2\3]+|\x09+|\x0a+")  # records that are read together
BYTES_OF_PIECE = 16  # of a text
BYTES_OF_ADDRESS = 7  # behind them come bits 32 to 39 of the size
ADDRESS = (1 << 56) - 1
NOT_HELD, NO_LIMIT = (1 << 32) - 1, (1 << 64) - 1
HALF = 1 << 31


def words(data: bytes, letter: str) -> array[int]:
    """Its numbers: unsigned, of as many bytes as array's letter says, little-endian."""
    values = array(letter, data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


class Clock:
    """Makes times of a recording, since the midnight before its first row, of the low halves of times since 1970."""

    def __init__(self, began: int) -> None:
        self.reference = began
        self.midnight = self.last = -1

    def since_1970(self, low: int) -> int:
        return self.reference + (low - self.reference + HALF & NOT_HELD) - HALF

    def times(self, lows: array[int]) -> List[int]:
        if self.midnight < 0:
            self.midnight = self.since_1970(lows[0]) // DAY * DAY
        least, most = min(lows), max(lows)
        later = self.since_1970(least) - least
        if self.since_1970(most) - most == later:
            later -= self.midnight
            times = [low + later for low in lows]
        else:
            times = [self.since_1970(low) - self.midnight for low in lows]
        if times[0] < self.last or not all(map(le, times, islice(times, 1, None))):
            # Threads write their rows in an order of their own.
            times[0] = max(times[0], self.last)
            times = list(accumulate(times, max))
        self.last = times[-1]
        return times


class Pieces:
    """A text whose pieces stand one right behind another."""

    def __init__(self) -> None:
        self._length, self._text = 0, b""

    def add(self, records: bytes) -> None:
        begin = records[1::BYTES].rfind(0) * BYTES
        if begin >= 0:
            self._length, self._text = RECORD.unpack_from(records, begin)[3], b""
        known = len(self._text) // BYTES_OF_PIECE
        pieces = range(max(begin, 0), len(records), BYTES)
        if list(records[pieces.start + 1 :: BYTES]) == list(range(known, known + len(pieces))):
            self._text += b"".join(records[at + BYTES - BYTES_OF_PIECE : at + BYTES] for at in pieces)
        else:
            self._length = 0

    def whole(self) -> bytes:
        """Empty where a piece is missing."""
        is_whole = -len(self._text) // BYTES_OF_PIECE == -self._length // BYTES_OF_PIECE
        return self._text[: self._length] if is_whole else b""


class Compact:
    """Reads the events of one recording. A last record that was cut off is left out and noted; any other that makes no
    sense is an error, with its number."""

    def __init__(self, file: BinaryIO, name: str, size: int, notes: List[str]) -> None:
        self._file, self._name, self._notes = file, name, notes
        self._left = size - HEADER.size
        self._record = HEADER.size // BYTES  # the next one's number
        self._limits: Dict[int, Tuple[int, int]] = {}  # by place: GPU's number, limit
        self._names: Dict[int, Dict[int, bytes]] = {}  # of GPUs: pieces
        self._lengths: Dict[int, int] = {}  # of GPUs' names
        self._places: Dict[int, Tuple[str, int]] = {0: ("", UNKNOWN)}  # those that are known whole: name, limit
        self._sources: Dict[int, Source] = {}  # without stacks
        self._program, self._stack = Pieces(), Pieces()
        self._stacks = SharedStacks()
        self._wide: Optional[int] = None  # the size that the record before this one has for it
        self._clock = Clock(self._read_header())

    def _read_header(self) -> int:
        header = self._file.read(HEADER.size)
        if len(header) < HEADER.size or self._left < 0:
            raise RecordingError(f"{self._name}: is no recording: its header is cut off", BAD_DATA)
        _, version, pid, began, size, unit = HEADER.unpack(header)
        if (version, size) != (VERSION, BYTES):
            raise RecordingError(f"{self._name}: is of a newer version of cuslice", BAD_DATA)
        self.pid, self._unit = int(pid), unit
        return int(began)

    @property
    def program(self) -> str:
        """Known once there was an event."""
        return decoded(self._program.whole())

    @property
    def midnight(self) -> int:
        """Microseconds since 1970: the midnight from which times count, once there was an event."""
        return self._clock.midnight

    def span(self) -> Span:
        """The times of its first event and, as far as its last records tell, of its last. Raises what reading the first
        events raises. Nothing can be read afterwards."""
        rows = next(self.batches(), None)
        if rows is None:
            raise RecordingError(f"{self._name}: {NO_ROWS}", BAD_DATA)
        begin, last = self._file.tell(), array("I")
        at = begin + self._left // BYTES * BYTES
        while at > begin:
            size = min(READ_AT_ONCE, at - begin)
            at -= size
            self._file.seek(at)
            data = self._file.read(size)
            if not last:
                lows = words(data, "I")[1::6]
                last = array("I", (low for low, kind in zip(lows, data[::BYTES]) if kind in EVENT_KINDS))
            clock = data[::BYTES].rfind(CLOCK)
            if clock >= 0:
                self._clock.reference = RECORD.unpack_from(data, clock * BYTES)[6]
                break
        if last:
            self._clock.times(last)
        return Span(rows.times[0], self._clock.last)

    def batches(self) -> Iterator[Rows]:
        rest = b""
        while self._left > 0 and not rest:
            data = self._file.read(min(READ_AT_ONCE, self._left))
            whole = len(data) // BYTES * BYTES
            self._left -= len(data) or self._left
            yield from self._events(data[:whole])
            rest = data[whole:]
        if any(rest):
            self._notes.append(f"{self._name}: record {self._record}: the last row is cut off, and is left out")

    def _events(self, data: bytes) -> Iterator[Rows]:
        kinds = data[::BYTES]
        at = 0
        if not kinds.strip(b"\0"):
            at = len(kinds)
            self._record += at
            self._wide, self._stack = None, Pieces()
        while at < len(kinds):
            run = ALIKE.match(kinds, at)
            end = run.end() if run else at + 1
            records = data[at * BYTES : end * BYTES]
            rows = self._alike(records) if run else self._one(records)
            self._record += end - at
            at = end
            if rows:
                yield rows

    def _alike(self, records: bytes) -> Optional[Rows]:
        """Usual events, or pieces of a text, one after another."""
        kind, self._wide = records[0], None
        if kind == STACK:
            self._stack.add(records)
        elif kind == PROGRAM:
            self._program.add(records)
            self._stack = Pieces()
        else:
            return self._together(records)
        return None

    def _together(self, data: bytes) -> Rows:
        """Usual events."""
        kinds, places = data[::BYTES], data[1::BYTES]
        halves, numbers, longs = words(data, "H"), words(data, "I"), words(data, "Q")
        sources = halves[1::12]
        self._check(places, sources)
        addresses: Sequence[int] = longs[2::3]
        sizes: Sequence[int] = numbers[2::6]
        if data[2 * 8 + BYTES_OF_ADDRESS :: BYTES].strip(b"\0"):
            sizes = [size | address >> 56 << 32 for size, address in zip(sizes, addresses)]
            addresses = [address & ADDRESS for address in addresses]
        return self._rows(kinds, places, sources, numbers[1::6], sizes, numbers[3::6], addresses)

    def _rows(
        self,
        kinds: bytes,
        places: bytes,
        sources: Sequence[int],
        lows: array[int],
        sizes: Sequence[int],
        held: Sequence[int],
        addresses: Sequence[int],
    ) -> Rows:
        unit = self._unit
        gpus, limits = zip(*map(self._places.__getitem__, places))
        origins = list(map(self._sources.__getitem__, sources))
        stack, self._stack = self._stack.whole(), Pieces()
        if stack:
            origins[0] = (*origins[0][:2], self._stacks.of(stack))
        return Rows(
            self._clock.times(lows),
            list(map(ACTIONS.__getitem__, kinds)),
            addresses,
            sizes,
            gpus,
            limits,
            [UNKNOWN if units == NOT_HELD else units * unit for units in held],
            origins,
        )

    def _check(self, places: bytes, sources: Sequence[int]) -> None:
        """All that the events name has been said before."""
        strange = [sources.index(source) for source in set(sources).difference(self._sources)]
        strange += [places.index(place) for place in set(places) if not self._know(place)]
        if strange:
            raise self._broken(self._record + min(strange))

    def _know(self, place: int) -> bool:
        if place not in self._places and place in self._limits:
            gpu, limit = self._limits[place]
            length, pieces = self._lengths.get(gpu, 0), self._names.get(gpu, {})
            needed = range(-(-length // BYTES_OF_PIECE))
            if gpu in self._lengths and all(piece in pieces for piece in needed):
                name = b"".join(pieces[piece] for piece in needed)[:length].decode("utf-8", "replace")
                self._places[place] = (name, UNKNOWN if limit == NO_LIMIT else limit)
        return place in self._places

    def _one(self, record: bytes) -> Optional[Rows]:
        """Whatever isn't a usual event."""
        kind, place, source, time, _, held, address = RECORD.unpack(record)
        wide, self._wide = self._wide, None
        if kind not in KINDS_BEHIND_A_STACK:
            self._stack = Pieces()
        if kind == SIZE:
            self._wide = address
        elif kind == PLACE and place:
            self._limits[place] = (source, address)
            self._places.pop(place, None)
        elif kind == CLOCK:
            self._clock.reference = address
        elif kind == SOURCE:
            self._sources[source] = (time, address, b"")
        elif kind == NAME:
            self._names.setdefault(source, {})[place] = record[BYTES - BYTES_OF_PIECE :]
            self._lengths[source] = time
            self._places = {0: self._places[0]}
        elif kind in WIDE_KINDS and wide is not None:
            self._check(bytes([place]), [source])
            usual = bytes([kind & 3])
            return self._rows(usual, bytes([place]), [source], array("I", [time]), [wide], [held], [address])
        elif kind != FILLER:
            raise self._broken(self._record)
        return None

    def _broken(self, number: int) -> RecordingError:
        return RecordingError(f"{self._name}: record {number}: is no row of a recording", BAD_DATA)
