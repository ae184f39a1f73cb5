#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests the guard, which ends what doesn't end by itself, and call_trace, on the fake GPU:  guard_test.sh BUILD
set -u
build=$1 here=$1/lab/hardware work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
guard=$here/guard

# ---- the guard ------------------------------------------------------------------------------------------------------

"$guard" 60+1 bash -c 'exit 5'
expect "the program's exit status is the guard's" test $? = 5
"$guard" 60+1 bash -c 'kill -KILL $$'
expect "so is the signal that ended it" test $? = 137
"$guard" 60+1 "$work/nothing" 2>"$work/err"
expect "a program that isn't there is 127" test $? = 127
"$guard" 60 true 2>"$work/err"
expect "without the time for the stacks it says how it is used" test $? = 64

# Children that a program leaves behind go with it, in a session of their own or not.
"$guard" 60+1 bash -c "setsid bash -c 'echo \$\$ >$work/pid; exec sleep 120' & while [ ! -s $work/pid ]; do sleep 0.05; done"
expect "the status of a program that left one behind" test $? = 0
expect "what a program left behind is ended" test ! -e "/proc/$(cat "$work/pid")"

# A time-out: the stacks of all that run below it, in the file that is named. On a busy machine they may have come no
# further than to their beginning by then, and are given more time.
export CHECK_STACKS=$work/stacks
for seconds in 1 4 16 64; do
    rm -f "$work/stacks"
    "$guard" $seconds+120 bash -c "sleep 1200 & sleep 1201"
    status=$?
    [ "$(grep -c '^process [0-9]*, sleep$' "$work/stacks")" = 2 ] && break
done
expect "a time-out is 124" test $status = 124
expect "both processes are in the stacks" test "$(grep -c '^process [0-9]*, sleep$' "$work/stacks")" = 2
expect "the shell that waits for them is not" test "$(grep -c '^process .*, bash$' "$work/stacks")" = 0
expect "with more than their names" test "$(wc -l <"$work/stacks")" -ge 5

# Without a debugger: what /proc has. The path has nothing but what the command needs.
rm "$work/stacks" && mkdir "$work/bin" && ln -s "$(command -v sleep)" "$work/bin/sleep"
if [ -x /usr/local/cuda/bin/gdb ] || [ -x /usr/local/cuda/bin/cuda-gdb ]; then
    echo "a debugger is in /usr/local/cuda: what is said without one is not tested"
else
    for seconds in 1 4 16 64; do
        rm -f "$work/stacks"
        PATH=$work/bin "$guard" $seconds+120 sleep 1200
        has 'at libc.*\+0x[0-9a-f]+' "$work/stacks" && break
    done
    expect "each thread is named with where it waits" has '^thread [0-9]+ sleep, waits in .*, system call' "$work/stacks"
    expect "and its place in the C library" has 'at libc.*\+0x[0-9a-f]+' "$work/stacks"
fi

# ---- what a program calls -------------------------------------------------------------------------------------------

export CUSLICE_FAKE=1xt4 CUSLICE_FAKE_DIR=$work/books LD_LIBRARY_PATH=$build/lib/cuslice/fake
traced() {
    rm -f "$work"/trace.*
    env LD_PRELOAD="$here/call_trace.so" CHECK_DRIVER="$LD_LIBRARY_PATH/libcuda.so.1" CHECK_TRACE="$work/trace" "$@" >/dev/null
    expect "$1 runs with its calls noted" test $? = 0
    CHECK_BUILD=$build CHECK_FAKE=1xt4 LD_LIBRARY_PATH='' bash "$here/plan.sh" trace_table "$work"/trace.* >"$work/table"
}
traced "$here/test/unseen_context" exported
expect "calls are listed in order" has 'until the first allocation: 0 look-ups; cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent, cuMemAlloc_v2$' "$work/table"
expect "a context that an exported function made has its name" has 'came into being in `cuDevicePrimaryCtxRetain`' "$work/table"
traced "$here/test/unseen_context"
expect "the call that nobody sees is not listed" has 'look-ups; cuInit, cuCtxSetCurrent, cuMemAlloc_v2$' "$work/table"
expect "a context that came otherwise is found out" \
    has 'between `cuInit` and `cuCtxSetCurrent`: by no exported function' "$work/table"
if [ -x "$here/limit_runtime" ]; then
    traced "$here/limit_runtime" 1048576
    expect "what the runtime looked up is called through the noting library" has 'look-ups; .*cuInit.*cuMemAlloc_v2' "$work/table"
    expect "it did look up" has ': [1-9][0-9]* look-ups' "$work/table"
fi
exit $failed
