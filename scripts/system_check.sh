#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the stub of /etc/ld.so.preload and a rule of /etc/cuslice/rules.d together in bare Debian roots, on a fake GPU:
# with the C library and the Python of Debian 11, 12 and 13. Takes minutes, and root for debootstrap and chroot; no part
# of continuous integration.
#
#   scripts/system_check.sh TREE                Debian 11, 12 and 13
#   scripts/system_check.sh TREE trixie         one of them
#   ROOTS=/tmp/roots scripts/system_check.sh …  where the roots are kept (build/roots, as for release_check.sh)
#
# TREE is an installation, such as an unpacked tarball of scripts/release.sh, or a build folder. Built against a C
# library that is newer than a root's, it doesn't start there, and that root is skipped. Libraries that need the driver
# (build/dev/tests/stub/modules) are tried where they have been built.
#
# In each root: `cuslice install --system`; then, with an empty environment but for the fake GPU, `cuslice demo`'s
# program, Python's ctypes by the driver's name and by a library that needs it, each in the slice of the rule, and a
# program without CUDA as ever; a rule for another executable, which doesn't hold; without the library, a refusal; and
# `cuslice uninstall --system`, after which every file is as it was.
set -euo pipefail

tree=$(realpath "${1:-/nowhere}")
shift || true
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/debian_roots.sh
[ -x "$tree/bin/cuslice" ] || refuse "TREE is needed, a folder with bin/cuslice in it"

check() {
    set -euo pipefail
    local root=$1 suite=$2
    for name in proc dev; do mount --rbind "/$name" "$root/$name"; done
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    rm -rf "$root/opt/cuslice" "$root/opt/modules" "$root/etc/cuslice" "$root/etc/ld.so.preload" \
        "$root/usr/lib/cuslice-system" "$root/opt/books"
    mkdir -p "$root/opt/cuslice/bin" "$root/opt/cuslice/lib"
    cp "$tree/bin/cuslice" "$root/opt/cuslice/bin"
    cp -r "$tree/lib/cuslice" "$root/opt/cuslice/lib"
    [ ! -d build/dev/tests/stub/modules ] || cp -r build/dev/tests/stub/modules "$root/opt/modules"
    cp lab/release/first_refusal.py "$root/opt"
    mkdir -p "$root/etc/cuslice/rules.d" "$root/opt/books"

    say() { echo "$suite: $*"; }
    fail() { say "$*"; return 1; }
    # With nothing in the environment but the fake GPU, where real programs have a real one.
    inside() {
        chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=/opt/cuslice/lib/cuslice/fake \
            CUSLICE_FAKE=1xlaptop-2g CUSLICE_FAKE_DIR=/opt/books "$@" 2>&1
    }
    expect() {
        local wanted=$1 said
        shift
        said=$(inside "$@") || true
        [[ $said == *"$wanted"* ]] || fail "\"$wanted\" is not what \"$*\" said: $said"
    }
    everything() {
        (cd "$root" && find . -xdev \( -path ./opt -o -path ./tmp \) -prune -o -printf '%p %m %l\n' | LC_ALL=C sort
         find etc usr/lib -xdev -type f -exec sha256sum {} + | LC_ALL=C sort)
    }
    cuslice() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin /opt/cuslice/bin/cuslice "$@"; }
    rule() { printf '[[rule]]\nname = "check"\nexecutable = "%s"\nlimit = "640MiB"\n' "$1"; }

    if ! cuslice --version >"$roots/said" 2>&1; then
        say "SKIPPED, as $(tail -1 "$roots/said")"
        return 0
    fi
    local total='import ctypes; cuda = ctypes.CDLL("libcuda.so.1"); n = ctypes.c_size_t(); cuda.cuInit(0)
cuda.cuDeviceTotalMem_v2(ctypes.byref(n), 0); print(n.value >> 20, "MiB")'
    rule '/**' >"$root/etc/cuslice/rules.d/10-check.toml"
    expect '2002 MiB' python3 -c "$total"

    everything >"$roots/before"
    cuslice install --system >"$roots/said" 2>&1 || fail "not installed: $(cat "$roots/said")"
    expect '640 MiB' python3 -c "$total"
    expect 'MiB, then 2' python3 /opt/first_refusal.py 640
    expect '"total": 671088640' /opt/cuslice/lib/cuslice/cuslice-demo --json
    if [ -d "$root/opt/modules" ]; then
        for module in direct runpath rpath; do
            expect '640 MiB' python3 -c "import ctypes
print(ctypes.CDLL('/opt/modules/libstub_module_$module.so').stub_module_total(), 'MiB')"
        done
    fi
    expect 'plain' sh -c '/bin/true && grep -c libcuslice.so /proc/self/maps || echo plain'
    rule '/opt/**' >"$root/etc/cuslice/rules.d/10-check.toml"
    expect '2002 MiB' python3 -c "$total"
    rule '/**' >"$root/etc/cuslice/rules.d/10-check.toml"
    mv "$root/opt/cuslice/lib/cuslice/libcuslice.so" "$root/opt/cuslice/lib/cuslice/away.so"
    expect 'cuslice refuses CUDA' python3 -c "$total"
    mv "$root/opt/cuslice/lib/cuslice/away.so" "$root/opt/cuslice/lib/cuslice/libcuslice.so"
    cuslice uninstall --system >"$roots/said" 2>&1 || fail "not taken out: $(cat "$roots/said")"
    everything >"$roots/after"
    diff "$roots/before" "$roots/after" || fail "the root is not as it was"
    expect '2002 MiB' python3 -c "$total"
    say "$(inside python3 --version), $(inside ldd --version | head -1): the rule and the stub hold, and are gone"
}
export -f check
export roots tree

check_in_roots "$@"
