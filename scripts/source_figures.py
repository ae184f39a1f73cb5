#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the sources, and a ceiling for each: how dense lines are, how much a class does, how many rooms cli/ has.

  scripts/source_figures.py            prints them, folder by folder
  scripts/source_figures.py --check    and fails on one above its ceiling, or so far below it that the ceiling is to be lowered

  scripts/source_figures.py --test     tries itself on sources with known figures

A decision is an `if`, `for`, `while`, `case`, `catch`, `&&`, `||` or `?`; a line is one with code in it. A file is dense if it has more
than DENSE decisions a line, or DENSE_TOKENS per 100 tokens; files of fewer than DENSE_LINES lines of code are left out. A room of cli/ is a
folder, or a file that lies in none; an arrow leads from a room to another one that it includes.

  scripts/source_figures.py --dense    lists the dense files of the library, the densest first: decisions a line, per 100 tokens, lines
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PRODUCT = ("elf", "config", "policy", "virtual_gpu", "shim", "stub", "cli", "fake", "include", "integrations")
LIBRARY = ("elf", "config", "policy", "virtual_gpu", "shim")
SUFFIXES = (".h", ".c", ".cpp", ".inc", ".S")
TEXT = re.compile(r'R"\((?s:.*?)\)"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'')
COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)\*/")
TOKEN = re.compile(r"\w+|->|::|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[^\w\s]")
DECISION = re.compile(r"\b(?:if|for|while|case|catch)\b|&&|\|\||\?")
ATOMIC = re.compile(r"\bstd::atomic\b|\bRelaxed<")
# Above is a step back. A change that brings a figure down brings its ceiling down with it.
CEILINGS = {
    "decisions a line, library": 0.19,
    "decisions per 100 tokens, library": 2.3,
    "tokens a line, library": 8.4,
    "files above 0.30 decisions a line": 1,
    "files above 4.0 per 100 tokens": 1,
    "functions of VirtualGpu": 45,
    "functions of FootprintPolling": 15,
    "functions of Siblings": 25,
    "functions of DriverSteps": 17,
    "functions of PhysicalGpu": 28,
    "functions of Ledger": 22,
    "functions of LedgerFile": 25,
    "functions of FolderPresence": 17,
    "functions of Roster": 23,
    "functions of AdmissionControl": 20,
    "functions of CachingAllocator": 53,
    "atomics of VirtualGpu": 3,
    "rooms of cli": 11,
    "arrows of cli": 31,
}
CLASSES = {
    "VirtualGpu": "virtual_gpu/gpu/virtual_gpu.h",
    "FootprintPolling": "virtual_gpu/gpu/footprint_polling.h",
    "Siblings": "virtual_gpu/gpu/siblings.h",
    "DriverSteps": "virtual_gpu/gpu/driver_steps.h",
    "PhysicalGpu": "virtual_gpu/gpu/physical_gpu.h",
    "Ledger": "policy/ledger/ledger.h",
    "LedgerFile": "policy/ledger/ledger_file.h",
    "FolderPresence": "policy/ledger/folder_presence.h",
    "Roster": "policy/ledger/roster.h",
    "AdmissionControl": "policy/ledger/admission.h",
    "CachingAllocator": "policy/allocator/caching_allocator.h",
}
SLACK = 0.03  # of a ceiling
DENSE, DENSE_TOKENS, DENSE_LINES = 0.30, 4.0, 15


def bare(source):
    """The source without comments and the contents of texts. A text may hold what begins a comment, and the other way round."""
    return re.sub(f"({COMMENT.pattern})|{TEXT.pattern}", lambda found: "" if found[1] else '""', source)


def code_of(path):
    return bare(path.read_text())


def sources(folder):
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]


class Count:
    def __init__(self):
        self.lines = self.tokens = self.decisions = 0

    def add(self, other):
        self.lines += other.lines
        self.tokens += other.tokens
        self.decisions += other.decisions


def count(code):
    one = Count()
    one.lines = sum(bool(line.strip()) for line in code.splitlines())
    one.tokens = len(TOKEN.findall(code))
    one.decisions = len(DECISION.findall(code))
    return one


def count_folder(folder):
    total = Count()
    for path in sources(folder):
        total.add(count(code_of(path)))
    return total


def a_line(one):
    return one.decisions / one.lines


def per_100_tokens(one):
    return 100 * one.decisions / one.tokens


def library_files():
    """Path and count of each file that is long enough to be dense."""
    counted = [(path, count(code_of(path))) for folder in LIBRARY for path in sources(folder)]
    return [(path, one) for path, one in counted if one.lines >= DENSE_LINES]


def list_dense():
    for path, one in sorted(library_files(), key=lambda file: a_line(file[1]), reverse=True):
        if a_line(one) > DENSE or per_100_tokens(one) > DENSE_TOKENS:
            print(f"{a_line(one):.3f} {per_100_tokens(one):5.2f} {one.lines:4} {path.relative_to(ROOT)}")


def body_of(name, code):
    """What stands between the braces of a class, without what stands in braces there."""
    start = re.search(rf"\bclass (?:\w+\(\w+\) )?{name}\b[^;{{]*\{{", code).end()
    depth, body = 1, []
    for char in code[start:]:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0:
            break
        if depth == 1:
            body.append(char)
    return "".join(body)


def functions(body):
    """Declarations and definitions of functions: what has a list of parameters behind a name."""
    without_macros = re.sub(r"\bCUSLICE_\w+(?:\([^()]*\))?|\balignas\([^()]*\)|\bdecltype\([^()]*\)", "", body)
    names = re.findall(r"(?:^|[;}:\n])\s*(?:[\w:<>,*&\[\] ]+[ *&])?~?(\w+|operator\S+)\s*\([^;]*?\)[^;()]*(?=[;}]|$)", without_macros)
    return len([name for name in names if name not in ("if", "for", "while", "return", "requires", "sizeof")])


def rooms():
    """Rooms of cli/, and the arrows between them."""
    def room_of(path):
        parts = path.relative_to(ROOT / "cli").with_suffix("").parts
        return parts[0]
    arrows = set()
    for path in sources("cli"):
        for name in re.findall(r'^#include "cli/([^"]+)"', path.read_text(), re.M):
            other = room_of(ROOT / "cli" / name)
            if other != room_of(path):
                arrows.add((room_of(path), other))
    return {room_of(path) for path in sources("cli")}, arrows


def test():
    code = bare("""// if (a) the comment
int f(int a) {
    const char* text = "// no comment && no decision";

    if (a && text[0] == '"') return a ? 1 : 2;  /* for
    while */
    return 0;
}
""")
    one = count(code)
    assert (one.lines, one.decisions) == (5, 3), (one.lines, one.decisions, code)
    assert a_line(one) == 0.6 and round(per_100_tokens(one), 2) == round(300 / one.tokens, 2), one.tokens
    body = body_of("Thing", bare("""
class Other { void no(); };
class alignas(64) Thing : public Other {
  public:
    Thing(int a, int b) : a_(a) { if (a) no(); }
    ~Thing();
    bool is(const Thing& other) const { return true; }
    [[gnu::cold]] static std::vector<int> all(void (*each)(int)) CUSLICE_REQUIRES(mutex_);
    bool operator==(const Thing&) const = default;

  private:
    std::atomic<int> a_{0};  // of a count()
    Mutex mutex_{Rank::one};
};
"""))
    assert functions(body) == 5, (functions(body), body)
    assert len(ATOMIC.findall(body)) == 1, body


def main():
    if "--test" in sys.argv[1:]:
        return test()
    if "--dense" in sys.argv[1:]:
        return list_dense()
    counts = {folder: count_folder(folder) for folder in PRODUCT}
    library, product = Count(), Count()
    for folder, one in counts.items():
        product.add(one)
        if folder in LIBRARY:
            library.add(one)
    print(f"{'folder':14} {'lines':>7} {'tokens':>8} {'tokens a line':>13} {'decisions a line':>16} {'per 100 tokens':>14}")
    for folder, one in [*counts.items(), ("library", library), ("product", product)]:
        if one.lines:
            print(f"{folder:14} {one.lines:7} {one.tokens:8} {one.tokens / one.lines:13.1f} {one.decisions / one.lines:16.3f} "
                  f"{100 * one.decisions / one.tokens:14.2f}")
    bodies = {name: body_of(name, code_of(ROOT / path)) for name, path in CLASSES.items()}
    cli_rooms, arrows = rooms()
    files = [one for _, one in library_files()]
    figures = {
        "decisions a line, library": library.decisions / library.lines,
        "decisions per 100 tokens, library": 100 * library.decisions / library.tokens,
        "tokens a line, library": library.tokens / library.lines,
        "files above 0.30 decisions a line": sum(a_line(one) > DENSE for one in files),
        "files above 4.0 per 100 tokens": sum(per_100_tokens(one) > DENSE_TOKENS for one in files),
        **{f"functions of {name}": functions(body) for name, body in bodies.items()},
        "atomics of VirtualGpu": len(ATOMIC.findall(bodies["VirtualGpu"])),
        "rooms of cli": len(cli_rooms),
        "arrows of cli": len(arrows),
    }
    print()
    wrong = []
    for name, value in figures.items():
        ceiling = CEILINGS[name]
        print(f"{name:34} {value:9.3f}  at most {ceiling:g}")
        if value > ceiling:
            wrong.append(f"{name}: {value:.3f} is above {ceiling:g}: a step back")
        elif value < ceiling * (1 - SLACK):
            wrong.append(f"{name}: {value:.3f} is far below {ceiling:g}: lower the ceiling, so that it stays so")
    if "--check" in sys.argv[1:] and wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
