#!/usr/bin/env bash
# Brings NVIDIA's own driver library into a folder, for the tests that hold cuslice against it. It needs no GPU.
#
#   tests/preload/genuine_driver.sh FOLDER      → FOLDER/lib/libcuda.so.1, FOLDER/lib/libnvidia-ml.so.1
#
# They come from the packages libcuda1 and libnvidia-ml1 of Debian's component non-free, from wherever this machine takes
# its packages. Nothing is installed, and nothing outside the folder changes: apt works with lists and a cache in it. Where
# the packages can't be had this says why and fails; the tests then skip themselves.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 64; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ ! -e "$folder/lib/libcuda.so.1" ] || exit 0

fail() { echo "genuine_driver: $1" >&2; exit 1; }
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "there is no apt-get here"
# shellcheck disable=SC1091
. /etc/os-release
[ "${ID:-}" = debian ] || fail "this is not Debian, whose packages these are"

work=$folder/apt
rm -rf "$work"
mkdir -p "$work"/{lists/partial,cache/archives/partial,parts}

# This machine's own sources of this release, with the component non-free in place of theirs.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    sed -nE "s/^(deb([[:space:]]+\[[^]]*\])?[[:space:]]+[^[:space:]]+[[:space:]]+${VERSION_CODENAME}([-/][a-z/]+)?)[[:space:]]+main.*$/\1 non-free/p" \
        "$file"
done >"$work/parts/lines.list"
for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v release="$VERSION_CODENAME" 'BEGIN { RS = ""; ORS = "\n\n" }
        $0 ~ "(^|\n)Suites:[^\n]*[ \t]" release && /(^|\n)Components:[^\n]*main/ {
            gsub(/Components:[^\n]*/, "Components: non-free"); print }' "$file"
done >"$work/parts/stanzas.sources"
[ -s "$work/parts/lines.list" ] || [ -s "$work/parts/stanzas.sources" ] ||
    fail "no source of $VERSION_CODENAME with the component main is set up here"

options=(-qq
    -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts"
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
    -o "APT::Sandbox::User=$(id -un)" -o Debug::NoLocking=true
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
apt-get "${options[@]}" update || fail "the lists of the component non-free can't be had"
(cd "$work" && apt-get "${options[@]}" download libcuda1 libnvidia-ml1) || fail "the packages can't be had"

for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
mkdir -p "$work/lib"
find "$work/root/usr/lib" -path '*/nvidia/current/*' \( -name 'libcuda.so.*' -o -name 'libnvidia-ml.so.*' \) \
    -exec cp -P {} "$work/lib/" \;
[ -e "$work/lib/libcuda.so.1" ] || fail "the package libcuda1 has no libcuda.so.1"
mv "$work/lib" "$folder/lib" # only now, so that a run that broke off is not taken for a finished one
rm -rf "$work"
