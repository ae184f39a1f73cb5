# SPDX-License-Identifier: Apache-2.0
# Bare Debian roots to try something in; release_check.sh and system_check.sh source it.
#
#   check_in_roots [SUITE…]    calls the script's own function `check ROOT SUITE`, exported, for Debian 11, 12 and 13 or
#                              for these; in a mount namespace of its own, so that nothing stays mounted. Ends with 1 if
#                              one of them fails
#   ROOTS                      the folder where the roots are kept (build/roots); `roots` once this was sourced

refuse() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || refuse "debootstrap and chroot need root"
command -v debootstrap >/dev/null || refuse "debootstrap is missing: apt-get install debootstrap"
roots=${ROOTS:-build/roots}
mkdir -p "$roots"

check_in_roots() {
    local suite root failed=0
    [ $# -gt 0 ] || set -- bullseye bookworm trixie
    for suite in "$@"; do
        root=$roots/$suite
        if [ ! -e "$root/usr/bin/python3" ]; then
            debootstrap --variant=minbase --include=python3,python3-venv,python3-pip "$suite" "$root" >"$root.log" 2>&1 ||
                { tail -3 "$root.log"; failed=1; continue; }
        fi
        unshare --mount bash -c 'check "$@"' check "$(realpath "$root")" "$suite" ||
            { echo "$suite: FAILED"; failed=1; }
    done
    return "$failed"
}
