#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks over the product with clang-tidy and the checks of .clang-tidy: config, policy, virtual_gpu,
# shim, cli and fake. Ends with 1 if it warns of anything. Needs build/dev configured, not built.
#
#   scripts/tidy.sh             all of it, by hand: 5 to 15 s of a core for each of 371 files
#   scripts/tidy.sh COMMIT      the files that changed since they left COMMIT's branch, and those
#                               that include a header which did
#   scripts/tidy.sh FILE…       these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tidy=clang-tidy-14 # another version warns of other things
if ! command -v "$tidy" >/dev/null; then
    echo "tidy: $tidy is needed: scripts/setup.sh checks installs it" >&2
    exit 69
fi
folders=(config policy virtual_gpu shim cli fake)

# Sources that changed since HEAD left a commit's branch, or in HEAD's last commit where it didn't.
changed_since() {
    local base
    base=$(git merge-base HEAD "$1")
    [ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse HEAD~1)
    git diff --name-only --diff-filter=d "$base" -- "${folders[@]}" | grep -E '\.(cpp|h)$' |
        while read -r file; do
            case $file in
                *.cpp) echo "$file" ;;
                *.h) git grep -lF "#include \"$file\"" -- "${folders[@]/%//*.cpp}" || true ;;
            esac
        done | sort -u
}

if [ $# -eq 0 ]; then
    mapfile -t files < <(git ls-files -- "${folders[@]/%//*.cpp}")
elif git rev-parse --quiet --verify "$1^{commit}" >/dev/null; then
    mapfile -t files < <(changed_since "$1")
else
    files=("$@")
fi
# A folder of its own: in build/dev sources are compiled in groups, and some once more in a test program, with a header that GCC
# has precompiled.
[ -f build/dev/CMakeCache.txt ] || cmake --preset dev >/dev/null
mkdir -p build/tidy
ln -sfn ../dev/cuda-headers build/tidy/cuda-headers # not fetched twice
mapfile -t headers < <(sed -nE 's/^(CUSLICE_(CUDA|NVML)_INCLUDE):[A-Z]+=(.+)/-D\1=\3/p' build/dev/CMakeCache.txt)
cmake --preset dev -B build/tidy -DCUSLICE_UNITY=OFF -DCUSLICE_TESTS=OFF "${headers[@]}" >/dev/null
echo "tidy: ${#files[@]} files"
[ ${#files[@]} -eq 0 ] ||
    printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tidy" -p build/tidy --quiet 2>&1 |
    { grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header' || true; } || exit 1
