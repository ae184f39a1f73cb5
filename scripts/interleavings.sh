#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs threads that meet in policy and virtual_gpu in millions of orders, of which the tests try 5,000 of each situation. Needs the
# preset dev, built. Takes some minutes.
#
#   scripts/interleavings.sh          300000 of each situation of policy's; a third as many of virtual_gpu's, which take longer
#   scripts/interleavings.sh COUNT    so many
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
count=${1:-300000}

# run TESTS COUNT: so many of each situation.
run() {
    CUSLICE_TEST_INTERLEAVINGS=$2 ctest --preset dev --tests-regex "^$1" --parallel "$(nproc)" --timeout 1200 --output-on-failure
}
run test_policy_interleaved "$count"
run test_virtual_gpu_interleaved $((count / 3))
