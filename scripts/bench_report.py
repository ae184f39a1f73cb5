#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one table of the figures that the programs in tests/bench/ print, a line of JSON each, on standard input.

  bench_report.py [--json FILE] [--command TEXT]
"""
import argparse
import datetime
import json
import os
import platform
import sys


def machine():
    """What the figures depend on, as far as it can be told."""
    info = {}
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            info.setdefault(key.strip(), value.strip())
    virtual = " virtual machine" if "hypervisor" in info.get("flags", "") else ""
    return f"{len(os.sched_getaffinity(0))} vCPU {platform.machine()}{virtual}, {info.get('model name', '?')}" if virtual \
        else f"{len(os.sched_getaffinity(0))} cores {platform.machine()}, {info.get('model name', '?')}"


def number(value):
    if value is None:
        return ""
    if value != 0 and abs(value) < 1:
        return f"{value:.2f}"
    return f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def row(figure):
    limits = {"at most": "≤", "at least": "≥"}
    target = f"{limits[figure['bound']]} {figure['target']:g}" if figure["bound"] else ""
    met = {True: "yes", False: "NO", None: ""}[figure["met"]]
    sides = [number(figure.get(f"{side}{what}")) for side in ("raw", "cuslice") for what in ("", "_p99", "_max")]
    return [figure["name"], number(figure["value"]), figure["unit"], target, met, *sides]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--json")
    arguments.add_argument("--command", default="scripts/bench.sh")
    arguments = arguments.parse_args()

    figures = [json.loads(line) for line in sys.stdin if line.strip()]
    print(f"Machine: {machine()}")
    print(f"Date:    {datetime.date.today()}")
    print(f"Command: {arguments.command}\n")
    rows = [["Figure", "value", "", "target", "met", "raw", "p99", "max", "cuslice", "p99", "max"]]
    rows += [row(figure) for figure in figures]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    for cells in rows:
        # Words to the left, numbers to the right.
        print("  ".join(cell.ljust(width) if i in (0, 2, 4) else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(cells, widths))).rstrip())
    wanted = [figure["met"] for figure in figures if figure["met"] is not None]
    print(f"\n{sum(wanted)} of {len(wanted)} targets met")
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write("[\n" + ",\n".join("  " + json.dumps(figure, ensure_ascii=False) for figure in figures) + "\n]\n")


main()
