# SPDX-License-Identifier: Apache-2.0
"""pytest on fake GPUs.

`pytest --fake-gpus 4xh200` runs the tests on a machine of four fake H200 of its own: pytest starts itself anew under
`cuslice run`, before anything has loaded CUDA. Each worker of pytest-xdist has a machine for itself. The fixture
`fake_machine` is a machine for one test: the programs that the test starts through it run there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Dict, Generator, List, Optional

import pytest

from cuslice._launcher import LauncherNotFoundError, launcher
from cuslice._restart import become, command_line
from cuslice._size import bytes_of, text_of
from cuslice._slice import OwnSlice, count_all, is_preloaded, own_slices, slice
from cuslice.fake import FakeMachine, OwnMachine

# Set in the process that was started anew: exec keeps its id. No name that begins with CUSLICE_, which
# the library would take for a setting that it doesn't know.
_STARTED = "PYTEST_CUSLICE_STARTED"
_WORKER = "PYTEST_XDIST_WORKER"
# As a module and as a script.
_NAMES = ("pytest", "py.test")


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("cuslice", "fake GPUs (cuslice)")
    group.addoption(
        "--fake-gpus",
        metavar="GPUS",
        default=None,
        help="run the tests on fake GPUs: 4xh200, 2xa100-40g,1xt4, or a TOML file",
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "fake_gpus(gpus): the GPUs of the fixture fake_machine, such as '4xh200'")
    config.addinivalue_line("markers", "gpu_memory(size): a test that takes more of a GPU's memory, as '2GiB', fails")


def pytest_collection_modifyitems(items: List[Any]) -> None:
    # Memory is counted from the start of CUDA or not at all.
    if is_preloaded() and any(item.get_closest_marker("gpu_memory") for item in items):
        count_all()


def _under_coverage() -> bool:
    coverage = sys.modules.get("coverage")
    current = getattr(getattr(coverage, "Coverage", None), "current", None)
    return current is not None and current() is not None


def _program(arguments: List[str]) -> List[str]:
    """What starts this pytest anew: as it was started, with what runs it (`coverage run -m pytest`). A program that
    calls pytest.main() has done other things before, and is not repeated unless its coverage would be lost.
    """
    started = command_line()[1:]
    before = started[: len(started) - len(arguments)]
    is_pytest = started == before + arguments and bool(before) and os.path.basename(before[-1]) in _NAMES
    if is_pytest or _under_coverage():
        return started
    # As a script pytest doesn't have the current folder in its path, as a module it has.
    script = sys.argv[0] if os.path.basename(sys.argv[0]) in _NAMES else None
    return [*([script] if script else ["-m", "pytest"]), *arguments]


def _words(config: Any, gpus: str) -> List[str]:
    """The command line that starts this pytest under the launcher."""
    started = config.invocation_params
    if started.plugins:
        raise pytest.UsageError(
            "--fake-gpus: a program that hands objects to pytest.main() can't be started anew; "
            f"start it with: cuslice run --fake {gpus} --fake-machine new -- ..."
        )
    try:
        words = [launcher(), "run", "--fake", gpus, "--fake-machine", "new", "--", sys.executable]
    except LauncherNotFoundError as error:
        raise pytest.UsageError(f"--fake-gpus: {error.strerror}") from error
    return [*words, *_program([str(argument) for argument in started.args])]


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Generator[None, None, None]:
    # First of all: a conftest.py may load CUDA, and pytest's capturing would take stdout from what follows.
    gpus: Optional[str] = early_config.known_args_namespace.fake_gpus
    if gpus:
        if os.environ.get(_WORKER):
            # The driver looks for the folder when CUDA is started. It goes with the session's.
            if "/worker." not in os.environ.get("CUSLICE_FAKE_DIR", "/worker."):
                os.environ["CUSLICE_FAKE_DIR"] += f"/worker.{os.environ[_WORKER]}"
        elif os.environ.get(_STARTED) != str(os.getpid()):
            words = _words(early_config, gpus)
            os.environ[_STARTED] = str(os.getpid())
            become(words)
    yield


def _memory_of(item: Any) -> Optional[int]:
    """What the marker gpu_memory allows a test to take, in bytes; None without one."""
    marker = item.get_closest_marker("gpu_memory")
    if marker is None:
        return None
    if len(marker.args) != 1 or marker.kwargs:
        raise pytest.UsageError(f"{item.nodeid}: gpu_memory takes one size, as gpu_memory('2GiB')")
    return bytes_of(marker.args[0], "gpu_memory")


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, Any, None]:
    most = _memory_of(pyfuncitem)
    if most is None:
        yield
        return
    before = {one.device: one for one in own_slices()}
    limits = [slice(one.used + most, one.device) for one in before.values()] or [slice(most)]
    with contextlib.ExitStack() as stack:
        for one in limits:
            stack.enter_context(one)
        outcome = yield
        taken = [_told(one, before.get(one.device), most) for one in own_slices()]
    pyfuncitem.cuslice_taken = "\n".join(filter(None, taken))
    if outcome.excinfo is not None and pyfuncitem.cuslice_taken:
        pyfuncitem.add_report_section("call", "gpu_memory", pyfuncitem.cuslice_taken)


def _told(after: OwnSlice, before: Optional[OwnSlice], most: int) -> str:
    """A line if the process was refused memory meanwhile, else nothing."""
    count = after.refused - (before.refused if before else 0)
    if count == 0:
        return ""
    return (
        f"GPU {after.device}: the test took more than {text_of(most)}: {count} request{'s were' if count > 1 else ' was'} "
        f"refused. The process held {text_of(before.used if before else 0)} before it, and {text_of(after.used)} at its "
        f"end, {text_of(after.driver)} of these by contexts and modules"
    )


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: Any) -> None:
    # After the test, and only where it has passed so far: a failure that never happened makes it fail, and memory that
    # it was refused.
    if item.get_closest_marker("gpu_memory"):
        taken = getattr(item, "cuslice_taken", "the marker gpu_memory is for test functions, and this is none")
        if taken:
            pytest.fail(taken, pytrace=False)
    for value in getattr(item, "funcargs", {}).values():
        if isinstance(value, FakeMachine):
            value.check_failures()


def _gpus_of(request: Any) -> str:
    marker = request.node.get_closest_marker("fake_gpus")
    return str(marker.args[0]) if marker else str(request.config.getoption("--fake-gpus") or "1xt4")


@pytest.fixture
def fake_machine(request: Any) -> Generator[FakeMachine, None, None]:
    """A machine of fake GPUs for one test: FakeMachine. Programs that the test starts through it see its GPUs.

    The marker `@pytest.mark.fake_gpus("2xa100-40g")` sets its GPUs, else --fake-gpus does; without both it has one T4.
    """
    machine = FakeMachine(_gpus_of(request))
    try:
        yield machine
    finally:
        machine.close()


@pytest.fixture
def fake_gpus(request: Any) -> Generator[FakeMachine, None, None]:
    """The machine that the tests themselves are on with --fake-gpus; skips the test without it.

    `fake_gpus.held(pid=os.getpid())` is what the test's own process holds. What earlier tests of the process have left
    behind is there too. `fake_gpus.fail("cuMemAlloc", 1)` lets the next call of this process fail, until the test ends.
    """
    gpus = request.config.getoption("--fake-gpus")
    if not gpus:
        pytest.skip("needs --fake-gpus")
    machine = OwnMachine(gpus)
    try:
        yield machine
    finally:
        machine._drop_failures()
