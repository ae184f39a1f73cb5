#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes what reads bytes that anybody may have written, and the caching allocator, with libFuzzer, under asan and ubsan.
# Needs clang.
#
#   scripts/fuzz.sh [SECONDS] [TARGET…]   so long for each (60; 0: the inputs that are there, once); all of them, or those of
#                                         tests/fuzz/TARGET_fuzz.cpp
#   scripts/fuzz.sh --keep                puts what has been learnt since into tests/fuzz/corpus, the fewest inputs that
#                                         reach as much
#   scripts/fuzz.sh --coverage            lines of the sources that each reads with, and how many of them its inputs reach
#
# An input that fails is kept as build/fuzz/crash-*, and what has been learnt in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD kept=$PWD/tests/fuzz/corpus

# The sources that each target is there for.
declare -A reads=(
    [allocator]='policy/allocator'
    [config]='config'
    [elf]='elf/(file|loader_cache|window)'
    [holders]='cli/ledger/(cells|holder|holders|ledger_files|prometheus)'
    [images]='fake/driver/(cubin|image|ptx)|virtual_gpu/gpu/(image|ptx)_size'
    [ledger]='policy/ledger'
    [redirect]='shim/redirect/(object_symbols|plan|runtime_file)'
    [rules]='config/rules'
    [stats]='cli/ledger/read_stats'
)
targets=()
for source in tests/fuzz/*_fuzz.cpp; do
    target=$(basename "$source" _fuzz.cpp)
    targets+=("$target")
    [ -n "${reads[$target]:-}" ] || { echo "fuzz: $source: what does it read? Add it to scripts/fuzz.sh" >&2; exit 1; }
done

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 64
}

build() { # folder, sanitizers, more flags
    scripts/setup.sh
    cmake -S . -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DCMAKE_C_FLAGS="$3" -DCMAKE_CXX_FLAGS="$3" -DCUSLICE_SANITIZE="$2" \
        -DCUSLICE_FUZZ=ON >/dev/null
    local log=$1/build.log
    cmake --build "$1" --target "${targets[@]/#/fuzz_}" --parallel "$(nproc)" >"$log" || { cat "$log" >&2; exit 1; }
}

unpack() { # folder: the kept inputs, beside those that a fuzzer has found since
    mkdir -p "$1/corpus"
    scripts/fuzz_corpus.py unpack "$kept" "$1/corpus"
    for target in "${targets[@]}"; do mkdir -p "$1/corpus/$target"; done
}

fuzz_one() { # seconds, target
    local how=(-max_total_time="$1") words=$root/tests/fuzz/$2.dict
    [ "$1" -ne 0 ] || how=(-runs=0)
    [ ! -e "$words" ] || how+=(-dict="$words")
    # At some 50 a second, inputs would stay at a dozen bytes for minutes.
    case $2 in holders | ledger) how+=(-len_control=0) ;; esac
    "tests/fuzz/fuzz_$2" "${how[@]}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "corpus/$2" \
        >"$2.log" 2>&1 || { tail -40 "$2.log" >&2; echo "fuzz: $2 failed" >&2; return 1; }
    echo "fuzz: $2: $(sed -n 's/^stat::number_of_executed_units: *//p' "$2.log") inputs in $1 s, none failed"
}
export -f fuzz_one
export root

keep() {
    local fewest=$PWD/fewest
    rm -rf "$fewest"
    for target in "${targets[@]}"; do
        mkdir -p "$fewest/$target"
        "tests/fuzz/fuzz_$target" -set_cover_merge=1 "$fewest/$target" "corpus/$target" 2>/dev/null
    done
    "$root/scripts/fuzz_corpus.py" pack "$fewest" "$kept"
}

coverage() {
    local share
    for target in "${targets[@]}"; do
        LLVM_PROFILE_FILE=$target.raw "tests/fuzz/fuzz_$target" -runs=0 "corpus/$target" 2>/dev/null
        llvm-profdata merge "$target.raw" -o "$target.profile"
        share=$(llvm-cov report "tests/fuzz/fuzz_$target" -instr-profile="$target.profile" |
            awk -v root="$root/" -v sources="^(${reads[$target]})" '
                { sub(root, "", $1) } $1 ~ sources { lines += $8; missed += $9 }
                END { printf "%d of %d lines, %.0f %%", lines - missed, lines, 100 * (lines - missed) / lines }')
        echo "fuzz: $target: ${reads[$target]}: $share"
    done
}

command -v clang++ >/dev/null || { echo "fuzz: clang++ is needed, for libFuzzer" >&2; exit 69; }
case ${1:-60} in
--keep)
    build build/fuzz address,undefined,fuzzer-no-link ""
    unpack build/fuzz
    cd build/fuzz && keep
    ;;
--coverage)
    unpack build/fuzz-coverage
    build build/fuzz-coverage fuzzer-no-link "-fprofile-instr-generate -fcoverage-mapping"
    cd build/fuzz-coverage && coverage
    ;;
*[!0-9]*) usage ;;
*)
    seconds=${1:-60}
    [ $# -lt 2 ] || targets=("${@:2}")
    for target in "${targets[@]}"; do [ -n "${reads[$target]:-}" ] || usage; done
    build build/fuzz address,undefined,fuzzer-no-link ""
    unpack build/fuzz
    # Each has one thread.
    cd build/fuzz
    printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz_one "$0" "$1"' "$seconds" || exit 1
    ;;
esac
