# SPDX-License-Identifier: Apache-2.0
"""Says what became of the mutants."""
import collections

from mutation import drawing

KILLED, SURVIVED = ("killed", "hangs"), ("survived", "not reached")


def shown(mutant):
    return (f"{mutant.file}:{mutant.line}: {mutant.operator}\n  - {mutant.shown_before}\n"
            f"  + {mutant.shown_after}")


def table(pairs):
    """Of (mutant, status), a line for each folder and one for all."""
    tried = collections.defaultdict(collections.Counter)
    for mutant, status in pairs:
        for name in (mutant.stratum, mutant.stratum.split("/")[0] + "/", "all"):
            tried[name][status] += 1
    yield f"{'folder':28} tried  killed  of which hang  survived  of which not reached"
    for name, found in sorted(tried.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        killed, survived = (sum(found[status] for status in which) for which in (KILLED, SURVIVED))
        yield (f"{name:28} {killed + survived:5}  {killed:6}  {found['hangs']:13}  {survived:8}  "
               f"{found['not reached']:20}  {100 * killed / (killed + survived):5.1f} %")


def write(commit, seed, counted, known, left_out):
    """known: {key: {"status"}}, left_out: {key: {"why"}}."""
    pairs = [(one, known[drawing.key(one)]["status"]) for one in counted if drawing.key(one) in known]
    print(f"\nmutants of {commit[:12]} drawn by {seed[:12]}: {len(pairs)} of {len(counted)} tried")
    print("\n".join(table(pairs)))
    why = collections.Counter(one["why"] for one in left_out.values())
    print("left out, of all drawn: " + (", ".join(f"{n} {word}" for word, n in sorted(why.items())) or "none"))
    for one, status in sorted(pairs):
        if status in SURVIVED:
            print(f"\n{status}: {shown(one)}")
    killed = sum(status in KILLED for _, status in pairs)
    print(f"\nmutate: result: {killed} of {len(pairs)} noticed")
