# SPDX-License-Identifier: Apache-2.0
"""Reads docs/design/privileges.md, and knows the names of the tests that it may name."""
import collections
import re

PAGE = "docs/design/privileges.md"
AUDIT = ["row", "trusts", "an attacker wants", "why he doesn't get it", "test"]
#: What is said of a thing that can't be stopped, where users read it.
BOUNDARY = re.compile(r"\[[^\]]+\]\(\.\./(?:boundaries|administrators)\.md#[\w-]+\)")
NAMED = re.compile(r"`([^`]+)`")
CASE = re.compile(r'^(?:TEST_CASE|TEMPLATE_TEST_CASE|TEST_CASE_METHOD)\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)', re.M)


def tables(text):
    """Of each table its heading, and the cells of each row."""
    heading, rows, previous = None, [], None
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells and all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            heading, rows = previous, []
        elif cells and heading:
            rows.append(cells)
        elif not cells and heading:
            yield heading, rows
            heading = None
        previous = cells
    if heading:
        yield heading, rows


class Page:
    """rows: name → the test cell; variables, paths: name → row; operations: file → function → operation → count."""

    def __init__(self, text):
        self.text = text
        self.rows, self.variables, self.paths = {}, {}, {}
        self.operations = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        self.problems, self.referred = [], set()
        for heading, rows in tables(text):
            if heading == AUDIT:
                self._read_audit(rows)
            elif heading[0] in ("variables", "paths", "sites") and heading[1:] == ["row"]:
                for cells in rows:
                    self._read_inventory(heading[0], *cells)

    def _read_audit(self, rows):
        for cells in rows:
            name = cells[0].strip("`")
            if len(cells) != len(AUDIT) or name in self.rows:
                self.problems.append(f"the row {name} is there twice, or hasn't {len(AUDIT)} cells")
            self.rows[name] = cells[-1]

    def _read_inventory(self, kind, cell, row):
        row = row.strip("`")
        self.referred.add(row)
        if kind != "sites":
            known = self.variables if kind == "variables" else self.paths
            for name in NAMED.findall(cell):
                if name in known:
                    self.problems.append(f"{name} is in the inventory twice")
                known[name] = row
            return
        for file, functions in re.findall(r"`([\w./-]+)`: (.*?)(?=; `|$)", cell):
            for function, operations in re.findall(r"`([^`]+)` \(([^)]*)\)", functions):
                if function in self.operations[file]:
                    self.problems.append(f"{file} {function} is in the inventory twice")
                for one in operations.split(", "):
                    name, _, count = one.partition(" ×")
                    self.operations[file][function][name] += int(count or 1)


COMMAND = re.compile(r"\b(set|cuslice_test|target_sources|add_test)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


class Tests:
    """The tests that CTest will know, by the sources: `test_policy: a sentence`, `slurm: test_a_name`, `docs`."""

    def __init__(self, texts):
        self.sentences = collections.defaultdict(set)  # sentence → files
        self.programs = collections.defaultdict(list)  # folder → (program, its sources), in which ${test} may stand
        self.names = collections.defaultdict(list)  # folder → names of add_test, as patterns
        for name, text in texts.items():
            if name.endswith("CMakeLists.txt"):
                self._read_list(name.rsplit("/", 1)[0], re.sub(r"#.*", "", text))
            elif name.endswith(".cpp"):
                for literal in CASE.findall(text):
                    sentence = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literal)).replace('\\"', '"')
                    self.sentences[sentence].add(name)
            elif name.endswith(".py"):
                for case in re.findall(r"^\s*def (test_\w+)\(", text, re.M):
                    self.sentences[case].add(name)

    def _read_list(self, folder, text):
        variables = {}
        for command, words in COMMAND.findall(text):
            first, *rest = words.replace('"', "").split()
            rest = " ".join(variables.get(word, word) for word in rest).split()
            if command == "set":
                variables["${" + first + "}"] = " ".join(rest)
            elif command == "add_test":
                name = rest[0] if first == "NAME" else first
                self.names[folder].append(re.compile(re.sub(r"\$\{\w+\}", r"\\w+", name)))
            else:
                self.programs[folder].append((first, [word for word in rest if word.endswith(".cpp")]))

    def _has_source(self, program, file):
        """Whether a program is made of this file, by the lists of the folders around it."""
        folder = file.rpartition("/")[0]
        while folder:
            inside = file[len(folder) + 1 :]
            for name, sources in self.programs.get(folder, ()):
                for source in sources:
                    made = re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", r"(\\w+)", re.escape(source)), inside)
                    word = made[1] if made and made.groups() else r"\\w+"
                    if made and re.fullmatch(re.sub(r"\$\{\w+\}", word, name), program):
                        return True
            folder = folder.rpartition("/")[0]
        return False

    def _is_named(self, name, folder):
        while folder.startswith(("tests", "lab")):
            if any(one.fullmatch(name) for one in self.names.get(folder, ())):
                return True
            folder = folder.rpartition("/")[0]
        return False

    def has(self, name):
        program, colon, sentence = name.partition(": ")
        if not colon:
            return any(self._is_named(program, folder) for folder in self.names)
        for file in self.sentences.get(sentence, ()):
            folder = file.rpartition("/")[0]
            if self._is_named(program, folder) if file.endswith(".py") else self._has_source(program, file):
                return True
        return False


def wrong_cell(cell, tests):
    """Why a cell of the tests' column proves nothing; "" if it does."""
    for part in cell.split("<br>"):
        if BOUNDARY.fullmatch(part):
            continue
        name = re.fullmatch(r"`([^`]+)`", part)
        if not name:
            return f"names no test, but: {part}"
        if not tests.has(name[1]):
            return f"names a test that isn't there: {name[1]}"
    return ""
