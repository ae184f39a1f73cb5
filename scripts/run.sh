#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds into build/release and shows what cuslice does: two unmodified CUDA programs on a fake RTX 4090, alone and
# with a limit. Needs no GPU, and no root: scripts/setup.sh says what happens where something is missing.
#
#   scripts/run.sh
set -euo pipefail
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -ne 0 ]; then
    [[ $1 == -h || $1 == --help ]] && to=1 status=0 || to=2 status=64
    echo "run: scripts/run.sh takes no arguments; it builds into build/release and runs two programs" >&"$to"
    exit "$status"
fi

scripts/build.sh release product driver_fill runtime_fill
# Python takes a C locale for UTF-8 unless it is told not to; the terminal doesn't.
export PYTHONCOERCECLOCALE=0 PYTHONUTF8=0
exec python3 scripts/demo.py build/release --from "$start" </dev/null
