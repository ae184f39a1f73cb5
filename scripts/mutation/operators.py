# SPDX-License-Identifier: Apache-2.0
"""The small mistakes that can be made in a text, and where."""
import collections
import re

# The text at [start, end) becomes `after`. The kind says how both are compiled at once: see schemata.py.
Mistake = collections.namedtuple("Mistake", "operator kind start end after")

SWAPS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ",
         " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += ", " / ": " * ", " & ": " | ",
         " | ": " & "}
SWAP = re.compile("|".join(re.escape(swap) for swap in SWAPS))
TRUTH = re.compile(r"\b(true|false)\b")
NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?![\w.'\"])")
CONDITION = re.compile(r"\bif (?=\()")
RETURN = re.compile(r"\breturn (?!(?:true|false|0|nullptr);)([^;{}]+);")
# A statement that is an expression and has its line, or the line after an if, to itself.
NO_STATEMENT = (r"return|using|const|auto|typedef|static|case|delete|goto|else|break|continue|default|public|private|"
                r"[\w:<>*& ]+ [*&]?\w+( = |;|\{|\()")
STATEMENT = re.compile(rf"^[ ]+(?!{NO_STATEMENT})([\w:>.*()\[\]-]+[^{{}}\n]*;)$", re.M)
BRANCH = re.compile(r"^[ ]+(if \(.*\) [^{}\n]+;)$", re.M)

# Lines where nothing is mutated: the preprocessor's, declarations, and what is computed by the compiler.
LEFT_ALONE = re.compile(r"^\s*#|static_assert|\\$|^\s*(template|using|friend|extern|asm|namespace|case|enum)\b"
                        r"|\[\[(gnu|no)"
                        r"|^\s*(static |inline )*constexpr [\w:<>]+ \w+(\[.*\])? ?[={]|^\S")
MOST_LINES = 6
STOP_WORDS = {"return", "else", "do", "case", "throw", "goto", "new", "delete", "typename", "operator", "const", "auto"}
HEADS = {"if", "while", "for", "switch", "constexpr", "catch"}
PAIRS = {")": "(", "]": "[", "}": "{"}


def bare(text):
    """The text with comments and what is in quotes turned into spaces and underscores, all in its place."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r'R"(\w*)\((.|\n)*?\)\1"', blank, text)
    text = re.sub(r"//[^\n]*|/\*(.|\n)*?\*/", blank, text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', lambda found: '"' + "_" * (len(found[0]) - 2) + '"', text)
    return re.sub(r"'(\\.|[^'\\\n])'", lambda found: "'" + "_" * (len(found[0]) - 2) + "'", text)


def opening(text, at):
    """Where what is closed at `at` was opened; -1 if nowhere."""
    depth = 0
    while at >= 0:
        if text[at] in PAIRS:
            depth += 1
        elif text[at] in "([{":
            depth -= 1
            if depth == 0:
                return at
        at -= 1
    return -1


def closing(text, at):
    """Where what is opened at `at` is closed; -1 if nowhere."""
    depth = 0
    while at < len(text):
        if text[at] in "([{":
            depth += 1
        elif text[at] in PAIRS:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1


def assigns(text, at):
    """Whether the = there assigns, and doesn't compare."""
    if text[at + 1] == "=" or text[at - 1] in "=!":
        return False
    return text[at - 1] not in "<>" or text[at - 2] == text[at - 1]


def begins(text, at):
    """Where the widest expression begins that ends before `at`, of what binds at least as strongly as || does."""
    while at > 0:
        last = text[at - 1]
        if last in ")]":
            before = opening(text, at - 1)
            head = re.search(r"(\w+) ?$", text[:before]) if before > 0 else None
            if before < 0 or (last == ")" and head and head[1] in HEADS):
                return at
            at = before
        elif last == "}":
            before = opening(text, at - 1)
            if before <= 0 or not re.match(r"[\w>]", text[before - 1]):
                return at
            at = before
        elif last in "([{,;?#":
            return at
        elif last == ":":
            if text[at - 2] != ":":
                return at
            at -= 2
        elif last == "=" and assigns(text, at - 1):
            return at
        elif last.isalnum() or last == "_":
            word = re.search(r"\w+$", text[max(0, at - 80):at])[0]
            if word in STOP_WORDS:
                return at
            at -= len(word)
        else:
            at -= 1
    return 0


def ends(text, at, assigned=False):
    """Where the widest expression ends that `at` is in; where a value is `assigned`, with all that it may be."""
    while at < len(text):
        if text[at] in "([{":
            at = closing(text, at)
            if at < 0:
                return len(text)
        elif text[at] in ")]},;" or (text[at] == "=" and assigns(text, at)):
            return at
        elif text[at] == "?" and not assigned:
            return at
        elif text[at] == ":" and not assigned:
            if text[at + 1] != ":":
                return at
            at += 1
        at += 1
    return at


def expression(text, start, end):
    """[from, to) of the widest expression around an operator."""
    first, last = begins(text, start), ends(text, end, text[start:end] in (" += ", " -= "))
    while first < start and text[first].isspace():
        first += 1
    while last > end and text[last - 1].isspace():
        last -= 1
    return first, last


def condition(text, at):
    """[from, to) of the condition whose parenthesis opens at `at`, or None if it declares something."""
    last = closing(text, at)
    if last < 0:
        return None
    first, depth = at + 1, 0
    for i in range(at + 1, last):
        depth += (text[i] in "([{") - (text[i] in PAIRS)
        if depth == 0 and text[i] == ";":
            first = i + 1
        if depth == 0 and text[i] == "=" and assigns(text, i) and ";" not in text[i:last]:
            return None
    while text[first].isspace():
        first += 1
    return first, last


def mistakes(text):
    """All of them. `text` is as it is written."""
    plain = bare(text)
    lines = plain.split("\n")
    line_of = lambda at: plain.count("\n", 0, at)

    def fits(start, end):
        if start >= end or end - start > 1000:
            return False
        covered = lines[line_of(start):line_of(end - 1) + 1]
        return len(covered) <= MOST_LINES and not any(LEFT_ALONE.search(line) for line in covered)

    def one(operator, kind, start, end, after):
        # A comment to the end of a line can't be written in one line.
        if fits(start, end) and "//" not in after and after != text[start:end]:
            yield Mistake(operator, kind, start, end, after)

    for found in SWAP.finditer(plain):
        start, end = expression(plain, found.start(), found.end())
        new = SWAPS[found[0]]
        yield from one(f"{found[0].strip()} for {new.strip()}", "expression", start, end,
                       text[start:found.start()] + new + text[found.end():end])
    for found in TRUTH.finditer(plain):
        new = "false" if found[0] == "true" else "true"
        yield from one(f"{found[0]} for {new}", "expression", found.start(), found.end(), new)
    for found in NUMBER.finditer(plain):
        yield from one("one more", "expression", found.start(), found.end(), str(int(found[0]) + 1))
    for found in CONDITION.finditer(plain):
        place = condition(plain, found.end())
        if place:
            yield from one("condition negated", "condition", *place, f"!({text[place[0]:place[1]]})")
    for found in RETURN.finditer(plain):
        value = text[found.start(1):found.end(1)]
        if not value.startswith("!"):
            yield from one("answer negated", "return", *found.span(), f"return !({value});")
        yield from one("answer is nothing", "return", *found.span(), "return {};")
    for found in STATEMENT.finditer(plain):
        before = plain[:found.start()].rstrip()
        if before and before[-1] in ";{}:)" or before.endswith("else"):
            yield from one("statement removed", "statement", *found.span(1), "{}")
    for found in BRANCH.finditer(plain):
        yield from one("branch removed", "statement", *found.span(1), "{}")
