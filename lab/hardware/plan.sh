#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The steps of scripts/gpu_check.sh: each is a function that prints Markdown, in steps/*.sh. It runs in a process of its
# own with a time-out, so that none can stop the others, and prints each figure as soon as it has it.
#
#   plan.sh steps        the list: function, seconds at the most, title
#   plan.sh STEP         runs one
#
# Exit status: 0 done and as it should be, 77 skipped (the last line of stderr says why), 79 what needs a slice was left
# out, anything else failed.
#
# From gpu_check.sh: CHECK_BUILD, CHECK_WORK (a folder for this run), CHECK_FAKE (the fake GPU to use, or empty),
# CHECK_PATIENCE (how many times the time a GPU would need), CHECK_STOPPED (why nothing is to run in a slice, or empty).
set -u
: "${CHECK_BUILD:=$(cd "$(dirname "$0")/../.." && pwd)}" "${CHECK_FAKE:=}"
here=$CHECK_BUILD/lab/hardware
fake_folder=$CHECK_BUILD/lib/cuslice/fake
python=${GPU_CHECK_PYTHON:-python3}
GiB=$((1 << 30)) MiB=$((1 << 20))

# By worth: what a run that is cut short has lost is at the end. All but the last together are at most 560 s
# (gpu_check_test.sh adds them up); the last has what they have left, or a run of its own.
steps() {
    cat <<'END'
smoke 20 The first look
limit 20 The limit: driver API, CUDA runtime
job 16 Several processes: a job, a group, two slices
modes 30 Growth, preallocation, deferred frees; pools, virtual and managed memory, graphs
split 12 One GPU split in two
context_cost 10 What a context, modules and allocations take, counted to the byte
call_times 24 What calls cost, without and under cuslice
blocking 18 Which calls wait for a running kernel
captures 8 What a capture forbids
lookups 8 cuGetProcAddress and the exported addresses
ipc 8 Memory for other processes, and duplicate locations
shown 6 What nvidia-smi and cuslice devices show
kernels 8 Kernels as a fat binary and as PTX
side_by_side 6 Two contexts, and kernels side by side
visible_devices 14 CUDA_VISIBLE_DEVICES with duplicates
static_runtime 20 The CUDA runtime that a program carries: what it calls, the limit, and led to the shared one
static_split 20 A program that carries the CUDA runtime, on two parts of one GPU
tools 14 compute-sanitizer and cuda-gdb
libraries 16 What cuBLAS, cuDNN and NCCL take
torch_limit 72 PyTorch: the limit
torch_split 16 PyTorch on a GPU split in two
torch_graphs 36 PyTorch: CUDA graphs
ranks 36 torchrun: two ranks on one GPU, gloo and NCCL
limit_jax 40 JAX: the limit
limit_tensorflow 16 TensorFlow and Keras: the limit
tensorflow_split 14 TensorFlow on a GPU split in two
limit_cupy 14 CuPy: the limit, and led to the shared runtime
limit_numba 12 Numba: the limit
askers 26 Which modules ask for cuGetProcAddress
share 120 Shares of a GPU's time
END
}

# ---- how programs are run -------------------------------------------------------------------------------------------

skip() { echo "$*" >&2; exit 77; }

# Before what needs a slice. After a first look that hung there is nothing to be learned from more of the same.
slices() {
    [ -z "$CHECK_STOPPED" ] && return
    echo
    echo "In a slice: not run, $CHECK_STOPPED."
    exit 79
}

# guarded SECONDS MORE program args…: ended after so long, with the stacks written in MORE seconds.
guarded() { "$here/guard" "$(($1 * CHECK_PATIENCE))+$(($2 * CHECK_PATIENCE))" "${@:3}"; }

# Without cuslice.
raw() {
    if [ -n "$CHECK_FAKE" ]; then
        CUSLICE_FAKE=$CHECK_FAKE LD_LIBRARY_PATH=$fake_folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
    else
        "$@"
    fi
}

# The words that start a program in a slice, before the options.
cuslice_run=("$CHECK_BUILD/bin/cuslice" run ${CHECK_FAKE:+--fake "$CHECK_FAKE"})
# sliced LIMIT program args…
sliced() { sliced_in direct "$@"; }
# sliced_in ALLOCATOR LIMIT program args…
sliced_in() { "${cuslice_run[@]}" --allocator "$1" --limit "$2" -- "${@:3}"; }

# The folder of a library that isn't on the loader's path: a toolkit's, or one that came with Python packages.
folder_of_library() {
    local folder packages
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
    for folder in ${CUDA_HOME:+"$CUDA_HOME"/lib64} /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 \
        "$packages"/nvidia/*/lib /usr/lib/x86_64-linux-gnu /usr/lib64; do
        [ -e "$folder/$1" ] && echo "$folder" && return 0
    done
    return 1
}

# The programs on the shared runtime find it as they would have after an installation of CUDA.
find_runtime() {
    local folder
    [ -z "$CHECK_FAKE" ] || return 0
    folder=$(folder_of_library libcudart.so.13) || return 0
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
}
runtime_programs() {
    local program
    for program in limit_runtime limit_runtime_nvcc_shared; do
        if [ ! -x "$here/$program" ]; then
            echo "$program: not built (no nvcc, or no libcudart.so.13, where this was built)" >&2
        elif raw ldd "$here/$program" | grep -q 'not found'; then
            echo "$program: skipped, libcudart.so.13 is not here" >&2
        else
            echo "$program"
        fi
    done
}

has_module() { "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" 2>/dev/null; }

table_head() { "$here/watch" --head; }

# watched NAME LIMIT(bytes, or - for none) [option of cuslice run…] -- program args…: one row; without a limit, without
# cuslice. CHECK_PROCESSES of them take memory (1); with CHECK_TABLE the row has its own head.
watched() {
    local name=$1 limit=$2 options=() watch
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    watch=("$here/watch" --name "$name" --processes "${CHECK_PROCESSES:-1}" ${CHECK_TABLE:+--table yes})
    if [ "$limit" = - ]; then
        raw "${watch[@]}" -- "$@"
    else
        # The watcher itself is outside: only what it starts is in a slice.
        raw "${watch[@]}" --limit "$limit" -- "${cuslice_run[@]}" --limit "$((limit / MiB))MiB" "${options[@]}" -- "$@"
    fi
}

for file in "$here"/steps/*.sh; do
    # shellcheck source=/dev/null
    . "$file"
done
"$@"
