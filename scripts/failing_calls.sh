#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails calls of the library and the launcher into the C library, one a run: six of each place in the code, with two errors. Then one of
# each place with those after it, two and three in a row, so that what a failure leaves to clean up fails too, and pairs of calls that a
# number decides. The tests do it with one of each, the error that is likeliest, and three pairs. Needs the preset dev, built. Takes some
# minutes.
#
#   scripts/failing_calls.sh [SEED]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

test=build/dev/tests/preload/test_preload_failing_calls
export CUSLICE_TEST_CALLS_OF_EACH_PLACE=6
CUSLICE_TEST_SEED=${1:-$(date +%Y%m%d)} CUSLICE_TEST_PAIRS_OF_CALLS=200 $test
CUSLICE_TEST_ERRNO=$(python3 -c 'import errno; print(errno.EINTR)') $test
export CUSLICE_TEST_CALLS_OF_EACH_PLACE=1
for calls in 2 3; do
    CUSLICE_TEST_CALLS_IN_A_ROW=$calls $test
done
