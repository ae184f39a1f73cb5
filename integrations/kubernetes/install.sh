#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts an installation of cuslice onto a node, and makes the folder of its ledgers:
#
#   install.sh INSTALLATION TARGET [LEDGERS]
#
# TARGET/releases/VERSION is the copy, and TARGET/current leads to it. Both appear at once, by a rename, so that no
# program finds half of an installation. Earlier releases stay, for programs that were started from them.
set -eu
source=$1 target=$2 ledgers=${3:-}
version=$("$source/bin/cuslice" --version)
version=${version#cuslice }
mkdir -p "$target/releases"
if ! [ -e "$target/releases/$version" ]; then
    rm -rf "$target/releases/.new"
    cp -a "$source" "$target/releases/.new"
    mv -T "$target/releases/.new" "$target/releases/$version"
fi
ln -sfn "releases/$version" "$target/.current"
mv -T "$target/.current" "$target/current"
# For all users, and sticky, as /tmp is.
[ -z "$ledgers" ] || { mkdir -p "$ledgers" && chmod 1777 "$ledgers"; }
echo "cuslice $version is in $target/current"
