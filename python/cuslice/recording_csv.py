# SPDX-License-Identifier: Apache-2.0
"""Recordings as text: cuslice's own, also those of older versions, and RMM's logs."""

from __future__ import annotations

import re
from itertools import accumulate, repeat
from typing import Any, BinaryIO, Callable, Dict, Generic, Iterator, List, Optional, Sequence, TypeVar, Union

from .recording_rows import ALLOCATE, BAD_DATA, DAY, FREE, NO_ROWS, REFUSE, UNKNOWN
from .recording_rows import RecordingError, Rows, Span
from .recording_stacks import SharedStacks, decoded

NEEDED = ("Time", "Action", "Pointer", "Size")
OPTIONAL = ("GPU", "Limit", "Held", "Thread", "Stream", "Program", "Stack")
ACTIONS = {action.encode(): action for action in (ALLOCATE, FREE, REFUSE)}
T = TypeVar("T")
# A row is much shorter. What has no newline within so many characters is no text of ours.
LONGEST_LINE = 4096
READ_AT_ONCE = 64 << 10  # bytes: with more, the rows' fields don't stay in the processor's cache
MOST_KNOWN = 4096
PROBES = 64
LATEST = 60_000_000  # microseconds that a thread's row may come behind later ones of others
# The beginning of a time of day, as far as a killed program has come with it.
TORN = re.compile(r"\d\d?|\d\d:\d{0,2}|\d\d:\d\d:\d{0,2}|\d\d:\d\d:\d\d\.\d{0,6}", re.ASCII)


def time_of_day(text: str) -> int:
    """Microseconds of "09:12:03.000417", or as RMM has it "09:12:03:000417"."""
    hours, minutes, seconds, fraction = text.replace(".", ":").split(":")
    if not (hours + minutes + seconds + fraction).isdecimal():
        raise ValueError(text)
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(fraction[:6].ljust(6, "0"))


def number(text: Union[str, bytes], base: int = 10) -> int:
    value = int(text, base)
    if not 0 <= value < 1 << 64:
        raise ValueError
    return value


def numbers(texts: Sequence[bytes], base: int = 10) -> List[int]:
    """The same of many."""
    values = list(map(int, texts, repeat(base)))
    if min(values) < 0 or max(values) >= 1 << 64:
        raise ValueError
    return values


def numbers_or_gaps(texts: Sequence[bytes]) -> List[int]:
    """The same of a column that may have gaps."""
    if not any(texts):
        return [UNKNOWN] * len(texts)
    try:
        return numbers(texts)
    except ValueError:
        return list(map(number_or_gap, texts))


class Recurring(Generic[T]):
    """Converts a column in which most texts come again and again."""

    def __init__(self, one: Callable[[bytes], T], many: Callable[[Sequence[bytes]], List[T]]) -> None:
        self._one, self._many = one, many
        self._known: Dict[bytes, T] = {}

    def of(self, texts: List[bytes]) -> List[T]:
        try:
            return list(map(self._known.__getitem__, texts))
        except KeyError:
            pass
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        new = set(texts).difference(self._known)
        if len(new) * 4 > len(texts):
            return self._many(texts)
        self._known.update((text, self._one(text)) for text in new)
        return list(map(self._known.__getitem__, texts))


def number_or_gap(text: bytes) -> int:
    return number(text) if text else UNKNOWN


def name_of(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def names_of(texts: Sequence[bytes]) -> List[str]:
    return list(map(name_of, texts))


class TimesOfDay(Sequence[int]):
    """Times of rows, all of one day, of which the last one is known. They are put in order and converted when they are
    asked for: of most rows nobody asks."""

    def __init__(self, texts: List[bytes], last: int, days: int, least: int) -> None:
        self._texts, self._last, self._end = texts, last, len(texts) - 1
        self._days, self._least = days, least
        self._seconds: Dict[bytes, int] = {}  # the times of whole seconds
        self._first = max(time_of_day(texts[0].decode()) + days, least)
        self._in_order = False

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, at: Any) -> Any:
        if at == 0:
            return self._first
        if at == self._end or at == -1:
            return self._last
        if not self._in_order:
            self._put_in_order()
        text = self._texts[at]
        time = (self._seconds.get(text[:8]) or self._second(text[:8])) + int(text[9:])
        return time if time > self._least else self._least

    def _second(self, text: bytes) -> int:
        time = self._seconds[text] = time_of_day(text.decode() + ".0") + self._days
        return time

    def __iter__(self) -> Iterator[int]:
        if not self._in_order:
            self._put_in_order()
        seconds = {text: self._second(text) for text in {text[:8] for text in self._texts}}
        times = (seconds[text[:8]] + int(text[9:]) for text in self._texts)
        return times if self._first > self._least else map(max, times, repeat(self._least))

    def _put_in_order(self) -> None:
        self._texts = list(accumulate(self._texts, max))
        self._in_order = True


def has_long_line(text: bytes) -> bool:
    begin = 0
    while len(text) - begin > LONGEST_LINE:
        begin = text.rfind(b"\n", begin, begin + LONGEST_LINE) + 1
        if begin == 0:
            return True
    return False


class Clock:
    """Makes times of a recording of its times of day."""

    def __init__(self) -> None:
        self.last, self.days = -1, 0

    def time(self, of_day: int) -> int:
        time = of_day + self.days
        # Threads write their rows in an order of their own. Half a day back is the next day, and nearly a day on is
        # the day before.
        if time < self.last - DAY // 2:
            self.days += DAY
            time += DAY
        elif self.is_of_the_day_before(time):
            time = self.last
        self.last = max(time, self.last)
        return self.last

    def is_of_the_day_before(self, time: int) -> bool:
        return self.last >= 0 and time > self.last + DAY - LATEST

    def times(self, texts: List[bytes]) -> Optional[TimesOfDay]:
        """The same of many, which are of one form: HH:MM:SS.ffffff. None where they aren't, or may be of two days."""
        count, joined = len(texts), b",".join(texts) + b","
        dot = joined[8:9]
        if (
            len(joined) != 16 * count
            or dot not in (b".", b":")
            or joined[2::16] != b":" * count
            or joined[5::16] != b":" * count
            or joined[8::16] != dot * count
            or joined.translate(None, b"0123456789") != (b"::" + dot + b",") * count
        ):
            return None
        # Their order as texts is that of the times.
        first, last = (time_of_day(text.decode()) + self.days for text in (min(texts), max(texts)))
        if first < max(last, self.last) - DAY // 2 or self.is_of_the_day_before(last):
            return None
        before, self.last = self.last, max(last, self.last)
        return TimesOfDay(texts, self.last, self.days, before)


class Csv:
    """Reads the rows of one recording, in the order of the file. A last row that was cut off, as a disk without space
    leaves it, and rows that a killed program hadn't finished are left out and noted; any other broken row is an error,
    with its line."""

    def __init__(self, file: BinaryIO, name: str, size: int, notes: List[str]) -> None:
        self._file, self._name, self._notes = file, name, notes
        self._left = size
        self._clock = Clock()
        self._line = 1  # how many have been read
        self._after_blank = False
        self._torn = 0
        self._sizes = Recurring(number, numbers)
        self._limits = Recurring(number_or_gap, numbers_or_gaps)
        self._gpus = Recurring(name_of, names_of)
        self._stacks = SharedStacks()
        self.program = ""  # known once there was a row
        self._is_named = False
        self._columns(self._read_header())

    def _read_header(self) -> List[str]:
        line = self._file.readline(min(LONGEST_LINE, self._left))
        self._left -= len(line)
        return line.decode("utf-8", "replace").rstrip("\r\n").split(",")

    def _columns(self, header: List[str]) -> None:
        missing = [column for column in NEEDED if column not in header]
        if header == [""]:
            raise RecordingError(f"{self._name}: is empty", BAD_DATA)
        if missing:
            raise RecordingError(f"{self._name}: is no recording: line 1 has no column {missing[0]}", BAD_DATA)
        self._width = len(header)
        self._time, self._action, self._address, self._size = (header.index(column) for column in NEEDED)
        self._gpu, self._limit, self._held, self._thread, self._stream, self._program, self._stack = (
            header.index(column) if column in header else -1 for column in OPTIONAL
        )
        used = (self._time, self._action, self._address, self._size, self._gpu, self._limit, self._held)
        self._first_is_used = 0 in (*used, self._program, self._stack)

    def span(self) -> Span:
        """The times of its first row and, as far as some places in the file tell, of its last. Raises what reading the
        first rows raises. Nothing can be read afterwards."""
        rows = next(self.batches(), None)
        if rows is None:
            raise RecordingError(f"{self._name}: {NO_ROWS}", BAD_DATA)
        begin, end = self._file.tell(), self._file.tell() + self._left
        for probe in range(PROBES):
            self._probe(begin + (end - begin) * probe // PROBES, 2 * LONGEST_LINE, 1)
        at = end
        while at > begin:
            at = max(begin, at - READ_AT_ONCE)
            if self._probe(at, min(READ_AT_ONCE, end - at) + LONGEST_LINE, READ_AT_ONCE):
                break
        return Span(rows.times[0], self._clock.last)

    def _probe(self, at: int, size: int, most: int) -> int:
        """Looks at some rows out of order. Returns how many there were."""
        self._file.seek(at)
        seen = 0
        for line in self._file.read(size).decode("utf-8", "replace").split("\n")[1:-1]:
            fields = line.split(",")
            if len(fields) == self._width and seen < most:
                try:
                    self._clock.time(time_of_day(fields[self._time]))
                    seen += 1
                except ValueError:
                    pass
        return seen

    def batches(self) -> Iterator[Rows]:
        for text in self._texts():
            rows = self._together(text) or self._one_by_one(text.decode("utf-8", "replace"))
            if rows.times:
                yield rows
        if self._torn:
            self._notes.append(f"{self._name}: {self._torn} rows that a killed program had not finished are left out")

    def _texts(self) -> Iterator[bytes]:
        """The file in pieces of whole lines, but for what can't be one."""
        rest = b""
        while self._left > 0:
            data = self._file.read(min(READ_AT_ONCE, self._left))
            if not data:
                break
            self._left -= len(data)
            if not rest and not data.strip(b"\n"):
                self._line += len(data)
                self._after_blank = True
                continue
            end = data.rfind(b"\n") + 1
            if end:
                yield rest + data[:end]
                rest = data[end:]
            else:
                rest += data
            if len(rest) > LONGEST_LINE * 4:  # bytes of a character
                break
        if rest:
            yield rest

    def _together(self, text: bytes) -> Optional[Rows]:
        """All rows of a text at once, column by column. None where a row is unusual or broken: nothing is read then."""
        if not text.endswith(b"\n") or b"\r" in text or self._first_is_used or has_long_line(text):
            return None
        width = self._width
        marked = text[:-1].replace(b"\n", b",\n")
        newlines = len(marked) - len(text) + 1
        fields = marked.split(b",")
        count, rest = divmod(len(fields), width)
        # Each line has to begin in the first column. A longer row and a shorter one could make up for each other.
        if rest or newlines != count - 1 or b"".join(fields[::width]).count(b"\n") != newlines:
            return None
        try:
            actions = list(map(ACTIONS.__getitem__, fields[self._action :: width]))
            addresses = numbers(fields[self._address :: width], 16)
            sizes = self._sizes.of(fields[self._size :: width])
            limits = self._limits.of(fields[self._limit :: width]) if self._limit >= 0 else [UNKNOWN] * count
            held = numbers_or_gaps(fields[self._held :: width]) if self._held >= 0 else [UNKNOWN] * count
        except (KeyError, ValueError):
            return None
        gpus = self._gpus.of(fields[self._gpu :: width]) if self._gpu >= 0 else [""] * count
        times = self._clock.times(fields[self._time :: width])
        if times is None:
            return None
        threads, streams = (
            fields[column::width] if column >= 0 else [b""] * count for column in (self._thread, self._stream)
        )
        stacks = self._stacks_of(fields[self._stack :: width]) if self._stack >= 0 else repeat(b"")
        if self._program >= 0:
            self._name_program(fields[self._program])
        self._line += count
        self._after_blank = False
        return Rows(times, actions, addresses, sizes, gpus, limits, held, list(zip(threads, streams, stacks)))

    def _stacks_of(self, texts: List[bytes]) -> List[bytes]:
        return [self._stacks.of(text) if text else text for text in texts]

    def _name_program(self, text: bytes) -> None:
        """By the first row: all others leave it out."""
        if not self._is_named:
            self.program, self._is_named = decoded(text), True

    def _one_by_one(self, text: str) -> Rows:
        rows = Rows([], [], [], [], [], [], [], [])
        lines = text.split("\n")
        last = lines.pop()  # without a newline
        for line in lines:
            self._line += 1
            if line and not self._is_torn(line):
                self._add(line, rows)
            self._after_blank = not line
        if last:
            self._line += 1
            if len(last) >= LONGEST_LINE:
                raise self._broken(last)
            self._notes.append(f"{self._name}:{self._line}: the last row is cut off, and is left out")
        return rows

    def _is_torn(self, line: str) -> bool:
        """A killed program's row lacks its beginning, the thread: that is written last, and newlines are there till
        then."""
        first, comma, _ = line.partition(",")
        torn = self._after_blank and TORN.fullmatch(first) is not None and not (comma and first.isdecimal())
        self._torn += torn
        return torn

    def _add(self, line: str, rows: Rows) -> None:
        fields = line.rstrip("\r").split(",")
        try:
            if len(fields) != self._width or len(line) >= LONGEST_LINE:
                raise ValueError(line)
            of_day = time_of_day(fields[self._time])
            action = ACTIONS[fields[self._action].encode()]
            limit = fields[self._limit] if self._limit >= 0 else ""
            held = fields[self._held] if self._held >= 0 else ""
            thread, stream, program, stack = (
                fields[at] if at >= 0 else "" for at in (self._thread, self._stream, self._program, self._stack)
            )
            row = (
                action,
                number(fields[self._address], 16),
                number(fields[self._size]),
                fields[self._gpu] if self._gpu >= 0 else "",
                number(limit) if limit else UNKNOWN,
                number(held) if held else UNKNOWN,
                (thread, stream, self._stacks.of(stack.encode())),
            )
        except (KeyError, ValueError):
            raise self._broken(line) from None
        self._name_program(program.encode())
        for column, value in zip(rows, (self._clock.time(of_day), *row)):
            column.append(value)  # type: ignore[attr-defined]

    def _broken(self, line: str) -> RecordingError:
        return RecordingError(f"{self._name}:{self._line}: is no row of a recording: {line.rstrip()[:80]!r}", BAD_DATA)
