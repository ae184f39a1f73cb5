# SPDX-License-Identifier: Apache-2.0
"""Draws mutants: which of all mistakes are made."""
import collections
import hashlib

from mutation import operators, schemata

Mutant = collections.namedtuple("Mutant", "stratum file line operator kind start end after shown_before shown_after")


def mutants_of(file, text):
    stratum = "/".join(file.split("/")[:-1])
    for one in operators.mistakes(text):
        before, after = schemata.shown(text, one)
        yield Mutant(stratum, file, text.count("\n", 0, one.start) + 1, one.operator, one.kind, one.start, one.end,
                     one.after, before, after)


def key(mutant):
    """What a mutant is known by, whatever changes elsewhere in its file."""
    words = (mutant.file, mutant.operator, mutant.shown_before, mutant.shown_after)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def quotas(count, strata):
    """How many of each folder: one, as far as they go, the rest in proportion to what there is, `count` together."""
    total = sum(len(found) for found in strata.values())
    shares = {name: 0 for name in strata}
    for _ in range(min(count, total)):
        # The folder that lacks most; in the first round the largest ones.
        lacks = lambda name: (shares[name] < len(strata[name]), shares[name] == 0,
                              count * len(strata[name]) / total - shares[name], name)
        shares[max(shares, key=lacks)] += 1
    return shares


def ranked(seed, mutants):
    """In an order that follows from the seed, and for each two mutants from nothing else than these."""
    return sorted(mutants, key=lambda one: (hashlib.sha256(f"{seed} {key(one)}".encode()).digest(), one.start))


def draw(seeds, count, texts):
    """{seed: ({folder: how many}, {folder: its mutants in the order in which they are tried})}. No two overlap in the
    text, and each folder has a reserve for those that can't be built or make no difference."""
    strata, seen = collections.defaultdict(list), set()
    for file, text in sorted(texts.items()):
        for mutant in mutants_of(file, text):
            if key(mutant) not in seen:  # the same in two places is drawn once
                seen.add(key(mutant))
                strata[mutant.stratum].append(mutant)
    shares = quotas(count, strata)
    sets, taken = {}, collections.defaultdict(list)
    for seed in seeds:
        drawn = {}
        for name, share in sorted(shares.items()):
            wanted, drawn[name] = 2 * share + 2 if share else 0, []
            for mutant in ranked(seed, strata[name]):
                if len(drawn[name]) == wanted:
                    break
                if mutant not in taken[mutant.file]:
                    if schemata.overlap(taken[mutant.file], mutant):
                        continue
                    taken[mutant.file].append(mutant)
                drawn[name].append(mutant)
        sets[seed] = shares, drawn
    return sets
