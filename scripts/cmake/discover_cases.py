# SPDX-License-Identifier: Apache-2.0
"""Makes each case of a test program a test of CTest's own: writes the file that CTest includes.

    discover_cases.py --file OUT --prefix NAME [--without TAG] [--labels A,B]
                      [--property KEY VALUE]… -- [LAUNCHER…] PROGRAM

A test is named "NAME: the case". The tags of a case become labels, beside those that are given.
Catch2's own catch_discover_tests takes a semicolon in a name for the end of it, and knows no
labels before version 3.
"""
import argparse
import re
import subprocess
import sys


def quoted(word):
    """A bracket argument: CMake reads nothing in it."""
    equals = "="
    while f"]{equals}]" in word + "]":
        equals += "="
    return f"[{equals}[{word}]{equals}]"


def specification(name):
    """What Catch2 takes for this name and no other. To it a comma means "or", brackets mean a tag,
    stars mean anything, and a dash in front begins an option."""
    return re.sub(r'([\][,*"\\~]|^-)', r"\\\1", name)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--file", required=True)
    options.add_argument("--prefix", required=True)
    options.add_argument("--without")
    options.add_argument("--labels", default="")
    options.add_argument("--property", nargs=2, action="append", default=[])
    options.add_argument("program", nargs="+")
    given = options.parse_args()

    listed = subprocess.run(given.program + ["--ctest-cases"], capture_output=True, text=True)
    if listed.returncode != 0 or not listed.stdout:
        sys.exit(f"{given.prefix} lists no cases (exit {listed.returncode}): {listed.stdout}{listed.stderr}")
    common = [label for label in given.labels.split(",") if label]
    lines, seen = [], set()
    for line in listed.stdout.splitlines():
        case, tags = line.split("\t")
        tags = re.findall(r"\[([^\]]*)\]", tags)
        if given.without in tags:
            continue
        name = f"{given.prefix}: {case}"
        if name in seen:
            sys.exit(f"two cases are called {name}")
        seen.add(name)
        properties = given.property + [("LABELS", ";".join(common + tags))]
        # The longest ones start first, so that no core waits for them at the end. ctest forgets how
        # long a test took whose name has spaces.
        if "slow" in tags:
            properties.append(("COST", "100"))
        words = [given.program[-1], specification(case)]
        lines.append(f"add_test({' '.join(map(quoted, [name] + words))})")
        properties = " ".join(f"{key} {quoted(value)}" for key, value in properties)
        lines.append(f"set_tests_properties({quoted(name)} PROPERTIES {properties})")
    with open(given.file, "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
