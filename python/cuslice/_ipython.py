# SPDX-License-Identifier: Apache-2.0
"""`%load_ext cuslice`: the magic `%slice`."""

from __future__ import annotations

from typing import Any, Optional

from cuslice._slice import own_slices, slice

_USAGE = "usage: %slice [SIZE [GPU]], or %%slice SIZE [GPU] above a cell: %slice 4GiB"


def _limit(line: str) -> Any:
    words = line.split()
    if len(words) not in (1, 2) or (len(words) == 2 and not words[1].isdecimal()):
        raise ValueError(_USAGE)
    return slice(words[0], int(words[1]) if len(words) == 2 else None)


def load(shell: Any) -> None:
    """Gives an IPython session the magic. `%slice` shows what this process holds; `%slice 4GiB` limits it from then on;
    `%%slice 4GiB` limits a cell."""

    def magic(line: str, cell: Optional[str] = None) -> Any:
        if cell is None:
            if line.strip():
                _limit(line)
            return own_slices()
        with _limit(line):
            shell.run_cell(cell).raise_error()
        return None

    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="slice")
