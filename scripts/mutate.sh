#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mutation testing of policy/, virtual_gpu/ and shim/: makes small mistakes in the sources, one at a
# time, and lists those that no test notices.
#
#   scripts/mutate.sh                         200 mistakes in HEAD
#   scripts/mutate.sh --commit X --count 50   50 mistakes in another commit
#   scripts/mutate.sh --seed A,B              two sets, drawn by these commits' ids and not by HEAD's
#   scripts/mutate.sh --changed X --count 10  only in the files that changed since HEAD left X's
#                                             branch, or in HEAD's last commit where it didn't
#   scripts/mutate.sh --list                  draws and shows them, and builds nothing
#   scripts/mutate.sh --tests 'policy|limits' asks only the test programs with such a name
#   scripts/mutate.sh --slow                  asks the tests that are tagged slow as well
#   scripts/mutate.sh --minutes 5             begins with no further mistake after five minutes
#   scripts/mutate.sh --jobs 2                so many compilers, or tests, at the same time
#
# All mistakes are put into one copy of the sources, build/mutate/tree, each beside what was there
# before, and built once; a number that the tests' processes read says which one is made
# (mutation/mutant.h). Which mistakes these are follows from the seed and the sources, with more for
# larger folders. One that can't be compiled in this way, that the compiler works out by itself, or
# whose object code is the original's is left out, and another tried.
#
# First every test runs without a mistake, which shows the places that it reaches. Then each mistake
# is tried on the tests that reach it, quick ones first. It is killed if one fails twice, or takes
# far longer than before; it survives if none does, or reaches it. Tests that fail without a mistake
# are left out, and listed.
#
# What has been found out is kept in build/mutate/*.jsonl: the same command goes on where it was
# stopped. Ends with 0 whatever survives.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case " $* " in *" --list "*) ;; *) scripts/setup.sh tests ;; esac
exec python3 scripts/mutate.py "$PWD" "$@"
