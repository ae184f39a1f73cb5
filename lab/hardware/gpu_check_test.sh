#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests scripts/gpu_check.sh and what packs it, where there is no GPU:  gpu_check_test.sh SOURCES BUILD
set -u
script=$1/scripts/gpu_check.sh pack=$1/scripts/pack_gpu_check.sh build=$2 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
mkdir "$work/here" && cd "$work/here" || exit 1

# ---- the steps ------------------------------------------------------------------------------------------------------

steps() { CHECK_BUILD=$build bash "$build/lab/hardware/plan.sh" steps; }
seconds=$(steps | awk '$1 != "share" { sum += $2 } END { print sum }')
expect "all steps but the last together take at most 560 s: $seconds" test "$seconds" -le 560
expect "the last takes at most 120 s" test "$(steps | tail -n 1 | cut -d ' ' -f 1,2)" = "share 120"
expect "the first look has 20 s" test "$(steps | head -n 1 | cut -d ' ' -f 1,2)" = "smoke 20"
while read -r name most _; do
    expect "the step $name is there" grep -qE "^$name\(\)" "$build"/lab/hardware/steps/*.sh
    expect "$name and its $most s are in docs/gpu-check.md" grep -qF "| \`$name\` | $most |" "$1/docs/gpu-check.md"
done < <(steps)

# ---- the archive ----------------------------------------------------------------------------------------------------

"$pack" "$work/here" "$work/none.tar.gz" 2>"$work/err"
expect "what is no build is not packed" test $? = 64
"$pack" "$build" "$work/check.tar.gz" >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err" >&2; exit 1; }
expect "the archive has at most 25 MB" test "$(stat -c %s "$work/check.tar.gz")" -le 25000000
tar -C "$work" -xf "$work/check.tar.gz" || exit 1
unpacked=$work/cuslice-gpu-check
expect "nothing in it depends on where it was built" test -z "$(grep -rlF "$build" "$unpacked")"
expect "nothing in it has the static runtime, which is NVIDIA's" \
    test -z "$(grep -rlF --exclude=*.cpp cudaErrorSoftwareValidityNotEstablished "$unpacked/bin" "$unpacked/lab/hardware")"

# ---- the plan, on the fake GPU --------------------------------------------------------------------------------------

# The whole plan on the fake GPU, from the archive. Nothing of it can be taken for a measurement, and nothing is written
# anywhere.
"$unpacked/gpu_check.sh" --fake >"$work/out" 2>"$work/err"
status=$?
if [ $status != 0 ]; then
    cat "$work/out" "$work/err" >&2
    echo "the plan on the fake GPU ended with $status" >&2
    failed=1
fi
expect "it prints something" test -s "$work/out"
expect "every line is marked" test "$(grep -vc '^NOT A GPU  ' "$work/out")" = 0
expect "no file is written" test -z "$(ls -A "$work/here")"
while read -r _ _ title; do
    expect "there is a step: $title" grep -qE "## [0-9]+\. $title" "$work/out"
done < <(steps)
expect "programs in a slice were refused within it" \
    has 'limit_driver, 1 GiB \| 1024.00 MiB .*CUDA_ERROR_OUT_OF_MEMORY.* yes \| right' "$work/out"
for name in "two processes of one job" "two jobs of one group" growth prealloc deferred; do
    expect "within the limit: $name" has "^NOT A GPU  \| $name.* yes \| right" "$work/out"
done
expect "the samples have two parts" has 'Number of devices: 2' "$work/out"
expect "the context that no hook sees is found" has 'by no exported function, \*\*where no hook sees it' "$work/out"
expect "the driver's own shares of time are there" has '\| without cuslice \| stream, 5 ms \| – \| [0-9.]+' "$work/out"
expect "nothing is wrong" test "$(grep -F '**' "$work/out" | grep -cvF '**where no hook sees it**')" = 0

# ---- the fake GPU, and what was measured ----------------------------------------------------------------------------

# A plan that was tried on the fake GPU makes no row; the same as a record does.
"$1/scripts/results_table.py" --row "$work/out" >"$work/row" 2>"$work/err"
expect "a run on the fake GPU is no record" test $? = 65
expect "and the line says so" has 'the plan on the fake GPU' "$work/err"
sed 's/^NOT A GPU  //' "$work/out" >"$work/fake.md"
"$1/scripts/results_table.py" --row "$work/fake.md" >"$work/row"
expect "its text is one that a row can be made of" test $? = 0
expect "with the GPU, the limit and the steps: $(tail -n 1 "$work/row")" \
    has '\| NVIDIA H200 \| 9.0 \|.* \| 518 MiB \| ([0-9]+) of \1 programs .* [0-9]+ done, ' "$work/row"

# The first table of a step, without the GPU's own UUID.
table() {
    sed -n "/^## [0-9]*\. $2/,/^## /p" "$1" | awk '/^\|/ { print; seen = 1; next } seen { exit }' |
        sed -E 's/GPU-[0-9a-fA-F-]+(…)?/GPU-…/g' # in brackets, for C locales, where it is three characters
}
record=$(find "$1/docs/results" -name 'h200-*.md' | sort | tail -n 1)
for title in "What a capture forbids" "CUDA_VISIBLE_DEVICES"; do
    expect "there is a record of it: $title" test -n "$(table "$record" "$title")"
    table "$record" "$title" | diff - <(table "$work/fake.md" "$title") >&2
    expect "the fake GPU answers as the H200: $title" test "${PIPESTATUS[1]}" = 0
done

# A step that does not exist, and a build that is none.
"$script" "$build" --fake --only smoke,nonsense >/dev/null 2>&1
expect "an unknown step is refused" test $? = 64
"$script" "$work/here" --fake >/dev/null 2>&1
expect "a folder without a build is refused" test $? = 64

# ---- what must fail does --------------------------------------------------------------------------------------------

# A program that holds more than the limit is found out.
export CUSLICE_FAKE=1xt4 CUSLICE_FAKE_DIR=$work/books
raw() { LD_LIBRARY_PATH=$build/lib/cuslice/fake "$@"; }
watch=$build/lab/hardware/watch fill=$build/lab/hardware/limit_driver
row=$(raw "$watch" --name greedy --limit $((256 << 20)) -- "$fill" $((1 << 30)))
expect "a program over the limit fails the watch" test $? = 1
expect "and its row says so: $row" grep -qF '**no**' <<<"$row"
row=$(raw "$watch" --name hidden --limit $((256 << 20)) -- /bin/bash -c "$fill $((1 << 30)); exit \$?")
expect "also one that NVML lists under another process: $row" test $? = 1
expect "by what the GPU's use rose by: $row" grep -qE 'not listed.*\*\*no\*\*' <<<"$row"
row=$(raw "$watch" --name both --limit $((2000 << 20)) --processes 2 -- \
    /bin/bash -c "$fill $((1 << 30)) & $fill $((1 << 30)) & wait -n && wait -n")
expect "also two that are over it only together: $row" test $? = 1
expect "by the sum of both: $row" grep -qF ' 2048.00 MiB | not refused ' <<<"$row"
raw "$watch" --name crash -- /bin/false >/dev/null
expect "a program that fails, fails the watch" test $? = 1
unset CUSLICE_FAKE CUSLICE_FAKE_DIR

# An NVML that never returns in a slice: the first look says so, with stacks; what needs a slice is left out, and what
# is measured without one goes on.
cp "$build/lab/hardware/test/hanging_nvml.so" "$unpacked/lib/cuslice/fake/libnvidia-ml.so.1"
# A step that hangs takes all of its time. On a busy machine the rest may not be done in it, and all is given more.
# hanging STEPS PATTERN…: the first of these runs that has come to all that is to be found in its record.
hanging() {
    local only=$1 patience pattern
    shift
    for patience in 1 4 16; do
        CHECK_PATIENCE=$patience "$unpacked/gpu_check.sh" --fake --only "$only" >"$work/out" 2>"$work/err"
        status=$?
        for pattern in "$@"; do has "$pattern" "$work/out" || continue 2; done
        return
    done
}
native='limit_driver, no slice.* right'
hanging smoke,limit,context_cost,split 'The first look .* hung' "$native" '\| the primary context \|' 'Number of devices: 1' \
    'nvmlInit|libnvidia-ml'
expect "a first look that hangs fails the run" test $status = 1
expect "the summary says which" has 'The first look \| \*\*failed\*\*' "$work/out"
expect "and what hung" has 'The first look .* hung' "$work/out"
expect "the stacks show where" has 'nvmlInit|libnvidia-ml' "$work/out"
for title in "The limit" "What a context" "One GPU split"; do
    expect "not in a slice: $title" has "$title.* not in a slice: the first look .* hung" "$work/out"
done
expect "the limit's native rows are there" has "$native" "$work/out"
expect "no row of a slice is" test "$(grep -c 'limit_driver, 2 GiB' "$work/out")" = 0
expect "what a context takes without cuslice is there" has '\| the primary context \|' "$work/out"
expect "and the samples without cuslice" has 'Number of devices: 1' "$work/out"

# A step that is cut off keeps what it measured. (Without the first look, nothing keeps it from hanging.)
hanging context_cost '\| a second context \|' 'Stacks at the time-out'
expect "a step that hangs fails the run" test $status = 1
expect "it is a time-out" has '\*\*time-out\*\*' "$work/out"
expect "its figures without cuslice are there" has '\| a second context \|' "$work/out"
expect "with the stacks" has 'Stacks at the time-out' "$work/out"

# Without a GPU it says so, and writes no record.
if "$build/lab/hardware/devices" about >/dev/null 2>&1; then
    echo "there is a GPU here: that its absence is said is not tested"
else
    "$script" "$build" --record "$work/record.md" 2>"$work/err"
    expect "without a GPU it exits with 69" test $? = 69
    expect "and says so" has "there is no GPU to measure here" "$work/err"
    expect "and writes no record" test ! -e "$work/record.md"
fi
exit $failed
