"""Programs in slices."""

from __future__ import annotations

import os
import subprocess
from typing import Any, List, Mapping, Optional, Sequence, Union

from cuslice._launcher import launcher, launcher_error

#: Bytes, or a text as the command line has it ("4GiB", "0=4GiB,1=1GiB").
Size = Union[int, str]
PerGpu = Union[Size, Mapping[Union[int, str], Size]]
Path = Union[str, "os.PathLike[str]"]
Command = Union[Path, Sequence[Path]]


def size_text(size: Size) -> str:
    """As the command line takes it. A number of bytes is rounded down to whole KiB, which is what it can say."""
    if isinstance(size, str):
        return size
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"a size is a number of bytes or a text such as '4GiB', not {size!r}")
    return f"{size // 1024}KiB"


def fraction_text(share: Union[float, str]) -> str:
    return share if isinstance(share, str) else f"{share:.9f}"


def per_gpu(value: Any, text: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{gpu}={text(one)}" for gpu, one in value.items())
    found: str = text(value)
    return found


def words_of(
    *,
    limit: Optional[PerGpu] = None,
    fraction: Union[float, str, Mapping[Union[int, str], Union[float, str]], None] = None,
    split: Union[int, str, Mapping[Union[int, str], Union[int, str]], None] = None,
    gpus: Optional[str] = None,
    allocator: Optional[str] = None,
    headroom: Optional[PerGpu] = None,
    group: Optional[str] = None,
    group_limit: Optional[PerGpu] = None,
    wait: Union[bool, str, None] = None,
    fake: Optional[str] = None,
    fake_machine: Optional[str] = None,
    log: Optional[str] = None,
    record: Optional[Path] = None,
    summary: bool = False,
    options: Sequence[str] = (),
) -> List[str]:
    """`cuslice run` with options, up to the program."""
    words = [launcher(), "run"]

    def add(name: str, value: Any, text: Any = str) -> None:
        if value is not None:
            words.append(f"--{name}={per_gpu(value, text)}")

    add("limit", limit, size_text)
    add("fraction", fraction, fraction_text)
    add("split", split)
    add("gpus", gpus)
    add("allocator", allocator)
    add("headroom", headroom, size_text)
    add("group", group)
    add("group-limit", group_limit, size_text)
    if wait is not None:
        words.append(f"--wait={wait if isinstance(wait, str) else 'yes' if wait else 'no'}")
    add("fake", fake)
    add("fake-machine", fake_machine)
    add("log", log)
    add("record", record, os.fspath)
    if summary:
        words.append("--summary")
    return [*words, *options, "--"]


def popen(
    command: Command,
    *,
    limit: Optional[PerGpu] = None,
    fraction: Union[float, str, Mapping[Union[int, str], Union[float, str]], None] = None,
    split: Union[int, str, Mapping[Union[int, str], Union[int, str]], None] = None,
    gpus: Optional[str] = None,
    allocator: Optional[str] = None,
    headroom: Optional[PerGpu] = None,
    group: Optional[str] = None,
    group_limit: Optional[PerGpu] = None,
    wait: Union[bool, str, None] = None,
    fake: Optional[str] = None,
    fake_machine: Optional[str] = None,
    log: Optional[str] = None,
    record: Optional[Path] = None,
    summary: bool = False,
    options: Sequence[str] = (),
    **popen_arguments: Any,
) -> "subprocess.Popen[Any]":
    """Starts a program in a slice and returns its process, which has the program's own id.

    The parameters before `options` are the options of `cuslice run`: sizes are bytes, rounded down to KiB, or texts
    such as "4GiB"; a mapping gives each GPU its own, by index, UUID or PCI id. `options` are further ones, as they
    would be written. The rest goes to subprocess.Popen; `shell` is not taken.

    Returns when the program has been started: with `wait` when its slice is there. Raises SliceTakenError if others
    hold the memory, LauncherError with the launcher's line if it wasn't started for another reason, and
    LauncherNotFoundError without a launcher. May be called from any thread.
    """
    if popen_arguments.get("shell"):
        raise ValueError('shell is not taken: run ["/bin/sh", "-c", …]')
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
    program = [command] if isinstance(command, (str, os.PathLike)) else command
    words += [os.fspath(word) for word in program]
    given = popen_arguments.pop("env", None)
    environment = dict(os.environ if given is None else given)
    report, theirs = os.pipe()
    environment["CUSLICE_REPORT"] = str(theirs)
    try:
        try:
            process = subprocess.Popen(
                words, env=environment, pass_fds=(*popen_arguments.pop("pass_fds", ()), theirs), **popen_arguments
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
    fraction: Union[float, str, Mapping[Union[int, str], Union[float, str]], None] = None,
    split: Union[int, str, Mapping[Union[int, str], Union[int, str]], None] = None,
    gpus: Optional[str] = None,
    fake: Optional[str] = None,
    fake_machine: Optional[str] = None,
    input: Union[str, bytes, None] = None,
    capture_output: bool = False,
    timeout: Optional[float] = None,
    check: bool = False,
    **arguments: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Runs a program in a slice to its end, as subprocess.run does: `cuslice.run(["./a.out"], limit="4GiB")`.

    Takes the parameters of popen() and of subprocess.run. `timeout` is in seconds, from the program's start: how long
    to wait for the slice is `wait`'s to say. With `check`, a program that ends with another code than 0 raises
    subprocess.CalledProcessError; one that wasn't started always raises, as with popen().
    """
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
