# SPDX-License-Identifier: Apache-2.0
"""Machines of fake GPUs, for tests: programs run on them, calls fail on demand, and what was held can be asserted."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Type, Union

from cuslice._arguments import Command, Path, check_names, process_parameters
from cuslice._failures import (
    Injection,
    change_own_driver,
    count_gpus,
    function_name,
    result_code,
    time_text,
    whole_number,
)
from cuslice._launcher import ask, fake_tool
from cuslice._run import RUN_PARAMETERS, SLICE_PARAMETERS, popen, run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cuslice._arguments import OnMachine, RunOnMachine

__all__ = ["FakeMachine", "Holder"]

# Handed on by an outer launcher, of another machine.
_OF_ANOTHER_MACHINE = (
    "CUSLICE_SETTINGS",
    "CUSLICE_JOB",
    "CUSLICE_VISIBLE_DEVICES",
    "CUSLICE_DIR",
    "CUSLICE_FAKE_MACHINE",
)

# Where the fake driver leaves an empty file for each item that has happened (fake/driver/injection_mark.h).
_HAPPENED = "injected"

# Arguments of run() and popen().
_PARAMETERS = tuple(name for name in SLICE_PARAMETERS if name not in ("fake", "fake_machine"))


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

    def __init__(self, gpus: Path = "1xt4", *, folder: Optional[Path] = None) -> None:
        """`folder` is an existing machine's, which close() then leaves alone. Raises ValueError for unknown GPUs."""
        self.gpus = os.fspath(gpus)
        self._count = count_gpus(self.gpus)
        self._own = folder is None
        self._lock: Optional[int] = None
        self._closed = False
        if folder is None:
            folder, self._lock = _new_folder()
        self.folder = os.fspath(folder)
        self._failures: List[Injection] = []
        self._missed: List[Injection] = []

    def __repr__(self) -> str:
        return f"<FakeMachine {self.gpus!r} in {self.folder}{', closed' if self._closed else ''}>"

    def close(self) -> None:
        """Forgets what was held. Programs that still run go on, on a machine that is gone."""
        if not self._closed:
            self._missed = self._never_happened()
        self._closed = True
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
        if kind is None:
            self.check_failures()

    def environment(self, base: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """The variables for `cuslice run --fake` on this machine, in place of `base`'s (None: this process's)."""
        self._check_open()
        variables = dict(os.environ if base is None else base)
        for name in _OF_ANOTHER_MACHINE:
            variables.pop(name, None)
        variables["CUSLICE_FAKE_DIR"] = self.folder
        if self._failures:
            self._make_traces()
            variables["CUSLICE_FAKE_INJECT"] = ",".join(one.item for one in self._failures)
        return variables

    def run(self, command: Command, **arguments: "Unpack[RunOnMachine]") -> "subprocess.CompletedProcess[Any]":
        """cuslice.run() on this machine: `machine.run(["./a.out"], limit="1GiB", capture_output=True)`."""
        self._check_names("run", arguments, (*_PARAMETERS, *RUN_PARAMETERS, *process_parameters()))
        arguments["env"] = self.environment(arguments.get("env"))
        return run(command, fake=self.gpus, **arguments)

    def popen(self, command: Command, **arguments: "Unpack[OnMachine]") -> "subprocess.Popen[Any]":
        """cuslice.popen() on this machine."""
        self._check_names("popen", arguments, (*_PARAMETERS, *process_parameters()))
        arguments["env"] = self.environment(arguments.get("env"))
        return popen(command, fake=self.gpus, **arguments)

    def fail(
        self,
        function: str,
        call: Optional[int] = None,
        *,
        result: Union[int, str] = 2,
        onwards: bool = False,
        optional: bool = False,
    ) -> None:
        """Lets calls of `function` fail with `result`, in each program that is started from now on.

        `function` is the driver's, as programs write it, which means all its versions ("cuMemAlloc" is cuMemAlloc_v2
        too), or as it is exported ("cuMemAlloc_v2"). `call` is the number of the call in its process, from 1 on, None
        for each; with `onwards`, all later ones fail too. `result` is a CUresult's number or its name; 2 is
        CUDA_ERROR_OUT_OF_MEMORY. Raises ValueError for what the fake driver would not know.

        If no such call comes, the test has tested nothing: check_failures() raises AssertionError, unless `optional`.
        """
        which = "*" if call is None else str(whole_number("call", call, 1)) + ("+" if onwards else "")
        item = f"{function_name(function)}:{which}={result_code(result)}"
        asked = f"fail({function!r}{'' if call is None else f', {call}'})"
        missing = f"no call of {function} came" if call is None else f"call {call} of {function} never came"
        self._add(Injection(item, asked, missing, optional))

    def lose(self, device: int, after: int, *, optional: bool = False) -> None:
        """Lets programs that are started from now on lose this device after so many calls of the driver."""
        if whole_number("device", device, 0) >= self._count:
            raise ValueError(f"device: {device}: {self._has()}")
        item = f"lost:{device}@{whole_number('after', after, 0)}"
        missing = f"no program made more than {after} calls of the driver"
        self._add(Injection(item, f"lose({device}, {after})", missing, optional))

    def delay(self, function: str, time: Union[float, str], *, optional: bool = False) -> None:
        """Lets each call of `function` ("*": of any) take longer by `time`, in programs to come: seconds, or a text
        such as "50us".
        """
        name = function if function == "*" else function_name(function)
        missing = f"no call of {'the driver' if function == '*' else function} came"
        self._add(Injection(f"delay:{name}={time_text(time)}", f"delay({function!r}, {time!r})", missing, optional))

    def check_failures(self) -> None:
        """Raises AssertionError for failures, losses and delays that were asked for and have not happened so far, in
        any program on this machine. clear_failures(), the end of the `with` block and of a pytest test do so too.
        """
        missed = self._missed if self._closed else self._never_happened()
        if missed:
            raise AssertionError("\n".join(f"{one.asked} never happened: {one.missing}" for one in missed))

    def clear_failures(self) -> None:
        """Programs that are started from now on have no failures. Raises AssertionError for those that never happened,
        as check_failures() does.
        """
        try:
            self.check_failures()
        finally:
            self._drop_failures()

    def _add(self, failure: Injection) -> None:
        self._failures.append(failure)

    def _drop_failures(self) -> None:
        self._failures.clear()
        shutil.rmtree(os.path.join(self.folder, _HAPPENED), ignore_errors=True)

    def _make_traces(self) -> None:
        for folder in (self.folder, os.path.join(self.folder, _HAPPENED)):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass

    def _never_happened(self) -> List[Injection]:
        traces = os.path.join(self.folder, _HAPPENED)
        return [
            one for one in self._failures if not one.optional and not os.path.exists(os.path.join(traces, one.item))
        ]

    def _has(self) -> str:
        return "the machine has 1 GPU, 0" if self._count == 1 else f"the machine has {self._count} GPUs, from 0 on"

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the machine {self.gpus} is closed")

    def _check_names(self, function: str, given: Mapping[str, Any], taken: Tuple[str, ...]) -> None:
        for name in ("fake", "fake_machine"):
            if name in given:
                raise TypeError(f"{function}() of a FakeMachine takes no {name!r}: the GPUs are the machine's")
        check_names(function, given, taken)

    def holders(self) -> List[Holder]:
        """Who holds memory now, and who did and has ended (the last ones of each GPU)."""
        self._check_open()
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
        holders = self.holders()
        # A machine of another's may have more GPUs than it was said to have here.
        there = max([self._count, *(one.gpu + 1 for one in holders)])
        if gpu is not None and whole_number("gpu", gpu, 0) >= there:
            raise ValueError(f"gpu: {gpu}: {self._has()}")
        if pid is not None:
            whole_number("pid", pid, 1)
        return [one for one in holders if gpu in (None, one.gpu) and pid in (None, one.pid)]


class OwnMachine(FakeMachine):
    """The machine that this process itself is on. What it lets fail does so in this process too, from now on."""

    def __init__(self, gpus: str) -> None:
        super().__init__(gpus, folder=os.environ["CUSLICE_FAKE_DIR"])

    def lose(self, device: int, after: int, *, optional: bool = False) -> None:
        """Refused: raises RuntimeError."""
        raise RuntimeError("a device that this process loses stays lost for all later tests; use fake_machine")

    def _drop_failures(self) -> None:
        """Neither this process nor programs that are started from now on have failures."""
        if self._failures:
            change_own_driver("")
        super()._drop_failures()

    def _add(self, failure: Injection) -> None:
        self._make_traces()
        change_own_driver(failure.item)
        super()._add(failure)
