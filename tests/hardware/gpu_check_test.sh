#!/bin/bash
# Tests scripts/gpu_check.sh where there is no GPU:  gpu_check_test.sh SCRIPT BUILD
set -u
script=$1 build=$2 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
expect() {
    local what=$1
    shift
    "$@" || { echo "not so: $what" >&2; failed=1; }
}

# The whole plan on the fake GPU. Nothing of it can be taken for a measurement, and nothing is written anywhere.
mkdir "$work/here" && cd "$work/here" || exit 1
"$script" "$build" --fake >"$work/out" 2>"$work/err"
status=$?
if [ $status != 0 ]; then
    cat "$work/out" "$work/err" >&2
    echo "the plan on the fake GPU ended with $status" >&2
    failed=1
fi
expect "it prints something" test -s "$work/out"
expect "every line is marked" test "$(grep -vc '^NOT A GPU  ' "$work/out")" = 0
expect "no file is written" test -z "$(ls -A "$work/here")"
for title in "The limit, driver API" "cuGetProcAddress and the exported addresses" "What calls cost"; do
    expect "there is a step: $title" grep -q "## [0-9]*\. $title" "$work/out"
done
expect "programs in a slice were refused within it" \
    grep -qE 'driver API, 1 GiB \| 1024.00 MiB .*CUDA_ERROR_OUT_OF_MEMORY.* yes \| right' "$work/out"

# A step that does not exist, and a build that is none.
"$script" "$build" --fake --only nonsense >/dev/null 2>&1
expect "an unknown step is refused" test $? = 64
"$script" "$work/here" --fake >/dev/null 2>&1
expect "a folder without a build is refused" test $? = 64

# What must fail does: a program that holds more than the limit is found out.
export CUSLICE_FAKE=1xt4 CUSLICE_FAKE_DIR=$work/books
raw() { LD_LIBRARY_PATH=$build/lib/cuslice/fake "$@"; }
row=$(raw "$build/tests/hardware/watch" --name greedy --limit $((256 << 20)) -- \
    "$build/tests/hardware/limit_driver" $((1 << 30)))
expect "a program over the limit fails the watch" test $? = 1
expect "and its row says so: $row" grep -qF '**no**' <<<"$row"
row=$(raw "$build/tests/hardware/watch" --name hidden --limit $((256 << 20)) -- \
    /bin/bash -c "$build/tests/hardware/limit_driver $((1 << 30)); exit \$?")
expect "also one that NVML lists under another process: $row" test $? = 1
expect "by what the GPU's use rose by: $row" grep -qE 'not listed.*\*\*no\*\*' <<<"$row"
raw "$build/tests/hardware/watch" --name crash -- /bin/false >/dev/null
expect "a program that fails, fails the watch" test $? = 1
unset CUSLICE_FAKE

# Without a GPU it says so, and writes no record.
if "$build/tests/hardware/devices" about >/dev/null 2>&1; then
    echo "there is a GPU here: that its absence is said is not tested"
else
    "$script" "$build" --record "$work/record.md" 2>"$work/err"
    expect "without a GPU it exits with 69" test $? = 69
    expect "and says so" grep -q "there is no GPU to measure here" "$work/err"
    expect "and writes no record" test ! -e "$work/record.md"
fi
exit $failed
