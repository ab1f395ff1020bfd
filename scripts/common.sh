# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the scripts share: source it from the top of the clone.

# On a busy machine a call of a driver may take long: tests that read messages get no notice of it.
export HEALCL_PROGRESS_SECONDS=0

step() { printf '\n== %s\n' "$*"; }

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Has PoCL compile the kernels of tests without optimizing, which takes a third of the time, and
# running them little more. tests/CMakeLists.txt lists the tests of optimized kernels.
compile_fast() {
    [ "${HEALCL_TEST_ALL-}" = 1 ] || export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable
}

# Tests that scripts/test.sh leaves to .ci/run: kernels in the styles of other devices, sweeps of
# failing calls, and scripts that start the program again and again. Other tests find the same wrong
# values, refusals and crashes of this device, too.
ci_tests='^(kernels[.]([^o].*|odd)'
ci_tests+='|coverage[.].*|install[.].*|mpi[.](serve|ends|driver_ends)'
ci_tests+='|cli[.](bench_results|cold_starts|compile_ahead|emit|faults|faulty|out_of_memory|packages'
ci_tests+='|terminal|trace|tune_whole|device|variants)'
ci_tests+='|compare[.](processes|reports|slower)|sessions[.]audit'
ci_tests+='|vendor[.](examples|mistakes|tune))$'

# How many processes work at the same time: HEALCL_JOBS, else one for each core.
jobs_count() { echo "${HEALCL_JOBS:-$(nproc)}"; }

# How many tests: one more, for they wait, too.
tests_count() { echo $(($(jobs_count) + 1)); }

# Says what this shell and all that it has started and waited for took of the processors: not to be
# called in a subshell, which has started nothing.
say_processor_time() {
    local spent
    spent=$(mktemp)
    times >"$spent"
    step "$(tr 'ms\n' '   ' <"$spent" |
        awk '{ printf "%d", 60 * ($1 + $3 + $5 + $7) + $2 + $4 + $6 + $8 }') s of processor time"
    rm "$spent"
}

# The first of some commands that is there.
first_command() {
    local command
    for command in "$@"; do
        if command -v "$command" >/dev/null; then
            echo "$command"
            return
        fi
    done
    die "none of these commands is installed: $* (scripts/setup.sh --all installs them)"
}

# build_preset PRESET [TARGET...]: configures and builds one of CMakePresets.json. Says little, unless
# it fails.
build_preset() {
    step "building build/$1"
    local log
    log=$(mktemp)
    if { cmake --preset "$1" &&
        cmake --build --preset "$1" -j "$(jobs_count)" ${2:+--target "${@:2}"}; } >"$log" 2>&1; then
        tail -n 1 "$log"
        rm "$log"
        return
    fi
    tail -n 100 "$log"
    rm "$log"
    die "the build in build/$1 failed"
}

# print_help SCRIPT: the comment on top of it.
print_help() { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$1"; }

# check_cpu PROGRAM [check]: what a CPU has to pass that is not the one healcl was made on, one that is
# emulated for example, with general kernels and with each way to multiply in vectors: conformance set,
# bundled transcripts and random programs (run.py), and where asked for `healcl check --quick`. PROGRAM
# is called as healcl is. Fails where anything is wrong.
check_cpu() {
    local program=$1 way failed=0
    "$program" devices
    python3 -B tests/conformance/run.py ways --healcl "$program" || failed=1
    [ "${2-}" = check ] || return "$failed"
    for way in VARIANT=general TUNING=multiply={doubles,halves,mul_hi}; do
        printf 'check, %-24s ' "$way"
        env "HEALCL_$way" "$program" check --quick >"$HEALCL_CACHE_DIR/check.txt" || failed=1
        tail -n 1 "$HEALCL_CACHE_DIR/check.txt"
    done
    return "$failed"
}
