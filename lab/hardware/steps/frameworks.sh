# SPDX-License-Identifier: Apache-2.0
# Frameworks, where they are installed: optional, each a step of its own.

# needs MODULE: skips the step if it is not there, or can't be.
needs() {
    has_module "$1" || skip "$1 is not installed for $python"
    [ -z "$CHECK_FAKE" ] || [ "$1" = numba ] ||
        skip "$1 needs NVIDIA's own runtime, which does not start on the fake GPU"
}

version_of() {
    "$python" -c "import importlib.metadata as m
for n in ('$1', 'cupy-cuda13x', 'cupy-cuda12x', 'cupy-cuda11x'):
    try: print(m.version(n)); break
    except m.PackageNotFoundError: pass"
}

# framework MODULE SCRIPT GiB [NAME=VALUE…]: a row without cuslice, and one in a slice; sets failed.
framework() {
    local module=$1 script=$here/frameworks/$2 gib=$3 name
    shift 3
    needs "$module"
    name="$module $(version_of "$module")${1:+, $*}"
    table_head
    CHECK_MOST=$GiB watched "$name, no slice, at most 1 GiB" - -- env "$@" "$python" "$script" || failed=1
    slices
    watched "$name, $gib GiB" $((gib * GiB)) -- env "$@" "$python" "$script" || failed=1
}

torch_limit() {
    local failed=0
    framework torch torch_limit.py 4
    watched "torch, growth, 4 GiB" $((4 * GiB)) --allocator growth -- "$python" "$here/frameworks/torch_limit.py" || failed=1
    watched "torch, expandable segments, 4 GiB" $((4 * GiB)) -- \
        env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True PYTORCH_ALLOC_CONF=expandable_segments:True \
        "$python" "$here/frameworks/torch_limit.py" || failed=1
    watched "torch, cudaMallocAsync, 4 GiB" $((4 * GiB)) -- \
        env PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_ALLOC_CONF=backend:cudaMallocAsync \
        "$python" "$here/frameworks/torch_limit.py" || failed=1
    return $failed
}

torch_split() {
    local status
    needs torch
    slices
    printf 'Two parts, with cuBLAS in each:\n\n```\n'
    "${cuslice_run[@]}" --split 0=2GiB+2GiB -- "$python" "$here/frameworks/torch_split.py" 2>&1
    status=$?
    printf '```\n'
    return $status
}

# CUDA graphs: PyTorch's own allocator allocates in a relaxed part of the capture, cudaMallocAsync makes nodes.
torch_graphs() {
    local allocator mode failed=0
    needs torch
    echo "| allocator | without cuslice | direct, 3 GiB | growth, 3 GiB |"
    echo "|---|---|---|---|"
    for allocator in native cudaMallocAsync; do
        export PYTORCH_CUDA_ALLOC_CONF=backend:$allocator PYTORCH_ALLOC_CONF=backend:$allocator
        guarded 9 1 "$python" "$here/frameworks/torch_graphs.py" >"$CHECK_WORK/graphs.without" 2>&1 &
        if [ -z "$CHECK_STOPPED" ]; then
            for mode in direct growth; do
                guarded 9 1 "${cuslice_run[@]}" --allocator $mode --limit 3GiB -- \
                    "$python" "$here/frameworks/torch_graphs.py" \
                    >"$CHECK_WORK/graphs.$mode" 2>&1 &
            done
        fi
        wait
        printf '| %s |' $allocator
        for mode in without direct growth; do
            if grep -q '^replayed: right$' "$CHECK_WORK/graphs.$mode" 2>/dev/null; then
                printf ' right |'
            elif [ $mode != without ] && [ -n "$CHECK_STOPPED" ]; then
                printf ' not run |'
            else
                printf ' **wrong** |' && failed=1
                cat "$CHECK_WORK/graphs.$mode" >&2
            fi
        done
        echo
    done
    return $failed
}

# Ranks on one GPU: gloo without a split and with one, and NCCL, which refuses several ranks on a GPU unless it is told
# (and then takes two).
ranks() {
    local failed=0 version
    needs torch
    ranks_of gloo "without cuslice" || failed=1
    slices
    ranks_of gloo "two parts" "${cuslice_run[@]}" --split 0=4GiB+4GiB -- || failed=1
    version=$("$python" -c 'import torch; print(*torch.cuda.nccl.version(), sep=".")') || return 1
    if [ "$(printf '%s\n' 2.30 "$version" | sort -V | head -n 1)" != 2.30 ]; then
        echo "nccl, two parts: not run. Before 2.30 NCCL refuses several ranks on a GPU, whatever it is told;" \
            "this is $version."
        return $failed
    fi
    ranks_of nccl "led to the shared runtime, two parts" \
        env NCCL_MULTI_RANK_GPU_ENABLE=1 "${cuslice_run[@]}" --redirect-runtime=all --split 0=4GiB+4GiB -- || failed=1
    return $failed
}

ranks_of() {
    local backend=$1 where=$2 status
    shift 2
    printf '%s, %s:\n\n```\n' "$backend" "$where"
    guarded 12 2 "$@" "$python" -m torch.distributed.run --standalone --nproc-per-node 2 \
        "$here/frameworks/torch_ranks.py" "$backend" 2>&1 | tail -n 25 | cut -c 1-300
    status=${PIPESTATUS[0]}
    printf 'exit status %s\n```\n\n' "$status"
    return "$status"
}

limit_jax() {
    local failed=0
    framework jax jax_limit.py 4 XLA_PYTHON_CLIENT_PREALLOCATE=false
    watched "jax, as it is, 4 GiB" $((4 * GiB)) -- "$python" "$here/frameworks/jax_limit.py" || failed=1
    return $failed
}

# TensorFlow 2.21 doesn't find libcusolver.so.11 of its own packages; of other versions this is no harm.
tensorflow_path() {
    "$python" -c "import importlib.util as u, os
found = u.find_spec('nvidia')
folders = [os.path.join(f, 'cusolver', 'lib') for f in (found.submodule_search_locations if found else [])]
print(':'.join([f for f in folders if os.path.isdir(f)] + [p for p in [os.environ.get('LD_LIBRARY_PATH')] if p]))"
}

limit_tensorflow() {
    needs tensorflow
    slices
    table_head
    watched "tensorflow $(version_of tensorflow), Keras, 4 GiB" $((4 * GiB)) -- \
        env LD_LIBRARY_PATH="$(tensorflow_path)" "$python" "$here/frameworks/tensorflow_limit.py"
}

tensorflow_split() {
    local status
    needs tensorflow
    slices
    printf 'Two parts, added up over without NCCL:\n\n```\n'
    "${cuslice_run[@]}" --split 0=4GiB+4GiB -- \
        env LD_LIBRARY_PATH="$(tensorflow_path)" TF_CPP_MIN_LOG_LEVEL=2 \
        "$python" "$here/frameworks/tensorflow_split.py" 2>&1 |
        tail -n 25 | cut -c 1-300
    status=${PIPESTATUS[0]}
    printf '```\n'
    return "$status"
}

limit_cupy() {
    local failed=0
    framework cupy cupy_limit.py 3
    watched "cupy, led to the shared runtime, 3 GiB" $((3 * GiB)) --redirect-runtime=all -- \
        "$python" "$here/frameworks/cupy_limit.py" || failed=1
    return $failed
}
limit_numba() {
    local failed=0
    framework numba numba_limit.py 2
    return $failed
}
