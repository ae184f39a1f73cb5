"""Machines of fake GPUs, for tests: programs run on them, calls fail on demand, and what was held can be asserted."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type

from cuslice._launcher import ask, fake_tool
from cuslice._run import Command, popen, run

# What an outer launcher has handed on, of another machine.
_OF_ANOTHER_MACHINE = (
    "CUSLICE_SETTINGS",
    "CUSLICE_JOB",
    "CUSLICE_VISIBLE_DEVICES",
    "CUSLICE_DIR",
    "CUSLICE_FAKE_MACHINE",
)


def _new_folder() -> Tuple[str, Optional[int]]:
    """A folder as `--fake-machine new` makes it, and the descriptor that shows that somebody uses it: if this process
    is killed, the next launcher that makes a machine removes it. Without /dev/shm, a temporary one.
    """
    home = os.environ.get("CUSLICE_FAKE_DIR", "").rstrip("/") or f"/dev/shm/cuslice-fake-{os.getuid()}"
    if os.path.basename(home).startswith(("new.", "machine.")):
        home = os.path.dirname(home)
    try:
        if not os.path.isdir(home):
            os.mkdir(home, 0o700)
        machines = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return tempfile.mkdtemp(prefix="cuslice-fake-"), None
    try:
        if os.fstat(machines).st_uid != os.geteuid():
            return tempfile.mkdtemp(prefix="cuslice-fake-"), None
        # From the folder's making to its lock nobody must take it for abandoned.
        fcntl.flock(machines, fcntl.LOCK_EX)
        folder = tempfile.mkdtemp(prefix="new.", dir=home)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return folder, lock
    finally:
        os.close(machines)


@dataclass(frozen=True)
class Holder:
    """What one process holds, or held when it ended, on one GPU: the fake driver's own records. Sizes in bytes."""

    gpu: int  #: the machine's index
    uuid: str
    pid: int
    live: bool
    used: int  #: now, or when it ended
    peak: int  #: the most that `used` has been
    context: int  #: the part of `used` that contexts take
    modules: int  #: the part of `used` that modules take

    @property
    def allocated(self) -> int:
        """What the program itself has allocated: `used` without contexts and modules."""
        return self.used - self.context - self.modules


class FakeMachine:
    """Fake GPUs that nobody else sees, until close() or the end of the `with` block.

    `gpus` is as for `cuslice run --fake`: "4xh200", "2xa100-40g,1xt4", or the path of a TOML file. Programs that run()
    and popen() start are on this machine, and so are their children.
    """

    def __init__(self, gpus: str = "1xt4", *, folder: Optional[str] = None) -> None:
        """`folder` is an existing machine's, which close() then leaves alone."""
        self.gpus = gpus
        self._own = folder is None
        self._lock: Optional[int] = None
        if folder is None:
            folder, self._lock = _new_folder()
        self.folder = folder
        self._failures: List[str] = []

    def close(self) -> None:
        """Forgets what was held. Programs that still run go on, on a machine that is gone."""
        if self._own:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "FakeMachine":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def environment(self, base: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """The variables for `cuslice run --fake` on this machine, in place of `base`'s (None: this process's)."""
        variables = dict(os.environ if base is None else base)
        for name in _OF_ANOTHER_MACHINE:
            variables.pop(name, None)
        variables["CUSLICE_FAKE_DIR"] = self.folder
        if self._failures:
            variables["CUSLICE_FAKE_INJECT"] = ",".join(self._failures)
        return variables

    def run(self, command: Command, **arguments: Any) -> "subprocess.CompletedProcess[Any]":
        """cuslice.run() on this machine: `machine.run(["./a.out"], limit="1GiB", capture_output=True)`."""
        return run(command, fake=self.gpus, env=self.environment(arguments.pop("env", None)), **arguments)

    def popen(self, command: Command, **arguments: Any) -> "subprocess.Popen[Any]":
        """cuslice.popen() on this machine."""
        return popen(command, fake=self.gpus, env=self.environment(arguments.pop("env", None)), **arguments)

    def fail(self, function: str, call: Optional[int] = None, *, result: int = 2, onwards: bool = False) -> None:
        """Lets calls of `function` fail with the CUresult `result`, in each program that is started from now on.

        Functions are named as the driver exports them: "cuMemAlloc_v2". `call` is the number of the call in its
        process, from 1 on, None for each; with `onwards`, all later ones fail too. 2 is CUDA_ERROR_OUT_OF_MEMORY.
        """
        if call is not None and call < 1:
            raise ValueError(f"call: {call}: calls are counted from 1 on")
        which = "*" if call is None else f"{call}+" if onwards else str(call)
        self._failures.append(f"{function}:{which}={result}")

    def lose(self, device: int, after: int) -> None:
        """Lets programs that are started from now on lose this device after so many calls of the driver."""
        self._failures.append(f"lost:{device}@{after}")

    def delay(self, function: str, time: str) -> None:
        """Lets each call of `function` ("*": of any) take longer by `time`, such as "50us", in programs to come."""
        self._failures.append(f"delay:{function}={time}")

    def clear_failures(self) -> None:
        """Programs that are started from now on have no failures."""
        self._failures.clear()

    def holders(self) -> List[Holder]:
        """Who holds memory now, and who did and has ended (the last ones of each GPU)."""
        answer = ask(["--json", "--all"], {**os.environ, "CUSLICE_FAKE_DIR": self.folder}, fake_tool("watch"))
        return [
            Holder(
                gpu=row["gpu"],
                uuid=row["uuid"],
                pid=row["pid"],
                live=row["live"],
                used=row["used"],
                peak=row["peak"],
                context=row["context"],
                modules=row["modules"],
            )
            for row in answer
        ]

    def held(self, gpu: Optional[int] = None, pid: Optional[int] = None) -> int:
        """Bytes that live processes hold, contexts included: on one GPU, by its index, or on all; of one or all."""
        return sum(one.used for one in self._of(gpu, pid) if one.live)

    def allocated(self, gpu: Optional[int] = None, pid: Optional[int] = None) -> int:
        """The same without contexts and modules: bytes that programs have allocated and not freed."""
        return sum(one.allocated for one in self._of(gpu, pid) if one.live)

    def peak(self, gpu: Optional[int] = None, pid: Optional[int] = None) -> int:
        """The most bytes that any one process has held on any one GPU at a time, contexts included; 0 for none."""
        return max((one.peak for one in self._of(gpu, pid)), default=0)

    def unfreed(self, gpu: Optional[int] = None, pid: Optional[int] = None) -> int:
        """Bytes that programs had allocated and not freed when they ended."""
        return sum(one.allocated for one in self._of(gpu, pid) if not one.live)

    def _of(self, gpu: Optional[int], pid: Optional[int]) -> List[Holder]:
        return [one for one in self.holders() if gpu in (None, one.gpu) and pid in (None, one.pid)]
