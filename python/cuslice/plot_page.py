# SPDX-License-Identifier: Apache-2.0
"""A recording as a web page: one file, which asks for nothing and takes nothing but the standard library to make."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from typing import Any, Dict, List, Sequence, Tuple

from .plot_stacks import asked_of, short_frame
from .plot_text import GpuHeading, Heading, written_size
from .recording_blocks import MOST_LISTED, Block
from .recordings import CLASSES, Gpu, Replay

SCRIPTS = ("plot_page_words.js", "plot_page_chart.js", "plot_page.js")
MOST_BLOCKS = 2000  # of one GPU, in a page

LINES = (("limit", "limit"), ("held", "held"), ("refused", "refused request"))
BUTTONS = (
    ("earlier", "←", "Move to earlier times"),
    ("later", "→", "Move to later times"),
    ("out", "−", "Zoom out"),
    ("in", "+", "Zoom in"),
    ("reset", "Reset zoom", ""),
)
HINTS = (
    (
        "fine",
        "Drag to zoom, double-click or press Esc to go back. With the keyboard: Tab to a chart, then ← → + − Esc.",
    ),
    ("coarse", "Drag to read, pinch with two fingers to zoom."),
)

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="cuslice plot">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<h1>{title}</h1>
<p class="when">{when}</p>
</header>
<div class="bar">
<ul class="legend">{legend}</ul>
<div class="tools" role="toolbar" aria-label="Zoom">{buttons}</div>
</div>
{sections}
<footer>{hints}{notes}</footer>
</main>
<div id="readout" hidden></div>
<noscript><p>The charts need JavaScript. This page asks no other site for anything.</p></noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def source(name: str) -> str:
    """A file of the page's, which lies beside this one."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
        return file.read()


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy_of(script: str, style: str) -> str:
    """A page asks for nothing, whatever a recording has in it, and nothing runs in it but what it came with."""
    return (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; base-uri 'none'; "
        "form-action 'none'"
    )


def as_data(value: Any) -> str:
    """JSON in which nothing means anything to HTML."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def listed_in(gpu: Gpu, most: int) -> Dict[int, Block]:
    return {id(block): block for moment in gpu.moments for block in moment.largest[:most]}


def most_listed(gpu: Gpu) -> int:
    """The length of the lists of blocks with which a page stays small."""
    return next((most for most in range(MOST_LISTED, 1, -1) if len(listed_in(gpu, most)) <= MOST_BLOCKS), 1)


def frames_of(blocks: Sequence[Block], rows: Sequence[List[Any]]) -> List[str]:
    """The frames that stand for the blocks' stacks. Adds its frame's number to the row of each block that has a stack."""
    frames: Dict[str, int] = {}
    for block, row in zip(blocks, rows):
        stack = block.stack
        if stack:
            row.append(frames.setdefault(short_frame(stack), len(frames)))
    return list(frames)


def blocks_of(gpu: Gpu, first: int) -> Tuple[List[List[Any]], List[List[int]], int, List[str]]:
    """The blocks that are listed anywhere; for each moment its list, by their numbers; how long a list may be; and the
    blocks' frames."""
    most = most_listed(gpu)
    blocks = listed_in(gpu, most)
    numbers = {key: number for number, key in enumerate(blocks)}
    rows: List[List[Any]] = [
        [
            block.begun - first,
            block.ended - first if block.ended >= 0 else -1,
            block.size,
            f"{block.address:#x}",
            block.thread,
            block.stream,
            block.process,
        ]
        for block in blocks.values()
    ]
    largest = [[numbers[id(block)] for block in moment.largest[:most]] for moment in gpu.moments]
    return rows, largest, most, frames_of(list(blocks.values()), rows)


def gpu_data(gpu: Gpu, heading: GpuHeading, first: int, last: int) -> Dict[str, Any]:
    gpu.stay_until(last)
    used = used_classes([gpu])
    blocks, largest, most, frames = blocks_of(gpu, first)
    return {
        "name": heading.name,
        "times": [moment.time - first for moment in gpu.moments],
        "classes": used,
        "live": [[moment.live[at] for at in used] for moment in gpu.moments],
        "held": [moment.held for moment in gpu.moments],
        "limit": [moment.limit for moment in gpu.moments],
        "most": max(gpu.highest_limit, gpu.highest_held, gpu.peak),
        "refusals": [[refusal.time - first, refusal.size, refusal.requests] for refusal in gpu.refusals],
        "blocks": blocks,
        "largest": largest,
        "listed": most,
        "frames": frames,
    }


def used_classes(gpus: Sequence[Gpu]) -> List[int]:
    return [at for at in range(len(CLASSES)) if any(moment.live[at] for gpu in gpus for moment in gpu.moments)]


def notes_of(gpus: Sequence[Gpu], notes: Sequence[str]) -> List[str]:
    """All that the page leaves out."""
    said = list(notes)
    if any(gpu.thinned for gpu in gpus):
        said.append(
            "This recording is long: each of 300 stretches of time shows the moments at which most was live and most "
            "was held, and its last one."
        )
    if any(len(gpu.refusals) < gpu.refused for gpu in gpus):
        said.append("Refusals of one stretch of time share a mark, which says how many there were and the largest.")
    if any(gpu.unlisted for gpu in gpus):
        size = written_size(max(gpu.unlisted for gpu in gpus))
        said.append(f"Lists of the largest blocks may lack some of up to {size}.")
    shortest = min(most_listed(gpu) for gpu in gpus)
    if shortest < MOST_LISTED:
        said.append(f"So many blocks come and go that only the {shortest} largest are listed.")
    return said


def legend_of(gpus: Sequence[Gpu]) -> str:
    entries = [(f"class-{at}", CLASSES[at][1]) for at in used_classes(gpus)]
    some_refused = any(gpu.refused for gpu in gpus)
    entries += [(kind, name) for kind, name in LINES if kind != "refused" or some_refused]
    return "".join(f'<li><i class="key {kind}"></i>{html.escape(name)}</li>' for kind, name in entries)


def section_of(heading: GpuHeading, asked: str) -> str:
    facts = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(said)}</dd></div>" for name, said in heading.facts
    )
    uuid = html.escape(heading.uuid) or "not named in the recording"
    return (
        f'<section><h2>{html.escape(heading.name)} <small>{uuid}</small></h2><dl class="facts">{facts}</dl>'
        f'<div class="chart" tabindex="0" role="application"></div>{asked}</section>'
    )


def buttons() -> str:
    return "".join(
        f'<button type="button" id="{name}"'
        + (f' aria-label="{says}" title="{says}"' if says else "")
        + f">{sign}</button>"
        for name, sign, says in BUTTONS
    )


def page(followed: Replay, gpus: Sequence[Gpu], heading: Heading, notes: Sequence[str]) -> str:
    # A block, so that nothing of it becomes the window's.
    script = '"use strict";\n{\n' + "".join(map(source, SCRIPTS)) + "}\n"
    style = source("plot_page.css")
    data = {
        "start": followed.first,
        "length": followed.last - followed.first,
        "processes": followed.processes,
        "gpus": [gpu_data(gpu, one, followed.first, followed.last) for gpu, one in zip(gpus, heading.gpus)],
    }
    return PAGE.format(
        policy=policy_of(script, style),
        title=html.escape(heading.title),
        style=style,
        when=html.escape(", ".join(filter(None, (heading.files, heading.when)))),
        legend=legend_of(gpus),
        buttons=buttons(),
        sections="\n".join(section_of(one, asked_of(gpu, followed)) for one, gpu in zip(heading.gpus, gpus)),
        hints="".join(f'<p class="hint {kind}">{hint}</p>' for kind, hint in HINTS),
        notes="".join(f"<p>{html.escape(note)}</p>" for note in notes_of(gpus, notes)),
        data=as_data(data),
        script=script,
    )
