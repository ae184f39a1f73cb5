# SPDX-License-Identifier: Apache-2.0
"""docs/results/compatibility/tensorflow-ways.md has a row for each recipe; what a way is given says what the settings
say; and a cell is not called equal, or different for a reason, unless the runs were. Runs no TensorFlow."""

import contextlib
import io
import pathlib
import re
import sys
import types
import unittest

sys.dont_write_bytecode = True
import tensorflow_ways
import tensorflow_ways_page
import ways
from tensorflow_recipes import RECIPES, Difference, Reason, Recipe

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/results/compatibility/tensorflow-ways.md"
ABOUT = {"date": "2026-01-02", "cuslice": "1.2.3", "tensorflow": "2.21.0", "machine": "a machine"}


def seen(devices=(515,), held=816, status=0, told=()):
    """A run."""
    compared = {"status": status, "held": {"0": held} if held else {}, "devices": list(devices), "told": list(told)}
    return {"compared": compared, "said": []}


def checked(recipe, way, runs):
    """True if the cell passes."""
    with contextlib.redirect_stdout(io.StringIO()):
        return tensorflow_ways.check_way(recipe, way, runs)


class Comparison(unittest.TestCase):
    plain = Recipe("a limit", "1xt4", {"limit": "1GiB"}, ("take",))
    other = Recipe(
        "a limit",
        "1xt4",
        {"limit": "1GiB"},
        ("take",),
        (Difference(("CDI",), Reason("why", "page.md"), {"limit": "2GiB"}),),
    )

    def test_equal(self):
        self.assertTrue(checked(self.plain, "TOML", {"run": seen(), "TOML": seen()}))
        for one in (seen(devices=(516,)), seen(held=817), seen(status=1), seen(told=[{"pool": 1}])):
            self.assertFalse(checked(self.plain, "TOML", {"run": seen(), "TOML": one}))

    def test_different_as_said(self):
        larger = seen(held=1840)
        self.assertTrue(checked(self.other, "CDI", {"run": seen(), "CDI": larger, "like 0": larger}))
        self.assertFalse(checked(self.other, "CDI", {"run": seen(), "CDI": seen(held=1841), "like 0": larger}))
        # One that is said to differ and doesn't.
        self.assertFalse(checked(self.other, "CDI", {"run": seen(), "CDI": seen(), "like 0": seen()}))
        self.assertTrue(checked(self.other, "TOML", {"run": seen(), "TOML": seen()}))

    def test_different_with_a_line(self):
        recipe = Recipe(
            "a limit", "1xt4", {}, ("take",), (Difference(("CDI",), Reason("why", "page.md", "no GPU"), {}),)
        )
        for said, good in (["cuslice: x; no GPU will be used"], True), ([], False):
            runs = {"run": seen(), "CDI": seen(held=0) | {"said": said}, "like 0": seen(held=0)}
            self.assertEqual(checked(recipe, "CDI", runs), good)

    def test_to_the_mib_and_without_words(self):
        line = {"pool": 515.4, "held": [816.2, 0.6], "error": "OOM: at 0x7f", "devices": 1}
        self.assertEqual(
            tensorflow_ways.without_words(line), {"pool": 515, "held": [816, 1], "error": "OOM", "devices": 1}
        )

    def test_settings_of_a_difference(self):
        like = {"limit": None, "gpus": "none"}
        self.assertEqual(tensorflow_ways.changed({"limit": "1GiB", "split": "2"}, like), {"split": "2", "gpus": "none"})


class Settings(unittest.TestCase):
    def test_a_file(self):
        settings = {"limit": "0=4GiB,1=8GiB", "gpus": "1,0", "allocator": "growth", "no-framework-env": "yes"}
        self.assertEqual(
            ways.toml(settings).splitlines(),
            [
                'gpus = "1,0"',
                "no-framework-env = true",
                "[gpu.0]",
                'limit = "4GiB"',
                "[gpu.1]",
                'limit = "8GiB"',
                "[memory]",
                'allocator = "growth"',
            ],
        )

    def test_a_rule(self):
        for settings, rule, asked in (
            ({"fraction": "0.4"}, ['fraction = "0.4"'], {}),
            ({"limit": "0=4GiB,1=8GiB"}, ['gpu.0.limit = "4GiB"', 'gpu.1.limit = "8GiB"'], {}),
            ({"limit": "1GiB+context"}, ['limit = "1GiB"'], {"CUSLICE_LIMIT": "1GiB+context"}),
            ({"split": "0=2"}, [], {"CUSLICE_SPLIT": "0=2"}),
        ):
            with self.subTest(settings):
                way = ways.Rule(types.SimpleNamespace(), "1xt4", settings)
                self.assertEqual(way.rule().splitlines(), ["[[rule]]", 'name = "all"', *rule])
                self.assertEqual(way.variables(), asked)


class Page(unittest.TestCase):
    def row(self, recipe, **more):
        runs = {way: seen() for way in ("run", *tensorflow_ways_page.WAYS)} | more
        row = {"seen": runs, "good": {way: checked(recipe, way, runs) for way in runs if way in tensorflow_ways.WAYS}}
        return tensorflow_ways_page.table_row(recipe, row, tensorflow_ways_page.Reasons())[3:]

    def test_cells(self):
        larger = seen(held=1840)
        self.assertEqual(self.row(Comparison.plain), ["515", "816", "=", "=", "=", "="])
        self.assertEqual(self.row(Comparison.plain, TOML=larger)[3], "**differs**: 515; 1840")
        found = self.row(Comparison.other, **{"CDI": larger, "like 0": larger})
        self.assertEqual(found, ["515", "816", "=", "=", "515; held 1840 [1]", "="])
        refused = seen(devices=(), held=0, status=78)
        self.assertEqual(self.row(Comparison.plain, run=refused)[:2], ["refused", "–"])

    def test_it_has_every_recipe(self):
        rows = [re.split(r" \| ", line.strip("| ")) for line in PAGE.read_text().splitlines() if line.startswith("| ")]
        wanted = [
            [recipe.what, f"`{recipe.fake}`", f"`{recipe.options()}`" if recipe.settings else "–"]
            for recipe in RECIPES.values()
        ]
        self.assertEqual([row[:3] for row in rows[1:]], wanted)

    def test_it_is_whole(self):
        text = PAGE.read_text()
        self.assertNotIn("**differs**", text)
        self.assertNotIn("not run", text.lower())

    def test_what_is_missing_is_named(self):
        name, recipe = next(iter(RECIPES.items()))
        runs = {"run": seen(), "TOML": seen()}
        row = {"seen": runs, "good": {"TOML": True}} | ABOUT
        text = tensorflow_ways_page.page_of({name: row})
        self.assertIn(f"| {recipe.what} |", text)
        self.assertIn("| not run | = | not run | not run |", text)
        self.assertIn("**Not run**: ", text)


if __name__ == "__main__":
    unittest.main()
