#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Six jobs on two fake GPUs take 10,000 random steps, and their shares are compared with fair ones between bursts of them. Needs the
# preset dev, built. Takes an hour, most of it asleep, as the clock is the real one.
#
#   scripts/random_turns.sh [SEED]      the day's date
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export CUSLICE_TEST_FULL=1
export CUSLICE_TEST_SEED=${1:-$(date +%Y%m%d)}
build/dev/tests/turns/test_turns
