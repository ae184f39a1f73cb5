#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of build/dev against other files than were built there: an installed or unpacked tree, as that of a
# release. The tree's bin/ and lib/ are laid over the build folder's in a mount namespace; the tests themselves stay
# as they are. They should be of the same commit as the tree.
#
#   scripts/test_installed.sh build/release-old-glibc/stage    all of tests/preload, which run programs
#   scripts/test_installed.sh build/release-old-glibc/stage -R test_preload_any    words for ctest
#   BUILD=/elsewhere/build/dev scripts/test_installed.sh TREE    the tests of another checkout's build
#
# Build the tests first (scripts/build.sh dev). Tests that link a part of the product, rather than run it, say nothing
# of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -ge 1 ] || { echo "test_installed: a tree is needed, which has bin/cuslice and lib/cuslice" >&2; exit 64; }
tree=$(realpath "$1")
build=$(realpath "${BUILD:-build/dev}")
shift
[ $# -gt 0 ] || set -- -R '^test_preload_'
for needed in bin/cuslice lib/cuslice/libcuslice.so lib/cuslice/fake/libcuda.so.1; do
    [ -e "$tree/$needed" ] || { echo "test_installed: $tree has no $needed" >&2; exit 66; }
    [ -e "$build/$needed" ] || { echo "test_installed: $build is not built: scripts/build.sh dev" >&2; exit 66; }
done

# A user is root in a namespace of their own, as only root may mount. Not where it can be helped: tests look at users.
namespace=(unshare --mount)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
# shellcheck disable=SC2016
exec "${namespace[@]}" bash -euc '
    tree=$1 build=$2; shift 2
    mount --bind "$tree/bin" "$build/bin"
    mount --bind "$tree/lib" "$build/lib"
    cmp -s "$build/lib/cuslice/libcuslice.so" "$tree/lib/cuslice/libcuslice.so"
    exec ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@" </dev/null' \
    test_installed "$tree" "$build" "$@"
