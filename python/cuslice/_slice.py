# SPDX-License-Identifier: Apache-2.0
"""A limit that a process sets for itself, within the one that it was given."""

from __future__ import annotations

import ctypes
import functools
import html
import inspect
import os
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, Union, cast

from cuslice._bars import bars
from cuslice._size import bytes_of, text_of

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: As include/cuslice.h has them.
_MOST_GPUS = 64
_ALL = (1 << 64) - 1
_MOST = (1 << 63) - 1
_INVALID_DEVICE, _NOT_SUPPORTED = 101, 801  # CUresult


class NotPreloadedError(RuntimeError):
    """The process doesn't run under cuslice, so that nothing can be limited from inside."""

    def __init__(self) -> None:
        super().__init__(
            "this process doesn't run under cuslice: start it with `cuslice run -- python ...`, or call "
            "cuslice.ensure() at the top of the script, before anything loads CUDA"
        )


class _SliceStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_uint64) for name in ("limit", "used", "driver", "refused"))]


@dataclass(frozen=True)
class OwnSlice:
    """What this process may hold of one GPU, and holds. Sizes in bytes."""

    device: int  #: as CUDA counts it
    limit: int  #: the most now
    used: int  #: by this process, its context included unless that comes on top of the limit
    driver: int  #: part of that which the driver takes by itself: contexts and modules
    refused: int  #: requests that were refused since the process began


def _library_function(name: str) -> Any:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        raise NotPreloadedError
    return function


def is_preloaded() -> bool:
    """True if this process runs under cuslice."""
    return hasattr(ctypes.CDLL(None), "cuslice_set_slice")


class OwnSlices(List[OwnSlice]):
    """Rows for people, notebooks and pandas: `pandas.DataFrame(cuslice.own_slices())`."""

    def __repr__(self) -> str:
        lines = [f"GPU {one.device}: {text_of(one.used)} of {text_of(one.limit)}" for one in self]
        return "\n".join(lines) or "no GPU is limited in this process, or CUDA isn't initialised yet"

    def _repr_html_(self) -> str:
        return bars([(f"GPU {one.device}", one.used, one.limit) for one in self]) or f"<p>{html.escape(repr(self))}</p>"


def own_slices() -> OwnSlices:
    """Of each GPU that is limited, what this process may hold and holds. No CUDA call is made; empty before CUDA is
    initialised. Raises NotPreloadedError. Thread-safe."""
    function = _library_function("cuslice_get_slice")
    function.argtypes = [ctypes.c_int, ctypes.POINTER(_SliceStruct)]
    found = OwnSlices()
    for device in range(_MOST_GPUS):
        filled = _SliceStruct(size=ctypes.sizeof(_SliceStruct))
        code = function(device, ctypes.byref(filled))
        if code == 0:
            found.append(OwnSlice(device, filled.limit, filled.used, filled.driver, filled.refused))
        elif code != _NOT_SUPPORTED:
            break
    return found


_ForGood = Dict[Optional[int], "Slice"]


class _InEffect:
    """The limits that are in effect in this process: for each GPU the one that was set for good, the latest, and those
    of blocks. The smallest of these holds."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._for_good: _ForGood = {}  # by GPU; None: all that have none of their own. Never changed, but replaced
        self._blocks: List["Slice"] = []

    def set_for_good(self, one: "Slice") -> Tuple[_ForGood, _ForGood]:
        """What is set for good from now on, and what was before."""
        with self._lock:
            before = self._for_good
            now: _ForGood = {**({} if one.gpu is None else before), one.gpu: one}
            self._for_good = now
            self._apply_or_undo(lambda: self._put_back(one, now, before))
            return now, before

    def _put_back(self, one: "Slice", now: _ForGood, before: _ForGood) -> None:
        others = {gpu: other for gpu, other in self._for_good.items() if other is not one}
        self._for_good = before if self._for_good is now else others

    def take_back(self, one: "Slice", now: _ForGood, before: _ForGood) -> None:
        """As before, unless another one was set meanwhile: then without this one."""
        with self._lock:
            self._put_back(one, now, before)
            self._apply()

    def enter(self, one: "Slice") -> None:
        with self._lock:
            self._blocks.append(one)
            self._apply_or_undo(lambda: self._remove(one))

    def leave(self, one: "Slice") -> None:
        with self._lock:
            self._remove(one)
            self._apply()

    def _remove(self, one: "Slice") -> None:
        # The last one: several threads may be in blocks of one object.
        for index in range(len(self._blocks) - 1, -1, -1):
            if self._blocks[index] is one:
                del self._blocks[index]
                return

    def _apply_or_undo(self, undo: Callable[[], None]) -> None:
        try:
            self._apply()
        except BaseException:
            undo()
            self._apply()
            raise

    def _apply(self) -> None:
        function = _library_function("cuslice_set_slice")
        function.argtypes = [ctypes.c_int, ctypes.c_uint64]
        wanted = {one.gpu for one in (*self._for_good.values(), *self._blocks)}
        limited = 0
        for device in range(_MOST_GPUS):
            sizes = [one.bytes for one in self._blocks if one.gpu in (None, device)]
            for_good = self._for_good.get(device, self._for_good.get(None))
            sizes += [for_good.bytes] if for_good else []
            code = function(device, min(sizes, default=_ALL))
            if code == _INVALID_DEVICE:
                self._check_there(device, wanted)
                break
            if code == _NOT_SUPPORTED and device in wanted:
                raise RuntimeError(
                    f"nothing is counted on GPU {device}, since CUDA was started without a limit there, or all of its "
                    "memory is preallocated: call this before CUDA is started, or give the process a limit"
                )
            limited += code == 0
        if limited == 0 and None in wanted:
            raise RuntimeError(
                "nothing is counted on any GPU, since CUDA was started without a limit, or their memory is "
                "preallocated: call this before CUDA is started, or give the process a limit (cuslice run --limit)"
            )

    @staticmethod
    def _check_there(count: int, wanted: Any) -> None:
        beyond = [gpu for gpu in wanted if gpu is not None and gpu >= count]
        if beyond:
            raise ValueError(f"gpu: {max(beyond)}: this process sees {count} GPU{'' if count == 1 else 's'}")

    def forked(self) -> None:
        """In the child, where no other thread is left that might hold the lock."""
        self._lock = threading.RLock()


_in_effect = _InEffect()
os.register_at_fork(after_in_child=_in_effect.forked)


class Slice:
    """What slice() returns: it holds for the process from then on, or for the block or function that it is put around."""

    def __init__(self, size: Union[int, str], gpu: Optional[int]) -> None:
        if gpu is not None and (isinstance(gpu, bool) or not isinstance(gpu, int)):
            raise TypeError(f"gpu: {gpu!r}: a GPU's number, as CUDA counts it")
        if gpu is not None and not 0 <= gpu < _MOST_GPUS:
            raise ValueError(f"gpu: {gpu}: at least 0, and below {_MOST_GPUS}")
        self.bytes = bytes_of(size, "size")
        self.gpu = gpu
        self._lock = threading.Lock()
        self._is_for_good = True
        self._for_good = _in_effect.set_for_good(self)

    def _give_up_for_good(self) -> None:
        """What was set for the process is put back as it was: it is for a block or a function."""
        with self._lock:
            is_for_good, self._is_for_good = self._is_for_good, False
        if is_for_good:
            _in_effect.take_back(self, *self._for_good)

    def __enter__(self) -> "Slice":
        _in_effect.enter(self)
        self._give_up_for_good()
        return self

    def __exit__(self, *error: Any) -> None:
        _in_effect.leave(self)

    def __call__(self, function: _Function) -> _Function:
        self._give_up_for_good()
        if inspect.isasyncgenfunction(function):
            raise TypeError("an asynchronous generator can't be limited: put `with cuslice.slice(...)` into it")

        def limited(*arguments: Any, **named: Any) -> Any:
            with self:
                return function(*arguments, **named)

        def limited_generator(*arguments: Any, **named: Any) -> Any:
            with self:
                return (yield from function(*arguments, **named))

        async def limited_coroutine(*arguments: Any, **named: Any) -> Any:
            with self:
                return await function(*arguments, **named)

        wrapper: Any = limited  # typed as the function that it stands for
        if inspect.iscoroutinefunction(function):
            wrapper = limited_coroutine
        elif inspect.isgeneratorfunction(function):
            wrapper = limited_generator
        named: Any = functools.wraps(function)(wrapper)
        return cast(_Function, named)

    def __repr__(self) -> str:
        where = "" if self.gpu is None else f", gpu={self.gpu}"
        return f"<cuslice.slice of {text_of(self.bytes)}{where}>"


def count_all() -> None:
    """Has the memory of this process counted on each GPU, if CUDA isn't initialised yet, and limits it no further."""
    if not own_slices():
        Slice(_MOST, None)


def slice(size: Union[int, str], gpu: Optional[int] = None) -> Slice:
    """Has this process hold no more than `size` of each GPU, or of one.

    As a call, it holds from then on, until the next call for the same GPU:

        cuslice.slice("4GiB")

    Around a block or a function it holds within, and is as before afterwards:

        with cuslice.slice("2GiB"):
            ...

        @cuslice.slice("2GiB", gpu=0)
        def train(): ...

    `size` is a number of bytes, or a text such as "4GiB"; it counts what the process's limit counts, a context included
    unless that comes on top. The process never gets more than it was given. It holds for all of its threads; where
    several are in effect, in nested blocks or in other threads', the smallest does, and each ends with its own block.
    What is held already stays: until less is held, every allocation is refused. A child that was forked has the limit
    of that moment.

    The process has to run under cuslice; before CUDA is initialised it needs no limit of its own. Raises
    NotPreloadedError if it doesn't, RuntimeError where nothing is counted, TypeError and ValueError for what is no size
    or no GPU; then everything is as before. Thread-safe.
    """
    return Slice(size, gpu)
