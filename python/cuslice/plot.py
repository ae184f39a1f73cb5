# SPDX-License-Identifier: Apache-2.0
"""`cuslice plot`: draws recordings (`cuslice run --record`) as a web page, an SVG or a PNG.

    python3 plot.py FILE... [-o OUT] [--title TEXT] [--open]

A page takes the standard library alone. What makes an SVG or a PNG is the package vl-convert-python, which needs no
browser and no network.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from typing import List, NamedTuple, NoReturn, Optional, Sequence

if __package__:
    from . import plot_page, plot_text, plot_vega, recordings
else:  # run as a file, by the launcher: the modules beside it are found there alone, with PYTHONSAFEPATH set or not
    beside = importlib.machinery.ModuleSpec("cuslice_plot", None, is_package=True)
    beside.submodule_search_locations = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[beside.name] = importlib.util.module_from_spec(beside)
    plot_page, plot_text, plot_vega, recordings = (
        importlib.import_module(f"{beside.name}.{name}")
        for name in ("plot_page", "plot_text", "plot_vega", "recordings")
    )

USAGE, NO_OUTPUT = 64, 73  # as in sysexits.h
ENDINGS = (".html", ".svg", ".png")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise recordings.RecordingError(f"plot: {message}: cuslice plot FILE... [-o OUT]", USAGE)


class Request(NamedTuple):
    """What the command line asks for."""

    names: Sequence[str]
    path: str  # where the picture goes
    title: Optional[str]
    open: bool

    @property
    def ending(self) -> str:
        return os.path.splitext(self.path)[1].lower()


def output_for(out: Optional[str], names: Sequence[str]) -> str:
    """Where the picture goes."""
    path = os.path.splitext(names[0])[0] + ".html" if out is None else out
    if os.path.splitext(path)[1].lower() not in ENDINGS:
        raise recordings.RecordingError(
            f"{path}: the ending says what is drawn, and is one of .html, .svg and .png", USAGE
        )
    if any(os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name) for name in names):
        raise recordings.RecordingError(
            f"{path}: is a recording itself, and would be overwritten: name another file with -o", USAGE
        )
    return path


def parse(words: Sequence[str]) -> Request:
    parser = Parser(prog="cuslice plot", description="Draws recordings of cuslice run --record.", allow_abbrev=False)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording; several, of a run's processes")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="OUT.html, OUT.svg or OUT.png (default: FILE's name, .html)"
    )
    parser.add_argument("--title", metavar="TEXT", help="the picture's heading (default: the program, or FILE's name)")
    parser.add_argument("--open", action="store_true", help="show the page in a browser")
    given = parser.parse_args(list(words))
    request = Request(given.files, output_for(given.output, given.files), given.title, given.open)
    if request.open and request.ending != ".html":
        raise recordings.RecordingError(f"{request.path}: --open shows a page: name OUT.html, or leave out -o", USAGE)
    return request


def draw(request: Request) -> bytes:
    """The picture as a file's content."""
    for name in request.names:
        recordings.open_recording(name).close()
    drawing = None if request.ending == ".html" else plot_vega.converter()
    notes: List[str] = []
    followed = recordings.replay(request.names, notes)
    for note in notes:
        print(f"cuslice: {note}", file=sys.stderr)
    gpus = followed.gpus()
    heading = plot_text.heading_of(followed, gpus, request.title, request.names)
    if drawing is None:
        return bytes(plot_page.page(followed, gpus, heading, notes).encode())
    return bytes(plot_vega.converted(plot_vega.specification(followed, gpus, heading), request.ending, drawing))


def write(path: str, content: bytes) -> None:
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise recordings.RecordingError(f"{path}: {error.strerror}", NO_OUTPUT) from None


def show(path: str) -> None:
    """Opens the page in a browser. The page is there either way, so that none is no failure."""
    import webbrowser  # which looks through PATH

    address = pathlib.Path(path).absolute().as_uri()
    try:
        shown = webbrowser.open(address)
    except webbrowser.Error:
        shown = False
    if not shown:
        print(f"cuslice: there is no browser here to open {path} with", file=sys.stderr)


def main() -> int:
    try:
        request = parse(sys.argv[1:])
        write(request.path, draw(request))
        print(request.path, flush=True)
        if request.open:
            show(request.path)
    except recordings.RecordingError as error:
        print(f"cuslice: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
