#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs programs that others wrote, unmodified from the Python index, in slices of fake GPUs. Needs no GPU, and the network only
# the first time, to install each into build/compat/<name>.
#
#   scripts/compat.sh                  all of them
#   scripts/compat.sh numba gpustat    only these
#
# torch, tensorflow and jax take some 6 GB of disk each, with the libraries of NVIDIA that they need; keras is tensorflow's.
# tensorflow takes half an hour: each figure is a process of its own. jax needs bubblewrap. tensorflow-ways, in tensorflow's
# environment too, compares `cuslice run` with the ways that need no launcher: LD_PRELOAD with variables or a file, CDI in
# runc, and a rule with the stub. The last two need root, and are skipped by name where they can't be had.
#
#   COMPAT_PRESET=dev scripts/compat.sh jax    another build than release
#   COMPAT_INSTALLED=/opt/cuslice scripts/compat.sh jax    what is installed there; nothing is built
#   COMPAT_SHARE=50% scripts/compat.sh torch numba    with a share of the GPU's time, on fake GPUs that take time; without
#                                                     what splits a GPU, of which there are no shares yet
#
#   scripts/compat.sh --ways                writes docs/results/compatibility/tensorflow-ways.md from a run of tensorflow-ways
#   scripts/compat.sh --ways limit growth   only these recipes anew; the others keep their rows of the last run here
#
#   scripts/compat.sh --page                writes docs/results/compatibility/packages.md from runs of all packages that it lists
#   scripts/compat.sh --page torch numba    only these; the others keep their rows
#   scripts/compat.sh --page none           only writes the page again, from lab/compat/page_runs.json
#
# Each package of the page is installed into build/compat/page, and removed when it was tried.
#
# Each line says PASS or FAIL and what was seen. Exits with 1 if anything failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A packages=([numba]="numba==0.68.1" [gpustat]="gpustat==1.1.1 nvidia-ml-py==13.580.82"
                    [nvitop]="nvitop==1.7.2 nvidia-ml-py==13.580.82" [torch]="torch==2.15.0 numpy==2.4.6"
                    [tensorflow]="tensorflow[and-cuda]==2.21.0" [keras]="tensorflow[and-cuda]==2.21.0" [jax]="jax[cuda12]==0.10.2"
                    [tensorflow-ways]="tensorflow[and-cuda]==2.21.0")
# These are in tensorflow's environment.
declare -A folders=([keras]=tensorflow [tensorflow-ways]=tensorflow)

preset=${COMPAT_PRESET:-release}
if [ "${1:-}" = --page ]; then
    shift
    python3 lab/compat/page.py --known "$@" || exit
    [ "$*" = none ] || scripts/build.sh "$preset" product >&2
    exec python3 lab/compat/page.py "$PWD/build/$preset/bin/cuslice" "$@"
fi

# The recipes of tensorflow-ways that are run, all of them without any, and the page that is written.
recipes=() ways_page=
if [ "${1:-}" = --ways ]; then
    recipes=("${@:2}") ways_page=docs/results/compatibility/tensorflow-ways.md
    set -- tensorflow-ways
fi
[ $# -gt 0 ] || set -- numba gpustat nvitop torch tensorflow keras jax tensorflow-ways
for name in "$@"; do
    if [ -z "${packages[$name]:-}" ]; then
        echo "compat: there is no $name here; it is one of: ${!packages[*]}" >&2
        exit 64
    fi
done

cuslice=${COMPAT_INSTALLED:-$PWD/build/$preset}/bin/cuslice
[ -n "${COMPAT_INSTALLED:-}" ] || scripts/build.sh "$preset" product >&2
export CUSLICE_FAKE_DIR
CUSLICE_FAKE_DIR=$(mktemp -d /dev/shm/cuslice-compat-XXXXXX)
trap 'rm -rf "$CUSLICE_FAKE_DIR"' EXIT

# With a share, launches go through hooks. Without that option, cuslice says so here, before anything is installed.
if [ -n "${COMPAT_SHARE:-}" ]; then
    "$cuslice" run --fake 1xt4 --share "$COMPAT_SHARE" -- true
    export CUSLICE_SHARE=$COMPAT_SHARE CUSLICE_FAKE_COST=${CUSLICE_FAKE_COST:-*=20us}
fi

splits() { [ -z "${COMPAT_SHARE:-}" ]; }

# An environment with exactly those packages. What was installed is noted last, so that a half is not taken for a whole.
install() {
    local folder=build/compat/${folders[$1]:-$1} want=${packages[$1]}
    if [ "$(cat "$folder/installed" 2>/dev/null)" != "$want" ]; then
        rm -rf "$folder"
        python3 -m venv "$folder" || return
        # shellcheck disable=SC2086  # several words are several packages
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $want || return
        echo "$want" >"$folder/installed"
    fi
}

check_numba() {
    local python=build/compat/numba/bin/python recording=$CUSLICE_FAKE_DIR/numba.csv
    "$cuslice" run --fake 1xt4,1xlaptop-2g --limit 0=3GiB,1=1GiB --record "$recording" -- \
        $python lab/compat/numba_slice.py 3072 1024 && $python lab/compat/recording.py "$recording" 6 || return
    ! splits || "$cuslice" run --fake 1xt4 --split 0=4 -- $python lab/compat/numba_slice.py 3776 3776 3776 3776
}

check_gpustat() {
    "$cuslice" run --fake 1xh200,2xa100-40g --limit 0=8GiB,1=3GiB -- \
        build/compat/gpustat/bin/python lab/compat/gpustat_slice.py 8192 3072 whole &&
        "$cuslice" run --fake 1xh200,1xa100-40g --split 0=8GiB+3GiB -- \
            build/compat/gpustat/bin/python lab/compat/gpustat_slice.py 8192 3072 whole
}

check_nvitop() {
    "$cuslice" run --fake 1xh200,2xa100-40g --limit 0=8GiB,1=3GiB -- \
        build/compat/nvitop/bin/python lab/compat/nvitop_slice.py 8192 3072 whole &&
        "$cuslice" run --fake 1xh200,1xa100-40g --split 0=8GiB+3GiB -- \
            build/compat/nvitop/bin/python lab/compat/nvitop_slice.py 8192 3072 whole
}

# With each form of PyTorch's own cache, over the driver's memory and over cuslice's cache, on two GPUs and on two parts of
# one; and a rank on each part.
check_torch() {
    local allocator cache gpus machines=("2xt4 --limit 0=2GiB,1=1536MiB") bad=0
    ! splits || machines+=("1xt4 --split 0=2GiB+1536MiB")
    for allocator in direct growth; do
        for gpus in "${machines[@]}"; do
            for cache in native expandable async none sharing; do
                echo "--- PyTorch's cache: $cache; cuslice's allocator: $allocator; GPUs: $gpus"
                # shellcheck disable=SC2086  # several words
                "$cuslice" run --fake $gpus --allocator "$allocator" -- \
                    build/compat/torch/bin/python lab/compat/torch_slice.py "$cache" 2048 1536 || bad=1
            done
        done
    done
    if splits; then
        echo "--- four ranks under torchrun, on four parts of one GPU"
        "$cuslice" run --fake 1xt4 --split 0=4 -- build/compat/torch/bin/torchrun --nproc-per-node 4 \
            lab/compat/torch_ranks.py 3776 || bad=1
    fi
    check_names torch || bad=1
    return "$bad"
}

# The fake GPU's libraries have every name of the genuine ones that came with a package.
check_names() {
    python3 lab/compat/library_names.py "${cuslice%/bin/*}/lib/cuslice/fake" build/compat/"$1"/lib/python3*/site-packages
}

# TensorFlow 2.21 doesn't find libcusolver.so.11 by itself.
cusolver() {
    echo "$PWD"/build/compat/tensorflow/lib/python3*/site-packages/nvidia/cusolver/lib
}

with_tensorflow() {
    LD_LIBRARY_PATH=$(cusolver)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        python3 "lab/compat/$1.py" "$cuslice" build/compat/tensorflow/bin/python "${@:2}"
}

check_tensorflow() {
    local bad=0
    with_tensorflow tensorflow_rows everything fraction three_processes each_gpu growth choice logical parts mirrored towers \
        wrong_words libraries training fields || bad=1
    with_tensorflow frameworks_sweep tensorflow_programs.py || bad=1
    check_names tensorflow || bad=1
    return "$bad"
}

check_tensorflow-ways() {
    local runs=build/compat/tensorflow-ways.json
    [ ${#recipes[@]} -gt 0 ] || rm -f "$runs"
    python3 lab/compat/tensorflow_ways.py "$cuslice" build/compat/tensorflow/bin/python --libraries "$(cusolver)" \
        --runs "$runs" ${ways_page:+--table "$ways_page"} "${recipes[@]}"
}

check_keras() {
    with_tensorflow tensorflow_rows keras
}

check_jax() {
    local bad=0
    python3 lab/compat/jax_rows.py "$cuslice" build/compat/jax/bin/python || bad=1
    python3 lab/compat/frameworks_sweep.py "$cuslice" build/compat/jax/bin/python jax_programs.py t4 laptop-2g h200 || bad=1
    return "$bad"
}

failed=0
for name in "$@"; do
    echo "--- $name (${packages[$name]})"
    if ! install "$name"; then
        echo "FAIL  $name could not be installed: see above. It comes from the Python index, so this takes the network once"
        failed=1
    elif ! "check_$name"; then
        failed=1
    fi
done
[ "$failed" -eq 0 ] && echo "PASS  all of: $*" || echo "FAIL  some of: $*"
exit "$failed"
