#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the bed itself: a program that hangs is ended and its stacks are shown, and each family has what can't be skipped."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import catalogue
import cells
import fetch
import matrix
import running

HANGS = """
import threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print('ready', flush=True)
time.sleep(600)
"""


def check_stacks(gdb):
    """Of every thread of the program and of what it started, with gdb and without."""
    path = os.environ["PATH"]
    words = ["/bin/sh", "-c", f'"{sys.executable}" -c "{HANGS}"; true']
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as program:
        assert program.stdout.readline() == "ready\n"
        pids = running.session(program.pid)
        assert len(pids) == 2, pids
        if not gdb:
            os.environ["PATH"] = "/nonexistent"
        stacks = [running.stacks_of(pid) for pid in pids]
        os.environ["PATH"] = path
        running.end(program.pid)
    if gdb:
        assert all("by gdb" in text and "\n#1" in text for text in stacks) and "Thread 2" in stacks[1], stacks
    else:
        assert all("from /proc" in text for text in stacks) and stacks[1].count("\nthread ") == 2, stacks


def check_hang():
    outcome = running.run(["/bin/sh", "-c", "echo begun; sleep 600; true"], {}, 1)
    assert outcome.status == -signal.SIGKILL and "process " in outcome.stacks, outcome
    outcome = running.run(["/bin/sh", "-c", "echo done; exit 3"], {}, 60)
    assert (outcome.status, outcome.out, outcome.stacks) == (3, "done\n", ""), outcome


def check_sources():
    """The machine's own mirror and its options are kept, in both forms of apt's files; only suite and component change."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "sources.list.d").mkdir()
        (root / "sources.list").write_text("# a comment\ndeb [arch=amd64] http://mirror.test/debian bookworm main contrib\n"
                                           "deb http://mirror.test/debian bookworm-updates main\ndeb http://other.test/x stable main\n")
        (root / "sources.list.d/a.sources").write_text("Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\n"
                                                       "Components: main\nSigned-By: /key\n\nTypes: deb\nURIs: http://x.test\n"
                                                       "Suites: bookworm-security\nComponents: main\n")
        lines, stanzas = fetch.sources_of("bookworm", "sid", root)
    assert lines == "deb [arch=amd64] http://mirror.test/debian sid non-free\n", lines
    assert stanzas == ("Types: deb\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: non-free\nSigned-By: /key\n\n"), stanzas


def check_required():
    """On Debian 12 every family has an item that is the release's own, so that a cell of each runs in continuous integration."""
    own = {item.family for item in catalogue.ITEMS if item.release == "bookworm" and not item.large}
    assert own == {"driver", "runtime", "library"}, own
    kinds = {program.name.split()[0] for program in cells.programs() if catalogue.BY_NAME[program.item].release == "bookworm"}
    assert kinds >= {"driver.c", "nvml.c", "nvidia-smi", "cudart.c", "cublas.c", "cupti.c", "nvrtc.c", "NVML"}, kinds
    one = catalogue.BY_NAME["driver-535"]
    os.environ["CI"] = "true"
    assert catalogue.may_be_missing(one) == (catalogue.release() != "bookworm")
    assert catalogue.may_be_missing(catalogue.BY_NAME["driver-555"])


def check_comparison():
    """A cell differs by its status, by a line of either output, and by a documented difference that no longer shows."""
    program = next(program for program in cells.programs() if program.name == "driver.c linked")
    preloaded, gpus = (next(one for one in cells.SETTINGS if one.name == name) for name in ("preloaded", "gpus"))
    native = running.Outcome(0, "cuInit 100\n", "a line\n", [])
    def differs(setting, **changed):
        return bool(cells.differences(program, setting, native, running.dataclasses.replace(native, **changed)))
    assert not differs(preloaded) and not differs(preloaded, err="cuslice: said\na line\n")
    assert differs(preloaded, status=1) and differs(preloaded, out="cuInit 0\n") and differs(preloaded, err="")
    assert differs(gpus) and not differs(gpus, out="cuInit 1\n")


def check_absence():
    """Without the files every cell is skipped, and in continuous integration what the own release has may not be."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUSLICE_GENUINE_CACHE"] = folder
        results = matrix.run_items(matrix.Matrix(folder, 1, folder), ["driver-535"])
        assert results and {verdict for verdict, _ in results.values()} == {"skipped"}, results
        os.environ.pop("CI", None)
        assert matrix.verdict_of(results, ["driver-535"]) == matrix.SKIPPED
        os.environ["CI"] = "true"
        assert matrix.verdict_of(results, ["driver-535"]) == (1 if catalogue.release() == "bookworm" else matrix.SKIPPED)


if shutil.which("gdb"):
    check_stacks(True)
check_stacks(False)
check_hang()
check_sources()
check_required()
check_comparison()
check_absence()
print("all as it should be")
