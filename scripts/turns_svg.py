#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws which process had which engine of a GPU at which time, as SVG:

  lib/cuslice/fake/watch --turns >turns.csv
  turns_svg.py turns.csv PICTURE.svg [--from MS] [--to MS] [--name PID=NAME]...

There is a row for each process and engine. Times are in milliseconds since the first turn; a process's share is its part
of all compute time between `--from` and `--to`. The colours change where the reader's theme is dark.
"""
import argparse
import collections
import csv
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs/images"))
sys.dont_write_bytecode = True
import draw

WIDTH, LEFT, RIGHT = 800, 190, 24
HEAD, ROW, BAR, FOOT = 36, 26, 16, 48
NAMES, NAME, LINE = 2, 300, 20  # of the legend: so many in a line, so far apart, and so far the lines
TICKS = 8  # at most
ENGINES = {"compute": "compute", "copy_in": "copies in", "copy_out": "copies out"}
LIGHT = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#7d6608"]
DARK = ["#4493f8", "#f0883e", "#3fb950", "#a371f7", "#f778ba", "#d4a72c"]
COLUMNS = ["gpu", "pid", "engine", "begin", "end"]

Turn = collections.namedtuple("Turn", "gpu pid engine begin end")


def read(lines):
    """The turns in milliseconds since the first of them."""
    table = csv.DictReader(lines)
    if table.fieldnames != COLUMNS:
        raise ValueError(f"the first line isn't {','.join(COLUMNS)}")
    rows = [Turn(int(row["gpu"]), int(row["pid"]), row["engine"], int(row["begin"]), int(row["end"])) for row in table]
    first = min((turn.begin for turn in rows), default=0)
    return [turn._replace(begin=(turn.begin - first) / 1e6, end=(turn.end - first) / 1e6) for turn in rows]


def within(turns, begin, end):
    cut = [turn._replace(begin=max(turn.begin, begin), end=min(turn.end, end)) for turn in turns]
    return [turn for turn in cut if turn.begin < turn.end]


def shares(turns, pids):
    """Each process's part of the compute time, by pid."""
    busy = dict.fromkeys(pids, 0)
    for turn in turns:
        if turn.engine == "compute":
            busy[turn.pid] += turn.end - turn.begin
    return {pid: time / (sum(busy.values()) or 1) for pid, time in busy.items()}


def step(length):
    """The least distance of round numbers that so many milliseconds have no more than TICKS of."""
    tens = 1e-6
    while True:
        for factor in 1, 2, 5:
            if length <= tens * factor * TICKS:
                return tens * factor
        tens *= 10


def palette():
    def rules(colours):
        return "".join(f".process{i}-fill{{fill:{colour}}}" for i, colour in enumerate(colours))

    return f"{rules(LIGHT)}@media (prefers-color-scheme:dark){{{rules(DARK)}}}"


def bars(turns, x_of, top):
    """The outline of a row's turns. Those between which nobody would see a gap are one."""
    spans = []
    for turn in sorted(turns, key=lambda turn: turn.begin):
        left, right = round(x_of(turn.begin), 2), round(x_of(turn.end), 2)
        if spans and left <= spans[-1][1]:
            spans[-1][1] = max(right, spans[-1][1])
        else:
            spans.append([left, right])
    return "".join(f"M{left:g} {top}h{right - left:.2f}v{BAR}H{left:g}z" for left, right in spans)


def draw_legend(picture, parts, classes, name_of):
    """Returns where the rows begin."""
    for i, (pid, part) in enumerate(parts.items()):
        x, y = LEFT + i % NAMES * NAME, 22 + i // NAMES * LINE
        picture.parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" rx="2" class="{classes[pid]}-fill"/>')
        picture.text(x + 18, y + 11, f"{name_of(pid)}: {part:.0%} of compute", anchor="start")
    return HEAD + math.ceil(len(parts) / NAMES) * LINE


def draw_axis(picture, begin, end, x_of, top, bottom):
    distance = step(end - begin)
    number = math.ceil(begin / distance)
    while number * distance <= end:
        x = round(x_of(number * distance), 2)
        picture.path([(x, top - 6), (x, bottom)], width=0.5)
        picture.text(x, bottom + 16, f"{number * distance:g}", "small", colour="faint")
        number += 1
    picture.text((LEFT + WIDTH - RIGHT) / 2, bottom + 36, "milliseconds", "small", colour="faint")


def picture_of(turns, begin, end, names):
    shown = within(turns, begin, end)
    # In the order in which they came, also before `begin`: pictures of one run have the same colours.
    pids = list(dict.fromkeys(turn.pid for turn in turns))
    parts = shares(shown, pids)
    classes = {pid: f"process{i % len(LIGHT)}" for i, pid in enumerate(pids)}
    rows = collections.defaultdict(list)
    for turn in shown:
        rows[turn.gpu, pids.index(turn.pid), list(ENGINES).index(turn.engine)].append(turn)

    def name_of(pid):
        return names.get(pid, f"process {pid}")

    def x_of(time):
        return LEFT + (time - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    picture = draw.Picture(WIDTH, 0, "Which process had which engine of a GPU at which time")
    picture.rules = palette()
    top = draw_legend(picture, parts, classes, name_of)
    bottom = top + ROW * len(rows)
    picture.size = WIDTH, bottom + FOOT
    draw_axis(picture, begin, end, x_of, top, bottom)
    several = len({turn.gpu for turn in shown}) > 1
    for i, key in enumerate(sorted(rows)):
        gpu, pid, engine = rows[key][0][:3]
        label = f"{name_of(pid)}, {ENGINES[engine]}"
        picture.text(16, top + i * ROW + 13, f"GPU {gpu}: {label}" if several else label, "small", "start")
        picture.parts.append(f'<path d="{bars(rows[key], x_of, top + i * ROW)}" class="{classes[pid]}-fill"/>')
    return picture


def name(text):
    pid, _, words = text.partition("=")
    return int(pid), words


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("turns", type=pathlib.Path)
    words.add_argument("picture", type=pathlib.Path)
    words.add_argument("--from", dest="begin", type=float, default=0, metavar="MS")
    words.add_argument("--to", dest="end", type=float, metavar="MS")
    words.add_argument("--name", type=name, action="append", default=[], metavar="PID=NAME")
    given = words.parse_args()
    try:
        turns = read(given.turns.read_text().splitlines())
    except ValueError as error:
        sys.exit(f"{given.turns}: {error}")
    end = max((turn.end for turn in turns), default=0) if given.end is None else given.end
    if not within(turns, given.begin, end):
        sys.exit(f"{given.turns}: no turns between these times")
    given.picture.write_text(picture_of(turns, given.begin, end, dict(given.name)).svg())


if __name__ == "__main__":
    main()
