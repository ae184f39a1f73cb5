# SPDX-License-Identifier: Apache-2.0
"""The copy of the sources that has all mutants in it, and what is built of it."""
import collections
import concurrent.futures
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile

from mutation import schemata

FOLDERS = ("policy", "virtual_gpu", "shim")
HEADER = "cuslice_mutant.h"
PRODUCT = ("cuslice", "cuslice_driver_facade", "cuslice_nvml_facade", "cuslice_runtime", "cuslice_runtime_facade11",
           "cuslice_runtime_facade12", "cuslice_runtime_facade13", "cuslice_launch", "cuslice_toml_module", "fake_driver", "fake_nvml",
           "fake_cudart11", "fake_cudart12", "fake_cudart13", "fake_watch", "fake_timekeeper", "fake_smi",
           "fake_cublas11", "fake_cublas12", "fake_cublas13",
           "fake_cublaslt11", "fake_cublaslt12", "fake_cublaslt13", "fake_cudnn")


def write(path, text):
    """Leaves a file alone that is so already: it isn't built again."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


class Tree:
    def __init__(self, place, jobs):
        self.place, self.jobs = place, jobs
        self.root, self.build, self.switch = place / "tree", place / "tree/build/dev", place / "switch"
        self.texts = {}

    # The sources

    def check_out(self, repository, commit):
        """As the commit has them, but those that may be mutated: these are in `texts` and written by `mutate`."""
        packed = subprocess.check_output(["git", "-C", repository, "archive", commit])
        there = set()
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive.getmembers():
                path = self.root / member.name
                if member.isdir():
                    continue
                there.add(path)
                if member.issym():
                    if not path.is_symlink() or os.readlink(path) != member.linkname:
                        path.unlink(missing_ok=True)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.symlink_to(member.linkname)
                    continue
                text = archive.extractfile(member).read()
                if is_mutated(member.name):
                    self.texts[member.name] = text.decode()
                    continue
                write(path, text)
                path.chmod(member.mode)
        for folder, folders, files in os.walk(self.root):
            if pathlib.Path(folder) == self.root and "build" in folders:
                folders.remove("build")
            for name in files:
                if pathlib.Path(folder) / name not in there and name != HEADER:
                    (pathlib.Path(folder) / name).unlink()

    def mutate(self, mutants, numbers):
        """Writes every source that may be mutated, with these mutants in it. numbers: {mutant: its number}."""
        text = (pathlib.Path(__file__).parent / "mutant.h").read_text()
        write(self.root / HEADER, f'#define CUSLICE_MUTANTS "{self.switch}"\n{text}'.encode())
        of_file = collections.defaultdict(list)
        for one in mutants:
            of_file[one.file].append(one)
        for file, text in self.texts.items():
            mine = of_file.get(file)
            write(self.root / file, (schemata.written(text, mine, numbers, HEADER) if mine else text).encode())

    # Building

    def configure(self):
        """As the preset dev is. A source whose mutants the compiler warns about is compiled without warnings."""
        compiler = self.place / "compile"
        ccache = shutil.which("ccache") or ""
        write(compiler, f'#!/bin/sh\nexport CCACHE_BASEDIR="${{CCACHE_BASEDIR:-{self.root}}}" CCACHE_NOHASHDIR=1\n'
                        f'{ccache} "$@" 2>/dev/null || exec "$@" -w -Wno-narrowing\n'.encode())
        compiler.chmod(0o755)
        launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={compiler}" for language in ("C", "CXX")]
        done = subprocess.run(["cmake", "--preset", "dev", *launchers], cwd=self.root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(f"mutate: the copy of the sources can't be configured\n{done.stdout[-3000:]}")
        self.commands = {}
        for one in json.loads((self.build / "compile_commands.json").read_text()):
            file = os.path.relpath(one["file"], self.root)
            if file.endswith(".cpp") and file not in self.commands:
                words = shlex.split(one["command"])
                self.commands[file] = words[words.index(str(compiler)) + 1:] if str(compiler) in words else words

    def ninja(self, *targets):
        return subprocess.run(["ninja", "-C", str(self.build), "-j", str(self.jobs), "-k", "0", *targets], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def programs(self, labels, asked):
        """The test programs of these folders whose name fits."""
        listed = self.ninja("-t", "targets", "all").stdout
        found = re.findall(rf"^(tests/(?:{'|'.join(labels)})/[^\s.]+): CXX_EXECUTABLE", listed, re.M)
        return [program for program in found
                if os.path.basename(program).startswith("test_") and re.search(asked, os.path.basename(program))]

    def includers(self, files):
        """The product's sources that are, or include, one of these."""
        includes = {file: set(re.findall(r'^\s*#\s*include "([^"]+)"', text, re.M))
                    for file, text in self.texts.items()}
        found, more = set(), set(files)
        while more:
            found |= more
            more = {file for file, names in includes.items()
                    if names & {name for one in more for name in (one, os.path.basename(one))}} - found
        return sorted(file for file in found if file in self.commands)

    def compile(self, source, *more, without=("-g",)):
        """The compiler's words about a source of the product, and whether it takes it."""
        words = [word for word in self.commands[source] if word not in without]
        done = subprocess.run([*words, "-w", "-Wno-narrowing", "-fdiagnostics-color=never", *more], cwd=self.build,
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode == 0, done.stdout

    def refused(self, mutants, numbers):
        """Those that can't be compiled so. The others are written."""
        left, refused = list(mutants), []
        sources = self.includers({one.file for one in mutants})
        while True:
            self.mutate(left, numbers)
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                said = list(pool.map(lambda source: self.compile(source, "-fsyntax-only"), sources))
            sources = [source for source, (taken, _) in zip(sources, said) if not taken]
            if not sources:
                return refused
            found = self.blamed(left, "\n".join(text for taken, text in said if not taken), sources)
            refused += found
            left = [one for one in left if one not in set(found)]

    def blamed(self, mutants, said, sources):
        """The mutants on lines with errors; without any, on lines that are named at all, or in these sources."""
        for pattern in (r"^(\S+?):(\d+):\d+: (?:fatal )?error:", r"(\S+?):(\d+)\b"):
            at = {(os.path.relpath(os.path.join(self.build, path), self.root), int(line))
                  for path, line in re.findall(pattern, said, re.M)}
            found = [one for one in mutants if any((one.file, line) in at for line in lines_of(one, self.texts))]
            if found:
                return found
        found = [one for one in mutants if one.file in sources]
        if not found:
            sys.exit(f"mutate: the product can't be compiled\n{said[-3000:]}")
        return found

    def built(self, mutants, numbers, targets):
        """Builds all that is asked. Answers the mutants that couldn't be built after all."""
        refused = []
        while True:
            done = self.ninja(*targets)
            if done.returncode == 0:
                return refused
            left = [one for one in mutants if one not in set(refused)]
            at = re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?error:", done.stdout, re.M)
            if not at or len(refused) > len(mutants) // 2:
                sys.exit(f"mutate: the copy of the sources can't be built\n{done.stdout[-3000:]}")
            refused += self.blamed(left, done.stdout, [])
            self.mutate([one for one in mutants if one not in set(refused)], numbers)

    def alive(self, files):
        """The numbers of the mutants that these built files have code for."""
        numbers, dump = set(), self.place / "section"
        for file in files:
            dump.unlink(missing_ok=True)
            subprocess.run(["objcopy", "--dump-section", f".cuslice_mutants={dump}", str(file), "/dev/null"],
                           stderr=subprocess.DEVNULL)
            if dump.exists():
                text = dump.read_bytes()
                numbers |= set(struct.unpack(f"<{len(text) // 4}i", text[:len(text) // 4 * 4]))
        return numbers

    def products(self):
        """The libraries that were built."""
        return [path for path in (self.build / "lib").rglob("*.so*") if path.is_file() and not path.is_symlink()]

    # One mutant by itself

    def same_code(self, mutant, most=6):
        """Whether the product's objects are the same with the mutant as without it. Too many are not looked at."""
        sources = self.includers({mutant.file})
        own = [one for one in sources if one.rsplit("/", 1)[0] == mutant.stratum] or sources
        if not own or len(own) > most:
            return False
        plain = self.plain()
        before = [self.code(source, plain) for source in own]
        if None in before:
            sys.exit(f"mutate: one of {', '.join(own)} can't be compiled as it is: nothing can be compared with it")
        try:
            write(plain / mutant.file, schemata.alone(self.texts[mutant.file], mutant).encode())
            return [self.code(source, plain) for source in own] == before
        finally:
            write(plain / mutant.file, self.texts[mutant.file].encode())

    def plain(self):
        """A copy of the sources without a mutant."""
        plain = self.place / "plain"
        for folder in FOLDERS:
            for path in (self.root / folder).rglob("*"):
                file = str(path.relative_to(self.root))
                if path.is_file():
                    write(plain / file, self.texts[file].encode() if file in self.texts else path.read_bytes())
        for path in self.root.iterdir():
            if path.name not in (*FOLDERS, "build") and not (plain / path.name).exists():
                (plain / path.name).symlink_to(path)
        return plain

    def code(self, source, plain):
        """A fingerprint of its object code, without what is for debuggers; None if it can't be compiled."""
        out = self.place / "code.o"
        # Files that are generated in the build folder stay there.
        words = [word if str(self.build) in word else word.replace(str(self.root), str(plain))
                 for word in self.commands[source]]
        words[words.index("-o") + 1] = str(out)
        done = subprocess.run([*words, "-w", "-g0"], cwd=self.build, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return None if done.returncode else hashlib.sha256(out.read_bytes()).hexdigest()


def is_mutated(name):
    return name.startswith(tuple(folder + "/" for folder in FOLDERS)) and name.endswith((".cpp", ".h"))


def lines_of(mutant, texts):
    return range(mutant.line, mutant.line + texts[mutant.file].count("\n", mutant.start, mutant.end) + 1)
