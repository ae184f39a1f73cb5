# SPDX-License-Identifier: Apache-2.0
"""What the programs in this folder say: a line for each thing that was looked at, and whether it is as it should be."""
import sys

failures = 0


def check(good, what, seen):
    """Prints PASS or FAIL, what was looked at, and what was seen."""
    global failures
    failures += not good
    print(f"{'PASS' if good else 'FAIL'}  {what}: {seen}", flush=True)
    return good


def finish():
    """Ends the program: 0 if everything passed."""
    sys.exit(1 if failures else 0)
