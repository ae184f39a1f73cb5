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
    """rows: name → the test cell; variables, paths: name → row; operations: file → function → operations, counted."""

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


class Tests:
    """The tests that CTest will know, as far as the sources say: `test_policy: a sentence`, `slurm: test_a_name`, `docs`."""

    def __init__(self, texts):
        self.cases = collections.defaultdict(set)  # sentence → folders
        self.lists = {}  # folder → names of programs and tests, as patterns
        for name, text in texts.items():
            folder = name.rsplit("/", 1)[0]
            if name.endswith("CMakeLists.txt"):
                names = re.findall(r"(?:cuslice_test\(|add_test\(NAME )\"?([\w${}]+)", text)
                self.lists[folder] = [re.compile(re.sub(r"\$\{\w+\}", r"\\w+", one)) for one in names]
            elif name.endswith(".cpp"):
                for literal in CASE.findall(text):
                    self.cases["".join(re.findall(r'"((?:\\.|[^"\\])*)"', literal)).replace('\\"', '"')].add(folder)
            elif name.endswith(".py"):
                for case in re.findall(r"^\s*def (test_\w+)\(", text, re.M):
                    self.cases[case].add(folder)

    def _is_listed(self, program, folder):
        while folder.startswith("tests"):
            if any(one.fullmatch(program) for one in self.lists.get(folder, [])):
                return True
            folder = folder.rpartition("/")[0]
        return False

    def has(self, name):
        program, colon, sentence = name.partition(": ")
        if not colon:
            return any(self._is_listed(program, folder) for folder in self.lists)
        return any(self._is_listed(program, folder) for folder in self.cases.get(sentence, ()))


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
