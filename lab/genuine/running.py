# SPDX-License-Identifier: Apache-2.0
"""Runs a program with a time-out that prints the stack of every thread, and tells which files it loaded."""
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time


@dataclasses.dataclass
class Outcome:
    status: int
    out: str
    err: str
    loaded: list  # the files whose initialisers ran, as the loader told
    stacks: str = ""  # of a program that hung


def session(leader):
    """The processes of the session: the program and all that it started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return sorted(found)


def end(leader):
    """Ends the session, with whatever it started meanwhile."""
    while pids := session(leader):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def read(path):
    try:
        return path.read_text().strip()
    except OSError as why:
        return f"({why.strerror})"


def stacks_of(pid):
    """By gdb where it is and may, else what the kernel says of each thread."""
    name = read(pathlib.Path(f"/proc/{pid}/cmdline")).replace("\0", " ")[:120]
    if shutil.which("gdb"):
        try:
            done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt 16"], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            lines = [line for line in done.stdout.splitlines() if re.match(r"#\d|Thread ", line)]
            if any(line.startswith("#") for line in lines):
                return f"process {pid}, by gdb: {name}\n" + "\n".join(lines)
        except subprocess.TimeoutExpired:
            pass
    lines = [f"process {pid}, from /proc as there is no gdb: {name}"]
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        lines.append(f"thread {task.name} {read(task / 'comm')}: waits in {read(task / 'wchan')}; "
                     f"system call {read(task / 'syscall')}; kernel stack {read(task / 'stack')}")
    return "\n".join(lines)


def run(command, environment, seconds):
    """The program in a session of its own, with nothing of the caller's environment but what names no library."""
    with tempfile.TemporaryDirectory(prefix="genuine-") as folder:
        plain = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        debug = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{folder}/loader"}
        words = {**plain, "LC_ALL": "C", "CUSLICE_DIR": f"{folder}/ledger", "CUSLICE_FAKE_DIR": f"{folder}/books", **debug, **environment}
        for name in "ledger", "books":
            os.mkdir(f"{folder}/{name}")
        with open(f"{folder}/out", "w+") as out, open(f"{folder}/err", "w+") as err:
            # Files, not pipes: a process that is left over would keep a pipe open, and us waiting.
            child = subprocess.Popen([str(word) for word in command], env=words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            stacks = ""
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                stacks = "\n".join(stacks_of(pid) for pid in session(child.pid))
            end(child.pid)
            child.wait()
            texts = [pathlib.Path(f"{folder}/{name}").read_text(errors="replace") for name in ("out", "err")]
        loaded = set()
        for log in pathlib.Path(folder).glob("loader.*"):
            loaded |= set(re.findall(r"calling init: (\S+)", log.read_text(errors="replace")))
        return Outcome(child.returncode, *texts, sorted(loaded), stacks)
