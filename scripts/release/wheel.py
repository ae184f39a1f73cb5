#!/usr/bin/env python3
"""Packs an installed tree as a wheel.

    wheel.py TREE PYTHON_FOLDER VERSION OUT_FOLDER

The tree's bin/ becomes the wheel's scripts and everything else its data, which pip puts below the environment's
prefix: so bin/ and lib/cuslice lie beside each other, as the launcher wants it. PYTHON_FOLDER has the packages that
go to site-packages. The processor in the wheel's name is the one that the launcher is compiled for. The same tree
makes the same bytes: SOURCE_DATE_EPOCH is the time of every member.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import time
import zipfile

NAME = "cuslice"
# What an ELF file says that it is for.
MACHINES = {62: "x86_64", 183: "aarch64"}
# The oldest Python that the package in python/ is written for.
PYTHON = ">=3.8"
# What `cuslice plot` draws with: pip install 'cuslice[plot]'.
PLOT = "vl-convert-python>=1.7"
# What other programs find of it: pytest its plugin.
ENTRY_POINTS = "[pytest11]\ncuslice = cuslice.pytest_plugin\n"


def members(tree, python, version):
    """(name in the wheel, file) of everything that is packed."""
    data = f"{NAME}-{version}.data"
    for path in sorted(tree.rglob("*")):
        if path.is_symlink():
            raise SystemExit(f"wheel: {path} is a link, and a wheel can't hold one")
        if path.is_file():
            inner = path.relative_to(tree)
            yield (f"{data}/scripts/{inner.name}" if inner.parts[0] == "bin" else f"{data}/data/{inner}"), path
    for path in sorted(python.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(python)), path


def machine_of(path):
    """The processor that a program or library is compiled for."""
    begin = path.read_bytes()[:20]
    machine = MACHINES.get(int.from_bytes(begin[18:], "little"))
    if begin[:4] != b"\x7fELF" or not machine:
        raise SystemExit(f"wheel: {path} is no program for {' or '.join(MACHINES.values())}")
    return machine


def tags_for(machine):
    """By the older name of the platform too, for a pip that knows no other."""
    return f"py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}"


def metadata(tree, version):
    readme = tree / "share/doc/cuslice/README.md"
    return "\n".join(
        (
            "Metadata-Version: 2.1",
            f"Name: {NAME}",
            f"Version: {version}",
            "Summary: A slice of a GPU for every CUDA program",
            "License: Apache-2.0",
            f"Requires-Python: {PYTHON}",
            "Provides-Extra: plot",
            f"Requires-Dist: {PLOT}; extra == 'plot'",
            "Classifier: Operating System :: POSIX :: Linux",
            "Classifier: Environment :: GPU :: NVIDIA CUDA",
            "Classifier: Framework :: Pytest",
            "Classifier: Typing :: Typed",
            "Description-Content-Type: text/markdown",
            "",
            readme.read_text() if readme.exists() else "",
        )
    )


def write(tree, python, version, out):
    """Writes the wheel and returns its path."""
    tags = tags_for(machine_of(tree / "bin/cuslice"))
    out.mkdir(parents=True, exist_ok=True)
    info = f"{NAME}-{version}.dist-info"
    expanded = "".join(
        f"Tag: {'-'.join((*tags.split('-')[:2], platform))}\n" for platform in tags.split("-")[2].split(".")
    )
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800))[:6]  # zip begins in 1980
    wheel, record = out / f"{NAME}-{version}-{tags}.whl", []

    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def add(name, content, mode=0o644):
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")

        for name, path in members(tree, python, version):
            add(name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        add(f"{info}/METADATA", metadata(tree, version).encode())
        # Not pure: what is compiled in it makes it one for this platform.
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: cuslice\nRoot-Is-Purelib: false\n{expanded}".encode())
        add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
        for licence in ("LICENSE", "THIRD-PARTY.txt"):
            path = tree / "share/doc/cuslice" / licence
            if path.exists():
                add(f"{info}/licenses/{licence}", path.read_bytes())
        record.append(f"{info}/RECORD,,")
        add(f"{info}/RECORD", ("\n".join(record) + "\n").encode())
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("python", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("out", type=pathlib.Path)
    words = parser.parse_args()
    print(write(words.tree, words.python, words.version, words.out))


if __name__ == "__main__":
    main()
