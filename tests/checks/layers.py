#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that goes up the layers, into the fake GPU from outside it, or around the root; on components that include
each other in a circle; and on a source file that is too long to be one idea.

A component is a header and its .cpp. Arrows between folders and between components are both looked at, as a folder may be free
of a circle where its components are not.

  layers.py SOURCE_FOLDER
  layers.py SOURCE_FOLDER --arrows     the arrows between folders, and how many includes each stands for
"""
import collections
import pathlib
import re
import sys

# Folders that a folder may include, besides itself. Longest prefix wins.
POLICY = ["policy/base", "policy/budget", "policy/frameworks", "policy/ledger", "policy/allocator", "policy/trace", "policy/stats", "policy/lease"]
GPU = ["virtual_gpu/driver", "virtual_gpu/nvml", "virtual_gpu/split", "virtual_gpu/gpu", "virtual_gpu/cache", "virtual_gpu/turns", "virtual_gpu/selection"]
CLI = ["config", "config/uuid", "elf", *POLICY, *GPU]
ROOMS = ["cli/text", "cli/launch", "cli/gpus", "cli/settings", "cli/ledger", "cli/top", "cli/doctor"]
ALLOWED = {
    "elf": [],
    "include": [],
    "config": ["config/uuid"],
    "config/uuid": [],
    "policy/base": ["config"],
    "policy/ledger": ["config", "policy/base"],
    "policy/lease": ["config", "policy/base", "policy/ledger"],
    "policy/trace": ["config", "policy/base"],
    "policy/stats": ["config", "policy/base", "policy/ledger", "policy/allocator"],
    "policy/budget": ["config", "policy/base", "policy/ledger"],
    "policy/frameworks": ["config", "policy/budget"],
    "policy/allocator": ["config", "policy/base", "policy/budget"],
    "virtual_gpu/driver": ["elf"],
    "virtual_gpu/nvml": ["config", "policy/base", "virtual_gpu/driver"],
    "virtual_gpu/selection": ["config", "policy/base", "policy/frameworks", "virtual_gpu/driver", "virtual_gpu/nvml"],
    "virtual_gpu/split": ["config", *POLICY, "virtual_gpu/driver", "virtual_gpu/nvml", "virtual_gpu/selection"],
    "virtual_gpu/gpu": ["config", "elf", *POLICY, "virtual_gpu/driver", "virtual_gpu/nvml", "virtual_gpu/split"],
    "virtual_gpu/cache": ["config", *POLICY, "virtual_gpu/driver", "virtual_gpu/gpu", "virtual_gpu/split"],
    "virtual_gpu/turns": [*POLICY, "virtual_gpu/driver", "virtual_gpu/gpu", "virtual_gpu/cache"],
    "fake": ["elf", "virtual_gpu/driver", "config/uuid"],
    "shim/process": ["include", "config", *POLICY, *GPU],
    "shim": ["include", "config", *POLICY, *GPU, "shim/process"],
    "shim/redirect": ["config", "elf", "policy/base", "virtual_gpu/driver", "shim"],
    "stub": ["elf", "shim"],
    "cli/text": CLI,
    "cli/launch": [*CLI, "cli/text"],
    "cli/gpus": [*CLI, "cli/text", "cli/launch"],
    "cli/settings": [*CLI, "cli/text", "cli/launch", "cli/gpus"],
    "cli/ledger": [*CLI, "cli/text", "cli/launch", "cli/gpus", "cli/settings"],
    "cli/top": [*CLI, "cli/text", "cli/launch", "cli/gpus", "cli/settings", "cli/ledger"],
    "cli/doctor": [*CLI, "cli/text", "cli/launch", "cli/gpus", "cli/settings", "cli/ledger"],
    "cli/demo": [],
    "cli/commands": [*CLI, *ROOMS, "cli"],
    "cli": [*CLI, *ROOMS],
}
ROOTS = ("elf", "include", "config", "policy", "virtual_gpu", "shim", "stub", "fake", "cli", "tests", "lab")
SOURCES = (".cpp", ".h", ".c", ".S", ".inc", ".cu", ".py", ".sh")
MOST_LINES = 500


def layer(path):
    fits = [name for name in ALLOWED if path == name or path.startswith(name + "/")]
    return max(fits, key=len) if fits else None


def circles(arrows):
    """Tarjan's strongly connected components that have more than one member, each sorted."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = []
            while not members or members[-1] != node:
                members.append(stack.pop())
                on_stack.remove(members[-1])
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def includes(text):
    """Yields (line number, what is included) for each include in quotes."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, found[1]


def check(root, folders):
    """Yields a line for each thing that is wrong. Counts the arrows between folders in `folders`."""
    components = collections.defaultdict(set)
    for path in sorted(p for folder in ROOTS for p in (root / folder).rglob("*")):
        if path.suffix not in SOURCES:
            continue
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_LINES:
            yield f"{name}: {lines} lines; at most {MOST_LINES}, or it is two files in one"
        here = layer(path.parent.relative_to(root).as_posix())
        if here is None:
            continue
        own = name.rsplit(".", 1)[0]
        for number, target in includes(text):
            there = layer(target.rsplit("/", 1)[0]) if "/" in target else None
            if there is None:
                yield f"{name}:{number}: {target} is not written from the root, or in no layer"
            elif there != here and there not in ALLOWED[here]:
                yield f"{name}:{number}: {here} may not include {there}"
            elif not (root / target).exists():
                yield f"{name}:{number}: there is no {target}"
            if there and there != here:
                folders[here, there] += 1
            other = target.rsplit(".", 1)[0]
            if other != own:
                components[own].add(other)
    arrows = collections.defaultdict(set)
    for here, there in folders:
        arrows[here].add(there)
    for members in circles(arrows):
        yield "these folders include each other in a circle: " + ", ".join(members)
    for members in circles(components):
        yield "these include each other in a circle: " + ", ".join(members)


def main():
    root = pathlib.Path(sys.argv[1])
    folders = collections.Counter()
    wrong = list(check(root, folders))
    if "--arrows" in sys.argv[2:]:
        for (here, there), count in sorted(folders.items()):
            print(f"{here} -> {there}: {count}")
    print("\n".join(wrong) if wrong else "every include points down, and no components include each other in a circle")
    sys.exit(1 if wrong else 0)


main()
