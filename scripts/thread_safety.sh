#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Has clang look at the library's locks: whether what is guarded by one is only touched with it held,
# as the annotations of policy/base/thread_annotations.h have it. Ends with 1 if it warns of
# anything. Needs build/dev configured, not built.
#
#   scripts/thread_safety.sh          all of policy, virtual_gpu and shim: a second of a core for each
#   scripts/thread_safety.sh FILE…    these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clang=clang++-14 # another version warns of other things
if ! command -v "$clang" >/dev/null; then
    echo "thread_safety: $clang is needed: scripts/setup.sh checks installs it" >&2
    exit 69
fi
if [ $# -gt 0 ]; then
    files=("$@")
else
    mapfile -t files < <(git ls-files -- 'policy/*.cpp' 'virtual_gpu/*.cpp' 'shim/*.cpp')
fi
[ -f build/dev/compile_commands.json ] || cmake --preset dev >/dev/null

# Each file with the words that are its own: where headers lie, and which macros there are.
look() {
    local words
    mapfile -t words < <(python3 - "$2" <<'PYTHON'
import json, os, shlex, sys
for entry in json.load(open("build/dev/compile_commands.json")):
    if os.path.relpath(entry["file"]) == os.path.normpath(sys.argv[1]):
        words = shlex.split(entry["command"])
        for i, word in enumerate(words):
            if word in ("-I", "-isystem", "-D"):
                print(word, words[i + 1], sep="\n")
            elif word.startswith(("-I", "-D", "-std=", "-isystem")):
                print(word)
        break
else:
    sys.exit(f"thread_safety: build/dev doesn't compile {sys.argv[1]}")
PYTHON
    )
    [ ${#words[@]} -gt 0 ] &&
        "$1" -fsyntax-only -Wno-everything -Wthread-safety -Werror "${words[@]}" "$2"
}
export -f look

echo "thread_safety: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'look "$@"' look "$clang" || exit 1
