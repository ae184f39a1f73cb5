# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a recording are listed beside its picture: at each moment that is kept, the largest ones."""

from __future__ import annotations

from heapq import nlargest
from operator import attrgetter
from typing import Dict, List, Tuple

from .recording_rows import UNKNOWN, Rows, Source
from .recording_stacks import frames_of

MOST_LISTED = 10  # at one moment
MOST_FOLLOWED = 1024  # live blocks of a GPU; of more, the smaller ones are no longer followed
FEW_FOLLOWED = MOST_FOLLOWED // 4  # so few have room for smaller ones again
MOST_ENDED = 1024  # before those that nothing lists are forgotten
BATCHES = 8  # of rows, between two searches for the leaders
NEVER = -1


class Block:
    """An allocation. Where it is listed nowhere, nobody asks when it ended."""

    __slots__ = ("size", "key", "source", "row", "end_row", "begun", "ended", "listed", "leads")

    def __init__(self, size: int, key: int, source: Source, row: int, begun: int) -> None:
        self.size, self.key = size, key
        self.source = source
        self.row, self.end_row = row, NEVER  # the rows at which it comes and goes
        self.begun, self.ended = begun, NEVER  # the times of these
        self.listed = self.leads = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self._values() == other._values()

    def __repr__(self) -> str:
        return f"Block{self._values()}"

    def _values(self) -> Tuple[object, ...]:
        where = self.address, self.process, self.thread, self.stream, self.stack
        return self.size, *where, self.begun, self.ended

    @property
    def address(self) -> int:
        return self.key & (1 << 64) - 1

    @property
    def process(self) -> int:
        return self.key >> 64

    @property
    def thread(self) -> int:
        return number_of(self.source[0], 10)

    @property
    def stream(self) -> int:
        return number_of(self.source[1], 0)

    @property
    def stack(self) -> Tuple[str, ...]:
        return frames_of(self.source[2])


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


def key_of(process: int, address: int) -> int:
    """Processes may have the same addresses."""
    return process << 64 | address


class Leaders:
    """As many blocks as a list has that were the largest at some moment, for as long as all of them are live: no smaller
    block is listed meanwhile."""

    __slots__ = ("known", "size", "row", "_blocks")

    def __init__(self) -> None:
        self.known = False
        self.size = self.row = 0  # of the smallest, and of the last one that came
        self._blocks: List[Block] = []

    def choose(self, blocks: List[Block]) -> None:
        for block in self._blocks:
            block.leads = False
        self._blocks = blocks
        self.known = len(blocks) == MOST_LISTED
        if not self.known:
            return
        self.size, self.row = blocks[-1].size, max(block.row for block in blocks)
        for block in blocks:
            block.leads = True


class Blocks:
    """The largest live blocks of one GPU. All of `size >= floor` are followed; a block that comes and goes within one
    batch of rows, with no peak between, costs its reader no more than an entry in `young`."""

    __slots__ = ("floor", "young", "old", "unlisted", "_ended", "_missing", "_missing_since", "_leaders", "_wait")

    def __init__(self) -> None:
        self.floor = 0
        self.young: Dict[int, Tuple[int, int]] = {}  # by key_of(): size, and the row in the present batch
        self.old: Dict[int, Block] = {}  # the same of earlier batches
        self.unlisted = 0  # smaller blocks than this may be missing in lists; 0: none is
        self._ended: List[Block] = []  # in this stretch of time
        self._missing = 0  # blocks up to this size are followed no longer
        self._missing_since = NEVER  # the first row that made one of them
        self._leaders = Leaders()
        self._wait = 0  # batches until they are looked for

    def settle(self, rows: Rows, before: int) -> None:
        """The batch of rows is over."""
        times, sources = rows.times, rows.sources
        for key, (size, row) in self.young.items():
            self.old[key] = Block(size, key, sources[row], before + row, times[row])
        self.young.clear()
        self._look_for_leaders()
        if len(self.old) > MOST_FOLLOWED:
            self._leave_small_ones()
        elif len(self.old) < FEW_FOLLOWED:
            self.floor = 0

    def _look_for_leaders(self) -> None:
        if self._wait > 0:
            self._wait -= 1
        elif not self._leaders.known:
            self._leaders.choose(nlargest(MOST_LISTED, self.old.values(), key=BY_SIZE))
            self._wait = BATCHES

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
        if block is None:
            return
        if block.leads:
            self._leaders.known = False
        if block.listed or self._may_be_listed(block.size, block.row, peaks):
            self._keep(block, row, rows, before, peaks)

    def end_young(
        self, key: int, young: Tuple[int, int], row: int, rows: Rows, before: int, peaks: Tuple[int, int]
    ) -> None:
        """The same of a block that came in this batch, and is in `young` no more."""
        size, begun = young
        if self._may_be_listed(size, before + begun, peaks):
            self._keep(
                Block(size, key, rows.sources[begun], before + begun, rows.times[begun]), row, rows, before, peaks
            )

    def _may_be_listed(self, size: int, row: int, peaks: Tuple[int, int]) -> bool:
        """True if a block that is live until now may be one of the largest at a peak."""
        leaders = self._leaders
        if leaders.known and size < leaders.size:  # at a peak at which all of those were there it can't be
            return row <= peaks[0] < leaders.row or row <= peaks[1] < leaders.row
        return row <= peaks[0] or row <= peaks[1]

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
