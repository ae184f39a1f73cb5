#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the tests for what was mended failed before: checks an older commit out, lays present tests over it, and runs what
# tests/seen_failing.txt names. Run by hand; it builds for as long as two fresh checkouts do.
#
#   scripts/seen_failing.sh                     every line of the list, at its section's commit, or at d645417
#   scripts/seen_failing.sh COMMIT              at another commit: HEAD shows that they pass now
#   scripts/seen_failing.sh COMMIT WORD         only the lines with this word, or of the section of this name: [fake];
#                                               an empty COMMIT is each section's own
#   KEEP=1 scripts/seen_failing.sh …            leaves the checkouts where they are, so that a second run builds little
#
# Prints a table in Markdown: each case fails, hangs, passes, is skipped, is not there or does not build. Ends with 1 unless all
# of them fail or hang. Changes that were not committed are laid over as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chosen=${1:-}
[ -z "$chosen" ] || git rev-parse --quiet --verify "$chosen^{commit}" >/dev/null
word=${2:-}
seconds=120 # for one case: one that hangs is told from one that is slow by nothing else
here=$PWD
list=$here/tests/seen_failing.txt
trees=$here/build/seen_failing
export CUSLICE_GENUINE_CACHE=${CUSLICE_GENUINE_CACHE:-$here/build/genuine}
say() { echo "seen_failing: $1" >&2; }

mkdir -p "$trees"
made=()
clean() { for one in ${made[@]+"${made[@]}"}; do git worktree remove --force "$one"; done; }
[ -n "${KEEP:-}" ] || trap clean EXIT
git worktree prune

# A path of the old tree becomes what it is here, or was at a commit ($2). Modification times are kept where nothing changed, for a second run.
lay_over() {
    git -C "$tree" ls-files -z -- "$1" | (cd "$tree" && xargs -0r rm -f --)
    if [ -n "$2" ]; then
        git archive "$2" -- "$1" | tar --extract --directory="$tree"
        return
    fi
    git ls-files -z --cached --others --exclude-standard -- "$1" |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar --create --null --files-from=- | tar --extract --directory="$tree"
}

paths() { # what a section of the list says after a word: one on each line
    awk -v section="[$2]" -v word="$1" '/^\[/ { here = $0 == section } here && $1 == word { print $2 }' "$list"
}

prepare() { # a section: its checkout becomes the one that is built and run
    commit=${chosen:-$(paths at "$1")}
    commit=$(git rev-parse --short=7 --verify "${commit:-d645417}^{commit}")
    tree=$trees/$commit-$1 build=$trees/$commit-$1/build/dev log=$trees/$commit-$1.log ready=yes
    built=()
    : >"$log"
    made+=("$tree")
    [ -e "$tree" ] || git worktree add --quiet --detach "$tree" "$commit"
    git -C "$tree" checkout --quiet --force --detach "$commit"
    local path from
    from=$(paths from "$1")
    for path in $(paths take "$1"); do lay_over "$path" "$from"; done
    for path in $(paths leave "$1"); do git -C "$tree" checkout --quiet "$commit" -- "$path"; done
    say "configuring $commit for [$1]; the programs' own words are in $log"
    local options
    mapfile -t options < <(paths configure "$1")
    (cd "$tree" && cmake --preset dev ${options[@]+"${options[@]}"}) >>"$log" 2>&1 || ready=no
    [ "$ready" = yes ] || say "it does not configure: see $log"
}

declare -A built=()
build() { # a target, once: yes or no
    if [ -z "${built[$1]:-}" ]; then
        say "building $1"
        built[$1]=no
        [ "$ready" = no ] || ! (cd "$tree" && scripts/build.sh dev "$1") >>"$log" 2>&1 || built[$1]=yes
    fi
    [ "${built[$1]}" = yes ]
}

ended() { # what a status says
    case $1 in
        0) echo passes ;;
        77) echo "is skipped" ;;
        124 | 137) echo hangs ;;
        *) echo fails ;;
    esac
}

run_ctest() { # a test of ctest's: what it says of itself decides, as a skipped one is no failure to it
    local text status=0 name
    name=$(sed 's/[].[^$*+?(){}|\\]/\\&/g' <<<"$1")
    text=$(timeout -k 10 $((seconds * 3)) ctest --test-dir "$build" -R "^$name\$" --output-on-failure </dev/null 2>&1) || status=$?
    printf '%s\n' "$text" >>"$log"
    case $text in
        *"No tests were found"*) echo "is not there" ;;
        *"***Skipped"*) echo "is skipped" ;;
        *"***Timeout"*) echo hangs ;;
        *) ended "$status" ;;
    esac
}

run_script() { # a test that is a script, on the old sources and what was built of them
    local status=0
    timeout -k 10 $((seconds * 3)) "$here/$1" "$tree" "$build" </dev/null >>"$log" 2>&1 || status=$?
    ended "$status"
}

run_case() { # a program of Catch2's, and a case of it by its name
    local program name there status=0
    program=$(find "$build/tests" $([ ! -d "$build/lab" ] || echo "$build/lab") -type f -name "$1" -perm -u+x | head -1)
    # In a test specification a comma means "or", and brackets and stars more.
    name=$(sed 's/[][,*"\\~]/\\&/g' <<<"$2")
    # Catch2 2 ends with the number of names as its status.
    there=$("$program" --list-test-names-only "$name" 2>/dev/null) || true
    if ! grep -qxF -- "$2" <<<"$there"; then
        echo "is not there"
        return
    fi
    timeout -k 10 "$seconds" "$program" "$name" </dev/null >>"$log" 2>&1 || status=$?
    ended "$status"
}

run_row() { # a program and a name
    printf '\n--- %s, %s\n' "$1" "$2" >>"$log"
    result="does not build"
    case $1 in
        ctest) ! build product || result=$(run_ctest "$2") ;;
        script) ! build cuslice_check_files || result=$(run_script "$2") ;;
        *) ! build "$1" || result=$(run_case "$1" "$2") ;;
    esac
}

bad=0 section='' prepared=''
echo "| finding | test | commit | result |"
echo "|---|---|---|---|"
while IFS='|' read -r finding program name; do
    case $finding in "["*"]") section=${finding//[][]/} ;; esac
    read -r finding <<<"$finding"
    read -r program <<<"$program"
    read -r name <<<"$name"
    [ -n "$name" ] || continue
    case "[$section] $finding $program $name" in *"$word"*) ;; *) continue ;; esac
    [ "$prepared" = "$section" ] || prepare "$section"
    prepared=$section
    run_row "$program" "$name"
    case $result in fails | hangs) ;; *) bad=1 ;; esac
    echo "| $finding | $program: $name | $commit | $result |"
done < <(grep -vE '^(#|at |from |take |leave |configure )|^$' "$list")
exit "$bad"
