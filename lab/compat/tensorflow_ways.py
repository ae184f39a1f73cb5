# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's recipes by each way into a slice: what `cuslice run` gives, and whether the other ways give the same.

  tensorflow_ways.py CUSLICE PYTHON [--runs FILE] [--table FILE] [--libraries FOLDERS] [RECIPE…]

A RECIPE is one of tensorflow_recipes.py; without any, all are run. What is compared, to the MiB: the exit code; the
most that was held of each GPU, by the fake driver's accounting; the devices that TensorFlow made, with their limits;
and all that the program told. --runs: where what was seen is kept, beside that of earlier runs. --table: writes the page
of all runs in that file. --libraries: what TensorFlow needs in LD_LIBRARY_PATH.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import shutil
import subprocess
import tempfile

import tensorflow_ways_page
import ways
from checks import check, finish
from slices import HERE, MIB, Seen
from tensorflow_recipes import RECIPES

PATIENCE = 900  # seconds for one program
WAYS = {way.name: way for way in ways.WAYS}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cuslice")
    parser.add_argument("python")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--runs", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--libraries", default="")
    parser.add_argument("--at-once", type=int, default=2, help="programs at the same time")
    given = parser.parse_intermixed_args()
    if unknown := set(given.recipes) - set(RECIPES):
        parser.error(f"there is no {unknown.pop()} here; a recipe is one of: {' '.join(RECIPES)}")
    return given


def without_words(line):
    """A line that a program told, less what an error says behind its kind, and with figures to the MiB."""

    def plain(key, value):
        if isinstance(value, list):
            return [plain(key, one) for one in value]
        if isinstance(value, float):
            return round(value)
        return value.split(":")[0] if key in ("error", "refusal") else value

    return {key: plain(key, value) for key, value in line.items()}


def peaks(watch, environment):
    """The most that a process held of each GPU, in MiB; GPUs that nobody opened are left out."""
    found = {}
    for row in json.loads(ways.answer(watch, "--json", "--all", env=environment)):
        if row["peak"]:
            found[row["gpu"]] = max(found.get(row["gpu"], 0), round(row["peak"] / MIB))
    return {str(gpu): found[gpu] for gpu in sorted(found)}


def made(way, place, recipe, settings):
    """Runs a recipe's program: what it told and said, and what it held."""
    words = [place.python, HERE / "tensorflow_programs.py", *recipe.words]
    one = way(place, recipe.fake, settings)
    try:
        command = [str(word) for word in one.command(words)]
    except ways.Refused as refused:
        status, line = refused.args
        return Seen(status, [], line, {})
    ended = subprocess.run(
        command, env=one.environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"')]
    return Seen(ended.returncode, told, ended.stderr, peaks(place.installed / "fake/watch", place.plain()))


def outcome(way, recipe, settings, given):
    """The same as a dict of what is compared, and the last lines that were said, for whoever reads a FAIL."""
    folder = tempfile.mkdtemp(prefix="cuslice-ways-", dir="/dev/shm")
    try:
        seen = made(way, ways.Place(given.cuslice, given.python, folder, given.libraries), recipe, settings)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    compared = {
        "status": seen.status,
        "held": seen.books,
        "devices": seen.created(),
        "told": [without_words(line) for line in seen.told],
    }
    return {"compared": compared, "said": (seen.ours() or seen.error.splitlines())[-3:]}


def changed(settings, like):
    """The settings with those of a difference."""
    return {key: value for key, value in (settings | like).items() if value is not None}


def jobs(recipe, there):
    """Each run of a recipe: its name → the way, and the settings. Beside the ways, `cuslice run` as a way that differs
    is expected to be."""
    found = {name: (WAYS[name], recipe.settings) for name in there}
    for number, one in enumerate(recipe.differences):
        if set(one.ways) & set(there):
            found[f"like {number}"] = (WAYS["run"], changed(recipe.settings, one.like))
    return found


def run_recipe(recipe, there, given):
    """All of its runs, by their names."""
    todo = jobs(recipe, there)
    with concurrent.futures.ThreadPoolExecutor(given.at_once) as pool:
        futures = {name: pool.submit(outcome, way, recipe, settings, given) for name, (way, settings) in todo.items()}
        return {name: future.result() for name, future in futures.items()}


def short(seen):
    """A run, in a line."""
    compared = seen["compared"]
    held = ", ".join(f"GPU {gpu} {size}" for gpu, size in compared["held"].items()) or "nothing"
    return f"exit code {compared['status']}, devices of {compared['devices']} MiB, held {held}"


def check_way(recipe, way, seen):
    """PASS or FAIL for a way, by what it gave."""
    difference = recipe.difference(way)
    number = recipe.differences.index(difference) if difference else None
    wanted = seen["run"] if difference is None else seen[f"like {number}"]
    what = (
        f"{recipe.what}, {way}: as `cuslice run`"
        if difference is None
        else f"{recipe.what}, {way}: {difference.reason.why}"
    )
    good = seen[way]["compared"] == wanted["compared"]
    if difference is not None:
        good = (
            good
            and seen[way]["compared"] != seen["run"]["compared"]
            and difference.reason.line in " ".join(seen[way]["said"])
        )
    figures = short(seen[way])
    if not good:
        figures += f"; wanted: {wanted['compared']}; seen: {seen[way]['compared']}; said: {seen[way]['said']}"
    return check(good, what, figures)


def here():
    """The ways that can be had, after a line for each of the others."""
    found = []
    for name, way in WAYS.items():
        try:
            way.look()
            found.append(name)
        except ways.Missing as missing:
            print(f"SKIP  {name}: {missing}", flush=True)
    return found


def read(file):
    return json.loads(file.read_text()) if file and file.exists() else {}


def main():
    given = arguments()
    there = here()
    about = tensorflow_ways_page.about(given.cuslice, given.python)
    for name in given.recipes or RECIPES:
        recipe = RECIPES[name]
        print(f"--- {recipe.what}: {recipe.fake} {recipe.options()}", flush=True)
        seen = run_recipe(recipe, there, given)
        wrong = seen["run"]["compared"]["status"] not in recipe.statuses
        check(
            not wrong, f"{recipe.what}, run", short(seen["run"]) + (f"; said: {seen['run']['said']}" if wrong else "")
        )
        good = {way: check_way(recipe, way, seen) for way in there if way != "run"}
        if given.runs:
            row = {"seen": seen, "good": good, "date": datetime.date.today().isoformat(), **about}
            given.runs.write_text(json.dumps(read(given.runs) | {name: row}, indent=1) + "\n")
    if given.table:
        given.table.write_text(tensorflow_ways_page.page_of(read(given.runs)))
    finish()


if __name__ == "__main__":
    main()
