#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes `tags`, in which an editor finds the functions that macros at file scope define.

    tags.py [FILE]    default: tags, beside the sources; in ctags' format

Functions such as the hook of cuMemAlloc are CUSLICE_HOOK(cuMemAlloc_v2, …) in the sources: no
outline shows them, and ctags passes over them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("fake", "policy", "shim", "stub", "virtual_gpu")
DEFINITION = re.compile(r"^(CUSLICE_[A-Z_]+)\((\w+)", re.MULTILINE)


def rows(root):
    """Lines of the file: name, path and how the line begins."""
    found = set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h"):
                continue
            for definition in DEFINITION.finditer(path.read_text()):
                name, start = definition[2], definition[0]
                found.add(f"{name}\t{path.relative_to(root)}\t/^{start}/;\"\tf")
    return sorted(found)


def main(arguments):
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        raise SystemExit(__doc__)
    target = pathlib.Path(arguments[0]) if arguments else ROOT / "tags"
    lines = rows(ROOT)
    target.write_text("!_TAG_FILE_SORTED\t1\t//\n" + "\n".join(lines) + "\n")
    print(f"{target}: {len(lines)} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
