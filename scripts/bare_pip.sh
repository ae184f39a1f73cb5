#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs cuslice by pip in bare Debian roots, as a stranger does, up to the first picture: `pip install .` where there is a
# compiler, a release's wheel where there is none. Prints a table in Markdown, with the seconds from pip's start to the end of
# `cuslice demo`; the packages that come before are not in them. Needs root, and takes minutes: no part of .ci/run.
#
#   scripts/bare_pip.sh                     from this clone's last commit, on Debian 12 and 13
#   scripts/bare_pip.sh dist/cuslice-….whl  a wheel, on both
#
#   ROOTS=FOLDER                       where the roots are kept (build/roots)
#   TIMES=3                            how often, each time in a new root
#
# Output stays in build/roots/pip-SUITE-N.log or wheel-SUITE-N.log. Ends with 1 if a picture didn't come.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/bare_root.sh

[ $# -le 1 ] || refuse "one wheel, or nothing"
wheel=${1:-}
[ -z "$wheel" ] || [ -f "$wheel" ] || refuse "there is no $wheel"
open_roots
if [ -n "$wheel" ]; then
    kind=wheel said="the wheel" what=./$(basename "$wheel") packages=
else
    kind=pip said='`pip install .`' what=. packages="git g++"
fi

# For a root's own shell: the tenths of a second, in a line that begins with RESULT.
cat >"$roots/install" <<'END'
set -e
export HOME=/root
python3 -m venv /root/venv
cd /root/cuslice
begun=$(date +%s%N)
/root/venv/bin/pip install "$WHAT"
/root/venv/bin/cuslice demo
echo "RESULT $((($(date +%s%N) - begun) / 100000000))"
END

try() { # SUITE N: prints tenths of a second, or nothing
    local suite=$1 root=$roots/$kind-$1-$2
    rm -rf --one-file-system "$root"
    cp -a "$roots/bare-$suite" "$root"
    bring_network "$root"
    cp "$roots/install" "$root/install"
    if [ -n "$wheel" ]; then
        install -D "$wheel" "$root/root/cuslice/$what"
    else
        git clone --quiet --no-hardlinks . "$root/root/cuslice"
    fi
    unshare --mount --pid --fork --kill-child bash -ec "
        mount --make-rprivate /
        mount -t proc proc '$root/proc'
        mount --rbind /dev '$root/dev'
        chroot '$root' $clean sh -c 'apt-get update && apt-get install -y --no-install-recommends python3-venv $packages'
        chroot '$root' $clean WHAT='$what' bash /install" </dev/null >"$root.log" 2>&1 || true
    sed -n 's/^RESULT //p' "$root.log"
    rm -rf --one-file-system "$root"
}

bad=0
echo "| | system | seconds to the first picture, each time |"
echo "|---|---|---|"
for suite in bookworm trixie; do
    bare_root "$suite"
    row=
    for time in $(seq "${TIMES:-3}"); do
        tenths=$(try "$suite" "$time")
        [ -n "$tenths" ] || bad=1
        row+=${row:+, }${tenths:+$((tenths / 10)).$((tenths % 10))}
        [ -n "$tenths" ] || row+=none
    done
    echo "| $said | Debian $(cat "$roots/bare-$suite/etc/debian_version") | $row |"
done
exit "$bad"
