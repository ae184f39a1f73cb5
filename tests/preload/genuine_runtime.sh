#!/usr/bin/env bash
# Brings NVIDIA's own runtimes, 12 and 13, into a folder, for the tests that look up every name they have. Needs no GPU.
#
#   tests/preload/genuine_runtime.sh FOLDER      → FOLDER/libcudart.so.12, FOLDER/libcudart.so.13
#
# They come from the Python packages nvidia-cuda-runtime-cu12 and nvidia-cuda-runtime, from wherever this machine takes
# its packages. Nothing is installed. Where they can't be had this says why and fails; the tests then skip themselves.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 64; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ ! -e "$folder/libcudart.so.12" ] || [ ! -e "$folder/libcudart.so.13" ] || exit 0

fail() { echo "genuine_runtime: $1" >&2; exit 1; }
python3 -m pip --version >/dev/null 2>&1 || fail "there is no pip here"

work=$folder/work
rm -rf "$work"
mkdir -p "$work"
python3 -m pip --quiet --disable-pip-version-check download --no-deps --dest "$work" --timeout 20 --retries 1 \
    nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-runtime==13.0.96 || fail "the packages can't be had"
for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/root"; done
for major in 12 13; do
    library=$(find "$work/root" -name "libcudart.so.$major" | head -1)
    [ -n "$library" ] || fail "there is no libcudart.so.$major in the packages"
    mv "$library" "$folder/libcudart.so.$major"
done
rm -rf "$work"
