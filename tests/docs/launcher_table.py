#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each cell of the first table of docs/containers.md has a test that shows it:  launcher_table.py ROOT

launcher_table.txt beside this file has the lines `row | column | test file | test`: the names of row and column
as the page shows them, and that of the test as its TEST_CASE or its `def` has it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
PAGE, LIST = "docs/containers.md", "tests/docs/launcher_table.txt"
problems = []


def shown(text):
    """Without the marks of links and of code."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").strip()


def cells():
    """(row, column) of each cell of the page's table."""
    head, _, *rows = ([shown(cell) for cell in row[1:-1].split("|")]
                      for row in re.search(r"(?:^\|.*\|\n)+", (ROOT / PAGE).read_text(), re.M)[0].splitlines())
    found = set()
    for row in rows:
        if len(row) != len(head) or "" in row:
            problems.append(f"{PAGE}: {row[0]}: a cell is missing or empty")
        if (row[0], head[1]) in found:
            problems.append(f"{PAGE}: {row[0]}: two rows have this name")
        found |= {(row[0], column) for column in head[1:]}
    return found


def has_test(path, name):
    text = path.read_text()
    if path.suffix == ".py":
        return re.search(rf"^ +def {re.escape(name)}\(", text, re.M)
    return re.search(rf'^TEST_CASE\(\s*"{re.escape(name)}"', text, re.M)


def check(there):
    tested = set()
    for number, line in enumerate((ROOT / LIST).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        where, words = f"{LIST}:{number}", [word.strip() for word in line.split(" | ")]
        if len(words) != 4:
            problems.append(f"{where}: not row | column | test file | test")
            continue
        row, column, file, name = words
        tested.add((row, column))
        if (row, column) not in there:
            problems.append(f"{where}: the page has no cell {row} | {column}")
        if not (ROOT / file).is_file():
            problems.append(f"{where}: there is no {file}")
        elif not has_test(ROOT / file, name):
            problems.append(f"{where}: {file} has no test {name}")
    problems.extend(f"{PAGE}: no test is named for {row} | {column}" for row, column in sorted(there - tested))


CELLS = cells()
check(CELLS)
print("\n".join(problems) or f"each of {len(CELLS)} cells has a test")
sys.exit(bool(problems))
