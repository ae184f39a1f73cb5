#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what other languages and documents say of settings and of the columns of `cuslice ps`, from the launcher's own rows.

    settings_tables.py --write LAUNCHER [SOURCE]
    settings_tables.py --check LAUNCHER [SOURCE]    ends with 1 where a file isn't as it would be written

Written are python/cuslice/_settings.py, whole, and the tables of docs/configuration.md and docs/sharing.md between their
two marks. The rows are those of `cuslice help options --json`.
"""

import json
import pathlib
import re
import subprocess
import sys

#: Python's types of a value, by the row's type: for the process, and for each GPU.
TYPES = {
    "fraction": ("Union[float, str]", "Fraction"),
    "limit": ("Size", "PerGpu"),
    "size": ("Size", "PerGpu"),
    "count": ("Union[int, str]", "PerGpu"),
    "percent": ("Union[float, str]", "Fraction"),
    "switch": ("Union[bool, str]", None),
    "duration": ("Union[float, str]", "PerGpuTime"),
    "switch-or-duration": ("Union[bool, float, str]", None),
    "choice": ("str", "PerGpuWord"),
    "name": ("str", None),
    "group": ("str", None),
    "gpus": ("Gpus", None),
    "split": (None, "Split"),
    "log": ("Path", None),
    "fake-gpus": ("Path", None),
    "file": ("Path", None),
    "absolute-file": ("Path", None),
    "absolute-folder": ("Path", None),
}
#: Settings that say which machine it is: FakeMachine's own, and not its programs'.
MACHINE = ("fake", "fake-machine")
MODULE = '''# SPDX-License-Identifier: Apache-2.0
"""The settings as parameters. Written by scripts/settings_tables.py from the launcher's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from cuslice._arguments import Fraction, Gpus, Path, PerGpu, PerGpuTime, PerGpuWord, Size, Split

    class Settings(TypedDict, total=False):
        """Settings of a program; on a FakeMachine, too."""

{on_machine}

    class AllSettings(Settings, total=False):
        """Those that choose the machine besides."""

{machine}


class Setting(NamedTuple):
    """A parameter's option, the type of its value, and whether a mapping gives each GPU its own."""

    option: str
    type: str
    per_gpu: bool


#: By parameter, in the launcher's order.
SETTINGS: Mapping[str, Setting] = {{
{rows}
}}
'''


def parameter(row):
    return row["key"].replace("-", "_")


def python_type(row):
    return TYPES[row["type"]][row["per_gpu"]]


def python_module(rows):
    def fields(chosen):
        return "\n".join(f"        {parameter(row)}: Optional[{python_type(row)}]" for row in chosen)

    setting = '    "{}": Setting("{}", "{}", {}),'
    module = MODULE.format(
        on_machine=fields([row for row in rows if row["key"] not in MACHINE]),
        machine=fields([row for row in rows if row["key"] in MACHINE]),
        rows="\n".join(setting.format(parameter(row), row["key"], row["type"], row["per_gpu"]) for row in rows),
    )
    names = re.findall(r"import (.*)\n\n    class", module)[0].split(", ")
    unused = [name for name in names if not re.search(rf"\W{name}\]", module)]
    return module.replace(", ".join(names), ", ".join(name for name in names if name not in unused))


def place_in_file(row):
    if not row["in_file"]:
        return "–"
    if not row["per_gpu"]:
        return "top"
    return "`[memory]`, `[gpu.X]`" + (", ceilings" if row["may_be_ceiling"] else "")


def table(rows):
    lines = ["| | option | variable | in a file | default |", "|---|---|---|---|---|"]
    heading = None
    for row in sorted(rows, key=lambda row: [one["heading"] for one in rows].index(row["heading"])):
        group = row["heading"] if row["heading"] != heading else ""
        heading = row["heading"]
        option = row["option"].replace("|", "\\|")
        link = f"[`{option}`](#{row['key']})"
        lines.append(f"| {group} | {link} | `{row['variable']}` | {place_in_file(row)} | {row['default']} |")
    return "\n".join(lines)


def columns_table(rows):
    lines = ["| column | key | in JSON | |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (row["heading"] == "", row["place"])):
        lines.append(f"| {row['heading']} | `{row['key']}` | {row['unit']} | {row['meaning']} |")
    return "\n".join(lines)


def page_with(page, name, table):
    """The page with the table between the marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"{page}: the marks of the table are missing: {begin} and {end}")
    before, after = text.split(begin)[0], text.split(end)[1]
    return before + begin + "\n" + table + "\n" + end + after


def files(launcher, source):
    """What each file is to be, by its path."""
    rows = json.loads(subprocess.check_output([launcher, "help", "options", "--json"]))
    settings = source / "docs/configuration.md"
    columns = source / "docs/sharing.md"
    return {
        source / "python/cuslice/_settings.py": python_module(rows["settings"]),
        settings: page_with(settings, "settings", table(rows["settings"])),
        columns: page_with(columns, "columns", columns_table(rows["columns"])),
    }


def main(arguments):
    if len(arguments) not in (2, 3) or arguments[0] not in ("--write", "--check"):
        raise SystemExit(__doc__)
    source = pathlib.Path(arguments[2] if len(arguments) > 2 else __file__).resolve()
    source = source if source.is_dir() else source.parent.parent
    wrong = 0
    for path, text in files(arguments[1], source).items():
        if path.exists() and path.read_text() == text:
            continue
        if arguments[0] == "--write":
            path.write_text(text)
        else:
            print(f"{path}: not as the rows of config/key.cpp and cli/ledger/holder.cpp say: scripts/settings_tables.py --write {arguments[1]}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
