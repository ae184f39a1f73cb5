#!/usr/bin/env python3
"""Runs the samples on a fake laptop GPU of 2002 MiB without and with --limit 1024MiB, and prints what came of it.

  demo.py BUILD

The last column is read from the fake driver's own books by a process that runs without cuslice: what the driver has given
to the program, its context included. How much the context takes is drawn at random for each run, so that no run can know it.
Exits with 1 unless every limited run stayed within the limit by those books and its program got what was left.
"""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

LIMIT_MIB = 1024
MIB = 1 << 20
PROGRAMS = {"driver_fill": "driver API", "runtime_fill": "shared runtime"}


def run(build, folder, program, limited):
    """One program once: the figures of its row, in MiB."""
    context = random.SystemRandom().randrange(100, 601)
    machine = folder / "laptop.toml"
    machine.write_text(f'[[gpu]]\nprofile = "laptop-2g"\ncontext = "{context}MiB"\n')
    books = tempfile.mkdtemp(dir=folder)
    environment = {**os.environ, "CUSLICE_FAKE": str(machine), "CUSLICE_FAKE_DIR": books}
    environment.pop("LD_PRELOAD", None)
    limit = ["--limit", f"{LIMIT_MIB}MiB"] if limited else []
    command = [build / "lib/cuslice/fake/watch", "--json", "--",
               build / "bin/cuslice", "run", "--fake", machine, *limit, "--", build / "samples" / program, "--json"]
    ended = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    # First what the program says, an object a line; then the watcher's list, of one element: the program.
    said, _, watched = ("\n" + ended.stdout).partition("\n[\n")
    full = next((line for line in map(json.loads, said.strip().splitlines()) if line["phase"] == "full"), None)
    holders = json.loads("[" + watched) if watched else []
    if ended.returncode != 0 or not full or len(holders) != 1:
        sys.exit(f"{' '.join(map(str, command))}\nended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    row = {"program": program, "limited": limited, "context": context, "total": full["total"] / MIB,
           "free": full["free_before"] / MIB, "got": full["got"] / MIB, "books": holders[0]["peak"] / MIB}
    row["complaint"] = complaint(row, full["verified"])
    return row


def complaint(row, verified):
    """Why a run does not show what it should; None if it does."""
    if not verified:
        return "the contents of its memory were wrong"
    if row["got"] <= 0:
        return "it got nothing"
    if not row["limited"]:
        # Otherwise the limited run would stay under the limit by itself.
        return None if row["books"] > LIMIT_MIB else "without a limit it took no more than the limit"
    if row["total"] != LIMIT_MIB:
        return f"it saw {row['total']:.1f} MiB in total"
    return None if row["books"] <= LIMIT_MIB else f"it held {row['books']:.1f} MiB"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rows = []
    with tempfile.TemporaryDirectory(prefix="cuslice-demo-") as folder:
        for program in PROGRAMS:
            for limited in (False, True):
                rows.append(run(build, pathlib.Path(folder), program, limited))

    print("\nTwo CUDA programs, unmodified, each taking all the memory it is given, on a laptop's GPU of 2002 MiB (fake).")
    print("All sizes in MiB. \"Held\" is from the driver's own books, read without cuslice, the context included.\n")
    heads = ["Program", "Limit", "Context", "Total seen", "Free seen", "Got", "Held"]
    cells = [[f"{row['program']} ({PROGRAMS[row['program']]})", f"{LIMIT_MIB}" if row["limited"] else "none",
              *(f"{row[key]:.1f}" for key in ("context", "total", "free", "got", "books"))] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells)]
    for line in [heads, ["─" * width for width in widths], *cells]:
        print("  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(line, widths))))
    print()

    for row in rows:
        if row["complaint"]:
            print(f"{row['program']}, limit {'on' if row['limited'] else 'off'}: {row['complaint']}", file=sys.stderr)
    held = math.ceil(max(row["books"] for row in rows if row["limited"]))
    if any(row["complaint"] for row in rows):
        print(f"NOT held under --limit {LIMIT_MIB}MiB: {held} MiB")
        sys.exit(1)
    print(f"held under --limit {LIMIT_MIB}MiB: {held} MiB")


main()
