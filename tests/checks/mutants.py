#!/usr/bin/env python3
"""Looks at what scripts/mutate.py makes of a text, and how it shares mutants out:  mutants.py ROOT"""
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("mutate", pathlib.Path(sys.argv[1]) / "scripts/mutate.py")
mutate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutate)

TEXT = """\
#include "a < b.h"
// if (a < b) return 1;
static_assert(sizeof(Row) == 16);
int f(const char* text, int a, int b) {
    if (a < b && text) return a + 7;
    say("a == b");
    int left = b - 1;
    total += left;  // a && b
    return !left;
}
"""
EXPECTED = {
    "    if (a <= b && text) return a + 7;", "    if (a < b || text) return a + 7;",
    "    if (a < b && text) return a - 7;", "    if (a < b && text) return a + 8;",
    "    if (!(a < b && text)) return a + 7;", "    if (a < b && text) return !(a + 7);",
    "    if (a < b && text) return {};", "    {}",
    "    int left = b + 1;", "    int left = b - 2;", "    total -= left;  // a && b", "    return {};",
}
wrong = []

made = {mutant.after for mutant in mutate.mutants_of("policy/budget/f.cpp", TEXT)}
wrong += [f"is not made: {after}" for after in sorted(EXPECTED - made)]
wrong += [f"is made: {after}" for after in sorted(made - EXPECTED)]

for count, sizes, expected in ((10, (60, 30, 10), (6, 3, 1)), (3, (98, 1, 1), (1, 1, 1)), (2, (5, 6, 7), (0, 1, 1))):
    found = mutate.quotas(count, {f"folder {i}": [None] * size for i, size in enumerate(sizes)})
    shares = tuple(found[f"folder {i}"] for i in range(len(sizes)))
    if shares != expected:
        wrong.append(f"{count} of {sizes} are shared out as {shares}, not {expected}")

print("\n".join(wrong) or f"{len(made)} mutants of a text are made as they should be")
sys.exit(bool(wrong))
