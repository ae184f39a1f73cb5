#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs threads that meet in policy's allocator, budget, records and locks in five million orders, of which the tests try some tens of
# thousands. Needs the preset dev, built. Takes two minutes.
#
#   scripts/interleavings.sh          300000 of each situation
#   scripts/interleavings.sh COUNT    so many
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CUSLICE_TEST_INTERLEAVINGS=${1:-300000} ctest --preset dev --tests-regex '^test_policy_interleaved' --parallel "$(nproc)" \
    --timeout 1200 --output-on-failure
