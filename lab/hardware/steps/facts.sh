# SPDX-License-Identifier: Apache-2.0
# Facts of this GPU and its driver, without and under cuslice.

context_cost() {
    echo "Without cuslice:"
    echo
    raw "$here/context_cost" || return 1
    slices
    echo
    echo "In a slice of 4 GiB:"
    echo
    sliced 4GiB "$here/context_cost"
}

# ---- times ----------------------------------------------------------------------------------------------------------

# In turn, so that what changes on the machine meanwhile meets all alike. The first run of each is written at once.
call_times() {
    local round
    for round in 1 2 3; do
        timed "without cuslice" native $round raw || return 1
        slices
        timed "in a slice of 4 GiB" direct $round "${cuslice_run[@]}" --limit 4GiB -- || return 1
        timed "in a slice of 4 GiB, growth" growth $round "${cuslice_run[@]}" --limit 4GiB --allocator growth -- ||
            return 1
    done
    echo "### Medians of three runs each, taken in turn"
    echo
    median_times
}

# timed NAME KEY ROUND command…
timed() {
    local name=$1 file=$CHECK_WORK/times.$2.$3 first=$3
    shift 3
    "$@" "$here/timings" >"$file" || return 1
    [ "$first" = 1 ] || return 0
    printf '### The first run, %s\n\n| call | median | p99 |\n|---|---|---|\n' "$name"
    awk -F'\t' "$awk_unit"'!/^#/ && NF >= 3 { printf "| %s | %s | %s |\n", $1, unit($2), unit($3) }
        /^#/ { print "| " substr($0, 3) " | | |" }' "$file"
    echo
}
awk_unit='function unit(ns) {
    if (ns < 1000) return sprintf("%.1f ns", ns)
    return ns < 1e6 ? sprintf("%.2f µs", ns / 1e3) : sprintf("%.2f ms", ns / 1e6)
}
'

median_times() {
    awk -F'\t' "$awk_unit"'
        function middle(key,  a, b, c) { a = m[key, 1]; b = m[key, 2]; c = m[key, 3]
            return (a - b) * (c - a) >= 0 ? a : (b - a) * (c - b) >= 0 ? b : c }
        function more(key,  d) { d = middle(key "\t" name) - middle("native\t" name)
            return (d < 0 ? "−" : "+") unit(d < 0 ? -d : d) }
        FNR == 1 { split(FILENAME, part, "."); n = length(part); which = part[n - 1]; round = part[n] }
        /^#/ || NF < 3 { next }
        { if (!($1 in seen)) { seen[$1] = 1; order[++count] = $1 }
          m[which "\t" $1, round] = $2 }
        END { print "| call | without | direct | more | growth | more |"; print "|---|---|---|---|---|---|"
              for (i = 1; i <= count; i++) { name = order[i]
                  printf "| %s | %s | %s | %s | %s | %s |\n", name, unit(middle("native\t" name)),
                      unit(middle("direct\t" name)), more("direct"), unit(middle("growth\t" name)), more("growth") } }
    ' "$CHECK_WORK"/times.{native,direct,growth}.{1,2,3}
}

blocking() {
    echo "A kernel runs for 60 ms; a call that takes more than half of that waited for it."
    echo
    echo "| call | without |"
    echo "|---|---|"
    raw "$here/blocking" | tee "$CHECK_WORK/blocking.native" | awk -F'\t' '{ print "| " $1 " | " $2 " |"; fflush() }'
    [ "${PIPESTATUS[0]}" = 0 ] || return 1
    slices
    echo
    echo "| call | under cuslice | |"
    echo "|---|---|---|"
    sliced 4GiB "$here/blocking" | awk -F'\t' '
        function word(text) { return substr(text, 1, index(text, "(") - 2) }
        NR == FNR { native[$1] = $2; next }
        { differs = word($2) != word(native[$1]); if (differs) count++
          printf "| %s | %s | %s |\n", $1, $2, differs ? "**differs**" : ""; fflush() }
        END { printf "\n%d of %d differ.\n", count, FNR }' "$CHECK_WORK/blocking.native" -
    return "${PIPESTATUS[0]}"
}

# A program's own calls must be answered in a slice as they are without. Two rows are cuslice's to answer: more
# than the limit is refused before the driver is asked, and a cache takes a block back without asking.
captures() {
    local failed=0 mode own='^\| cuMem(Alloc_v2 of more than there is|Free_v2) \|'
    raw "$here/captures" | tee "$CHECK_WORK/captures.native"
    [ "${PIPESTATUS[0]}" = 0 ] || return 1
    slices
    for mode in direct growth; do
        echo
        if ! sliced_in $mode 2GiB "$here/captures" >"$CHECK_WORK/captures.$mode"; then
            echo "In a slice, $mode: **failed**" && failed=1
        elif diff <(grep -vE "$own" "$CHECK_WORK/captures.native") <(grep -vE "$own" "$CHECK_WORK/captures.$mode") \
            >"$CHECK_WORK/captures.differ"; then
            echo "In a slice of 2 GiB, $mode: every other row is the same, and these are cuslice's own:" && echo
            grep -E "$own" "$CHECK_WORK/captures.$mode"
        else
            echo "In a slice of 2 GiB, $mode, **these rows differ**:" && failed=1
            echo
            head -n 2 "$CHECK_WORK/captures.native"
            sed -n 's/^> //p' "$CHECK_WORK/captures.differ"
        fi
    done
    return $failed
}

# ---- what the driver does -------------------------------------------------------------------------------------------

lookups() {
    raw "$here/lookups" dump >"$CHECK_WORK/lookups.raw" || return 1
    slices
    sliced 2GiB "$here/lookups" dump >"$CHECK_WORK/lookups.ours" || return 1
    "$here/lookups" compare "$CHECK_WORK/lookups.raw" "$CHECK_WORK/lookups.ours"
    local status=$?
    echo
    raw "$here/lookups" unknown
    return $status
}

side_by_side() { raw "$here/side_by_side"; }

ipc() {
    echo "Without cuslice:"
    echo
    raw "$here/ipc" || return 1
    slices
    echo
    echo "In a slice of 2 GiB:"
    echo
    sliced 2GiB "$here/ipc"
}

shown() {
    printf 'Without cuslice:\n\n```\n'
    raw nvidia-smi --query-gpu=index,name,memory.total,memory.used,memory.free --format=csv 2>&1 ||
        echo "nvidia-smi: not here, or it failed"
    printf '```\n'
    slices
    printf '\nIn a slice of 2 GiB:\n\n```\n'
    sliced 2GiB nvidia-smi --query-gpu=index,name,memory.total,memory.used,memory.free --format=csv 2>&1 ||
        echo "nvidia-smi: not here, or it failed"
    "$CHECK_BUILD/bin/cuslice" devices ${CHECK_FAKE:+--fake "$CHECK_FAKE"} --limit 2GiB 2>&1
    local status=$?
    echo '```'
    return $status
}

visible_devices() {
    local value uuid
    uuid=$(raw "$here/devices" about | sed -n 's/^uuid //p')
    slices
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
        echo "| \`$value\` | $("${cuslice_run[@]}" --gpus 0 -- \
            env CUDA_VISIBLE_DEVICES="$value" "$here/devices" count 2>&1) |"
    done
}

kernels() {
    local file
    echo "| file | without cuslice | in a slice of 2 GiB |"
    echo "|---|---|---|"
    for file in kernels.fatbin kernels.ptx; do
        if [ ! -e "$here/$file" ]; then
            echo "| $file | not built: no nvcc where this was built | |"
            continue
        fi
        printf '| %s | %s | ' $file "$(computes $file raw || echo " **failed**")"
        if [ -z "$CHECK_STOPPED" ]; then
            echo "$(computes $file "${cuslice_run[@]}" --limit 2GiB -- || echo " **failed**") |"
        else
            echo "not run |"
        fi
    done | tee "$CHECK_WORK/kernels"
    ! grep -qF '**failed**' "$CHECK_WORK/kernels"
}

# computes FILE command…: what the program says of its result.
computes() {
    local file=$1
    shift
    "$@" "$here/limit_driver" $((256 * MiB)) "$file" >"$CHECK_WORK/computed" 2>&1 ||
        { tail -n 1 "$CHECK_WORK/computed" && return 1; }
    sed -n 's/^result //p' "$CHECK_WORK/computed"
}
