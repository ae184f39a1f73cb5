# SPDX-License-Identifier: Apache-2.0
"""Failures on demand: what a test asks for, checked here and written as the fake driver reads it."""

from __future__ import annotations

import ctypes
import difflib
import functools
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Union

from cuslice._launcher import LauncherError, ask, fake_tool

# Functions of the runtime that people name, and the driver's that they call.
_OF_THE_RUNTIME = {
    "cudaDeviceSynchronize": "cuCtxSynchronize",
    "cudaFree": "cuMemFree",
    "cudaFreeAsync": "cuMemFreeAsync",
    "cudaHostAlloc": "cuMemHostAlloc",
    "cudaLaunchKernel": "cuLaunchKernel",
    "cudaMalloc": "cuMemAlloc",
    "cudaMallocAsync": "cuMemAllocAsync",
    "cudaMallocManaged": "cuMemAllocManaged",
    "cudaMallocPitch": "cuMemAllocPitch",
    "cudaSetDevice": "cuDevicePrimaryCtxRetain",
    "cudaStreamCreate": "cuStreamCreate",
}
_TIME = re.compile(r"(\d+)(ns|us|ms|s)")
_PER_SECOND = {"ns": 10**9, "us": 10**6, "ms": 1000, "s": 1}
_MOST_SECONDS = 3600


@dataclass(frozen=True)
class Injection:
    """A failure, a loss or a delay that a test asked for."""

    item: str  #: as the fake driver reads it, and as it names the trace of what has happened
    asked: str  #: as the test wrote it
    missing: str  #: what never came, where it has not happened
    optional: bool


@functools.lru_cache(maxsize=None)
def _words(tool: str) -> Any:
    return ask(["--words"], tool=tool)


@functools.lru_cache(maxsize=None)
def _machine(tool: str, gpus: str) -> int:
    return len(ask(["--machine", gpus], tool=tool))


def count_gpus(gpus: str) -> int:
    """How many GPUs these are. Raises ValueError with the fake GPU's line where they are none."""
    tool = fake_tool("watch")
    # A file may change.
    count = ask if "/" in gpus or gpus.endswith(".toml") else None
    try:
        return len(count(["--machine", gpus], tool=tool)) if count else _machine(tool, gpus)
    except LauncherError as error:
        raise ValueError(f"gpus: {error.line}") from None


def function_name(function: str) -> str:
    """A driver's function, as it is exported or as programs write it. Raises ValueError for any other name."""
    known: List[str] = _words(fake_tool("watch"))["functions"]
    if function in known:
        return function
    if function.startswith("cuda"):
        driver = _OF_THE_RUNTIME.get(function, "")
        raise ValueError(
            f"{function}: a function of the CUDA runtime; name the driver's that it calls, "
            f"{driver or 'such as cuMemAlloc for cudaMalloc'}"
        )
    near = difflib.get_close_matches(function, known, 1, 0.6)
    raise ValueError(f"{function}: the driver has no such function" + (f"; did you mean {near[0]}?" if near else ""))


def result_code(result: Union[int, str]) -> int:
    """A CUresult, by its number or its name. Raises ValueError for what is none, or no failure."""
    known: Dict[str, int] = _words(fake_tool("watch"))["results"]
    code = known.get(result, -1) if isinstance(result, str) else result
    if isinstance(code, bool) or code not in known.values():
        raise ValueError(f"result: {result!r}: no CUresult, such as 2 or 'CUDA_ERROR_OUT_OF_MEMORY'")
    if code == 0:
        raise ValueError(f"result: {result!r}: CUDA_SUCCESS is no failure")
    return code


def whole_number(name: str, value: Any, least: int) -> int:
    """Raises TypeError for what is no whole number, ValueError for one below `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: {value!r}: a whole number")
    if value < least:
        raise ValueError(f"{name}: {value}: counted from {least} on")
    return value


def time_text(time: Union[float, str]) -> str:
    """Seconds, or a text such as "50us". Raises ValueError for any other, and for more than an hour."""
    written = _TIME.fullmatch(time) if isinstance(time, str) else None
    if written and int(written.group(1)) <= _MOST_SECONDS * _PER_SECOND[written.group(2)]:
        return written.group(0)
    if isinstance(time, (int, float)) and not isinstance(time, bool) and 0 <= time <= _MOST_SECONDS:
        return f"{round(time * 10**9)}ns"
    raise ValueError(f"time: {time!r}: seconds, at most {_MOST_SECONDS}, or a text such as '50us' (ns, us, ms, s)")


def change_own_driver(items: str) -> None:
    """Lets calls of this process fail as `items` has it, besides what has been asked for; "" ends that."""
    driver = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_void_p()
    # By a name that the fake driver alone knows.
    driver.cuGetProcAddress_v2(
        b"cuslice_fake_inject", ctypes.byref(address), 12000, ctypes.c_uint64(0), ctypes.byref(ctypes.c_int())
    )
    if not address.value:
        raise RuntimeError("this process has no fake driver: start pytest with --fake-gpus")
    change: Callable[[bytes], Any] = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p)(address.value)
    why = change(items.encode())
    if why:
        raise ValueError(why.decode(errors="replace"))
