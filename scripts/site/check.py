#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation site as it was built:  check.py SITE QUESTIONS

- every link within the site leads to a file, and to an anchor that the file has;
- no page loads anything from elsewhere: scripts, styles, pictures, fonts;
- no Markdown has stayed unread: fences, lists within paragraphs, rows of tables, backslashes in code;
- the search finds the answer to each question of QUESTIONS (tests/docs/newcomers.txt) among its first three pages.
"""

import collections
import html.parser
import json
import math
import pathlib
import re
import sys
import urllib.parse
from typing import Any, Dict, List, Optional, Set, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import repository  # noqa: E402

FIRST = 3  # pages of a search's answer that a reader looks at
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
ELSEWHERE = re.compile(r"(?:[a-z][a-z+.-]*:)?//|(?!data:)[a-z][a-z+.-]*:", re.I)
UNREAD = re.compile(r"```|^\s*(?:[-*]|\d+\.) \S.*|^\s*\|.*\|\s*$|\]\([^)]*\)", re.M)


class Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: Set[str] = set()
        self.links: List[str] = []
        self.loads: List[str] = []
        self.prose: List[str] = []  # the texts of paragraphs
        self._open: List[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADS.get(tag) in values and values.get("rel") not in ("canonical", "prev", "next", "edit"):
            self.loads.append(values[LOADS[tag]])
        if tag in ("p", "code", "pre", "strong", "em"):
            self._open.append(tag)
            if tag == "p":
                self.prose.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open == ["code"] and r"\|" in data:
            self.prose.append("| " + data + " |")
        if self._open == ["p"]:
            self.prose[-1] += data
        elif self._open[:1] == ["p"]:
            self.prose[-1] += "¤"  # code, or what is in bold, begins no list


class Site:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}

    def name(self, path: pathlib.Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def check(self) -> List[str]:
        problems = [] if len(self.pages) > 20 else [f"{len(self.pages)} pages: this check is blind"]
        for path, page in self.pages.items():
            problems += [f"{self.name(path)}: {wrong}" for wrong in self._wrong_links(path, page)]
            problems += [f"{self.name(path)}: loads {load}" for load in page.loads if ELSEWHERE.match(load)]
            # Records are as the machine wrote them, with rows that stand alone.
            for text in [] if repository.RECORD.match(self.name(path)) else page.prose:
                problems += [f"{self.name(path)}: unread Markdown: {found[0]}" for found in UNREAD.finditer(text)]
        for path in sorted(self.folder.rglob("*.css")):
            problems += [
                f"{self.name(path)}: loads {url}"
                for url in re.findall(r"url\(['\"]?([^)'\"]+)", path.read_text(encoding="utf-8"))
                if ELSEWHERE.match(url)
            ]
        return problems

    def _wrong_links(self, path: pathlib.Path, page: Page) -> List[str]:
        wrong = []
        for link in [*page.links, *page.loads]:
            if ELSEWHERE.match(link) or link.startswith("data:"):
                continue
            name, _, anchor = urllib.parse.unquote(link).partition("#")
            # The page for an address that isn't there is shown at any depth, so its links begin at the root.
            start = self.folder if name.startswith("/") else path.parent
            to = (start / name.lstrip("/")).resolve() if name else path
            if to.is_dir():
                to /= "index.html"
            if not to.is_file():
                wrong.append(f"{link} leads nowhere")
            elif anchor and to in self.pages and anchor not in self.pages[to].anchors:
                wrong.append(f"{link} names no heading there")
        return wrong


class Search:
    """Scores the sections of the search's index by BM25, titles counted three times, and takes a page's best one."""

    def __init__(self, folder: pathlib.Path) -> None:
        index = json.loads((folder / "search/search_index.json").read_text(encoding="utf-8"))
        self.sections: List[Tuple[str, "collections.Counter[str]", float]] = []
        self.found_in: "collections.Counter[str]" = collections.Counter()
        for section in index["docs"]:
            text = f"{section['title']} " * 3 + re.sub(r"<[^>]*>", " ", section["text"])
            words = collections.Counter(self.words(text))
            page = section["location"].partition("#")[0] or "index.html"
            self.sections.append((page, words, section.get("boost", 1)))
            self.found_in.update(words.keys())
        self.mean = sum(sum(words.values()) for _, words, _ in self.sections) / max(1, len(self.sections))

    @staticmethod
    def words(text: str) -> List[str]:
        """Words without the endings that the site's search takes off too."""
        return [
            re.sub(r"(?:ing|ed|s)$", "", word) if len(word) > 4 else word
            for word in re.findall(r"[\w.]*\w", text.lower())
        ]

    def pages(self, query: str) -> List[str]:
        best: Dict[str, float] = {}
        for page, words, boost in self.sections:
            length = sum(words.values()) / self.mean
            score = 0.0
            for word in set(self.words(query)):
                count, known = words[word], self.found_in[word]
                rarity = math.log(1 + (len(self.sections) - known + 0.5) / (known + 0.5))
                score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length))
            best[page] = max(best.get(page, 0.0), score * boost)
        return sorted((page for page in best if best[page] > 0), key=lambda page: -best[page])


def questions(path: pathlib.Path) -> List[Dict[str, str]]:
    """The file's entries: lines `name: text`, with blank lines between entries."""
    blocks = re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M).strip())
    return [dict(line.split(": ", 1) for line in block.strip().splitlines()) for block in blocks]


def missed(search: Any, path: pathlib.Path) -> List[str]:
    problems = []
    for one in questions(path):
        wanted = re.sub(r"(^|/)README\.md$", r"\1index.md", one["page"].partition("#")[0])
        wanted = re.sub(r"\.md$", ".html", wanted)
        found = search.pages(one["words"])[:FIRST]
        if wanted not in found:
            problems.append(
                f"{one['question']}  the search for {one['words']!r} finds {', '.join(found)}; not {wanted}"
            )
    return problems


def main() -> None:
    folder, asked = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    site = Site(folder)
    problems = site.check() + missed(Search(folder), asked)
    links = sum(len(page.links) for page in site.pages.values())
    print(
        "\n".join(problems)
        or f"{len(site.pages)} pages, {links} links, {len(questions(asked))} questions: all lead somewhere"
    )
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
