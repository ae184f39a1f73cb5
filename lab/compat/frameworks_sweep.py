# SPDX-License-Identifier: Apache-2.0
"""What a framework gets of every limit, on every profile of the fake GPU: it never falls when the limit rises, and is
the limit less the context and 300 MiB, or more.

  frameworks_sweep.py CUSLICE PYTHON PROGRAM [PROFILE…]

PROGRAM is tensorflow_programs.py or jax_programs.py, whose command `take` says what it gets of each GPU.
"""

import json
import pathlib
import subprocess
import sys

from checks import check, finish
from slices import DEVICE_FILES, HERE, Slices

LIMITS = (700, 1024, 1536, 2048, 2100, 2600, 2650, 3072, 4096, 6144, 8192, 12288, 16384, 24576)
MOST_LOST = 300  # MiB, beside the context


def profiles(cuslice):
    """The fake GPUs that there are: name, memory in MiB, context in MiB."""
    for path in sorted((pathlib.Path(cuslice).resolve().parents[1] / "lib/cuslice/fake/profiles").glob("*.toml")):
        shown = subprocess.run(
            [cuslice, "devices", "--json", "--fake", path.stem], check=True, capture_output=True, text=True
        )
        yield path.stem, json.loads(shown.stdout)["devices"][0]["total"] >> 20


def main():
    cuslice, python, program, *only = sys.argv[1:]
    slices = Slices(cuslice, python, before=DEVICE_FILES if program.startswith("jax") else ())
    for profile, total in profiles(cuslice):
        if only and profile not in only:
            continue
        before, figures, fallen, short = 0, [], [], []
        for limit in LIMITS:
            if limit > total:
                break
            seen = slices.run(profile, ["--limit", f"{limit}MiB"], [HERE / program, "take"])
            pool = seen.one("pool", 0)
            context = seen.books[0]["context"] / (1 << 20) if seen.books else 0
            most = max(seen.peaks(), default=0)
            figures.append(f"{limit}: {pool:.0f}")
            print(
                f"      {profile} {limit} MiB: {pool:.1f} for the program, {most:.1f} held, context {context:.0f}",
                flush=True,
            )
            if seen.status or seen.one("refusal"):
                short.append(f"{limit}: {seen.one('refusal')} {seen.error[-500:]}")
            if pool < before:
                fallen.append(f"{before:.1f} MiB before {limit} MiB, {pool:.1f} there")
            if pool < limit - context - MOST_LOST or most > limit:
                short.append(f"{limit}: {pool:.1f}, {most:.1f} held")
            before = pool
        check(
            not fallen,
            f"{profile}: what {program.split('_')[0]} gets never falls when the limit rises",
            ", ".join(fallen or figures),
        )
        check(
            not short,
            f"{profile}: and is the limit - context - {MOST_LOST} MiB, or more",
            ", ".join(short) or "in each",
        )
    slices.close()
    finish()


main()
