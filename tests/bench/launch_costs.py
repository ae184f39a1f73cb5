#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a launch costs at the gate of a share of time: instructions and nanoseconds, on one fake GPU.

  launch_costs.py BUILD [--rounds N]

BUILD has the product and cuslice_bench_launches. callgrind counts the library's instructions in two runs that differ
in the number of launches alone, so that their difference is the launches'. What is done by the clock is left out: the
thread that passes the lease on, and a launch's wait for its turn. Nanoseconds are medians of single launches, and of
those the median of N runs (default: 7) of each side, which take turns. Work takes no time there.
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple

from instructions import FEW, GPU, LIBRARY, MANY, callgrind, processor, times_in

PROGRAM = "tests/bench/cuslice_bench_launches"
LAUNCHES = 200_000  # of a run against the clock
BY_THE_CLOCK = ("cuslice::Turns::run(void*)", "cuslice::lease::Lease::acquire(unsigned long)",
                "cuslice::Turns::await_room()")

# `options`: of `cuslice run`; None: the driver alone. `beside`: another job, that is idle or busy.
Side = namedtuple("Side", "name options beside")

SHARE = ["--share", "30%"]
SIDES = (Side("the driver alone", None, None), Side("cuslice, no share", [], None),
         Side("cuslice, a share, alone", SHARE, None), Side("cuslice, a share, beside an idle job", SHARE, "idle"),
         Side("cuslice, a share, beside one that waits", SHARE, "busy"))


class Machine:
    def __init__(self, build, folder):
        self.build = build
        os.mkdir(folder + "/fake")
        self.environment = {**os.environ, "CUSLICE_FAKE_DIR": folder + "/fake", "CUSLICE_DIR": folder + "/jobs",
                            "CUSLICE_FAKE_LOG": folder + "/log"}

    def words(self, options, program):
        if options is None:
            return ["env", "CUSLICE_FAKE=" + GPU, f"LD_LIBRARY_PATH={self.build / 'lib/cuslice/fake'}", *program]
        return [str(self.build / "bin/cuslice"), "run", "--fake", GPU, *options, "--", *program]

    @contextlib.contextmanager
    def beside(self, side):
        if not side.beside:
            yield
            return
        words = self.words(side.options, [str(self.build / PROGRAM), side.beside])
        with subprocess.Popen(words, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            if other.stdout.readline() != b"ready\n":
                sys.exit(f"{side.name}: the other program has ended")
            yield
            other.stdin.close()

    def measure(self, side, launches, before=()):
        program = [*before, str(self.build / PROGRAM), "measure", str(launches)]
        done = subprocess.run(self.words(side.options, program), env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{side.name}: exit status {done.returncode}\n{done.stderr}")
        return float(done.stdout)


def run(build, side, launches, before=()):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        machine = Machine(build, folder)
        with machine.beside(side):
            return machine.measure(side, launches, before)


def executed(build, side, launches):
    """Instructions of the library's."""
    with tempfile.NamedTemporaryFile() as out:
        run(build, side, launches, callgrind(BY_THE_CLOCK, out.name))
        return sum(sum(times.values()) for library, times in times_in(out.name).items()
                   if pathlib.Path(library).name == LIBRARY)


def instructions(build, side):
    return (executed(build, side, MANY) - executed(build, side, FEW)) / (MANY - FEW)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    build = options.build.resolve()

    print(f"Machine: {processor()}\nDate:    {datetime.date.today()}\nLoad:    {os.getloadavg()[0]:.1f}\n")
    counts = [instructions(build, side) for side in SIDES]
    times = [[] for _ in SIDES]
    for _ in range(options.rounds):
        for side, took in zip(SIDES, times):
            took.append(run(build, side, LAUNCHES))
    medians = [statistics.median(took) for took in times]
    print("| a launch | instructions in cuslice | ns | over the driver's |\n|---|---:|---:|---:|")
    for side, count, took in zip(SIDES, counts, medians):
        print(f"| {side.name} | {count:.1f} | {took:.1f} | {took - medians[0]:+.1f} |")


if __name__ == "__main__":
    main()
