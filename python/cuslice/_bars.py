# SPDX-License-Identifier: Apache-2.0
"""A small picture for notebooks: bars of what is held, each on a track as long as its limit."""

from __future__ import annotations

import html
from typing import Iterable, Tuple

from cuslice._size import text_of

# Each is told from a white and from a black page: a contrast of 3 or more for what is drawn, and the page's own colour
# for what is written.
_HELD, _NEARLY_FULL, _TRACK = "#2f7ed8", "#c2571a", "#8c8c8c"
_WIDTH, _HEIGHT = 320, 14


def bars(rows: Iterable[Tuple[str, int, int]]) -> str:
    """HTML of name, used bytes and limit in bytes; "" without rows."""
    lines = [_row(*row) for row in rows]
    if not lines:
        return ""
    return f'<table class="cuslice" style="color: inherit">{"".join(lines)}</table>'


def _row(name: str, used: int, limit: int) -> str:
    share = min(1.0, used / limit) if limit else 0.0
    colour = _NEARLY_FULL if share > 0.9 else _HELD
    told = f"{text_of(used)} of {text_of(limit)}"
    picture = (
        f'<svg role="img" aria-label="{html.escape(f"{name}: {told}")}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="3" fill="none" stroke="{_TRACK}" stroke-width="2"/>'
        f'<rect width="{round(_WIDTH * share)}" height="{_HEIGHT}" rx="3" fill="{colour}"/></svg>'
    )
    return f"<tr><td>{html.escape(name)}</td><td>{picture}</td><td>{told}</td></tr>"
