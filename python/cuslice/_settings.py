# SPDX-License-Identifier: Apache-2.0
"""The settings as parameters. Written by scripts/settings_tables.py from the launcher's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from cuslice._arguments import Fraction, Gpus, Path, PerGpu, PerGpuTime, PerGpuWord, Split

    class Settings(TypedDict, total=False):
        """Settings of a program; on a FakeMachine, too."""

        fraction: Optional[Fraction]
        limit: Optional[PerGpu]
        headroom: Optional[PerGpu]
        allocator: Optional[PerGpuWord]
        free: Optional[PerGpuWord]
        idle_release: Optional[PerGpuTime]
        no_framework_env: Optional[Union[bool, str]]
        gpus: Optional[Gpus]
        split: Optional[Split]
        oversubscribe: Optional[Union[bool, str]]
        redirect_runtime: Optional[str]
        group: Optional[str]
        group_limit: Optional[PerGpu]
        per_process: Optional[Union[bool, str]]
        admission: Optional[str]
        wait: Optional[Union[bool, float, str]]
        dir: Optional[Path]
        share: Optional[Fraction]
        share_cap: Optional[Fraction]
        share_quantum: Optional[Union[float, str]]
        log: Optional[Path]
        summary: Optional[Union[bool, str]]
        record: Optional[Path]
        record_stacks: Optional[Union[bool, str]]
        config: Optional[Path]
        driver: Optional[Path]
        runtime: Optional[Path]
        fake_kernels: Optional[str]

    class AllSettings(Settings, total=False):
        """Those that choose the machine besides."""

        fake: Optional[Path]
        fake_machine: Optional[str]


class Setting(NamedTuple):
    """A parameter's option, the type of its value, and whether a mapping gives each GPU its own."""

    option: str
    type: str
    per_gpu: bool


#: By parameter, in the launcher's order.
SETTINGS: Mapping[str, Setting] = {
    "fraction": Setting("fraction", "fraction", True),
    "limit": Setting("limit", "limit", True),
    "headroom": Setting("headroom", "size", True),
    "allocator": Setting("allocator", "choice", True),
    "free": Setting("free", "choice", True),
    "idle_release": Setting("idle-release", "duration", True),
    "no_framework_env": Setting("no-framework-env", "switch", False),
    "gpus": Setting("gpus", "gpus", False),
    "split": Setting("split", "split", True),
    "oversubscribe": Setting("oversubscribe", "switch", False),
    "redirect_runtime": Setting("redirect-runtime", "choice", False),
    "group": Setting("group", "group", False),
    "group_limit": Setting("group-limit", "limit", True),
    "per_process": Setting("per-process", "switch", False),
    "admission": Setting("admission", "choice", False),
    "wait": Setting("wait", "switch-or-duration", False),
    "dir": Setting("dir", "absolute-folder", False),
    "share": Setting("share", "percent", True),
    "share_cap": Setting("share-cap", "percent", True),
    "share_quantum": Setting("share-quantum", "duration", False),
    "log": Setting("log", "log", False),
    "summary": Setting("summary", "switch", False),
    "record": Setting("record", "absolute-file", False),
    "record_stacks": Setting("record-stacks", "switch", False),
    "config": Setting("config", "file", False),
    "driver": Setting("driver", "file", False),
    "runtime": Setting("runtime", "file", False),
    "fake": Setting("fake", "fake-gpus", False),
    "fake_kernels": Setting("fake-kernels", "choice", False),
    "fake_machine": Setting("fake-machine", "name", False),
}
