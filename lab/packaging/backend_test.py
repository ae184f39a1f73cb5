#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines that pip shows of a machine, and the sources that it packs:  backend_test.py SOURCE

Needs scikit-build-core, which scripts/setup.sh tests puts into build/pytest; 77, skipped, without it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path[:0] = [
    str(SOURCE / "scripts/packaging"),
    *map(str, (SOURCE / "build/pytest").glob("lib/python3*/site-packages")),
]
sys.path[:0] = [str(SOURCE / "scripts/release"), str(SOURCE / "tests/checks")]
try:
    import hatch_fancy_pypi_readme  # noqa: F401
    import scikit_build_core  # noqa: F401
except ImportError as missing:
    print(f"SKIPPED: {missing}: scripts/setup.sh tests")
    sys.exit(77)
import backend  # noqa: E402
import changelog  # noqa: E402
import packages  # noqa: E402

STAGED = {"cmake.source-dir": "scripts/packaging/staged"}
ALL = "libcli11-dev nlohmann-json3-dev libtomlplusplus-dev"


class Backend(unittest.TestCase):
    def setUp(self):
        owner = tempfile.TemporaryDirectory()
        self.addCleanup(owner.cleanup)
        self.folder = pathlib.Path(owner.name)
        # As pip calls a backend.
        before = os.getcwd()
        os.chdir(SOURCE)
        self.addCleanup(os.chdir, before)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        kept = {name: value for name, value in os.environ.items() if not re.match("(C|CXX|CMAKE_.*|CUSLICE_.*)$", name)}
        patched = mock.patch.dict(os.environ, {**kept, "PATH": str(self.bin)}, clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        # No header is in any folder but those that a test makes.
        self.headers = self.folder / "include"
        looked = mock.patch.object(backend, "include_folders", lambda: [self.headers])
        looked.start()
        self.addCleanup(looked.stop)

    def program(self, name, text="exit 0"):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def header(self, name):
        path = self.headers / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def refused(self):
        with self.assertRaises(SystemExit) as ended:
            backend.get_requires_for_build_wheel()
        return str(ended.exception)

    def test_one_line_says_that_there_is_no_compiler(self):
        said = "cuslice can't be built here: there is no C++ compiler. On Debian and Ubuntu: apt-get install g++"
        self.assertEqual(self.refused(), f"{said} {ALL}")
        for name in backend.HEADERS:
            self.header(name)
        self.assertEqual(self.refused(), said)
        os.environ["CXX"] = "nowhere -O2"
        self.assertIn("CXX=nowhere -O2 is no program", self.refused())
        self.program("nowhere")
        backend.check_machine()

    def test_headers_that_nothing_can_bring_are_named(self):
        self.program("g++")
        self.header("CLI/CLI.hpp")
        self.assertIn("headers of nlohmann-json3-dev, libtomlplusplus-dev (Debian's names) are missing", self.refused())
        self.program("apt-get")
        backend.check_machine()

    def test_another_system_is_refused(self):
        with mock.patch.object(backend.platform, "machine", lambda: "riscv64"):
            self.assertIn("this is linux on riscv64", self.refused())

    def test_cudas_headers_are_required_in_the_versions_that_cmake_takes(self):
        self.program("c++")
        self.program("apt-get")
        required = backend.get_requires_for_build_wheel()
        cuda = [one for one in required if one.startswith("nvidia-")]
        text = (SOURCE / "scripts/cmake/CudaHeaders.cmake").read_text()
        self.assertEqual(len(cuda), 4)
        for one in cuda:
            self.assertIn(one, text)
        named = backend.get_requires_for_build_wheel({"cmake.define.CUSLICE_CUDA_INCLUDE": "/opt/cuda/include"})
        self.assertEqual(named, [one for one in required if one not in cuda])

    def test_a_wheel_of_an_installation_needs_no_compiler(self):
        self.assertEqual([one for one in backend.get_requires_for_build_wheel(STAGED) if one.startswith("nvidia-")], [])

    def test_nothing_is_asked_of_the_machine_for_an_installation(self):
        with backend.prepared(STAGED) as settings:
            self.assertEqual(settings, STAGED)
        with self.assertRaisesRegex(SystemExit, "there is no C\\+\\+ compiler"), backend.prepared(None):
            self.fail("there is no compiler")

    def test_cmake_gets_the_headers_of_the_environment(self):
        include = self.folder / "nvidia/cu13/include"
        include.mkdir(parents=True)
        with mock.patch.object(sys, "path", [str(self.folder)]):
            self.assertEqual(backend.with_cuda({"a": "b"}), {"a": "b"})
            for name in ("cuda.h", "nvml.h"):
                (include / name).write_text("")
            key = "cmake.define.CUSLICE_CUDA_INCLUDE"
            self.assertEqual(backend.with_cuda(None), {key: str(include)})
            self.assertEqual(backend.with_cuda({key: "/opt"}), {key: "/opt"})

    def test_missing_headers_are_there_while_it_builds(self):
        self.header("CLI/CLI.hpp")
        os.environ["CMAKE_INCLUDE_PATH"] = "/before"
        os.environ["PATH"] = f"{self.bin}:/usr/bin:/bin"
        # As apt-get does it where the lists are missing: at first it fails.
        self.program(
            "apt-get",
            f'case "$*" in *update*) touch {self.folder}/lists ;; *download*) [ -e {self.folder}/lists ] || exit 100\n'
            'for name; do case $name in lib*|nlo*) touch "$name.deb" ;; esac; done ;; esac',
        )
        self.program("dpkg-deb", 'mkdir -p "$3/usr/include" && touch "$3/usr/include/$(basename "$2" .deb)"')
        with backend.headers():
            first, before = os.environ["CMAKE_INCLUDE_PATH"].split(":")
            self.assertEqual(before, "/before")
            self.assertEqual(sorted(os.listdir(first)), ["libtomlplusplus-dev", "nlohmann-json3-dev"])
            self.assertEqual(os.listdir(pathlib.Path(first).parents[2]), ["root"])
        self.assertEqual(os.environ["CMAKE_INCLUDE_PATH"], "/before")
        self.assertFalse(os.path.exists(first))

    def test_headers_that_cannot_be_downloaded_end_the_build(self):
        os.environ["PATH"] = f"{self.bin}:/usr/bin:/bin"
        self.program("apt-get", "exit 100")
        with self.assertRaisesRegex(
            SystemExit, f"can't be downloaded. As root: apt-get install {ALL}"
        ), backend.headers():
            self.fail("there are no headers")

    def test_the_sources_that_are_packed_can_be_built(self):
        os.environ["PATH"] = "/usr/bin:/bin"
        path = self.folder / backend.build_sdist(str(self.folder))
        self.assertEqual(path.name, f"cuslice-{changelog.version()}.tar.gz")
        packages.wrong.clear()
        packages.look_at_sources(path, self.folder / "unpacked")
        self.assertEqual(packages.wrong, [])
        tree = self.folder / f"unpacked/cuslice-{changelog.version()}"
        packages.look_at_metadata(path, (tree / "PKG-INFO").read_text())
        self.assertEqual([said for said in packages.wrong if "is of version" not in said], [])
        # Files that CMake reads beside the sources of C++.
        for name in (
            "fake/driver/exports.map",
            "fake/profiles/t4.toml",
            "stub/dlopen.c",
            "include/cuslice.h",
            "docs/install.md",
        ):
            self.assertTrue((tree / name).is_file(), name)

    def test_sources_without_what_a_build_needs_are_found_out(self):
        path = self.folder / "cuslice-1.2.3.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in ("CMakeLists.txt", "build/cuslice.h"):
                archive.addfile(tarfile.TarInfo(f"cuslice-1.2.3/{name}"))
        packages.wrong.clear()
        packages.look_at_sources(path, self.folder / "unpacked")
        self.assertIn("cuslice-1.2.3.tar.gz: has no pyproject.toml", packages.wrong)
        self.assertIn("cuslice-1.2.3.tar.gz: has ['build']", packages.wrong)

    def test_links_that_lead_nowhere_are_found_out(self):
        packages.wrong.clear()
        metadata = "Version: 1.2.3\nProvides-Extra: plot\n\n" + "text " * 300
        path = pathlib.Path("cuslice-1.2.3-py3-none-any.whl")
        packages.look_at_metadata(path, f"{metadata} [there](https://example.com/a), `[code](a.md)`")
        self.assertEqual(packages.wrong, [])
        packages.look_at_metadata(path, f"{metadata} [a](docs/a.md) <img src='docs/b.svg'> [c](#c)")
        self.assertEqual(len(packages.wrong), 1)
        for name in ("docs/a.md", "docs/b.svg", "#c"):
            self.assertIn(name, packages.wrong[0])


class Setup(unittest.TestCase):
    def test_a_script_without_its_words_is_refused(self):
        done = subprocess.run([SOURCE / "scripts/debian_headers.sh", "only-a-folder"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (64, "debian_headers: a folder and a package are needed\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
