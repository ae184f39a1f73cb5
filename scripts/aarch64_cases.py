#!/usr/bin/env python3
"""What scripts/test_aarch64.sh leaves out, and how many cases passed.

    scripts/aarch64_cases.py expression          for ctest's --exclude-regex: the cases of tests/aarch64_excluded.txt
    ctest --show-only=json-v1 | scripts/aarch64_cases.py count CASES.xml
                                                 the figures of a run, from what ctest wrote with --output-junit

tests/aarch64_excluded.txt has blocks: a reason, in lines that begin with "# ", and the tests that it holds for, a regular
expression in each line, as ctest takes them. It has to match from the start of a name.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

LIST = pathlib.Path(__file__).resolve().parent.parent / "tests" / "aarch64_excluded.txt"


def exclusions() -> list[tuple[str, list[str]]]:
    """Each reason with its expressions."""
    blocks: list[tuple[str, list[str]]] = []
    for block in re.split(r"\n\s*\n", LIST.read_text().strip()):
        lines = block.splitlines()
        reason = " ".join(line[1:].strip() for line in lines if line.startswith("#"))
        expressions = [line for line in lines if line and not line.startswith("#")]
        if expressions:
            if not reason:
                sys.exit(f"{LIST}: no reason is given for {expressions[0]}")
            blocks.append((reason, expressions))
    return blocks


def expression() -> str:
    return "^(" + "|".join(each for _, expressions in exclusions() for each in expressions) + ")"


def count(report: str) -> int:
    names = [test["name"] for test in json.load(sys.stdin)["tests"]]
    state = {}
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        state[case.get("name", "")] = case.get("status", "")
    passed = [name for name in names if state.get(name) == "run"]
    skipped = [name for name in names if state.get(name) in ("notrun", "disabled")]
    failed = [name for name in names if state.get(name) == "fail"]
    left = {name for name in names if name not in state}
    print(f"\nOf {len(names)} cases {len(passed)} passed ({100 * len(passed) / len(names):.1f} %), {len(failed)} failed, "
          f"{len(skipped)} skipped themselves, and {len(left)} are excluded:")
    for reason, expressions in exclusions():
        of_these = {name for name in left for each in expressions if re.match(each, name)}
        left -= of_these
        print(f"  {len(of_these):4}  {reason}")
        if not of_these:
            print("        (nothing matches: the list is out of date)")
    for name in sorted(left):
        print(f"  neither run nor excluded: {name}")
    for name in failed:
        print(f"  failed: {name}")
    return 1 if failed or left else 0


def main() -> int:
    if sys.argv[1:] == ["expression"]:
        print(expression())
        return 0
    if sys.argv[1:2] == ["count"] and len(sys.argv) == 3:
        return count(sys.argv[2])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
