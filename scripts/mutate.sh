#!/usr/bin/env bash
# Mutation testing of policy/, virtual_gpu/ and shim/: makes small mistakes in the sources, one at a
# time, and lists those that no test notices. By hand: it builds everything once more, and each
# mistake that survives costs a run of all the tests that were asked.
#
#   scripts/mutate.sh                         200 mistakes in HEAD
#   scripts/mutate.sh --commit X --count 50   50 mistakes in another commit
#   scripts/mutate.sh --changed X --count 10  only in the files that changed since HEAD left X's
#                                             branch, or in HEAD's last commit where it didn't
#   scripts/mutate.sh --most-objects 8        none in headers that more of our objects include: one
#                                             of those takes a minute or two to build
#   scripts/mutate.sh --list                  draws and shows them, and builds nothing
#   scripts/mutate.sh --tests 'policy|limits' asks only the test programs with such a name
#   scripts/mutate.sh --slow                  asks the tests that are tagged slow as well
#
# Which mistakes are made follows from the commit and the count alone, with more for larger folders.
# One whose object code is the original's, or that doesn't compile, is left out and another drawn. A
# mistake is killed if a test fails twice, or takes far longer than before: first the tests of
# its folder, then those under LD_PRELOAD, up to the first that fails. Tests that fail without any
# mistake are left out, and listed.
#
# Everything happens in a checkout of its own, build/mutate/tree (git worktree remove --force takes
# it away). What has been found out is kept in build/mutate/*.jsonl: the same command goes on where
# it was stopped. Ends with 0 whatever survives. Leave the machine alone meanwhile: a test that
# takes ten times as long as before, and half a minute more, is taken for one that hangs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case " $* " in *" --list "*) ;; *) scripts/setup.sh tests ;; esac
exec python3 scripts/mutate.py "$PWD" "$@"
