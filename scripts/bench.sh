#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what cuslice costs, against the fake GPU's driver alone, in one run. See docs/results/performance/README.md.
#
#   scripts/bench.sh [--json FILE]    one table; and an object for each figure in FILE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    echo "usage: scripts/bench.sh [--json FILE]" >&2
    exit 64
}
command="scripts/bench.sh $*" json=()
while [ $# -gt 0 ]; do
    case $1 in
        --json) [ $# -ge 2 ] || usage; json=(--json "$2"); shift 2 ;;
        *) usage ;;
    esac
done

scripts/build.sh release product cuslice_bench >&2
build=$PWD/build/release
books=$(mktemp -d /dev/shm/cuslice-bench-XXXXXX)
figures=$(mktemp)
trap 'rm -rf "$books" "$figures"' EXIT

echo "bench: calls and allocations, about two minutes" >&2
calls=("$build/tests/bench/cuslice_bench_calls" "$build/lib/cuslice/fake/libcuda.so.1")
export CUSLICE_FAKE_DIR=$books
"$build/bin/cuslice" run --per-process --fake 1xh200 --limit 64GiB -- "${calls[@]}" >"$figures"
"$build/bin/cuslice" run --fake 1xh200 --limit 64GiB -- "${calls[@]}" job >>"$figures"
"$build/bin/cuslice" run --per-process --fake 1xh200 --split 0=2 -- "${calls[@]}" split >>"$figures"
echo "bench: several threads and processes, and refusals beside a process that caches, about a minute" >&2
threads=("$build/tests/bench/cuslice_bench_threads" "$build/lib/cuslice/fake/libcuda.so.1")
"$build/bin/cuslice" run --fake 1xh200 --limit 64GiB -- "${threads[@]}" "in a job" >>"$figures"
"$build/bin/cuslice" run --per-process --fake 1xh200 --limit 64GiB -- "${threads[@]}" "not shared" >>"$figures"
"$build/bin/cuslice" run --fake 1xh200 --limit 64GiB -- \
    "$build/tests/bench/cuslice_bench_processes" "$build/lib/cuslice/fake/libcuda.so.1" "in one job" >>"$figures"
"$build/bin/cuslice" run --fake 1xh200 --limit 4GiB --allocator growth -- \
    "$build/tests/bench/cuslice_bench_refusals" "$build/lib/cuslice/fake/libcuda.so.1" >>"$figures"
echo "bench: cached memory, about a minute" >&2
for when in strict deferred; do
    "$build/bin/cuslice" run --per-process --fake 1xh200 --limit 64GiB --allocator growth --free "$when" -- \
        "$build/tests/bench/cuslice_bench_cached" "$build/lib/cuslice/fake/libcuda.so.1" "$when" >>"$figures"
done
# As published of others' GPUs, before one was measured here: see docs/results/performance/README.md.
delays=delay:cuMemAlloc_v2=97us,delay:cuMemFree_v2=450us,delay:cuCtxSynchronize=1900ns
delays+=,delay:cuCtxRecordEvent=500ns,delay:cuEventQuery=500ns,delay:cuMemGetInfo_v2=10us
# Nobody has published this one: long enough to be slept through, so that it shows whether threads wait for each other.
delays+=,delay:cuMemAllocAsync=1ms
for when in strict deferred; do
    CUSLICE_FAKE_INJECT=$delays \
        "$build/bin/cuslice" run --per-process --fake 1xh200 --limit 64GiB --allocator growth --free "$when" -- \
        "$build/tests/bench/cuslice_bench_delayed" "$build/lib/cuslice/fake/libcuda.so.1" "$when" >>"$figures"
done
echo "bench: waste, half a minute" >&2
"$build/tests/bench/cuslice_bench_waste" >>"$figures"
"$build/tests/bench/cuslice_bench_record" "$books" >>"$figures"
echo "bench: the host ledger, some seconds" >&2
"$build/tests/bench/cuslice_bench_ledger" "$books/ledger" >>"$figures"
unset CUSLICE_FAKE_DIR
echo "bench: start-up, about a minute" >&2
"$build/tests/bench/cuslice_bench_startup" "$build/lib/cuslice" "$build/tests/bench/cuslice_bench_first_call" "$books" \
    >>"$figures"
python3 scripts/bench_report.py --command "${command% }" "${json[@]}" <"$figures"
