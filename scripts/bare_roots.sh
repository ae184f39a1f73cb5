#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Types the README's two commands, scripts/run.sh and scripts/test.sh, where strangers do: in bare Debian roots, with the tree
# where they keep it and with the rights that they have. Needs root, for debootstrap and namespaces, and podman for the container.
# A place takes 15 minutes or more: no part of .ci/run.
#
#   scripts/bare_roots.sh              every place
#   scripts/bare_roots.sh PLACE…       these
#   scripts/bare_roots.sh --tonight    one, a different one each night
#   scripts/bare_roots.sh --which      the name of that one
#   scripts/bare_roots.sh --list       the places: name, suite, folder of the tree, way in
#
#   ROOTS=FOLDER                       where the roots are kept (build/roots)
#   CCACHE_DIR=FOLDER                  a compiler's cache for all of them, which strangers don't have: takes less time
#   WORDS='-R cli'                     more words for scripts/test.sh, after the preset
#   CUSLICE_NIGHT=NUMBER               the night, in place of today's: days since 1970
#   KEEP=1                             leaves the roots where they are
#
# The tree is a clone of HEAD. What a place prints stays in build/roots/PLACE.log, and the row of the table in PLACE.row; its
# root goes. The table is Markdown. Ends with 1 if a command failed in one of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/bare_root.sh

# Name, Debian's suite, the tree's folder, and the way in:
#   root       as root, in namespaces of its own, where more can be made
#   user       as an ordinary user, whose packages root has installed
#   chroot     as root, where user namespaces can't be made
#   container  as root in a container, with the capabilities and the filter of system calls that engines give by default
ninety=/srv/$(printf 'a-folder-of-somebody-who-likes-long-names/%.0s' 1 2 3 | cut -c1-77)/cuslice
places="root-12       bookworm  /root/cuslice           root
root-13       trixie    /root/cuslice           root
opt-13        trixie    /opt/cuslice            root
short-12      bookworm  /c/us                   root
long-13       trixie    $ninety                 root
user-12       bookworm  /home/stranger/cuslice  user
user-13       trixie    /home/stranger/cuslice  user
chroot-12     bookworm  /root/cuslice           chroot
chroot-13     trixie    /opt/cuslice            chroot
container-12  bookworm  /opt/cuslice            container
container-13  trixie    /root/cuslice           container"

names=$(awk '{ print $1 }' <<<"$places")
night=${CUSLICE_NIGHT:-$(($(date +%s) / 86400))}
tonight=$(sed -n "$((night % $(wc -l <<<"$names") + 1))p" <<<"$names")
case ${1:-} in
    --list) echo "$places"; exit ;;
    --which) echo "$tonight"; exit ;;
    --tonight) set -- "$tonight" ;;
    "") mapfile -t all <<<"$names"; set -- "${all[@]}" ;;
esac
for name in "$@"; do grep -qx -- "$name" <<<"$names" || refuse "there is no place $name; --list names them"; done
open_roots

# Both commands, as a script for a root's own shell: their output, and a line of results that begins with RESULT.
cat >"$roots/type" <<'END'
cd "$TREE" || exit
export HOME=$(getent passwd "$(id -u)" | cut -d: -f6) PYTHONDONTWRITEBYTECODE=1
begun=$SECONDS
scripts/run.sh
run=$? seconds=$((SECONDS - begun))
scripts/test.sh dev $WORDS
test=$?
echo "RESULT $run $seconds $test"
END

enter() { # HOW ROOT TREE: runs the script in the root
    local how=$1 root=$2 tree=$3 command cache=${CCACHE_DIR:-}
    command="$clean TREE='$tree' WORDS='${WORDS:-}' CCACHE_DIR=/var/cache/ccache bash /type"
    # It has a copy, as the cache is root's.
    [ "$how" != user ] || cache=
    [ "$how" != user ] || command="setpriv --reuid=1000 --regid=1000 --clear-groups $command"
    if [ "$how" = container ]; then
        podman --cgroup-manager cgroupfs --events-backend none --runtime runc run --rm --network host \
            --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 ${cache:+--volume "$cache:/var/cache/ccache"} \
            --rootfs "$root" sh -c "$command" </dev/null
        return
    fi
    HOW=$how ROOT=$root COMMAND=$command CACHE=$cache unshare --mount --pid --ipc --uts --fork --kill-child bash -ec '
        mount --make-rprivate /
        mount --bind "$ROOT" "$ROOT"
        mount -t proc proc "$ROOT/proc"
        mount -t sysfs sysfs "$ROOT/sys" 2>/dev/null || mount --rbind /sys "$ROOT/sys"
        mount --rbind /dev "$ROOT/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
        mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
        [ -z "$CACHE" ] || { mkdir -p "$ROOT/var/cache/ccache"; mount --bind "$CACHE" "$ROOT/var/cache/ccache"; }
        [ "$HOW" != chroot ] || exec chroot "$ROOT" sh -c "$COMMAND"
        mkdir -p "$ROOT/mnt/old"
        cd "$ROOT"
        pivot_root . mnt/old
        umount -l /mnt/old
        exec sh -c "$COMMAND"' </dev/null
}

prepare() { # HOW ROOT TREE: the clone, and what the user of the place has
    local how=$1 root=$2 tree=$3
    bring_network "$root"
    [ "$how" != user ] || chroot "$root" useradd --create-home stranger
    git clone --quiet --no-hardlinks . "$root$tree"
    cp "$roots/type" "$root/type"
    if [ -n "${CCACHE_DIR:-}" ]; then
        chroot "$root" $clean sh -c "apt-get update && apt-get install -y --no-install-recommends ccache" >/dev/null
    fi
    [ "$how" = user ] || return 0
    chroot "$root" $clean sh -c "cd '$tree' && scripts/setup.sh && scripts/setup.sh tests && rm -rf build"
    [ -z "${CCACHE_DIR:-}" ] || cp -a "$CCACHE_DIR" "$root/var/cache/ccache"
    chroot "$root" sh -c "chown -R stranger: '$(dirname "$tree")' /var/cache/ccache 2>/dev/null || true"
}

try() { # NAME SUITE TREE HOW: a row of the table
    local name=$1 suite=$2 tree=$3 how=$4 root=$roots/$1 log=$roots/$1.log run seconds test summary skipped
    bare_root "$suite"
    rm -rf --one-file-system "$root"
    cp -a "$roots/bare-$suite" "$root"
    { prepare "$how" "$root" "$tree" && enter "$how" "$root" "$tree"; } >"$log" 2>&1 || true
    read -r run seconds test < <(sed -n 's/^RESULT //p' "$log") || true
    summary=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 of \2/p' "$log" | tail -1)
    skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test.*\*\*\*Skipped' "$log") || true
    cp "$root$tree/build/dev/Testing/Temporary/LastTest.log" "$roots/$name.LastTest.log" 2>/dev/null || true
    echo "| $name | Debian $(cat "$root/etc/debian_version") | ${#tree} | $how | ${run:-not run} | ${seconds:-–} | ${test:-not run} | ${summary:-none} | $skipped |" |
        tee "$roots/$name.row"
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
    [ "${run:-1}" = 0 ] && [ "${test:-1}" = 0 ]
}

bad=0
echo "| place | system | path's length | as | run.sh | seconds | test.sh | failed | skipped |"
echo "|---|---|---:|---|---:|---:|---:|---:|---:|"
for name in "$@"; do
    read -r name suite tree how < <(grep "^$name " <<<"$places")
    try "$name" "$suite" "$tree" "$how" || bad=1
done
exit "$bad"
