#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries cuslice under schedulers and in notebooks, on this machine's fake GPUs. Needs no GPU, and the network only the
# first time: Ray and Jupyter come from the Python index into build/integrations, Slurm from Debian (scripts/setup.sh
# slurm). Slurm needs root.
#
#   scripts/integrations.sh notebook        the tests of lab/notebooks, executed by nbconvert
#   scripts/integrations.sh ray             the tests of lab/ray, on a cluster of Ray (750 MB of disk; two minutes)
#   scripts/integrations.sh ray Slices.test_a_bundle_of_a_placement_group    one of them
#   scripts/integrations.sh ray-start       how long 100 tasks and 100 actors take to start, with cuslice and without
#   scripts/integrations.sh ray-start 10    the same with 10 of each
#   scripts/integrations.sh slurm           the tests of lab/slurm on a cluster of Slurm; further words as above
#   scripts/integrations.sh slurm-start     how long 100 jobs take to start, with the plugin and without; or so many
#   scripts/integrations.sh slurm-kills     500 jobs of Slurm with 1,000 kills, after which nothing may be left over
#   scripts/integrations.sh slurm-kills 50 100       50 jobs with 100 kills
#
#   INTEGRATIONS_PRESET=dev scripts/integrations.sh ray    another build than release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${1:-ray}
case $name in
    notebook) program=lab/notebooks/notebook_test.py folder=notebook want=(nbconvert==7.17.2 ipykernel==7.4.0) ;;
    ray) program=lab/ray/ray_test.py folder=ray want=("ray[serve,train]==2.60.0") ;;
    ray-start) program=lab/ray/start_times.py folder=ray want=("ray[serve,train]==2.60.0") ;;
    slurm) program=lab/slurm/slurm_test.py ;;
    slurm-start) program=lab/slurm/start_times.py ;;
    slurm-kills) program=lab/slurm/storm.py ;;
    *)
        echo "integrations: there is no $name here; it is one of: notebook ray ray-start slurm slurm-start slurm-kills" >&2
        exit 64
        ;;
esac
preset=${INTEGRATIONS_PRESET:-release}
if [[ $name == slurm* ]]; then
    scripts/setup.sh slurm >&2
    build=$PWD/build/$preset
    # A build that was configured before Slurm's headers were there looks for them again.
    grep -q cuslice_slurm "$build/build.ninja" 2>/dev/null || rm -f "$build/build.ninja"
    scripts/build.sh "$preset" product cuslice_slurm guest_linked slurm_slices >&2
    plugin=$build/lib/cuslice/slurm/cuslice.so guest=$build/tests/preload/guest/guest_linked
    exec python3 "$program" "$build" "$plugin" "$guest" "${@:2}"
fi
scripts/build.sh "$preset" product >&2
folder=build/integrations/$folder
if [ "$(cat "$folder/installed" 2>/dev/null)" != "${want[*]}" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${want[@]}"
    echo "${want[*]}" >"$folder/installed"
fi
exec "$folder/bin/python" "$program" "$PWD" "$PWD/build/$preset/bin" "${@:2}"
