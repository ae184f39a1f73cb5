# SPDX-License-Identifier: Apache-2.0
"""Asks the tests: which mutants each of them reaches, and whether one notices a mutant."""
import collections
import json
import mmap
import os
import queue
import re
import struct
import subprocess
import sys
import time

SLOTS, SLOT, REACHED = 16, 4096, 8  # as in mutant.h
MEMORY = 8 << 30  # bytes that a process of a test may have of its own
PASSED, SKIPPED, LATE = 0, 77, 124
# A test hangs after so many times as long as without a mutant, and so many seconds.
TIMES, SECONDS = 5, 10

Case = collections.namedtuple("Case", "name command folder environment labels")


class Switch:
    """The file by which the tests' processes know their mutant: see mutant.h."""

    def __init__(self, path):
        with open(path, "ab") as file:
            file.truncate(SLOTS * SLOT)
        os.chmod(path, 0o666)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SLOTS * SLOT)

    def set(self, slot, number):
        self.memory[slot * SLOT:(slot + 1) * SLOT] = struct.pack("<i", number).ljust(SLOT, b"\0")

    def reached(self, slot):
        bytes_ = self.memory[slot * SLOT + REACHED:(slot + 1) * SLOT]
        return [number for number, byte in enumerate(bytes_) if byte]


class Asking:
    def __init__(self, tree, jobs):
        self.tree, self.switch = tree, Switch(tree.switch)
        self.slots = queue.Queue()
        for slot in range(1, jobs + 1):
            self.slots.put(slot)

    def cases(self, labels, asked, slow):
        """What CTest would run."""
        listed = json.loads(subprocess.check_output(["ctest", "--show-only=json-v1"], cwd=self.tree.build, text=True))
        for test in listed["tests"]:
            values = {one["name"]: one["value"] for one in test.get("properties", [])}
            mine = values.get("LABELS", [])
            if not mine or mine[0] not in labels or values.get("DISABLED") or "command" not in test:
                continue
            if ("slow" in mine and not slow) or not re.search(asked, os.path.basename(test["command"][0])):
                continue
            yield Case(test["name"], test["command"], values.get("WORKING_DIRECTORY", str(self.tree.build)),
                       dict(word.split("=", 1) for word in values.get("ENVIRONMENT", [])), mine)

    def ask(self, case, number, seconds):
        """(status, seconds, reached): PASSED, SKIPPED, LATE, or how it failed with this mutant; 0 is none."""
        slot = self.slots.get()
        try:
            self.switch.set(slot, number)
            one = os.path.join(os.path.dirname(__file__), "one.py")
            words = [sys.executable, one, str(seconds), str(MEMORY), str(slot), *case.command]
            begin = time.monotonic()
            run = subprocess.run(words, cwd=case.folder, env={**os.environ, **case.environment},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return run.returncode, time.monotonic() - begin, self.switch.reached(slot)
        finally:
            self.slots.put(slot)

    def measure(self, case):
        """What a case does without a mutant: (whether it passes, seconds, reached). It may need a second try."""
        for _ in range(2):
            status, seconds, reached = self.ask(case, 0, 300)
            if status in (PASSED, SKIPPED):
                return True, seconds, reached
        return False, seconds, reached

    def killer(self, number, cases, took):
        """(how, case) of the first that notices the mutant, twice in a row as some fail on a busy machine, or None."""
        for case in cases:
            limit = TIMES * took[case.name] + SECONDS
            if self.ask(case, number, limit)[0] in (PASSED, SKIPPED):
                continue
            status = self.ask(case, number, limit)[0]
            if status not in (PASSED, SKIPPED):
                return "hangs" if status == LATE else "killed", case.name
        return None
