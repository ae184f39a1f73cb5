#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and runs every test. Needs no GPU, and once it is set up no network.
#
#   scripts/test.sh                 the preset dev, in build/dev
#   scripts/test.sh asan            another preset: asan or tsan
#   scripts/test.sh dev -R route    more words go to ctest: here only the tests whose name contains `route`
#   scripts/test.sh dev -LE slow    without the slow ones; labels are the folders of tests/ and lab/, and what cases are tagged with
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-dev}
case $preset in
    dev | asan | tsan) ;;
    *)
        echo "test: there is no preset $preset; it is one of dev, asan, tsan" >&2
        exit 64
        ;;
esac
[ $# -eq 0 ] || shift

# NVIDIA's genuine libraries, which tests compare with where they can be had, and skip by name where they can't. The presets
# share them; the matrix of all of them runs in dev alone. They are fetched while the compiler is busy.
scripts/setup.sh tests
items=()
[ "$preset" = dev ] || items=(driver-535 cudart-12 cudart-13)
timeout 300 python3 lab/genuine/fetch.py "${items[@]}" </dev/null &
fetching=$!

scripts/build.sh "$preset"
wait "$fetching" ||
    echo "test: not all of NVIDIA's genuine libraries can be had; what compares with the missing ones is skipped"

# tsan can't place its shadow where the kernel spreads mappings very widely. Off, where that may be turned off.
plain=()
[ "$preset" != tsan ] || ! setarch -R true 2>/dev/null || plain=(setarch -R)

# ctest's record of how long tests took grows with each run by those whose name has spaces, and is of no use to them.
rm -f "build/$preset/Testing/Temporary/CTestCostData.txt"
# Half as many again as there are cores: tests wait for other processes now and then.
exec "${plain[@]}" ctest --preset "$preset" --no-tests=error --parallel "$(($(nproc) * 3 / 2))" "$@" </dev/null
