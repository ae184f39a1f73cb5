# SPDX-License-Identifier: Apache-2.0
"""Runs a program on fake GPUs, in a slice or without one, and reads what it held from the fake driver's books."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

MIB = 1 << 20
HERE = pathlib.Path(__file__).resolve().parent


# JAX looks for these files before it asks for a driver. Here they are seen by nobody else.
DEVICE_FILES = (
    "bwrap",
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--bind",
    "/dev/shm",
    "/dev/shm",
    "--ro-bind",
    "/dev/null",
    "/dev/nvidiactl",
)


class Seen:
    """What is known of a program that has ended."""

    def __init__(self, status, told, error, books):
        self.status, self.told, self.error, self.books = status, told, error, books

    def all(self, key):
        """What it told under this key, in order."""
        return [line[key] for line in self.told if key in line]

    def one(self, key, default=None):
        """The first of them."""
        return next(iter(self.all(key)), default)

    def peaks(self):
        """The most that was held of each GPU, in MiB; GPUs that it never opened are left out."""
        return [row["peak"] / MIB for row in sorted(self.books, key=lambda row: row["gpu"])]

    def created(self):
        """Each GPU's "Created device … with N MB": the figure as TensorFlow first logged it."""
        found = {}
        for number, size in re.findall(r"Created device \S*device:GPU:(\d+) with (\d+) MB", self.error):
            found.setdefault(int(number), int(size))
        return [found[number] for number in sorted(found)]

    def ours(self):
        """The lines of cuslice, less those of the fake GPU."""
        return [line for line in self.error.splitlines() if line.startswith("cuslice: ")]


class Slices:
    """`cuslice`: the launcher of a build; `python`: the interpreter that has the framework."""

    def __init__(self, cuslice, python, environment=None, before=()):
        """`before`: words in front of every command line."""
        self.cuslice, self.python, self.before = cuslice, python, before
        self.watch = pathlib.Path(cuslice).resolve().parents[1] / "lib/cuslice/fake/watch"
        self.books = tempfile.mkdtemp(prefix="cuslice-compat-", dir="/dev/shm")
        self.environment = dict(
            os.environ, CUSLICE_FAKE_DIR=self.books, COMPAT_WATCH=str(self.watch), **(environment or {})
        )

    def close(self):
        shutil.rmtree(self.books, ignore_errors=True)

    def start(self, fake, options, words, **variables):
        """The command line, and what subprocess needs beside it."""
        command = [
            *self.before,
            self.watch,
            "--json",
            "--",
            self.cuslice,
            "run",
            "--fake",
            fake,
            *options,
            "--",
            self.python,
            *words,
        ]
        return {"args": [str(word) for word in command], "env": dict(self.environment, **variables), "text": True}

    def run(self, fake, options, words, seconds=300, **variables):
        """Runs it to its end."""
        ended = subprocess.run(
            **self.start(fake, options, words, **variables), capture_output=True, check=False, timeout=seconds
        )
        return self.seen(ended.returncode, ended.stdout, ended.stderr)

    @staticmethod
    def seen(status, out, error):
        told = [
            json.loads(line) for line in out.splitlines() if line.startswith('{"') and not line.startswith('{"gpu"')
        ]
        # watch writes its list behind the program's lines.
        begin = out.rfind("\n[") + 1 if not out.startswith("[") else 0
        books = json.loads(out[begin:]) if out[begin:].startswith("[") else []
        return Seen(status, told, error, books)
