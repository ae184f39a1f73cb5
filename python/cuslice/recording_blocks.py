# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a recording are listed beside its picture: at each moment that is kept, the largest ones."""

from __future__ import annotations

from heapq import nlargest
from operator import attrgetter
from typing import Dict, List, Tuple

from .recording_rows import UNKNOWN, Rows

MOST_LISTED = 10  # at one moment
MOST_FOLLOWED = 1024  # live blocks of a GPU; of more, the smaller ones are no longer followed
FEW_FOLLOWED = MOST_FOLLOWED // 4  # so few have room for smaller ones again
MOST_ENDED = 1024  # before those that nothing lists are forgotten
NEVER = -1


class Block:
    """An allocation. Where it is listed nowhere, nobody asks when it ended."""

    __slots__ = ("size", "address", "process", "source", "row", "end_row", "begun", "ended", "listed")

    def __init__(self, size: int, address: int, process: int, source: Tuple[object, object], row: int, begun: int):
        self.size, self.address, self.process = size, address, process
        self.source = source  # thread and stream, as the recording has them
        self.row, self.end_row = row, NEVER  # the rows at which it comes and goes
        self.begun, self.ended = begun, NEVER  # the times of these
        self.listed = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self._values() == other._values()

    def __repr__(self) -> str:
        return f"Block{self._values()}"

    def _values(self) -> Tuple[int, ...]:
        return self.size, self.address, self.process, self.thread, self.stream, self.begun, self.ended

    @property
    def thread(self) -> int:
        return number_of(self.source[0], 10)

    @property
    def stream(self) -> int:
        return number_of(self.source[1], 0)


def number_of(raw: object, base: int) -> int:
    """A column that no picture needs, as a number. UNKNOWN where it is missing, or isn't one."""
    if isinstance(raw, int):
        return raw
    try:
        return int(raw, base) if isinstance(raw, (str, bytes)) else UNKNOWN
    except ValueError:
        return UNKNOWN


BY_SIZE = attrgetter("size")


def rank(block: Block) -> Tuple[int, int]:
    """The order of a list: by size, and of one size the older ones first."""
    return block.size, -block.row


class Blocks:
    """The largest live blocks of one GPU. All of `size >= floor` are followed; a block that comes and goes within one
    batch of rows, with no peak between, costs its reader no more than an entry in `young`."""

    __slots__ = ("floor", "young", "old", "unlisted", "_ended", "_missing", "_missing_since")

    def __init__(self) -> None:
        self.floor = 0
        self.young: Dict[int, Tuple[int, int]] = {}  # by key_of(): size, and the row in the present batch
        self.old: Dict[int, Block] = {}  # the same of earlier batches
        self.unlisted = 0  # smaller blocks than this may be missing in lists; 0: none is
        self._ended: List[Block] = []  # in this stretch of time
        self._missing = 0  # blocks up to this size are followed no longer
        self._missing_since = NEVER  # the first row that made one of them

    @staticmethod
    def key_of(process: int, address: int) -> int:
        """Processes may have the same addresses."""
        return process << 64 | address

    def settle(self, rows: Rows, before: int) -> None:
        """The batch of rows is over."""
        for key, (size, row) in self.young.items():
            self.old[key] = block_of(key, size, row, rows, before)
        self.young.clear()
        if len(self.old) > MOST_FOLLOWED:
            self._leave_small_ones()
        elif len(self.old) < FEW_FOLLOWED:
            self.floor = 0

    def _leave_small_ones(self) -> None:
        kept = nlargest(MOST_FOLLOWED // 2, self.old.items(), key=lambda item: item[1].size)
        smallest = kept[-1][1].size
        followed = dict(sorted(kept, key=lambda item: item[1].row))
        left = min(block.row for key, block in self.old.items() if key not in followed)
        self._missing_since = min(left, self._missing_since) if self._missing else left
        self.old = followed
        self._missing = max(self._missing, smallest)
        self.floor = smallest + 1

    def end(self, key: int, row: int, rows: Rows, before: int, peaks: Tuple[int, int]) -> None:
        """This row frees the block of this key. `peaks` are those rows up to here that may be kept as moments."""
        young = self.young.pop(key, None)
        if young is not None:
            self.end_young(key, young, row, rows, before, peaks)
            return
        block = self.old.pop(key, None)
        if block is not None and (block.listed or block.row <= peaks[0] or block.row <= peaks[1]):
            self._keep(block, row, rows, before, peaks)

    def end_young(
        self, key: int, young: Tuple[int, int], row: int, rows: Rows, before: int, peaks: Tuple[int, int]
    ) -> None:
        """The same of a block that came in this batch, and is in `young` no more."""
        if before + young[1] <= max(peaks):
            self._keep(block_of(key, *young, rows, before), row, rows, before, peaks)

    def _keep(self, block: Block, row: int, rows: Rows, before: int, peaks: Tuple[int, int]) -> None:
        block.end_row, block.ended = before + row, rows.times[row]
        self._ended.append(block)
        if len(self._ended) > MOST_ENDED:
            needed = {id(block): block for peak in peaks for block in self._largest_ended(peak)}
            self._ended = list(needed.values())

    def end_stretch(self) -> None:
        self._ended.clear()

    def listed(self, row: int) -> Tuple[Block, ...]:
        """The largest blocks that are live behind this row, which is one of this stretch of time."""
        live = [block for block in self.old.values() if block.row <= row]
        found = nlargest(MOST_LISTED, live, key=BY_SIZE)  # of one size, the older ones
        if self._ended:
            found = nlargest(MOST_LISTED, [*found, *self._largest_ended(row)], key=rank)
        is_short = len(found) < MOST_LISTED or found[-1].size < self._missing
        if self._missing and is_short and row >= self._missing_since:
            self.unlisted = self._missing
        for block in found:
            block.listed = True
        return tuple(found)

    def _largest_ended(self, row: int) -> List[Block]:
        return nlargest(MOST_LISTED, [block for block in self._ended if block.row <= row < block.end_row], key=rank)


def block_of(key: int, size: int, row: int, rows: Rows, before: int) -> Block:
    address = key & (1 << 64) - 1
    return Block(size, address, key >> 64, rows.sources[row], before + row, rows.times[row])
