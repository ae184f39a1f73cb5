# SPDX-License-Identifier: Apache-2.0
"""Programs in slices."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from cuslice._arguments import (
    Command,
    Path,
    check_names,
    option_text,
    process_parameters,
    refuse_not_taken,
)
from cuslice._launcher import launcher, launcher_error
from cuslice._settings import SETTINGS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cuslice._arguments import PopenArguments

#: The parameters of popen() that are options of `cuslice run`.
SLICE_PARAMETERS = (*SETTINGS, "options")
#: Those of run() besides popen()'s.
RUN_PARAMETERS = ("input", "capture_output", "timeout", "check")


def words_of(*, options: Sequence[Path] = (), **settings: Any) -> List[str]:
    """`cuslice run` with options, up to the program."""
    if isinstance(options, (str, os.PathLike)):
        raise TypeError(f'options: {options!r}: a list of options, such as ["--limit=0=4GiB"]')
    words = [launcher(), "run"]
    words += [option_text(name, SETTINGS[name], value) for name, value in settings.items() if value is not None]
    return [*words, *[os.fspath(option) for option in options], "--"]


def popen(command: Command, **arguments: "Unpack[PopenArguments]") -> "subprocess.Popen[Any]":
    """Starts a program in a slice and returns its process, which has the program's own id.

    Each setting of `cuslice run` is a parameter, with underscores for hyphens: `limit`, `group_limit`. Sizes are bytes,
    rounded down to KiB, or texts such as "4GiB"; a mapping gives each GPU its own, by index, UUID or PCI id. `gpus` is
    an index, a list of indices and UUIDs, or a text; times are seconds, or texts such as "10m", and `wait=True` waits
    for ever. None leaves a setting to the other sources. `options` are further ones, as they would be written. The rest
    goes to subprocess.Popen; `shell` and `executable` are not taken.

    Returns when the program has been started: with `wait` when its slice is there. Raises TypeError for a name that it
    doesn't know, SliceTakenError if others hold the memory, LauncherError with the launcher's line if the program
    wasn't started for another reason, and LauncherNotFoundError without a launcher. May be called from any thread.
    """
    given: "dict[str, Any]" = {**arguments}
    check_names("popen", given, (*SLICE_PARAMETERS, *process_parameters()))
    words = words_of(**{name: given.pop(name) for name in SLICE_PARAMETERS if name in given})
    refuse_not_taken(given)
    return _start(words, command, given)


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
    input: Union[str, bytes, None] = None,
    capture_output: bool = False,
    timeout: Optional[float] = None,
    check: bool = False,
    **arguments: "Unpack[PopenArguments]",
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
    process = popen(command, **arguments)
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
