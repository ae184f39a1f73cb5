#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the OCI image of cuslice, with buildah or podman; neither needs a daemon, and nothing runs in the image.
#
#   scripts/release/image.sh [--base IMAGE] [--archive FILE] TARBALL
#
# TARBALL is a release's, for one processor. The image is localhost/cuslice:VERSION and localhost/cuslice:latest. IMAGE
# is what it is built on: Debian 12 by default, which is pulled from a registry; any one with the GNU C library does.
# FILE becomes an archive of the image (oci-archive), for `podman load` and `skopeo copy`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

refuse() { echo "image: $2" >&2; exit "$1"; }
base=() archive=""
while [ $# -gt 1 ]; do
    case $1 in
        --base) base=(--build-arg "BASE=$2") ;;
        --archive) archive=$(realpath -m "$2") ;;
        *) refuse 64 "$1 is none of --base, --archive" ;;
    esac
    shift 2
done
[ $# -eq 1 ] || refuse 64 "a release's tarball is needed"
[ -f "$1" ] || refuse 66 "$1: no such file; scripts/release.sh makes it, in dist/"
case $1 in
    *-linux-x86_64.tar.gz) processor=amd64 ;;
    *-linux-aarch64.tar.gz) processor=arm64 ;;
    *) refuse 64 "$1 isn't called as a release's tarball is: cuslice-VERSION-linux-MACHINE.tar.gz" ;;
esac
version=$(basename "$1" | sed 's/^cuslice-\(.*\)-linux-[^-]*$/\1/')
if command -v buildah >/dev/null; then
    build=(buildah build)
    push=(buildah push)
elif command -v podman >/dev/null; then
    build=(podman build)
    push=(podman push)
else
    refuse 69 "buildah or podman is needed: apt-get install buildah"
fi

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/opt/cuslice" "$context/bin"
tar xf "$1" -C "$context/opt/cuslice" --strip-components=1
ln -s /opt/cuslice/bin/cuslice "$context/bin/cuslice"
for name in install drop-in; do
    install -m 755 "integrations/kubernetes/$name.sh" "$context/bin/cuslice-$name"
done
"${build[@]}" --platform "linux/$processor" "${base[@]}" --build-arg "VERSION=$version" \
    --tag "localhost/cuslice:$version" --tag localhost/cuslice:latest \
    --file integrations/kubernetes/Containerfile "$context" </dev/null
[ -z "$archive" ] || "${push[@]}" "localhost/cuslice:$version" "oci-archive:$archive:cuslice:$version"
