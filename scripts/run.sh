#!/usr/bin/env bash
# Sets up, builds into build/release and shows what cuslice does: two unmodified CUDA programs on a laptop's GPU of 2002 MiB,
# without and with a limit. Needs no GPU.
#
#   scripts/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh release product driver_fill runtime_fill
exec python3 scripts/demo.py build/release </dev/null
