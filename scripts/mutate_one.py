#!/usr/bin/env python3
"""Runs a test that may do anything:  mutate_one.py SECONDS BYTES COMMAND…

Ends with the test's status, 128 and the signal that ended it, or 124 if it took longer. Nothing that it started is
left behind, whatever session that put itself into, and no process has more than BYTES of memory of its own.
"""
import ctypes
import os
import resource
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def main():
    seconds, size = float(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # What is only reserved, as addresses of a fake GPU are, doesn't count.
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    test = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL)
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
