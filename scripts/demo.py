#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the samples on a fake GPU, alone and with --limit 8GiB, and draws what they held side by side.

  demo.py BUILD [--contexts MIB,MIB] [--from FOLDER]

"Held" is from the fake driver's own accounting, read by a process that runs without cuslice: what the driver has given
to the program, its context included. How much a context takes is drawn at random for each program, so that cuslice
can't know it; both runs of a program have the same. --contexts repeats a run. --from names the reader's folder, to
which the paths of the next command are relative. Bars are of ASCII where the locale isn't UTF-8.
Exits with 1 unless every limited run stayed within the limit by that accounting and its program got what was left.
"""
import argparse
import json
import locale
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PROFILE = "rtx4090"
LIMIT = "8GiB"
LIMIT_MIB = 8 * 1024
MIB = 1 << 20
PROGRAMS = {"driver_fill": "driver API", "runtime_fill": "CUDA runtime"}
CONTEXTS = range(100, 601)

BAR_COLUMNS = 38
EIGHTHS = " ▏▎▍▌▋▊▉"
UNICODE = {"driver": "▒", "full": "█", "limit": "│"}
ASCII = {"driver": "+", "full": "#", "limit": "|"}


def read_contexts(text):
    """One size for each program, in MiB."""
    sizes = [int(word) if word.isdecimal() else 0 for word in text.split(",")]
    if len(sizes) != len(PROGRAMS) or any(size not in CONTEXTS for size in sizes):
        raise argparse.ArgumentTypeError(f"{text}: {len(PROGRAMS)} sizes of {CONTEXTS[0]} to {CONTEXTS[-1]} MiB, "
                                         "such as 312,455")
    return sizes


def plain_environment():
    """Without what would limit the programs already."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("CUSLICE_") and name != "LD_PRELOAD"}  # fmt: skip


def values(output):
    """The program's lines, an object each, and the watcher's list of who held memory; up to what isn't JSON."""
    decoder, objects, lists = json.JSONDecoder(), [], []
    while output := output.strip():
        try:
            value, end = decoder.raw_decode(output)
        except ValueError:
            break
        (lists if isinstance(value, list) else objects).append(value)
        output = output[end:]
    return objects, lists[-1] if lists else []


def run(build, folder, program, context, limited):
    """One program once: what it says and what the driver gave it, in MiB."""
    machine = folder / "machine.toml"
    machine.write_text(f'[[gpu]]\nprofile = "{PROFILE}"\ncontext = "{context}MiB"\n')
    accounting = tempfile.mkdtemp(dir=folder)
    fake = {"CUSLICE_FAKE": str(machine), "CUSLICE_FAKE_DIR": accounting, "CUSLICE_DIR": accounting}
    environment = plain_environment() | fake
    limit = ["--limit", LIMIT] if limited else []
    command = [build / "lib/cuslice/fake/watch", "--json", "--",
               build / "bin/cuslice", "run", "--fake", machine, *limit, "--", build / "samples" / program, "--json"]
    command = [str(word) for word in command]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said, holders = values(ended.stdout)
    full = next((line for line in said if line["phase"] == "full"), None)
    if ended.returncode != 0 or not full or len(holders) != 1:
        sys.exit(f"{' '.join(command)}\nended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    row = {"program": program, "limited": limited, "context": context, "gpu": full["device"],
           "total": full["total"] / MIB, "got": full["got"] / MIB, "held": holders[0]["peak"] / MIB}
    row["complaint"] = complaint(row, full["verified"])
    return row


def complaint(row, verified):
    """Why a run does not show what it should; None if it does."""
    if not verified:
        return "the contents of its memory were wrong"
    if row["got"] <= 0:
        return "it got nothing"
    if not row["limited"]:
        # Otherwise the limited run would stay under the limit by itself.
        return None if row["held"] > LIMIT_MIB else "without a limit it took no more than the limit"
    if row["total"] != LIMIT_MIB:
        return f"it saw {row['total']:.1f} MiB in total"
    return None if row["held"] <= LIMIT_MIB else f"it held {row['held']:.1f} MiB"


def bar(row, most, signs):
    """What a program held of `most` MiB: the context, what was allocated, and where the limit is."""
    per_column = most / BAR_COLUMNS
    driver = max(1, round(row["context"] / per_column))
    held = row["held"] / per_column
    eighths = round(held * 8) if signs is UNICODE else round(held) * 8
    columns = [signs["driver"]] * driver + [signs["full"]] * (eighths // 8 - driver)
    if eighths % 8:
        columns.append(EIGHTHS[eighths % 8])
    columns += [" "] * (BAR_COLUMNS - len(columns))
    if row["limited"]:
        columns[math.ceil(LIMIT_MIB / per_column)] = signs["limit"]
    return "".join(columns)


def draw(rows, signs):
    most = max(row["total"] for row in rows)
    print(f"\nTwo CUDA programs, unmodified, on a fake {rows[0]['gpu']} of {most:.0f} MiB. Each takes all\n"
          f"the memory it is given, first alone, then under `cuslice run --limit {LIMIT}`.\n")
    print(f"{'':<22} {'':{BAR_COLUMNS}} context allocated   held")
    for number, row in enumerate(rows):
        if number and not row["limited"]:
            print()
        name = PROGRAMS[row["program"]] if row["limited"] else row["program"]
        kind = "limited" if row["limited"] else "alone"
        print(f"{name:<14}{kind:<8} {bar(row, most, signs)} {row['context']:>7} {row['got']:>9.0f} {row['held']:>6.0f}")
    print(f"\n{signs['driver']} context   {signs['full']} allocated   {signs['limit']} the limit, {LIMIT_MIB} MiB.  "
          "All figures are in MiB.")


def explain(build, contexts):
    sizes = ",".join(map(str, contexts))
    print(f"""
What a program held is the fake driver's own accounting, read without cuslice. The sizes of the
contexts were drawn at random, one for each program, so that cuslice can't know them beforehand.
The same again: python3 scripts/demo.py {build} --contexts {sizes}""")


def has_gpu(build):
    ask = [build / "bin/cuslice", "devices"]
    asked = subprocess.run(ask, env=plain_environment(), capture_output=True, check=False)
    return asked.returncode == 0


def next_command(build, place):
    if has_gpu(build):
        print("\nNext, a program of yours on this machine's GPU:")
        print(f"  {place}/bin/cuslice run --limit 4GiB -- YOUR-PROGRAM")
    else:
        print("\nNext, a program for several GPUs on one GPU, split in two (fake too, as there is no GPU here):")
        print(f"  {place}/bin/cuslice run --fake {PROFILE} --fake-machine new --split 0=2 -- \\\n"
              f"      {place}/lib/cuslice/samples/towers_driver")


def main():
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n")[2].strip())
    parser.add_argument("build")
    parser.add_argument("--contexts", type=read_contexts, metavar="MIB,MIB")
    parser.add_argument("--from", dest="start", metavar="FOLDER")
    words = parser.parse_args()
    build = pathlib.Path(words.build).resolve()
    contexts = words.contexts or random.SystemRandom().sample(CONTEXTS, len(PROGRAMS))
    locale.setlocale(locale.LC_CTYPE, "")
    signs = UNICODE if locale.nl_langinfo(locale.CODESET) == "UTF-8" else ASCII

    with tempfile.TemporaryDirectory(prefix="cuslice-demo-") as folder:
        rows = [run(build, pathlib.Path(folder), program, context, limited)
                for program, context in zip(PROGRAMS, contexts) for limited in (False, True)]
    draw(rows, signs)
    explain(words.build, contexts)

    for row in rows:
        if row["complaint"]:
            print(f"{row['program']}, {'limited' if row['limited'] else 'alone'}: {row['complaint']}", file=sys.stderr)
    held = math.ceil(max(row["held"] for row in rows if row["limited"]))
    if any(row["complaint"] for row in rows):
        print(f"\nNOT held under --limit {LIMIT}: {held} MiB of {LIMIT_MIB}")
        sys.exit(1)
    print(f"\nheld under --limit {LIMIT}: {held} MiB of {LIMIT_MIB}")
    next_command(build, os.path.relpath(build, words.start) if words.start else words.build)


main()
