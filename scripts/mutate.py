#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws mutants, builds them all at once and asks the tests about each: see mutate.sh.  mutate.py ROOT [OPTIONS]"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from mutation import asking, drawing, report, tree  # noqa: E402

# Labels of the tests that can reach a folder's code, which are asked.
LABELS = {"policy": ("policy", "virtual_gpu", "shim", "preload", "cli"),
          "virtual_gpu": ("virtual_gpu", "shim", "preload"), "shim": ("shim", "preload")}
COUNTED = ("killed", "hangs", "survived", "not reached")  # all others are left out, and others drawn for them


class State:
    """What has been found out, a line for each: a run that is stopped goes on from there."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, record):
        with self.lock, open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
            self.records.append(record)

    def by(self, key):
        return {one[key]: one for one in self.records if key in one}


class Run:
    def __init__(self, given):
        self.given, self.begin = given, time.monotonic()
        self.git = lambda *words: subprocess.check_output(["git", "-C", given.root, *words], text=True).strip()
        self.commit = self.git("rev-parse", "--verify", f"{given.commit}^{{commit}}")
        self.seeds = [self.git("rev-parse", "--verify", f"{seed}^{{commit}}") for seed in given.seed.split(",") if seed]
        self.seeds = self.seeds or [self.commit]
        place = given.root / "build/mutate"
        name = "-".join([self.commit[:12], *(seed[:12] for seed in self.seeds), str(given.count)])
        for word, value in (("since", given.changed), ("slow", given.slow), ("by", given.tests)):
            name += f"-{word}-{value}" if value else ""
        self.state = State(place / (re.sub(r"[^\w.-]", "_", name)[:200] + ".jsonl"))
        self.tree = tree.Tree(place, given.jobs)

    def say(self, text):
        print(f"mutate: {(time.monotonic() - self.begin) / 60:5.1f} min: {text}", flush=True)

    def changed(self):
        """The files that changed since BASE's branch was left, or in the last commit where it wasn't."""
        base = self.git("merge-base", self.commit, self.given.changed)
        if base == self.commit:
            parents = self.git("rev-list", "--parents", "-1", self.commit).split()[1:]
            if not parents:
                return set()
            base = parents[0]
        return set(self.git("diff", "--name-only", base, self.commit).split("\n"))

    def build(self, mutants):
        """Builds with all mutants in it. Notes those that can't be."""
        left = [one for one in mutants if drawing.key(one) not in self.state.by("left_out")]
        self.tree.mutate(left, self.numbers)
        self.tree.configure()
        if not any("built" in one for one in self.state.records):
            self.say(f"compiling {len(left)} mutants by themselves")
            self.leave_out(self.tree.refused(left, self.numbers), "can't be compiled")
        left = [one for one in mutants if drawing.key(one) not in self.state.by("left_out")]
        self.tree.mutate(left, self.numbers)
        programs = self.tree.programs(self.labels, self.given.tests)
        self.say(f"building with {len(left)} mutants, for {len(programs)} test programs")
        self.leave_out(self.tree.built(left, self.numbers, (*tree.PRODUCT, *programs)), "can't be compiled")
        alive = self.tree.alive([*self.tree.products(), *(self.tree.build / program for program in programs)])
        left = [one for one in mutants if drawing.key(one) not in self.state.by("left_out")]
        self.leave_out([one for one in left if self.numbers[one] not in alive], "not in the code")
        self.state.add({"built": time.time()})

    def leave_out(self, mutants, why):
        for one in mutants:
            self.state.add({"left_out": drawing.key(one), "why": why})

    def measure(self):
        """What each test reaches. Those that fail without a mutant are of no use."""
        known = self.state.by("case")
        cases = list(self.asking.cases(self.labels, self.given.tests, self.given.slow))
        new = [case for case in cases if case.name not in known]
        self.say(f"{len(new)} tests without a mutant")

        def measure(case):
            passes, seconds, reached = self.asking.measure(case)
            self.state.add({"case": case.name, "passes": passes, "seconds": round(seconds, 2), "reached": reached})

        with concurrent.futures.ThreadPoolExecutor(self.given.jobs) as pool:
            list(pool.map(measure, new))
        known = self.state.by("case")
        self.took = {name: one["seconds"] for name, one in known.items()}
        self.reaching = {}
        for case in cases:
            if not known[case.name]["passes"]:
                self.say(f"fails without a mutant, and is not asked: {case.name}")
                continue
            for number in known[case.name]["reached"]:
                self.reaching.setdefault(number, []).append(case)

    def try_one(self, mutant):
        """Finds out what becomes of a mutant."""
        begin, number = time.monotonic(), self.numbers[mutant]
        killers = {one["test"] for one in self.state.records if one.get("file") == mutant.file and one.get("test")}
        cases = sorted(self.reaching.get(number, ()),
                       key=lambda case: (self.took[case.name] * (0.1 if case.name in killers else 1)))
        how, test = self.asking.killer(number, cases, self.took) or ("survived", None)
        if how == "survived":
            with self.compiling:
                if self.tree.same_code(mutant):
                    self.leave_out([mutant], "same code")
                    return
        how = how if cases or how != "survived" else "not reached"
        self.state.add({"mutant": drawing.key(mutant), "status": how, "test": test, "file": mutant.file,
                        "asked": len(cases), "seconds": round(time.monotonic() - begin, 1)})
        print(f"{how:12} {time.monotonic() - begin:6.1f} s  {mutant.file}:{mutant.line}: {mutant.operator}"
              + (f"  [{test}]" if test else ""), flush=True)

    def counted(self, seed):
        """The mutants of a set that count, as far as the left out are known."""
        out = self.state.by("left_out")
        shares, drawn = self.sets[seed]
        return [one for name, share in shares.items()
                for one in [one for one in drawn[name] if drawing.key(one) not in out][:share]]

    def try_all(self, seed):
        late = lambda: self.given.minutes and time.monotonic() - self.begin > 60 * self.given.minutes
        while True:
            known = self.state.by("mutant")
            # In an order in which the first ones are as good a sample as all.
            new = drawing.ranked(seed, [one for one in self.counted(seed) if drawing.key(one) not in known])
            if not new or late():
                return
            with concurrent.futures.ThreadPoolExecutor(self.given.jobs) as pool:
                list(pool.map(lambda one: None if late() else self.try_one(one), new))

    def run(self):
        if not self.given.list and resource.getrlimit(resource.RLIMIT_CORE)[1] in range(asking.SLOTS):
            sys.exit("mutate: the limit for core files is too low: tests know their mutant by it (mutation/mutant.h)")
        self.tree.check_out(self.given.root, self.commit)
        texts = self.tree.texts
        if self.given.changed:
            changed = self.changed()
            texts = {file: text for file, text in texts.items() if file in changed}
        self.sets = drawing.draw(self.seeds, self.given.count, texts)
        everything = sorted({one for _, drawn in self.sets.values() for found in drawn.values() for one in found})
        self.numbers = {one: number for number, one in enumerate(everything, 1)}
        if self.given.list:
            for seed in self.seeds:
                for one in self.counted(seed):
                    print(f"{drawing.key(one)} {self.numbers[one]} " + report.shown(one))
            return
        if not everything:
            print("mutate: result: there is nothing to mutate")
            return
        self.labels = sorted({label for one in everything for label in LABELS[one.file.split("/")[0]]})
        self.build(everything)
        self.asking, self.compiling = asking.Asking(self.tree, self.given.jobs), threading.Lock()
        self.measure()
        for seed in self.seeds:
            self.say(f"trying the mutants drawn by {seed[:12]}")
            self.try_all(seed)
        for seed in self.seeds:
            report.write(self.commit, seed, self.counted(seed), self.state.by("mutant"), self.state.by("left_out"))
        self.say("done")


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh")
    parser.add_argument("root", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--seed", default="")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--changed")
    parser.add_argument("--tests", default="")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--list", action="store_true")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Run(parser.parse_args()).run()


if __name__ == "__main__":
    main()
