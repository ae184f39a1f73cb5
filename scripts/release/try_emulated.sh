#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries a release for a processor that this machine doesn't have, under qemu-user: unpacks its tarball and its wheel,
# and runs `cuslice demo` of each on a small fake GPU.
#
#   scripts/release/try_emulated.sh aarch64 dist
#
# That shows that the files start, find each other, and refuse a program past its limit. It can't show what a machine
# with that processor would: its order of memory accesses, its pages of 64 KiB, its speed, its GPU.
#
# The launcher starts a program, so the kernel has to run that processor's programs by itself. qemu is made known to it
# in a namespace of users, which changes nothing of the machine and takes Linux 6.7 or newer. Where that can't be done,
# nothing is tried, one line says so, and the exit code is 77.
set -euo pipefail

refuse() { echo "try_emulated: $2" >&2; exit "$1"; }
[ $# -eq 2 ] || refuse 64 "two words are needed: a processor, and the folder of its packages"
machine=$1
dist=$(realpath "$2")
scripts=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# How systemd would make qemu known for all users.
known=/usr/lib/binfmt.d/qemu-$machine.conf
export QEMU_LD_PREFIX=/usr/$machine-linux-gnu
for needed in "$known" "$QEMU_LD_PREFIX/lib"; do
    [ -e "$needed" ] || refuse 69 "$needed is missing: apt-get install qemu-user-static and $machine's libc6-…-cross"
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tarball" "$folder/ledger" "$folder/books"
tar xf "$dist"/cuslice-*-linux-"$machine".tar.gz -C "$folder/tarball" --strip-components=1
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$scripts/../../tests/checks python3 -c '
import pathlib, sys, packages
packages.unpacked_wheel(*map(pathlib.Path, sys.argv[1:]))
sys.exit("\n".join(packages.wrong) or 0)' "$dist"/cuslice-*_"$machine".whl "$folder/wheel"

inside() {
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc 2>/dev/null &&
        cat "$known" >/proc/sys/fs/binfmt_misc/register 2>/dev/null || return 77
    export CUSLICE_DIR=$folder/ledger CUSLICE_FAKE_DIR=$folder/books
    for kind in tarball wheel; do
        echo "$machine: $kind: $("$folder/$kind/bin/cuslice" --version), under qemu-user"
        "$folder/$kind/bin/cuslice" demo --fake laptop-2g --limit 512MiB >"$folder/said" 2>&1 ||
            { cat "$folder/said"; return 1; }
        grep -q 'the next one: CUDA_ERROR_OUT_OF_MEMORY' "$folder/said" || { cat "$folder/said"; return 1; }
        sed -n "s/^ *\([0-9]* blocks\)/$machine: $kind: \1/p" "$folder/said"
    done
}
export -f inside
export machine folder known
namespace=(unshare --user --map-root-user --mount)
status=77
! "${namespace[@]}" true 2>/dev/null || { status=0; "${namespace[@]}" bash -euc inside || status=$?; }
[ "$status" -ne 77 ] || echo "try_emulated: NOT TRIED: qemu can't be made known to the kernel in a namespace" >&2
exit "$status"
