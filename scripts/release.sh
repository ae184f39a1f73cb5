#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what is released, in dist/: for each processor a wheel, a tarball, a .deb and a bill of materials (SPDX); the
# source distribution, the Helm chart, and the archive of the GPU check (for this machine's processor); and the checksums
# of all of them. What is for one processor is from one build against the C library 2.17 (the preset release-old-glibc).
# All is looked over in the end: tests/checks/packages.py. The image is made afterwards: scripts/release/image.sh.
#
#   scripts/release.sh             for x86_64 and aarch64
#   scripts/release.sh aarch64     for one of them, alone in dist/
#
# Needs cmake, ninja, python3 of 3.9 or newer with venv, the headers that scripts/setup.sh installs, and the Python
# index, for zig, for CUDA's headers and for what makes wheels. The first run takes some minutes, as zig makes its C++
# library. The programs of the GPU check are from this machine's own compiler, and need its C library or a newer one.
#
# For the processor that this machine doesn't have it needs qemu-user and that processor's C library too: the launcher
# prints its own man pages, and scripts/release/try_emulated.sh tries the tarball.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Pinned, as they decide what is in the files.
zig=ziglang==0.17.1
packers=(scikit-build-core==1.1.2 hatch-fancy-pypi-readme==25.1.0 build==1.6.1)
tools=build/release-tools
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)

say() { echo "release: $*"; }
refuse() { echo "release: $2" >&2; exit "$1"; }

case ${1:-all} in
    all) machines=(x86_64 aarch64) ;;
    x86_64 | aarch64) machines=("$1") ;;
    *) refuse 64 "x86_64, aarch64 or all, not $1" ;;
esac

# The emulator of a processor's programs, as a list of CMake's; empty on a machine that has it.
emulator() {
    [ "$1" != "$(uname -m)" ] || return 0
    local qemu root=/usr/$1-linux-gnu
    qemu=$(command -v "qemu-$1-static" || command -v "qemu-$1") && [ -d "$root/lib" ] ||
        refuse 69 "running programs of $1 takes: apt-get install qemu-user-static libc6-${debian[$1]}-cross"
    echo "$qemu;-L;$root"
}
for machine in "${machines[@]}"; do emulator "$machine" >/dev/null; done

[ -x "$tools/bin/python3" ] || python3 -m venv "$tools"
"$tools/bin/python3" -m pip install --quiet --disable-pip-version-check "$zig" "${packers[@]}"
for tool in cmake ninja; do
    command -v "$tool" >/dev/null || "$tools/bin/python3" -m pip install --quiet --disable-pip-version-check "$tool"
done
PATH=$PATH:$PWD/$tools/bin
zig_program=$("$tools/bin/python3" -c 'import ziglang; print(ziglang.__path__[0] + "/zig")')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

# A processor's packages, into dist/.
release() {
    local machine=$1 build=build/release-old-glibc version stage bill kind runs
    [ "$machine" = x86_64 ] || build+=-$machine
    runs=$(emulator "$machine")
    say "building $build with $zig"
    cmake --preset release-old-glibc -B "$build" -DCUSLICE_RELEASE_FOR="$machine" -DCUSLICE_ZIG="$zig_program" \
        -DCMAKE_CROSSCOMPILING_EMULATOR="$runs" >/dev/null
    cmake --build "$build" --parallel "$(nproc)" </dev/null

    version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
    stage=$PWD/$build/stage
    bill=dist/cuslice-$version-linux-$machine.spdx.json
    rm -rf "$stage" "$build/THIRD-PARTY.txt"

    # The tree twice: what the files contain of others is found in it, and installed with it.
    install() { cmake --install "$build" --prefix "$stage" "$@" >/dev/null; }
    install
    find_parts() { python3 scripts/release/parts.py "$build" "$stage" "$bill" "$build/THIRD-PARTY.txt"; }
    find_parts | sed "s/^/release: $machine contains or uses /"
    install
    find_parts >/dev/null

    say "packing for $machine"
    for kind in TGZ DEB; do
        cpack -G "$kind" -B "$PWD/$build/packages" --config "$build/CPackConfig.cmake" >/dev/null
    done
    cp "$build/packages/cuslice-$version-linux-$machine.tar.gz" \
        "$build/packages/cuslice_${version}_${debian[$machine]}.deb" dist/
    # A wheel holds no links: libraries that lend the names take their places.
    find "$stage" -type l -delete
    install --component wheel
    # By the older name of the platform too, for a pip that knows no other.
    PYTHON=$PWD/$tools/bin/python3 scripts/packaging/wheel.sh "$stage" dist \
        "py3-none-manylinux_2_17_$machine" "py3-none-manylinux2014_$machine"
}

rm -rf dist
mkdir -p dist
for machine in "${machines[@]}"; do release "$machine"; done
say "packing the sources and the chart"
"$tools/bin/python3" -m build --sdist --no-isolation --outdir dist . >/dev/null
scripts/release/chart.py dist >/dev/null
if [[ " ${machines[*]} " == *" $(uname -m) "* ]]; then
    say "building the GPU check"
    scripts/build.sh dev product lab/hardware/all docs/samples/all >/dev/null
    scripts/pack_gpu_check.sh build/dev "dist/cuslice-gpu-check-$(python3 scripts/release/changelog.py version).tar.gz" >/dev/null
fi
(cd dist && sha256sum -- * >SHA256SUMS)

say "looking it over"
python3 tests/checks/packages.py . dist
for machine in "${machines[@]}"; do
    [ "$machine" = "$(uname -m)" ] || scripts/release/try_emulated.sh "$machine" dist || [ $? -eq 77 ]
done
ls -l dist | awk 'NR > 1 { printf "release: %9d bytes  dist/%s\n", $5, $9 }'
