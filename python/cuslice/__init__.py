# SPDX-License-Identifier: Apache-2.0
"""A slice of a GPU for every CUDA program.

The package brings the launcher and its libraries: `cuslice run --limit 4GiB -- python train.py`, or `python -m
cuslice run …` where the environment's bin/ is not in PATH. From Python:

    cuslice.run(["python", "train.py"], limit="4GiB")   # a program in a slice; popen() doesn't wait for its end
    cuslice.slice("4GiB")                               # a limit of this process's own; also for a block or function
    cuslice.ensure(limit="4GiB")                        # for the top of a script: starts it anew in a slice
    cuslice.limit()                                     # what this process may use of each GPU, and uses
    cuslice.stats()                                     # what its caches hold
    cuslice.forward_log()                               # refusals as records of `logging`
    cuslice.FakeMachine("2xt4")                         # GPUs for tests, on a machine without one

All sizes are in bytes.
"""

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from typing import Any as _Any
from typing import List as _List

from cuslice._ensure import CannotRestartError, ensure
from cuslice._launcher import LauncherError, LauncherNotFoundError, SliceTakenError, launcher
from cuslice._log import LogForwarder, forward_log
from cuslice._memory import CacheStats, GpuLimit, Tally, limit, stats
from cuslice._run import popen, run
from cuslice._slice import NotPreloadedError, OwnSlice, OwnSlices, Slice, is_preloaded, own_slices, slice
from cuslice.fake import FakeMachine

__all__ = [
    "CacheStats",
    "CannotRestartError",
    "FakeMachine",
    "GpuLimit",
    "LauncherError",
    "LauncherNotFoundError",
    "LogForwarder",
    "NotPreloadedError",
    "OwnSlice",
    "OwnSlices",
    "Slice",
    "SliceTakenError",
    "Tally",
    "__version__",
    "ensure",
    "forward_log",
    "is_preloaded",
    "launcher",
    "limit",
    "own_slices",
    "popen",
    "run",
    "slice",
    "stats",
]

try:
    __version__: str = _version("cuslice")
except _PackageNotFoundError:  # read from a checkout, not installed
    __version__ = "unknown"


def load_ipython_extension(shell: _Any) -> None:
    """`%load_ext cuslice`: the magic `%slice`."""
    from cuslice._ipython import load

    load(shell)


def __dir__() -> _List[str]:
    """What is for others, and no module that this one imports."""
    return __all__
