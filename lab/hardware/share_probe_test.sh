#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests share_probe on the fake GPU, on the real clock:  share_probe_test.sh BUILD
# Expects no more than a busy machine gives: a program that is late does less.
set -u
probe=$1/lab/hardware/share_probe work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
export CUSLICE_FAKE=1xt4 CUSLICE_FAKE_DIR=$work/books CUSLICE_FAKE_COST=spin=5ms LD_LIBRARY_PATH=$1/lib/cuslice/fake

# said FILE CONDITION: of the line of JSON in it, as d.
said() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1"; }

"$probe" calibrate >"$work/steps" 2>/dev/null
expect "a calibration prints a number" has '^[1-9][0-9]*$' "$work/steps"
steps=$(cat "$work/steps")

for mode in stream graph pauses; do
    "$probe" $mode 5 "$steps" 1 >"$work/$mode" 2>/dev/null
    expect "$mode: a probe runs" test $? = 0
    expect "$mode: some kernels are done, and no more than fit" said "$work/$mode" '0 < d["kernels"] <= 200'
    expect "$mode: they had their own lengths" said "$work/$mode" 'd["had_ms"] == 5 * d["kernels"]'
    expect "$mode: launches and gaps have times" said "$work/$mode" 'd["launch_us"] > 0 and d["longest_gap_ms"] >= 5'
done
expect "a graph has ten kernels" said "$work/graph" 'd["kernels"] % 10 == 0'
expect "half of the time is a pause" said "$work/pauses" 'd["kernels"] <= 102'

mkdir "$work/meeting"
for number in 1 2; do
    "$probe" stream 5 "$steps" 2 2 "$work/meeting" >"$work/$number" 2>/dev/null &
done
wait
for number in 1 2; do
    expect "of two, each gets on" said "$work/$number" 'd["kernels"] > 0'
    expect "its events have the other's time, too" said "$work/$number" 'd["events_ms"] > 1.5 * d["had_ms"]'
done
# Each has a window of its own, which begin some milliseconds apart.
kernels=$(python3 -c 'import json, sys; print(sum(json.load(open(f))["kernels"] for f in sys.argv[1:]))' "$work"/[12])
expect "both have one GPU: $kernels kernels" test "$kernels" -le 420

for words in "" "stream 5 1000" "nothing 5 1000 1" "stream 0 1000 1" "stream 5 1000 1 2"; do
    # shellcheck disable=SC2086  # several words
    "$probe" $words 2>/dev/null
    expect "wrong usage is 64: $words" test $? = 64
done
exit $failed
