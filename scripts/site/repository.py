# SPDX-License-Identifier: Apache-2.0
"""The repository's pages as the documentation site has them: their places, their links, and Markdown that MkDocs reads.

GitHub and Python-Markdown, which MkDocs uses, read lists and tables differently. The documents are written for GitHub's
rules; `for_mkdocs` rewrites them. The standard library is enough, as tests use this too.
"""

import posixpath
import re
from typing import Callable, Iterator, List, Tuple

# Pages outside of docs/, and their places on the site.
OUTSIDE = {
    "README.md": "overview.md",
    "README.zh-CN.md": "overview.zh-CN.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
# Pages that the search ranks below those for users. It leaves records out, which are a machine's output.
INSIDE = re.compile(r"(design|results)/|(architecture|contributing|coverage|changelog|security)\.md")
RECORD = re.compile(r"results/\w+-[\d.]+-\d{4}-\d\d-\d\d\.(md|html)$")
FENCE = re.compile(r"^( *)(`{3,})(.*)$")
ITEM = re.compile(r"^( *)([-*+]|\d{1,9}[.)])( +)(?=\S)")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def place_of(path: str) -> str:
    """A repository's file as the site names it. A source is a page of its own, which shows it."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/") and not path.startswith("docs/samples"):
        return path[len("docs/") :]
    return f"source/{path}.md"


def target_of(page: str, link: str) -> Tuple[str, str]:
    """The repository's path that a link of a page leads to, and its anchor. The path is empty for an address elsewhere."""
    if re.match(r"[a-z]+:", link):
        return "", ""
    name, _, anchor = link.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
    return path, anchor


def links_of(text: str) -> Iterator[str]:
    for line, is_code in lines_of(text):
        if not is_code:
            yield from (found[2] for found in LINK.finditer(line))


def lines_of(text: str) -> Iterator[Tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code. Comments, which readers don't see, are left out."""
    fence = ""
    blocks = re.split(r"(^ *`{3,}[^\n]*\n.*?^ *`{3,} *$)", text, flags=re.M | re.S)
    bare = "".join(part if i % 2 else re.sub(r"<!--.*?-->", "", part, flags=re.S) for i, part in enumerate(blocks))
    for line in bare.split("\n"):
        found = FENCE.match(line)
        if found and not fence:
            fence = found[2]
            yield line, True
        elif fence:
            yield line, True
            if line.strip() == fence:
                fence = ""
        else:
            yield line, False


class _Indenter:
    """Indents what belongs to an item of a list by four columns a level, as Python-Markdown wants it."""

    def __init__(self) -> None:
        self.offsets: List[int] = []  # the column of the contents of each open item
        self.in_fence = 0

    def text(self, line: str, after_text: bool) -> str:
        found = ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        # A line of text without a blank line before it goes on with the item's paragraph, however it is indented.
        while self.offsets and indent < self.offsets[-1] and (found or not after_text):
            self.offsets.pop()
        depth = len(self.offsets)
        if not found:
            return "    " * depth + line[min(indent, self.offsets[-1] if self.offsets else 0) :]
        self.offsets.append(len(found[0]))
        return "    " * depth + found[2] + " " + line[len(found[0]) :]

    def code(self, line: str, begins: bool) -> str:
        if begins:
            indent = len(line) - len(line.lstrip())
            while self.offsets and indent < self.offsets[-1]:
                self.offsets.pop()
            self.in_fence = indent
        return "    " * len(self.offsets) + line[min(self.in_fence, len(line) - len(line.lstrip())) :]


def for_mkdocs(text: str, rewrite: Callable[[str], str]) -> str:
    """A page for Python-Markdown; `rewrite` gives the new target of each link."""
    indenter, out = _Indenter(), []  # type: Tuple[_Indenter, List[str]]
    before, was_code, is_loose = "", False, False
    for line, is_code in lines_of(text):
        if is_code:
            begins = not was_code
            line = re.sub(r"(`{3,}\w*).*", r"\1", line) if begins else line
            if begins and out and out[-1].strip():
                out.append("")
            line = indenter.code(line, begins)
        elif line.strip():
            found = ITEM.match(line)
            # A block of its own for each list and table, which GitHub knows without a blank line.
            list_begins = found and not indenter.offsets and (found[2] in "-*+" or found[2][:-1] == "1")
            is_loose = is_loose and bool(indenter.offsets)
            next_item = found and is_loose  # behind an item of several blocks
            table_begins = line.lstrip().startswith("|") and not before.lstrip().startswith("|")
            if before.strip() and (list_begins or next_item or table_begins or was_code):
                out.append("")
            # Numbers within a paragraph begin no list.
            inside = found and before.strip() and not indenter.offsets and not list_begins
            line = line if inside else indenter.text(line, bool(before.strip()) and not was_code)
            if line.lstrip().startswith("|"):
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), line)
            line = LINK.sub(lambda link: link[1] + rewrite(link[2]) + link[3], line)
        else:
            is_loose = True
        out.append(line)
        before, was_code = line, is_code
    return "\n".join(out)


def slug(heading: str, separator: str = "-") -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def navigation(mkdocs_yml: str) -> List[Tuple[str, str]]:
    """Title and path of each page of the navigation, in order. Each has a line of its own."""
    nav = re.search(r"^nav:\n((?: .*\n|\n)*)", mkdocs_yml, re.M)
    pages = re.findall(r"^ +- (.*): (\S+\.md)$", nav[1] if nav else "", re.M)
    return [(title.strip('"'), path) for title, path in pages]
