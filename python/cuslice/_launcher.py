# SPDX-License-Identifier: Apache-2.0
"""Where the launcher is, what it is asked, and how it fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from typing import Any, Dict, List, Mapping, Optional, Sequence


class LauncherError(subprocess.SubprocessError):
    """The launcher didn't start the program, or couldn't answer.

    `returncode` is its exit code (64: the command line; 69: nothing to tell of; 75: the slice is taken; 78: a setting;
    126, 127: the program), `line` what it said, without "cuslice: ".
    """

    def __init__(self, returncode: int, line: str) -> None:
        super().__init__(returncode, line)
        self.returncode = returncode
        self.line = line

    def __str__(self) -> str:
        return f"{self.line} (cuslice ended with {self.returncode})"


class SliceTakenError(LauncherError):
    """Others hold the memory, and the program was not started: wait, or ask for less."""


class LauncherNotFoundError(FileNotFoundError):
    """There is no launcher beside this package, nor in PATH."""


def launcher_error(returncode: int, said: str) -> LauncherError:
    lines = [line[9:] if line.startswith("cuslice: ") else line for line in said.splitlines() if line]
    kind = SliceTakenError if returncode == 75 else LauncherError
    return kind(returncode, "\n".join(lines) or "it said nothing")


def installed_launcher() -> str:
    """The path of bin/cuslice, from pip's record of what it installed; "" if there is none."""
    try:
        installed = files("cuslice") or []
    except PackageNotFoundError:
        return ""
    for path in installed:
        if path.parts[-2:] == ("bin", "cuslice"):
            # Not the symbolic links' target: the libraries are found from the launcher itself.
            return os.path.normpath(str(path.locate()))
    return ""


def launcher() -> str:
    """The path of the launcher: the one that pip installed with this package, else the one in PATH."""
    path = installed_launcher() or shutil.which("cuslice")
    if not path:
        raise LauncherNotFoundError(2, "the launcher is neither installed with this package nor in PATH", "cuslice")
    return path


def _installed(name: str, mode: int) -> str:
    """The path of a file in lib/cuslice, the launcher's; "" if it can't be used in this way."""
    found = launcher()
    for path in (found, os.path.realpath(found)):
        for libraries in ("lib", "lib64"):
            file = os.path.join(os.path.dirname(os.path.dirname(path)), libraries, "cuslice", name)
            if os.access(file, mode):
                return file
    return ""


def fake_tool(name: str) -> str:
    """The path of a program in the fake GPU's folder, lib/cuslice/fake."""
    tool = _installed(os.path.join("fake", name), os.X_OK)
    if not tool:
        raise LauncherNotFoundError(2, "the installation has no fake GPU", name)
    return tool


def runtime_shim() -> str:
    """The path of the library that programs on the CUDA runtime need besides where a GPU is split."""
    library = _installed("libcuslice-runtime.so", os.R_OK)
    if not library:
        raise LauncherNotFoundError(2, "this installation is not whole", "libcuslice-runtime.so")
    return library


def ask(words: Sequence[str], environment: Optional[Mapping[str, str]] = None, tool: str = "") -> Any:
    """What the launcher, or another program of the installation, answers as JSON."""
    done = subprocess.run(
        [tool or launcher(), *words],
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        raise launcher_error(done.returncode, done.stderr.decode(errors="replace"))
    return json.loads(done.stdout)


def rows(answer: Any, key: str) -> List[Dict[str, Any]]:
    """The list of objects under `key`."""
    found: List[Dict[str, Any]] = answer[key]
    return found
