#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on the name of a test case that a failure would print for ever.

Catch2 2.13 breaks a name over lines of 80 columns and indents them to what follows its first colon. Where that is the edge of the
line or beyond, it never comes to the end.

  test_names.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

COLUMNS = 78
CASE = re.compile(r'\b(?:TEST_CASE|SECTION|SCENARIO)\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def names(source):
    return ["".join(TEXT.findall(case[1])) for case in CASE.finditer(source)]


def endless(name):
    return name.find(": ") + len(": ") >= COLUMNS


def main():
    root = pathlib.Path(sys.argv[1])
    found = [(path, name) for path in sorted([*root.glob("tests/**/*.cpp"), *root.glob("lab/**/*.cpp")]) for name in names(path.read_text())]
    if not found:
        sys.exit("no test case was found")
    wrong = [(path, name) for path, name in found if endless(name)]
    for path, name in wrong:
        print(f"{path.relative_to(root)}: the colon is beyond column {COLUMNS - len(': ')}: {name}")
    if wrong:
        sys.exit(1)
    print(f"{len(found)} names of tests can be printed")


if __name__ == "__main__":
    main()
