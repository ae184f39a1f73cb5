# SPDX-License-Identifier: Apache-2.0
"""C, C++ and Python without their comments, and which function a place in them belongs to."""
import re

KEYWORDS = {"if", "for", "while", "switch", "return", "void", "int", "char", "bool", "sizeof", "defined", "decltype"}
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
CALLED = re.compile(r"(~?[A-Za-z_][\w:~]*)\s*\(")
NOT_PART_OF_A_NAME = re.compile(
    r'__attribute__\s*\(\(.*?\)\)+|\[\[.*?\]\]|alignas\([^)]*\)|extern "C"|\btemplate <[^>]*>')


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


class Source:
    """`text` has no comments, `code` no literals either; both have every other character where it was."""

    def __init__(self, name, whole):
        self.name = name
        self.text = COMMENT_OR_TEXT.sub(lambda one: _blank(one[0]) if one[0].startswith("/") else one[0], whole)
        self.code = COMMENT_OR_TEXT.sub(lambda one: _blank(one[0]), whole)
        self.lines = self.code.split("\n")

    def line(self, position):
        return self.code.count("\n", 0, position) + 1

    def arguments(self, position):
        """What stands between the bracket at `position` and its partner, with literals."""
        depth = 0
        for at in range(position, len(self.code)):
            depth += {"(": 1, ")": -1}.get(self.code[at], 0)
            if depth == 0:
                return self.text[position + 1 : at]
        return self.text[position + 1 :]

    def function(self, position):
        """The name of the function at `position`, behind that of its class; of a variable, where it is in a value."""
        number, indent, names = self.line(position) - 1, 0, []
        while True:
            head = self._head(number, indent)
            if head is None:
                return "::".join(names) or "-"
            line = self.lines[head]
            if scope := re.match(r"\s*(?:class|struct|union)\s+(?:\w+\([^)]*\)\s*)?(\w+)[^;()=]*\{", line):
                if head == number:
                    return "::".join([*names, scope[1]])
                names.append(scope[1])
                indent += 4
                continue
            return "::".join([*names, self._name(head)])

    def _head(self, number, indent):
        """The nearest line at or above that begins at this column, as clang-format has definitions."""
        for at in range(number, -1, -1):
            line = self.lines[at]
            if not line.strip() or len(line) - len(line.lstrip()) != indent:
                continue
            if line.lstrip()[0] not in "}#:)" and not re.match(r"\s*(?:public|private|protected|template)\b", line):
                return at
        return None

    def _name(self, head):
        line = NOT_PART_OF_A_NAME.sub(" ", self.lines[head])
        for one in CALLED.finditer(line):
            if one[1] in KEYWORDS:
                continue
            # CUSLICE_HOOK(cuMemAlloc, …)
            if one[1].isupper() and (inner := re.match(r"\s*(\w+)", line[one.end() :])):
                return inner[1]
            return one[1]
        words = re.findall(r"[A-Za-z_]\w*", re.split(r"[={;]", line)[0])
        return words[-1] if words else "-"
