#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a source that names something of the standard library, and includes no header that brings it: neither itself nor by
the project's own headers. One C++ library's headers include each other where another's, or the next version's, don't, so such a
source compiles here and not there. C's integer types are named without std::, as Google's style does and CUDA's signatures are
written, and need their header just so.

  includes.py SOURCE_FOLDER
  includes.py --test          tries the check itself
"""
import pathlib
import re
import subprocess
import sys

# Names behind std::, and the headers that bring them by the standard: C's own (stdint.h) need not. Where several do, the first
# one is the one to include.
NAMES = {
    "(?:min|max|sort|stable_sort|clamp|find_if|find_first_of|any_of|all_of|none_of|copy|copy_n|fill|fill_n|count|count_if|reverse|equal|transform"
    "|lower_bound|upper_bound|partition_point|remove_if|max_element|min_element|search|mismatch|unique|is_sorted|for_each|replace)": "algorithm",
    "(?:exchange|swap|pair|in_place|index_sequence)": "utility memory string vector map functional optional tuple algorithm",
    "array": "array",
    "(?:optional|nullopt)": "optional",
    "string_view": "string_view string",
    "(?:unique_ptr|make_unique|shared_ptr|make_shared)": "memory",
    "function": "functional",
    "(?:size|begin|end|distance|next|prev)": "iterator array vector string span string_view map set",
    "atomic": "atomic",
    "span": "span",
    "(?:memcpy|memset|memcmp|strlen|strcmp|strncmp|strrchr|strerror)": "cstring",
    "(?:snprintf|printf|fprintf|fopen|fclose|fputs|puts|FILE|remove|perror|sscanf)": "cstdio",
    "(?:getenv|strtoull|strtoul|strtol|abort|exit|malloc|free|system|atexit)": "cstdlib",
    "(?:ifstream|ofstream|fstream)": "fstream",
    "(?:istringstream|ostringstream|stringstream)": "sstream",
    "numeric_limits": "limits",
    "thread": "thread",
    "chrono": "chrono thread",
    "(?:mutex|lock_guard|unique_lock)": "mutex",
    "set": "set",
    "map": "map",
    "vector": "vector",
    "(?:accumulate|iota|gcd)": "numeric",
    "(?:tuple|tie)": "tuple",
    "(?:bit_cast|bit_width|has_single_bit|countr_zero|countl_zero|popcount)": "bit",
    "variant": "variant",
    "(?:mt19937|mt19937_64|uniform_int_distribution)": "random",
}
INTEGERS = r"u?int(?:8|16|32|64|ptr|max)_t"
PATTERNS = [(re.compile(r"\bstd::" + names + r"\b"), headers.split()) for names, headers in NAMES.items()]
PATTERNS.append((re.compile(r"\b(?<!::)" + INTEGERS + r"\b"), ["cstdint", "cinttypes", "stdint.h", "inttypes.h"]))
# POSIX's headers bring size_t as well: for what else they are included, it is there.
SIZES = "cstddef cstring cstdlib cstdio ctime stddef.h string.h stdlib.h stdio.h unistd.h sys/types.h sys/mman.h sys/socket.h cuda.h nvml.h".split()
PATTERNS.append((re.compile(r"\b(?<!::)size_t\b"), SIZES))
PATTERNS.append((re.compile(r"\b(?<!::)ptrdiff_t\b"), ["cstddef", "stddef.h"]))
PREFIXED = re.compile(r"\bstd::(?:" + INTEGERS + r"|size_t|ptrdiff_t)\b")
OWN = re.compile(r'#\s*include "([^"]+)"')
STANDARD = re.compile(r"#\s*include <([^>]+)>")
COMMENT = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"')


class Tree:
    def __init__(self, texts):
        """`texts`: the sources by their paths."""
        self.own = {path: OWN.findall(text) for path, text in texts.items()}
        self.standard = {path: set(STANDARD.findall(text)) for path, text in texts.items()}
        self.code = {path: COMMENT.sub("", text) for path, text in texts.items()}

    def brought(self, path):
        """The standard headers that a source includes, also by the project's."""
        seen, headers, todo = set(), set(), [path]
        while todo:
            one = todo.pop()
            if one in seen or one not in self.own:
                continue
            seen.add(one)
            headers |= self.standard[one]
            beside = one.rpartition("/")[0]
            for name in self.own[one]:
                todo += [name, f"{beside}/{name}"]
        return headers

    def problems(self):
        for path, code in sorted(self.code.items()):
            brought = None
            for pattern, headers in PATTERNS:
                found = pattern.search(code)
                if not found:
                    continue
                brought = brought or self.brought(path)
                if not brought.intersection(headers):
                    yield path, f"{found[0]} needs #include <{headers[0]}>"
            if found := PREFIXED.search(code):
                yield path, f"{found[0]} is named without std::"


def read(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "*.cpp", "*.h"], capture_output=True, text=True, check=False)
    paths = listed.stdout.split("\0")[:-1] or [str(p.relative_to(root)) for p in root.rglob("*") if p.suffix in (".cpp", ".h")]
    return {path: (root / path).read_text(errors="replace") for path in paths if (root / path).is_file() and not path.startswith("build/")}


def test():
    def problems(**texts):
        return list(Tree({name.replace("_", "."): text for name, text in texts.items()}).problems())

    assert problems(a_cpp="uintptr_t x;") == [("a.cpp", "uintptr_t needs #include <cstdint>")]
    assert not problems(a_cpp="#include <cstdint>\nuintptr_t x;")
    assert not problems(a_cpp="#include <stdint.h>\nuintptr_t x;")
    assert not problems(a_cpp='#include "b.h"\nuintptr_t x;', b_h="#include <cstdint>")
    assert problems(a_cpp="#include <cstdint>\nstd::size_t x;") == [("a.cpp", "std::size_t is named without std::")]
    assert not problems(a_cpp='// std::sort(x)\nauto text = "std::sort(x)";')
    assert problems(a_cpp='#include "b.h"\nstd::sort(x);', b_h="#include <vector>") == [("a.cpp", "std::sort needs #include <algorithm>")]


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    (root,) = sys.argv[1:]
    texts = read(pathlib.Path(root))
    found = list(Tree(texts).problems())
    for path, problem in found:
        print(f"{path}: {problem}")
    if found:
        sys.exit(1)
    print(f"{len(texts)} sources include what brings the names that they take from the standard library")


if __name__ == "__main__":
    main()
