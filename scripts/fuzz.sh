#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the readers of settings, of ELF files and of the loader's cache, the host ledger's file and the caching allocator
# with libFuzzer, under asan and ubsan. Needs clang.
#
#   scripts/fuzz.sh [SECONDS]    so long for each (60)
#
# What it has learnt is kept in build/fuzz/corpus, and an input that fails in build/fuzz/crash-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
case $seconds in *[!0-9]* | '') echo "usage: scripts/fuzz.sh [SECONDS]" >&2; exit 64 ;; esac
if ! command -v clang++ >/dev/null; then
    echo "fuzz: clang++ is needed, for libFuzzer" >&2
    exit 69
fi

scripts/setup.sh
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DCUSLICE_SANITIZE=address,undefined,fuzzer-no-link -DCUSLICE_FUZZ=ON >/dev/null
cmake --build build/fuzz --target fuzzers --parallel "$(nproc)" >build/fuzz/build.log || { cat build/fuzz/build.log >&2; exit 1; }
cd build/fuzz
mkdir -p corpus/config corpus/elf corpus/ledger corpus/allocator
# Valid input to begin with, so that the fuzzer finds its way from there.
printf '\x000.4,0=40%%' >corpus/config/fraction
printf '\x064GiB,GPU-5f=2048MiB' >corpus/config/limit
printf '\x300=1GiB@1+rest@0,GPU-7=512MiB@3' >corpus/config/split
printf '\x300=1GiB#2@1+rest#63@0:0' >corpus/config/split_number
printf '\x300=1GiB@1:-1+rest@0:0,1=1GiB+2GiB:-5+context' >corpus/config/split_priority
printf '\x02oversubscribe = true\n[memory]\nsplit = 4\n[gpu.0]\nsplit = ["1GiB", "rest"]\n' >corpus/config/split_toml
printf '\x052,GPU-5f1c0d10,1gpu, 0' >corpus/config/visible
printf '\x011;flag.0 limit 0 2GiB --limit;environment.1 headroom * 1MiB CUSLICE_HEADROOM' >corpus/config/handover
printf '\x02log = "info"\n[memory]\nfraction = 0.4\n[gpu.0]\nlimit = "4GiB"\n[ceiling]\nfraction = 0.5\n' >corpus/config/toml
printf '\x03CUSLICE_LIMIT=0=4GiB\0CUSLICE_WAIT=10m\0' >corpus/config/environment
printf '\x04CUDA_DEVICE_MEMORY_LIMIT=1g\0CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G\0' >corpus/config/others
# This machine's own cache, and a program of it.
{ printf '\x00' && cat /etc/ld.so.cache; } >corpus/elf/cache
{ printf '\x01' && cat /bin/true; } >corpus/elf/library

fuzz_one() {
    "tests/fuzz/fuzz_$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "corpus/$1" \
        >"$1.log" 2>&1 || { tail -40 "$1.log" >&2; echo "fuzz: $1 failed" >&2; return 1; }
    echo "fuzz: $1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$1.log") inputs in $2 s, none failed"
}
export -f fuzz_one
# Each has one thread.
printf '%s\0' config elf ledger allocator | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz_one "$1" "$0"' "$seconds" || exit 1
