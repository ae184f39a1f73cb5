#!/usr/bin/env bash
# Makes what is released, in dist/: a wheel, a tarball, a .deb, their checksums and a bill of materials (SPDX). All of
# it is from one build against the C library 2.17 (the preset release-old-glibc), and is looked over in the end:
# tests/checks/packages.py.
#
#   scripts/release.sh
#
# Needs cmake, ninja, python3 with venv, the headers that scripts/setup.sh installs, and the Python index, for zig and
# for CUDA's headers. The first run takes some minutes, as zig makes its C++ library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The compiler is pinned, as it decides what is in the files.
zig=ziglang==0.17.1
build=build/release-old-glibc
tools=build/release-tools

say() { echo "release: $*"; }

[ -x "$tools/bin/python3" ] || python3 -m venv "$tools"
"$tools/bin/python3" -m pip install --quiet --disable-pip-version-check "$zig"
for tool in cmake ninja; do
    command -v "$tool" >/dev/null || "$tools/bin/python3" -m pip install --quiet --disable-pip-version-check "$tool"
done
PATH=$PATH:$PWD/$tools/bin
zig_program=$("$tools/bin/python3" -c 'import ziglang; print(ziglang.__path__[0] + "/zig")')

say "building $build with $zig"
cmake --preset release-old-glibc -DCUSLICE_ZIG="$zig_program" >/dev/null
cmake --build "$build" --parallel "$(nproc)" </dev/null

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
stage=$PWD/$build/stage
rm -rf dist "$stage" "$build/THIRD-PARTY.txt"
mkdir -p dist

# The tree twice: what the files contain of others is found in it, and installed with it.
install() { cmake --install "$build" --prefix "$stage" "$@" >/dev/null; }
install
bill=dist/cuslice-$version.spdx.json
find_parts() { python3 scripts/release/parts.py "$build" "$stage" "$bill" "$build/THIRD-PARTY.txt"; }
find_parts | sed 's/^/release: contains or uses /'
install
find_parts >/dev/null

say "packing"
for kind in TGZ DEB; do
    cpack -G "$kind" -B "$PWD/$build/packages" --config "$build/CPackConfig.cmake" >/dev/null
done
cp "$build/packages/cuslice-$version-linux-x86_64.tar.gz" "$build/packages/cuslice_${version}_amd64.deb" dist/
# A wheel holds no links: libraries that lend the names take their places.
find "$stage" -type l -delete
install --component wheel
python3 scripts/release/wheel.py "$stage" python "$version" dist >/dev/null
(cd dist && sha256sum -- * >SHA256SUMS)

say "looking it over"
python3 tests/checks/packages.py . dist
ls -l dist | awk 'NR > 1 { printf "release: %9d bytes  dist/%s\n", $5, $9 }'
