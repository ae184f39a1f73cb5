# SPDX-License-Identifier: Apache-2.0
"""Python's stacks on a page: the frame that stands for one, and the lists of who asked."""

from __future__ import annotations

import html
from heapq import nlargest
from typing import List, Sequence, Tuple

from .plot_text import clock, printable, written_duration, written_size
from .recording_blocks import BY_SIZE, Block
from .recordings import Gpu, Refusal, Replay

MOST_REFUSALS = 20  # with a whole stack

ASKED = """<details class="asked"><summary>Who asked</summary>
<p>Python's stacks, most recent call last.</p>
{lists}
</details>"""


def is_own(frame: str) -> bool:
    """The file is the program's: those of libraries are named from the library's folder on."""
    file = frame.partition(" (")[2].rpartition(":")[0]
    in_library = "/" in file and not file.startswith("/")
    return file != "" and not in_library and not file.startswith("<frozen ")


def short_frame(stack: Sequence[str]) -> str:
    """The innermost frame of the program's own, or else the innermost one; with the end of its path."""
    frame = next(filter(is_own, reversed(stack)), stack[-1])
    function, opening, place = frame.partition(" (")
    return printable(function + opening + "/".join(place.split("/")[-2:]))


def written_stack(stack: Sequence[str]) -> str:
    if not stack:
        return "<p>No Python stack.</p>"
    return "<ol>" + "".join(f"<li>{html.escape(printable(frame))}</li>" for frame in stack) + "</ol>"


def written_list(title: str, entries: Sequence[Tuple[List[str], Sequence[str]]]) -> str:
    """Facts and a stack of each."""
    items = "".join(f"<li><p>{', '.join(facts)}</p>{written_stack(stack)}</li>" for facts, stack in entries)
    return f"<h3>{title}</h3>\n<ul>{items}</ul>" if entries else ""


def moment_of(time: int, followed: Replay) -> str:
    return f"after {written_duration(time - followed.first)} ({clock(time)} UTC)"


def thread_of(thread: int) -> List[str]:
    return [f"thread {thread}"] if thread >= 0 else []


def refusal_facts(refusal: Refusal, followed: Replay) -> List[str]:
    several = [f"the largest of {refusal.requests}"] if refusal.requests > 1 else []
    return [written_size(refusal.size), *several, moment_of(refusal.time, followed), *thread_of(refusal.thread)]


def block_facts(block: Block, followed: Replay) -> List[str]:
    facts = [written_size(block.size), f"{block.address:#x}", *thread_of(block.thread)]
    if len(followed.processes) > 1:
        facts.append(f"process {followed.processes[block.process] or f'of file {block.process + 1}'}")
    return [*facts, f"allocated {moment_of(block.begun, followed)}"]


def asked_of(gpu: Gpu, followed: Replay) -> str:
    """Empty where nothing that would be listed has a stack."""
    refusals = sorted(nlargest(MOST_REFUSALS, gpu.refusals, key=BY_SIZE), key=lambda refusal: refusal.time)
    peak = max(gpu.moments, key=lambda moment: sum(moment.live))
    if not any(refusal.stack for refusal in refusals) and not any(block.stack for block in peak.largest):
        return ""
    are_more = len(gpu.refusals) > MOST_REFUSALS
    refused = f"The {MOST_REFUSALS} largest refused requests" if are_more else "Refused requests"
    lists = (
        written_list(refused, [(refusal_facts(refusal, followed), refusal.stack) for refusal in refusals]),
        written_list(
            f"The largest live blocks at the peak, {moment_of(peak.time, followed)}",
            [(block_facts(block, followed), block.stack) for block in peak.largest],
        ),
    )
    return ASKED.format(lists="\n".join(filter(None, lists)))
