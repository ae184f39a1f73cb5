#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version and its section of CHANGELOG.md.

    changelog.py version          the version, as CMakeLists.txt has it, which is the only place of it
    changelog.py cut VERSION      makes VERSION of what is under "Unreleased", of today, and writes it to CMakeLists.txt
    changelog.py notes [VERSION]  prints the section of VERSION, by default of the version
    changelog.py check TAG        ends with 1 unless TAG is v and the version, and that has a section

The exit code is 64 for a wrong command line, and 1 for sources that don't allow what is asked; a line says why, and
nothing is written.
"""

import datetime
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = r"\d+\.\d+\.\d+"
PROJECT = re.compile(rf"^(project\(cuslice VERSION )({VERSION})", re.M)
HEADING = "## Unreleased\n"


def refuse(line, code=1):
    print(f"changelog: {line}", file=sys.stderr)
    sys.exit(code)


def version(root=ROOT):
    found = PROJECT.search((root / "CMakeLists.txt").read_text())
    return found[2] if found else refuse("CMakeLists.txt names no version")


def section(wanted, root=ROOT):
    """A version's section of CHANGELOG.md, without the heading; None if there is none."""
    text = (root / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(wanted)}(?: - \S+)?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1].strip() + "\n" if found else None


def number(text):
    return tuple(map(int, text.split(".")))


def cut(new, root=ROOT):
    if not re.fullmatch(VERSION, new):
        refuse(f"{new} is no version such as 1.2.3", 64)
    if section(new, root) is not None:
        refuse(f"CHANGELOG.md has a section of {new} already")
    if number(new) < number(version(root)):
        refuse(f"{new} is older than {version(root)}, which CMakeLists.txt has")
    if not (section("Unreleased", root) or "").strip():
        refuse('there is nothing under "Unreleased" in CHANGELOG.md')
    page, project = root / "CHANGELOG.md", root / "CMakeLists.txt"
    page.write_text(page.read_text().replace(HEADING, f"{HEADING}\n## {new} - {today()}\n", 1))
    project.write_text(PROJECT.sub(rf"\g<1>{new}", project.read_text()))


def today():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    zone = datetime.timezone.utc
    return (datetime.datetime.fromtimestamp(int(seconds), zone) if seconds else datetime.datetime.now(zone)).date()


def check(tag, root=ROOT):
    if tag != f"v{version(root)}":
        refuse(f"the tag is {tag}, and CMakeLists.txt has {version(root)}")
    if section(version(root), root) is None:
        refuse(f"CHANGELOG.md has no section of {version(root)}: changelog.py cut {version(root)} makes it")


def main(words):
    command, *more = words or [""]
    if command == "version" and not more:
        print(version())
    elif command == "cut" and len(more) == 1:
        cut(*more)
    elif command == "notes" and len(more) <= 1:
        wanted = more[0] if more else version()
        print(section(wanted) or refuse(f"CHANGELOG.md has no section of {wanted}"), end="")
    elif command == "check" and len(more) == 1:
        check(*more)
    else:
        refuse("version, cut VERSION, notes [VERSION] or check TAG", 64)


if __name__ == "__main__":
    main(sys.argv[1:])
