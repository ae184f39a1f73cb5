#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs NVIDIA's genuine libraries natively and under cuslice, and compares. See cells.py for the matrix, and
docs/results/tests/genuine.md for the result.

  matrix.py BUILD [ITEM …]              the cells of these items, of all without a name; 77 if none of them could run
  matrix.py BUILD --write docs/results/tests/genuine.md  all, and the table is written
  matrix.py --check docs/results/tests/genuine.md  holds the document's cells against the matrix; runs nothing
  matrix.py --items                     the items that have cells, one a line

It needs no GPU, and is made for machines without one: where NVIDIA's kernel module is loaded it skips itself.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import catalogue
import cells
import document
import running

SKIPPED = 77
LIBRARY = pathlib.Path("lib/cuslice/libcuslice.so")
ENOUGH = "enough cells of this item hang"
NATIVE = cells.Setting("native")


class Matrix:
    def __init__(self, build, seconds, work):
        self.build, self.seconds, self.work = pathlib.Path(build).resolve(), seconds, pathlib.Path(work)

    def compiled(self, program):
        """The probe, compiled by the C compiler of this machine; linked against the very library that it is for."""
        source, soname, way = program.probe
        made = self.work / f"{source}-{program.item}-{way}"
        if not made.exists():
            words = ["cc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f'-DPROBE_LIBRARY="{soname}"', "-o", made, cells.HERE / f"probes/{source}.c"]
            if way == "linked":
                # The library's own needs are looked for when the probe runs.
                words += ["-DPROBE_LINKED", f"-L{catalogue.cache() / program.item}", f"-l:{soname}", "-Wl,--allow-shlib-undefined"]
            subprocess.run([*words, "-ldl", "-lpthread"], check=True)
        return made

    def beside_fake(self, item):
        """A copy of the installation in which that item's NVML lies beside the fake driver, where cuslice looks for it."""
        root = self.work / f"installation-{item}"
        if not root.exists():
            for name in "bin", "lib":
                shutil.copytree(self.build / name, root / name)
            management = root / "lib/cuslice/fake/libnvidia-ml.so.1"
            management.unlink()
            management.symlink_to(catalogue.cache() / item / management.name)
        return root

    def run(self, program, setting):
        """The program under a setting; natively without one."""
        command = list(program.command)
        if program.probe:
            command.insert(0, self.compiled(program))
        folders, root = [catalogue.cache() / name for name in program.needs()], self.build
        environment = {"PYTHONPATH": str(catalogue.cache() / "python")}
        if program.fake:
            root = self.beside_fake(program.item)
            folders = [root / "lib/cuslice/fake"]
            environment["CUSLICE_FAKE"] = "2xh200"
        environment["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
        if setting and setting.words:
            command = [root / "bin/cuslice", "run", *setting.words, "--", *command]
        elif setting:
            environment |= {"LD_PRELOAD": str(root / LIBRARY), **dict(setting.environment)}
        if program.fake:
            command = [root / "lib/cuslice/fake/watch", "--json", "--", *command]
        return running.run(command, environment, self.seconds)

    def problems(self, program, setting, native, outcome):
        if outcome.stacks:
            return [f"hangs: not done after {self.seconds:.0f} s\n{outcome.stacks}"]
        problems = []
        genuine = {path.resolve() for path in (catalogue.cache() / program.item).iterdir()}
        for name in program.files:
            if not any(pathlib.Path(path).name == name and pathlib.Path(path).resolve() in genuine for path in outcome.loaded):
                problems.append(f"the genuine {name} was not loaded")
        if (LIBRARY.name in [pathlib.Path(path).name for path in outcome.loaded]) == (setting is None):
            problems.append("cuslice is loaded natively" if setting is None else "cuslice was not loaded")
        if setting is None:
            why = cells.natively_expected(program, outcome)
            return problems + ([f"{why}: {outcome}"] if why else [])
        return problems + cells.differences(program, setting, native, outcome)


def without_run(program, verdict, why):
    return [(setting, verdict, why) for setting in cells.settings_of(program)]


def run_program(matrix, program, hangs):
    """The program's cells: (setting, verdict, detail). A native run that proves nothing is a cell more, and fails. What is left
    after so many that hang is left out: what hangs once does so everywhere, and each costs the whole time."""
    absent = [f"{name}: {why}" for name in program.needs() if (why := catalogue.missing(catalogue.BY_NAME[name]))]
    if absent:
        return without_run(program, "skipped", "; ".join(absent))
    if hangs <= 0:
        return without_run(program, "left out", ENOUGH)
    native = matrix.run(program, None)
    if problems := matrix.problems(program, None, native, native):
        return [(NATIVE, "hangs" if native.stacks else "differs", "\n".join(problems)), *without_run(program, "skipped", "its native run failed")]
    made = []
    for setting in cells.settings_of(program):
        if hangs <= 0:
            made.append((setting, "left out", ENOUGH))
            continue
        outcome = matrix.run(program, setting)
        problems = matrix.problems(program, setting, native, outcome)
        hangs -= bool(outcome.stacks)
        fine = "documented" if cells.documented(program, setting) else "same"
        made.append((setting, "hangs" if outcome.stacks else "differs" if problems else fine, "\n".join(problems)))
    return made


def run_items(matrix, names, hangs=3):
    """{cell: (verdict, detail)}, where a cell is (item, program, setting); of an item only so many that hang."""
    results = {}
    for program in cells.programs():
        if program.item not in names:
            continue
        hung = sum(cell[0] == program.item and verdict == "hangs" for cell, (verdict, _) in results.items())
        for setting, verdict, detail in run_program(matrix, program, hangs - hung):
            cell = (program.item, program.name, setting.name)
            results[cell] = (verdict, detail)
            if verdict != "skipped":
                print(f"{verdict:10} {' | '.join(cell)}" + (f"\n{detail}" if detail else ""), flush=True)
    return results


def missing_of(names):
    """Those of the items and of what their programs need that are not there."""
    needed = [need for program in cells.programs() if program.item in names for need in program.needs()]
    return [(name, why) for name in dict.fromkeys([*names, *needed]) if (why := catalogue.missing(catalogue.BY_NAME[name]))]


def verdict_of(results, names):
    """What the run comes to, said in lines; and its exit status."""
    counts = dict(zip(document.WORDS, document.count({cell: verdict for cell, (verdict, _) in results.items()})))
    failed = counts["differs"] + counts["hangs"]
    for name, why in missing_of(names):
        print(f"SKIPPED  {name}: {why}")
        if not catalogue.may_be_missing(catalogue.BY_NAME[name]):
            print(f"FAILED   {name}: this machine's own release has it, so it may not be missing in continuous integration")
            failed += 1
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    if failed:
        return 1
    return 0 if counts["same"] + counts["documented"] else SKIPPED


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="after which a cell hangs")
    parser.add_argument("--hangs", type=int, default=3, help="cells of an item that may hang before its others are left out")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--items", action="store_true")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    every = list(dict.fromkeys(program.item for program in cells.programs()))
    if asked.items:
        print("\n".join(every))
        return 0
    if asked.check:
        return document.check(asked.check)
    if not asked.words or not set(asked.words[1:]) <= set(every):
        parser.error("a build folder, and names of items")
    if os.path.exists("/proc/driver/nvidia/version"):
        print("SKIPPED  NVIDIA's kernel module is loaded here; the matrix is for machines without it")
        return SKIPPED
    names = asked.words[1:] or every
    with tempfile.TemporaryDirectory(prefix="genuine-matrix-") as work:
        results = run_items(Matrix(asked.words[0], asked.seconds, work), names, asked.hangs)
    if asked.write:
        document.write(asked.write, results, f"lab/genuine/matrix.py {asked.words[0]} --write {asked.write}")
    return verdict_of(results, names)


if __name__ == "__main__":
    sys.exit(main())
