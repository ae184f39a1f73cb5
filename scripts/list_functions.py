#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says of the CUDA driver's functions what becomes of them: a line for each with the CUDA version that brought it, its
route, and the file of its hook.

  list_functions.py            all that libcuslice.so exports
  list_functions.py WORD...    those whose names contain one of the words
"""
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^CUSLICE_FUNCTION\((\w+), \w+, (\d+), \w+, (\w+), \w+, \w+\)", re.M)
HOOK = re.compile(r"^CUSLICE_(?:HOOK(?:_\w+)?|CHECKED)\((cu\w+)[,)]", re.M)


class Function(NamedTuple):
    symbol: str
    version: int  # 13040 of CUDA 13.4; 0: cudaTypedefs.h doesn't have it
    route: str
    file: str  # of its hook, from the root; "" if it passes through


def functions():
    """Those of functions.def, in its order."""
    files = {
        symbol: str(path.relative_to(ROOT))
        for path in (ROOT / "shim/driver").glob("hooks_*.cpp")
        for symbol in HOOK.findall(path.read_text())
    }
    rows = ROW.findall((ROOT / "virtual_gpu/driver/functions.def").read_text())
    return [Function(symbol, int(version), route, files.get(symbol, "")) for symbol, version, route in rows]


def main():
    words = sys.argv[1:]
    listed = [one for one in functions() if not words or any(word in one.symbol for word in words)]
    for symbol, version, route, file in listed:
        since = f"{version // 1000}.{version % 1000 // 10}" if version else "–"
        print(f"{symbol:45} {since:5} {route:8} {file}".rstrip())
    sys.exit(0 if listed else f"list_functions.py: no function's name contains {' or '.join(words)}")


if __name__ == "__main__":
    main()
