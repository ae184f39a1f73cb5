#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries what scripts/release.sh made as users of other distributions would: in bare Debian roots, without a compiler
# and without the network. Takes minutes, and root for debootstrap and chroot; no part of continuous integration.
#
#   scripts/release_check.sh                     Debian 11, 12 and 13
#   scripts/release_check.sh bookworm            one of them
#   ROOTS=/tmp/roots scripts/release_check.sh    where the roots are kept (build/roots)
#
# In each root, as a user who is not root: three times a fresh virtual environment, the wheel from dist/ without an
# index, and a program that takes memory until it is refused, with the time from the start of pip to the refusal; then
# the tarball. As root: the .deb installed, used by that user, removed, and the root compared with what it was before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/debian_roots.sh
machine=$(uname -m)
architecture=$(dpkg --print-architecture)
ls dist/*_"$machine".whl dist/*_"$architecture".deb dist/*-"$machine".tar.gz >/dev/null ||
    refuse "dist/ has not all packages for $machine: scripts/release.sh makes them"

check() {
    set -euo pipefail
    local root=$1 suite=$2
    for name in proc dev; do mount --rbind "/$name" "$root/$name"; done
    rm -rf "$root/dist" "$root/home/user"
    mkdir -p "$root/dist" "$root/home/user"
    cp dist/* lab/release/first_refusal.py "$root/dist"
    chown 1000:1000 "$root/home/user"
    user() { chroot --userspec=1000:1000 "$root" env -i PATH=/usr/bin:/bin HOME=/home/user sh -euc "$1"; }

    ! user 'command -v cc || command -v gcc || command -v clang' || { echo "$suite: there is a compiler"; return 1; }
    echo "$suite: $(user 'python3 --version; ldd --version | head -1' | tr '\n' ' ')"
    local refusal='--fake 1xt4 --limit 1GiB -- python3 /dist/first_refusal.py 1024'
    for try in 1 2 3; do
        user 'rm -rf ~/venv ~/.cache; python3 -m venv ~/venv'
        local before=$EPOCHREALTIME
        user '~/venv/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-index --find-links /dist \
            cuslice'
        local installed=$EPOCHREALTIME
        user "~/venv/bin/cuslice run $refusal" >"$roots/said" 2>&1 || { cat "$roots/said"; return 1; }
        awk -v a="$before" -v b="$installed" -v c="$EPOCHREALTIME" -v s="$suite: wheel $try" \
            'BEGIN { printf "%s: pip %.2f s, with the first refusal %.2f s", s, b - a, c - a }'
        echo " ($(tail -1 "$roots/said"))"
    done
    user '~/venv/bin/python -m cuslice --version; ~/venv/bin/python -c "import cuslice; print(cuslice.__version__)"' \
        >"$roots/said"
    echo "$suite: python -m cuslice: $(tr '\n' ' ' <"$roots/said")"
    user '~/venv/bin/pip uninstall --quiet --yes cuslice; find ~/venv | grep cuslice' &&
        { echo "$suite: pip left files behind"; return 1; }

    local before=$EPOCHREALTIME
    user "cd; rm -rf cuslice-*; tar xf /dist/cuslice-*-$machine.tar.gz; ~/cuslice-*/bin/cuslice run $refusal" \
        >"$roots/said" 2>&1 || { cat "$roots/said"; return 1; }
    awk -v a="$before" -v c="$EPOCHREALTIME" -v s="$suite: tarball" \
        'BEGIN { printf "%s: unpacked and refused in %.2f s\n", s, c - a }'

    everything() { (cd "$root" && find . -xdev -path ./proc -prune -o -path ./dev -prune -o -print | LC_ALL=C sort); }
    everything >"$roots/before"
    local dpkg=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    local deb
    deb=$(basename dist/*_"$architecture".deb)
    "${dpkg[@]}" dpkg -i "/dist/$deb" >"$roots/said" 2>&1 || { cat "$roots/said"; return 1; }
    ! "${dpkg[@]}" ldconfig -p | grep -E 'libcuda|libcudart|libnvidia-ml|cuslice' ||
        { echo "$suite: ldconfig sees it"; return 1; }
    user "cuslice run $refusal" >"$roots/said" 2>&1 || { cat "$roots/said"; return 1; }
    "${dpkg[@]}" dpkg -r cuslice >/dev/null 2>&1
    everything >"$roots/after"
    local records='^./var/(lib/dpkg|log|cache)'
    diff <(grep -vE "$records" "$roots/before") <(grep -vE "$records" "$roots/after") ||
        { echo "$suite: the .deb left traces"; return 1; }
    ! "${dpkg[@]}" dpkg -s cuslice >/dev/null 2>&1 || { echo "$suite: dpkg still knows it"; return 1; }
    echo "$suite: .deb: installed, used, removed without a trace"
}
export -f check
export roots machine architecture

check_in_roots "$@"
