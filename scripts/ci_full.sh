#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All of continuous integration, every night: the tests plain and under sanitizers, fuzzing, models, a few mutants, coverage, the
# documentation site, and the checks of form. .ci/run has the part that guards a commit. Takes an hour and more.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. scripts/ci_stages.sh

programs
tests dev
failing_calls
every_step
random_turns
interleavings
tests asan
tests tsan
fuzz
models
format
tidy
thread_safety
mutants
coverage
site
summary
