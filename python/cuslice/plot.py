# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot`: draws recordings (`cuslice run --record`) as a web page, an SVG or a PNG.

    python3 plot.py FILE... [-o OUT]

Reading a recording and building the picture's Vega-Lite specification take the standard library alone. What makes a
page, an SVG or a PNG of it is the package vl-convert-python, which needs no browser and no network.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

if __package__:
    from . import recordings
else:  # run as a file, by the launcher: the modules beside it are found there alone, with PYTHONSAFEPATH set or not
    beside = importlib.machinery.ModuleSpec("cuslice_plot", None, is_package=True)
    beside.submodule_search_locations = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[beside.name] = importlib.util.module_from_spec(beside)
    recordings = importlib.import_module(beside.name + ".recordings")

USAGE, UNAVAILABLE, NO_OUTPUT = 64, 69, 73  # as in sysexits.h

TITLE = "GPU memory over time, as cuslice has recorded it"
COLORS = ("#deebf7", "#b7d4ea", "#85bcdb", "#4f9bcb", "#2877b8", "#0b4d94")
LINES = {"limit": "#d62728", "held": "#222222", "refused": "#ff7f0e"}

# A page asks for nothing, whatever a recording has in it: all that it may use is its own.
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"

MOST_LABELS = 12  # for each GPU


def written_size(size: float) -> str:
    """ "1.5 GiB": a size in bytes, for people."""
    for unit, name in ((1 << 40, "TiB"), (recordings.GIB, "GiB"), (recordings.MIB, "MiB"), (recordings.KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"


def shown(text: str) -> str:
    """Text of a recording that goes into the picture: nothing in it means anything to a page."""
    return re.sub(r"[^\w .:/-]", "?", text[:64])


def labelled_refusals(refusals: Sequence[recordings.Refusal], length: int) -> List[int]:
    """Which of them have their size written beside them: the largest, where it can be read."""
    chosen: List[int] = []
    for i in sorted(range(len(refusals)), key=lambda i: -refusals[i].size):
        if all(abs(refusals[i].time - refusals[other].time) * MOST_LABELS > length for other in chosen):
            chosen.append(i)
    return chosen


def unit_of(gpus: Sequence[recordings.Gpu]) -> Tuple[int, str]:
    most = max((max(gpu.peak, gpu.highest_held, gpu.highest_limit) for gpu in gpus), default=0)
    return (
        (recordings.GIB, "GiB")
        if most >= 2 * recordings.GIB
        else (recordings.MIB, "MiB") if most >= 2 * recordings.MIB else (recordings.KIB, "KiB")
    )


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


def panel(gpu: recordings.Gpu, first: int, last: int, unit: Tuple[int, str]) -> Dict[str, Any]:
    """One GPU's part of the picture."""
    scale, unit_name = unit

    ticks, time_name = (1_000_000, "seconds") if last - first >= 1_000_000 else (1000, "milliseconds")

    def since(time: int) -> float:
        return round((time - first) / ticks, 6)

    def scaled(size: int) -> float:
        return round(size / scale, 4)

    gpu.stay_until(last)
    moments = gpu.moments
    used = [i for i in range(len(recordings.CLASSES)) if any(moment.live[i] for moment in moments)]
    areas = [
        {"s": since(moment.time), "b": scaled(moment.live[i]), "c": recordings.CLASSES[i][1], "o": i}
        for moment in moments
        for i in used
    ]
    lines = [
        {"s": since(time), "b": scaled(value), "line": name}
        for name, values in (
            ("limit", [(moment.time, moment.limit) for moment in moments]),
            ("held", [(moment.time, moment.held) for moment in moments]),
        )
        for time, value in bends(values)
    ]
    limit, peak = gpu.highest_limit, gpu.peak
    top = scaled(max(limit, peak, gpu.highest_held))
    labelled = labelled_refusals(gpu.refusals, last - first)
    marks = [
        {
            "s": since(refusal.time),
            "b": top,
            "line": "refused",
            "size": written_size(refusal.size),
            "label": written_size(refusal.size) if i in labelled else "",
            "count": refusal.requests,
        }
        for i, refusal in enumerate(gpu.refusals)
    ]
    about = [
        f"limit {written_size(limit)}" if limit >= 0 else "no limit recorded",
        f"at most {written_size(peak)} live",
    ]
    if gpu.processes > 1:
        about.append(f"{gpu.processes} processes")
    if gpu.refused:
        about.append(f"refused {gpu.refused} times" if gpu.refused > 1 else "refused once")

    x = amount(
        "s", f"{time_name} since {clock(first)} UTC", scale={"domain": [0, max(since(last), 1e-6)], "nice": False}
    )
    y = amount("b", unit_name, scale={"domain": [0, top * 1.15 or 1]})
    stroke = word("line", None, scale={"domain": list(LINES), "range": list(LINES.values())})
    dash = word("line", None, scale={"domain": list(LINES), "range": [[6, 3], [1, 0], [1, 0]]})
    fill = word(
        "c", "live allocations", scale={"domain": [name for _, name in recordings.CLASSES], "range": list(COLORS)}
    )
    order = {"field": "o", "type": "quantitative", "sort": "descending"}
    when, how_much = amount("s", time_name), amount("b", unit_name)
    area_tip = [when, word("c", "allocations"), how_much]
    line_tip = [when, word("line", "line"), how_much]
    mark_tip = [when, word("size", "refused"), amount("count", "requests")]
    mark = {"type": "point", "shape": "triangle-down", "size": 70, "fill": LINES["refused"], "yOffset": -7}
    text = {"type": "text", "dy": -18, "fontSize": 10, "align": "right", "dx": 6, "color": "#8a3f00"}
    layers = [
        layer(
            areas,
            {"type": "area", "interpolate": "step-after"},
            x=x,
            y={**y, "stack": "zero"},
            fill=fill,
            order=order,
            tooltip=area_tip,
        ),
        layer(
            lines,
            {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
            x=x,
            y=y,
            stroke=stroke,
            strokeDash=dash,
            tooltip=line_tip,
        ),
        layer(marks, mark, x=x, y=y, stroke=stroke, tooltip=mark_tip),
        layer([one for one in marks if one["label"]], text, x=x, y=y, text=word("label", None)),
    ]
    return {
        "title": {"text": shown(gpu.name) or "a GPU that the recording doesn't name", "subtitle": ", ".join(about)},
        "width": 760,
        "height": 220,
        "layer": layers,
    }


def clock(time: int) -> str:
    seconds = time // 1_000_000
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def specification(gpus: Sequence[recordings.Gpu], first: int, last: int) -> Dict[str, Any]:
    """The picture of these GPUs, in Vega-Lite. Its data is in it."""
    unit = unit_of(gpus)
    return {
        "description": TITLE,
        "background": "white",
        "padding": 12,
        "vconcat": [panel(gpu, first, last, unit) for gpu in gpus],
        "config": {"title": {"anchor": "start", "subtitleColor": "#555555"}, "view": {"stroke": "#dddddd"}},
        # For pages: nothing leads to another site.
        "usermeta": {
            "embedOptions": {
                "renderer": "svg",
                "actions": {"export": True, "source": False, "compiled": False, "editor": False},
            }
        },
    }


def converter() -> Any:
    """The package that draws. Asked for before anything is read: a recording may take minutes."""
    try:
        import vl_convert
    except ImportError:
        raise recordings.RecordingError(
            f"plot needs the package vl-convert-python, which {sys.executable} lacks: install it with pip, in the "
            "virtual environment where cuslice plot runs",
            UNAVAILABLE,
        ) from None
    return vl_convert


def converted(spec: Dict[str, Any], ending: str, vl_convert: Any) -> bytes:
    """The picture as a file's content."""
    if ending == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    if ending == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    page = str(vl_convert.vegalite_to_html(spec, bundle=True))
    head = f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return page.replace("<head>", head, 1).replace("<title>Chart</title>", f"<title>{TITLE}</title>", 1).encode()


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise recordings.RecordingError(f"plot: {message}: cuslice plot FILE... [-o OUT]", USAGE)


def output_for(out: Optional[str], names: Sequence[str]) -> Tuple[str, str]:
    """Where the picture goes, and its ending in lower case."""
    path = os.path.splitext(names[0])[0] + ".html" if out is None else out
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".html", ".svg", ".png"):
        raise recordings.RecordingError(
            f"{path}: the ending says what is drawn, and is one of .html, .svg and .png", USAGE
        )
    if any(os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name) for name in names):
        raise recordings.RecordingError(
            f"{path}: is a recording itself, and would be overwritten: name another file with -o", USAGE
        )
    return path, ending


def plot(words: Sequence[str]) -> str:
    """Draws what the command line says. Returns the file's name; raises recordings.RecordingError."""
    parser = Parser(prog="cuslice plot", description="Draws recordings of cuslice run --record.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording; several, of a run's processes")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="OUT.html, OUT.svg or OUT.png (default: FILE's name, .html)"
    )
    given = parser.parse_args(list(words))
    path, ending = output_for(given.output, given.files)
    for name in given.files:
        recordings.open_recording(name).close()
    drawing = converter()
    notes: List[str] = []
    followed = recordings.replay(given.files, notes)
    for note in notes:
        print(f"cuslice: {note}", file=sys.stderr)
    content = converted(specification(followed.gpus(), followed.first, followed.last), ending, drawing)
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise recordings.RecordingError(f"{path}: {error.strerror}", NO_OUTPUT) from None
    return path


def main() -> int:
    try:
        print(plot(sys.argv[1:]))
    except recordings.RecordingError as error:
        print(f"cuslice: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
