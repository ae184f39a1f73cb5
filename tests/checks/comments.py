#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a comment that opens with a relative clause: "What …", "Whether …", "Of those …", and on a file without its licence.

Such a comment makes the reader wait for its subject. A comment says why, or is a noun phrase ("Bytes in use"), or a
sentence whose actor is named ("True if …", "Returns …"). Looked at are the comments of C, C++ and assembly, and
those of Python, shell and CMake.

  comments.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

WORDS = "What|Whatever|Whether|Who|Whoever|Whose|Whom|Of|Those|Which|Whichever"
FOLDERS = (
    ".ci", "cli", "config", "docs", "elf", "fake", "include", "integrations", "lab", "policy", "python", "scripts", "shim",
    "stub", "tests", "virtual_gpu",
)  # fmt: skip
SLASHES = (".c", ".cpp", ".h", ".S", ".inc", ".def", ".cu")
HASHES = (".py", ".sh", ".cmake")
LICENSE = "SPDX-License-Identifier: Apache-2.0"  # a file's first line, or its second one below an interpreter's


class Style:
    """How the comments of a language begin."""

    def __init__(self, mark, more=""):
        self.opens = re.compile(rf"(?:^|\s){mark}{more}\s+(?:{WORDS})\b")
        self.comment = re.compile(rf"^\s*{mark}")

    def openings(self, lines):
        """Numbers of lines in which a comment opens so. A comment that follows another line of comment goes on."""
        inside = False
        for number, line in enumerate(lines, 1):
            is_comment = bool(self.comment.match(line)) and LICENSE not in line
            if self.opens.search(line) and not (inside and is_comment):
                yield number
            inside = is_comment


STYLES = {"//": Style("//", "/?<?"), "#": Style("#(?!!)")}


def is_script(path):
    """True if the first line names an interpreter."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def style(path):
    """The comments that a file has; None if it is no source."""
    if path.suffix in SLASHES:
        return STYLES["//"]
    if path.suffix in HASHES or path.name == "CMakeLists.txt" or (not path.suffix and is_script(path)):
        return STYLES["#"]
    return None


def names_license(path):
    with path.open() as file:
        first = file.readline()
        return LICENSE in (file.readline() if first.startswith("#!") else first)


def main():
    root = pathlib.Path(sys.argv[1])
    paths = [*root.iterdir(), *(path for folder in FOLDERS for path in (root / folder).rglob("*"))]
    files = {path: style(path) for path in sorted(paths) if path.is_file() and "__pycache__" not in path.parts}
    files = {path: how for path, how in files.items() if how}
    missing = [mark for mark, how in STYLES.items() if how not in files.values()]
    if missing:
        sys.exit(f"no source with comments of {' or '.join(missing)} was found")
    silent = [path for path in files if not names_license(path)]
    for path in silent:
        print(f"{path.relative_to(root)}: no line {LICENSE}")
    found = [(path, number) for path, how in files.items() for number in how.openings(path.read_text().splitlines())]
    for path, number in found:
        print(f"{path.relative_to(root)}:{number}: the comment opens with a relative clause")
    if found or silent:
        sys.exit(f"{len(found)} comments, {len(silent)} heads")
    print(f"the comments of {len(files)} sources open with what they say")


if __name__ == "__main__":
    main()
