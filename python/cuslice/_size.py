# SPDX-License-Identifier: Apache-2.0
"""Sizes of memory, as numbers and as texts."""

from __future__ import annotations

import re
from typing import Union

#: In any case, as the settings take them: docs/configuration.md.
_UNITS = {
    **{name: 1024**power for power, names in enumerate("k m g t".split(), 1) for name in (names, f"{names}i")},
    **{f"{name}ib": 1024**power for power, name in enumerate("kmgt", 1)},
    **{f"{name}b": 1000**power for power, name in enumerate("kmgt", 1)},
}
_TEXT = re.compile(r"(\d+)(?:\.(\d{1,9}))?([A-Za-z]+)")


def bytes_of(size: Union[int, str], name: str) -> int:
    """The bytes of 4294967296 or "4GiB", at least 1. `name`: the parameter, for the error.

    Raises TypeError for what is neither, ValueError for a text that is no size, a size that isn't above 0 and one that
    64 bits can't count.
    """
    if isinstance(size, bool) or not isinstance(size, (int, str)):
        raise TypeError(f'{name}: {size!r}: a number of bytes, or a text such as "4GiB"')
    found = size if isinstance(size, int) else _read(size, name)
    if not 0 < found < 1 << 63:
        raise ValueError(f'{name}: {size!r}: more than 0 bytes, and no more than a GPU can have, as "4GiB"')
    return found


def _read(text: str, name: str) -> int:
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f'{name}: {text!r}: a size with its unit is needed, as "4GiB"')
    whole, fraction, unit = found.groups()
    if unit.lower() not in _UNITS:
        raise ValueError(f"{name}: {text!r}: {unit!r} is not a unit of size: use KiB, MiB, GiB or TiB")
    decimals = fraction or ""
    scaled: int = int(whole + decimals) * _UNITS[unit.lower()] // 10 ** len(decimals)
    return scaled


def text_of(size: int) -> str:
    """A size for people, in the largest unit of which it has at least one: "1.5 GiB"."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
