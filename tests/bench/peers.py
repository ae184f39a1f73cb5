#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cuslice with the driver alone and with other libraries that limit memory: what a pair of an allocation and its
free takes on one fake GPU, in instructions and in nanoseconds.

  peers.py BUILD [--peer NAME=LIBRARY[,VARIABLE=VALUE]...]... [--rounds N] [--live N]

BUILD is a build of cuslice (build/release). A peer is a library that is built already, and is preloaded with these
variables: {} in a value is a folder that each run has for itself. Each has to refuse an allocation as large as its limit,
1 GiB, or the run fails. callgrind counts the instructions of two runs that differ in the number of pairs alone.
Nanoseconds are minima of N rounds (default: 7), in which all sides take turns.
"""
import argparse
import collections
import contextlib
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

from instructions import BY_THE_CLOCK, FEW, GPU, MANY, processor

LIMIT = 1 << 30
BYTES = 4096
PAIRS = 20_000  # of a run against the clock
PROGRAM = "tests/bench/cuslice_bench_alone"

Side = collections.namedtuple("Side", "name command environment limited")


def sides(build, peers):
    beneath = {"LD_LIBRARY_PATH": str(build / "lib/cuslice/fake"), "CUSLICE_FAKE": GPU}
    yield Side("the driver alone", [], beneath, False)
    for peer in peers:
        name, _, rest = peer.partition("=")
        library, *variables = rest.split(",")
        yield Side(name, [], {**beneath, "LD_PRELOAD": library, **dict(one.split("=", 1) for one in variables)}, True)
    run = [str(build / "bin/cuslice"), "run", "--fake", GPU, "--limit", "1GiB"]
    yield Side("cuslice, for each process", [*run, "--per-process", "--"], {}, True)
    yield Side("cuslice, for a job", [*run, "--"], {}, True)
    yield Side("cuslice, growth", [*run, "--allocator", "growth", "--"], {}, True)


@contextlib.contextmanager
def place():
    """A folder of its own for each run, in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.mkdir(folder + "/fake")
        yield folder


def run(build, side, live, pairs, before=()):
    with place() as folder:
        environment = {**os.environ, "CUSLICE_FAKE_DIR": folder + "/fake", "CUSLICE_DIR": folder + "/jobs"}
        environment.update((name, value.replace("{}", folder)) for name, value in side.environment.items())
        command = [*side.command, *before, str(build / PROGRAM), str(BYTES), str(live), str(pairs),
                   str(LIMIT if side.limited else 0)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{side.name}: exit status {done.returncode}\n{done.stderr}")
        return float(done.stdout.split()[-1])


def executed(build, side, live, pairs):
    with tempfile.NamedTemporaryFile() as out:
        run(build, side, live, pairs, ["valgrind", "--tool=callgrind", "--quiet", f"--toggle-collect={BY_THE_CLOCK}",
                                       "--collect-atstart=yes", f"--callgrind-out-file={out.name}"])
        totals = [line for line in open(out.name) if line.startswith(("summary:", "totals:"))]
        return int(totals[-1].split()[1])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--peer", action="append", default=[])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--live", type=int, default=0)
    options = arguments.parse_args()
    build = options.build.resolve()
    compared = list(sides(build, options.peer))
    print(f"Machine: {processor()}\nDate:    {datetime.date.today()}\n")
    print("| | instructions of a pair | over the driver's own | ns | over the driver's own |\n|---" + "|---:" * 4 + "|")
    # A run with MANY pairs has as many more before the clock starts as one with FEW.
    counts = [(executed(build, side, options.live, MANY) - executed(build, side, options.live, FEW)) / (MANY - FEW)
              for side in compared]
    times = [[] for _ in compared]
    for _ in range(options.rounds):
        for side, taken in zip(compared, times):
            taken.append(run(build, side, options.live, PAIRS))
    for side, count, taken in zip(compared, counts, times):
        print(f"| {side.name} | {count:.0f} | {count - counts[0]:.0f} | {min(taken):.1f} | "
              f"{min(taken) - min(times[0]):.1f} |")


if __name__ == "__main__":
    main()
