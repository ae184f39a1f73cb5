#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills processes before each step that others can see, where the tests try one in 4 to 12, and a thousand processes of jobs at random.
# And has processes meet, each at a step that the seed draws. Needs the preset dev, built. Takes a quarter of an hour and more, most of
# it asleep, as processes wait for a lock whose owner stands still.
#
#   scripts/every_step.sh [SEED]      the day's date
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export CUSLICE_TEST_FULL=1
export CUSLICE_TEST_SEED=${1:-$(date +%Y%m%d)}
status=0
for test in policy/test_policy_steps preload/test_preload_steps preload/test_preload_kills; do
    "build/dev/tests/$test" || status=1
done
exit $status
