# SPDX-License-Identifier: Apache-2.0
# The first look: does anything hang, and what does NVIDIA's runtime call before its first allocation? Within 20 s.

smoke() {
    local failed=0 stopped=''
    set -o pipefail
    echo "Without cuslice:"
    echo
    if ! raw guarded 5 3 "$here/smoke" | tee "$CHECK_WORK/native"; then
        failed=1 stopped="already without cuslice the first look failed"
    elif [ -z "$CHECK_FAKE" ] && [ "$(nvml_status native)" != 0 ]; then
        failed=1
        echo
        echo "**NVML does not start here**: nobody sees from outside what programs hold."
    fi
    if [ -z "$stopped" ]; then
        look "preloaded, with no setting" "${cuslice_run[@]}" -- "$here/smoke" stages
        look "with a limit of 2 GiB" "${cuslice_run[@]}" --log debug --limit 2GiB -- "$here/smoke"
    fi
    [ -z "$stopped" ] || echo "$stopped" >"$CHECK_WORK/stopped"
    find_runtime
    traced_runtimes || failed=1
    return $failed
}

nvml_status() { sed -n 's/^- nvmlInit: \([^ ]*\).*/\1/p' "$CHECK_WORK/$1"; }

# look NAME command…: sets stopped, and failed, if it fails, is not over in time, or NVML answers otherwise than natively.
look() {
    local name=$1 status
    shift
    [ -z "$stopped" ] || return
    echo
    echo "${name^}:"
    echo
    guarded 3 7 "$@" | tee "$CHECK_WORK/look"
    status=$?
    [ $status = 0 ] && [ "$(nvml_status look)" = "$(nvml_status native)" ] && return
    failed=1
    stopped="the first look $name failed, exit status $status"
    [ $status != 124 ] || stopped="the first look $name hung"
    echo
    echo "**${stopped^}.**"
}

# ---- what the runtime calls -----------------------------------------------------------------------------------------

traced_runtimes() {
    local program failed=0
    for program in $(runtime_programs); do
        traced "$here/$program" || failed=1
    done
    return $failed
}

# traced PROGRAM: one on the runtime, that takes 64 MiB.
traced() {
    local status driver
    driver=$(raw "$here/devices" about | sed -n 's/^file //p')
    rm -f "$CHECK_WORK"/trace.*
    raw guarded 3 2 env LD_PRELOAD="$here/call_trace.so" CHECK_DRIVER="$driver" CHECK_TRACE="$CHECK_WORK/trace" \
        "$1" $((64 * MiB)) >/dev/null
    status=$?
    echo
    echo "### What the runtime calls: ${1##*/}, without cuslice"
    echo
    trace_table "$CHECK_WORK"/trace.*
    [ $status = 0 ] || [ $status = 77 ] || echo "- exit status $status"
    return $((status == 77 ? 0 : status))
}

trace_table() {
    awk -F'\t' '
        function flush() { if (last != "") list = list (list == "" ? "" : ", ") last (times > 1 ? " ×" times : "") }
        active == 0 && $2 == 1 { active = 1; before = previous; after = $1 }
        $1 ~ /^cu(Module|Library)Load|^cuModuleGetFunction|^cuLibraryGet/ { loads[$1]++ }
        !allocated && /^cuGetProcAddress/ { lookups++ }
        !allocated && !/^cuGetProcAddress/ { if ($1 == last) times++; else { flush(); last = $1; times = 1 } }
        $1 ~ /^cu(MemAlloc|MemCreate|Array.*Create|MipmappedArrayCreate)/ { allocated = 1 }
        { previous = $1; count++ }
        END {
            if (!count) { print "Nothing was noted: the runtime did not come to this driver by its name."; exit }
            flush()
            print "- until the first allocation: " lookups + 0 " look-ups; " list
            if (!active) print "- the primary context never became active"
            else if (before ~ /^cu(CtxCreate|DevicePrimaryCtxRetain|GreenCtxCreate|CtxFromGreenCtx|GLCtxCreate)/)
                print "- the primary context came into being in `" before "`"
            else print "- the primary context came into being between `" before "` and `" after "`: by no exported function, **where no hook sees it**"
            text = ""
            for (name in loads) text = text (text == "" ? "" : ", ") name " ×" loads[name]
            print "- modules, until the first launch: " (text == "" ? "by no exported function" : text)
        }' "$@" 2>/dev/null || echo "Nothing was noted."
}
