# SPDX-License-Identifier: Apache-2.0
"""Pictures of recordings as SVG and PNG, by Vega-Lite: the specification, and the package that draws it."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .plot_text import GpuHeading, Heading, clock, written_size
from .recordings import CLASSES, GIB, KIB, MIB, Gpu, Moment, RecordingError, Refusal, Replay

UNAVAILABLE = 69  # as in sysexits.h

WIDTH, HEIGHT = 1000, 240  # of a panel, in pixels
COLORS = ("#d3e4f3", "#a9cce6", "#7eb3d8", "#5195c6", "#2a74ad", "#12507f")
LINES = {"limit": "#c62828", "held": "#1f2328", "refused": "#d9730d"}
INK, FAINT, GRID = "#1f2328", "#59636e", "#e4e8ec"
FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"

MOST_LABELS = 12  # for each GPU


def labelled_refusals(refusals: Sequence[Refusal], length: int) -> List[int]:
    """Which of them have their size written beside them: the largest, where it can be read."""
    chosen: List[int] = []
    for i in sorted(range(len(refusals)), key=lambda i: -refusals[i].size):
        if all(abs(refusals[i].time - refusals[other].time) * MOST_LABELS > length for other in chosen):
            chosen.append(i)
    return chosen


def harmless(text: str) -> str:
    """Text of others: nothing in it means anything to SVG."""
    return re.sub(r"[^\w .,:()/-]", "?", text)


def unit_of(gpus: Sequence[Gpu]) -> Tuple[int, str]:
    most = max((max(gpu.peak, gpu.highest_held, gpu.highest_limit) for gpu in gpus), default=0)
    return next(((unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB")) if most >= 2 * unit), (KIB, "KiB"))


def amount(name: str, title: Optional[str], **more: Any) -> Dict[str, Any]:
    return {"field": name, "type": "quantitative", "title": title, **more}


def word(name: str, title: Optional[str], **more: Any) -> Dict[str, Any]:
    return {"field": name, "type": "nominal", "title": title, **more}


def layer(values: List[Dict[str, Any]], mark: Dict[str, Any], **encoding: Any) -> Dict[str, Any]:
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def bends(values: Sequence[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """The points of a line, which begins where it is known, and is drawn anew only where it changes."""
    known = [(time, value) for time, value in values if value >= 0]
    return [
        known[at]
        for at in range(len(known))
        if at in (0, len(known) - 1) or not known[at - 1][1] == known[at][1] == known[at + 1][1]
    ]


class Scales:
    """Times and bytes as a panel has them."""

    def __init__(self, first: int, last: int, unit: Tuple[int, str]) -> None:
        self.first, self.last, (self.unit, self.unit_name) = first, last, unit
        self.tick, self.time_name = (1_000_000, "seconds") if last - first >= 1_000_000 else (1000, "milliseconds")

    def since(self, time: int) -> float:
        return round((time - self.first) / self.tick, 6)

    def scaled(self, size: int) -> float:
        return round(size / self.unit, 4)


def size_ticks(top: float) -> List[float]:
    """At most seven round values, of powers of two, from 0 to `top`."""
    step = 2.0 ** math.ceil(math.log2(top / 6)) if top > 0 else 1.0
    return [step * number for number in range(int(top / step) + 1)]


def areas_of(moments: Sequence[Moment], scales: Scales) -> List[Dict[str, Any]]:
    used = [i for i in range(len(CLASSES)) if any(moment.live[i] for moment in moments)]
    return [
        {"s": scales.since(moment.time), "b": scales.scaled(moment.live[i]), "c": CLASSES[i][1], "o": i}
        for moment in moments
        for i in used
    ]


def lines_of(moments: Sequence[Moment], scales: Scales) -> List[Dict[str, Any]]:
    return [
        {"s": scales.since(time), "b": scales.scaled(value), "line": name}
        for name, values in (
            ("limit", [(moment.time, moment.limit) for moment in moments]),
            ("held", [(moment.time, moment.held) for moment in moments]),
        )
        for time, value in bends(values)
    ]


def marks_of(gpu: Gpu, top: float, scales: Scales) -> List[Dict[str, Any]]:
    labelled = labelled_refusals(gpu.refusals, scales.last - scales.first)
    return [
        {
            "s": scales.since(refusal.time),
            "b": top,
            "line": "refused",
            "label": written_size(refusal.size) if i in labelled else "",
        }
        for i, refusal in enumerate(gpu.refusals)
    ]


def layers_of(gpu: Gpu, scales: Scales) -> List[Dict[str, Any]]:
    top = scales.scaled(max(gpu.highest_limit, gpu.peak, gpu.highest_held))
    marks = marks_of(gpu, top, scales)
    length = {"domain": [0, max(scales.since(scales.last), 1e-6)], "nice": False}
    x = amount("s", f"{scales.time_name} since {clock(scales.first)} UTC", scale=length)
    ticks = size_ticks(top * 1.15)
    y = amount("b", scales.unit_name, scale={"domain": [0, top * 1.15 or 1]}, axis={"values": ticks})
    stroke = word("line", None, scale={"domain": list(LINES), "range": list(LINES.values())})
    dash = word("line", None, scale={"domain": list(LINES), "range": [[6, 3], [1, 0], [1, 0]]})
    fill = word("c", None, scale={"domain": [name for _, name in CLASSES], "range": list(COLORS)})
    order = {"field": "o", "type": "quantitative", "sort": "descending"}
    area = {"type": "area", "interpolate": "step-after"}
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}
    mark = {"type": "point", "shape": "triangle-down", "size": 70, "fill": LINES["refused"], "yOffset": -7}
    text = {"type": "text", "dy": -18, "fontSize": 11, "align": "right", "dx": 6, "color": "#8a3f00"}
    return [
        layer(areas_of(gpu.moments, scales), area, x=x, y={**y, "stack": "zero"}, fill=fill, order=order),
        layer(lines_of(gpu.moments, scales), line, x=x, y=y, stroke=stroke, strokeDash=dash),
        layer(marks, mark, x=x, y=y, stroke=stroke),
        layer([one for one in marks if one["label"]], text, x=x, y=y, text=word("label", None)),
    ]


def panel(gpu: Gpu, heading: GpuHeading, scales: Scales) -> Dict[str, Any]:
    """One GPU's part of the picture."""
    gpu.stay_until(scales.last)
    facts = ", ".join(f"{name} {value}" for name, value in heading.facts)
    subtitle = " · ".join(filter(None, (facts, harmless(heading.uuid))))
    return {
        "title": {"text": harmless(heading.name), "subtitle": subtitle},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": layers_of(gpu, scales),
    }


def specification(followed: Replay, gpus: Sequence[Gpu], heading: Heading) -> Dict[str, Any]:
    """The picture of these GPUs, in Vega-Lite. Its data is in it."""
    scales = Scales(followed.first, followed.last, unit_of(gpus))
    return {
        "title": {
            "text": harmless(heading.title),
            "subtitle": heading.when,
            "fontSize": 20,
            "subtitleFontSize": 13,
            "offset": 12,
        },
        "background": "white",
        "padding": 16,
        "spacing": 28,
        "vconcat": [panel(gpu, one, scales) for gpu, one in zip(gpus, heading.gpus)],
        "config": {
            "font": FONT,
            "title": {"anchor": "start", "color": INK, "subtitleColor": FAINT, "fontSize": 14, "subtitleFontSize": 12},
            "axis": {"gridColor": GRID, "labelColor": FAINT, "titleColor": FAINT, "titleFontWeight": "normal"},
            "legend": {"orient": "bottom", "direction": "horizontal", "labelColor": INK, "labelLimit": 0},
            "view": {"stroke": GRID},
        },
    }


def converter() -> Any:
    """The package that draws. Asked for before anything is read: a recording may take minutes."""
    try:
        import vl_convert
    except ImportError:
        raise RecordingError(
            f"an SVG or a PNG needs the package vl-convert-python, which {sys.executable} lacks: install it with pip, "
            "in the virtual environment where cuslice plot runs; a page (.html) needs none",
            UNAVAILABLE,
        ) from None
    return vl_convert


def converted(spec: Dict[str, Any], ending: str, vl_convert: Any) -> bytes:
    """The picture as a file's content."""
    if ending == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    return str(vl_convert.vegalite_to_svg(spec)).encode()
