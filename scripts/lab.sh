#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries cuslice on what others make: builds the preset dev, and runs the tests of one folder of lab/.
#
#   scripts/lab.sh --list       the folders, what each is tried on, and what there is to run by hand
#   scripts/lab.sh slurm        the tests of lab/slurm
#   scripts/lab.sh slurm -V     further words go to ctest
#
# Exit status: ctest's; 64 for a folder that isn't there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rows() { # NAME|TRIED ON|BY HAND, by the table of lab/README.md
    sed -nE 's#^\| `([a-z]+)/` \| ([^|]*) \| `?([^|`]*)`? ?\|$#\1|\2|\3#p' lab/README.md
}

name=${1---list}
if [ "$name" = --list ]; then
    rows | while IFS='|' read -r folder tried by_hand; do printf '%-11s %-51s %s\n' "$folder" "$tried" "$by_hand"; done
    exit
fi
if ! rows | cut -d'|' -f1 | grep -qxF -- "$name"; then
    echo "lab: there is no $name; it is one of: $(rows | cut -d'|' -f1 | xargs)" >&2
    exit 64
fi
shift
scripts/setup.sh tests
[ "$name" != genuine ] || timeout 300 python3 lab/genuine/fetch.py </dev/null ||
    echo "lab: not all of NVIDIA's genuine libraries can be had; what compares with the missing ones is skipped" >&2
scripts/build.sh dev
exec ctest --test-dir "build/dev/lab/$name" --output-on-failure --no-tests=error "$@" </dev/null
