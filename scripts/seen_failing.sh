#!/usr/bin/env bash
# Shows that the tests for what was mended failed before: checks an older commit out, lays the present tests and the present
# fake GPU over it, and runs what tests/seen_failing.txt names. Run by hand; it builds for as long as a fresh checkout does.
#
#   scripts/seen_failing.sh                     at d645417, every line of the list
#   scripts/seen_failing.sh COMMIT              at another commit: HEAD shows that they pass now
#   scripts/seen_failing.sh COMMIT WORD         only the lines with this word
#   KEEP=1 scripts/seen_failing.sh …            leaves the checkout where it is, so that a second run builds little
#
# Prints a table in Markdown: each case fails, hangs, passes, is skipped, is not there or does not build. Ends with 1 unless all
# of them fail or hang. Changes that were not committed are laid over as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

commit=$(git rev-parse --short=7 --verify "${1:-d645417}^{commit}")
word=${2:-}
seconds=120 # for one case: one that hangs is told from one that is slow by nothing else
here=$PWD
list=$here/tests/seen_failing.txt
tree=$here/build/seen_failing/$commit
build=$tree/build/dev
log=$here/build/seen_failing/$commit.log
export CUSLICE_GENUINE_CACHE=${CUSLICE_GENUINE_CACHE:-$here/build/genuine}
say() { echo "seen_failing: $1" >&2; }

mkdir -p "${tree%/*}"
: >"$log"
[ -n "${KEEP:-}" ] || trap 'git worktree remove --force "$tree"' EXIT
git worktree prune
[ -e "$tree" ] || git worktree add --quiet --detach "$tree" "$commit"
git -C "$tree" checkout --quiet --force --detach "$commit"

# A path of the old tree becomes what it is here. Modification times are kept where nothing changed, for a second run.
lay_over() {
    git -C "$tree" ls-files -z -- "$1" | (cd "$tree" && xargs -0r rm -f --)
    git ls-files -z --cached --others --exclude-standard -- "$1" |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar --create --null --files-from=- | tar --extract --directory="$tree"
}
for path in tests virtual_gpu/fake $(sed -n 's/^take  *//p' "$list"); do lay_over "$path"; done
# What fits only the code that it was written for, and would keep others from being built.
for path in $(sed -n 's/^leave  *//p' "$list"); do git -C "$tree" checkout --quiet "$commit" -- "$path"; done

ready=yes
say "configuring $commit"
(cd "$tree" && cmake --preset dev) >>"$log" 2>&1 || ready=no
[ "$ready" = yes ] || say "it does not configure: see $log"

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

run_case() { # a program of Catch2's, and a case of it by its name
    local program name there status=0
    program=$(find "$build/tests" -type f -name "$1" -perm -u+x | head -1)
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

bad=0
echo "| finding | test | at $commit |"
echo "|---|---|---|"
while IFS='|' read -r finding program name; do
    read -r finding <<<"$finding"
    read -r program <<<"$program"
    read -r name <<<"$name"
    [ -n "$name" ] || continue
    case "$finding $program $name" in *"$word"*) ;; *) continue ;; esac
    printf '\n--- %s, %s\n' "$program" "$name" >>"$log"
    if [ "$program" = ctest ]; then
        if build product; then result=$(run_ctest "$name"); else result="does not build"; fi
    else
        if build "$program"; then result=$(run_case "$program" "$name"); else result="does not build"; fi
    fi
    case $result in fails | hangs) ;; *) bad=1 ;; esac
    echo "| $finding | $program: $name | $result |"
done < <(grep -vE '^(#|take |leave )|^$' "$list")
say "the programs' own words are in $log"
exit "$bad"
