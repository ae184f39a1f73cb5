#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table of docs/design/memory-order.md against the sources.

Each file of the library that has an order weaker than sequential consistency is named in it, and each that it names has one. A name
without an ending stands for a header and its .cpp.

  memory_orders.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

PAGE = "docs/design/memory-order.md"
FOLDERS = "config", "elf", "policy", "shim", "stub", "virtual_gpu"
WEAKER = re.compile(
    r"\bmemory_order_(?:relaxed|consume|acquire|release|acq_rel)\b|\b__ATOMIC_(?:RELAXED|CONSUME|ACQUIRE|RELEASE|ACQ_REL)\b|"
    r"\bmemory_order::|\batomic_(?:signal|thread)_fence\b|\b(?:add_alone|store_fence|show_in_order)\(|\bRelaxed<|\b(?:ldar|dmb)\b")


def weaker(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".S", ".inc") and WEAKER.search(path.read_text()):
                yield path.relative_to(root).as_posix()


def main():
    root = pathlib.Path(sys.argv[1])
    rows = re.findall(r"^\| [^|]*\|([^|]*)\|", (root / PAGE).read_text(), re.M)
    named = set(re.findall(r"`([\w./-]+)`", " ".join(rows)))
    used, problems = set(), []
    for file in weaker(root):
        names = named & {file, file.rpartition(".")[0]}
        used |= names
        if not names:
            problems.append(f"{file} has weaker orders, and {PAGE} doesn't say why they are enough")
    problems.extend(f"{PAGE}: {name} has no weaker order" for name in sorted(named - used))
    for problem in problems:
        print(problem, file=sys.stderr)
    if not used:
        sys.exit("no file was found: this check is blind")
    if problems:
        sys.exit(1)
    print(f"{len(used)} names in {PAGE} agree with the sources")


if __name__ == "__main__":
    main()
