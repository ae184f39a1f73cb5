#!/usr/bin/env bash
# Sets up, builds into build/release and shows what cuslice does: two unmodified CUDA programs on a laptop's GPU of 2002 MiB,
# without and with a limit. Needs no GPU, and no root: scripts/setup.sh says what happens where something is missing.
#
#   scripts/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -ne 0 ]; then
    [[ $1 == -h || $1 == --help ]] && to=1 status=0 || to=2 status=64
    echo "run: scripts/run.sh takes no arguments; it builds into build/release and runs two programs" >&"$to"
    exit "$status"
fi

scripts/build.sh release product driver_fill runtime_fill
exec python3 scripts/demo.py build/release </dev/null
