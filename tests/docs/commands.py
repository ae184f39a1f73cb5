#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what a document tells its readers to run, on fake GPUs, and compares the output that it shows:

  commands.py ROOT BUILD STATIC PAGE

STATIC is a statically linked program. CONTRIBUTING.md ("Documents") has the rules for who writes a document. Each page
has a folder, ledgers and fake GPUs of its own, in which the programs that documents name are small ones: standins.py.
What can't be run is in exceptions.py, by its exact words, with the reason.
"""
import contextlib
import dataclasses
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True
import exceptions
import standins

LIMIT_SECONDS = 120
MARKS = ("shows", "shows part of", "exits", "varies", "not run", "file", "beside")


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    marks: dict  # name → values

    def mark(self, name, default=None):
        return self.marks.get(name, [default])[-1]

    def expected(self, command):
        """The exit codes that `<!-- exits: CODE [or CODE] [of COMMAND] -->` promises."""
        codes = {of: code for code, _, of in (value.partition(" of ") for value in self.marks.get("exits", []))}
        return [int(code) for code in codes.get(command.words, codes.get("", "0")).split(" or ")]

    def varies(self):
        return [text.strip() for text in self.mark("varies", "").split(", ") if text.strip()]


@dataclasses.dataclass
class Command:
    words: str  # as the document has them, without a comment, on one line
    code: int = 0
    output: str = ""


def blocks(text):
    """The fenced blocks of a document, each with the marks `<!-- NAME: VALUE -->` that stand right before it."""
    fence = r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```$"
    for found in re.finditer(fence, text, re.M | re.S):
        before = re.search(r"(?:<!--(?:(?!-->).)*-->\s*)*\Z", text[:found.start()], re.S)[0]
        marks = {}
        for comment in re.findall(r"<!--(.*?)-->", before, re.S):
            name, _, value = " ".join(comment.split()).partition(": ")
            if name not in MARKS or not value:
                raise ValueError(f"<!-- {comment.strip()} -->: a mark is one of {', '.join(MARKS)}, and has a value")
            marks.setdefault(name, []).append(value)
        line = text.count("\n", 0, found.start()) + 1
        language = (found["language"].split() or [""])[0]
        yield Block(line, language, textwrap.dedent(found["text"]), marks)


def commands(text):
    """The commands of a block: what is on one line, or goes on behind a backslash or within quotes."""
    gathered = ""
    for line in text.splitlines():
        goes_on = line.endswith("\\")
        gathered += line[:-1] if goes_on else line
        try:
            words = shlex.split(gathered, comments=True)
        except ValueError:  # a quote is open
            gathered += "" if goes_on else "\n"
            continue
        if goes_on:
            gathered = gathered.rstrip() + " "
            continue
        if words:
            yield re.sub(r"\s+#\s.*", "", " ".join(gathered.split()))
        gathered = ""
    if gathered.strip():
        raise ValueError(f"this command has no end: {gathered}")


def matches(shown, came, varies, whole):
    """Whether the output that a document shows came: `…` and the texts that vary may be anything, spaces are alike."""
    def plain(text):
        return " ".join(text.split())

    # Where nothing stands for `…`, there is one space between its neighbours, and none at either end.
    shown = re.sub(r"^… ", "…", plain(shown)).replace(" …", "…")
    pieces = re.split("(" + "|".join(re.escape(text) for text in sorted(["…", *varies], key=len, reverse=True)) + ")",
                      shown)
    # One after the other, and not one pattern: that takes for ever to find that it doesn't match.
    came, at = plain(came), 0
    fixed = pieces[::2]
    for i, piece in enumerate(fixed):
        found = came.find(piece, at)
        if found < 0 or whole and i == 0 and found != 0:
            return False
        at = found + len(piece)
    return not whole or came.endswith(fixed[-1]) and (len(fixed) > 1 or came == fixed[0])


def works(name, attempt, path):
    """Whether this machine has a program, and lets it do what these words say."""
    found = shutil.which(name, path=path)
    return found is not None and (not attempt or subprocess.run([found, *attempt], capture_output=True, check=False).returncode == 0)


class Page:
    """One document: `check` runs its commands and says what isn't as it should be."""

    def __init__(self, name, text, stage):
        self.name, self.text, self.stage = name, text, stage
        self.problems, self.ran, self.left = [], 0, 0
        self.exceptions = exceptions.NOT_RUN.get(name, {})
        self.unused = set(self.exceptions)

    def problem(self, block, words):
        self.problems.append(f"{self.name}:{block.line}: {words}")

    def left_out(self, command):
        self.unused.discard(command.words)
        path = self.stage.environment["PATH"]
        missing = [name for name, attempt in exceptions.WHERE_IT_WORKS.items()
                   if re.search(rf"(^|[|] |-- ){name}\b", command.words) and not works(name, attempt, path)]
        if missing:
            print(f"{self.name}: without {missing[0]}: {command.words}")
        left_out = bool(missing) or command.words in self.exceptions
        self.left += left_out
        return left_out

    def run(self, block, those):
        """Runs commands in one shell, as a reader does, so that what one exports the next has."""
        those = [command for command in those if not self.left_out(command)]
        for value in block.marks.get("exits", []):
            _, _, of = value.partition(" of ")
            if of and of not in [command.words for command in those]:
                self.problem(block, f"<!-- exits: {value} -->: there is no such command")
        folder = self.stage.scratch()
        lines = []
        with contextlib.ExitStack() as scene:
            beside = [scene.enter_context(self.stage.beside(words)) for words in block.marks.get("beside", [])]
            for i, command in enumerate(those):
                (folder / f"{i}").write_text(self.stage.prepare(command.words, beside))
                lines.append(f'eval "$(<{folder}/{i})" >{folder}/{i}.out 2>&1 </dev/null; echo $? >{folder}/{i}.code')
            try:
                subprocess.run(["bash", "-c", "\n".join(lines)], cwd=self.stage.folder, env=self.stage.environment,
                               timeout=LIMIT_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                self.problem(block, f"more than {LIMIT_SECONDS} s")
        for i, command in enumerate(those):
            code, output = folder / f"{i}.code", folder / f"{i}.out"
            command.code = int(code.read_text()) if code.exists() else -1
            command.output = self.stage.plain(output.read_text(errors="replace")) if output.exists() else ""
        for command in those:
            self.ran += 1
            expected = block.expected(command)
            if command.code not in expected:
                wanted = " or ".join(map(str, expected))
                self.problem(block, f"exits {command.code}, not {wanted}: {command.words}\n{command.output}")
        return those

    def compare(self, block, shown, command, whole=True):
        if not matches(shown, command.output, block.varies(), whole):
            self.problem(block, f"{command.words}\n--- the document shows\n{shown}\n--- what came\n{command.output}")

    def session(self, block):
        """A block of commands behind `$ `, each with its output below it."""
        parts = re.split(r"^\$ ", block.text, flags=re.M)[1:]
        shown = [part.partition("\n")[2] for part in parts]
        pairs = [(Command(next(commands(part.partition("\n")[0]))), lines) for part, lines in zip(parts, shown)]
        for command in self.run(block, [command for command, _ in pairs]):
            self.compare(block, next(lines for one, lines in pairs if one is command), command)

    def toml(self, block):
        """A file that a document shows is read, as settings or as the description of a fake machine."""
        name = f"line-{block.line}.toml"
        if re.search(r"^\[(\[gpu\]|driver)\]", block.text, re.M):
            text = block.text if "[[gpu]]" in block.text else block.text + '[[gpu]]\nprofile = "t4"\n'
            command = Command(f"cuslice devices --fake ./{name}")
        else:
            # Ceilings are for the system's file alone, which no test writes.
            text = re.sub(r"^\[ceiling[^\n]*\n(?:[^\[][^\n]*\n|\n)*", "", block.text, flags=re.M)
            command = Command(f"cuslice config --config {name}")
        (self.stage.folder / name).write_text(text)
        self.run(block, [command])

    def block(self, block):
        marks = block.marks
        for text in block.varies():
            if text not in block.text:
                self.problem(block, f"<!-- varies: {text} -->: it isn't in the block")
        if "file" in marks:
            (self.stage.folder / block.mark("file")).write_text(block.text)
        elif block.language == "toml":
            self.toml(block)
        if block.language in ("sh", "console") and not block.text.startswith("$ "):
            self.run(block, [Command(words) for words in commands(block.text)])
        elif block.text.startswith("$ "):
            self.session(block)
        elif "shows" in marks or "shows part of" in marks:
            whole = "shows" in marks
            for command in self.run(block, [Command(block.mark("shows" if whole else "shows part of"))]):
                self.compare(block, block.text, command, whole)
        elif not block.language and "not run" not in marks:
            self.problem(block, "nobody knows which command's output this is: <!-- shows: COMMAND -->, "
                                "<!-- shows part of: COMMAND -->, or <!-- not run: WHY -->")

    def check(self):
        with self.stage:
            for block in blocks(self.text):
                self.block(block)
        self.problems += [f"exceptions.py: {self.name} has no command {words}" for words in sorted(self.unused)]
        if not self.ran and not self.left:
            self.problems.append(f"{self.name} has no command: this test is blind")
        return self.problems


def main():
    root, build, static = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    for name in exceptions.NOT_RUN:
        if not (root / name).is_file():
            sys.exit(f"exceptions.py: there is no {name}")
    page = Page(sys.argv[4], (root / sys.argv[4]).read_text(), standins.Stage(root, build, static))
    problems = page.check()
    print("\n\n".join(problems) or f"{page.name}: {page.ran} commands do what the document says, "
                                    f"{page.left} were left out")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
