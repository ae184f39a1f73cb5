"""Programs in slices."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Union

from cuslice._arguments import (
    Command,
    Fraction,
    Gpus,
    Path,
    PerGpu,
    Split,
    check_names,
    fraction_text,
    gpus_text,
    log_text,
    per_gpu,
    process_parameters,
    refuse_not_taken,
    size_text,
    wait_text,
)
from cuslice._launcher import launcher, launcher_error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cuslice._arguments import MoreArguments, ProcessArguments

#: The parameters of popen() that are options of `cuslice run`.
SLICE_PARAMETERS = (
    "limit",
    "fraction",
    "split",
    "gpus",
    "allocator",
    "headroom",
    "group",
    "group_limit",
    "wait",
    "fake",
    "fake_machine",
    "log",
    "record",
    "summary",
    "options",
)
#: Those of run() besides popen()'s.
RUN_PARAMETERS = ("input", "capture_output", "timeout", "check")


def words_of(
    *,
    limit: Optional[PerGpu] = None,
    fraction: Optional[Fraction] = None,
    split: Optional[Split] = None,
    gpus: Optional[Gpus] = None,
    allocator: Optional[str] = None,
    headroom: Optional[PerGpu] = None,
    group: Optional[str] = None,
    group_limit: Optional[PerGpu] = None,
    wait: Union[bool, float, str, None] = None,
    fake: Optional[Path] = None,
    fake_machine: Optional[str] = None,
    log: Optional[Path] = None,
    record: Optional[Path] = None,
    summary: bool = False,
    options: Sequence[Path] = (),
) -> List[str]:
    """`cuslice run` with options, up to the program."""
    if isinstance(options, (str, os.PathLike)):
        raise TypeError(f'options: {options!r}: a list of options, such as ["--per-process"]')
    words = [launcher(), "run"]

    def add(name: str, value: Any, text: Callable[[Any], str] = str) -> None:
        if value is not None:
            words.append(f"--{name}={text(value)}")

    add("limit", limit, lambda value: per_gpu(value, size_text))
    add("fraction", fraction, lambda value: per_gpu(value, fraction_text))
    add("split", split, lambda value: per_gpu(value, str))
    add("gpus", gpus, gpus_text)
    add("allocator", allocator)
    add("headroom", headroom, lambda value: per_gpu(value, size_text))
    add("group", group)
    add("group-limit", group_limit, lambda value: per_gpu(value, size_text))
    add("wait", wait, wait_text)
    add("fake", fake, os.fspath)
    add("fake-machine", fake_machine)
    add("log", log, log_text)
    add("record", record, os.fspath)
    if summary:
        words.append("--summary")
    return [*words, *[os.fspath(option) for option in options], "--"]


def popen(
    command: Command,
    *,
    limit: Optional[PerGpu] = None,
    fraction: Optional[Fraction] = None,
    split: Optional[Split] = None,
    gpus: Optional[Gpus] = None,
    allocator: Optional[str] = None,
    headroom: Optional[PerGpu] = None,
    group: Optional[str] = None,
    group_limit: Optional[PerGpu] = None,
    wait: Union[bool, float, str, None] = None,
    fake: Optional[Path] = None,
    fake_machine: Optional[str] = None,
    log: Optional[Path] = None,
    record: Optional[Path] = None,
    summary: bool = False,
    options: Sequence[Path] = (),
    **popen_arguments: "Unpack[ProcessArguments]",
) -> "subprocess.Popen[Any]":
    """Starts a program in a slice and returns its process, which has the program's own id.

    The parameters before `options` are the options of `cuslice run`: sizes are bytes, rounded down to KiB, or texts
    such as "4GiB"; a mapping gives each GPU its own, by index, UUID or PCI id. `gpus` is an index, a list of indices
    and UUIDs, or a text; `wait` a number of seconds, True to wait for ever, or a text such as "10m". `options` are
    further ones, as they would be written. The rest goes to subprocess.Popen; `shell` and `executable` are not taken.

    Returns when the program has been started: with `wait` when its slice is there. Raises TypeError for a name that it
    doesn't know, SliceTakenError if others hold the memory, LauncherError with the launcher's line if the program
    wasn't started for another reason, and LauncherNotFoundError without a launcher. May be called from any thread.
    """
    check_names("popen", popen_arguments, (*SLICE_PARAMETERS, *process_parameters()))
    words = words_of(
        limit=limit,
        fraction=fraction,
        split=split,
        gpus=gpus,
        allocator=allocator,
        headroom=headroom,
        group=group,
        group_limit=group_limit,
        wait=wait,
        fake=fake,
        fake_machine=fake_machine,
        log=log,
        record=record,
        summary=summary,
        options=options,
    )
    arguments = dict(popen_arguments)
    refuse_not_taken(arguments)
    return _start(words, command, arguments)


def _start(words: List[str], command: Command, arguments: "dict[str, Any]") -> "subprocess.Popen[Any]":
    program = [command] if isinstance(command, (str, os.PathLike)) else command
    words += [os.fspath(word) for word in program]
    given = arguments.pop("env", None)
    environment = dict(os.environ if given is None else given)
    report, theirs = os.pipe()
    environment["CUSLICE_REPORT"] = str(theirs)
    try:
        try:
            process = subprocess.Popen(
                words, env=environment, pass_fds=(*arguments.pop("pass_fds", ()), theirs), **arguments
            )
        finally:
            os.close(theirs)
        with os.fdopen(os.dup(report), "rb") as lines:
            said = lines.read()
    finally:
        os.close(report)
    if said.endswith(b"\0"):
        return process
    with process:
        process.communicate()
    raise launcher_error(process.returncode, said.replace(b"\0", b"").decode(errors="replace"))


def run(
    command: Command,
    *,
    limit: Optional[PerGpu] = None,
    fraction: Optional[Fraction] = None,
    split: Optional[Split] = None,
    gpus: Optional[Gpus] = None,
    fake: Optional[Path] = None,
    fake_machine: Optional[str] = None,
    input: Union[str, bytes, None] = None,
    capture_output: bool = False,
    timeout: Optional[float] = None,
    check: bool = False,
    **arguments: "Unpack[MoreArguments]",
) -> "subprocess.CompletedProcess[Any]":
    """Runs a program in a slice to its end, as subprocess.run does: `cuslice.run(["./a.out"], limit="4GiB")`.

    Takes the parameters of popen() and of subprocess.run. `timeout` is in seconds, from the program's start: how long
    to wait for the slice is `wait`'s to say. With `check`, a program that ends with another code than 0 raises
    subprocess.CalledProcessError; one that wasn't started always raises, as with popen().
    """
    check_names("run", arguments, (*SLICE_PARAMETERS, *RUN_PARAMETERS, *process_parameters()))
    if input is not None and arguments.get("stdin") is not None:
        raise ValueError("input and stdin may not both be given")
    if capture_output and not (arguments.get("stdout") is None and arguments.get("stderr") is None):
        raise ValueError("capture_output may not be given with stdout or stderr")
    if input is not None:
        arguments["stdin"] = subprocess.PIPE
    if capture_output:
        arguments["stdout"] = arguments["stderr"] = subprocess.PIPE
    process = popen(
        command,
        limit=limit,
        fraction=fraction,
        split=split,
        gpus=gpus,
        fake=fake,
        fake_machine=fake_machine,
        **arguments,
    )
    with process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done: "subprocess.CompletedProcess[Any]" = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
