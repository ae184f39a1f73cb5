#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes virtual_gpu/driver/functions.def from NVIDIA's headers, keeping the routes, splits and turns that a person chose.

  generate_functions.py --include DIR --stub libcuda.so [--extra FILE] [--check]

DIR holds cudaTypedefs.h; the stub library gives the exported names; FILE lists names that only real drivers export (GL,
EGL, VDPAU). A new function is written with the route, split and turn `unlisted`, which does not compile:
somebody has to decide.
--check changes nothing and fails when the headers bring a function that the list does not have.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / "virtual_gpu/driver/functions.def"
UNLISTED = "unlisted, unlisted, unlisted"
ROW = re.compile(r"^CUSLICE_FUNCTION\((\w+), (\w+), (\d+), (\w+), (\w+), (\w+), (\w+)\)", re.M)


def split(symbol):
    """cuMemcpy_v2_ptds → (cuMemcpy, 2, per_thread)"""
    m = re.match(r"(cu\w+?)(?:_v(\d))?(_ptsz|_ptds)?$", symbol)
    return m[1], int(m[2] or 1), "per_thread" if m[3] else "legacy"


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", required=True, type=pathlib.Path)
    args.add_argument("--stub", type=pathlib.Path)
    args.add_argument("--extra", type=pathlib.Path)
    args.add_argument("--check", action="store_true")
    args = args.parse_args()

    old = LIST.read_text() if LIST.exists() else ""
    rows = {m[0]: (m[1], int(m[2]), m[3], f"{m[4]}, {m[5]}, {m[6]}") for m in ROW.findall(old)}
    typedefs = re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", (args.include / "cudaTypedefs.h").read_text())
    versions = collections.defaultdict(list)
    for base, version, suffix in set(typedefs):
        versions[base, "per_thread" if suffix else "legacy"].append(int(version))
    if args.check:
        known = {(base, version, stream) for base, version, stream, _ in rows.values()}
        missing = [f"{b} version {v} {s}" for (b, s), vs in sorted(versions.items()) for v in vs if (b, v, s) not in known]
        for row in missing:
            print(f"not in {LIST.name}: {row}", file=sys.stderr)
        sys.exit(1 if missing else 0)

    names = re.findall(r" T (cu[A-Z]\w+)", subprocess.check_output(["nm", "-D", "--defined-only", args.stub], text=True))
    by_base = collections.defaultdict(list)
    for name in names:
        base, form, stream = split(name)
        by_base[base, stream].append((form, name))
    out = {}
    for (base, stream), forms in by_base.items():
        since = sorted(versions.get((base, stream), [])) or [0] * len(forms)
        if len(since) != len(forms):
            sys.exit(f"{base}: {len(forms)} symbols, {len(since)} versions in cudaTypedefs.h")
        for (_, name), version in zip(sorted(forms), since):
            out[name] = (base, version, stream)
    for name in args.extra.read_text().split() if args.extra else [n for n in rows if n not in out]:
        base, _, stream = split(name)
        out[name] = (base, 0, stream)
    head = old[: ROW.search(old).start()] if rows else ""
    body = "".join(
        f"CUSLICE_FUNCTION({name}, {base}, {version}, {stream}, {rows[name][3] if name in rows else UNLISTED})\n"
        for name, (base, version, stream) in sorted(out.items())
    )
    LIST.write_text(head + body + "#undef CUSLICE_FUNCTION\n#undef CUSLICE_PROTOTYPE\n")


main()
