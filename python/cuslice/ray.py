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
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ray._private.ray_constants import WORKER_PROCESS_SETUP_HOOK_ENV_VAR as _HOOK
from ray._private.runtime_env.plugin import RuntimeEnvPlugin

from cuslice._run import words_of

#: The value of `fraction` that stands for the num_gpus of the task or actor.
NUM_GPUS = "num_gpus"

#: What may stand in the field "cuslice" of a runtime_env. Ray chooses the GPUs, and numbers whole ones.
_KEYS = ("fraction", "limit", "allocator", "headroom", "group", "group_limit", "log", "record", "summary")
_OUR_HOOK = "cuslice.ray.setup_worker"
# Variables of the worker. They don't begin with CUSLICE_, which the library would take for settings.
_HANDED = "RAY_CUSLICE_SETTINGS"
_NEXT_HOOK = "RAY_CUSLICE_NEXT_HOOK"


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
    if "fraction" not in found and "limit" not in found:
        found["fraction"] = NUM_GPUS
    return found


def _launcher_words(settings: Mapping[str, Any]) -> List[str]:
    """`cuslice run` with the options that hold for the worker from its first instruction on."""
    fixed = {key: value for key, value in settings.items() if not (key == "fraction" and value == NUM_GPUS)}
    try:
        return words_of(**fixed)
    except (TypeError, ValueError) as error:
        raise ValueError(f"runtime_env: cuslice: {error}") from error


def runtime_env(
    base: Optional[Mapping[str, Any]] = None,
    *,
    fraction: Any = None,
    limit: Any = None,
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
    task's or actor's num_gpus says: 0.25 a quarter, a whole number whole GPUs without a limit, 0 no GPU. The others are
    the options of `cuslice run`, as for cuslice.popen(). `base` is a runtime_env that these are added to.

    A node that was started without the plugin doesn't run such a worker. Raises ValueError if a setting is wrong.
    """
    given = {
        "fraction": fraction,
        "limit": limit,
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
    """The slice of one worker under fraction="num_gpus". What Ray leases it is known when a task is about to run."""

    def __init__(self) -> None:
        self._outer = os.environ.get("CUSLICE_JOB")
        self._job = f"ray-{os.getpid()}-{os.urandom(4).hex()}"
        self._holds: Optional[Tuple[float, str]] = None
        self._write(0)

    def _write(self, share: float) -> None:
        """The library reads these when CUDA or NVML is first called, and so do the worker's children."""
        for name in ("CUSLICE_GPUS", "CUSLICE_FRACTION", "CUSLICE_JOB"):
            os.environ.pop(name, None)
        if self._outer:
            os.environ["CUSLICE_JOB"] = self._outer
        if share == 0:
            os.environ["CUSLICE_GPUS"] = "none"
        elif share < 1:
            os.environ["CUSLICE_FRACTION"] = f"{share:.9f}"
            os.environ["CUSLICE_JOB"] = f"{self._outer},{self._job}" if self._outer else self._job

    def take(self, share: float, gpus: str) -> None:
        """`gpus` is CUDA_VISIBLE_DEVICES. Raises RuntimeError where CUDA runs with another slice: then Ray ends the
        worker, and starts the task in another one as often as its max_retries says."""
        if not _driver_is_loaded():
            self._write(share)
            self._holds = (share, gpus)
        elif share and self._holds != (share, gpus):
            held = "no GPU" if not self._holds or not self._holds[0] else "{} of GPU {}".format(*self._holds)
            raise RuntimeError(
                f"cuslice: this worker has started CUDA or NVML with {held}, and can't have {share} of GPU {gpus} any "
                "more: it ends, and Ray starts the task in another one. Name num_gpus in the decorator, "
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
    if json.loads(handed).get("fraction") == NUM_GPUS:
        _follow_leases()
    theirs = os.environ.pop(_NEXT_HOOK, None)
    if theirs:
        from ray._private.runtime_env.setup_hook import load_and_execute_setup_hook

        error = load_and_execute_setup_hook(theirs)
        if error is not None:
            raise RuntimeError(error)


def _follow_leases() -> None:
    # Ray calls this one before each task and each actor's constructor, when the lease is known and the user's code
    # hasn't run. If a later Ray has no such function this raises, and no worker runs without a limit.
    import ray
    from ray._private import utils

    lease, set_ids = _Lease(), utils.set_visible_accelerator_ids

    def set_ids_and_take_slice() -> Any:
        before = set_ids()
        share = ray.get_runtime_context().get_assigned_resources().get("GPU", 0)
        lease.take(share, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        return before

    utils.set_visible_accelerator_ids = set_ids_and_take_slice
