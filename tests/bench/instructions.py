#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of cuslice on one fake GPU: instructions, atomic ones and nanoseconds of each pair of calls.

  instructions.py BEFORE AFTER PROGRAM [--fake FOLDER] [--rounds N] [--only TEXT]

BEFORE and AFTER are folders with bin/cuslice and lib/cuslice in them (build/release, or an installation), PROGRAM is
AFTER's cuslice_bench_pair, FOLDER has the fake GPU's libraries for both (default: those of BEFORE). callgrind counts
the instructions of two runs that differ in the number of pairs alone, so that their difference is the pairs'.
What is done by the clock is left out: a poll of what the driver holds (VirtualGpu::poll_footprint), ten in a second at
most, of which a run under callgrind, fifty times slower, would have fifty times as many. The nanoseconds have it.
Nanoseconds are medians of N runs (default: 7) of each build, which take turns.
"""
import argparse
import collections
import datetime
import functools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

FEW, MANY = 2000, 12000  # pairs of the two runs under callgrind
# Small, as valgrind has no room for the addresses of a large one.
GPU = "1xlaptop-2g"
LIBRARY = "libcuslice.so"
BY_THE_CLOCK = ("cuslice::VirtualGpu::poll_footprint()", "cuslice::VirtualGpu::look()")  # and its name in older builds
SIZES = {"512 B": 512, "4 KiB": 4 << 10, "64 KiB": 64 << 10, "100 KiB": 100 << 10, "1 MiB": 1 << 20,
         "16 MiB": 16 << 20, "64 MiB": 64 << 20}

Pair = collections.namedtuple("Pair", "name options kind bytes pairs")  # pairs: of a run against the clock
Count = collections.namedtuple("Count", "all ours atomics our_atomics")


def all_pairs():
    alone = ["--per-process"]
    for size in ("4 KiB", "1 MiB", "64 MiB"):
        yield Pair(f"direct, {size}", alone, "alloc", SIZES[size], 300_000)
    yield Pair("direct, in a job, 4 KiB", [], "alloc", SIZES["4 KiB"], 300_000)
    yield Pair("direct, split, 4 KiB", alone + ["--split", "0=2"], "alloc", SIZES["4 KiB"], 300_000)
    yield Pair("direct, split, in a job, 4 KiB", ["--split", "0=2"], "alloc", SIZES["4 KiB"], 300_000)
    for when in ("strict", "deferred"):
        for size, count in SIZES.items():
            yield Pair(f"growth, {when}, {size}", alone + ["--allocator", "growth", "--free", when], "alloc", count,
                       1_000_000)
    # Two events each; {} is a folder. What is made there is written into memory, as a file of tmpfs.
    for name, end in (("CSV", "csv"), ("compact", "trace")):
        recorded = alone + ["--record", "{}/a." + end]
        yield Pair(f"direct, recorded ({name}), 4 KiB", recorded, "alloc", SIZES["4 KiB"], 100_000)
        yield Pair(f"growth, recorded ({name}), 4 KiB", recorded + ["--allocator", "growth"], "alloc", SIZES["4 KiB"],
                   100_000)
    yield Pair("cuMemGetInfo", alone, "info", 0, 1_000_000)
    yield Pair("cuMemAllocAsync, 1 MiB", alone, "async", SIZES["1 MiB"], 300_000)


@functools.cache
def atomic_instructions(library):
    """Where a library has them: those with a lock prefix, and an exchange with memory, which locks without one."""
    if not os.path.isfile(library):
        return set()
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return {int(match[1], 16) for match in re.finditer(r"^ *([0-9a-f]+):\t(lock |xchg .*\()", text, re.MULTILINE)}


def callgrind(left_out, path):
    """The words before a program whose instructions are counted, but those of the functions that are left out."""
    return ["valgrind", "--tool=callgrind", "--quiet", "--dump-instr=yes", "--dump-line=no", "--compress-pos=no",
            "--compress-strings=no", *(f"--toggle-collect={name}" for name in left_out), "--collect-atstart=yes",
            f"--callgrind-out-file={path}"]


def times_in(path):
    """How often each instruction of each library was executed, of callgrind's output: {library: {address: times}}."""
    times = collections.defaultdict(collections.Counter)
    library, of_callee = None, False
    for line in open(path):
        if line.startswith("ob="):
            library = line[3:].strip()
        elif line.startswith("calls="):
            of_callee = True  # the next line is what the called function took
        elif line.startswith("0x"):
            if not of_callee:
                address, *_, cost = line.split()
                times[library][int(address, 16)] += int(cost)
            of_callee = False
    return times


class Build:
    """A copy of a build, with the fake GPU that both use."""

    def __init__(self, folder, fake, copy, program):
        self.root, self.program = copy, program
        (copy / "bin").mkdir(parents=True)
        shutil.copy(folder / "bin/cuslice", copy / "bin")
        shutil.copytree(folder / "lib/cuslice", copy / "lib/cuslice", ignore=lambda *_: ["fake"])
        shutil.copytree(fake, copy / "lib/cuslice/fake")

    def run(self, pair, pairs, before=()):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as books:
            environment = {**os.environ, "CUSLICE_FAKE_DIR": books, "CUSLICE_DIR": books + "/jobs"}
            command = [self.root / "bin/cuslice", "run", "--fake", GPU, "--limit", "1GiB",
                       *(option.replace("{}", books) for option in pair.options), "--",
                       *before, self.program, self.root / "lib/cuslice/fake/libcuda.so.1", pair.kind, pair.bytes, pairs]
            done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{pair.name}: exit status {done.returncode}\n{done.stderr}")
            return done.stdout

    def nanoseconds(self, pair):
        return float(self.run(pair, pair.pairs))

    def executed(self, pair, pairs):
        """As times_in()."""
        with tempfile.NamedTemporaryFile() as out:
            self.run(pair, pairs, callgrind(BY_THE_CLOCK, out.name))
            return times_in(out.name)

    def count(self, pair):
        few, many = self.executed(pair, FEW), self.executed(pair, MANY)
        figures = collections.Counter()
        for library in many:
            ours = pathlib.Path(library).name == LIBRARY
            atomic = atomic_instructions(library)
            for address, times in many[library].items():
                more = times - few[library][address]
                figures["all"] += more
                figures["ours"] += more * ours
                figures["atomics"] += more * (address in atomic)
                figures["our_atomics"] += more * (address in atomic and ours)
        return Count(*(figures[field] / (MANY - FEW) for field in Count._fields))


def processor():
    text = subprocess.run(["lscpu"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.search(r"^Model name: *(.*)", text, re.MULTILINE)[1] + f", {len(os.sched_getaffinity(0))} cores"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("before", type=pathlib.Path)
    arguments.add_argument("after", type=pathlib.Path)
    arguments.add_argument("program", type=pathlib.Path)
    arguments.add_argument("--fake", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    fake = (options.fake or options.before / "lib/cuslice/fake").resolve()
    program = options.program.resolve()

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        before = Build(options.before, fake, folder / "before", program)
        after = Build(options.after, fake, folder / "after", program)
        print(f"Machine: {processor()}\nDate:    {datetime.date.today()}\n")
        print("| pair | instructions: before | after | more | in cuslice: before | after | atomics: before | after "
              "| in cuslice: before | after | ns: before | after | ratio |")
        print("|---" + "|---:" * 12 + "|")
        for pair in all_pairs():
            if options.only not in pair.name:
                continue
            old, new = before.count(pair), after.count(pair)
            times = [[], []]
            for _ in range(options.rounds):
                times[0].append(before.nanoseconds(pair))
                times[1].append(after.nanoseconds(pair))
            cells = [f"{old.all:.1f}", f"{new.all:.1f}", f"{new.all - old.all:+.1f}", f"{old.ours:.1f}",
                     f"{new.ours:.1f}", f"{old.atomics:.2f}", f"{new.atomics:.2f}", f"{old.our_atomics:.2f}",
                     f"{new.our_atomics:.2f}"]
            if options.rounds:
                was, now = map(statistics.median, times)
                cells += [f"{was:.1f}", f"{now:.1f}", f"{now / was:.2f}"]
            print(f"| {pair.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
