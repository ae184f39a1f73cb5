#!/usr/bin/env bash
# Sets up (scripts/setup.sh) and builds one preset into build/<preset>. What run.sh, test.sh, bench.sh and compat.sh begin with.
#
#   scripts/build.sh release                everything
#   scripts/build.sh release cuslice_bench  only what is named
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:?a preset is needed: release, dev, asan or tsan}
shift

scripts/setup.sh
# Configuring again takes a second that a second run need not spend: ninja does it by itself when a CMakeLists.txt changed.
if [ ! -f "build/$preset/build.ninja" ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if ! cmake --preset "$preset" >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
fi
cmake --build --preset "$preset" --parallel "$(nproc)" ${*:+--target "$@"} </dev/null
