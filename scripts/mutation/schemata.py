# SPDX-License-Identifier: Apache-2.0
"""Writes a source in which every mutant is there at once, and each is chosen by its number at run time."""


def schema(kind, number, before, after):
    """What takes the place of `before`: it, or `after` while the mutant is active. It has as many lines as before."""
    active = f"cuslice_mutant<{number}>()"
    after = " ".join(after.split("\n"))
    if kind == "expression":
        return f"({active} ? ({after}) : ({before}))"
    if kind == "condition":
        return f"({active} != (({before}) ? true : false))"
    if kind == "return":
        return f"{{ if ({active}) {after} {before} }}"
    assert kind == "statement", kind
    return f"{{ if (!{active}) {{ {before} }} }}"


def overlap(mutants, other):
    return any(one.start < other.end and other.start < one.end for one in mutants)


def written(text, mutants, numbers, header):
    """The source with these mutants of it, which don't overlap. numbers: {mutant: its number}."""
    for one in sorted(mutants, key=lambda one: one.start, reverse=True):
        text = text[:one.start] + schema(one.kind, numbers[one], text[one.start:one.end], one.after) + text[one.end:]
    # Lines are counted as in the original, which errors are read by.
    return f'#include "{header}"\n#line 1\n{text}'


def alone(text, mutant):
    """The source with nothing but this mutant, as somebody would have written it. It has as many lines."""
    lost = text[mutant.start:mutant.end].count("\n") - mutant.after.count("\n")
    return text[:mutant.start] + mutant.after + "\n" * lost + text[mutant.end:]


def shown(text, mutant):
    """The lines around the mutant, before and after."""
    first = text.rfind("\n", 0, mutant.start) + 1
    last = text.find("\n", mutant.end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:mutant.start] + mutant.after + text[mutant.end:last]
    return tuple(" ".join(part.split()) for part in (before, after))
