#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names the tests that failed in the last run of ctest, each with the end of what it printed.

    scripts/failed_tests.py build/tsan/Testing/Temporary

A log of continuous integration is often read from its end, and cut at its beginning. What is printed here is short: at most
MAX_TESTS tests, of each at most MAX_LINES lines: those that say what is wrong, where such are found, and the last ones otherwise.
"""
import pathlib
import re
import sys

MAX_TESTS = 5
MAX_LINES = 6
MAX_COLUMNS = 160
TELLING = re.compile(r"FAILED|ERROR|Error|error|WARNING: ThreadSanitizer|SUMMARY|fatal|seed|terminated|due to|Timeout|expansion:")


def outputs(log: str) -> dict[str, str]:
    """What each test printed, by its name, from ctest's LastTest.log."""
    found = {}
    for part in re.split(r"(?m)^(?=\d+/\d+ Testing: )", log):
        name = re.match(r"\d+/\d+ Testing: (.*)", part)
        if name:
            found[name[1]] = part.partition("Output:\n")[2]
    return found


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    failed = [line.partition(":")[2] for line in (folder / "LastTestsFailed.log").read_text().splitlines()]
    printed = outputs((folder / "LastTest.log").read_text(errors="replace"))
    for name in failed[:MAX_TESTS]:
        print(f"        {name}")
        lines = [line.strip() for line in printed.get(name, "").partition("<end of output>")[0].splitlines()]
        lines = [line for line in lines if line.strip("-=.~")]
        # The lines below such a line belong to it: the check, and the same with its values in.
        telling = sorted({i + k for i, line in enumerate(lines) if TELLING.search(line) for k in (0, 1)})
        for line in [lines[i] for i in telling[:MAX_LINES] if i < len(lines)] or lines[-MAX_LINES:]:
            print(f"            {line[:MAX_COLUMNS]}")
    if len(failed) > MAX_TESTS:
        print(f"        and {len(failed) - MAX_TESTS} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
