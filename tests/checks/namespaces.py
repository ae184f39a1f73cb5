#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a namespace that isn't its folder's, and on two headers that give one namespace two types of the same name.

What is loaded into a program shares one namespace, cuslice: a type there has one name wherever it is used, as in the sources that say
`VirtualGpu` and `Budget` side by side. A folder with words of its own, which would be too short for everybody (`ledger::File`), has a
namespace that is called as the folder is.

  namespaces.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

# The namespace of a folder and of what lies below it, or of one file. Longest prefix wins.
NAMESPACES = {
    "config": "cuslice",
    "config/rules": "cuslice::rules",
    "policy": "cuslice",
    "policy/ledger": "cuslice::ledger",
    "policy/lease": "cuslice::lease",
    "policy/stats": "cuslice::stats",
    "policy/trace": "cuslice::trace",
    "virtual_gpu": "cuslice",
    "shim": "cuslice",
    "shim/runtime": "cuslice::runtime",
    # what the preloaded library tells the runtime shim
    "shim/runtime/split_view.h": "cuslice",
    "cli": "cuslice::cli",
    "cli/doctor": "cuslice::cli::doctor",
    "cli/top": "cuslice::cli::top",
    "fake": "cuslice::fake",
}
# Inside a folder's namespace: `detail` is for templates alone, and the others hold functions that are called as the driver's and NVML's.
INNER = {
    "": {"detail"},
    "virtual_gpu/driver": {"nvml"},
    "virtual_gpu/split": {"split_driver", "split_nvml"},
    "shim/driver": {"seen"},
}
TYPE = re.compile(r"^(?:template <.*> *)?(?:class|struct|union|enum class|enum struct|enum) (?:\[\[\w+\]\] |alignas\(\w+\) |CUSLICE_\w+ )?(\w+)[^;{}()]*\{")
OPENS = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
CLOSES = re.compile(r"^\}  // namespace(?: ([\w:]+))?$")


def own(path, table):
    fits = [name for name in table if not name or path == name or path.startswith(name + "/")]
    return max(fits, key=len) if fits else None


def namespaces_of(lines):
    """Each line with the namespaces that are open there, outermost first; those without a name are None."""
    open_ones = []
    for line in lines:
        if CLOSES.match(line) and open_ones:
            open_ones.pop()
        yield open_ones[:], line
        if OPENS.match(line):
            # `namespace detail {` in `namespace cuslice {` is a namespace of its own
            open_ones.append(OPENS.match(line)[1])
        elif line == "namespace {":
            open_ones.append(None)


def look(root):
    faults, types, seen = [], collections.defaultdict(list), 0
    for top in sorted({name.split("/")[0] for name in NAMESPACES}):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            name = path.relative_to(root).as_posix()
            expected = NAMESPACES[own(name, NAMESPACES)]
            inner = INNER[""] | INNER[own(name, INNER)]
            for open_ones, line in namespaces_of(path.read_text().splitlines()):
                if OPENS.match(line):
                    seen += 1
                    whole = "::".join([part for part in open_ones if part] + [OPENS.match(line)[1]])
                    rest = whole.removeprefix(expected).removeprefix("::")
                    if not (whole + "::").startswith(expected + "::") or (rest and rest not in inner):
                        faults.append(f"{name}: namespace {whole}, but {own(name, NAMESPACES)} is {expected}")
                elif path.suffix == ".h" and TYPE.match(line) and None not in open_ones:
                    types["::".join(open_ones + [TYPE.match(line)[1]])].append(name)
    for name, headers in sorted(types.items()):
        if len(headers) > 1 and not name.startswith("::") and "::" in name:
            faults.append(f"{name} is defined in {' and '.join(headers)}")
    return faults, seen, len(types)


def main():
    faults, seen, types = look(pathlib.Path(sys.argv[1]))
    for fault in faults:
        print(fault)
    if seen < 300 or types < 300:
        sys.exit(f"only {seen} namespaces and {types} types found: the sources are not where they are looked for")
    if faults:
        sys.exit(1)
    print(f"{seen} namespaces are their folders', {types} types have a name each")


if __name__ == "__main__":
    main()
