# SPDX-License-Identifier: Apache-2.0
# Shares of a GPU's time: what the driver gives to programs that want all of it, and what cuslice does.

share() {
    local ms failed=0
    [ -x "$here/share_probe" ] || skip "share_probe was not built"
    share_seconds=4
    if [ -n "$CHECK_FAKE" ]; then share_seconds=0.5; fi  # times of a model, which no longer run makes any truer
    steps_a_ms=$(CUSLICE_FAKE_COST=spin=1ms raw "$here/share_probe" calibrate) || return 1
    echo "Programs that always have kernels of a length queued, for $share_seconds s, from the same moment on. Had:" \
        "the kernels that were done, times their length on an idle GPU, as a part of the sum of all and of the time." \
        "Gap: the longest time from the end of a launch to the end of the next one. Turns: for how long a program's" \
        "kernels ran at a time, by the GPU's clock, also within a kernel."
    echo
    echo "| programs | kernels | share | had, % of all | % of the time | gap, ms | launch, µs | longest | turns | ms | longest |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|"
    for ms in 1 5 50; do at_once "without cuslice" stream:$ms:- stream:$ms:-; done
    at_once "without cuslice, a graph" graph:1:- stream:1:-
    at_once "without cuslice, pauses" pauses:5:- pauses:5:-
    [ $failed = 0 ] || return 1
    slices
    shares
    return $failed
}

# By worth, as the steps are.
shares() {
    local ms
    at_once "30:70" stream:5:30 stream:5:70
    at_once "30:70, a graph" graph:1:30 stream:1:70
    for ms in 1 5; do
        at_once "alone, without cuslice" stream:$ms:-
        at_once "alone" stream:$ms:50
    done
    for ms in 1 50; do at_once "30:70" stream:$ms:30 stream:$ms:70; done
    for ms in 1 5 50; do
        at_once "10:90" stream:$ms:10 stream:$ms:90
        at_once "25:25:50" stream:$ms:25 stream:$ms:25 stream:$ms:50
    done
    at_once "50:50, pauses" pauses:5:50 pauses:5:50
}

# at_once NAME MODE:MS:SHARE…: a row for each of these programs, which run together, without cuslice where the share
# is -. Sets failed.
at_once() {
    local name=$1 folder probe mode ms share number=0 pid pids=() status=0
    shift
    folder=$(mktemp -d "$CHECK_WORK/share.XXXXXX")
    mkdir "$folder/meeting"
    for probe in "$@"; do
        IFS=: read -r mode ms share <<<"$probe"
        number=$((number + 1))
        CUSLICE_FAKE_COST=spin=${ms}ms with_share "$share" "$here/share_probe" "$mode" "$ms" "$steps_a_ms" \
            "$share_seconds" $# "$folder/meeting" >"$folder/$number" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
    if [ $status = 0 ]; then
        share_rows "$name" "$folder" "$@"
    else
        echo "| $name | **failed** ($status) | | | | | | | | | |"
        failed=1
    fi
}

# with_share PERCENT program args…
with_share() {
    if [ "$1" = - ]; then
        raw "${@:2}"
    else
        "${cuslice_run[@]}" --share "$1%" -- "${@:2}"
    fi
}

# share_rows NAME FOLDER MODE:MS:SHARE…: of the line that each probe has printed.
share_rows() {
    local name=$1 folder=$2
    shift 2
    awk -v name="$name" -v shares="${*##*:}" '
        function figure(line, key) {
            match(line, "\"" key "\": \"?[^,\"}]*")
            line = substr(line, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
            sub(/^"/, "", line)
            return line
        }
        function turn(line, key) { return figure(line, "turns") == 0 ? "–" : figure(line, key) }
        { line[NR] = $0; sum += figure($0, "had_ms") }
        END {
            split(shares, share, " ")
            for (i = 1; i <= NR; i++)
                printf "| %s | %s, %s ms | %s | %.1f | %.1f | %s | %s | %s | %s | %s | %s |\n", name,
                    figure(line[i], "mode"), figure(line[i], "kernel_ms"), share[i] == "-" ? "–" : share[i] " %",
                    100 * figure(line[i], "had_ms") / (sum ? sum : 1),
                    100 * figure(line[i], "had_ms") / figure(line[i], "window_ms"), figure(line[i], "longest_gap_ms"),
                    figure(line[i], "launch_us"), figure(line[i], "longest_launch_us"), figure(line[i], "turns"),
                    turn(line[i], "turn_ms"), turn(line[i], "longest_turn_ms")
        }' "$folder"/[0-9]*
}
