# SPDX-License-Identifier: Apache-2.0
"""What a process may use of the GPUs, and uses. No CUDA call is made in the process that asks."""

from __future__ import annotations

import ctypes
import os
import warnings
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from cuslice._launcher import ask, rows


@dataclass(frozen=True)
class GpuLimit:
    """One GPU that this process sees. Sizes in bytes."""

    device: int  #: as CUDA counts it
    name: str
    uuid: str
    total: int  #: what the GPU has
    limit: int  #: what the process sees as the total; `total` where nothing limits it
    usable: int  #: of the limit, what the program's own allocations can reach: less a context and the headroom
    can_allocate: Optional[int]  #: what the process can still have now; None where nobody knows
    gpu_free: Optional[int]  #: what is free on the GPU, for all; at most the limit. None where NVML has no figure
    used: Optional[int]  #: what this process holds, its contexts included; None without a limit, and with per-process
    job_used: Optional[int]  #: the same of all processes that share the limit
    origin: Optional[str]  #: where the limit came from, such as "--limit"; None where nothing limits it

    @property
    def free(self) -> Optional[int]:
        """The former name of `gpu_free`."""
        warnings.warn("free is gpu_free now; what can still be had is can_allocate", DeprecationWarning, stacklevel=2)
        return self.gpu_free

    @property
    def left(self) -> int:
        """The former name of `usable`."""
        warnings.warn("left is usable now; what can still be had is can_allocate", DeprecationWarning, stacklevel=2)
        return self.usable


@dataclass(frozen=True)
class Tally:
    """Bytes that rise and fall."""

    current: int
    peak: int  #: the most that `current` has been
    allocated: int  #: since the beginning
    freed: int  #: since the beginning


@dataclass(frozen=True)
class CacheStats:
    """What the caches of one GPU hold and have done: docs/allocator.md. Sizes in bytes."""

    device: Optional[int]  #: as CUDA counts it; None of another process
    gpu: Optional[str]  #: its UUID; None of this process
    allocated: Tally  #: what the program holds, as blocks are rounded
    requested: Tally  #: the same, as the program asked for it
    active: Tally  #: with what was freed and the GPU may still be using
    reserved: Tally  #: what the caches have from the driver
    allocations: int  #: that succeeded
    frees: int
    segments: int  #: pieces that `reserved` is made of
    retries: int  #: allocations that succeeded only after cached memory had been given back
    ooms: int  #: allocations that were refused
    syncs: int  #: waits for the GPU when memory was short
    largest_free: int  #: the largest free piece, within 3%
    own_memory: int  #: host memory that the caches need for themselves
    seconds_ago: float  #: when the figures were written; 0 of this process


_TALLIES = ("allocated", "requested", "active", "reserved")
_COUNTS = ("allocations", "frees", "segments", "retries", "ooms", "syncs", "largest_free", "own_memory")


class _TallyStruct(ctypes.Structure):
    # As include/cuslice.h has it.
    _fields_ = [(name, ctypes.c_uint64) for name in ("current", "peak", "allocated", "freed")]


class _StatsStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, _TallyStruct) for name in _TALLIES),
        *((name, ctypes.c_uint64) for name in _COUNTS),
    ]


def limit() -> List[GpuLimit]:
    """What this process may use of each GPU that it sees, and uses: in CUDA's order, in bytes.

    Asks the launcher, in processes of its own, which start a driver: some hundred milliseconds on a machine with GPUs.
    What other programs do meanwhile isn't in the answer. With `per-process` nobody outside knows what this process
    holds: `used`, `job_used` and `can_allocate` are None. Raises LauncherError, also where there is no GPU (69).
    """
    devices = rows(ask(["devices", "--json"]), "devices")
    places: Dict[str, List[Dict[str, Any]]] = {}
    for row in rows(ask(["ps", "--json"]), "processes"):
        if row["pid"] == os.getpid():
            places.setdefault(row["gpu"], []).append(row)
    limited = any(one["origin"] is not None for one in devices)
    # In no ledger: nobody else knows what such a process holds.
    alone = limited and not places and _is_alone()
    found = []
    for one in devices:
        own = places.get(one["uuid"], [])
        nothing = None if alone or one["origin"] is None else 0
        found.append(
            GpuLimit(
                device=one["ordinal"],
                name=one["name"],
                uuid=one["uuid"],
                total=one["total"],
                limit=one["limit"],
                usable=one["left"],
                can_allocate=None if alone else _can_allocate(one, own),
                gpu_free=one["free"],
                used=own[0]["used"] if own else nothing,
                job_used=own[0]["together"] if own else nothing,
                origin=one["origin"],
            )
        )
    return found


def _is_alone() -> bool:
    """True with the setting `per-process`."""
    settings = rows(ask(["config", "--json"]), "settings")
    return any(row["key"] == "per-process" and row["value"] == "yes" for row in settings)


def _can_allocate(device: Dict[str, Any], places: List[Dict[str, Any]]) -> Optional[int]:
    """What is free, at most what each limit leaves. Of a limit, a context that is still to come is taken off."""
    free: Optional[int] = device["free"]
    if free is None or device["origin"] is None:
        return free
    context = 0 if any(place["used"] for place in places) else device["context"]
    # Where as much is free as the limit, it may be more.
    room = [free - context if free < device["limit"] else free]
    kept = device["headroom"] + (0 if device["plus_context"] else context)
    together = max((place["together"] for place in places), default=0)
    room.append(device["limit"] - together - kept)
    room += [place["limit"] - place["together"] - kept for place in places if place["limit"] is not None]
    return max(0, min(room))


def stats(pid: Optional[int] = None) -> List[CacheStats]:
    """What the caches of a process hold, for each GPU that memory is cached on; `pid` None is this process.

    Of this process the figures are exact, and come from the preloaded library without a CUDA call. The list is empty
    where nothing is cached: without cuslice, where `allocator` is direct, before CUDA is started. Of another process
    they are as `cuslice stats` has them; raises LauncherError (69) where it keeps no cache, or isn't there.
    """
    if pid is None or pid == os.getpid():
        return _own_stats()
    found = []
    for one in rows(ask(["stats", str(pid), "--json"]), "gpus"):
        figures: Dict[str, Any] = {name: Tally(**one[name]) for name in _TALLIES}
        figures.update({name: one[name] for name in _COUNTS})
        found.append(CacheStats(device=None, gpu=one["gpu"], seconds_ago=one["seconds_ago"], **figures))
    return found


def _own_stats() -> List[CacheStats]:
    function = getattr(ctypes.CDLL(None), "cuslice_memory_stats", None)
    if function is None:
        return []
    function.argtypes = [ctypes.c_int, ctypes.POINTER(_StatsStruct)]
    found = []
    device = 0
    while True:
        filled = _StatsStruct(size=ctypes.sizeof(_StatsStruct))
        code = function(device, ctypes.byref(filled))
        if code == 0:
            figures: Dict[str, Any] = {name: getattr(filled, name) for name in _COUNTS}
            for name in _TALLIES:
                one = getattr(filled, name)
                figures[name] = Tally(one.current, one.peak, one.allocated, one.freed)
            found.append(CacheStats(device=device, gpu=None, seconds_ago=0.0, **figures))
        elif code != 801:  # 801: nothing is cached on this one
            return found
        device += 1
