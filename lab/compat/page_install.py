# SPDX-License-Identifier: Apache-2.0
"""Brings the packages of page_packages.py into folders of the build tree, one at a time, and takes them away again.

Nothing of the machine changes: Python's packages go into a virtual environment, Debian's are unpacked into a folder,
with those that they need and that are not installed here.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "genuine"))
import catalogue  # noqa: E402
import fetch  # noqa: E402

INSTALL_SECONDS = 3000
CUDA_HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-profiler-api", "nvidia-curand")


class Unavailable(Exception):
    """A package can't be had, in words for the page."""


def run(command, **more):
    """The output of a command that has to succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
        **more,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or line.startswith("E:")]
        raise Unavailable((errors or lines or [f"{command[0]} ended with {done.returncode}"])[-1].strip())
    return done.stdout


class Environment:
    """What a package was installed into: `python`, `folders` for LD_LIBRARY_PATH, `version`, and `program` of Debian's."""

    def __init__(self, folder, package, fake):
        self.folder, self.package, self.version, self.program = folder, package, "", ""
        self.python = folder / "venv/bin/python"
        self.folders = []
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        python = sys.executable if package.python == "python3" else shutil.which(package.python)
        if not python:
            raise Unavailable(f"there is no {package.python} here")
        run([python, "-m", "venv", folder / "venv"])
        if package.headers:
            self.prepare_headers(fake)
        if package.wanted:
            self.pip("install", *package.wanted)
        if package.debian:
            self.unpack(package.debian)
        site = next((folder / "venv/lib").glob("python3*/site-packages"))
        self.folders += [site / name for name in package.libraries]
        if package.distribution:
            self.version = self.versions()[package.distribution]

    def pip(self, *words, environment=None):
        """pip's output."""
        return run([self.python, "-m", "pip", "--disable-pip-version-check", *words],
                   env=environment or self.build_environment())  # fmt: skip

    def versions(self):
        """Each distribution's version."""
        return {row["name"]: row["version"] for row in json.loads(self.pip("list", "--format", "json"))}

    def build_environment(self):
        """For packages that are built: where CUDA's headers are, and a libcuda.so to link with."""
        environment = dict(os.environ)
        if self.package.headers:
            environment |= {
                "CUDA_ROOT": str(self.folder / "cuda"),
                "LIBRARY_PATH": str(self.folder / "cuda/lib64"),
                "PATH": f"{self.folder}/cuda/bin:{environment['PATH']}",
                "MAX_JOBS": str(os.cpu_count()),
            }
        return environment

    def prepare_headers(self, fake):
        """A folder that looks like a toolkit: headers, and the fake GPU's libcuda to link with."""
        self.pip("install", "--quiet", *CUDA_HEADERS)
        include = next((self.folder / "venv/lib").glob("python3*/site-packages/nvidia/cu13/include"))
        cuda = self.folder / "cuda"
        for name in "bin", "lib64":
            (cuda / name).mkdir(parents=True)
        (cuda / "include").symlink_to(include)
        (cuda / "lib64/libcuda.so").symlink_to(fake / "libcuda.so.1")
        for library in include.parent.glob("lib/libcurand.so.*"):
            (cuda / "lib64/libcurand.so").symlink_to(library)
            self.folders.append(library.parent)
        (cuda / "bin/nvcc").write_text("#!/bin/sh\nexit 1\n")
        (cuda / "bin/nvcc").chmod(0o755)

    def unpack(self, name):
        """A package of Debian, and what it needs that is not installed here. contrib is where nvtop is."""
        apt = Debian(self.folder / "apt")
        self.version = apt.candidate(name)
        root = self.folder / "root"
        for archive in apt.download(name):
            run(["dpkg-deb", "-x", archive, root])
            archive.unlink()
        self.program = root / "usr/bin" / name
        # Where it is not in /usr, hashcat looks for its files beside itself.
        for path in [*root.glob(f"usr/share/{name}/*"), *root.glob(f"usr/lib/{name}/*")]:
            link = self.program.parent / path.name
            link.unlink(missing_ok=True)
            link.symlink_to(path)
        triplet = run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"]).strip() if shutil.which("dpkg-architecture") else ""
        triplet = triplet or f"{os.uname().machine}-linux-gnu"
        self.folders += [path for path in (root / "usr/lib" / triplet, root / "lib" / triplet) if path.is_dir()]
        # Some libraries are in folders of their own, as blas, whose links only an installation makes.
        self.folders += sorted({path.parent for path in (root / "usr/lib" / triplet).glob("*/lib*.so*")})
        self.folders += [path for path in (pathlib.Path("/usr/lib", triplet, part) for part in ("blas", "lapack"))
                         if path.is_dir()]  # fmt: skip

    def remove(self):
        """All of it."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Debian:
    """apt with lists and a cache of its own, on this machine's sources with the components main and contrib."""

    def __init__(self, folder):
        self.folder = folder
        own = catalogue.release()
        if not own:
            raise Unavailable("this machine is not Debian")
        for name in "lists/partial", "cache/archives/partial", "parts", "packages":
            (folder / name).mkdir(parents=True)
        for suite in own, f"{own}-updates":
            for kind, text in zip(("list", "sources"), fetch.sources_of(own, suite)):
                text = re.sub(r"\bnon-free\b", "main contrib", text)
                (folder / f"parts/{suite}.{kind}").write_text(text)
        self.apt("apt-get", "update")

    def apt(self, command, *words):
        """Its output."""
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": self.folder / "parts",
            "Dir::State::lists": self.folder / "lists",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root" if os.getuid() == 0 else "",
            "Debug::NoLocking": "true",
        }
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return run([command, "-q", *flags, *words], cwd=self.folder / "packages")

    def candidate(self, name):
        """The version that there is."""
        found = re.search(r"Candidate: (\S+)", self.apt("apt-cache", "policy", name))
        if not found or found[1] == "(none)":
            raise Unavailable(f"Debian {catalogue.release()} has no package {name}")
        return found[1]

    def download(self, name):
        """The files of a package and of what it needs that is not installed."""
        said = self.apt("apt-get", "install", "--simulate", "--no-install-recommends", name)
        self.apt("apt-get", "download", *re.findall(r"^Inst (\S+)", said, re.M))
        return sorted((self.folder / "packages").glob("*.deb"))
