#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows what the fuzzers find: puts the mistakes of tests/fuzz/seeded.txt into a copy of the sources, build/fuzz-seeded, one
# at a time, and runs the mistake's target on the kept inputs and, where these don't fail, for some time. Run by hand: the
# first time it builds the fuzzers, later a few files for each mistake. New files have to be known to git.
#
#   scripts/fuzz_seeded.sh [SECONDS] [TARGET…]    so long for each mistake (60); those of all targets, or of these
#
# Prints a table in Markdown. Ends with 1 unless each mistake is found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=$PWD/tests/fuzz/seeded.txt tree=$PWD/build/fuzz-seeded log=$PWD/build/fuzz-seeded.log
seconds=${1:-60}
case $seconds in *[!0-9]*) sed -n 's/^#   //p' "$0" >&2; exit 64 ;; esac
wanted=" ${*:2} "

begin_tree() {
    git worktree prune
    [ -e "$tree" ] || git worktree add --quiet --detach "$tree"
    local now
    now=$(git stash create)
    git -C "$tree" checkout --quiet --force --detach "${now:-HEAD}"
}

# True if the target fails. Ends the script where it can't be built, as the failure would be none of the mistake's.
fails() { # seconds, target
    (cd "$tree" && scripts/fuzz.sh "$1" "$2") >>"$log" 2>&1 && return 1
    tail -1 "$log" | grep -qx "fuzz: $2 failed" || { echo "fuzz_seeded: $2 can't be built: see $log" >&2; exit 1; }
}

found_by() { # target
    rm -rf "$tree/build/fuzz/corpus"
    if fails 0 "$1"; then
        echo "kept inputs"
        return
    fi
    local begun=$SECONDS
    if fails "$seconds" "$1"; then
        echo "$((SECONDS - begun)) s"
    else
        echo "not found"
    fi
}

: >"$log"
begin_tree
missed=0
echo "| target | mistake | found by |"
echo "|---|---|---|"
while IFS='|' read -r target mistake file expression; do
    read -r target <<<"$target"
    case $wanted in "  " | *" $target "*) ;; *) continue ;; esac
    read -r mistake <<<"$mistake"
    read -r file <<<"$file"
    printf '\n--- %s: %s\n' "$target" "$mistake" >>"$log"
    sed -i "$expression" "$tree/$file"
    ! git -C "$tree" diff --quiet || { echo "fuzz_seeded: nothing changes in $file: $mistake" >&2; exit 1; }
    result=$(found_by "$target")
    git -C "$tree" checkout --quiet -- .
    [ "$result" != "not found" ] || missed=1
    echo "| \`$target\` | $mistake | $result |"
done < <(grep -vE '^(#|$)' "$list")
exit "$missed"
