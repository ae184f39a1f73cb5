# SPDX-License-Identifier: Apache-2.0
"""Runs the program of a package in each mode of docs/results/compatibility/packages.md.

What happened is noted and not judged.
"""

import json
import os
import re
import signal
import subprocess
import time

from slices import DEVICE_FILES, HERE, MIB, Slices

# A T4 with little memory: all of it can be filled, on any machine that has so much to spare.
MACHINE = HERE / "t4_4g.toml"

# How a mode is called → its options, and the MiB that each GPU has there.
MODES = {
    "fake": ((), (4096,)),
    "limit": (("--limit", "2GiB"), (2048,)),
    "growth": (("--limit", "2GiB", "--allocator", "growth"), (2048,)),
    "split": (("--split", "0=2GiB+1536MiB"), (2048, 1536)),
}
RUN_SECONDS = 300
MOST_LINES = 12


def command(package, mode):
    """The command of a mode, as the page shows it."""
    program = {"python": f"python lab/compat/fill/{package.program}"}["python"]
    return " ".join(("cuslice run --fake", f"lab/compat/{MACHINE.name}", *options_of(package, mode), "--", program))


def options_of(package, mode):
    return (*MODES[mode][0], *(("--redirect-runtime=all",) if package.redirected else ()))


class Runner:
    """The modes of one package: `environment` is what page_install made."""

    def __init__(self, cuslice, package, environment):
        self.cuslice, self.package, self.environment = cuslice, package, environment

    def all_modes(self):
        """Mode → what happened."""
        return {mode: self.mode(mode) for mode in MODES}

    def mode(self, mode):
        """One run; of a package that uses one GPU, one for each GPU, put together."""
        if not self.package.one_gpu or len(MODES[mode][1]) == 1:
            return self.once(mode)
        runs = [self.once(mode, COMPAT_GPU=str(gpu)) for gpu in range(len(MODES[mode][1]))]
        told = [dict(line, device=gpu) if "device" in line else line
                for gpu, run in enumerate(runs) for line in run["told"]]  # fmt: skip
        shown = [gpu for line in told for gpu in line.get("gpus", ())]
        told = [{"gpus": shown}, *(line for line in told if "gpus" not in line)]
        return {
            "status": next((run["status"] for run in runs if run["status"]), 0),
            "told": told,
            "held": max(run["held"] for run in runs),
            "alone": [run["held"] for run in runs],
            "said": [line for run in runs for line in run["said"]][-2 * MOST_LINES :],
            "seconds": sum(run["seconds"] for run in runs),
        }

    def once(self, mode, **variables):
        """Status, what the program told, the most that was held of the physical GPU (MiB), and the last lines of stderr."""
        package, options = self.package, options_of(self.package, mode)
        paths = [str(folder) for folder in self.environment.folders]
        if os.environ.get("LD_LIBRARY_PATH"):
            paths.append(os.environ["LD_LIBRARY_PATH"])
        environment = {"LD_LIBRARY_PATH": ":".join(paths)} if paths else {}
        slices = Slices(self.cuslice, self.environment.python, environment, DEVICE_FILES if package.device_files else ())
        words = [HERE / "fill" / package.program]
        if self.environment.program:
            words.append(self.environment.program)
        begun = time.monotonic()
        try:
            start = slices.start(MACHINE, options, words, PYTHONDONTWRITEBYTECODE="1", **variables)
            status, out, error = to_its_end(start)
        finally:
            slices.close()
        return {
            "status": status,
            "told": [json.loads(short(line)) for line in out.splitlines() if line.startswith('{"') and not line.startswith('{"gpu"')],
            "held": held(out),
            "said": [short(line) for line in error.splitlines() if line.strip()][-MOST_LINES:],
            "seconds": round(time.monotonic() - begun),
        }


def held(out):
    """The most that one process held, in MiB, of the list that the watcher writes behind the program's lines. Those of a
    run that hold memory come one after the other."""
    begin, held_by = out.rfind("\n[\n") + 1, {}
    try:
        for row in json.loads(out[begin:]):
            held_by[row["pid"]] = held_by.get(row["pid"], 0) + row["peak"]
    except ValueError:
        pass
    return round(max(held_by.values(), default=0) / MIB, 1)


def short(line):
    """A line as it may be kept: no colours, no paths of this machine, no times, not too long."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    line = re.sub(r"(/[\w.+-]+)+/(site-packages|root|lab/compat)/", "…/", line)
    return line if len(line) < 400 else line[:200] + " … " + line[-180:]


def to_its_end(start):
    """Status and output of a command; what takes too long is ended with all that it started: status -SIGKILL."""
    with subprocess.Popen(**start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as child:
        try:
            out, error = child.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, error = child.communicate()
            return "late", out, error
        return child.returncode, out, error
