#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures cuslice on a machine with a GPU and writes one Markdown record. Needs no network and no compiler: only a
# build folder with the tests built (build/dev), or the archive that scripts/pack_gpu_check.sh makes of it. It makes plain
# allocations of a few GiB and changes nothing on the GPU.
#
#   gpu_check.sh [BUILD] [--fake] [--record FILE] [--only STEP[,STEP…]] [--seconds N]
#
#   BUILD      the build folder; default build/dev, or the one that this copy of the script lies in
#   --fake     try the plan on the fake GPU. Every line is marked NOT A GPU and goes to stdout, never into a record
#   --record   where to write; default docs/results/<gpu>-<driver>-<date>.md, or the current folder without docs/results
#   --only     these steps alone (lab/hardware/plan.sh steps lists them)
#   --seconds  the whole run's limit, 560
#
# Every figure is in the record as soon as it was measured: a run that is cut short leaves what it had. If the first
# look at the machine hangs, nothing more is run in a slice, and what is measured without cuslice goes on.
#
# Exit status: 0 every step was done or skipped, 1 some failed (the record says which), 64 wrong usage, 69 there is no
# GPU.
set -u
own=$(cd "$(dirname "$0")" && pwd)
root=
if [ -x "$own/watch" ]; then
    build=$own/../..  # the copy in a build folder
elif [ -x "$own/lab/hardware/watch" ]; then
    build=$own  # the archive
else
    root=$own/.. build=$own/../build/dev
fi
words=gpu_check.sh
fake= record= only= seconds=560 patience=1
while [ $# -gt 0 ]; do
    words="$words ${1##*/}"  # without folders, which say nothing to others
    case $1 in
    # Nobody is measured there, and a machine that is busy with other things takes its time.
    --fake) fake=1xh200 patience=20 ;;
    --record) record=${2:?--record needs a file} && shift ;;
    --only) only=,${2:?--only needs a step}, words="$words $2" && shift ;;
    --seconds) seconds=${2:?--seconds needs a number} words="$words $2" && shift ;;
    -h | --help) sed -n '3,/^set/s/^# \{0,1\}//p' "$0" && exit 0 ;;
    -*) echo "gpu_check.sh: no such option: $1" >&2 && exit 64 ;;
    *) build=$1 ;;
    esac
    shift
done
build=$(cd "$build" 2>/dev/null && pwd) || { echo "gpu_check.sh: no such folder: the build is missing" >&2; exit 64; }
for file in bin/cuslice lab/hardware/watch lab/hardware/plan.sh; do
    [ -e "$build/$file" ] && continue
    echo "gpu_check.sh: $build/$file is missing: build with the tests first" \
        "(cmake --preset dev && cmake --build --preset dev)" >&2
    exit 64
done
for name in ${only//,/ }; do
    bash "$build/lab/hardware/plan.sh" steps 2>/dev/null | grep -q "^$name " && continue
    echo "gpu_check.sh: no step is called $name" >&2
    exit 64
done

# A slice or a fake GPU that this shell is in is not to be measured.
for name in $(compgen -e | grep '^CUSLICE_') LD_PRELOAD CUDA_VISIBLE_DEVICES; do unset "$name"; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# CUDA and NVML then count the GPUs alike.
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export CHECK_BUILD=$build CHECK_WORK=$work CHECK_FAKE=$fake CHECK_PATIENCE=${CHECK_PATIENCE:-$patience} CHECK_STOPPED=
export CHECK_STACKS=$work/stacks
plan=$build/lab/hardware/plan.sh guard=$build/lab/hardware/guard
# The fake GPU's books of this run alone, so that programs elsewhere on it don't count.
if [ -n "$fake" ]; then export CUSLICE_FAKE_DIR=$work/books; fi

about() {
    if [ -n "$fake" ]; then
        CUSLICE_FAKE=$fake LD_LIBRARY_PATH=$build/lib/cuslice/fake "$build/lab/hardware/devices" about
    else
        "$guard" 30+5 "$build/lab/hardware/devices" about
    fi
}
if ! about >"$work/about" 2>"$work/about.err"; then
    echo "gpu_check.sh: there is no GPU to measure here: $(tail -n 1 "$work/about.err")" >&2
    [ ! -s "$work/stacks" ] || cat "$work/stacks" >&2
    echo "gpu_check.sh: with --fake the plan can be tried on the fake GPU; that is no measurement" >&2
    exit 69
fi
field() { sed -n "s/^$1 //p" "$work/about"; }
date=$(date -u +%Y-%m-%d)
if [ -n "$fake" ]; then
    record=$work/record
elif [ -z "$record" ]; then
    folder=.
    if [ -n "$root" ] && [ -d "$root/docs/results" ]; then folder=$root/docs/results; fi
    record=$folder/$(field GPU | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')-$(field driver)-$date.md
fi

commit=$(cat "$build/commit" 2>/dev/null || git -C "${root:-$build}" describe --always --dirty --abbrev=12 2>/dev/null)

number=0 failed=0
: >"$work/summary" >"$work/failures" >"$work/body"

head_of_record() {
    local package
    echo "# $(field GPU), driver $(field driver), $date"
    echo
    echo "| | |"
    echo "|---|---|"
    echo "| GPU | $(field GPU), compute capability $(field capability), $(field memory) |"
    echo "| driver | $(field driver), CUDA $(field CUDA), $(field file) |"
    echo "| date | $date (UTC) |"
    echo "| command | \`$words\` |"
    echo "| cuslice | $("$build/bin/cuslice" --version)${commit:+, commit $commit} |"
    echo "| system | $(uname -sr), $(ldd --version | head -n 1 | sed 's/.* //') (C library), $(nproc) processors |"
    cat "$work/packages"
    echo
    echo "## Summary"
    echo
    if [ -s "$work/failures" ]; then
        echo "**Failed:**" && sed 's/^/- /' "$work/failures"
    else
        echo "Nothing failed."
    fi
    echo
    echo "| step | | seconds |"
    echo "|---|---|---|"
    cat "$work/summary"
    echo
}
for package in torch tensorflow keras cupy-cuda13x cupy-cuda12x jax numba triton; do
    "${GPU_CHECK_PYTHON:-python3}" -c \
        "import importlib.metadata as m; print('| $package |', m.version('$package'), '|')" 2>/dev/null
done >"$work/packages"

# Where the build and this run's files lay is of no interest to who reads the record.
without_paths() { sed -e "s|$build|BUILD|g" -e "s|$work|WORK|g"; }

write_record() { { head_of_record && cat "$work/body" "$@"; } | without_paths >"$record"; }
write_record || { echo "gpu_check.sh: $record cannot be written" >&2; exit 1; }

code_block() { echo "$1:" && echo && echo '```' && cut -c 1-400 && echo '```' && echo; }

# The beginning, and the end, where an error says what it is.
excerpt() {
    local lines
    lines=$(wc -l <"$1")
    if [ "$lines" -le 30 ]; then cat "$1"; else head -n 10 "$1" && echo "[… $((lines - 30)) lines]" && tail -n 20 "$1"; fi
}

run_step() {
    local name=$1 most=$(($2 * CHECK_PATIENCE)) title=$3 left=$((seconds * CHECK_PATIENCE - SECONDS)) started=$SECONDS
    local status verdict more before
    number=$((number + 1))
    if [ $left -lt 5 ]; then
        echo "| $number. $title | not run: the time is over | |" >>"$work/summary"
        echo "$title: not run, the $seconds s were over" >>"$work/failures"
        failed=1
        return
    fi
    if [ "$most" -gt $left ]; then most=$left; fi
    more=$((most < 16 ? most / 4 : 4))  # of its time, for the stacks
    printf '## %s. %s\n\n' $number "$title" >"$work/section"
    # Its output goes into the record at once, and is taken from there afterwards.
    write_record "$work/section"
    before=$(stat -c %s "$record")
    rm -f "$work/stacks"
    "$guard" $((most - more))+$more bash "$plan" "$name" >>"$record" 2>"$work/err" </dev/null
    status=$?
    tail -c +$((before + 1)) "$record" >"$work/out"
    case $status in
    0) verdict=done ;;
    77) verdict="skipped: $(tail -n 1 "$work/err")" ;;
    79) verdict="not in a slice: $CHECK_STOPPED" ;;
    124 | 137) verdict="**time-out** after $((most - more)) s" ;;
    *) verdict="**failed** ($status)" ;;
    esac
    case $status in 0 | 77 | 79) ;; *) echo "$title: $verdict" >>"$work/failures" && failed=1 ;; esac
    echo "| $number. $title | $verdict | $((SECONDS - started)) |" >>"$work/summary"
    {
        if [ $status != 0 ]; then echo "$verdict" && echo; fi
        cat "$work/out"
        echo
        if [ -s "$work/stacks" ]; then head -n 240 "$work/stacks" | code_block "Stacks at the time-out"; fi
        if [ -s "$work/err" ] && [ $status != 77 ]; then excerpt "$work/err" | code_block "Said on stderr"; fi
    } >>"$work/section"
    cat "$work/section" >>"$work/body"
    echo "gpu_check.sh: $number. $title: $verdict, $((SECONDS - started)) s" >&2
    if [ "$name" = smoke ]; then
        if [ -s "$work/stopped" ]; then
            CHECK_STOPPED=$(cat "$work/stopped")
        elif [ $status = 124 ] || [ $status = 137 ]; then
            CHECK_STOPPED="the first look was not over in time"
        fi
    fi
    write_record
}

while read -r name most title; do
    if [ -n "$only" ] && [ "${only#*,"$name",}" = "$only" ]; then continue; fi
    run_step "$name" "$most" "$title"
done < <(bash "$plan" steps)

if [ -n "$fake" ]; then
    sed 's/^/NOT A GPU  /' "$record"
else
    cat >&2 <<END
gpu_check.sh: the record is $record
gpu_check.sh: read it: it has the GPU's UUID and what programs printed, which may name folders. To have this GPU listed
gpu_check.sh: in docs/results, attach that one file to an issue of the kind "Result of a GPU", also where a step failed
END
fi
exit $failed
