#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The core of the plan on the fake driver with NVIDIA's own libnvidia-ml in place of the fake's: without a GPU it answers
# nvmlInit with an error, natively and under cuslice the same one, and nothing hangs.
#   gpu_check_nvml_test.sh SOURCES BUILD
# Exit status 77, skipped, where lab/genuine/fetch.py has not put NVIDIA's library.
set -u
build=$2 genuine=${CUSLICE_GENUINE_CACHE:-$1/build/genuine}/driver-535/libnvidia-ml.so.1 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/expect.sh"
if [ ! -e "$genuine" ]; then
    echo "SKIPPED: no $genuine (lab/genuine/fetch.py brings it)"
    exit 77
fi
"$1/scripts/pack_gpu_check.sh" "$build" "$work/check.tar.gz" >/dev/null || exit 1
tar -C "$work" -xf "$work/check.tar.gz" || exit 1
unpacked=$work/cuslice-gpu-check
rm "$unpacked/lib/cuslice/fake/libnvidia-ml.so.1"
cp "$(readlink -f "$genuine")" "$unpacked/lib/cuslice/fake/libnvidia-ml.so.1"

"$unpacked/gpu_check.sh" --fake --only smoke,limit,modes,split,context_cost >"$work/out" 2>"$work/err"
status=$?
if [ $status != 0 ]; then
    cat "$work/out" "$work/err" >&2
    echo "the plan with NVIDIA's NVML ended with $status" >&2
    failed=1
fi
expect "NVIDIA's answer, not the fake's, in each of the three looks" test "$(grep -cE 'nvmlInit: [1-9]' "$work/out")" = 3
expect "programs in a slice were refused, and nobody saw from outside what they held" \
    has 'limit_driver, 1 GiB \| 1024.00 MiB .*CUDA_ERROR_OUT_OF_MEMORY.* not seen \| right' "$work/out"
exit $failed
