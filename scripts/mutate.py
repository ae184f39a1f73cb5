#!/usr/bin/env python3
"""Draws mutants, builds each and asks the tests: see mutate.sh.  mutate.py ROOT [OPTIONS]"""
import argparse
import collections
import concurrent.futures
import hashlib
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tarfile
import time

FOLDERS = ("policy", "virtual_gpu", "shim")
# Which tests are asked, by their labels, one group after the other.
STAGES = {"policy": ("policy", "preload"), "virtual_gpu": ("virtual_gpu", "preload"), "shim": ("preload",)}
PRODUCT = ("cuslice", "cuslice_driver_facade", "cuslice_nvml_facade", "cuslice_runtime", "cuslice_runtime_facade12",
           "cuslice_runtime_facade13", "cuslice_launch", "cuslice_toml_module", "fake_driver", "fake_nvml",
           "fake_cudart12", "fake_cudart13", "fake_watch")
COUNTED = ("killed", "hangs", "survived")  # all others are left out, and others drawn for them
MEMORY = 8 << 30  # bytes that a process of a test may have of its own
# A test hangs after so many times as long as without a mutant, and so many seconds.
TIMES, SECONDS = 10, 30

Mutant = collections.namedtuple("Mutant", "stratum file line operator before after")
Test = collections.namedtuple("Test", "name command folder environment labels")


def operators():
    """Each: its name, what it looks for in a line without comments and texts, and what it makes of that."""
    swaps = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
             " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += ",
             " / ": " * ", " & ": " | ", " | ": " & ", "true": "false", "false": "true"}
    for old, new in swaps.items():
        word = rf"\b{old}\b" if old.isalpha() else re.escape(old)
        yield f"{old.strip()} for {new.strip()}", word, lambda found, new=new: new
    constants = "(?:true|false|0|nullptr);"
    yield "condition negated", r"\bif \((?!!\()(.+?)\)(?= [\w{*:]| \[\[|$)", lambda found: f"if (!({found[1]}))"
    yield "one more", r"(?<![\w.\"'])(\d+)(?![\w.'\"])", lambda found: str(int(found[1]) + 1)
    yield "answer negated", rf"\breturn (?!!|{constants})([^;{{}}]+);", lambda found: f"return !({found[1]});"
    yield "answer is nothing", rf"\breturn (?!{constants})([^;{{}}]+);", lambda found: "return {};"
    nothing = lambda found: re.match(r"\s*", found[0])[0] + "{}"
    # A statement that is an expression and has its line, or the line after an if, to itself.
    others = r"return|using|const|auto|typedef|static|case|delete|goto|else|[\w:<>*& ]+ [*&]?\w+( = |;|\{|\()"
    yield "statement removed", rf"^\s+(?!{others})[\w:>.*()\[\]-]+[^{{}}]*;$", nothing
    yield "branch removed", r"^\s+if \(.*\) [^{}]+;$", nothing


OPERATORS = [(name, re.compile(look), make) for name, look, make in operators()]
NOT_MUTATED = re.compile(r"^\s*#|static_assert|\\$|^\s*(template|using|friend|extern|asm|namespace)\b|\[\[(gnu|no)")


def bare(text):
    """The lines with comments and what is in quotes turned into spaces and letters of the same length."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r'R"(\w*)\((.|\n)*?\)\1"', blank, text)
    text = re.sub(r"//[^\n]*|/\*(.|\n)*?\*/", blank, text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', lambda found: '"' + "_" * (len(found[0]) - 2) + '"', text)
    return re.sub(r"'(\\.|[^'\\\n])'", lambda found: "'" + "_" * (len(found[0]) - 2) + "'", text).split("\n")


def mutants_of(file, text):
    stratum = "/".join(file.split("/")[:-1])
    for number, (line, original) in enumerate(zip(bare(text), text.split("\n")), 1):
        if NOT_MUTATED.search(line):
            continue
        for name, look, make in OPERATORS:
            for found in look.finditer(line):
                # As it is written, with its texts.
                real = look.match(original, found.start())
                if not real or real.end() != found.end():
                    continue
                after = original[:found.start()] + make(real) + original[found.end():]
                if after != original:
                    yield Mutant(stratum, file, number, name, original, after)


def quotas(count, strata):
    """How many of each folder: one, as far as they go, the rest in proportion to what there is, `count` together."""
    total = sum(len(found) for found in strata.values())
    shares = {name: 0 for name in strata}
    for i in range(count if total else 0):
        # Whoever lacks most; in the first round the largest folders.
        lacks = lambda name: (shares[name] == 0, count * len(strata[name]) / total - shares[name], name)
        shares[max(shares, key=lacks)] += 1
    return shares


class Run:
    def __init__(self, root, given):
        self.root, self.given = root, given
        self.commit = self.git("rev-parse", "--verify", f"{given.commit}^{{commit}}")
        self.place = root / "build/mutate"
        self.tree = self.place / "tree"
        self.build = self.tree / "build/dev"
        name = f"{self.commit[:12]}-{given.count}" + (f"-since-{given.changed}" if given.changed else "")
        name += "-slow" if given.slow else ""
        name += f"-by-{given.tests}" if given.tests else ""
        name += f"-within-{given.most_objects}" if given.most_objects else ""
        self.state = self.place / (re.sub(r"[^\w.-]", "_", name) + ".jsonl")

    def git(self, *words, folder=None):
        return subprocess.check_output(["git", "-C", folder or self.root, *words], text=True).strip()

    def checkout(self):
        self.place.mkdir(parents=True, exist_ok=True)
        self.git("worktree", "prune")
        if not self.tree.exists():
            self.git("worktree", "add", "--quiet", "--detach", str(self.tree), self.commit)
        self.git("checkout", "--quiet", "--force", "--detach", self.commit, folder=self.tree)

    def sources(self):
        """(file, text) of what may be mutated, as the commit has it."""
        changed = None
        if self.given.changed:
            base = self.git("merge-base", self.commit, self.given.changed)
            base = self.git("rev-parse", f"{self.commit}~1") if base == self.commit else base
            changed = set(self.git("diff", "--name-only", base, self.commit).split("\n"))
        packed = subprocess.check_output(["git", "-C", self.root, "archive", self.commit, *FOLDERS])
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for name in sorted(archive.getnames()):
                if name.endswith((".cpp", ".h")) and (changed is None or name in changed):
                    yield name, archive.extractfile(name).read().decode()

    def draw(self):
        """Per folder, its mutants in the order in which they are tried."""
        strata = collections.defaultdict(list)
        for file, text in self.sources():
            for mutant in mutants_of(file, text):
                strata[mutant.stratum].append(mutant)
        for name, found in sorted(strata.items()):
            random.Random(f"{self.commit} {name}").shuffle(found)
        return quotas(self.given.count, strata), strata

    # Building

    def ninja(self, *targets, mutated=True):
        flags = {"CUSLICE_MUTANT_FLAGS": "-w"} if mutated else {}
        return subprocess.run(["ninja", "-C", str(self.build), "-j", str(os.cpu_count()), *targets], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, **flags})

    def configure(self):
        """As the preset dev is; the warnings of a mutant are none of its mistakes."""
        compiler = self.place / "compile"
        ccache = subprocess.run(["which", "ccache"], capture_output=True, text=True).stdout.strip()
        compiler.write_text(f'#!/bin/sh\nexport CCACHE_BASEDIR="${{CCACHE_BASEDIR:-{self.tree}}}" CCACHE_NOHASHDIR=1\n'
                            f'exec {ccache} "$@" $CUSLICE_MUTANT_FLAGS\n')
        compiler.chmod(0o755)
        launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={compiler}" for language in ("C", "CXX")]
        subprocess.run(["cmake", "--preset", "dev", *launchers], cwd=self.tree, check=True, stdout=subprocess.DEVNULL)

    def tests(self):
        """{label: [Test]} of the tests that may be asked."""
        listed = json.loads(subprocess.check_output(["ctest", "--show-only=json-v1"], cwd=self.build, text=True))
        found = collections.defaultdict(list)
        for test in listed["tests"]:
            values = {one["name"]: one["value"] for one in test.get("properties", [])}
            labels = values.get("LABELS", [])
            if values.get("DISABLED") or ("slow" in labels and not self.given.slow) or "command" not in test:
                continue
            if not self.is_asked(test["command"][0]):
                continue
            one = Test(test["name"], test["command"], values.get("WORKING_DIRECTORY", str(self.build)),
                       dict(word.split("=", 1) for word in values.get("ENVIRONMENT", [])), labels)
            for label in {label for stage in STAGES.values() for label in stage} & set(labels[:1]):
                found[label].append(one)
        return found

    def programs(self, label):
        programs = {os.path.relpath(test.command[0], self.build) for test in self.all_tests[label]}
        return sorted(program for program in programs if not program.startswith(".."))

    def is_asked(self, program):
        return re.search(self.given.tests, os.path.basename(program))

    def objects_of(self, file):
        """The product's objects that a file is compiled into, or that include it."""
        return sorted(self.included.get(file, ()))

    def read_dependencies(self):
        self.included = collections.defaultdict(set)
        target = None
        for line in subprocess.check_output(["ninja", "-C", self.build, "-t", "deps"], text=True).splitlines():
            if line and not line.startswith(" "):
                target = line.split(":")[0]
                target = target if re.match(rf"({'|'.join(FOLDERS)})/.*\.o$", target) else None
            elif target and line.strip():
                path = os.path.relpath(os.path.join(self.build, line.strip()), self.tree)
                self.included[path].add(target)

    def code_of(self, objects):
        codes = []
        for name in objects:
            copy = self.place / "code.o"
            subprocess.run(["objcopy", "--strip-debug", self.build / name, copy], check=True)
            codes.append(hashlib.sha256(copy.read_bytes()).hexdigest())
        return codes

    # Asking the tests

    def ask(self, test, seconds):
        """0: passed, 77: was skipped, 124: takes too long."""
        words = [sys.executable, str(self.root / "scripts/mutate_one.py"), str(seconds), str(MEMORY), *test.command]
        begin = time.monotonic()
        run = subprocess.run(words, cwd=test.folder, env={**os.environ, **test.environment}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return run.returncode, time.monotonic() - begin

    def ask_all(self, tests, seconds_of, stop=True):
        """(test, status, seconds) of each, or up to the first that fails."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            left = collections.deque(tests)
            running = {}
            while left or running:
                while left and len(running) < os.cpu_count():
                    test = left.popleft()
                    running[pool.submit(self.ask, test, seconds_of(test))] = test
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for one in done:
                    test = running.pop(one)
                    status, seconds = one.result()
                    yield test, status, seconds
                    if stop and status not in (0, 77):
                        left.clear()

    def measure(self, records):
        """How long each test takes without a mutant. Those that fail then are of no use."""
        before = next((one for one in records if "took" in one), None)
        if not before:
            tests = [test for label in sorted(self.wanted) for test in self.all_tests[label]]
            print(f"mutate: {len(tests)} tests without a mutant", flush=True)
            took, unfit = {}, []
            for test, status, seconds in self.ask_all(tests, lambda test: 1500, stop=False):
                took[test.name] = seconds
                if status not in (0, 77):
                    unfit.append(test.name)
            before = {"took": took, "unfit": sorted(unfit)}
            self.write(before)
        for name in before["unfit"]:
            print(f"mutate: fails without a mutant, and is not asked: {name}")
        self.took = {name: took for name, took in before["took"].items() if name not in before["unfit"]}

    def ordered(self, mutant, label, records):
        """Those first that have killed a mutant of this folder or are named after it, then the quick ones."""
        killers = {one["test"] for one in records if one.get("test") and one["stratum"] == mutant.stratum}
        words = set(re.split(r"[/_.]", mutant.file)) - {"cpp", "h", "hooks", "policy", "virtual", "gpu", "shim"}
        likely = lambda test: any(word in test.name for word in words)
        tests = [test for test in self.all_tests[label] if test.name in self.took]
        return sorted(tests, key=lambda test: (test.name not in killers, not likely(test), self.took[test.name]))

    def killer(self, tests):
        """Which of them kills what is built now, and how. It has to do so twice: some fail on a busy machine."""
        patience = lambda test: TIMES * self.took[test.name] + SECONDS
        while tests:
            asked = set()
            for test, status, _ in self.ask_all(tests, patience):
                asked.add(test.name)
                if status not in (0, 77):
                    status, _ = self.ask(test, patience(test))
                if status not in (0, 77):
                    return "hangs" if status == 124 else "killed", test.name
            tests = [test for test in tests if test.name not in asked]
        return None

    # One mutant

    def write(self, record):
        with open(self.state, "a") as state:
            state.write(json.dumps(record) + "\n")

    def try_one(self, mutant, records):
        """What becomes of a mutant: a status, and the test that killed it."""
        objects = self.objects_of(mutant.file)
        if not objects:
            return "not built", None
        if len(objects) > (self.given.most_objects or len(objects)):
            return "in too many objects", None
        path = self.tree / mutant.file
        original = path.read_text()
        lines = original.split("\n")
        lines[mutant.line - 1] = mutant.after
        code = self.code_of(objects)
        try:
            path.write_text("\n".join(lines))
            if self.ninja(*objects).returncode:
                return "does not compile", None
            if self.code_of(objects) == code:
                return "same code", None
            for label in STAGES[mutant.file.split("/")[0]]:
                targets = self.programs(label) + (list(PRODUCT) if label == "preload" else [])
                if self.ninja(*targets).returncode:
                    return "does not link", None
                if killer := self.killer(self.ordered(mutant, label, records)):
                    return killer
            return "survived", None
        finally:
            path.write_text(original)
            self.ninja(*objects, mutated=False)

    def run(self):
        shares, strata = self.draw()
        if self.given.list:
            for name, share in sorted(shares.items()):
                for mutant in strata[name][:share]:
                    print(f"{mutant.file}:{mutant.line}: {mutant.operator}\n  - {mutant.before.strip()}\n"
                          f"  + {mutant.after.strip()}")
            return
        self.checkout()
        records = [json.loads(line) for line in open(self.state)] if self.state.exists() else []
        self.wanted = {label for name, share in shares.items() if share for label in STAGES[name.split("/")[0]]}
        if not self.wanted:
            print("mutate: there is nothing to mutate")
            return
        self.configure()
        print("mutate: building without a mutant", flush=True)
        labels = "|".join(sorted(self.wanted))
        programs = re.findall(rf"^(tests/(?:{labels})/\S+): CXX_EXECUTABLE",
                              self.ninja("-t", "targets", "all").stdout, re.M)
        programs = [program for program in programs if self.is_asked(program)]
        built = self.ninja(*PRODUCT, *programs, mutated=False)
        if built.returncode:
            sys.exit(built.stdout[-3000:])
        self.all_tests = self.tests()
        self.read_dependencies()
        self.measure(records)
        known = {(one["file"], one["line"], one["after"]): one for one in records if "after" in one}
        for name in sorted(shares):
            done = 0
            for mutant in strata[name]:
                if done == shares[name]:
                    break
                record = known.get((mutant.file, mutant.line, mutant.after))
                if not record:
                    begin = time.monotonic()
                    status, test = self.try_one(mutant, records)
                    record = {**mutant._asdict(), "status": status, "test": test,
                              "seconds": round(time.monotonic() - begin, 1)}
                    self.write(record)
                    records.append(record)
                    print(f"{status:16} {record['seconds']:6.1f} s  {mutant.file}:{mutant.line}: {mutant.operator}"
                          + (f"  [{test}]" if test else ""), flush=True)
                done += record["status"] in COUNTED
        self.report([one for one in records if "after" in one])

    def report(self, records):
        tried = collections.defaultdict(collections.Counter)
        for one in records:
            tried[one["stratum"]][one["status"]] += 1
            tried["all"][one["status"]] += 1
        print(f"\nmutants of {self.commit[:12]}\n{'folder':28} killed  of which hang  survived  left out")
        for name, found in sorted(tried.items(), key=lambda pair: (pair[0] == "all", pair[0])):
            killed = found["killed"] + found["hangs"]
            left = sum(found.values()) - killed - found["survived"]
            print(f"{name:28} {killed:6}  {found['hangs']:13}  {found['survived']:8}  {left:8}")
        left = {status: n for status, n in tried["all"].items() if status not in COUNTED}
        print("left out: " + (", ".join(f"{n} {status}" for status, n in sorted(left.items())) or "none"))
        for one in records:
            if one["status"] == "survived":
                print(f"\nsurvived: {one['file']}:{one['line']}: {one['operator']}\n  - {one['before'].strip()}\n"
                      f"  + {one['after'].strip()}")


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--changed")
    parser.add_argument("--tests", default="")
    parser.add_argument("--most-objects", type=int)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Run(given.root.resolve(), given).run()


if __name__ == "__main__":
    main()
