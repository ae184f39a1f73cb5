# SPDX-License-Identifier: Apache-2.0
"""The parameters of run() and popen(): their types, their names, and how the command line has them."""

from __future__ import annotations

import difflib
import inspect
import math
import os
import subprocess
from typing import IO, TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

#: Bytes, or a text as the command line has it ("4GiB", "0=4GiB,1=1GiB").
Size = Union[int, str]
PerGpu = Union[Size, Mapping[Union[int, str], Size]]
Fraction = Union[float, str, Mapping[Union[int, str], Union[float, str]]]
Split = Union[int, str, Mapping[Union[int, str], Union[int, str]]]
Gpus = Union[int, str, Sequence[Union[int, str]]]
PerGpuTime = Union[float, str, Mapping[Union[int, str], Union[float, str]]]
PerGpuWord = Union[str, Mapping[Union[int, str], str]]
Path = Union[str, "os.PathLike[str]"]
Command = Union[Path, Sequence[Path]]

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from cuslice._settings import AllSettings, Setting, Settings

    _Stream = Union[None, int, IO[Any]]

    class ProcessArguments(TypedDict, total=False):
        """Those of subprocess.Popen but for `args`, `executable` and `shell`."""

        bufsize: int
        stdin: _Stream
        stdout: _Stream
        stderr: _Stream
        preexec_fn: Optional[Callable[[], Any]]
        close_fds: bool
        cwd: Optional[Path]
        env: Optional[Mapping[str, str]]
        universal_newlines: Optional[bool]
        restore_signals: bool
        start_new_session: bool
        pass_fds: Sequence[int]
        user: Union[str, int, None]
        extra_groups: Optional[Sequence[Union[str, int]]]
        encoding: Optional[str]
        errors: Optional[str]
        text: Optional[bool]
        umask: int
        pipesize: int
        process_group: Optional[int]

    class MoreArguments(ProcessArguments, total=False):
        """Those of run() and popen() that are neither settings nor Popen's."""

        options: Sequence[Path]

    class PopenArguments(MoreArguments, AllSettings, total=False):
        """Arguments of popen()."""

    class OnMachine(MoreArguments, Settings, total=False):
        """Arguments of FakeMachine.popen(): all but the GPUs, which are the machine's."""

    class RunOnMachine(OnMachine, total=False):
        """Arguments of FakeMachine.run()."""

        input: Union[str, bytes, None]
        capture_output: bool
        timeout: Optional[float]
        check: bool


#: Parameters of subprocess.Popen that would start another program than the one in the slice, and what to do instead.
_NOT_TAKEN = {
    "shell": 'shell is not taken: run ["/bin/sh", "-c", …]',
    "executable": "executable is not taken: name the program in the command",
}


def process_parameters() -> List[str]:
    """Names of subprocess.Popen's parameters that are taken, as this Python has them."""
    return [name for name in inspect.signature(subprocess.Popen).parameters if name not in ("args", *_NOT_TAKEN)]


def check_names(function: str, given: Iterable[str], taken: Iterable[str]) -> None:
    """Raises TypeError for a name that is not taken, with the nearest that is."""
    known = list(taken)
    for name in given:
        if name in _NOT_TAKEN or name in known:
            continue
        near = difflib.get_close_matches(name, known, 1, 0.6)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{function}() has no parameter {name!r}{hint}")


def refuse_not_taken(given: Mapping[str, Any]) -> None:
    """Raises ValueError where Popen would start something else."""
    for name, why in _NOT_TAKEN.items():
        if given.get(name):
            raise ValueError(why)


def size_text(size: Size) -> str:
    """As the command line takes it. A number of bytes is rounded down to whole KiB, which is what it can say."""
    if isinstance(size, str):
        return size
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"a size is a number of bytes or a text such as '4GiB', not {size!r}")
    return f"{size // 1024}KiB"


def fraction_text(share: Union[float, str]) -> str:
    return share if isinstance(share, str) else f"{share:.9f}"


def per_gpu(value: Any, text: Callable[[Any], str]) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{gpu}={text(one)}" for gpu, one in value.items())
    return text(value)


def gpus_text(gpus: Gpus) -> str:
    """0 and [0, "GPU-5f"] as "0" and "0,GPU-5f"; [] as "none"."""
    if isinstance(gpus, str):
        return gpus
    names: Tuple[Union[int, str], ...] = (gpus,) if isinstance(gpus, int) else tuple(gpus)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (int, str)):
            raise TypeError(f"gpus: {name!r}: a GPU is an index, or a text such as 'GPU-5f'")
    return ",".join(map(str, names)) or "none"


def duration_text(seconds: Union[float, str]) -> str:
    """Seconds, as a time with its unit; 0 is no time."""
    if isinstance(seconds, str):
        return seconds
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{seconds!r}: seconds, or a text such as '10m'")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{seconds!r}: a number of seconds from 0 on")
    return f"{math.ceil(seconds * 1000)}ms" if seconds else "no"


def switch_text(value: Union[bool, str]) -> str:
    if not isinstance(value, (bool, str)):
        raise TypeError(f"{value!r}: True, False, or a text such as 'yes'")
    return value if isinstance(value, str) else "yes" if value else "no"


def wait_text(wait: Union[bool, float, str]) -> str:
    """Seconds, as a time with its unit; True and infinity wait for ever, and False and 0 don't."""
    if isinstance(wait, bool) or wait == math.inf:
        return switch_text(bool(wait))
    return duration_text(wait)


def count_text(count: Union[int, str]) -> str:
    if isinstance(count, bool) or not isinstance(count, (int, str)):
        raise TypeError(f"{count!r}: a whole number")
    return str(count)


def log_text(log: Path) -> str:
    """LEVEL or LEVEL:FILE; a path object is the file, at the level warn."""
    return log if isinstance(log, str) else f"warn:{os.fspath(log)}"


#: How a value is written, by the type of its setting; paths and words, as they are.
TEXTS: Mapping[str, Callable[[Any], str]] = {
    "fraction": fraction_text,
    "limit": size_text,
    "size": size_text,
    "count": count_text,
    "percent": fraction_text,
    "switch": switch_text,
    "duration": duration_text,
    "switch-or-duration": wait_text,
    "split": str,
    "gpus": gpus_text,
    "log": log_text,
}


def option_text(parameter: str, setting: "Setting", value: Any) -> str:
    """A parameter as an option. Raises TypeError and ValueError, with the parameter's name."""
    text = TEXTS.get(setting.type, os.fspath)
    try:
        written = per_gpu(value, text) if setting.per_gpu else text(value)
    except (TypeError, ValueError) as error:
        said = str(error)
        raise type(error)(said if said.startswith(parameter) else f"{parameter}: {said}") from None
    return f"--{setting.option}={written}"
