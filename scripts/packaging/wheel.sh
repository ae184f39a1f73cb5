#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel of an installation, as pyproject.toml describes it; nothing is compiled.
#
#   scripts/packaging/wheel.sh STAGE OUT [TAG…]
#
# STAGE is the prefix of an installation without links, which has the component `wheel` laid over it. TAG is a wheel's,
# such as py3-none-manylinux_2_17_x86_64; without one the wheel is for this machine. PYTHON, by default python3, is one
# that has scikit-build-core and hatch-fancy-pypi-readme. SOURCE_DATE_EPOCH is the time of each member: the same
# installation makes the same bytes.
set -euo pipefail
[ $# -ge 2 ] || { echo "wheel: an installation and a folder are needed" >&2; exit 64; }
stage=$(realpath "$1") out=$(realpath -m "$2")
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

link=$(find "$stage" -type l -print -quit)
[ -z "$link" ] || { echo "wheel: $link is a link, and a wheel can't hold one" >&2; exit 65; }
# In full: Debian 12's pip doesn't know -C yet.
settings=(--config-settings=cmake.source-dir=scripts/packaging/staged "--config-settings=cmake.define.CUSLICE_STAGE=$stage")
IFS=';'
[ $# -eq 0 ] || settings+=("--config-settings=wheel.tags=$*")
exec "${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    "${settings[@]}" --wheel-dir "$out" .
