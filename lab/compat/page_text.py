# SPDX-License-Identifier: Apache-2.0
"""The words of docs/results/compatibility/packages.md, made of what page_runs.json says of the runs."""

import re
import textwrap

from page_packages import PACKAGES
from page_runs import MODES, command

OWN_RUNTIME = "carries NVIDIA's own CUDA runtime, which needs a GPU"  # as the fake GPU says of a library
LEAST = 0.6  # of a slice, below which what a program got is worth a word
MOST_WORDS = 90
MOST_KEPT = 300  # MiB


def shortened(text, most=MOST_WORDS):
    """As a cell of a table may have it."""
    text = " ".join(text.replace("|", "/").replace("`", "'").split())
    return text if len(text) <= most else text[: most - 2].rsplit(" ", 1)[0] + " …"


def all_of(run, key):
    """The lines that a program told with this key."""
    return [line for line in run["told"] if key in line]


def ending(run):
    """How a run failed, in words; nothing if it came to its end."""
    failed = all_of(run, "failed")
    if run["status"] == "late":
        return "did not come to its end in time, and was ended"
    if failed:
        return failed[0]["failed"]
    if isinstance(run["status"], int) and run["status"] < 0 or run["status"] in range(129, 160):
        return f"ended by signal {-run['status'] if run['status'] < 0 else run['status'] - 128}"
    if run["status"]:
        return f"ended with exit code {run['status']}: {run['said'][-1] if run['said'] else 'nothing was said'}"
    return ""


def problems(package, run, mode):
    """What is not as it should be, in words."""
    sizes, found = MODES[mode][1], []
    if words := ending(run):
        return [words]
    shown = [gpu for line in all_of(run, "gpus") for gpu in line["gpus"]]
    if len(shown) != len(sizes):
        return [f"{len(shown)} GPUs are shown, not {len(sizes)}"]
    totals = [gpu.get("total") for gpu in shown]
    for total, size in zip(totals, sizes):
        # Without a limit, NVML's total counts what the driver keeps for itself.
        kept = MOST_KEPT if package.shows and mode == "fake" else 1
        if total is not None and not -1 <= total - size <= kept:
            found.append(f"{total:.0f} MiB are shown, not {size}")
    if run["held"] > sum(sizes):
        found.append(f"{run['held']:.0f} MiB were held, of {sum(sizes)}")
    if package.shows:
        if len(all_of(run, "shown")) != len(sizes):
            return [*found, "use and processes are not shown"]
        for line, size, total in zip(all_of(run, "shown"), sizes, totals):
            if not line["holds"] <= line["shown"] <= max(size, total) + 1:
                found.append(f"{line['shown']:.0f} MiB are shown as used, where a process holds {line['holds']}")
            if line["listed"] is False:
                found.append("the process that holds memory is not listed")
        return found
    filled = all_of(run, "got")
    if len(filled) != len(sizes):
        return [*found, f"{len(filled)} of {len(sizes)} GPUs were filled"]
    for line, size in zip(filled, sizes):
        if not line["oom"] or not line["got"]:
            found.append(f"after {line['got']} MiB: {line['error'] or 'it was never refused'}")
        elif line["got"] < LEAST * size:
            found.append(f"was refused after {line['got']} of {size} MiB")
    if len(all_of(run, "again")) < len(filled) and not found:
        found.append("got nothing any more after all was given back")
    return found


def listed(words):
    """1, 2 and 3"""
    words = [str(word) for word in words]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def cell(package, row, mode):
    """What the table says of a mode."""
    if row is None:
        return "not run"
    if "missing" in row:
        return "–"
    run, sizes = row["modes"][mode], MODES[mode][1]
    if found := problems(package, run, mode):
        if any(OWN_RUNTIME in line for line in run["said"]):
            return "**fails**: it " + OWN_RUNTIME
        return "**fails**: " + shortened(found[0])
    if package.shows:
        totals = [gpu["total"] for line in all_of(run, "gpus") for gpu in line["gpus"]]
        figures = [f"{line['shown']:.0f} of {total:.0f}" for line, total in zip(all_of(run, "shown"), totals)]
        return f"ok: shows {listed(figures)} MiB" + (", and the process" if all_of(run, "shown")[0]["listed"] else "")
    figures = [f"{line['got']} of {size}" for line, size in zip(all_of(run, "got"), sizes)]
    word = "ok" if mode == "fake" else "refused at the limit" if len(sizes) == 1 else "refused at each limit"
    return f"{word}: {listed(figures)} MiB"


def details(package, row):
    """The paragraph of a package: its refusal in its own words, what else was tried, and what failed, in full."""
    yield f"### {package.name}"
    yield ""
    where = f"Debian's package {package.debian}" if package.debian else f"`{package.distribution}`"
    if row is None:
        yield "Not run yet."
        yield ""
        return
    about = f"{where} {row['version']}" if "missing" not in row else where
    if package.note and "missing" not in row:
        about += f", {package.note}"
    yield from textwrap.wrap(f"{about}. Run on {row['date']} with cuslice {row['cuslice']}.", 100, break_long_words=False)
    yield ""
    if "missing" in row:
        yield "It could not be had:"
        yield from block([row["missing"]])
        return
    groups = {}
    for mode in MODES:
        run = row["modes"][mode]
        lines = []
        for line in run["told"]:
            if line.get("oom"):
                lines.append(f"refused with {line['error']}")
            elif "failed" in line:
                lines.append(f"ended with {line['failed']}")
            elif "got" in line:
                lines.append(f"after {line['got']} MiB: {line['error'] or 'never refused'}")
            elif "did" in line:
                lines.append(f"{line['did']}: {line['error'] or 'comes to its end'}")
        words = ending(run)
        if words and not all_of(run, "failed"):
            lines.append(words)
            lines += run["said"][-3:]
        lines += [line for line in run["said"] if line.startswith("cuslice") and words]
        lines.append(f"held at most: {run['held']:.0f} MiB")
        unique = tuple(dict.fromkeys(lines))
        groups.setdefault(unique, []).append(mode)
    for lines, modes in groups.items():
        yield f"{listed(modes)}:"
        yield from block(lines)


def block(lines):
    """Output, that no test runs again."""
    yield ""
    yield "<!-- not run: what a package said that is installed for the run alone -->"
    yield "```"
    for line in lines:
        yield from textwrap.wrap(" ".join(line.replace("```", "'''").split()), 98, subsequent_indent="  ") or [""]
    yield "```"
    yield ""


INTRODUCTION = """\
# Compatibility

What packages that others wrote do, unmodified, on the [fake GPU](../../fake-gpu.md) and in slices
of it. Each cell is what happened in a run; none is written by hand. Nothing here was measured on a
GPU, where kernels and NVIDIA's libraries run and take memory too
([hardware](../hardware/README.md)).

Each package has a small program, in `lab/compat/fill/`, that takes memory in blocks of 64 MiB,
then of 8, until the package refuses, gives all of it back and takes half of it again. A program
that only shows memory is looked at while another process of the same job holds all that it gets;
hashcat shows it in a process with a context.
The GPU is a T4 with 4 GiB:

| mode | options of `cuslice run` | MiB |
|---|---|---|
"""

LEGEND = """
- **ok**, **refused at the limit**: the package shows the slice as the GPU's memory, gives so many
  MiB and then raises its own error for too little memory; the fake GPU's accounting shows that no
  more than the slice was ever held, the context included; and memory that was given back can be
  had again. What NVML tells of a GPU without a limit includes the 250 MiB that the driver keeps.
- **fails**: what came first of what was not so. The package's own words, shortened; they are in
  full below.
- **–**: the package could not be had from the Python index or from Debian.
- **not run**: a partial run left it out.

Packages that carry NVIDIA's own CUDA runtime inside a library of theirs need a GPU ([the line that
is not crossed](../../boundaries.md#the-line-that-is-not-crossed)): for them a failure in every
column is the fake GPU's limit, and says nothing of a slice on a GPU.
"""


def page(runs):
    """docs/results/compatibility/packages.md."""
    lines = [INTRODUCTION.rstrip("\n")]
    for mode, (options, sizes) in MODES.items():
        lines.append(f"| {mode} | {'`' + ' '.join(options) + '`' if options else '–'} | {listed(sizes)} |")
    machines = sorted({row["machine"] for row in runs.values()})
    dates = sorted({row["date"] for row in runs.values()})
    lines += ["", *textwrap.wrap(f"Run on {listed(dates)}; the machine had {'; '.join(machines)}." if runs else "Not run yet.", 100)]
    absent = [package.name for package in PACKAGES if package.name not in runs]
    if absent:
        lines += ["", *textwrap.wrap(f"**Not run**: {listed(absent)}.", 100, break_on_hyphens=False)]
    lines += ["", "```sh", "scripts/compat.sh --page              # all of it: gigabytes of downloads",
              "scripts/compat.sh --page torch numba  # only these; the others keep their rows", "```"]  # fmt: skip
    lines += ["", "<!-- generated by scripts/compat.sh --page: begin -->", ""]
    lines += ["| package | version | " + " | ".join(MODES) + " |", "|---" * (len(MODES) + 2) + "|"]
    for package in PACKAGES:
        row = runs.get(package.name)
        version = (row or {}).get("version") or ("can't be had" if row else "")
        cells = [cell(package, row, mode) for mode in MODES]
        lines.append(f"| [{package.name}](#{package.name}) | {version} | " + " | ".join(cells) + " |")
    lines += ["", "<!-- generated by scripts/compat.sh --page: end -->", LEGEND, "## Package by package", ""]
    lines += ["<!-- generated by scripts/compat.sh --page: begin -->", ""]
    for package in PACKAGES:
        lines += details(package, runs.get(package.name))
    lines.append("<!-- generated by scripts/compat.sh --page: end -->")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"
