#!/usr/bin/env bash
# Sets up, builds and runs every test. Needs no GPU, and once it is set up no network.
#
#   scripts/test.sh                 the preset dev, in build/dev
#   scripts/test.sh asan            another preset: asan or tsan
#   scripts/test.sh dev -R route    more words go to ctest: here only the tests whose name contains `route`
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

scripts/build.sh "$preset"

# What some tests compare with where it can be had, and skip where it can't: the genuine driver's packages.
if [ -f tests/preload/genuine_driver.sh ]; then
    timeout 300 bash tests/preload/genuine_driver.sh "build/$preset/genuine-driver" </dev/null ||
        echo "test: the genuine driver's packages can't be had; the tests that compare with them are skipped"
fi

if [ -f tests/preload/genuine_runtime.sh ]; then
    timeout 300 bash tests/preload/genuine_runtime.sh "build/$preset/genuine-runtime" </dev/null ||
        echo "test: the genuine runtimes' packages can't be had; the tests that look names up in them are skipped"
fi

# tsan can't place its shadow where the kernel spreads mappings very widely. Off, where that may be turned off.
plain=()
[ "$preset" != tsan ] || ! setarch -R true 2>/dev/null || plain=(setarch -R)

exec "${plain[@]}" ctest --preset "$preset" --no-tests=error --parallel "$(nproc)" "$@" </dev/null
