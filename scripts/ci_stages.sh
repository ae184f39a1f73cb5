# SPDX-License-Identifier: Apache-2.0
# The stages of continuous integration, and how they are counted: for .ci/run and scripts/ci_full.sh, which source this. Everything runs
# even if something has failed before. The last line counts tests and checks of all of it together.
set -uo pipefail

passed=0 failed=0 report=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

stage() {
    echo "=== $1"
    begun=$SECONDS
}

say() { report+=("$1  $(printf '%4d s' $((SECONDS - begun)))  $2"); }

one() {  # the result of one check: name, 0 or 1
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        say passed "$1"
    else
        failed=$((failed + 1))
        say FAILED "$1"
    fi
}

tests() {  # a preset's tests, counted one by one
    local status summary bad all
    stage "tests, preset $1"
    scripts/test.sh "$1" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    summary=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$log" | tail -1)
    if [ -z "$summary" ]; then
        one "preset $1: it did not come to a summary (exit $status)" 1
        return
    fi
    read -r bad all <<<"$summary"
    # A skipped test has neither passed nor failed, and has said why.
    local skipped
    skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test.*\*\*\*Skipped' "$log")
    grep -hE '^ *SKIPPED' "build/$1/Testing/Temporary/LastTest.log" | sort | uniq -c
    passed=$((passed + all - bad - skipped)) failed=$((failed + bad))
    if [ "$bad" -eq 0 ] && [ "$status" -ne 0 ]; then
        one "preset $1: ctest ended with $status although no test failed" 1
        return
    fi
    local word=passed
    [ "$bad" -eq 0 ] || word=FAILED
    say $word "preset $1: $((all - bad - skipped)) of $all tests, $skipped skipped"
    [ "$bad" -eq 0 ] || report+=("$(scripts/failed_tests.py "build/$1/Testing/Temporary")")
}

fuzz() {  # a minute each
    stage "fuzzing"
    scripts/fuzz.sh 60
    one "fuzzing, a minute each" $?
}

models() {  # every state of small cases of the ledger's protocol, and larger ones by a sample
    stage "models of the ledger"
    scripts/setup.sh models && scripts/models.sh --long
    one "models of the ledger" $?
}

failing_calls() {  # six of each place in the code, where the tests have one
    stage "calls into the C library that fail"
    scripts/failing_calls.sh
    one "each call into the C library fails once" $?
}

every_step() {  # each step of each situation, where the tests take one in 4 to 12; and a thousand kills at random
    stage "killed before every step"
    scripts/every_step.sh
    one "killed before every step, and at random" $?
}

random_turns() {  # ten thousand steps, where the tests take three hundred
    stage "turns of jobs, at random"
    scripts/random_turns.sh
    one "turns of six jobs on two GPUs, at random" $?
}

interleavings() {  # 9.5 million, where the tests have 305,000
    stage "threads that meet, in millions of orders"
    scripts/interleavings.sh
    one "threads that meet, in millions of orders" $?
}

format() {
    stage "clang-format"
    git ls-files -z '*.cpp' '*.h' '*.c' | xargs -0 clang-format-14 --dry-run -Werror
    one "clang-format" $?
}

tidy() {  # what the last commit changed: all of it takes too long (scripts/tidy.sh)
    stage "clang-tidy"
    scripts/tidy.sh HEAD
    one "clang-tidy, of what the last commit changed" $?
}

thread_safety() {
    stage "locks, as clang sees them"
    scripts/thread_safety.sh
    one "thread-safety annotations" $?
}

mutants() {  # ten small mistakes in what the last commit changed; it fails only if it can't try them
    local status
    stage "mutants"
    scripts/mutate.sh --changed HEAD --count 10 --minutes 8 --tests "$mutants_ask" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    one "mutants of what the last commit changed: $(sed -n 's/^mutate: result: //p' "$log" | tail -1)" "$status"
}
# The tests that are quick to build and reach most: a mutant that survives these may well be killed by others.
mutants_ask='^test_(policy|virtual_gpu|shim)|^test_preload_(any|gpus|graphs|kinds|limits|nvml|programs|reuse|split)$'

coverage() {  # a lower bound: by the unit tests alone, as all that the others need takes minutes to build
    local status
    stage "coverage"
    scripts/coverage.sh --tests '^test_(policy|virtual_gpu|shim)' 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    one "lines and branches covered by unit tests:$(awk '$1 ~ /^(policy|shim|virtual_gpu)$/ {
        printf "  %s %s %s", $1, $2, $4 }' "$log")" "$status"
}

site() {  # its links, and the search
    stage "documentation site"
    scripts/site.sh
    one "the documentation site" $?
}

programs() {  # a check whose program can't be installed is one that fails
    stage "setting up"
    scripts/setup.sh checks
    one "the programs that the checks need" $?
}

summary() {  # the exit status: 0 if nothing has failed
    echo
    printf '%s\n' "${report[@]}"
    echo
    echo "$((SECONDS / 60)) minutes on $(nproc) cores, $(sed -n 's/^model name\t*: //p' /proc/cpuinfo | head -1)"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
