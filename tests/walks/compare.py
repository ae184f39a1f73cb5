#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a walk of docs/architecture.md with the calls that one allocation makes.

    compare.py ROOT LIBRARY GUEST WALK    LIBRARY: libcuslice.so as tests/walks/ builds it
    compare.py ROOT --known               the page has the walks that are compared, and no others

The walk is compared in four ways:
- The functions that it names are entered in its order, and no more and no less often.
- It goes down once and comes up once: none of its functions is entered while it runs, and the bytes are charged, the
  driver is asked, the address is recorded and the bytes are committed once each, in this order.
- No function of the driver is called that it doesn't name.
- Every file between the hook and the driver is one of its files, or one of those beside it: the page's
  "beside: FILE…", whose functions its stops use. Only helpers of one line need no file, and the tools that everything
  uses (`BASICS`).

What is done now and then (`NOW_AND_THEN`) is no part of a walk, as the page says.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MIB = 1 << 20
PAGE = "docs/architecture.md"
Scene = collections.namedtuple("Scene", "settings words")
# Variables that make the mode, and the guest's commands before the allocation that is walked, which is the last number.
SCENES = {
    "direct": Scene({}, [MIB, MIB]),
    "job": Scene({"CUSLICE_JOB": "walked"}, [MIB, MIB]),
    "split": Scene({"CUSLICE_SPLIT": "0=2"}, [MIB, MIB]),
    "growth-magazine": Scene({"CUSLICE_ALLOCATOR": "growth"}, [4096, 4096, "free", 4096]),
    "growth-segment": Scene({"CUSLICE_ALLOCATOR": "growth"}, [100 * MIB, 100 * MIB]),
}
# Locks and tables that work inside somebody else's process, the values of settings, and the table of the driver's
# functions: no stops, but what stops are made of.
LAYERS = ("config", "policy", "virtual_gpu", "shim")
BASICS = ("config/", "policy/base/", "virtual_gpu/driver/")
NOW_AND_THEN = ("VirtualGpu::poll_footprint", "AllocationTable::insert_slowly")
ONCE = (("policy/budget/budget.h", "Budget::reserve"), ("driver", "cuMemAlloc_v2"),
        ("policy/budget/allocation_table.cpp", "AllocationTable::insert"), ("policy/budget/budget.h", "Budget::commit"))

Walk = collections.namedtuple("Walk", "stops beside")
# A function that was entered or a driver's that was called, and what was running then, outermost first.
Call = collections.namedtuple("Call", "file function line running")


def walks(root):
    """{name: Walk} as the page has them: a stop is (file or "driver", function)."""
    text = (root / PAGE).read_text()
    missing = [name for name in NOW_AND_THEN if f"`{name}`" not in text]
    if missing:
        sys.exit(f"{PAGE} does not say that {missing} is left out")
    found = {}
    for name, block in re.findall(r"^```walk (\S+)\n(.*?)^```", text, re.M | re.S):
        lines = [tuple(line.split(": ", 1)) for line in block.splitlines()]
        beside = " ".join(files for kind, files in lines if kind == "beside")
        found[name] = Walk([line for line in lines if line[0] != "beside"], beside.split())
    return found


def record(library, guest, scene):
    """What the guest's last allocation enters and leaves: lines of recorder.cpp's."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
                       "LD_PRELOAD": str(library), "CUSLICE_FAKE": "1xlaptop-2g", "CUSLICE_FAKE_DIR": folder,
                       "CUSLICE_LIMIT": "1GiB", **scene.settings}
        run = subprocess.run([guest, *map(str, scene.words)], env=environment, capture_output=True, text=True)
    if run.returncode or run.stderr:
        sys.exit(f"the guest ended with {run.returncode}\n{run.stdout[-2000:]}{run.stderr}")
    return run.stdout.splitlines()


def plain_name(symbol):
    """cuslice::Reservation::commit() is Reservation::commit. What has no name of its own, a lambda, stays as it is."""
    name, depth = "", 0
    for character in symbol.replace("(anonymous namespace)::", "").replace("operator()", "operator"):
        depth -= character in ">)"
        name += character if depth == 0 and character not in "<(>)" else ""
        depth += character in "<("
    if depth or "{lambda" in name or "operator" in name:
        return symbol
    words = name.removesuffix(" const").split()
    return words[-1].removeprefix("cuslice::").removeprefix("ledger::") if words else symbol


def functions_at(root, library, offsets):
    """{offset: (file below the root, name, line)} of functions that begin there."""
    symbols = {}
    for line in subprocess.check_output(["nm", "-C", library], text=True).splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in "tTwW":
            symbols[int(parts[0], 16)] = parts[2]
    places = subprocess.run(["addr2line", "-e", library], input="\n".join(f"{at:x}" for at in offsets), text=True,
                            capture_output=True, check=True).stdout.splitlines()
    found = {}
    for at, place in zip(offsets, places):
        path, _, line = place.split(" ")[0].rpartition(":")
        found[at] = (below(root, path), plain_name(symbols.get(at, f"{at:x}")), int(line))
    return found


def below(root, path):
    """A source's path in the repository. A compiler's cache may have the checkout's folder from elsewhere."""
    parts = pathlib.Path(os.path.normpath(path)).parts
    for i, part in enumerate(parts):
        if part in LAYERS and root.joinpath(*parts[i:]).is_file():
            return "/".join(parts[i:])
    return path


def calls(root, library, lines):
    offsets = sorted({int(line.split()[1], 16) for line in lines if line.startswith("enter ")})
    functions = functions_at(root, library, offsets)
    running, made = [], []
    aside = 0  # how many functions down in something that is done now and then
    for line in lines:
        kind, _, what = line.partition(" ")
        if kind == "leave":
            running.pop()
            aside -= aside > 0
            continue
        place = functions[int(what, 16)] if kind == "enter" else ("driver", what, 0)
        aside += aside > 0 and kind == "enter" or place[1] in NOW_AND_THEN
        if not aside:
            made.append(Call(*place, tuple(running)))
        if kind == "enter":
            running.append(place[:2])
    if running:
        sys.exit(f"entered and not left: {running}")
    return made


def is_stop(call, stops):
    """Of the walk that call is, or none. A class is named as the page does, without what it lies in."""
    for file, function in stops:
        if call.file == file and (call.function == function or call.function.endswith("::" + function)):
            return file, function
    return None


def helpers_of_one_line(root, made):
    """Those of the calls whose function is written in one line, as the page's introduction leaves them out."""
    found = set()
    for call in made:
        path = root / call.file
        if call.file == "driver" or os.path.isabs(call.file):
            continue
        text = path.read_text().splitlines()[call.line - 1]
        if re.search(r"\{.*\}\s*(//.*)?$", text):
            found.add((call.file, call.function, call.line))
    return found


def differences(root, walk, made):
    problems, stops = [], walk.stops
    seen = [(is_stop(call, set(stops)), call) for call in made]
    entered = [stop for stop, _ in seen if stop]
    for i, (written, real) in enumerate(zip(stops + [None] * len(entered), entered + [None] * len(stops))):
        if written != real:
            named = ["nothing more" if stop is None else ": ".join(stop) for stop in (written, real)]
            problems.append(f"stop {i + 1} is written as {named[0]}, and is {named[1]}")
            break
    for stop, call in seen:
        if stop and call.running.count((call.file, call.function)):
            problems.append(f"{': '.join(stop)} is entered while it runs")
    single = [stop for stop in entered if stop in ONCE]
    if single != [stop for stop in ONCE if stop in stops]:
        problems.append(f"these are entered more than once, or in another order than {ONCE}: {single}")
    files = {file for file, _ in stops}
    passed = []
    short = helpers_of_one_line(root, made)
    for call in made:
        ours = not os.path.isabs(call.file) and not call.file.startswith(BASICS)
        if call.file == "driver":
            if ("driver", call.function) not in stops:
                problems.append(f"the driver's {call.function} is called, and is no stop")
        elif ours and call.file not in files and (call.file, call.function, call.line) not in short:
            passed.append(call.file)
            if call.file not in walk.beside:
                problems.append(f"{call.file} is passed through, in {call.function}, and is no file of the walk")
    unused = [file for file in walk.beside if file not in passed]
    problems += [f"{file} is written beside the walk, and not passed through" for file in unused]
    return problems


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    written = walks(root)
    if sys.argv[2] == "--known":
        if written.keys() != SCENES.keys():
            sys.exit(f"{PAGE} has the walks {sorted(written)}; these are compared: {sorted(SCENES)}")
        return
    library, guest, name = sys.argv[2:]
    made = calls(root, library, record(library, guest, SCENES[name]))
    problems = differences(root, written[name], made)
    if os.environ.get("WALK_SHOWN") or problems:
        stops = set(written[name].stops)
        for call in made:
            print(f"{'*' if is_stop(call, stops) else ' '} {'  ' * len(call.running)}{call.file}: {call.function}")
    print("\n".join(dict.fromkeys(problems)) or f"{PAGE}: the walk {name} is what {len(made)} calls show")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
