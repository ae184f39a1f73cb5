#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Line and branch coverage of policy/, virtual_gpu/ and shim/ by the tests, folder by folder, in a
# build of its own: build/coverage.
#
#   scripts/coverage.sh                              all tests but the checks and those with NVIDIA's
#                                                    libraries
#   scripts/coverage.sh --tests 'test_policy|limits' builds and asks only test programs with such a
#                                                    name
#   scripts/coverage.sh -R policy                    further words go to ctest
#
# Counts are written when a process ends: what was killed, or ended by _exit, leaves none, so that
# the figures are a lower bound. Tests that fail are listed and change nothing: some of them look at
# which files a process opens, or at what it takes for itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

only=
if [ "${1:-}" = --tests ]; then
    only=${2:?which test programs}
    shift 2
fi
scripts/setup.sh tests
build=$PWD/build/coverage
gcovr=$build/venv/bin/gcovr
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1" \
    -DCUSLICE_COVERAGE=ON >/dev/null
if [ ! -x "$gcovr" ]; then
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install --quiet gcovr==8.3
fi
targets=()
if [ -n "$only" ]; then
    mapfile -t targets < <(ninja -C "$build" -t targets all | sed -n 's/^\(test_[a-z0-9_]*\): phony$/\1/p' | grep -E "$only")
    [ ${#targets[@]} -gt 0 ] || { echo "coverage: no test program has such a name: $only" >&2; exit 1; }
    set -- -R "^($(IFS='|'; echo "${targets[*]}")):" "$@"
fi
cmake --build "$build" --parallel "$(nproc)" ${targets:+--target "${targets[@]}"}

find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" --parallel "$(nproc)" -LE 'checks|genuine|hardware' "$@" \
    </dev/null >"$build/tests.log" ||
    sed -n '/^The following tests FAILED/,$p' "$build/tests.log"
"$gcovr" --root . --object-directory "$build" \
    --filter 'policy/' --filter 'virtual_gpu/' --filter 'shim/' \
    --exclude-throw-branches --exclude-unreachable-branches --gcov-ignore-parse-errors=all \
    --json-summary --output "$build/coverage.json" "$build"
python3 - "$build/coverage.json" <<'END'
import collections, json, os, sys
folders = collections.defaultdict(lambda: [0, 0, 0, 0])
for file in json.load(open(sys.argv[1]))["files"]:
    parts = file["filename"].split("/")
    for folder in {parts[0], os.path.dirname(file["filename"])}:
        for i, key in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            folders[folder][i] += file[key]
print(f"{'folder':28} {'lines':>16} {'branches':>16}")
for folder, (lines, of_lines, branches, of_branches) in sorted(folders.items()):
    pairs = ((lines, of_lines), (branches, of_branches))
    shown = [f"{100 * a / b:5.1f}% {a:>5}/{b}" if b else "" for a, b in pairs]
    print(f"{folder:28} {shown[0]:>16} {shown[1]:>16}")
END
