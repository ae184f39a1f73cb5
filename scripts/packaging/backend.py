# SPDX-License-Identifier: Apache-2.0
"""The build backend that pyproject.toml names: scikit-build-core's, on a machine that has what a build needs.

Where a compiler is missing, one line says so before anything is built. The headers of CUDA come as requirements of the
build, in an environment of pip's; those of CLI11, nlohmann-json and toml++ from the machine, or else out of Debian's
packages, which anybody may download and unpack.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Dict, Iterator, List, NoReturn, Optional

from scikit_build_core import build as scikit
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

Settings = Optional[Dict[str, Any]]

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# A header of each library, and Debian's package of it.
HEADERS = {
    "CLI/CLI.hpp": "libcli11-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "toml++/toml.h": "libtomlplusplus-dev",
}
COMPILERS = ("c++", "g++", "clang++")


def refuse(line: str) -> NoReturn:
    sys.exit(f"cuslice can't be built here: {line}")


def is_staged(settings: Settings) -> bool:
    """True if the wheel is made of an installation, for which nothing is compiled."""
    return "cmake.source-dir" in (settings or {})


def compiler() -> str:
    """The C++ compiler that CMake will take; "" if there is none."""
    asked = os.environ.get("CXX", "").split()
    return next(filter(None, map(shutil.which, asked[:1] or COMPILERS)), "")


def include_folders() -> List[pathlib.Path]:
    """Where CMake looks for headers."""
    listed = os.environ.get("CMAKE_INCLUDE_PATH", "").split(os.pathsep)
    prefixes = os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep) + ["/usr", "/usr/local"]
    prefixes += [str(pathlib.Path(folder).parent) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    return [pathlib.Path(folder) for folder in listed if folder] + [
        pathlib.Path(prefix, "include") for prefix in prefixes if prefix
    ]


def missing_packages() -> List[str]:
    """Debian's packages of the headers that aren't here."""
    folders = include_folders()
    return [package for header, package in HEADERS.items() if not any((one / header).is_file() for one in folders)]


def check_machine() -> None:
    """Ends with one line if a build has no chance."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        refuse(f"it is written for Linux on x86_64 and aarch64, and this is {sys.platform} on {platform.machine()}")
    packages = missing_packages()
    found = compiler()
    if not found:
        asked = os.environ.get("CXX")
        what = f"CXX={asked} is no program" if asked else "there is no C++ compiler"
        refuse(f"{what}. On Debian and Ubuntu: apt-get install {' '.join(['g++', *packages])}")
    if packages and not shutil.which("apt-get"):
        refuse(
            f"headers of {', '.join(packages)} (Debian's names) are missing. Install them, or name the folder that has "
            "them in CMAKE_INCLUDE_PATH"
        )


def cuda_requirements() -> List[str]:
    """NVIDIA's packages of headers, in the versions that CMake takes as well."""
    text = (SOURCE / "scripts/cmake/CudaHeaders.cmake").read_text()
    return re.findall(r"nvidia-[a-z-]+==[0-9.]+", text)


def cuda_folder() -> str:
    """The folder of CUDA's headers in this environment; "" where they were not asked for, as without isolation."""
    for folder in map(pathlib.Path, sys.path):
        include = folder / "nvidia/cu13/include"
        if (include / "cuda.h").is_file() and (include / "nvml.h").is_file():
            return str(include)
    return ""


@contextlib.contextmanager
def headers() -> Iterator[None]:
    """Brings the headers that are missing into a folder that CMake looks in, for as long as it builds."""
    packages = missing_packages()
    if not packages:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [SOURCE / "scripts/debian_headers.sh", folder, *packages],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            refuse(f"{', '.join(packages)} can't be downloaded. As root: apt-get install {' '.join(packages)}")
        before = os.environ.get("CMAKE_INCLUDE_PATH", "")
        os.environ["CMAKE_INCLUDE_PATH"] = os.pathsep.join(filter(None, (f"{folder}/root/usr/include", before)))
        try:
            yield
        finally:
            os.environ["CMAKE_INCLUDE_PATH"] = before


def with_cuda(settings: Settings) -> Dict[str, Any]:
    """The settings, with this environment's headers of CUDA where no others are named."""
    own = dict(settings or {})
    folder = cuda_folder()
    if folder:
        own.setdefault("cmake.define.CUSLICE_CUDA_INCLUDE", folder)
    return own


def get_requires_for_build_wheel(config_settings: Settings = None) -> List[str]:
    required = scikit.get_requires_for_build_wheel(config_settings)
    if is_staged(config_settings):
        return required
    check_machine()
    named = "cmake.define.CUSLICE_CUDA_INCLUDE" in (config_settings or {})
    return required if named else [*required, *cuda_requirements()]


@contextlib.contextmanager
def prepared(settings: Settings) -> Iterator[Settings]:
    """The settings to build with, while the machine has all that a build needs."""
    if is_staged(settings):
        yield settings
        return
    check_machine()
    with headers():
        yield with_cuda(settings)


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    with prepared(config_settings) as settings:
        return scikit.build_wheel(wheel_directory, settings, metadata_directory)


def get_requires_for_build_editable(config_settings: Settings = None) -> List[str]:
    return get_requires_for_build_wheel(config_settings)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None
) -> str:
    with prepared(config_settings) as settings:
        return scikit.build_editable(wheel_directory, settings, metadata_directory)
