#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what cuslice is built and tested with, as far as it is missing. For Debian 12, Ubuntu 24.04 and their likes, as root
# or with sudo. Does nothing where all of it is there. run.sh, test.sh, bench.sh and compat.sh call it themselves.
#
# Who is neither root nor has sudo gets what a build needs into build/tools: cmake, ninja, nlohmann-json, and zig's compiler
# in gcc's place, from the Python index; the headers of toml++ and CLI11, which are not there, out of Debian's packages,
# which anybody may download and unpack. The tests need the rest too.
#
#   scripts/setup.sh
#   scripts/setup.sh tests    with what tests of containers, of jobs of at, of completion and manual, of the pytest plugin
#                             and of the GitHub action want, which are skipped where it can't be had
#   scripts/setup.sh slurm    with Slurm and munge, for the tests of the plugin; where systemd runs, munge's service is
#                             started too
#   scripts/setup.sh browser  with what tests of cuslice plot want (some 400 MB), and are skipped without
#   scripts/setup.sh aarch64  with what scripts/test_aarch64.sh builds and runs with
#   scripts/setup.sh models   with Spin, which scripts/models.sh runs
#   scripts/setup.sh checks   with clang, clang-format and clang-tidy, without which continuous integration fails
set -euo pipefail

# A program, and the package that brings it. g++ is not enough by itself for cmake's C language, hence gcc.
programs="gcc:gcc g++:g++ cmake:cmake ninja:ninja-build git:git make:make readelf:binutils file:file python3:python3"
[ "${1:-}" != aarch64 ] || programs+=" aarch64-linux-gnu-g++:g++-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static"
# Version 14, which Debian 12 and Ubuntu 24.04 both have: others format and warn differently.
checks=""
[ "${1:-}" != checks ] || checks="clang++:clang clang++-14:clang-14 clang-format-14:clang-format-14 clang-tidy-14:clang-tidy-14"
# Packages without a program to look for, and a file of theirs by which they are known wherever they came from.
libraries="libc6-dev:dlfcn.h libtomlplusplus-dev:toml++/toml.h nlohmann-json3-dev:nlohmann/json.hpp
    libcli11-dev:CLI/CLI.hpp"

# Programs that only tests use.
wanted=""
[ "${1:-}" != tests ] || wanted="bwrap:bubblewrap runc:runc podman:podman atd:at setcap:libcap2-bin strace:strace
    bash:bash zsh:zsh fish:fish groff:groff-base man:man-db"
[ "${1:-}" != slurm ] || wanted="slurmctld:slurmctld slurmd:slurmd srun:slurm-client munged:munge ip:iproute2"
[ "${1:-}" != browser ] || wanted="chromium:chromium"
[ "${1:-}" != models ] || wanted="spin:spin"
# pytest, for the plugin, and what reads workflows, in an environment of their own.
pytest=""
[ "${1:-}" != tests ] || pytest=tests/python/requirements.txt

# Taken from the Python index by an earlier call.
PATH=$PATH:$PWD/build/tools/bin
missing=()
for pair in $programs $checks; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
# In the system's folder, or one of those that CMake is told to look in.
IFS=: read -ra folders <<<"/usr/include:/usr/local/include:build/tools/root/usr/include:${CMAKE_INCLUDE_PATH:-}"
for pair in $libraries; do
    for folder in "${folders[@]}" ""; do
        [ -n "$folder" ] || missing+=("${pair%%:*}")
        [ ! -e "$folder/${pair#*:}" ] || break
    done
done
ls /usr/include/catch2/catch*.hpp >/dev/null 2>&1 || missing+=(catch2)
# clang++ alone has no sanitizers and no libFuzzer.
[ -z "$checks" ] || ls "$(clang++ -print-resource-dir 2>/dev/null)"/lib/*/libclang_rt.fuzzer*.a >/dev/null 2>&1 ||
    missing+=(libclang-rt-dev)
# Debian's own python3 comes in parts. One from elsewhere is whole, and its packages would not be the system's.
parts=$(python3 -c 'import importlib.util as u; print(*[m for m in ("ensurepip", "pip") if not u.find_spec(m)])' 2>/dev/null ||
        echo "ensurepip pip")
case $parts in *ensurepip*) missing+=(python3-venv) ;; esac
case " $parts " in *" pip "*) missing+=(python3-pip) ;; esac

# Without root: what a build can't do without comes from the Python index and Debian's archive, or is named.
from_index() {
    local name packages=() rest=() aside=() headers=()
    for name in "${missing[@]}"; do
        case $name in
            cmake) packages+=(cmake) ;;
            ninja-build) packages+=(ninja) ;;
            nlohmann-json3-dev) packages+=(nlohmann-json) ;;
            gcc | g++ | libc6-dev) [[ " ${packages[*]} " == *" ziglang "* ]] || packages+=(ziglang) ;;
            libtomlplusplus-dev | libcli11-dev) headers+=("$name") ;;
            python3 | python3-venv | clang*) rest+=("$name") ;;
            *) aside+=("$name") ;;
        esac
    done
    if [ ${#rest[@]} -ne 0 ] || [ -n "$checks" ]; then
        echo "setup: these are missing, and installing them takes root or sudo: ${missing[*]}" >&2
        echo "setup: as root, run: apt-get update && $install" >&2
        [ ${#rest[@]} -eq 0 ] || echo "setup: without root all that a build needs can be had but: ${rest[*]}" >&2
        exit 1
    fi
    if [ ${#headers[@]} -ne 0 ]; then
        echo "setup: unpacking ${headers[*]} into build/tools"
        if ! bash "$(dirname "${BASH_SOURCE[0]}")/debian_headers.sh" build/tools "${headers[@]}"; then
            echo "setup: they can't be downloaded; as root, run: apt-get update && $install" >&2
            echo "setup: headers may also lie in a folder that CMAKE_INCLUDE_PATH names" >&2
            exit 1
        fi
    fi
    [ ${#aside[@]} -eq 0 ] || echo "setup: without root, these stay away, which only tests need: ${aside[*]}"
    [ ${#packages[@]} -ne 0 ] && [ "${packages[*]}" != "$(cat build/tools/brought 2>/dev/null)" ] || return 0
    echo "setup: taking ${packages[*]} from the Python index into build/tools"
    [ -x build/tools/bin/python3 ] || python3 -m venv build/tools
    if ! build/tools/bin/python3 -m pip install --quiet --disable-pip-version-check "${packages[@]}"; then
        echo "setup: the Python index can't be reached; as root, run: apt-get update && $install" >&2
        exit 1
    fi
    echo "${packages[*]}" >build/tools/brought
}

if [ ${#missing[@]} -ne 0 ]; then
    install="apt-get install -y --no-install-recommends ${missing[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "setup: these are missing, and there is no apt-get here to install them with: ${missing[*]}" >&2
        echo "setup: install what your distribution calls them, then run this again" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            from_index
            missing=()
        fi
        as_root=(sudo)
    fi
fi
if [ ${#missing[@]} -ne 0 ]; then
    echo "setup: installing ${missing[*]}"
    apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
    # The lists of a fresh machine or image are empty or old. An index that can't be reached may be one we don't need.
    apt update >/dev/null || echo "setup: apt-get update failed; trying with the lists that are here" >&2
    if ! apt install -y --no-install-recommends "${missing[@]}" >/dev/null; then
        echo "setup: apt-get could not install ${missing[*]}; see above" >&2
        exit 1
    fi
fi

have=$(cmake --version | sed -n '1s/.* \([0-9][0-9.]*\).*/\1/p')
if [ "$(printf '%s\n' 3.25 "$have" | sort -V | head -1)" != 3.25 ]; then
    echo "setup: cmake $have is too old, 3.25 or newer is needed: $(command -v cmake)" >&2
    exit 1
fi

extra=()
for pair in $wanted; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || extra+=("${pair#*:}")
done
[ "${1:-}" != slurm ] || [ -e /usr/include/slurm/spank.h ] || extra+=(libslurm-dev)
if [ ${#extra[@]} -ne 0 ]; then
    get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    [ "$(id -u)" -eq 0 ] || get=(sudo -n "${get[@]}")
    echo "setup: installing ${extra[*]}"
    { "${get[@]}" update; "${get[@]}" install -y --no-install-recommends "${extra[@]}"; } </dev/null >/dev/null 2>&1 ||
        echo "setup: ${extra[*]} can't be installed here; the tests that want them are skipped"
fi

# Python's packages that only tests use.
if [ "${1:-}" = browser ] && ! { build/tools/bin/python3 -c "import vl_convert" || python3 -c "import vl_convert"; } 2>/dev/null; then
    echo "setup: taking vl-convert-python from the Python index into build/tools"
    [ -x build/tools/bin/python3 ] || python3 -m venv build/tools
    build/tools/bin/python3 -m pip install --quiet --disable-pip-version-check vl-convert-python ||
        echo "setup: vl-convert-python can't be had here; the tests that want it are skipped"
fi

if [ -n "$pytest" ] && ! cmp -s "$pytest" build/pytest/requirements.txt; then
    echo "setup: taking pytest, mypy, Helm and others from the Python index into build/pytest"
    if python3 -m venv build/pytest && timeout 300 build/pytest/bin/python3 -m pip install --quiet \
        --disable-pip-version-check --requirement "$pytest" </dev/null >/dev/null 2>&1; then
        cp "$pytest" build/pytest/requirements.txt
    else
        echo "setup: pytest can't be had here; the tests of the plugin, types, workflows, manifests and packaging are skipped"
    fi
fi
