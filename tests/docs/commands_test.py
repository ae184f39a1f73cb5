#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What commands.py finds in a document, and what it lets pass. Runs no program of the build."""
import contextlib
import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import commands


class Stage:
    """A folder without fake GPUs and stand-ins."""

    def __enter__(self):
        self.owner = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.owner.name)
        self.environment = {"PATH": os.environ["PATH"]}
        self.count = 0
        return self

    def __exit__(self, *_):
        self.owner.cleanup()

    def scratch(self):
        self.count += 1
        folder = self.folder / f"block{self.count}"
        folder.mkdir()
        return folder

    def prepare(self, words, _):
        return words

    @contextlib.contextmanager
    def beside(self, words):
        yield words

    def plain(self, output):
        return output


def problems(text, name="page.md"):
    return "\n".join(commands.Page(name, text, Stage()).check())


class Rules(unittest.TestCase):
    def test_commands_of_a_block(self):
        text = "a b  # why\n# only words\nc \\\n  d\ne 'f\ng'\n\nh '# no comment'\ni \"j\\\nk\"\n"
        self.assertEqual(list(commands.commands(text)), ["a b", "c d", "e 'f g'", "h '# no comment'", 'i "jk"'])
        with self.assertRaisesRegex(ValueError, "no end"):
            list(commands.commands("a 'b\n"))

    def test_exit_codes(self):
        self.assertEqual(problems("```sh\ntrue\n```"), "")
        self.assertIn("page.md:1: exits 1, not 0: false", problems("```sh\ntrue\nfalse\n```"))
        self.assertEqual(problems("<!-- exits: 1 -->\n```sh\nfalse\n```"), "")
        self.assertIn("exits 0, not 1: true", problems("<!-- exits: 1 -->\n```sh\ntrue\n```"))
        self.assertEqual(problems("<!-- exits: 3 of (exit 3) -->\n```sh\ntrue\n(exit 3)\n```"), "")
        self.assertEqual(problems("<!-- exits: 0 or 3 -->\n```sh\ntrue\n(exit 3)\n```"), "")
        self.assertIn("exits 3, not 0 or 2", problems("<!-- exits: 0 or 2 -->\n```sh\ntrue\n(exit 3)\n```"))
        self.assertIn("no such command", problems("<!-- exits: 3 of (exit 4) -->\n```sh\ntrue\n```"))

    def test_one_shell_for_a_block(self):
        self.assertEqual(problems("```\n$ export A=1\n$ echo $A\n1\n```"), "")

    def test_output_behind_a_prompt(self):
        self.assertEqual(problems("```\n$ echo one; echo two\none\ntwo\n```"), "")
        self.assertEqual(problems("```\n$ echo 'one  two'\none two\n```"), "")  # spaces are alike
        self.assertIn("what came", problems("```\n$ echo one; echo two\none\n```"))
        self.assertIn("what came", problems("```\n$ echo one\none\ntwo\n```"))
        self.assertIn("what came", problems("```\n$ echo one\n```"))
        self.assertEqual(problems("```\n$ echo one; echo two\none\n…\n```"), "")
        for shown in "…\none\ntwo", "one\n…\ntwo", "one\ntwo\n…", "…\ntwo", "one …":
            self.assertEqual(problems(f"```\n$ echo one; echo two\n{shown}\n```"), "")
        self.assertIn("what came", problems("```\n$ echo one; echo two\none\n…\nthree\n```"))
        self.assertIn("what came", problems("```\n$ echo 1.5\n1x5\n```"))

    def test_output_of_a_command_that_isnt_shown(self):
        self.assertEqual(problems("<!-- shows: echo one -->\n```\none\n```"), "")
        self.assertIn("what came", problems("<!-- shows: echo one two -->\n```\none\n```"))
        self.assertEqual(problems("<!-- shows part of: echo one two -->\n```\none\n```"), "")
        self.assertIn("what came", problems("<!-- shows part of: echo one two -->\n```\nthree\n```"))
        self.assertIn("nobody knows which command's output", problems("```sh\ntrue\n```\n```\none\n```"))
        self.assertEqual(problems("```sh\ntrue\n```\n<!-- not run: a form -->\n```\none\n```"), "")

    def test_what_varies(self):
        shown = "```\n$ echo pid $$ of 3\npid 812 of 3\n```"
        self.assertIn("what came", problems(shown))
        self.assertEqual(problems("<!-- varies: 812 -->\n" + shown), "")
        self.assertIn("it isn't in the block", problems("<!-- varies: 812, 813 -->\n" + shown))

    def test_files(self):
        self.assertEqual(problems('<!-- file: a.toml -->\n```toml\na = 1\n```\n```\n$ cat a.toml\na = 1\n```'), "")

    def test_marks(self):
        with self.assertRaisesRegex(ValueError, "a mark is one of"):
            problems("<!-- exit: 1 -->\n```sh\nfalse\n```")
        # Other comments are none of a block's.
        self.assertEqual(problems("<!-- about the page -->\n\nWords.\n\n```sh\ntrue\n```"), "")

    def test_exceptions(self):
        kept = commands.exceptions.NOT_RUN
        commands.exceptions.NOT_RUN = {"page.md": {"false": "fails"}}
        try:
            self.assertEqual(problems("```sh\nfalse  # words\ntrue\n```"), "")
            self.assertIn("page.md has no command false", problems("```sh\nfalse --x || true\n```"))
        finally:
            commands.exceptions.NOT_RUN = kept

    def test_a_program_that_is_not_here_or_may_not_do_its_work(self):
        kept = commands.exceptions.WHERE_IT_WORKS
        try:
            for attempt, problem in ((), "exits 1, not 0"), (("--version",), "exits 1, not 0"), (("/nowhere",), ""):
                commands.exceptions.WHERE_IT_WORKS = {"ls": attempt}
                found = problems("```sh\nls /nowhere/either || false\n```")
                self.assertIn(problem, found)
                self.assertEqual(bool(found), bool(problem))
            commands.exceptions.WHERE_IT_WORKS = {"no-such-program": ()}
            self.assertEqual(problems("```sh\nno-such-program\n```"), "")
        finally:
            commands.exceptions.WHERE_IT_WORKS = kept

    def test_a_page_without_commands(self):
        self.assertIn("this test is blind", problems("Words.\n"))


if __name__ == "__main__":
    unittest.main()
