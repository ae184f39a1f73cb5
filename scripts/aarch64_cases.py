#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/test_aarch64.sh runs and leaves out, and how many cases passed.

    scripts/aarch64_cases.py expression          for ctest's --exclude-regex: the cases of tests/aarch64_excluded.txt
    ctest --show-only=json-v1 | scripts/aarch64_cases.py folders
                                                 the folders of tests/ and lab/ that have cases, and ctest's words for each
    ctest --show-only=json-v1 | scripts/aarch64_cases.py count REPORT…
                                                 the figures of the folders that have a report, FOLDER.xml, from ctest's
                                                 --output-junit; exit code 1 unless all passed or are excluded

tests/aarch64_excluded.txt has blocks: a reason, in lines that begin with "# ", and the tests that it holds for, a regular
expression in each line, as ctest takes them. It has to match from the start of a name.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/aarch64_excluded.txt"
# Labels that tests of other folders have too.
SHARED = ("checks", "fuzz")
# Stands for tests that have no folder's label, as programs that were not built.
NONE = "none"
# Stands in such a program for its cases (scripts/cmake/CusliceTargets.cmake).
UNBUILT = "_was_not_built"


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


def labels(test: dict) -> list[str]:
    return next((each["value"] for each in test.get("properties", ()) if each["name"] == "LABELS"), [])


def folders(tests: list[dict]) -> list[str]:
    """The labels that are folders, in the order in which they are run: a test belongs to the first that it has."""
    found = {label for test in tests for label in labels(test) if any((ROOT / top / label).is_dir() for top in ("tests", "lab"))}
    order = sorted(found - set(SHARED)) + [label for label in SHARED if label in found]
    return order + ([NONE] if any(folder_of(order, test) == NONE for test in tests) else [])


def folder_of(order: list[str], test: dict) -> str:
    return next((each for each in order if each in labels(test)), NONE)


def words(order: list[str], folder: str) -> str:
    """What ctest takes for the tests of a folder, and no others."""
    before = [each for each in order[: order.index(folder)] if each != NONE]
    chosen = [] if folder == NONE else [f"--label-regex ^{folder}$"]
    return " ".join(chosen + ([f"--label-exclude ^({'|'.join(before)})$"] if before else []))


def states(report: str) -> dict[str, str]:
    """Each case that was run, and how that went."""
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return {case.get("name", ""): case.get("status", "") for case in cases}


def count(tests: list[dict], reports: list[str]) -> int:
    order, ran = folders(tests), {pathlib.Path(report).stem: states(report) for report in reports}
    print(f"\n{'folder':<12} {'cases':>6} {'passed':>7} {'failed':>7} {'skipped':>8} {'excluded':>9}")
    totals, failed, left = [0] * 5, [], set()
    for folder in [each for each in order if each in ran]:
        own = [test["name"] for test in tests if folder_of(order, test) == folder]
        state = ran[folder]
        passed, skipped = (sum(state.get(name) in of for name in own) for of in (("run",), ("notrun", "disabled")))
        bad, away = [name for name in own if state.get(name) == "fail"], [name for name in own if name not in state]
        row = [len(own), passed, len(bad), skipped, len(away)]
        totals = [total + each for total, each in zip(totals, row)]
        failed, left = failed + bad, left | set(away)
        print(f"{folder:<12} {row[0]:>6} {row[1]:>7} {row[2]:>7} {row[3]:>8} {row[4]:>9}")
    total, passed, bad, skipped, away = totals
    print(f"\nOf {total} cases {passed} passed ({100 * passed / max(total, 1):.1f} %), {bad} failed, {skipped} skipped themselves, "
          f"and {away} are excluded:")
    for reason, expressions in exclusions():
        of_these = {name for name in left for each in expressions if re.match(each, name)}
        left -= of_these
        print(f"  {len(of_these):4}  {reason}")
        if not of_these and set(order) <= set(ran):
            print("        (nothing matches: the list is out of date)")
    for name in sorted(left):
        print(f"  neither run nor excluded: {name}")
    for name in failed:
        print(f"  failed: {name}")
    unbuilt = [test["name"].removesuffix(UNBUILT) for test in tests if test["name"].endswith(UNBUILT)]
    for name in unbuilt:
        print(f"  not built, and its cases are not counted: {name}")
    if absent := [each for each in order if each not in ran and each != NONE]:
        print(f"Not run, and not counted: {' '.join(absent)}")
    return 1 if failed or left or unbuilt else 0


def main() -> int:
    if sys.argv[1:] == ["expression"]:
        print(expression())
        return 0
    if sys.argv[1:] == ["folders"]:
        order = folders(json.load(sys.stdin)["tests"])
        for folder in order:
            print(folder, words(order, folder))
        return 0
    if sys.argv[1:2] == ["count"] and len(sys.argv) > 2:
        return count(json.load(sys.stdin)["tests"], sys.argv[2:])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
