#!/usr/bin/env python3
"""Fails on a comment that opens with a relative clause: "What …", "Whether …", "Of those …".

Such a comment makes the reader wait for its subject. A comment says why, or is a noun phrase ("Bytes in use"), or a sentence whose actor
is named ("True if …", "Returns …").

  comments.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

WORDS = "What|Whatever|Whether|Who|Whoever|Whose|Whom|Of|Those|Which|Whichever"
OPENS = re.compile(rf"(?:^|\s)///?<?\s+(?:{WORDS})\b")
COMMENT = re.compile(r"^\s*//")
FOLDERS = ("cli", "config", "fake", "include", "integrations", "policy", "shim", "stub", "tests", "virtual_gpu")


def openings(lines):
    """Numbers of lines in which a comment opens so. A comment that follows another line of comment goes on."""
    inside = False
    for number, line in enumerate(lines, 1):
        is_comment = bool(COMMENT.match(line))
        if OPENS.search(line) and not (inside and is_comment):
            yield number
        inside = is_comment


def main():
    root = pathlib.Path(sys.argv[1])
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in (".c", ".cpp", ".h", ".S", ".inc")]
    if not files:
        sys.exit("no source was found")
    found = [(path, number) for path in files for number in openings(path.read_text().splitlines())]
    for path, number in found:
        print(f"{path.relative_to(root)}:{number}: the comment opens with a relative clause")
    if found:
        sys.exit(f"{len(found)} comments")
    print(f"the comments of {len(files)} sources open with what they say")


if __name__ == "__main__":
    main()
