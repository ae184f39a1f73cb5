#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings NVIDIA's genuine user space into an ignored cache, for the tests that hold cuslice against it. Needs no GPU.

  lab/genuine/fetch.py [--large] [--seconds N] [ITEM …]    → build/genuine/ITEM/, or below $CUSLICE_GENUINE_CACHE

Without names it brings all of catalogue.py; the items of hundreds of megabytes only with --large or by name. The packages come
from wherever this machine takes its own: apt with lists and a cache in the folder, so that nothing of the machine's changes,
and pip. Nothing is installed. What can't be had is noted with the reason in ITEM.missing, and the tests skip it by name. Ends
with 1 if any of what was asked for is missing.
"""
import argparse
import fcntl
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

import catalogue

# Newer releases have drivers that this one doesn't. apt picks by the version that an item names, wherever it is.
NEWER = ("trixie", "sid", "experimental")


class Unavailable(Exception):
    pass


def run(command, deadline, **more):
    """The command's output; Unavailable with its last words if it fails or the time is up."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise Unavailable("the time for fetching was up before it was this item's turn")
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=left, **more)
    except subprocess.TimeoutExpired:
        raise Unavailable("the time for fetching was up")
    except FileNotFoundError:
        raise Unavailable(f"there is no {command[0]} here")
    if done.returncode:
        words = [line for line in done.stdout.splitlines() if line.strip()]
        raise Unavailable(words[-1] if words else f"{command[0]} ended with {done.returncode}")
    return done.stdout


def sources_of(own, suite, root=pathlib.Path("/etc/apt")):
    """This machine's own sources of its release, for another suite and with the component non-free: lines and stanzas."""
    lines, stanzas = [], []
    for file in [root / "sources.list", *sorted((root / "sources.list.d").glob("*.list"))]:
        text = file.read_text() if file.exists() else ""
        for head, components in re.findall(rf"^(deb[ \t]+(?:\[[^]]*\][ \t]+)?\S+[ \t]+){own}[ \t]+(.*)$", text, re.M):
            if "main" in components.split():
                lines.append(f"{head}{suite} non-free\n")
    for file in sorted((root / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.M))
            if own in fields.get("Suites", "").split() and "main" in fields.get("Components", "").split():
                stanza = re.sub(r"^Suites:.*$", f"Suites: {suite}", stanza, flags=re.M)
                stanzas.append(re.sub(r"^Components:.*$", "Components: non-free", stanza, flags=re.M).strip() + "\n\n")
    return "".join(lines), "".join(stanzas)


class Debian:
    """apt with its own lists and cache, on this machine's own sources with the component non-free in place of theirs."""

    def __init__(self, folder, deadline):
        self.deadline = deadline
        self.folder = folder
        self.own = catalogue.release()
        self.ready = None

    def prepare(self):
        """Reads the lists, once. A suite that can't be read is left out; its versions are then not found."""
        if isinstance(self.ready, Unavailable):
            raise self.ready
        if self.ready:
            return
        try:
            if not self.own:
                raise Unavailable("this is not Debian, whose packages these are")
            for name in "lists/partial", "cache/archives/partial", "parts":
                (self.folder / name).mkdir(parents=True)
            read = 0
            for suite in dict.fromkeys([self.own, *NEWER]):
                lines, stanzas = sources_of(self.own, suite)
                if not lines + stanzas:
                    raise Unavailable(f"no source of {self.own} with the component main is set up here")
                parts = self.folder / "parts"
                (parts / f"{suite}.list").write_text(lines)
                (parts / f"{suite}.sources").write_text(stanzas)
                try:
                    self.apt("apt-get", "-o", "APT::Get::List-Cleanup=0", "update")
                    read += 1
                except Unavailable as why:
                    print(f"genuine: the list of {suite}: {why}", file=sys.stderr)
                    (parts / f"{suite}.list").unlink()
                    (parts / f"{suite}.sources").unlink()
            if not read:
                raise Unavailable("no list of the component non-free can be had")
            self.ready = True
        except Unavailable as why:
            self.ready = why
            raise

    def apt(self, command, *words):
        options = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": self.folder / "parts",
                   "Dir::State::lists": self.folder / "lists", "Dir::Cache": self.folder / "cache",
                   "APT::Sandbox::User": "root" if os.getuid() == 0 else "", "Debug::NoLocking": "true",
                   "Acquire::Retries": 1, "APT::Update::Error-Mode": "any", "Acquire::http::Timeout": 20, "Acquire::https::Timeout": 20}
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return run([command, "-qq", *flags, *words], self.deadline, cwd=self.folder)

    def unpack(self, item, root):
        self.prepare()
        self.apt("apt-get", "download", *item.packages)
        for package in self.folder.glob("*.deb"):
            run(["dpkg-deb", "-x", package, root], self.deadline)
            package.unlink()


def unpack_wheels(item, root, deadline):
    run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps", "--no-cache-dir",
         "--timeout", 20, "--retries", 1, "--dest", root, *item.packages], deadline)
    for wheel in root.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if any(fnmatch.fnmatch(pathlib.Path(name).name, pattern) for pattern in item.files):
                    archive.extract(name, root)
        wheel.unlink()


def install_python(item, folder, deadline):
    run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-cache-dir", "--timeout", 20,
         "--retries", 1, "--target", folder, *item.packages], deadline)


def keep(item, root, folder):
    """Moves the item's files into one folder, where the loader finds each by its SONAME."""
    folder.mkdir()
    for pattern in item.files:
        found = [path for path in root.rglob(pattern) if path.is_file() and not path.is_symlink()]
        if not found:
            raise Unavailable(f"the package has no {pattern}")
        for path in found:
            path.rename(folder / path.name)
    for path in list(folder.iterdir()):
        soname = re.search(r"\(SONAME\).*\[(.*)\]", run(["readelf", "-d", "-W", path], time.monotonic() + 60))
        if soname and not (folder / soname[1]).exists():
            (folder / soname[1]).symlink_to(path.name)


def fetch(item, work, debian, deadline):
    shutil.rmtree(work / "item", ignore_errors=True)
    root, folder = work / "item/root", work / "item/folder"
    root.mkdir(parents=True)
    if item.source == "python":
        install_python(item, folder, deadline)
    else:
        if item.source == "debian":
            debian.unpack(item, root)
        else:
            unpack_wheels(item, root, deadline)
        keep(item, root, folder)
    folder.rename(catalogue.cache() / item.name)  # only now, so that a run that broke off is not taken for a finished one


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("items", nargs="*", metavar="ITEM")
    asked = parser.parse_args()
    if unknown := set(asked.items) - set(catalogue.BY_NAME):
        parser.error(f"there is no {', '.join(sorted(unknown))}; see catalogue.py")
    deadline = time.monotonic() + asked.seconds

    cache = catalogue.cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work = cache / ".work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        debian = Debian(work / "apt", deadline)
        failed = 0
        for item in catalogue.ITEMS:
            if (cache / item.name).is_dir() or (asked.items and item.name not in asked.items):
                continue
            note = cache / f"{item.name}.missing"
            if item.large and not asked.large and not asked.items:
                note.write_text("large: only `lab/genuine/fetch.py --large` brings it\n")
                continue
            started = time.monotonic()
            try:
                fetch(item, work, debian, deadline)
                note.unlink(missing_ok=True)
                print(f"genuine: {item.name} in {time.monotonic() - started:.0f} s", file=sys.stderr)
            except (Unavailable, OSError, zipfile.BadZipFile) as why:
                failed += 1
                note.write_text(f"{why}\n")
                print(f"genuine: no {item.name}: {why}", file=sys.stderr)
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
