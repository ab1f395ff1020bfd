#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzers of tests/fuzz with clang and sanitizers, in build/sanitize, and runs them.
#
#   fuzz.sh [--seconds S | --runs N] [--merge] [NAME...]    e.g. scripts/fuzz.sh --seconds 60 npy manifest
#
# Each runs for two minutes, or as long as an option says. It starts from tests/fuzz/corpus/NAME, and from
# inputs of earlier runs in build/sanitize/found/NAME. --merge adds the inputs that reach new code to the
# corpus. Review them, because corpora must stay small.
#
# The table has a line for each fuzzer. If a fuzzer finds an error, its line names the input, and the exit
# code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

usage() {
    print_help scripts/fuzz.sh >&2
    exit 2
}

limit=-max_total_time=120
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --seconds) limit=-max_total_time=${2:?$(usage)} && shift ;;
    --runs) limit=-runs=${2:?$(usage)} && shift ;;
    --merge) limit=-merge=1 ;;
    -*) usage ;;
    *) names+=("$1") ;;
    esac
    shift
done
if [ ${#names[@]} = 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        names+=("${name%.c}")
    done
fi

# Most bytes of an input: as few as all that is read takes, for short inputs are fast.
longest() {
    case $1 in
    planner | entry_reader | npy | tuning | sessions | programs) echo 512 ;;
    package) echo 1536 ;;
    *) echo 2048 ;;
    esac
}

# Words for a fuzzer to put into inputs: texts in the sources that it is about.
dictionary() {
    local sources
    case $1 in
    entry_reader) sources=src/transcript ;;
    planner) sources='src/plan/ops.c src/plan/ops.def src/transcript' ;;
    npy) sources=src/transcript/npy.c ;;
    manifest) sources='src/vendor src/plan/ops.def' ;;
    package) sources=src/opencl/package.c ;;
    tuning) sources=src/opencl/tuning.c ;;
    *) sources=/dev/null ;;
    esac
    # shellcheck disable=SC2086 # several
    grep -rhoE '"[A-Za-z0-9_,:=. -]{2,24}"' $sources | sort -u || true
}

# LeakSanitizer sometimes dies of a signal while PoCL's threads end, if a device was opened.
options_of() {
    local leaks=1
    case $1 in sessions | programs) leaks=0 ;; esac
    echo "detect_leaks=$leaks:malloc_context_size=2:quarantine_size_mb=8"
}

fuzz() {
    local name=$1 code=0 begin=$SECONDS
    local program=$PWD/build/sanitize/tests/fuzz/fuzz_$name log=$PWD/build/sanitize/found/$name.log
    local found=$PWD/build/sanitize/found/$name corpus=$PWD/tests/fuzz/corpus/$name
    mkdir -p "$found"
    dictionary "$name" >"$found.dict"
    local options=(-max_len="$(longest "$name")" -timeout=60 -rss_limit_mb=4096
        -artifact_prefix="$found." -print_final_stats=1 -verbosity=1 "$limit")
    # Bytes that choose calls are never too many.
    case $name in sessions | planner | programs) options+=(-len_control=0) ;; esac
    [ ! -s "$found.dict" ] || options+=(-dict="$found.dict")
    local folders=("$found" "$corpus")
    if [ "$limit" = -merge=1 ]; then
        folders=("$corpus" "$found")
        options+=(-use_counters=0) # code, and not how often
    fi
    ASAN_OPTIONS=$(options_of "$name") "$program" "${options[@]}" "${folders[@]}" \
        >"$log" 2>&1 || code=$?
    local runs seconds=$((SECONDS - begin))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-14s %10s %8s %9s %8s' "$name" "${runs:--}" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" \
        "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" "$seconds"
    if [ "$code" != 0 ]; then
        printf '  FAILED: %s' "$(sed -n 's/.*Test unit written to //p' "$log")"
        printf '\n%s' "$(grep -E 'ERROR|runtime error|fuzz_[a-z0-9_]*\.c:[0-9]*:' "$log" | head -n 3)"
        touch build/sanitize/found/failed
    fi
    echo
}

build_preset sanitize fuzzers
mkdir -p build/sanitize/found
export HEALCL_CACHE_DIR=$PWD/build/sanitize/cache # of devices
rm -f build/sanitize/found/failed

compile_fast

step "fuzzing: ${limit#-}"
printf '%-14s %10s %8s %9s %8s\n' fuzzer runs runs/s coverage seconds
running=0
for name in "${names[@]}"; do
    [ -x "build/sanitize/tests/fuzz/fuzz_$name" ] || die "there is no fuzzer '$name'"
    if [ "$running" = "$(jobs_count)" ]; then
        wait -n
        running=$((running - 1))
    fi
    fuzz "$name" &
    running=$((running + 1))
done
wait
[ ! -e build/sanitize/found/failed ]
