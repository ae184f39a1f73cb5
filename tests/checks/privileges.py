#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when something appears that reaches outside the process and that docs/design/privileges.md doesn't have: a
variable, a path, a file that is opened or made, a descriptor that is kept or inherited, memory that is shared, a
program or library that is started by name. Fails also when the page has what is gone, and when a row's test isn't one
that there is.

  privileges.py SOURCE_FOLDER           looks, and tries whether it would notice
  privileges.py SOURCE_FOLDER --list    prints what was found, in the page's form
"""
import pathlib
import sys

sys.dont_write_bytecode = True

from reach import page as pages  # noqa: E402
from reach import sites  # noqa: E402

READ = (*(folder + "/" for folder in sites.FOLDERS), "tests/", "lab/", pages.PAGE)
ENDINGS = (*sites.ENDINGS, "CMakeLists.txt", ".md", ".sh", ".yaml", ".service", ".conf", ".json", "Containerfile")


def read(root):
    """What each file says, by its name."""
    texts = {}
    for folder in (*sites.FOLDERS, "tests", "lab"):
        for path in sorted((root / folder).rglob("*")):
            if path.name.endswith(ENDINGS) and path.is_file():
                texts[path.relative_to(root).as_posix()] = path.read_text(errors="replace")
    texts[pages.PAGE] = (root / pages.PAGE).read_text()
    return texts


def in_words(operations):
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in sorted(operations.items()))


def compare_operations(found, page):
    for file in sorted({*found.operations, *page.operations}):
        there, told = found.operations.get(file, {}), page.operations.get(file, {})
        for function in sorted({*there, *told}):
            now, then = there.get(function), told.get(function)
            if now == then:
                continue
            if now is None:
                yield f"{file}: {function} ({in_words(then)}) is gone"
            else:
                has = f"the inventory has ({in_words(then)})" if then else "the inventory lacks it"
                yield f"{file}: {function} ({in_words(now)}): {has}"


def compare_names(kind, found, told):
    for name in sorted({*found, *told}):
        if name not in told:
            yield f"{found[name][0]}: the {kind} {name}: the inventory lacks it"
        elif name not in found:
            yield f"the {kind} {name} is gone"


def problems_of(texts):
    found, page, tests = sites.find(texts), pages.Page(texts[pages.PAGE]), pages.Tests(texts)
    yield from page.problems
    yield from found.unknown
    yield from compare_operations(found, page)
    # A setting needs a row of its own only where it is more than read and handed on.
    told = {name for name in page.variables if name not in found.settings}
    yield from compare_names("variable", {n: p for n, p in found.variables.items() if n not in found.settings}, told)
    yield from compare_names("path", found.paths, page.paths)
    for row, cell in page.rows.items():
        if why := pages.wrong_cell(cell, tests):
            yield f"the row {row} {why}"
    for row in sorted(page.referred - set(page.rows)):
        yield f"there is no row {row}"
    for name in sorted(texts):
        if name.startswith("integrations/") and f"`{name}`" not in page.text and not name.endswith("CMakeLists.txt"):
            yield f"{name}: the page doesn't name it"


# Each with what has to be said of it.
SEEDS = {
    "policy/stats/file.cpp": (
        """
namespace cuslice {
const char* seeded_variable() { return getenv("CUSLICE_SEEDED"); }
int seeded_open() { return open("/var/seeded", O_RDONLY | O_CLOEXEC); }
int seeded_inherited() { return ::open("/var/seeded", O_RDONLY); }
int seeded_dup(int file) { return dup(file); }
int seeded_moved(int file) { return fcntl(file, F_DUPFD, 10); }
int seeded_raw(const char* path) { return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC); }
void* seeded_memory(int file) { return mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0); }
void* seeded_library() { return dlopen("libseeded.so", RTLD_NOW); }
class Seeded {
    int method(char** words) {
        return ::execve(words[0], words, words);
    }
};
}  // namespace cuslice
""",
        ["the variable CUSLICE_SEEDED:", "the path /var/seeded:", "seeded_open (open):", "seeded_inherited (open+):",
         "seeded_dup (dup+):", "seeded_moved (dup+):", "seeded_raw (open):", "seeded_memory (mmap shared):",
         "seeded_library (dlopen):", "Seeded::method (execve):"],
    ),
    "cli/run_seeded.cpp": (
        """
const char kSeeded[] = "SEEDED";
const char* by_constant() { return std::getenv(kSeeded); }
const char* by_nobody(const char* name) { return std::getenv(name); }
bool by_launcher(const Environment& environment) { return environment.get("UNHEARD").has_value(); }
void stream() { std::ifstream file("/etc/seeded"); }
""",
        ["the variable SEEDED:", "the variable UNHEARD:", "getenv(name): which variable is that?",
         "the path /etc/seeded:", "stream (ifstream):"],
    ),
    "stub/seeded.c": (
        """
static void seeded_start(const char* file) { kernel(SYS_execve, (long)file, 0, 0, 0, 0, 0); }
""",
        ["seeded_start (execve):"],
    ),
    "python/cuslice/seeded.py": (
        """
import os
def seeded():
    return open(os.environ["PY_SEEDED"])
""",
        ["the variable PY_SEEDED:", "seeded (open):"],
    ),
    "integrations/seeded.service": ("[Service]\n", ["integrations/seeded.service: the page doesn't name it"]),
    pages.PAGE: (
        """

| row | trusts | an attacker wants | why he doesn't get it | test |
|---|---|---|---|---|
| `seeded.gone` | | | | `test_policy: a sentence that no test has` |
| `seeded.elsewhere` | | | | `test_stub: a file's name says which process it is of, and comes back as it was` |
| `seeded.coming` | | | | (coming) a test |

| sites | row |
|---|---|
| `policy/stats/file.cpp`: `seeded_gone` (open) | `seeded.unknown` |

| variables | row |
|---|---|
| `SEEDED_GONE` | `seeded.coming` |
""",
        ["the row seeded.gone names a test", "the row seeded.elsewhere names a test",
         "the row seeded.coming names no test", "seeded_gone (open) is gone",
         "there is no row seeded.unknown", "the variable SEEDED_GONE is gone"],
    ),
}  # fmt: skip


def unnoticed(texts):
    """What was put into a copy of the tree and isn't said of it, and what is said beside that."""
    before, wanted = set(problems_of(texts)), []
    seeded = dict(texts)
    for name, (text, expected) in SEEDS.items():
        seeded[name] = seeded.get(name, "") + text
        wanted += expected
    said = set(problems_of(seeded)) - before
    missed = [one for one in wanted if not any(one in line for line in said)]
    more = [line for line in said if not any(one in line for one in wanted)]
    blind = [f"this check is blind: {one}" for one in missed]
    return blind + [f"this check sees what isn't there: {line}" for line in sorted(more)]


def print_found(found):
    for file, functions in sorted(found.operations.items()):
        print(f"`{file}`: " + ", ".join(f"`{name}` ({in_words(operations)})" for name, operations in functions.items()))
    for names in found.variables, found.paths:
        print(", ".join(f"`{name}`" for name in sorted(names)))


def main():
    texts = read(pathlib.Path(sys.argv[1]))
    if "--list" in sys.argv:
        return print_found(sites.find(texts))
    wrong = [f"{pages.PAGE}: {line}" for line in problems_of(texts)] + unnoticed(texts)
    page = pages.Page(texts[pages.PAGE])
    places = sum(len(functions) for functions in page.operations.values())
    tests = sum(cell.count("`") // 2 for cell in page.rows.values())
    counted = f"{len(page.rows)} rows, {tests} tests, {len(page.variables)} variables, {len(page.paths)} paths"
    print("\n".join(wrong) or f"{counted}, {places} functions that open, make or start something")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
