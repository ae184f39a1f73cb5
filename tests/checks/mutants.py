#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what scripts/mutation/ makes of a text, how it draws, and how that behaves:  mutants.py ROOT [COMPILER]"""
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "scripts"))
from mutation import asking, drawing, schemata, tree  # noqa: E402

TEXT = """\
#include "a < b.h"
// if (a < b) return 1;
static_assert(sizeof(Row) == 16);
constexpr int kRows = 16;
int f(const char* text, int a, int b) {
    if (a < b && text) return a + 7;
    say("a == b", [&] { return b > 1; });
    int left = b - 1;
    total += left;  // a && b
    Held held(lock);
    if (const int more = next(); more > a) other.clear();
    while (first(a) + second >
           third) stop = true;
    return !left;
}
"""
# Each by its line, and what that line is then.
EXPECTED = {
    "6 if (a <= b && text) return a + 7;", "6 if (a < b || text) return a + 7;", "6 if (a < b && text) return a - 7;",
    "6 if (a < b && text) return a + 8;", "6 if (!(a < b && text)) return a + 7;",
    "6 if (a < b && text) return !(a + 7);", "6 if (a < b && text) return {};", "6 {}",
    '7 say("a == b", [&] { return b >= 1; });', '7 say("a == b", [&] { return b > 2; });',
    '7 say("a == b", [&] { return !(b > 1); });', '7 say("a == b", [&] { return {}; });',
    "8 int left = b + 1;", "8 int left = b - 2;", "9 total -= left; // a && b",
    "11 if (const int more = next(); more >= a) other.clear();", "11 {}",
    "11 if (const int more = next(); !(more > a)) other.clear();",
    "12 while (first(a) - second > third) stop = true;", "13 third) stop = false;", "14 return {};",
}
wrong = []


def expect(what, is_so):
    if not is_so:
        wrong.append(what)


mutants = list(drawing.mutants_of("policy/budget/f.cpp", TEXT))
made = {f"{one.line} {one.shown_after}" for one in mutants}
wrong += [f"is not made: {after}" for after in sorted(EXPECTED - made)]
wrong += [f"is made: {after}" for after in sorted(made - EXPECTED)]

# One value or the other is added, and the mistake is not in which of them.
CHOICE = "void f() {\n    left -= fits ? of(a) : left;\n}\n"
for one in drawing.mutants_of("policy/budget/f.cpp", CHOICE):
    if one.operator == "-= for +=":
        expect("a value that is chosen is cut in two", CHOICE[one.start:one.end] == "left -= fits ? of(a) : left")

for count, sizes, expected in ((10, (60, 30, 10), (6, 3, 1)), (3, (98, 1, 1), (1, 1, 1)), (2, (5, 6, 7), (0, 1, 1)),
                               (9, (3, 1, 0), (3, 1, 0))):
    found = drawing.quotas(count, {f"folder {i}": [None] * size for i, size in enumerate(sizes)})
    shares = tuple(found[f"folder {i}"] for i in range(len(sizes)))
    expect(f"{count} of {sizes} are shared out as {shares}, not {expected}", shares == expected)

# Two seeds draw two sets, the same ones each time, and no two mutants overlap.
texts = {"policy/f.cpp": TEXT, "shim/driver/g.cpp": TEXT.replace("total", "sum")}
sets = drawing.draw(("one", "two"), 4, texts)
expect("the same seeds draw other sets", sets == drawing.draw(("one", "two"), 4, texts))
expect("two seeds draw the same set", sets["one"] != sets["two"])
everything = {one for _, drawn in sets.values() for found in drawn.values() for one in found}
for one in everything:
    others = [other for other in everything - {one} if other.file == one.file]
    expect(f"{one} overlaps another", not schemata.overlap(others, one))

# All that was made of one line each, compiled: it does what the mutant is active that its slot says.
PROGRAM = """\
int total = 0;
struct Box { bool is_full() const { return true; } explicit operator bool() const { return full; } bool full; };
constexpr int kTwice(int n) { return n * 2 + 1; }
static_assert(kTwice(2) == 5);
int told(int a, int b, const Box& box) {
    if (box) total += a;
    if (a < b)
        total += 10;
    else
        total += 20;
    return total + kTwice(b);
}
int main(int argc, char**) { return told(argc, 1, Box{true}); }
"""
compiler = sys.argv[2] if len(sys.argv) > 2 else "c++"
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    switch = asking.Switch(folder / "switch")
    header = (root / "scripts/mutation/mutant.h").read_text()
    (folder / "mutant.h").write_text(f'#define CUSLICE_MUTANTS "{folder}/switch"\n{header}')
    ranked = drawing.ranked("seed", drawing.mutants_of("program.cpp", PROGRAM))
    chosen = []
    for one in ranked:
        if one.line in (3, 6, 7, 8, 11) and not schemata.overlap(chosen, one) and "nothing" not in one.operator:
            chosen.append(one)
    numbers = {one: number for number, one in enumerate(chosen, 1)}

    def answer(text, number=None):
        """What a program answers: its exit status. It is of this text, or, with a number, the one before."""
        if number is None:
            (folder / "program.cpp").write_text(text)
            done = subprocess.run([compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
                                   folder / "program", folder / "program.cpp"], text=True, capture_output=True)
            expect(f"{text}\n{done.stderr}", done.returncode == 0)
        switch.set(1, number or 0)
        in_slot = lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, most_core))
        return subprocess.run([folder / "program"], preexec_fn=in_slot).returncode

    together = schemata.written(PROGRAM, chosen, numbers, "mutant.h")
    most_core = resource.getrlimit(resource.RLIMIT_CORE)[1]
    expect("no mutant is active, and something else is answered", answer(PROGRAM) == answer(together))
    reached = switch.reached(1)
    found = {one: answer(together, number) for one, number in numbers.items()}
    for one in chosen:
        runs = one.line != 8
        expect(f"line {one.line}: {one.operator}: said to be reached, or not", (numbers[one] in reached) == runs)
        alone = answer(schemata.alone(PROGRAM, one))
        expect(f"line {one.line}: {one.operator} answers {found[one]}, and alone {alone}", found[one] == alone)

# Mutants that make no difference are told from others, also where a source needs more than sources.
NEEDING = """\
int numbers(int a) {
    const int all[] = {
#include "shim/rows.def"
    };
    return all[a] + 0;
}
"""
with tempfile.TemporaryDirectory() as folder:
    compared = tree.Tree(pathlib.Path(folder), 1)
    compared.texts = {"shim/numbers.cpp": NEEDING}
    for file, text in {"shim/numbers.cpp": NEEDING, "shim/rows.def": "1, 2, 3\n"}.items():
        tree.write(compared.root / file, text.encode())
    compared.build.mkdir(parents=True)
    compared.commands = {"shim/numbers.cpp": [compiler, f"-I{compared.root}", "-O2", "-o", "numbers.o", "-c",
                                              str(compared.root / "shim/numbers.cpp")]}
    for one in drawing.mutants_of("shim/numbers.cpp", NEEDING):
        same = compared.same_code(one)
        expect(f"{one.shown_after}: same code: {same}", same == (one.operator == "+ for -"))

print("\n".join(wrong) or f"{len(made)} mutants of a text are made as they should be, {len(chosen)} behave so")
sys.exit(bool(wrong))
