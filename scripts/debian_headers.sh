#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks packages of Debian's or Ubuntu's that have headers into FOLDER/root. Anybody may do it: nothing is installed.
#
#   scripts/debian_headers.sh FOLDER PACKAGE…
#
# A fresh image has no lists of packages: they are read then, into FOLDER too. Ends with 1 if a package can't be had.
set -euo pipefail
[ $# -ge 2 ] || { echo "debian_headers: a folder and a package are needed" >&2; exit 64; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
downloads=$folder/debian
mkdir -p "$downloads"/{lists,cache/archives}/partial "$folder/root"
options=(-qq -o Dir::Cache="$downloads/cache" -o Debug::NoLocking=true)
cd "$downloads"
if ! apt-get "${options[@]}" download "$@" >/dev/null 2>&1; then
    options+=(-o Dir::State::lists="$downloads/lists")
    apt-get "${options[@]}" update >/dev/null || true
    apt-get "${options[@]}" download "$@" >/dev/null
fi
for archive in ./*.deb; do dpkg-deb -x "$archive" "$folder/root"; done
cd "$folder"
rm -rf "$downloads"
