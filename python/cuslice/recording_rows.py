# SPDX-License-Identifier: Apache-2.0
"""Rows of recordings (`cuslice run --record`) as their readers hand them on: in batches, a column each."""

from __future__ import annotations

import os
from typing import BinaryIO, NamedTuple, Sequence, Tuple

BAD_DATA, NO_INPUT = 65, 66  # as in sysexits.h

NO_ROWS = "has no rows: nothing was allocated"
DAY = 86_400_000_000  # microseconds
ALLOCATE, FREE, REFUSE = "allocate", "free", "allocate failure"
UNKNOWN = -1  # where a row names no limit, or nothing held


class RecordingError(Exception):
    """What ends the command: one line for people, and its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


# Thread and stream, and the thread's Python stack: as the recording has them.
Source = Tuple[object, object, bytes]


class Rows(NamedTuple):
    """Some rows of one recording, in the order of the file."""

    times: Sequence[int]  # microseconds since the midnight (UTC) before the recording's first row; they never fall
    actions: Sequence[str]  # these very objects: ALLOCATE, FREE, REFUSE
    addresses: Sequence[int]
    sizes: Sequence[int]
    gpus: Sequence[str]  # "" where the recording names none
    limits: Sequence[int]  # UNKNOWN where there is none
    held: Sequence[int]  # the same
    sources: Sequence[Source]


class Span(NamedTuple):
    """The times of a recording's first and last row."""

    first: int
    last: int


def open_recording(name: str) -> BinaryIO:
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            raise RecordingError(f"{name}: is not a regular file", NO_INPUT)
        return open(name, "rb")
    except OSError as error:
        raise RecordingError(f"{name}: {error.strerror}", NO_INPUT) from None
