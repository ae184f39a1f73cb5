# SPDX-License-Identifier: Apache-2.0
"""A recording of another program (cuslice run --record), read by somebody who knows only RMM's form.

  recording.py FILE LEAST_ALLOCATIONS
"""
import csv
import sys

from checks import check, finish

with open(sys.argv[1], newline="") as file:
    rows = list(csv.DictReader(file))
live, wrong, allocations = {}, 0, 0
for row in rows:
    address, size = int(row["Pointer"], 16), int(row["Size"])
    if row["Action"] == "allocate":
        wrong += address in live
        live[address] = size
        allocations += 1
    elif row["Action"] == "free":
        wrong += live.pop(address, None) != size
check(allocations >= int(sys.argv[2]), f"its recording has {sys.argv[2]} allocations or more", str(allocations))
check(wrong == 0, "none of them lies where another is, and each free is of one of them", f"{wrong} do not")
check(any(row["Action"] == "allocate failure" for row in rows), "what was refused is in it", f"{len(rows)} rows")
finish()
