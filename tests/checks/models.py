#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a function that a model of the ledger stands for, and that has changed since somebody compared the two.

The models lie in tests/policy/ledger/spin/, and functions.txt beside them has a row for each function: its hash, the model, the file, its
name, and the reason why the model is still right. Comments and white space are no change. Whoever changes such a function looks at its
model, runs scripts/models.sh, and writes the new hash and the reason into the row.

  models.py SOURCE_FOLDER
  models.py --test          tries the check itself
"""
import hashlib
import pathlib
import re
import sys

TABLE = "tests/policy/ledger/spin/functions.txt"
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*(?s:.*?)\*/')


def code_of(text, name):
    """A function's code, from the line that it begins in to the brace that ends it; None if there is no such definition, or several."""
    begins = rf"^(?=[\w\[:])[^\n;={{}}#]*?(?<![\w:]){re.escape(name)}\("
    found = re.findall(rf"{begins}[^;{{]*\{{(?:[^\n]*\}}\n|\n(?s:.*?)^\}})", text, re.MULTILINE)
    return found[0] if len(found) == 1 else None


def hash_of(code):
    bare = COMMENT.sub(lambda match: match[1] or " ", code)
    return hashlib.sha256(" ".join(re.findall(r"\w+|\S", bare)).encode()).hexdigest()[:12]


def rows(text):
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield line.split(None, 4)


def faults(root):
    table = (root / TABLE).read_text()
    modelled = set()
    for row in rows(table):
        if len(row) != 5:
            yield f"{' '.join(row)}: a row has a hash, a model, a file, a function and a reason"
            continue
        known, model, file, name, _ = row
        modelled.add(model)
        code = code_of((root / file).read_text(), name) if (root / file).is_file() else None
        if code is None:
            yield f"{file}: {name} is not defined there, or more than once"
        elif hash_of(code) != known:
            yield f"{file}: {name} has changed ({known} → {hash_of(code)}): compare it with {model}.pml, and say in {TABLE} why that is right"
    for model in sorted(path.stem for path in (root / TABLE).parent.glob("*.pml")):
        text = (root / TABLE).parent.joinpath(f"{model}.pml").read_text()
        if model not in modelled:
            yield f"{model}.pml stands for no function"
        for row in rows(table):
            if len(row) == 5 and row[1] == model and not re.search(rf"\b{re.escape(row[3])}\(\)", text):
                yield f"{model}.pml doesn't say where it has {row[3]}()"


def test():
    text = "// A\nint one(int a) {\n    return a;  // b\n}\n\nbool C::two() const { return one(1); }\n\nint three();\n"
    assert code_of(text, "one") == "int one(int a) {\n    return a;  // b\n}"
    assert code_of(text, "C::two").startswith("bool C::two()")
    assert code_of(text, "three") is None and code_of(text, "return") is None
    assert code_of(text + text, "one") is None
    first = hash_of(code_of(text, "one"))
    assert first == hash_of(code_of(text.replace("// b", "// c\n  "), "one"))
    assert first != hash_of(code_of(text.replace("return a", "return -a"), "one"))
    assert hash_of('f("// a")') != hash_of('f("// b")')


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    root = pathlib.Path(sys.argv[1])
    found = list(faults(root))
    for fault in found:
        print(fault)
    if found:
        sys.exit(1)
    print(f"{len(list(rows((root / TABLE).read_text())))} functions are as their models have them")


if __name__ == "__main__":
    main()
