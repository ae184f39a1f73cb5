#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for files of NVIDIA's in what is committed, installed or packed:  nothing_shipped.py ROOT CMAKE BUILD

Ours carry NVIDIA's names (libcuda.so.1, libcudart.so.13, libnvidia-ml.so.1), so a name tells nothing. Every program and library
of ours has words of ours in it, unless it is one of the facades, which have next to nothing in them; no file of NVIDIA's is like
that, which what the cache holds shows here. Nothing compiled and no archive is committed at all, and the cache is ignored.
"""
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import catalogue

COMPILED = (b"\x7fELF",)
# Words of ours that each program has: the samples know nothing of cuslice, and print this.
OWN = (b"cuslice", b"step %d: loss %.4f, y = %.3f x + %.3f")
PACKED = (b"!<arch>\n", b"PK\x03\x04", b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh")


def is_facade(path):
    """A library that only lends its name: tiny, and without a function."""
    return path.stat().st_size < 65536 and not subprocess.check_output(["nm", "-D", "--defined-only", path], stderr=subprocess.DEVNULL)


def foreign(path):
    """Why a file is not ours, or nothing."""
    content = path.read_bytes()
    if content.startswith(PACKED):
        return "an archive"
    if content.startswith(COMPILED) and not any(word in content for word in OWN) and not is_facade(path):
        return "compiled, and not from this source"
    if not content.startswith(COMPILED) and b"NVIDIA Corporation" in content and b"opyright" in content:
        return "a text with NVIDIA's copyright"
    return ""


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def look(where, paths, problems):
    if not paths:
        problems.append(f"{where}: there are no files; this check is blind")
    problems += [f"{where}: {path}: {why}" for path in paths if (why := foreign(path))]


def look_at_commits(root, problems):
    if not (root / ".git").exists():
        print("no git repository here: what is committed is not looked at")
        return
    names = subprocess.check_output(["git", "-C", root, "ls-files", "-z"], text=True).split("\0")
    paths = [root / name for name in names if name and (root / name).is_file()]
    look("committed", paths, problems)
    # This file has the words that it looks for.
    problems[:] = [problem for problem in problems if pathlib.Path(__file__).name not in problem]
    problems += [f"committed: {path}: compiled" for path in paths if path.read_bytes().startswith(COMPILED)]
    if subprocess.run(["git", "-C", root, "check-ignore", "-q", "build/genuine"]).returncode:
        problems.append("build/genuine, where the genuine files go, is not ignored")


def main():
    root, cmake, build = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    problems = []
    look_at_commits(root, problems)
    with tempfile.TemporaryDirectory() as folder:
        installed, packed = pathlib.Path(folder, "installed"), pathlib.Path(folder, "packed")
        subprocess.run([cmake, "--install", build, "--prefix", installed], check=True, stdout=subprocess.DEVNULL)
        look("installed", files(installed), problems)
        subprocess.run([pathlib.Path(cmake).with_name("cpack"), "-G", "TGZ", "-B", packed, "--config", build / "CPackConfig.cmake"], check=True,
                       stdout=subprocess.DEVNULL, cwd=folder)
        for archive in packed.glob("*.tar.gz"):
            with tarfile.open(archive) as content:
                content.extractall(packed / "content")
        look("packed", files(packed / "content"), problems)

        # The check can fail: it finds out all that is NVIDIA's, whatever it is called.
        genuine = [path for item in catalogue.ITEMS if item.source != "python" and not catalogue.missing(item)
                   for path in files(catalogue.cache() / item.name)]
        problems += [f"{path} is NVIDIA's, and was not found out" for path in genuine if not foreign(path)]
        borrowed = pathlib.Path(folder, "libcuda.so.1")
        source = pathlib.Path(folder, "driver.c")
        source.write_text("int cuInit(unsigned flags) { return (int)flags; }")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", borrowed, source], check=True)
        if not foreign(borrowed):
            problems.append("a foreign libcuda.so.1 was not found out")
    print("\n".join(problems) or f"nothing of NVIDIA's; {len(genuine)} genuine files would have been found out")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
