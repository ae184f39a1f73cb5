# SPDX-License-Identifier: Apache-2.0
"""What every picture of a recording says in words: its heading, each GPU's name, and figures for people."""

from __future__ import annotations

import datetime
import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .gpu_names import name_of
from .recording_moments import GIB, KIB, MIB, Gpu
from .recordings import UNKNOWN, Replay

UNITS = ((1 << 60, "EiB"), (1 << 50, "PiB"), (1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000  # microseconds
LONGEST_TEXT = 200


class GpuHeading(NamedTuple):
    name: str  # "Tesla T4", or a number where nothing tells it
    uuid: str  # as the recording has it
    facts: List[Tuple[str, str]]  # ("limit", "1 GiB")


class Heading(NamedTuple):
    title: str
    files: str  # their names, where the title is the program's
    when: str
    gpus: List[GpuHeading]


def printable(text: str) -> str:
    """Text of others: nothing in it controls a terminal, or turns the text around it."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shown(text: str, most: int = LONGEST_TEXT) -> str:
    return printable(text if len(text) <= most else text[: most - 1] + "…")


def written_number(value: float, digits: int = 1) -> str:
    """ "1.5", "2": no zeros behind the point."""
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def written_size(size: float) -> str:
    """ "1.5 GiB": a size in bytes, for people."""
    for unit, name in UNITS:
        if size >= unit:
            return f"{written_number(size / unit)} {name}"
    return f"{size:.0f} bytes"


def written_duration(length: int) -> str:
    """ "2.23 s", "1 h 2 min": microseconds, for people."""
    if length < 1000:
        return f"{length} µs"
    if length < SECOND:
        return f"{written_number(length / 1000, 2)} ms"
    if length < 2 * MINUTE:
        return f"{written_number(length / SECOND, 2)} s"
    if length < 2 * HOUR:
        return f"{length // MINUTE} min {length % MINUTE // SECOND} s"
    return f"{length // HOUR} h {length % HOUR // MINUTE} min"


def clock(time: int) -> str:
    seconds = time // SECOND
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def written_day(microseconds: int) -> str:
    """ "29 November 2026, " of a time since 1970; empty where none is known, or no calendar has it."""
    try:
        day = datetime.date(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)
    except (OverflowError, ValueError):
        return ""
    return f"{day.day} {day:%B %Y}, " if microseconds >= 0 else ""


def written_time(followed: Replay) -> str:
    day = "" if followed.midnight == UNKNOWN else written_day(followed.midnight + followed.first)
    return f"{day}{clock(followed.first)} UTC, {written_duration(followed.last - followed.first)}"


def first_of(names: Sequence[str]) -> str:
    """ "a" or "a and 2 more"."""
    return shown(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def titles_of(title: Optional[str], programs: Sequence[str], names: Sequence[str]) -> Tuple[str, str]:
    """The title that was asked for, the program's name or the files' names; and the files' beside a program's."""
    files = first_of([os.path.basename(name) for name in names])
    known = sorted(dict.fromkeys(programs), key=lambda program: not program)  # those without a name come last
    if title is not None and title.strip():
        return shown(title.strip()), ""
    return (first_of(known), files) if any(known) else (files, "")


def facts_of(gpu: Gpu) -> List[Tuple[str, str]]:
    facts = [
        ("limit", written_size(gpu.highest_limit) if gpu.highest_limit >= 0 else "not recorded"),
        ("peak live", written_size(gpu.peak)),
    ]
    if gpu.highest_held >= 0:
        facts.append(("peak held", written_size(gpu.highest_held)))
    facts.append(("refused", "never" if not gpu.refused else "once" if gpu.refused == 1 else f"{gpu.refused} times"))
    if gpu.processes > 1:
        facts.append(("processes", str(gpu.processes)))
    return facts


def gpu_headings(gpus: Sequence[Gpu]) -> List[GpuHeading]:
    """GPUs of one model, and those whose model nothing tells, are numbered in the order of the recording."""
    names = [name_of(gpu.name) for gpu in gpus]
    numbered = [f"GPU {number}" if len(gpus) > 1 else "GPU" for number in range(len(gpus))]
    twice: Dict[str, bool] = {name: names.count(name) > 1 for name in names}
    return [
        GpuHeading(
            f"{shown(name)}, {number}" if name and twice[name] else shown(name) or number,
            shown(gpu.name, 64),
            facts_of(gpu),
        )
        for gpu, name, number in zip(gpus, names, numbered)
    ]


def heading_of(followed: Replay, gpus: Sequence[Gpu], title: Optional[str], names: Sequence[str]) -> Heading:
    return Heading(*titles_of(title, followed.programs, names), written_time(followed), gpu_headings(gpus))
