# SPDX-License-Identifier: Apache-2.0
"""Slices for the workers of Ray: `num_gpus=0.25` has a quarter of the GPU's memory, and the library keeps it to that.

On each node, before Ray is started there:

    export RAY_RUNTIME_ENV_PLUGINS='[{"class": "cuslice.ray.Plugin"}]'

In the program, for all of its tasks and actors, or in the runtime_env of one of them:

    ray.init(runtime_env=cuslice.ray.runtime_env())                # of each GPU what num_gpus says
    @ray.remote(num_gpus=0.25, runtime_env=cuslice.ray.runtime_env(limit="4GiB"))

docs/schedulers/ray.md has the rest. Ray is imported by whoever imports this module, and by nothing else of the package.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ray._private.ray_constants import WORKER_PROCESS_SETUP_HOOK_ENV_VAR as _HOOK
from ray._private.runtime_env.plugin import RuntimeEnvPlugin

from cuslice._launcher import runtime_shim
from cuslice._numbers import GpuNumbers
from cuslice._run import words_of

#: The value of `fraction` that stands for the num_gpus of the task or actor.
NUM_GPUS = "num_gpus"

#: What may stand in the field "cuslice" of a runtime_env. Ray chooses the GPUs, and numbers whole ones.
_KEYS = (
    "fraction",
    "limit",
    "virtual_gpu",
    "allocator",
    "headroom",
    "group",
    "group_limit",
    "log",
    "record",
    "summary",
)
_OUR_HOOK = "cuslice.ray.setup_worker"
# Variables of the worker. They don't begin with CUSLICE_, which the library would take for settings.
_HANDED = "RAY_CUSLICE_SETTINGS"
_NEXT_HOOK = "RAY_CUSLICE_NEXT_HOOK"
# The launcher preloads the runtime shim ($0) only where its own settings split a GPU, which the hook does later. It has
# its place behind the library, and before any CUDA runtime.
_WITH_RUNTIME_SHIM = 'first=${LD_PRELOAD%%:*}; LD_PRELOAD=$first:$0${LD_PRELOAD#"$first"} exec "$@"'


def _checked(settings: Any) -> Dict[str, Any]:
    """The settings with the default filled in. Raises ValueError, which Ray shows to whoever asked for the worker."""
    if settings is True:
        settings = {}
    if not isinstance(settings, Mapping):
        raise ValueError(f"runtime_env: cuslice: {settings!r}: a dictionary is expected, such as {{'limit': '4GiB'}}")
    for key in settings:
        if key not in _KEYS:
            raise ValueError(f"runtime_env: cuslice: {key}: no such key; there are: {', '.join(_KEYS)}")
    found = {key: value for key, value in settings.items() if value is not None}
    if "fraction" in found and "limit" in found:
        raise ValueError("runtime_env: cuslice: fraction and limit say the same: leave one out")
    if not isinstance(found.setdefault("virtual_gpu", False), bool):
        raise ValueError(f"runtime_env: cuslice: virtual_gpu: {found['virtual_gpu']!r}: True or False is expected")
    if "fraction" not in found and "limit" not in found:
        found["fraction"] = NUM_GPUS
    return found


def _launcher_words(settings: Mapping[str, Any]) -> List[str]:
    """`cuslice run` with the options that hold for the worker from its first instruction on."""
    fixed = {key: value for key, value in settings.items() if not (key == "fraction" and value == NUM_GPUS)}
    virtual = fixed.pop("virtual_gpu")
    try:
        words = words_of(**fixed)
        return [*words, "sh", "-c", _WITH_RUNTIME_SHIM, runtime_shim()] if virtual else words
    except (TypeError, ValueError) as error:
        raise ValueError(f"runtime_env: cuslice: {error}") from error


def runtime_env(
    base: Optional[Mapping[str, Any]] = None,
    *,
    fraction: Any = None,
    limit: Any = None,
    virtual_gpu: Optional[bool] = None,
    allocator: Optional[str] = None,
    headroom: Any = None,
    group: Optional[str] = None,
    group_limit: Any = None,
    log: Optional[str] = None,
    record: Optional[str] = None,
    summary: Optional[bool] = None,
) -> Dict[str, Any]:
    """A runtime_env for ray.init(), a task or an actor, whose workers each have a slice.

    Without `fraction` and `limit`, or with fraction="num_gpus", a worker has of each of its GPUs the share that its
    task's or actor's num_gpus says: 0.25 a quarter, a whole number whole GPUs without a limit, 0 no GPU. With
    virtual_gpu, a slice is a GPU of its own, with a UUID and a PCI id that no other worker's has. The others are the
    options of `cuslice run`, as for cuslice.popen(). `base` is a runtime_env that these are added to.

    A node that was started without the plugin doesn't run such a worker. Raises ValueError if a setting is wrong.
    """
    given = {
        "fraction": fraction,
        "limit": limit,
        "virtual_gpu": virtual_gpu,
        "allocator": allocator,
        "headroom": headroom,
        "group": group,
        "group_limit": group_limit,
        "log": log,
        "record": record,
        "summary": summary,
    }
    made = dict(base or {})
    made["cuslice"] = _checked(given)
    # With a hook of the user's own Ray wants this variable for itself; then the plugin chains the two.
    if "worker_process_setup_hook" not in made:
        made["env_vars"] = {_HOOK: _OUR_HOOK, **made.get("env_vars", {})}
    return made


class Plugin(RuntimeEnvPlugin):
    """The field "cuslice" of a runtime_env: starts its workers through `cuslice run`.

    RAY_RUNTIME_ENV_PLUGINS names it, in the environment of each node. Ray's agent there calls it for each new
    runtime_env.
    """

    name = "cuslice"
    #: After all others, which may choose the Python that is started.
    priority = 90

    @staticmethod
    def validate(runtime_env_dict: Mapping[str, Any]) -> None:
        settings = _checked(runtime_env_dict["cuslice"])
        for other in ("image_uri", "container"):
            if runtime_env_dict.get(other):
                raise ValueError(f"runtime_env: cuslice: not together with {other}: preload the library in the image")
        _launcher_words(settings)

    def modify_context(self, uris: List[str], runtime_env: Mapping[str, Any], context: Any, logger: Any) -> None:
        settings = _checked(runtime_env["cuslice"])
        words = " ".join(shlex.quote(word) for word in _launcher_words(settings))
        context.py_executable = f"{words} {context.py_executable}"
        variables = dict(context.env_vars)
        if variables.get(_HOOK, _OUR_HOOK) != _OUR_HOOK:
            variables[_NEXT_HOOK] = variables[_HOOK]
        variables[_HOOK] = _OUR_HOOK
        variables[_HANDED] = json.dumps(settings)
        context.env_vars = variables
        logger.info(f"cuslice: workers are started by: {words}")


class _Lease:
    """The slice of one worker, as far as it depends on what Ray leases: known when a task is about to run."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._by_num_gpus = settings.get("fraction") == NUM_GPUS
        # Fake GPUs are those of their machine alone.
        shared = os.environ.get("CUSLICE_FAKE_DIR", "/dev/shm")
        self._numbers = GpuNumbers(shared) if settings.get("virtual_gpu") else None
        self._outer = os.environ.get("CUSLICE_JOB")
        self._job = f"ray-{os.getpid()}-{os.urandom(4).hex()}"
        self._holds = "no GPU"
        self._write(0, None)

    def _write(self, share: float, number: Optional[int]) -> None:
        """The library reads these when CUDA or NVML is first called, and so do the worker's children."""
        os.environ.pop("CUSLICE_SPLIT", None)
        if number is not None:
            # One part of each GPU, as large as the slice: the GPUs keep their places, so that Ray's numbers of them
            # hold, also where Ray Train shows a worker those of others.
            os.environ["CUSLICE_SPLIT"] = f"rest#{number}"
        if not self._by_num_gpus:
            return
        for name in ("CUSLICE_GPUS", "CUSLICE_FRACTION", "CUSLICE_JOB"):
            os.environ.pop(name, None)
        if self._outer:
            os.environ["CUSLICE_JOB"] = self._outer
        if share == 0:
            os.environ["CUSLICE_GPUS"] = "none"
        elif share < 1:
            os.environ["CUSLICE_FRACTION"] = f"{share:.9f}"
            os.environ["CUSLICE_JOB"] = f"{self._outer},{self._job}" if self._outer else self._job

    def _number(self, share: float, gpus: Sequence[str]) -> Optional[int]:
        """Of the worker's virtual GPUs; None if it has whole ones, or none."""
        if self._numbers is None:
            return None
        self._numbers.give_back()
        if not gpus or (self._by_num_gpus and not 0 < share < 1):
            return None
        for gpu in gpus:
            if not gpu.isdecimal():
                raise RuntimeError(
                    f"cuslice: virtual_gpu: GPU {gpu} can't be split: it is a part of a GPU already (MIG), or the node "
                    "was started with UUIDs in CUDA_VISIBLE_DEVICES, where indices are needed"
                )
        return self._numbers.take(gpus)

    def take(self, share: float, gpus: Sequence[str]) -> None:
        """`gpus` are Ray's numbers of them. Raises RuntimeError where CUDA runs with another slice: then Ray ends the
        worker, and starts the task in another one as often as its max_retries says."""
        wanted = "GPU " + ",".join(gpus) if share else "no GPU"
        if share and self._by_num_gpus:
            wanted = f"{share} of {wanted}"
        if not _driver_is_loaded():
            self._write(share, self._number(share, gpus))
            self._holds = wanted
        elif share and self._holds != wanted:
            raise RuntimeError(
                f"cuslice: this worker has started CUDA or NVML with {self._holds}, and can't have {wanted} any more: "
                "it ends, and Ray starts the task in another one. Name num_gpus in the decorator, "
                "@ray.remote(num_gpus=…), and Ray takes a fresh worker at once"
            )


def _driver_is_loaded() -> bool:
    """Whether the library has read its settings: the driver, or NVML, is in the process beside the library's stubs."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line[line.index("/") :].strip() for line in maps if "/" in line}
    ours = {os.path.dirname(path) for path in paths if os.path.basename(path) == "libcuslice.so"}
    return any(
        os.path.basename(path).startswith(("libcuda.so", "libnvidia-ml.so")) and os.path.dirname(path) not in ours
        for path in paths
    )


def setup_worker() -> None:
    """Ray's worker_process_setup_hook: makes sure that the worker is in a slice, and then calls the user's own hook.

    The plugin names it by itself. Raises RuntimeError, which ends the worker, where the plugin or the library is not
    there.
    """
    handed = os.environ.get(_HANDED)
    if handed is None:
        raise RuntimeError(
            "cuslice: this node was started without the plugin: before `ray start`, set "
            'RAY_RUNTIME_ENV_PLUGINS=\'[{"class": "cuslice.ray.Plugin"}]\''
        )
    if not hasattr(ctypes.CDLL(None), "cuslice_memory_stats"):
        raise RuntimeError("cuslice: the library is not preloaded into this worker: see `cuslice doctor`")
    settings = json.loads(handed)
    if settings.get("fraction") == NUM_GPUS or settings.get("virtual_gpu"):
        _follow_leases(settings)
    theirs = os.environ.pop(_NEXT_HOOK, None)
    if theirs:
        from ray._private.runtime_env.setup_hook import load_and_execute_setup_hook

        error = load_and_execute_setup_hook(theirs)
        if error is not None:
            raise RuntimeError(error)


def _follow_leases(settings: Mapping[str, Any]) -> None:
    # Ray calls this one before each task and each actor's constructor, when the lease is known and the user's code
    # hasn't run. If a later Ray has no such function this raises, and no worker runs without a limit.
    import ray
    from ray._private import utils

    lease, set_ids = _Lease(settings), utils.set_visible_accelerator_ids

    def set_ids_and_take_slice() -> Any:
        before = set_ids()
        context = ray.get_runtime_context()
        share = context.get_assigned_resources().get("GPU", 0)
        lease.take(share, context.get_accelerator_ids().get("GPU", []))
        return before

    utils.set_visible_accelerator_ids = set_ids_and_take_slice
