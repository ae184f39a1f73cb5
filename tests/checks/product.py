#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that `product` of scripts/build.sh names every target that an installation has (cuslice_place).

  product.py SOURCES
"""
import pathlib
import re
import sys

# Built only where the machine has what it is for.
ELSEWHERE = {"cuslice_slurm"}

source = pathlib.Path(sys.argv[1])
product = re.search(r"product\) targets\+=\((.*?)\)", (source / "scripts/build.sh").read_text(), re.S)
named = set(product[1].split())
placed = set()
for folder in ("cli", "config", "docs", "elf", "fake", "integrations", "shim", "stub"):
    for path in (source / folder).rglob("CMakeLists.txt"):
        placed |= set(re.findall(r"^\s*cuslice_place\((\w+) ", path.read_text(), re.M))
missing = sorted(placed - named - ELSEWHERE)
if not placed or missing:
    sys.exit(f"product: scripts/build.sh leaves out {missing or 'everything'}")
