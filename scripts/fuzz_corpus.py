#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the fuzzers' inputs in the repository as text: a file for each target, with an input on each line, in base64.

  fuzz_corpus.py unpack KEPT CORPUS    writes each line of KEPT/TARGET.txt to a file of its own in CORPUS/TARGET
  fuzz_corpus.py pack CORPUS KEPT      the other way round, the shortest first
"""
import base64
import hashlib
import pathlib
import sys


def unpack(kept, corpus):
    for listed in sorted(kept.glob("*.txt")):
        folder = corpus / listed.stem
        folder.mkdir(parents=True, exist_ok=True)
        for line in listed.read_text().splitlines():
            content = base64.b64decode(line, validate=True)
            (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


def pack(corpus, kept):
    kept.mkdir(exist_ok=True)
    for folder in sorted(path for path in corpus.iterdir() if path.is_dir()):
        inputs = sorted((path.read_bytes() for path in folder.iterdir()), key=lambda content: (len(content), content))
        lines = [base64.b64encode(content).decode() for content in inputs if content]
        (kept / f"{folder.name}.txt").write_text("".join(f"{line}\n" for line in lines))
        print(f"fuzz: {folder.name}: {len(lines)} inputs are kept")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("unpack", "pack"):
        sys.exit(__doc__)
    {"unpack": unpack, "pack": pack}[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
