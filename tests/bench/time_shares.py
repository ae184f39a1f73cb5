#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures shares of a fake GPU's time through the preloaded library, on the real clock: programs that submit kernels,
with shares, without, and with a token bucket each.

  time_shares.py BUILD [--seconds N] [--only TEXT] [--json FILE] [--turns FILE]

BUILD has the product and cuslice_bench_submitter. After a lead-in N seconds (default: 10) are looked at, in the account
that the fake GPU keeps of who ran when. `points` are those by which a job's part of what all had differs from what its
weight says: over all N seconds, and the most in one second. `busy` is the part of the time that kernels ran. `gap` is a
hand-over, from the end of one process's last kernel to the start of another's first, with the 100 us in it that the
model takes for a change of contexts. The bucket is this repository's own (token_bucket.h). `load` is the machine's,
over the last minute. --only runs the rows whose names have this text; --turns keeps the first one's account, for
scripts/turns_svg.py.
"""
import argparse
import collections
import csv
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from instructions import processor

SHARES, NONE, BUCKET = "share", "no share", "bucket"
ALL = (SHARES, NONE, BUCKET)
LEAD_IN = {SHARES: 2.5, NONE: 1, BUCKET: 8}  # seconds: a bucket goes by NVML's, which are of the last one
BATCH = 10  # ms of kernels
SECOND = 1_000_000_000
# The driver's slices, as keys of a GPU.
SLICES = {"1 ms": {"time-slice": "1ms"}, "3 ms": {"time-slice": "3ms"}, "± 50 %": {"time-slice-spread": 50}}

# `weight` None: a program without cuslice, whatever the others do. `pause`: ms without work after each `batch` ms of
# kernels; None: never idle.
Job = collections.namedtuple("Job", "weight kernel batch pause")
Mix = collections.namedtuple("Mix", "name jobs gpus graphs slices sharings targets", defaults=(1, False, {}, (), ()))
Turn = collections.namedtuple("Turn", "pid begin end")
# `points`, `points_1s`: None where jobs pause. `gaps`: hand-overs in us.
Figures = collections.namedtuple("Figures", "points points_1s busy had gaps load")


def never_idle(weights, kernel):
    return [Job(weight, kernel, max(BATCH, kernel), None) for weight in weights]


def name_of(weights, kernel):
    return f"{':'.join(map(str, weights))}, {kernel} ms"


def mixes():
    for weights in (30, 70), (10, 90), (25, 25, 50), (1, 99):
        for kernel in 1, 5, 50:
            # The driver alone knows no weights.
            plain = weights in ((30, 70), (25, 25, 50))
            targets = ("points",) if kernel > 5 else ("points", "points_1s")
            sharings = ALL if plain else (SHARES, BUCKET)
            yield Mix(name_of(weights, kernel), never_idle(weights, kernel), sharings=sharings,
                      targets=targets + (("busy",) if plain else ()))
    yield Mix("alone, 1 ms", never_idle((30,), 1), sharings=(SHARES, NONE), targets=("alone",))
    yield Mix("30:70, graphs of 10 kernels of 1 ms", never_idle((30, 70), 1), graphs=True, sharings=(SHARES, NONE),
              targets=("points", "points_1s", "busy"))
    for name, slices in SLICES.items():
        yield Mix(f"30:70, 1 ms, the driver's slices {name}", never_idle((30, 70), 1), slices=slices,
                  sharings=(SHARES, NONE), targets=("points", "points_1s", "busy"))
    # Each kernel is preempted, and so are those that run out after a turn.
    for kernel in 1, 5:
        yield Mix(f"30:70, {kernel} ms, beside one without cuslice", never_idle((30, 70, None), kernel),
                  sharings=(SHARES, NONE), targets=("points", "points_1s"))
    for on_gpu, on_cpu in (10, 10), (20, 5), (5, 15), (2, 2):
        first, second = (Job(weight, 1, on_gpu, on_cpu) for weight in (30, 70))
        yield Mix(f"pauses {on_gpu}/{on_cpu}, both", [first, second], sharings=(SHARES, NONE), targets=("pauses",))
        yield Mix(f"pauses {on_gpu}/{on_cpu}, 70 never idle", [first, *never_idle((70,), 1)], sharings=(SHARES, NONE),
                  targets=("pauses", "asked"))
    yield Mix("20 jobs of 5, 1 ms", never_idle((5,) * 20, 1), sharings=(SHARES, NONE), targets=("points", "busy"))
    yield Mix("30:70, 1 ms, each on two GPUs", never_idle((30, 70), 1), gpus=2, sharings=(SHARES, NONE),
              targets=("points", "points_1s", "busy"))


class Place:
    """A machine of its own, with its account and its leases."""

    def __init__(self, build, mix):
        self.build = build
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.fake = f"{mix.gpus}xh200"
        if mix.slices:
            self.fake = self.folder.name + "/gpus.toml"
            keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in mix.slices.items())
            pathlib.Path(self.fake).write_text('[[gpu]]\nprofile = "h200"\n' + keys)
        kernels = {job.kernel for job in mix.jobs}
        self.environment = {**os.environ, "CUSLICE_FAKE_DIR": self.folder.name + "/fake",
                            "CUSLICE_DIR": self.folder.name + "/jobs",
                            "CUSLICE_FAKE_LOG": self.folder.name + "/log",
                            "CUSLICE_FAKE_COST": ",".join(f"k{kernel}={kernel}ms" for kernel in kernels)}
        os.mkdir(self.folder.name + "/fake")

    def start(self, job, mix, sharing):
        words = [self.build / "tests/bench/cuslice_bench_submitter", f"k{job.kernel}", job.batch // job.kernel]
        words += ["--gpus", mix.gpus] + ["--graphs"] * mix.graphs
        words += ["--pause", job.pause] * (job.pause is not None) + ["--bucket", job.weight] * (sharing == BUCKET)
        environment = self.environment
        if sharing == SHARES and job.weight:
            words = [self.build / "bin/cuslice", "run", "--fake", self.fake, "--share", f"{job.weight}%", "--", *words]
        else:
            environment = {**environment, "CUSLICE_FAKE": self.fake, "LD_LIBRARY_PATH": self.build / "lib/cuslice/fake"}
        return subprocess.Popen([str(word) for word in words], env=environment, stdout=subprocess.PIPE)

    def account(self):
        """Who had the multiprocessors of each GPU when, as CSV."""
        return subprocess.run([self.build / "lib/cuslice/fake/watch", "--turns"], env=self.environment, check=True,
                              capture_output=True, text=True).stdout


def run(build, mix, sharing, seconds):
    """The account, the pids of the jobs, and when the time that counts began."""
    place = Place(build, mix)
    programs = []
    try:
        for job in mix.jobs:
            programs.append(place.start(job, mix, sharing))
        for program in programs:
            if program.stdout.readline() != b"ready\n":
                sys.exit(f"{mix.name}: a program has ended with {program.wait()}")
        time.sleep(LEAD_IN[sharing])
        begin = time.monotonic_ns()
        time.sleep(seconds)
        account = place.account()
    finally:
        for program in programs:
            program.kill()
            program.wait()
    return account, [program.pid for program in programs], begin


def turns_of(account, begin, end):
    """Turns on the multiprocessors, of each GPU, cut to that time."""
    turns = collections.defaultdict(list)
    for row in csv.DictReader(account.splitlines()):
        cut = Turn(int(row["pid"]), max(int(row["begin"]), begin), min(int(row["end"]), end))
        if row["engine"] == "compute" and cut.begin < cut.end:
            turns[int(row["gpu"])].append(cut)
    return turns


def busy_times(turns, pids, begin, end):
    """Nanoseconds that each process had, of those."""
    had = dict.fromkeys(pids, 0)
    for turn in turns:
        had[turn.pid] += max(0, min(turn.end, end) - max(turn.begin, begin))
    return list(had.values())


def points_off(had, weights):
    """The most by which one's part of what all with a weight had is another than its weight's."""
    weighed = [(time, weight) for time, weight in zip(had, weights) if weight]
    times, all_weights = (sum(column) for column in zip(*weighed))
    return max(abs(100 * time / (times or 1) - 100 * weight / all_weights) for time, weight in weighed)


def gaps_of(turns):
    turns = sorted(turns, key=lambda turn: turn.begin)
    return [(after.begin - before.end) / 1000 for before, after in zip(turns, turns[1:]) if before.pid != after.pid]


def figures_of(mix, account, pids, begin, seconds):
    end = begin + seconds * SECOND
    weights = [job.weight for job in mix.jobs]
    worst = []
    for turns in turns_of(account, begin, end).values():
        had = busy_times(turns, pids, begin, end)
        in_each = [busy_times(turns, pids, at, at + SECOND) for at in range(begin, end, SECOND)]
        compares = never_pauses(mix)
        worst.append(Figures(points_off(had, weights) if compares else None,
                             max(points_off(times, weights) for times in in_each) if compares else None,
                             100 * sum(had) / (seconds * SECOND), [100 * time / (seconds * SECOND) for time in had],
                             gaps_of(turns), os.getloadavg()[0]))
    if len(worst) != mix.gpus:
        sys.exit(f"{mix.name}: {len(worst)} GPUs have run anything")
    return min(worst, key=lambda figures: figures.busy)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else None


def text_of(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def print_row(name, sharing, figures):
    had = figures.had if len(figures.had) <= 3 else [min(figures.had), max(figures.had)]
    cells = [text_of(figures.points), text_of(figures.points_1s), text_of(figures.busy),
             text_of(percentile(figures.gaps, 0.5), 0), text_of(percentile(figures.gaps, 0.99), 0),
             text_of(figures.load, 1)]
    print(f"{name:<40}{sharing:<9}" + "".join(f"{cell:>8}" for cell in cells) + "  "
          + ("…" if had is not figures.had else " ").join(f"{part:.1f}" for part in had), flush=True)


def targets_of(mix, measured):
    """What the row has of the targets: (what, value, limit, met)."""
    ours, none = measured[SHARES], measured.get(NONE)

    def at_most(what, value, limit):
        return what, value, f"≤ {limit:g}", value <= limit

    def of_drivers(least):
        value = 100 * ours.busy / none.busy
        return "busy, % of no share", value, f"≥ {least:g}", value >= least

    for target in mix.targets:
        if target == "points":
            yield at_most("points over the whole time", ours.points, 1)
        elif target == "points_1s":
            yield at_most("points over each second", ours.points_1s, 4)
        elif target == "asked":
            asked = min(mix.jobs[0].weight, none.had[0])
            value = 100 * ours.had[0] / asked
            yield "its share, % of what it asks", value, "≥ 90", value >= 90
        else:
            yield of_drivers({"busy": 98.5, "alone": 99.5, "pauses": 97}[target])


def keep(path, account, pids, jobs):
    path.write_text(account)
    print("".join(f"--name {pid}='share of {job.weight} %' " for pid, job in zip(pids, jobs)), file=sys.stderr)


def measure(build, mix, options):
    """Figures of each way to share; the first account goes to --turns."""
    measured = {}
    for sharing in mix.sharings:
        account, pids, begin = run(build, mix, sharing, options.seconds)
        measured[sharing] = figures_of(mix, account, pids, begin, options.seconds)
        print_row(mix.name, sharing, measured[sharing])
        if options.turns:
            keep(options.turns, account, pids, mix.jobs)
            options.turns = None
    return measured


def never_pauses(mix):
    return all(job.pause is None for job in mix.jobs)


def context_switch(build):
    """Microseconds that the model takes for a change of contexts."""
    profile = (build / "lib/cuslice/fake/profiles/h200.toml").read_text()
    return int(re.search(r'^context-switch = "(\d+)us"', profile, re.MULTILINE)[1])


def target_of_gaps(build, gaps):
    """Where no job pauses, a GPU is idle between two jobs for the hand-over alone."""
    on_host = [gap - context_switch(build) for gap in gaps]
    print(f"\nhand-overs less the model's change: {len(on_host)}, 10th percentile "
          f"{text_of(percentile(on_host, 0.1), 0)} us, 99th {text_of(percentile(on_host, 0.99), 0)} us")
    median = percentile(on_host, 0.5)
    return "all that is never idle", "hand-over on the host, us", median, "≤ 200", median <= 200


def print_targets(targets):
    print()
    for name, what, value, limit, met in targets:
        print(f"{name:<40}{what:<28}{value:>8.2f}  {limit:<7} {'yes' if met else 'NO'}")
    print(f"\n{sum(target[-1] for target in targets)} of {len(targets)} targets met")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=10)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("--turns", type=pathlib.Path)
    options = arguments.parse_args()
    build = options.build.resolve()

    print(f"Machine: {processor()}\nDate:    {datetime.date.today()}\nSeconds: {options.seconds}\n")
    heads = ["points", "1 s", "busy %", "gap us", "p99", "load"]
    print(f"{'':<40}{'':<9}" + "".join(f"{head:>8}" for head in heads) + "  had %")
    rows, targets, gaps = [], [], []
    for mix in (mix for mix in mixes() if options.only in mix.name):
        measured = measure(build, mix, options)
        rows += [{"name": mix.name, "sharing": sharing, **figures._asdict()} for sharing, figures in measured.items()]
        targets += [(mix.name, *target) for target in targets_of(mix, measured)]
        gaps += measured[SHARES].gaps if never_pauses(mix) and all(job.weight for job in mix.jobs) else []
    if gaps:
        targets.append(target_of_gaps(build, gaps))
    print_targets(targets)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
