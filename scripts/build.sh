#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up (scripts/setup.sh) and builds one preset into build/<preset>. What run.sh, test.sh, bench.sh and compat.sh begin with.
#
#   scripts/build.sh dev                            everything
#   scripts/build.sh release product cuslice_bench  only what is named; `product` is what an installation has
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:?a preset is needed: release, dev, asan, tsan or aarch64}
shift

targets=()
for target in "$@"; do
    case $target in
        product) targets+=(cuslice cuslice_preload cuslice_nvml_facade cuslice_driver_facade cuslice_launch cuslice_demo cuslice_toml_module
                           cuslice_redirect cuslice_audit cuslice_runtime cuslice_runtime_facade11 cuslice_runtime_facade12
                           cuslice_runtime_facade13 fake_driver fake_nvml fake_cudart11 fake_cudart12 fake_cudart13 fake_watch fake_timekeeper fake_smi
                           fake_cublas11 fake_cublas12 fake_cublas13 fake_cublaslt11 fake_cublaslt12 fake_cublaslt13 fake_cudnn
                           towers_driver towers_runtime12 towers_runtime13) ;;
        *) targets+=("$target") ;;
    esac
done
[ ${#targets[@]} -eq 0 ] || targets=(--target "${targets[@]}")

scripts/setup.sh
# Taken from the Python index by setup.sh where it may not install anything.
PATH=$PATH:$PWD/build/tools/bin
options=()
zig=$(ls build/tools/lib/python3*/site-packages/ziglang/zig 2>/dev/null || true)
command -v g++ >/dev/null || [ -z "$zig" ] ||
    options+=(-DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/cmake/zig.cmake" -DCUSLICE_ZIG="$PWD/$zig")
headers=$(ls -d build/tools/lib/python3*/site-packages/nlohmann_json/include 2>/dev/null || true)
for folder in $headers build/tools/root/usr/include; do
    [ ! -d "$folder" ] || export CMAKE_INCLUDE_PATH=${CMAKE_INCLUDE_PATH:+$CMAKE_INCLUDE_PATH:}$PWD/$folder
done
# Configuring again takes a second that a second run need not spend: ninja does it by itself when a CMakeLists.txt changed.
if [ ! -f "build/$preset/build.ninja" ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    [ ${#options[@]} -eq 0 ] || echo "build: configuring build/$preset; the first time, zig makes its C++ library, which takes minutes"
    if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
fi
cmake --build --preset "$preset" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" "${targets[@]}" </dev/null
