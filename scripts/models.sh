#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the models of the ledger (tests/policy/ledger/spin/) with Spin: every state of each case, that the faults which are written into
# them (FAULT=1 and on) are found, and that the states are reached which they are about (REACH=1 and on). Prints states and seconds.
#
#   scripts/models.sh             every state of small cases
#   scripts/models.sh --long      larger cases too, by a sample of their states (bitstate hashing)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
models=$PWD/tests/policy/ledger/spin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# verify NAME MODEL "DEFINITIONS" "HOW THE VERIFIER KEEPS STATES" ERRORS: prints what came of it, in one line.
verify() {
    local begun=$SECONDS
    mkdir "$work/$1"
    # shellcheck disable=SC2086 # words
    (cd "$work/$1" && spin $3 -a "$models/$2.pml" && gcc -O2 -w -DSAFETY -DVECTORSZ=4096 ${4:--DCOLLAPSE} -o pan pan.c) >/dev/null
    (cd "$work/$1" && ./pan -m1000000 -w26) >"$work/$1.txt" 2>&1 || true
    local errors states
    errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$work/$1.txt" | tail -1)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/$1.txt" | tail -1)
    if [ -z "$errors" ] || { [ "$errors" = 0 ] && grep -q 'Search not completed\|max search depth too small' "$work/$1.txt"; }; then
        cat "$work/$1.txt" >&2
        errors=unknown
    fi
    printf '%-12s %-30s errors: %-8s states: %-12s %4d s\n' "$2" "$3" "$errors" "$states" $((SECONDS - begun))
    [ "$errors" = "$5" ] || wrong=1
}

# Definitions of a model's cases, one a line ("Case: -DA=1"), which may be empty; an empty line where it names none.
cases_of() {
    grep '^ \* Case:' "$models/$1.pml" | sed 's/.*Case: *//' | grep '' || echo
}

# numbers_of MODEL PATTERN: the numbers behind it in the model.
numbers_of() {
    grep -oE "$2[0-9]+" "$models/$1.pml" | grep -oE '[0-9]+$' | sort -nu
}

wrong=0
for model in "$models"/*.pml; do
    name=$(basename "$model" .pml)
    while read -r case; do
        verify "$name${case// /}" "$name" "$case" "" 0
    done < <(cases_of "$name")
    for fault in $(numbers_of "$name" '^#(el)?if FAULT [!=]= '); do
        verify "$name-$fault" "$name" "-DFAULT=$fault" "" 1
    done
    for state in $(numbers_of "$name" 'reached\('); do
        verify "$name-reach-$state" "$name" "-DREACH=$state" "" 1
    done
done
if [ "${1:-}" = --long ]; then
    verify total-long total "-DOPERATIONS=2" "-DBITSTATE" 0
    verify removal-long removal "-DOPERATIONS=2 -DKILLS=2" "-DBITSTATE" 0
    verify queue-long queue "-DHOSTILE -DKILLS=1" "-DBITSTATE" 0
    verify header_lock-long header_lock "-DKILLS=3" "-DBITSTATE" 0
fi
[ "$wrong" = 0 ] || { echo "models: a model has an error, or a fault was not found" >&2; exit 1; }
