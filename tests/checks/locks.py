#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a lock in the preloaded library that a fork doesn't know, and on a rank that says nothing.

Whatever a thread may hold while another one forks has to be a Mutex: that has a rank, and enlists itself for the fork. So no
other kind of lock may be in policy, virtual_gpu or shim. Each rank of LockRank is some lock's, and each lock's is one of them.

  locks.py SOURCE_FOLDER
"""
import pathlib
import re
import sys

FOLDERS = ("policy", "virtual_gpu", "shim")
RANKS = "policy/base/lock_rank.h"
OTHER_KINDS = re.compile(
    r"\bpthread_(?:mutex|spin|rwlock|cond|once)_\w+|\bstd::(?:\w*mutex|shared_lock|unique_lock|lock_guard|scoped_lock|"
    r"once_flag|call_once|condition_variable\w*|counting_semaphore|binary_semaphore|latch|barrier|atomic_flag)\b|\bsem_t\b|\bmtx_t\b")
LOCK = re.compile(r"\bMutex\s+(\w+)\s*(\{[^}]*\}|\[|;|=)")
RANK = re.compile(r"\{\s*LockRank::(\w+)\s*\}")


def code(path):
    """Without comments and strings, the lines where they were."""
    text = path.read_text()
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def ranks(path):
    body = re.search(r"enum class LockRank[^{]*\{(.*?)\n\};", path.read_text(), re.S).group(1)
    found = []
    for line in body.splitlines():
        match = re.match(r"\s*(\w+)(?: = \w+)?,?\s*(?://\s*(\S.*))?$", line)
        if match and match.group(1) != "kCount":
            found.append((match.group(1), match.group(2)))
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, used, locks = [], set(), 0
    known = [name for name, _ in ranks(root / RANKS)]
    for folder in FOLDERS:
        for path in sorted(root.joinpath(folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".inc"):
                continue
            name, text = path.relative_to(root), code(path)
            where = lambda match: f"{name}:{text[:match.start()].count(chr(10)) + 1}"
            for match in OTHER_KINDS.finditer(text):
                wrong.append(f"{where(match)}: {match.group()} is a lock that a fork doesn't know: use Mutex")
            for match in LOCK.finditer(text):
                locks += 1
                rank = RANK.fullmatch(match.group(2))
                if not rank or rank.group(1) not in known:
                    wrong.append(f"{where(match)}: the lock {match.group(1)} has no rank of {RANKS}")
                else:
                    used.add(rank.group(1))
    for name in known:
        if name not in used and name != "enlisting":
            wrong.append(f"{RANKS}: no lock has the rank {name}")
    if not locks:
        wrong.append("no lock was found at all")
    print("\n".join(wrong) if wrong else f"{locks} locks of {len(known)} ranks")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
