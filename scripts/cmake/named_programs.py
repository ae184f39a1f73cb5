# SPDX-License-Identifier: Apache-2.0
"""The programs and libraries of the build that tests name in their sources, as dependencies.

    named_programs.py --request FILE --out FILE [--depfile FILE]

FILE of --request has a line for each test: "TEST SOURCE…", and one, "known TARGET…", with what can
be named. What is written has an add_dependencies() for each test; it isn't touched where it stays
the same. In the build this runs whenever a source changes, and CMake only where that changed a
dependency.
"""
import argparse
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Libraries and programs whose files aren't called as their targets are.
FILES = {
    "cuslice_demo": r"^demo$",
    "fake_smi": r"^/?nvidia-smi$",
    "fake_cudart11": r"\blibcudart\b",
    "fake_cudart12": r"\blibcudart\b",
    "fake_cudart13": r"\blibcudart\b",
    "guest": r"^guest$|/guest(?![\w/.])",
    "guest_newer_cudart": r"newer/libcudart",
    "guest_old_cudart": r"old/libcudart",
}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"', re.S)
INCLUDE = re.compile(r'^#include "(tests/[^"]+)"', re.M)
# The test's harness: it names what Guest::route() starts, so that each call is looked at instead.
HARNESS = {"tests/preload/guest.h", "tests/preload/guest.cpp"}


def without_comments(text):
    return COMMENT_OR_STRING.sub(lambda found: "" if found[0].startswith("//") else found[0], text)


def strings(text):
    """Each literal, and whether more is appended to it."""
    for found in COMMENT_OR_STRING.finditer(text):
        literal = found[2] if found[2] is not None else found[3]
        yield literal or "", re.match(r"\s*\+", text[found.end():]) is not None


def routes(text):
    """The guests that Guest::route() starts."""
    for route in re.findall(r'\bGuest::route\(("[^"]*")?', text):
        if route == '"linked"':
            yield "guest_linked"
        elif route:
            yield "guest"
        else:  # known when the test runs
            yield from ("guest", "guest_linked")


def named(text, known):
    """Those of the known targets that a source names."""
    text = re.sub(r"^#include .*$", "", without_comments(text), flags=re.M)
    found = set(routes(text))
    for literal, goes_on in strings(text):
        words = [word.removeprefix("lib") for word in re.findall(r"\w+", literal)]
        found |= set(words) - set(FILES)
        if goes_on and words and "_" in words[-1] and literal.endswith(words[-1]):
            numbered = re.compile(re.escape(words[-1]) + r"\d+")  # "/guest_runtime" + major
            found |= {target for target in known if numbered.fullmatch(target)}
        found |= {target for target, file in FILES.items() if re.search(file, literal)}
    return found & known


def closure(sources):
    """The sources, the tests' headers that they include, and the sources of these."""
    read, waiting = {}, list(sources)
    while waiting:
        name = waiting.pop()
        if name in read or name in HARNESS or not (ROOT / name).is_file():
            continue
        read[name] = (ROOT / name).read_text(encoding="utf-8")
        for header in INCLUDE.findall(read[name]):
            waiting += [header, header.removesuffix(".h") + ".cpp"]
    return read


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--request", type=pathlib.Path, required=True)
    options.add_argument("--out", type=pathlib.Path, required=True)
    options.add_argument("--depfile", type=pathlib.Path)
    given = options.parse_args()

    requests = [line.split() for line in given.request.read_text().splitlines() if line]
    known = {target for first, *targets in requests if first == "known" for target in targets}
    lines, read = [], set()
    for test, *sources in requests:
        if test == "known":
            continue
        texts = closure(sources)
        read |= set(texts)
        targets = set().union(*(named(text, known) for text in texts.values()))
        if targets:
            lines.append(f"add_dependencies({test} {' '.join(sorted(targets))})\n")
    text = "".join(lines)
    if not given.out.is_file() or given.out.read_text() != text:
        given.out.write_text(text)
    if given.depfile:
        given.depfile.write_text(f"{given.out}: " + " ".join(str(ROOT / name) for name in sorted(read)) + "\n")


if __name__ == "__main__":
    main()
