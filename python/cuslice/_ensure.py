# SPDX-License-Identifier: Apache-2.0
"""For the top of a script: starts it anew under cuslice."""

from __future__ import annotations

import builtins
import multiprocessing
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, Sequence

from cuslice._arguments import Path, check_names
from cuslice._restart import become, command_line
from cuslice._run import SLICE_PARAMETERS, words_of
from cuslice._slice import is_preloaded

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cuslice._settings import AllSettings

# Set in the process that was started anew: exec keeps its id. No name that begins with CUSLICE_, which the library would
# take for a setting that it doesn't know.
_STARTED = "PYTHON_CUSLICE_STARTED"


class CannotRestartError(RuntimeError):
    """The process can't be started anew under cuslice, for a reason that the message gives."""


def _loads_cuda() -> bool:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        return any("/libcuda.so" in line for line in lines)


def _reason_against() -> str:
    """Why this process can't be started anew; "" if it can."""
    if hasattr(builtins, "__IPYTHON__"):
        return "a notebook or IPython session: give it a kernel with a limit: cuslice jupyter install --limit 4GiB"
    if sys.flags.interactive or hasattr(sys, "ps1"):
        return "an interactive session: start it with cuslice run -- python"
    if sys.argv[:1] in ([""], ["-"]):
        return "its script came from standard input, which is read already: put it into a file"
    if multiprocessing.parent_process() is not None:
        return 'a worker: call cuslice.ensure() in the process that starts it, under `if __name__ == "__main__"`'
    if threading.current_thread() is not threading.main_thread():
        return "another thread than the main one called it: other threads' work would be lost"
    if _loads_cuda():
        return "CUDA's driver is loaded already: call it before anything that loads it"
    return ""


def ensure(*, options: Sequence[Path] = (), **settings: "Unpack[AllSettings]") -> None:
    """Sees to it that the script runs under cuslice: else starts it anew, as `cuslice run` with these settings would.

        import cuslice
        cuslice.ensure(limit="4GiB")   # at the top, before CUDA is loaded

    Settings and `options` are those of cuslice.run(). Where the process runs under cuslice already, however it came to,
    nothing happens: its own limit stays. What the script did before is done again, by a process with the same id, files
    and standard streams.

    Raises CannotRestartError in a notebook, an interactive session, a worker, another thread than the main one, for a
    script from standard input, once CUDA's driver is loaded, and in a process that was started anew and isn't under
    cuslice all the same; LauncherNotFoundError without a launcher; TypeError for a setting that isn't one.
    """
    given: Dict[str, Any] = {**settings}
    check_names("ensure", given, SLICE_PARAMETERS)
    if is_preloaded():
        return
    if os.environ.get(_STARTED) == str(os.getpid()):
        raise CannotRestartError(
            "this process was started anew and doesn't run under cuslice: `cuslice doctor -- python` says why"
        )
    against = _reason_against()
    if against:
        raise CannotRestartError(f"this process can't be started anew under cuslice: {against}")
    words = [*words_of(options=options, **given), sys.executable, *command_line()[1:]]
    os.environ[_STARTED] = str(os.getpid())
    try:
        become(words)
    except BaseException:
        del os.environ[_STARTED]
        raise
