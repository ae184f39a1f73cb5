#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the tests for aarch64 and runs them on this x86_64 machine, with qemu-user, in build/aarch64. Not a part of
# continuous integration: qemu is too slow for that. A test that passes says that the code is right for the processor's
# instructions and calling convention. It says nothing of its order of memory accesses, of pages of 64 KiB, of speed.
#
#   scripts/test_aarch64.sh                  all but what tests/aarch64_excluded.txt names, with the reasons there
#   scripts/test_aarch64.sh policy cli       the same, but only these folders of tests/ and lab/
#   scripts/test_aarch64.sh -R 'test_cli'    words for ctest: these tests, excluded ones too
#   scripts/test_aarch64.sh --no-build       what is built already (more words may follow)
#   scripts/test_aarch64.sh --count          runs nothing, and shows the figures of the folders that were run
#
# One folder is run after the other, and what each gave is kept in build/aarch64/Testing/cases, so that a run that was
# stopped can go on with those that it lacks. At the end come the figures of all folders that have been run.
#
#   CUSLICE_AARCH64_JOBS       tests at once, 3 by default
#   CUSLICE_AARCH64_ROOT       the folder for Debian's files for aarch64, build/aarch64-root by default: 600 MB
#   CUSLICE_AARCH64_QEMU       the emulator, a static qemu-aarch64 of version 10 or newer. By default the installed one; where
#                              that is older, as Debian 12's, Debian 13's is unpacked into build/aarch64-qemu. Version 7.2
#                              takes 0.9 GB and many seconds for a reservation of 141 GiB, and version 10 nothing
#
# Debian 12 as root, or as a user who may make namespaces; Linux 6.7 or newer, where binfmt_misc belongs to a namespace, so
# that nothing else on this machine notices. The tests, and every program that they start, find themselves on a Debian for
# aarch64: the packages are unpacked, and never installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "test_aarch64: $1" >&2
    exit 1
}
absolute() { realpath --canonicalize-missing "$1"; }

sources=$PWD
root=$(absolute "${CUSLICE_AARCH64_ROOT:-build/aarch64-root}")
# Programs that tests and their scripts call, in the root. Their dependencies come along.
packages=(base-files libc6 libc-bin libstdc++6 libgcc-s1 libasan8 dash bash coreutils grep sed gawk findutils diffutils procps util-linux
          hostname gzip tar python3 cmake make git file binutils g++ mount)
# Programs that make namespaces are this machine's own, where it has them: under qemu, clone(2) and unshare(2) make
# none. The programs in them are emulated as all others.
makers=(unshare bwrap runc)

# --- On this machine ----------------------------------------------------------------------------------------------------

# Makes a folder where apt keeps lists and packages of its own, so that nothing of this machine's changes.
#   $1  the folder
#   $2  the processor, in Debian's words
make_apt() {
    local apt=$1
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    cat >"$apt/apt.conf" <<END
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Debug::NoLocking "true";
END
}

# Unpacks Debian's packages for aarch64, from the indexes that this machine uses.
make_root() {
    local apt=$root.apt deb
    [ "${packages[*]}" != "$(cat "$root.packages" 2>/dev/null)" ] || return 0
    echo "test_aarch64: unpacking Debian for aarch64 into $root"
    mkdir -p "$root"
    make_apt "$apt" arm64
    { APT_CONFIG=$apt/apt.conf apt-get -q update &&
      APT_CONFIG=$apt/apt.conf apt-get -q -y --download-only install "${packages[@]}"; } </dev/null >"$apt/log" 2>&1 ||
        { tail -5 "$apt/log" >&2; fail "Debian's packages for aarch64 can't be had here; all of it is in $apt/log"; }
    for deb in "$apt"/archives/*.deb; do
        dpkg-deb --extract "$deb" "$root"
    done
    # Made by the packages' own scripts elsewhere.
    ln -sfn gawk "$root/usr/bin/awk"
    ln -sfn gcc "$root/usr/bin/cc"
    cp /etc/passwd /etc/group "$root/etc/"
    cp /etc/hostname /etc/hosts /etc/resolv.conf "$root/etc/" 2>/dev/null || true
    rm -rf "$apt/archives"
    echo "${packages[*]}" >"$root.packages"
}

# Copies the makers of namespaces into the root, with the libraries that they are linked to. The emulator that CMake names
# for tests that are programs themselves does nothing there: the kernel starts it anyway.
complete_root() {
    local program file
    printf '#!/bin/sh\nshift 2 # -L and a folder\nexec "$@"\n' >"$root/usr/bin/qemu-aarch64-static"
    chmod +x "$root/usr/bin/qemu-aarch64-static"
    for program in "${makers[@]}"; do
        file=$(command -v "$program") || continue
        for file in "$file" $(ldd "$file" | grep -oE '/[^ ]+'); do
            mkdir -p "$root${file%/*}"
            # Another run may be using it.
            cmp --quiet "$file" "$root$file" || { cp --dereference "$file" "$root$file.$$" && mv "$root$file.$$" "$root$file"; }
        done
    done
}

# Succeeds if a program is qemu of version 10 or newer.
new_enough() { [ "$("$1" --version 2>/dev/null | sed -nE '1s/.* version ([0-9]+).*/\1/p')" -ge 10 ] 2>/dev/null; }

# Finds an emulator that is new enough, or unpacks Debian 13's, from where this machine takes its own packages.
find_qemu() {
    local apt=$PWD/build/aarch64-qemu.apt folder=$PWD/build/aarch64-qemu name
    if [ -n "${CUSLICE_AARCH64_QEMU:-}" ]; then
        new_enough "$CUSLICE_AARCH64_QEMU" ||
            fail "CUSLICE_AARCH64_QEMU=$CUSLICE_AARCH64_QEMU is no qemu-aarch64 of version 10 or newer"
        CUSLICE_AARCH64_QEMU=$(absolute "$CUSLICE_AARCH64_QEMU")
    else
        for name in qemu-aarch64-static "$folder/usr/bin/qemu-aarch64"; do
            ! new_enough "$name" || CUSLICE_AARCH64_QEMU=$(command -v "$name")
        done
    fi
    if [ -z "${CUSLICE_AARCH64_QEMU:-}" ]; then
        echo "test_aarch64: unpacking qemu of Debian 13 into build/aarch64-qemu"
        make_apt "$apt" "$(dpkg --print-architecture)"
        mkdir -p "$apt/sources"
        PYTHONPATH=lab/genuine python3 - "$apt/sources" <<'END'
import pathlib, sys, catalogue, fetch
for kind, text in zip(("list", "sources"), fetch.sources_of(catalogue.release() or "bookworm", "trixie")):
    pathlib.Path(sys.argv[1], f"trixie.{kind}").write_text(text.replace("non-free", "main"))
END
        cat >>"$apt/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
END
        (cd "$apt" && export APT_CONFIG=$apt/apt.conf && apt-get -q update && apt-get -q download qemu-user) \
            </dev/null >"$apt/log" 2>&1 ||
            { tail -5 "$apt/log" >&2; fail "Debian 13's qemu-user can't be had here; CUSLICE_AARCH64_QEMU may name another"; }
        dpkg-deb --extract "$apt"/qemu-user_*.deb "$folder"
        rm -rf "$apt"
        CUSLICE_AARCH64_QEMU=$folder/usr/bin/qemu-aarch64
    fi
    mkdir -p "$folder"
    python3 scripts/qemu_start_time.py "$CUSLICE_AARCH64_QEMU" "$folder/qemu-aarch64" ||
        fail "this qemu can't be made to leave /proc/self/stat to the kernel; CUSLICE_AARCH64_QEMU may name another"
    export CUSLICE_AARCH64_QEMU=$folder/qemu-aarch64
}

# The users or groups that this process knows, each mapped to itself.
identity() { awk '{ print $1, $1, $3 }' "/proc/self/$1"; }

# Runs a command as root of namespaces of its own: for root with all users and groups, for another user with one. The
# command's shell is the first process there, so it reaps the processes that tests leave behind.
in_namespaces() {
    local inner=(unshare --pid --fork --kill-child --mount)
    if [ "$(id -u)" -ne 0 ]; then
        unshare --user --map-root-user "${inner[@]}" "$@"
        return
    fi
    local pipe
    pipe=$(mktemp --dry-run)
    mkfifo "$pipe"
    # The maps are written from outside. Then another exec gives root's capabilities, which the first one took.
    { read -r pid <"$pipe" && rm "$pipe" && identity gid_map >"/proc/$pid/gid_map" && identity uid_map >"/proc/$pid/uid_map"; } &
    # shellcheck disable=SC2016
    unshare --user bash -c 'echo $$ >"$0"; until grep -q . /proc/self/uid_map; do sleep 0.01; done; exec "$@"' "$pipe" \
        "${inner[@]}" "$@"
}

# --- In the namespaces --------------------------------------------------------------------------------------------------

# The patterns of Debian's qemu-user-static. With F the kernel opens qemu now, so that it needn't be in the root; with O and
# C a program's descriptor and its set-user-ID bit come along.
register() {
    local magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null ||
        fail "binfmt_misc can't be had in a user's namespace: that takes Linux 6.7, and this is $(uname -r)"
    printf '%s' ":qemu-aarch64:M::$magic:$mask:$CUSLICE_AARCH64_QEMU:OCF" >/proc/sys/fs/binfmt_misc/register
}

enter() {
    local folder
    mount --make-rprivate /
    mount -t proc proc /proc
    register
    # Its own mount, which a program may mount over and pivot to.
    mount --bind "$root" "$root"
    for folder in /proc /sys /dev /tmp; do
        mkdir -p "$root$folder"
        mount --rbind "$folder" "$root$folder"
    done
    # The checkout, and what git reads of it where it is one of several.
    for folder in "$sources" "$(git rev-parse --path-format=absolute --git-common-dir)"; do
        if [ ! -d "$root$folder" ] || [ -z "$(ls -A "$root$folder")" ]; then
            mkdir -p "$root$folder"
            mount --rbind "$folder" "$root$folder"
        fi
    done
    # The root of the mount namespace, and not of a process alone, as nobody makes a user's namespace in a chroot.
    mkdir -p "$root/old"
    cd "$root"
    pivot_root . old
    # Programs under test name variables of cuslice's that they don't know.
    # shellcheck disable=SC2016
    /usr/bin/env --unset=CUSLICE_AARCH64_JOBS --unset=CUSLICE_AARCH64_ROOT --unset=CUSLICE_AARCH64_QEMU \
        /bin/sh -c 'umount --lazy /old && /sbin/ldconfig && cd "$0" && exec "$@"' "$sources" "$@"
}

if [ "${1:-}" = --enter ]; then
    shift
    enter "$@"
    exit
fi

# --- The run ------------------------------------------------------------------------------------------------------------

build=true
if [ "${1:-}" = --no-build ]; then
    build=false
    shift
fi
[ "${1:-}" != --count ] || build=false
if $build; then
    scripts/setup.sh aarch64
    nice scripts/build.sh aarch64
fi
for program in qemu-aarch64-static unshare chroot dpkg-deb apt-get; do
    command -v "$program" >/dev/null || fail "$program is needed: run scripts/setup.sh aarch64"
done
make_root
complete_root
[ "${1:-}" = --count ] || find_qemu

folder_reports=build/aarch64/Testing/cases
on_all_tests() { ctest --test-dir build/aarch64 --show-only=json-v1 | python3 scripts/aarch64_cases.py "$@"; }
emulated() { in_namespaces "$PWD/scripts/test_aarch64.sh" --enter ctest "${words[@]}" "$@" </dev/null; }

words=(--test-dir build/aarch64 --output-on-failure --parallel "${CUSLICE_AARCH64_JOBS:-3}")
failed=0
if [[ ${1:-} == -* && $1 != --count ]]; then
    emulated --no-tests=error "$@" || failed=$?
    exit "$failed"
fi
if [ "${1:-}" != --count ]; then
    all=$(on_all_tests folders)
    for folder in "$@"; do
        grep -q "^$folder " <<<"$all" ||
            fail "there are no tests of a folder $folder; these have some: $(cut -d' ' -f1 <<<"$all" | xargs)"
    done
    [ $# -ne 0 ] || rm -rf "$folder_reports"
    mkdir -p "$folder_reports"
    excluded=$(python3 scripts/aarch64_cases.py expression)
    while read -r folder chosen; do
        [ $# -eq 0 ] || [[ " $* " == *" $folder "* ]] || continue
        echo "test_aarch64: $folder"
        report=$PWD/$folder_reports/$folder.xml
        rm -f "$report"
        # None of ctest's words has a space in it.
        # shellcheck disable=SC2086
        emulated --no-tests=ignore --exclude-regex "$excluded" --output-junit "$report" $chosen || failed=$?
        # None is written of a folder of which all is excluded.
        [ -e "$report" ] || echo "<testsuite/>" >"$report"
    done <<<"$all"
fi
[ -n "$(ls "$folder_reports" 2>/dev/null)" ] || fail "no folder has been run yet"
on_all_tests count "$folder_reports"/*.xml || failed=1
exit "$failed"
