# SPDX-License-Identifier: Apache-2.0
# For scripts/bare_roots.sh and scripts/bare_pip.sh, which source it: roots with nothing but what debootstrap puts there.
# open_roots
# looks at what they need and makes their folder, $roots, which is $ROOTS. $clean are the words before a stranger's command.

refuse() { echo "$(basename "$0" .sh): $*" >&2; exit 64; }

open_roots() {
    [ "$(id -u)" -eq 0 ] || refuse "debootstrap and namespaces need root"
    command -v debootstrap >/dev/null || refuse "debootstrap is missing: apt-get install debootstrap"
    roots=$(realpath -m "${ROOTS:-build/roots}")
    mkdir -p "$roots"
}

bare_root() { # SUITE: debootstrap's smallest, once
    local base=$roots/bare-$1
    [ ! -e "$base/etc/debian_version" ] || return 0
    debootstrap --variant=minbase "$1" "$base.part" >"$base.log" 2>&1 || { tail -3 "$base.log" >&2; return 1; }
    mv "$base.part" "$base"
}

# How this machine reaches its package indexes: by these names, and by these certificates.
bring_network() { # ROOT
    install -m 644 /etc/resolv.conf "$1/etc"
    [ ! -e /etc/ssl/certs/ca-certificates.crt ] || install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/brought.crt"
}
clean="env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb PIP_CERT=/etc/ssl/brought.crt"
[ -e /etc/ssl/certs/ca-certificates.crt ] || clean=${clean% *}
