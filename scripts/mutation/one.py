#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test that may do anything:  one.py SECONDS BYTES SLOT COMMAND…

Ends with the test's status, 128 and the signal that ended it, or 124 if it took longer. Nothing that it started is
left behind, whatever session that put itself into, and no process has more than BYTES of memory of its own. What it
leaves in /tmp and /dev/shm is its own and goes with it, where we may mount (as root). The mutants that are asked are
those of SLOT (mutant.h).
"""
import ctypes
import os
import resource
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER, CLONE_NEWNS, MS_REC, MS_PRIVATE = 36, 0x20000, 0x4000, 1 << 18


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def take_own_folders(libc):
    if os.geteuid() or libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return
    for folder in ("/tmp", "/dev/shm"):
        if not any(path.startswith(folder + "/") for path in (os.getcwd(), os.path.abspath(__file__))):
            libc.mount(b"mutant", folder.encode(), b"tmpfs", 0, b"mode=1777,size=2g")


def main():
    seconds, size, slot = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    take_own_folders(libc)
    # Resident memory alone counts: addresses of a fake GPU are only reserved.
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (slot, slot))
    test = subprocess.Popen(sys.argv[4:], stdin=subprocess.DEVNULL)
    try:
        status = test.wait(seconds)
    except subprocess.TimeoutExpired:
        status = 124
    # Orphans become children of ours. One that is killed hands its own on to us.
    while left := children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
