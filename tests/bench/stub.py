#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what /etc/ld.so.preload costs a program without CUDA: /bin/true with no such file, with the stub in it, and with
libcuslice.so in it. In a mount namespace with an /etc of its own; needs root, or user namespaces.

  stub.py BUILD_FOLDER

Prints for each the processor time of a start, in user space and in the kernel, in µs: the median and the least over 60 rounds of 50
starts. And the instructions in user space, the loader's and the program's, where there is valgrind to count them. Then what it costs
to open a library that needs no driver, one of Python's own extensions: the median and the least of 20 rounds of 500 openings.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROUNDS, STARTS = 60, 50
PROGRAM = "/bin/true"


def start_all():
    total = 0
    for _ in range(STARTS):
        used = os.wait4(os.posix_spawn(PROGRAM, [PROGRAM], {}), 0)[2]
        total += used.ru_utime + used.ru_stime
    return total / STARTS * 1e6


def instructions():
    if not shutil.which("valgrind"):
        return "not counted"
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM]
    said = subprocess.run(words, text=True, stderr=subprocess.PIPE).stderr
    found = re.search(r"Collected : (\d+)", said)
    return f"{int(found[1]):,}" if found else "not counted"


OPENINGS = """
import _ctypes, importlib.util, os, time
path = importlib.util.find_spec("_asyncio").origin
begun = time.process_time()
for _ in range(500):
    _ctypes.dlclose(_ctypes.dlopen(path, os.RTLD_NOW))
print((time.process_time() - begun) / 500 * 1e6)
"""


def open_all():
    return float(subprocess.check_output([sys.executable, "-c", OPENINGS]))


def measure(build):
    libraries = build / "lib/cuslice"
    lists = {"no file": None, "the stub": libraries / "libcuslice-preload.so", "libcuslice.so": libraries / "libcuslice.so"}
    file = pathlib.Path("/etc/ld.so.preload")

    def choose(library):
        file.unlink(missing_ok=True)
        if library:
            file.write_text(f"{library}\n")

    def by_turns(rounds, measured):
        times = {name: [] for name in lists}
        for _ in range(rounds):
            for name, library in lists.items():
                choose(library)
                times[name].append(measured())
        for name in lists:
            middle, least = statistics.median(times[name]), min(times[name])
            more = middle - statistics.median(times["no file"]), least - min(times["no file"])
            yield name, f"{name:14} {middle:7.1f} ({more[0]:+.1f}) least {least:7.1f} ({more[1]:+.1f})"

    print("a start")
    for name, line in by_turns(ROUNDS, start_all):
        choose(lists[name])
        print(line, instructions(), "instructions")
    print("an opening")
    for _, line in by_turns(20, open_all):
        print(line)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if "--inside" in sys.argv:
        measure(build)
        return
    with tempfile.TemporaryDirectory() as etc:
        shutil.copy("/etc/ld.so.cache", etc)
        users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        inside = 'mount --bind "$1" /etc && shift && exec "$@"'
        subprocess.run(["unshare", *users, "--mount", "sh", "-c", inside, "sh", etc, sys.executable, __file__, build, "--inside"], check=True)


main()
