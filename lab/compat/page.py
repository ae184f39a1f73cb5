#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results/compatibility/packages.md from runs: what packages that others wrote do on the fake GPU, and in
slices of it.

  page.py CUSLICE                 installs and runs every package, one after the other, and then writes the page
  page.py CUSLICE torch numba     only these; the others keep their rows
  page.py CUSLICE none            writes the page again from the runs that lab/compat/page_runs.json has
  page.py --known [NAME…]         only looks whether there are packages of these names; exit code 64 if not

CUSLICE is the launcher of a build. scripts/compat.sh --page is how it is called. Needs the network, some 7 GB of disk
while torch or tensorflow is there, and for jax bubblewrap. What a run did is put into page_runs.json as it was seen; page_text.py
makes the words of it, so that no cell is written by hand.
"""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

import page_install
import page_packages
import page_runs
import page_text

ROOT = page_runs.HERE.parents[1]
RUNS = page_runs.HERE / "page_runs.json"
PAGE = ROOT / "docs/results/compatibility/packages.md"
WORK = ROOT / "build/compat/page"


def read():
    """The runs that are there: name → what happened."""
    return json.loads(RUNS.read_text()) if RUNS.exists() else {}


def write(runs):
    """The runs and the page."""
    RUNS.write_text(json.dumps(dict(sorted(runs.items())), indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page_text.page(runs))


def machine():
    """What the runs were made on."""
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    system = fields.get("PRETTY_NAME", "Linux").strip('"').split(" (")[0].replace("GNU/Linux ", "")
    return f"{os.cpu_count()} cores, {system}, {platform.machine()}, Python {platform.python_version()}"


def version(cuslice):
    """cuslice's version, and the commit of the checkout."""
    shown = subprocess.run([cuslice, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], check=False, capture_output=True, text=True
    ).stdout.strip()
    return f"{shown} ({commit})" if commit else shown


def try_package(cuslice, package, kept):
    """What happened, for page_runs.json. `kept`: environments that a later package shares."""
    row = {"date": datetime.date.today().isoformat(), "machine": machine(), "cuslice": version(cuslice)}
    owner = page_packages.named(package.environment) if package.environment else package
    try:
        if owner.name not in kept:
            fake = pathlib.Path(cuslice).resolve().parents[1] / "lib/cuslice/fake"
            kept[owner.name] = page_install.Environment(WORK / owner.name, owner, fake)
        environment = kept[owner.name]
        row["version"] = environment.versions()[package.distribution] if package.distribution else environment.version
        row["modes"] = page_runs.Runner(cuslice, package, environment).all_modes()
    except (page_install.Unavailable, subprocess.TimeoutExpired) as error:
        row["missing"] = page_runs.short(str(error))
    return row


def main():
    """See above."""
    cuslice, *names = sys.argv[1:]
    names = [] if names == ["none"] else names or [package.name for package in page_packages.PACKAGES]
    unknown = [name for name in names if not page_packages.named(name)]
    if unknown:
        known = " ".join(package.name for package in page_packages.PACKAGES)
        print(f"compat: there is no {unknown[0]} on that page; it is one of: {known}", file=sys.stderr)
        sys.exit(64)
    if cuslice == "--known":
        return
    kept = {}
    # Packages that share an environment, one after the other.
    chosen = sorted((page_packages.named(name) for name in names), key=lambda package: package.environment or package.name)
    for package, after in zip(chosen, [*chosen[1:], None]):
        print(f"compat: {package.name}", flush=True)
        try:
            row = try_package(cuslice, package, kept)
        finally:
            owner = package.environment or package.name
            if (after is None or (after.environment or after.name) != owner) and owner in kept:
                kept.pop(owner).remove()
        for mode in page_runs.MODES:
            print(f"compat: {package.name}, {mode}: {page_text.cell(package, row, mode)}", flush=True)
        write(read() | {package.name: row})
    write(read())


if __name__ == "__main__":
    main()
