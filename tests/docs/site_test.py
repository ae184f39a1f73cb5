#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the documentation site's navigation against docs/, without MkDocs:  site_test.py ROOT

- every page of docs/, and each page outside that the site has, is in the navigation of mkdocs.yml exactly once;
- every question of newcomers.txt is answered where it says, and its page is so many clicks away from the home page;
- GitHub's Markdown becomes Python-Markdown's.

scripts/site.sh builds the site and checks the rest: links, anchors, and the search.
"""

import collections
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Dict, List

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "scripts/site"))
sys.dont_write_bytecode = True
import check
import repository

HOME = "docs/README.md"
MOST_CLICKS = 2
QUESTIONS = 20


def source_of(place: str) -> str:
    """The repository's file that a page of the site is made of."""
    outside = {site: path for path, site in repository.OUTSIDE.items()}
    return outside.get(place, "docs/" + place)


def clicks() -> Dict[str, int]:
    """How many links lead from the home page to each page, by the texts of pages."""
    found, edge = {HOME: 0}, [HOME]
    while edge:
        page = edge.pop(0)
        for link in repository.links_of((ROOT / page).read_text()):
            target, _ = repository.target_of(page, link)
            if target.endswith(".md") and target not in found and (ROOT / target).is_file():
                found[target] = found[page] + 1
                edge.append(target)
    return found


class Navigation(unittest.TestCase):
    def test_each_page_is_in_it_once(self) -> None:
        pages = collections.Counter(path for _, path in repository.navigation((ROOT / "mkdocs.yml").read_text()))
        there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
        there |= set(repository.OUTSIDE.values())
        self.assertGreater(len(there), 50, "pages were not found: this test is blind")
        self.assertEqual(sorted(there - set(pages)), [], "pages that the navigation lacks")
        self.assertEqual(sorted(set(pages) - there), [], "pages of the navigation that aren't there")
        self.assertEqual([page for page, times in pages.items() if times > 1], [], "pages that it has twice")

    def test_titles_are_different(self) -> None:
        titles = collections.Counter(title for title, _ in repository.navigation((ROOT / "mkdocs.yml").read_text()))
        self.assertEqual([title for title, times in titles.items() if times > 1], [])


class Newcomers(unittest.TestCase):
    def test_each_question_is_answered_near_the_home_page(self) -> None:
        away = clicks()
        questions = check.questions(ROOT / "tests/docs/newcomers.txt")
        self.assertEqual(len(questions), QUESTIONS)
        for one in questions:
            with self.subTest(one["question"]):
                path, _, anchor = one["page"].partition("#")
                path = source_of(path)
                text = (ROOT / path).read_text()
                self.assertTrue(one["says"] in " ".join(text.split()), f"{path} doesn't say: {one['says']}")
                headings = [
                    repository.slug(line.lstrip("# "))
                    for line, code in repository.lines_of(text)
                    if line[:1] == "#" and not code
                ]
                self.assertIn(anchor or headings[0], headings)
                self.assertEqual(away.get(path), int(one["clicks"]))
                self.assertLessEqual(int(one["clicks"]), MOST_CLICKS)


class Markdown(unittest.TestCase):
    def becomes(self, text: str, expected: str) -> None:
        self.assertEqual(repository.for_mkdocs(text, lambda link: link.upper()), expected)

    def test_items_are_indented_by_four(self) -> None:
        self.becomes("- a\n\n  b\n  - c\n", "- a\n\n    b\n\n    - c\n")
        self.becomes("1. a\n   b\n2. c", "1. a\n    b\n2. c")

    def test_code_in_an_item_stays_there(self) -> None:
        self.becomes("- a\n\n  ```sh\n  x\n    y\n  ```\n- b", "- a\n\n    ```sh\n    x\n      y\n    ```\n\n- b")

    def test_lists_and_tables_are_blocks_of_their_own(self) -> None:
        self.becomes("a\n- b", "a\n\n- b")
        self.becomes("a\n580. b", "a\n580. b")
        self.becomes("a\n| b |\n|---|", "a\n\n| b |\n|---|")

    def test_pipes_in_code_lose_their_backslash_in_tables_alone(self) -> None:
        self.becomes(r"| `a\|b` | \| |", r"| `a|b` | \| |")
        self.becomes(r"`a\|b`", r"`a\|b`")

    def test_comments_are_left_out_and_code_is_kept(self) -> None:
        self.becomes("<!-- shows: x -->\n```walk a\n<!-- y -->\n```", "\n```walk\n<!-- y -->\n```")

    def test_links_are_rewritten_but_not_in_code(self) -> None:
        self.becomes("[a](b)\n\n```\n[a](b)\n```", "[a](B)\n\n```\n[a](b)\n```")

    def test_targets(self) -> None:
        self.assertEqual(repository.target_of("docs/ci.md", "../README.md#x"), ("README.md", "x"))
        self.assertEqual(repository.target_of("docs/ci.md", "#x"), ("docs/ci.md", "x"))
        self.assertEqual(repository.target_of("docs/ci.md", "https://a/b"), ("", ""))
        self.assertEqual(repository.place_of("docs/schedulers/ray.md"), "schedulers/ray.md")
        self.assertEqual(repository.place_of("shim/a.cpp"), "source/shim/a.cpp.md")


class Built(unittest.TestCase):
    """The check of built pages, on a site of two."""

    def problems(self, text: str) -> List[str]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "index.html").write_text(text)
            (folder / "other.html").write_text('<h1 id="there">Other</h1>')
            # The first problem is always the same: there are few pages.
            return check.Site(folder).check()[1:]

    def test_links(self) -> None:
        self.assertEqual(self.problems('<a href="other.html#there">x</a> <a href="https://a/b">y</a>'), [])
        self.assertEqual(self.problems('<a href="gone.html">x</a>'), ["index.html: gone.html leads nowhere"])
        self.assertEqual(
            self.problems('<a href="other.html#gone">x</a>'), ["index.html: other.html#gone names no heading there"]
        )

    def test_what_a_page_loads(self) -> None:
        self.assertEqual(self.problems('<script src="//a/b.js"></script>'), ["index.html: loads //a/b.js"])
        self.assertEqual(self.problems('<img src="data:image/png;base64,AA">'), [])

    def test_unread_markdown(self) -> None:
        self.assertEqual(self.problems("<p>a\n- b</p>"), ["index.html: unread Markdown: - b"])
        self.assertEqual(self.problems("<p><strong>1. a</strong> b</p><p>a <code>- b</code></p>"), [])

    def test_the_search_prefers_titles_and_what_is_boosted(self) -> None:
        sections = [
            {"location": "a.html", "title": "Words", "text": "limit and more"},
            {"location": "b.html#x", "title": "A limit", "text": "words"},
            {"location": "c.html", "title": "Words", "text": "limit and more", "boost": 2},
            {"location": "d.html", "title": "Words", "text": "other"},
        ]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "search").mkdir()
            (folder / "search/search_index.json").write_text(json.dumps({"docs": sections}))
            found = check.Search(folder).pages("limits")
        self.assertEqual(sorted(found), ["a.html", "b.html", "c.html"])
        self.assertEqual(found[-1], "a.html")


if __name__ == "__main__":
    unittest.main()
