# SPDX-License-Identifier: Apache-2.0
# Promises of limits, modes, jobs and splits, tried on our own programs.

limit() {
    local failed=0 program
    find_runtime
    table_head
    for program in limit_driver $(runtime_programs); do
        watched "$program, no slice, at most 1 GiB" - -- "$here/$program" $GiB || failed=1
    done
    slices
    watched "limit_driver, 1 GiB" $GiB -- "$here/limit_driver" || failed=1
    for program in limit_driver $(runtime_programs 2>/dev/null); do
        watched "$program, 2 GiB" $((2 * GiB)) -- "$here/$program" || failed=1
    done
    return $failed
}

# with_runtime NAME: $program, from NAME.cpp, with the runtime inside. It has code of NVIDIA's in it and is in no archive:
# it is built here, if it isn't there and nvcc is.
with_runtime() {
    local nvcc
    program=$here/$1_nvcc_static
    [ ! -x "$program" ] || return 0
    [ -z "$CHECK_FAKE" ] || skip "$1_nvcc_static was not built, and there is no device code for the fake GPU to build here"
    nvcc=$(tool nvcc) && [ -e "$here/$1.cpp" ] || skip "$1_nvcc_static was not built, and no nvcc is here"
    program=$CHECK_WORK/$1_nvcc_static
    guarded 14 1 "$nvcc" -std=c++20 -O1 -arch native -cudart static -DCUSLICE_CHECK_STATIC_RUNTIME -I"$CHECK_BUILD" \
        -x cu "$here/$1.cpp" -Xlinker "$here/libcuslice_check.a" -o "$program" >&2 ||
        { echo "nvcc did not build it: $?" >&2 && return 1; }
}

static_runtime() {
    local failed=0 program
    with_runtime limit_runtime || return
    traced "$program" || failed=1
    echo
    table_head
    watched_or_skipped "static runtime, no slice, at most 1 GiB" - -- "$program" $GiB || failed=1
    slices
    watched_or_skipped "static runtime, 2 GiB" $((2 * GiB)) -- "$program" || failed=1
    watched "static runtime led to the shared one, 2 GiB" $((2 * GiB)) --redirect-runtime=program -- "$program" || failed=1
    return $failed
}

# On the fake GPU NVIDIA's own runtime does not start, and the program says so.
watched_or_skipped() {
    watched "$@"
    local status=$?
    return $((status == 77 ? 0 : status))
}

# The sums over both processes, which hold what they got at the same time.
job() {
    local failed=0 first
    export CHECK_SHARED=1
    # Each is a program of its own below a shell, whose exit status tells of both.
    both='"$@" & first=$!; "$@" & second=$!; wait $first; status=$?; wait $second && exit $status'
    table_head
    CHECK_PROCESSES=2 watched "two processes, no slice, at most 512 MiB each" - -- \
        bash -c "$both" bash "$here/limit_driver" $((512 * MiB)) || failed=1
    slices
    CHECK_PROCESSES=2 watched "two processes of one job, 2 GiB together" $((2 * GiB)) -- \
        bash -c "$both" bash "$here/limit_driver" || failed=1
    CHECK_PROCESSES=2 watched "two processes of one job, growth, 2 GiB together" $((2 * GiB)) --allocator growth -- \
        bash -c "$both" bash "$here/limit_driver" || failed=1
    # Two jobs that name one group: the limit of each is more than the group has.
    CHECK_PROCESSES=2 raw "$here/watch" --name "two jobs of one group, 3 GiB together" --processes 2 --limit $((3 * GiB)) -- \
        bash -c "$both" bash "${cuslice_run[@]}" --limit 2GiB --group check --group-limit 3GiB -- "$here/limit_driver" || failed=1
    unset CHECK_SHARED
    watched "two slices at once: 2 GiB" $((2 * GiB)) -- "$here/limit_driver" &
    first=$!
    watched "two slices at once: 1 GiB" $GiB -- "$here/limit_driver" || failed=1
    wait $first || failed=1
    return $failed
}

modes() {
    local failed=0 mode options idle
    echo "### Each way to get memory"
    ways "without cuslice" - -- || failed=1
    slices
    for mode in direct growth prealloc deferred; do
        options=(--allocator "$mode") idle=()
        [ $mode != deferred ] || options=(--allocator growth --free deferred)
        [ $mode != growth ] || options+=(--idle-release 500ms --record "$CHECK_WORK/recorded") idle=(1500)
        ways "$mode" $((2 * GiB)) "${options[@]}" -- "${idle[@]}" || failed=1
        if [ $mode = growth ]; then printf '\nRecorded: %s lines.\n' "$(wc -l <"$CHECK_WORK/recorded")"; fi
    done
    echo
    echo "### All that can be had"
    echo
    table_head
    for mode in growth prealloc deferred; do
        options=(--allocator "$mode")
        [ $mode != deferred ] || options=(--allocator growth --free deferred)
        watched "driver API, $mode, 2 GiB" $((2 * GiB)) "${options[@]}" -- "$here/limit_driver" || failed=1
    done
    return $failed
}

# ways NAME LIMIT [option…] -- [argument…]: the program's own table as it is made, then its row from outside.
ways() {
    local before=()
    echo
    echo "$1:"
    echo
    while [ "$1" != -- ]; do before+=("$1") && shift; done
    CHECK_TABLE=yes watched "${before[@]}" -- "$here/ways" "${@:2}"
}

# As nvcc links it by default, led to the shared runtime: two parts, values, copies between them, a reset.
static_split() {
    local failed=0 gpu program
    with_runtime parts_runtime || return
    find_runtime
    slices
    gpu=$(raw "$here/devices" about | sed -n 's/^uuid //p')
    printf '```\n'
    guarded 5 1 "${cuslice_run[@]}" --redirect-runtime=program --split "$gpu=2GiB+2GiB" -- "$program" 2 2>&1 || {
        echo "(exit $?)"
        failed=1
    }
    printf '```\n'
    return $failed
}

# Two parts, through the driver and the runtime, each with what it printed: NVIDIA's runtime may refuse.
split() {
    local failed=0 program gpu samples=$CHECK_BUILD/lib/cuslice/samples
    find_runtime
    gpu=$(raw "$here/devices" about | sed -n 's/^uuid //p')  # an index is NVML's, which may not be there
    # The samples were linked to no file of NVIDIA's; what is on this machine may be another major version.
    for program in towers_driver towers_runtime13 towers_runtime12; do
        printf '%s, without cuslice:\n\n```\n' "$program"
        raw guarded 3 1 "$samples/$program" 2>&1 || { echo "(exit $?)"; [ "$program" = towers_runtime12 ] || failed=1; }
        printf '```\n\n'
    done
    slices
    for program in towers_driver towers_runtime13 towers_runtime12; do
        printf '%s, two parts:\n\n```\n' "$program"
        guarded 4 2 "${cuslice_run[@]}" --split "$gpu=2GiB+2GiB" -- "$samples/$program" 2>&1 || { echo "(exit $?)"; [ "$program" = towers_runtime12 ] || failed=1; }
        printf '```\n\n'
    done
    return $failed
}
