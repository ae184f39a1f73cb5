# SPDX-License-Identifier: Apache-2.0
# NVIDIA's own libraries and tools, where they are on the machine.

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
    while read -r name folder file; do
        found=1
        echo "$name, without cuslice:"
        echo
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder guarded 5 2 "$here/libraries" "$name" "$folder/$file"
        case $? in 0 | 77) ;; *) failed=1 ;; esac
        echo
        [ -z "$CHECK_STOPPED" ] || continue
        echo "$name, in a slice of 8 GiB:"
        echo
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder \
            guarded 5 2 "${cuslice_run[@]}" --limit 8GiB -- "$here/libraries" "$name" "$folder/$file"
        case $? in 0 | 77) ;; *) failed=1 ;; esac
        echo
    done < <(nvidia_libraries)
    [ -n "$found" ] || skip "neither cuBLAS nor cuDNN nor NCCL was found"
    slices
    return $failed
}

# A tool of NVIDIA's beside its toolkit, or on the path.
tool() { command -v "$1" || ls /usr/local/cuda/bin/"$1" 2>/dev/null; }

tools() {
    local failed=0 sanitizer debugger
    [ -z "$CHECK_FAKE" ] || skip "they need NVIDIA's own driver"
    sanitizer=$(tool compute-sanitizer) debugger=$(tool cuda-gdb)
    [ -n "$sanitizer$debugger" ] || skip "neither compute-sanitizer nor cuda-gdb was found"
    if [ -n "$sanitizer" ]; then check_with "compute-sanitizer" "ERROR SUMMARY: 0 errors" "$sanitizer" --tool memcheck; fi
    if [ -n "$debugger" ]; then
        check_with "cuda-gdb" "Breakpoint 1" "$debugger" -nx -batch -ex "set breakpoint pending on" \
            -ex "break cuLaunchKernel" -ex run -ex backtrace -ex kill --args
    fi
    slices
    return $failed
}

# check_with NAME EXPECTED tool…: limit_driver under it, natively and in a slice; sets failed.
check_with() {
    local name=$1 expected=$2 where command
    shift 2
    for where in "without cuslice" "in a slice of 2 GiB"; do
        command=()
        if [ "$where" != "without cuslice" ]; then
            [ -z "$CHECK_STOPPED" ] || return
            command=("${cuslice_run[@]}" --limit 2GiB --)
        fi
        printf '%s, %s:\n\n```\n' "$name" "$where"
        guarded 5 1 "${command[@]}" "$@" "$here/limit_driver" $((64 * MiB)) >"$CHECK_WORK/tool" 2>&1
        echo "exit status $?"
        tail -n 25 "$CHECK_WORK/tool" | cut -c 1-300
        printf '```\n\n'
        grep -qF "$expected" "$CHECK_WORK/tool" || { failed=1 && echo "**Without \`$expected\`.**" && echo; }
    done
}

# observed NAME program args…: who asked for cuGetProcAddress while the program ran.
observed() {
    local name=$1
    shift
    rm -f "$CHECK_WORK/asked"
    LD_AUDIT=$here/observer.so CHECK_OBSERVER=$CHECK_WORK/asked \
        raw guarded 9 1 "$@" >/dev/null 2>"$CHECK_WORK/asked.err" ||
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
    if [ -n "$CHECK_FAKE" ]; then
        # NVIDIA's own libraries don't start there.
        observed limit_runtime "$here/limit_runtime" $MiB
        return
    fi
    while read -r name folder file; do
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder \
            observed "$name" "$here/libraries" "$name" "$folder/$file"
    done < <(nvidia_libraries)
    for module in torch triton cupy jax numba; do
        has_module $module && observed "$module" "$python" "$here/frameworks/touch.py" "$module"
    done
    return 0
}
