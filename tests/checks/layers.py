#!/usr/bin/env python3
"""Fails on an include that goes up the layers, into the fake GPU from outside it, or around the root, and on a source file that is
too long to be one idea.

  layers.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

# What a folder may include, besides itself. Longest prefix wins.
ALLOWED = {
    "include": [],
    "config": [],
    "policy": ["config"],
    "virtual_gpu/driver": [],
    "virtual_gpu": ["config", "policy", "virtual_gpu/driver"],
    "virtual_gpu/fake": ["virtual_gpu/driver"],
    "shim": ["include", "config", "policy", "virtual_gpu", "virtual_gpu/driver"],
    "cli": ["config", "policy", "virtual_gpu", "virtual_gpu/driver"],
}
MOST_LINES = 500


def layer(path):
    fits = [name for name in ALLOWED if path == name or path.startswith(name + "/")]
    return max(fits, key=len) if fits else None


def check(root):
    """Yields a line for each thing that is wrong."""
    files = [p for folder in ("include", "config", "policy", "virtual_gpu", "shim", "cli", "tests") for p in (root / folder).rglob("*")]
    for path in files:
        if path.suffix not in (".cpp", ".h", ".c", ".S", ".inc", ".cu", ".py", ".sh"):
            continue
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_LINES:
            yield f"{name}: {lines} lines; at most {MOST_LINES}, or it is two files in one"
        here = layer(path.parent.relative_to(root).as_posix())
        if here is None:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not found:
                continue
            target = found[1]
            there = layer(target.rsplit("/", 1)[0]) if "/" in target else None
            if there is None:
                yield f"{name}:{number}: {target} is not written from the root, or in no layer"
            elif there != here and there not in ALLOWED[here]:
                yield f"{name}:{number}: {here} may not include {there}"
            elif not (root / target).exists():
                yield f"{name}:{number}: there is no {target}"


def main():
    root = pathlib.Path(sys.argv[1])
    wrong = list(check(root))
    print("\n".join(wrong) if wrong else "every include points down")
    sys.exit(1 if wrong else 0)


main()
