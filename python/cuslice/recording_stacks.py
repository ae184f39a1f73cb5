# SPDX-License-Identifier: Apache-2.0
"""Python's stacks and programs' names in recordings: percent-encoded texts."""

from __future__ import annotations

from typing import Dict, Tuple
from urllib.parse import unquote_to_bytes

MOST_SHARED = 1000


def decoded(text: bytes) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def frames_of(stack: bytes) -> Tuple[str, ...]:
    """Outermost first: "train (train.py:12)". None where the recording has no stack."""
    return tuple(map(decoded, stack.split(b";"))) if stack else ()


class SharedStacks:
    """Keeps one object for equal stacks: a program allocates at the same places again and again."""

    def __init__(self) -> None:
        self._known: Dict[bytes, bytes] = {}

    def of(self, stack: bytes) -> bytes:
        if len(self._known) >= MOST_SHARED:
            self._known.clear()
        return self._known.setdefault(stack, stack)
