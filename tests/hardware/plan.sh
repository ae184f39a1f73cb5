#!/bin/bash
# The steps of scripts/gpu_check.sh: each is a function that prints Markdown. It runs in a process of its own with a
# time-out, so that none can stop the others. Exit status: 0 done and as it should be, 77 skipped (the last line of
# stderr says why), anything else failed.
#
#   plan.sh steps        the list: function, seconds at the most, title
#   plan.sh STEP         runs one
#
# From gpu_check.sh: CHECK_BUILD, CHECK_WORK (a folder for this run), CHECK_FAKE (the fake GPU to use, or empty).
set -u
here=$CHECK_BUILD/tests/hardware
fake_folder=$CHECK_BUILD/lib/cuslice/fake
python=${GPU_CHECK_PYTHON:-python3}
GiB=$((1 << 30))

steps() {
    cat <<'END'
limit_driver 40 The limit, driver API
limit_runtime 60 The limit, CUDA runtime, shared and static
two_at_once 40 Two programs at once, each in its own slice
limit_torch 70 The limit, PyTorch
limit_cupy 50 The limit, CuPy
limit_jax 70 The limit, JAX
limit_numba 50 The limit, Numba
split 120 One GPU split in two: what programs and frameworks see of it
shown 20 What nvidia-smi and cuslice devices show in a slice
lookups 20 cuGetProcAddress and the exported addresses
context_cost 40 What a context, modules and allocations take, counted to the byte
libraries 60 What cuBLAS, cuDNN and NCCL take
call_times 70 What calls cost, without and under cuslice
blocking 40 Which calls wait for a running kernel
side_by_side 20 Two contexts, and kernels side by side
ipc 20 Memory for other processes, and duplicate locations
visible_devices 20 CUDA_VISIBLE_DEVICES with duplicates
kernels 20 Kernels as a fat binary and as PTX
askers 70 Which modules ask for cuGetProcAddress
identities 5 NVIDIA's runtime with other identities
END
}

# ---- how programs are run -------------------------------------------------------------------------------------------

skip() { echo "$*" >&2; exit 77; }

# Without cuslice.
raw() {
    if [ -n "$CHECK_FAKE" ]; then
        CUSLICE_FAKE=$CHECK_FAKE LD_LIBRARY_PATH=$fake_folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
    else
        "$@"
    fi
}

# sliced LIMIT program args…: in a slice.
slice_command() { echo "$CHECK_BUILD/bin/cuslice" run ${CHECK_FAKE:+--fake "$CHECK_FAKE"} --limit "$1" --; }
sliced() {
    local limit=$1
    shift
    $(slice_command "$limit") "$@"
}

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

table_head() {
    echo "| program | total shown | free shown | got | refused with | counted by cuslice | NVML, from outside |" \
        "nvidia-smi | NVML − counted | highest from outside | ≤ limit | computation |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
}

# watched NAME LIMIT(bytes or -) program args…: one row; without a limit, without cuslice.
watched() {
    local name=$1 limit=$2
    shift 2
    if [ "$limit" = - ]; then
        raw "$here/watch" --name "$name" -- "$@"
    else
        # The watcher itself is outside: only what it starts is in a slice.
        raw "$here/watch" --name "$name" --limit "$limit" -- $(slice_command "$((limit >> 20))MiB") "$@"
    fi
}

# ---- the limit ------------------------------------------------------------------------------------------------------

limit_driver() {
    local failed=0
    table_head
    watched "driver API, no slice, at most 1 GiB" - "$here/limit_driver" $GiB || failed=1
    watched "driver API, 2 GiB" $((2 * GiB)) "$here/limit_driver" || failed=1
    watched "driver API, 1 GiB" $GiB "$here/limit_driver" || failed=1
    return $failed
}

limit_runtime() {
    local failed=0 program folder status
    folder=$(folder_of_library libcudart.so.13) || echo "libcudart.so.13 was not found beside the loader's own path" >&2
    if [ -z "$CHECK_FAKE" ] && [ -n "$folder" ]; then
        export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
    fi
    table_head
    for program in limit_runtime limit_runtime_nvcc_shared limit_runtime_nvcc_static; do
        if [ ! -x "$here/$program" ]; then
            echo "$program: not built (no nvcc, or no libcudart.so.13, where this was built)" >&2
            continue
        fi
        watched "$program, 2 GiB" $((2 * GiB)) "$here/$program"
        status=$?
        [ $status = 0 ] || [ $status = 77 ] || failed=1
    done
    return $failed
}

two_at_once() {
    local failed=0 first
    table_head
    watched "one of two, 2 GiB" $((2 * GiB)) "$here/limit_driver" &
    first=$!
    watched "the other, 1 GiB" $GiB "$here/limit_driver" || failed=1
    wait $first || failed=1
    return $failed
}

# framework MODULE SCRIPT GiB [NAME=VALUE…]: a row, below the table's head if that is not there yet
head_done=0
framework() {
    local module=$1 script=$2 gib=$3
    shift 3
    "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)" 2>/dev/null ||
        skip "$module is not installed for $python"
    [ -z "$CHECK_FAKE" ] || [ "$module" = numba ] ||
        skip "$module needs NVIDIA's own runtime, which does not start on the fake GPU"
    [ $head_done = 1 ] || table_head
    head_done=1
    watched "$module $("$python" -c "import importlib.metadata as m
for n in ('$module', 'cupy-cuda13x', 'cupy-cuda12x', 'cupy-cuda11x'):
    try: print(m.version(n)); break
    except m.PackageNotFoundError: pass"), $gib GiB${1:+, $*}" \
        $((gib * GiB)) env "$@" "$python" "$here/frameworks/$script"
}
limit_torch() { framework torch torch_limit.py 4; }
limit_cupy() { framework cupy cupy_limit.py 3; }
limit_numba() { framework numba numba_limit.py 2; }
limit_jax() {
    local failed=0
    framework jax jax_limit.py 4 XLA_PYTHON_CLIENT_PREALLOCATE=false || failed=$?
    framework jax jax_limit.py 4 || failed=$?
    return $failed
}

shown() {
    echo '```'
    sliced 2GiB nvidia-smi --query-gpu=index,name,memory.total,memory.used,memory.free --format=csv 2>&1 ||
        echo "nvidia-smi: not here, or it failed"
    "$CHECK_BUILD/bin/cuslice" devices ${CHECK_FAKE:+--fake "$CHECK_FAKE"} --limit 2GiB 2>&1
    local status=$?
    echo '```'
    return $status
}

# Two parts, through the driver, the shared runtime and PyTorch, each with what it printed: NVIDIA's runtime may refuse.
split() {
    local failed=0 program folder samples=$CHECK_BUILD/docs/samples
    folder=$(folder_of_library libcudart.so.13) || true
    if [ -z "$CHECK_FAKE" ] && [ -n "$folder" ]; then
        export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
    fi
    parts() { "$CHECK_BUILD/bin/cuslice" run ${CHECK_FAKE:+--fake "$CHECK_FAKE"} --split 0=2GiB+2GiB -- "$@"; }
    for program in towers_driver towers_runtime13 towers_runtime12; do
        printf '%s\n\n```\n' "$program:"
        parts timeout 30 "$samples/$program" 2>&1 || { echo "(exit $?)"; [ "$program" = towers_runtime12 ] || failed=1; }
        printf '```\n\n'
    done
    printf 'PyTorch:\n\n```\n'
    if "$python" -c 'import torch' 2>/dev/null; then
        parts timeout 60 "$python" "$here/frameworks/torch_split.py" 2>&1 || { echo "(exit $?)"; failed=1; }
    else
        echo "not here"
    fi
    printf '```\n'
    return $failed
}

# ---- the driver -----------------------------------------------------------------------------------------------------

lookups() {
    raw "$here/lookups" dump >"$CHECK_WORK/lookups.raw" || return 1
    sliced 2GiB "$here/lookups" dump >"$CHECK_WORK/lookups.ours" || return 1
    "$here/lookups" compare "$CHECK_WORK/lookups.raw" "$CHECK_WORK/lookups.ours"
    local status=$?
    echo
    raw "$here/lookups" unknown
    return $status
}

context_cost() {
    echo "Without cuslice:"
    echo
    raw "$here/context_cost" || return 1
    echo
    echo "In a slice of 4 GiB:"
    echo
    sliced 4GiB "$here/context_cost"
}

# Their files, as far as they are found: a line `name folder file` each, the newest of a name alone.
nvidia_libraries() {
    local file folder name found=
    for file in libcublas.so.13 libcublas.so.12 libcudnn.so.9 libnccl.so.2; do
        folder=$(folder_of_library $file) || continue
        name=${file#lib} name=${name%%.*}
        case $found in *" $name "*) continue ;; esac
        found="$found $name "
        echo "$name $folder $file"
    done
}

libraries() {
    local failed=0 name file folder found=
    [ -z "$CHECK_FAKE" ] || skip "they need NVIDIA's own runtime, which does not start on the fake GPU"
    echo "In slices of 8 GiB:"
    echo
    echo "| step | NVML's figure | step's size | counted by cuslice | NVML − counted |"
    echo "|---|---|---|---|---|"
    while read -r name folder file; do
        found=1
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder \
            sliced 8GiB "$here/libraries" "$name" "$folder/$file"
        case $? in 0 | 77) ;; *) failed=1 ;; esac
    done < <(nvidia_libraries)
    [ -n "$found" ] || skip "neither cuBLAS nor cuDNN nor NCCL was found"
    return $failed
}

call_times() {
    local round
    for round in 1 2 3; do
        raw "$here/timings" >"$CHECK_WORK/times.raw.$round" || return 1
        sliced 4GiB "$here/timings" >"$CHECK_WORK/times.ours.$round" || return 1
    done
    echo "Medians of three runs each, taken in turn; p99 is the worst of the three."
    echo
    awk -F'\t' '
        function unit(ns) {
            if (ns < 1000) return sprintf("%.1f ns", ns)
            return ns < 1e6 ? sprintf("%.2f µs", ns / 1e3) : sprintf("%.2f ms", ns / 1e6)
        }
        function middle(key,  a, b, c) { a = m[key, 1]; b = m[key, 2]; c = m[key, 3]
            return (a - b) * (c - a) >= 0 ? a : (b - a) * (c - b) >= 0 ? b : c }
        FNR == 1 { split(FILENAME, part, "."); n = length(part); which = part[n - 1]; round = part[n] }
        /^#/ || NF < 3 { next }
        { if (!($1 in seen)) { seen[$1] = 1; order[++count] = $1 }
          m[which "\t" $1, round] = $2; if ($3 > p[which "\t" $1]) p[which "\t" $1] = $3 }
        END { print "| call | without | p99 | under cuslice | p99 | more |"; print "|---|---|---|---|---|---|"
              for (i = 1; i <= count; i++) { r = "raw\t" order[i]; o = "ours\t" order[i]
                  d = middle(o) - middle(r)
                  printf "| %s | %s | %s | %s | %s | %s%s |\n", order[i], unit(middle(r)), unit(p[r]), unit(middle(o)),
                      unit(p[o]), d < 0 ? "−" : "+", unit(d < 0 ? -d : d) } }
    ' "$CHECK_WORK"/times.{raw,ours}.{1,2,3}
}

blocking() {
    raw "$here/blocking" >"$CHECK_WORK/blocking.raw" || return 1
    sliced 4GiB "$here/blocking" >"$CHECK_WORK/blocking.ours" || return 1
    echo "A kernel runs for 60 ms; a call that takes more than half of that waited for it."
    echo
    echo "| call | without | under cuslice | |"
    echo "|---|---|---|---|"
    paste "$CHECK_WORK/blocking.raw" "$CHECK_WORK/blocking.ours" | awk -F'\t' '
        function word(text) { return substr(text, 1, index(text, "(") - 2) }
        { differs = word($2) != word($4); if (differs) count++
          printf "| %s | %s | %s | %s |\n", $1, $2, $4, differs ? "**differs**" : "" }
        END { printf "\n%d of %d differ.\n", count, NR }'
}

side_by_side() { raw "$here/side_by_side"; }

ipc() {
    echo "Without cuslice:"
    echo
    raw "$here/ipc" || return 1
    echo
    echo "In a slice of 2 GiB:"
    echo
    sliced 2GiB "$here/ipc"
}

visible_devices() {
    local value uuid
    uuid=$(raw "$here/devices" about | sed -n 's/^uuid //p')
    echo "| CUDA_VISIBLE_DEVICES | without | under cuslice |"
    echo "|---|---|---|"
    echo "| (unset) | $(raw "$here/devices" count) | $(sliced 2GiB "$here/devices" count) |"
    for value in "" 0 0,0 0,1,0 -1 0,-1 "0 , 0" +0 -0 0gpu "0 0" "$uuid" "$uuid,$uuid" "${uuid%%-*}-${uuid:4:4}" \
        "GPU-$(echo "${uuid#GPU-}" | tr a-f A-F)" "0,$uuid" "$uuid,0" nonsense; do
        export CUDA_VISIBLE_DEVICES=$value
        echo "| \`$value\` | $(raw "$here/devices" count 2>&1) | $(sliced 2GiB "$here/devices" count 2>&1) |"
    done
    unset CUDA_VISIBLE_DEVICES
    echo
    echo "Set by the program itself under --gpus 0:"
    echo
    echo "| CUDA_VISIBLE_DEVICES | sees |"
    echo "|---|---|"
    for value in "" 0 0,1 1 -1 "$uuid"; do
        echo "| \`$value\` | $("$CHECK_BUILD/bin/cuslice" run ${CHECK_FAKE:+--fake "$CHECK_FAKE"} --gpus 0 -- \
            env CUDA_VISIBLE_DEVICES="$value" "$here/devices" count 2>&1) |"
    done
}

kernels() {
    local failed=0 file answer
    echo "| file | loaded, and computes |"
    echo "|---|---|"
    for file in kernels.fatbin kernels.ptx; do
        if [ ! -e "$here/$file" ]; then
            echo "| $file | not built: no nvcc where this was built |"
            continue
        fi
        sliced 2GiB "$here/limit_driver" $((256 << 20)) $file >"$CHECK_WORK/kernels" 2>&1 || failed=1
        answer=$(sed -n 's/^result //p' "$CHECK_WORK/kernels")
        echo "| $file | ${answer:-**failed**: $(tail -n 1 "$CHECK_WORK/kernels")} |"
    done
    return $failed
}

# observed NAME program args…: who asked for cuGetProcAddress while the program ran.
observed() {
    local name=$1
    shift
    rm -f "$CHECK_WORK/asked"
    LD_AUDIT=$here/observer.so CHECK_OBSERVER=$CHECK_WORK/asked \
        raw timeout 40 "$@" >/dev/null 2>"$CHECK_WORK/asked.err" ||
        echo "| $name | | it ended with: $(tail -n 1 "$CHECK_WORK/asked.err" | cut -c 1-200) | | |"
    [ -e "$CHECK_WORK/asked" ] || return 0
    sort "$CHECK_WORK/asked" | uniq -c | sed -E "s/^ *([0-9]+) (.*)\t(.*)\t(.*)$/| $name | \2 | \3 | \4 | \1 |/"
}

askers() {
    local module name folder file
    [ -e "$here/observer.so" ] || skip "observer.so was not built"
    echo "The modules that bound cuGetProcAddress, by linking or dlsym, while each was used a little:"
    echo
    echo "| used | name | asked by | answered by | times |"
    echo "|---|---|---|---|---|"
    while read -r name folder file; do
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder \
            observed "$name" "$here/libraries" "$name" "$folder/$file"
    done < <(nvidia_libraries)
    for module in torch cupy jax numba triton; do
        "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)" 2>/dev/null || continue
        [ -z "$CHECK_FAKE" ] || [ "$module" = numba ] || continue
        observed "$module" "$python" "$here/frameworks/touch.py" "$module"
    done
}

identities() {
    skip "not measured: this version shows NVIDIA's runtime the GPUs as they are, and nothing is forged to find out"
}

"$@"
