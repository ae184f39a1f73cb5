#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what scripts/gpu_check.sh needs on a machine with a GPU into one archive, stripped of debugging information. Unpacked
# there, it needs neither a compiler nor a network nor this repository:
#
#   scripts/pack_gpu_check.sh [BUILD [ARCHIVE]]      build/dev, ./cuslice-gpu-check.tar.gz
#   tar xf cuslice-gpu-check.tar.gz && cuslice-gpu-check/gpu_check.sh
#
# Exit status: 0, 64 for a build that lacks something, 1 if the archive is larger than 25 MB.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:-$root/build/dev} archive=${2:-cuslice-gpu-check.tar.gz}
most=$((25 * 1000 * 1000))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/cuslice-gpu-check
mkdir -p "$top/lab"

missing=
for file in bin/cuslice lib/cuslice/libcuslice.so lib/cuslice/fake/libcuda.so.1 lab/hardware/guard lab/hardware/plan.sh \
    lib/cuslice/samples/towers_driver lib/cuslice/samples/towers_runtime12 lib/cuslice/samples/towers_runtime13; do
    [ -e "$build/$file" ] || missing="$missing $file"
done
[ -z "$missing" ] || { echo "pack_gpu_check.sh: $build lacks$missing: build everything first (scripts/build.sh dev)" >&2; exit 64; }

cp -r "$build/bin" "$build/lib" "$top"
mkdir "$top/lab/hardware"
for file in "$build"/lab/hardware/*; do
    case $file in
    */CMakeFiles | */gpu_check.sh | */test | *.cmake | *.cubin) ;;
    */*_nvcc_static) ;;  # has NVIDIA's runtime inside, which is not ours to hand on
    *) cp -r "$file" "$top/lab/hardware" ;;
    esac
done
# From these the same programs are built over there, where nvcc is.
cp "$root"/lab/hardware/{limit_runtime.cpp,parts_runtime.cpp,management.h,report.h} "$top/lab/hardware"
cp "$root/scripts/gpu_check.sh" "$root/LICENSE" "$top"
cp "$root/docs/gpu-check.md" "$top/README.md"
git -C "$root" describe --always --dirty --abbrev=12 >"$top/commit" 2>/dev/null || rm "$top/commit"
# Names stay, so that the stack of a program that hangs can be read.
find "$top" -type f -exec sh -c 'for f; do head -c 4 "$f" | grep -qE "ELF|!<ar" && strip --strip-debug "$f"; done; true' sh {} +

tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$archive" cuslice-gpu-check
bytes=$(stat -c %s "$archive")
echo "$archive: $((bytes / 1000)) kB, $(du -sk "$top" | cut -f 1) KiB unpacked"
if [ "$bytes" -gt $most ]; then
    echo "pack_gpu_check.sh: more than $((most / 1000000)) MB" >&2
    exit 1
fi
