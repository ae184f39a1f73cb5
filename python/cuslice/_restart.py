# SPDX-License-Identifier: Apache-2.0
"""This process's own command line, to start it anew."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn, Sequence


def command_line() -> List[str]:
    """The words by which this process was started, those of Python itself included."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def become(words: Sequence[str]) -> NoReturn:
    """Replaces this process by another program, with nothing left unwritten. Raises OSError if it can't be started."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(words[0], list(words))
