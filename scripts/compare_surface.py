#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what programs, scripts and people see of two builds: nothing may be lost unnoticed.

    compare_surface.py BEFORE AFTER    two build folders of the preset release

Looked at are the exported symbols, SONAMEs and needed libraries of what is installed; options,
variables, exit codes and names in each --help; the keys that a file of settings may have; the keys
of each --json; the first bytes of the host ledger and the head of a recording; and of fixed runs
on fake GPUs the exit code, the driver's answers, and the numbers with their units in each line that
is said. Prints what only one of the two has. Ends with 1 if something of BEFORE is gone.
"""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

COMMANDS = ["", "run", "devices", "config", "ps", "set", "stats"]
# A program that takes what it is told to on its standard input, over the driver's own functions.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
held = []
def alloc(bytes):
    pointer = ctypes.c_uint64()
    code = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(bytes))
    held.append(pointer)
    return code
def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    return cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), free.value, total.value
def use(gpu):
    context = ctypes.c_void_p()
    return cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu), cuda.cuCtxSetCurrent(context)
def free():
    return cuda.cuMemFree_v2(held.pop())
for line in sys.stdin:
    print(eval(line, globals()), flush=True)
"""
START = ["cuda.cuInit(0)", "use(0)", "info()"]
SECTIONS = ["", "memory", "gpu.0", "ceiling", "ceiling.gpu.0", "group", "fake"]
# Runs, by name: options of `cuslice run`, and the program's commands.
RUNS = {
    "direct": (
        ["--fake=1xlaptop-2g", "--limit=1GiB"],
        START + ["alloc(1 << 28)", "alloc(1 << 30)", "info()", "free()"],
    ),
    "headroom": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--headroom=64MiB"],
        START + ["alloc(1 << 30)"],
    ),
    "fraction": (
        ["--fake=2xt4", "--fraction=0=25%"],
        START + ["use(1)", "info()", "use(0)", "alloc(1 << 33)"],
    ),
    "growth": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--allocator=growth"],
        START + ["alloc(1000)", "alloc(1 << 30)", "free()"],
    ),
    "prealloc": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--allocator=prealloc"],
        START + ["alloc(1000)", "alloc(1 << 30)"],
    ),
    "split": (
        ["--fake=1xlaptop-2g", "--split=0=500MiB+rest"],
        START + ["alloc(1 << 29)", "use(1)", "info()", "alloc(1 << 30)"],
    ),
    "oversubscribed": (
        ["--fake=1xlaptop-2g", "--limit=1200MiB", "--split=0=1GiB+1GiB", "--oversubscribe"],
        START + ["alloc(640 << 20)", "use(1)", "alloc(640 << 20)", "info()"],
    ),
    "group": (
        ["--fake=1xlaptop-2g", "--group=lab", "--group-limit=1GiB"],
        START + ["alloc(1 << 30)"],
    ),
    "per process": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--per-process"],
        START + ["alloc(1 << 30)"],
    ),
    "said at info": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--log=info"],
        START + ["alloc(1 << 30)"],
    ),
    "said at debug": (
        ["--fake=1xlaptop-2g", "--limit=1GiB", "--log=debug"],
        START + ["alloc(1 << 30)", "free()"],
    ),
}
# Command lines that end by themselves.
LINES = {
    "no unit": ["run", "--limit", "3", "--", "true"],
    "fraction over 1": ["run", "--fraction", "2", "--", "true"],
    "rivals": ["run", "--fraction", "0.5", "--limit", "1GiB", "--", "true"],
    "unknown option": ["run", "--limt", "1GiB", "--", "true"],
    "no such GPU": ["run", "--fake", "1xt4", "--gpus", "9", "--", "true"],
    "limit of no such GPU": ["run", "--fake", "1xt4", "--limit", "9=1GiB", "--", "true"],
    "too many parts": ["run", "--fake", "1xt4", "--split", "0=9GiB+9GiB", "--", "true"],
    "no such program": ["run", "--", "/nonexistent"],
    "a folder": ["run", "--", "/tmp"],
    "no program": ["run"],
    "exit code of the program": ["run", "--", "sh", "-c", "exit 42"],
    "no such command": ["frobnicate"],
    "no GPU": ["devices"],
    "no such process": ["stats", "999999999"],
    "no such group": ["set", "--group", "no", "--limit", "1GiB"],
    "version": ["--version"],
    "a slice taken": ["run", "--fake", "1xlaptop-2g", "--limit", "9GiB", "--", "true"],
    "a malformed file": ["config", "--config", "/dev/null/x"],
    "wait": ["run", "--wait", "soon", "--", "true"],
}
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:\s?(?:[KMGT]i?B|bytes|blocks?|%|ms|s))?(?!\w)")


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.cuslice = str(self.folder / "bin/cuslice")
        self.scratch = tempfile.TemporaryDirectory(prefix="cuslice-surface-")
        home = pathlib.Path(self.scratch.name)
        self.home = home
        for name in ("home", "fake", "ledger"):
            (home / name).mkdir()
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": f"{home}/home",
            "CUSLICE_FAKE_DIR": f"{home}/fake",
            "CUSLICE_DIR": f"{home}/ledger",
        }

    def run(self, words, **more):
        return subprocess.run(
            [self.cuslice] + words,
            env=self.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            stdin=subprocess.DEVNULL,
            cwd=self.home / "home",
            **more,
        )

    def program(self, options):
        return subprocess.Popen(
            [self.cuslice, "run"] + options + ["--", "/usr/bin/env", "python3", "-uc", PROGRAM],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=self.home / "home",
        )

    def numbers(self, text, pid=None):
        """Numbers and units of each line, without what differs between runs and folders."""
        text = text.replace(str(self.folder), "").replace(self.scratch.name, "")
        text = re.sub(r"0x[0-9a-f]+|GPU-[0-9a-f-]+|\d\d:\d\d:\d\d\S*|\d{4}-\d\d-\d\d", "", text)
        if pid:
            text = re.sub(rf"\b{pid}\b", "", text)
        return [" ".join(NUMBER.findall(line)) for line in text.splitlines() if NUMBER.search(line)]


def symbols(build):
    found = set()
    for file in sorted((build.folder / "lib/cuslice").rglob("*.so*")):
        name = str(file.relative_to(build.folder))
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", "--with-symbol-versions", file],
            capture_output=True,
            text=True,
        )
        found |= {f"{name}: {line.split()[2]}" for line in listed.stdout.splitlines()}
        dynamic = subprocess.run(
            ["readelf", "-d", "-W", file], capture_output=True, text=True
        ).stdout
        found |= {
            f"{name}: {kind} {value}"
            for kind, value in re.findall(r"\((NEEDED|SONAME|RPATH|RUNPATH)\).*\[(.*)\]", dynamic)
        }
    return found


def helps(build):
    options, words = set(), set()
    for command in (*COMMANDS, "help options"):
        # Builds that explain all options in one place have their names alone in each command's help.
        line = command.split() if " " in command else [command, "--help"] if command else ["--help"]
        text = build.run(line).stdout
        for option, rest in re.findall(r"^  (--[a-z-]+)(.*)$", text, re.M):
            options.add(f"{command or 'cuslice'} {option}{re.sub(r' {2,}', '  ', rest)}")
        words |= {
            f"{command or 'cuslice'}: {word}"
            for word in re.findall(r"--[a-z-]+|CUSLICE_[A-Z_]+|CUDA_[A-Z_\[\]i]+", text)
        }
        codes = re.search(r"^Exit codes:(.*?)(?:\n\n|\Z)", text, re.M | re.S)
        words |= {
            f"{command}: exit code {code}"
            for code in re.findall(r"\b\d{1,3}\b", codes[1] if codes else "")
        }
    return options, words


def variables(build):
    found = set()
    files = [build.folder / "bin/cuslice"] + sorted((build.folder / "lib/cuslice").rglob("*.so*"))
    for file in files:
        found |= {
            name.decode() for name in re.findall(rb"CUSLICE_[A-Z_]+[A-Z](?=[\0=%])", file.read_bytes())
        }
    return found


def examples(build):
    """Each key of a file of settings, with a value that is right for it."""
    rows = json.loads(build.run(["help", "options", "--json"]).stdout)["settings"]
    return {row["key"]: row["example"] for row in rows}


def file_keys(build, keys):
    found = set()
    file = build.home / "settings.toml"
    for section in SECTIONS:
        for key, value in keys.items():
            group = 'group = "lab"\n' if key == "group-limit" and not section else ""
            file.write_text((f"[{section}]\n" if section else group) + f"{key} = {value}\n")
            if build.run(["config", "--config", str(file)]).returncode == 0:
                found.add(f"{section + '.' if section else ''}{key}")
    return found


def key_paths(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from key_paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from key_paths(inner, path + "[]")
    else:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        yield f"{path} {'number' if number else type(value).__name__}"


def json_keys(build):
    """Of what is printed while one program holds memory, and another waits for it."""
    found = set()
    record = build.home / "record.csv"
    holder = build.program(
        ["--fake=1xlaptop-2g", "--limit=0=1500MiB", "--allocator=growth", f"--record={record}"]
    )
    for line in START + ["alloc(1 << 26)", "alloc(1 << 30)"]:
        holder.stdin.write(line + "\n")
        holder.stdin.flush()
        holder.stdout.readline()
    waiter = build.program(["--fake=1xlaptop-2g", "--limit=0=1GiB", "--wait=60s"])
    for _ in range(200):
        ps = build.run(["ps", "--json"]).stdout
        if '"waiting": []' not in ps:
            break
        time.sleep(0.05)
    printed = {
        "ps": ps,
        "stats": build.run(["stats", str(holder.pid), "--json"]).stdout,
        "devices": build.run(
            ["devices", "--json", "--fake=2xt4", "--limit=0=1GiB", "--split=1=2"]
        ).stdout,
        "config": build.run(["config", "--json", "--limit=0=1GiB", "--wait"]).stdout,
    }
    for command, text in printed.items():
        try:
            found |= {f"{command}: {path}" for path in key_paths(json.loads(text))}
        except ValueError:
            found.add(f"{command}: no JSON: {text[:80]!r}")
    formats = set()
    for file in (build.home / "ledger").rglob("*"):
        if file.is_file():
            kind = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", file.name)
            kind = re.sub(r"-[0-9a-f]{16}\b", "-ID", kind)  # of a presence: random
            kind = re.sub(r"\d+", "N", kind)
            formats.add(
                f"{kind}: {file.stat().st_size} bytes, begins with {file.read_bytes()[:16].hex()}"
            )
    waiter.send_signal(signal.SIGTERM)
    waiter.communicate()
    holder.communicate("")
    rows = record.read_text().splitlines()
    formats.add(f"recording: {rows[0]}")
    formats |= {f"recording: a row of {line.count(',') + 1} columns" for line in rows[1:]}
    return found, formats


def runs(build):
    found = collections.Counter()
    for name, (options, lines) in RUNS.items():
        program = build.program(options)
        out, err = program.communicate("\n".join(lines) + "\n")
        found[f"{name}: exit code {program.returncode}"] += 1
        for index, answer in enumerate(out.splitlines()):
            found[f"{name}: {lines[index] if index < len(lines) else '?'} is {answer}"] += 1
        for numbers in build.numbers(err, program.pid):
            found[f"{name}: says {numbers}"] += 1
    for name, words in LINES.items():
        ended = build.run(words)
        found[f"{name}: exit code {ended.returncode}"] += 1
        for numbers in build.numbers(ended.stdout + ended.stderr):
            found[f"{name}: says {numbers}"] += 1
    return {f"{text} (×{count})" if count > 1 else text for text, count in found.items()}


def surface(folder, after):
    build = Build(folder)
    options, words = helps(build)
    keys, formats = json_keys(build)
    return {
        "Exported symbols and needed libraries": symbols(build),
        "Options": options,
        "What --help names": words,
        "Variables in the binaries": variables(build),
        "Keys of a file of settings": file_keys(build, examples(Build(after))),
        "Keys of JSON": keys,
        "File formats": formats,
        "Exit codes, answers and numbers of fixed runs": runs(build),
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    before, after = surface(sys.argv[1], sys.argv[2]), surface(sys.argv[2], sys.argv[2])
    lost = 0
    for part in before:
        gone, new = sorted(before[part] - after[part]), sorted(after[part] - before[part])
        lost += len(gone)
        print(
            f"## {part}: {len(before[part] & after[part])} the same, "
            f"{len(gone)} gone, {len(new)} new\n"
        )
        for sign, texts in (("-", gone), ("+", new)):
            for text in texts:
                print(f"{sign} {text}")
        print()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
