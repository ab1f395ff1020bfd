#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Injects all faults around healcl. The tests inject a small share of them.
#
#   faults.sh [--share N]    --share N: only one of N positions and rounds
#
# Each OpenCL call of a small run, and of a library's run, fails once, with three codes. Then memory
# runs out at each kind of allocation, and many processes start cold at once. The script fails if a
# test fails. It takes two hours of processor time.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

share=1
case "${1-}" in
"") ;;
--share) share=${2:?a number is missing} ;;
*)
    print_help "$0"
    exit 2
    ;;
esac
compile_fast
build_preset test
failed=0

step "calls that fail"
python3 -B tests/cli/faults.py --share "$share" build/test || failed=1
HEALCL_TEST_ALL=1 build/test/tests/unit_tests test_run_faults || failed=1
HEALCL_TEST_ALL=1 python3 -B tests/cli/out_of_memory.py build/test/healcl \
    build/test/tests/faulty_program || failed=1

step "cold starts"
python3 -B tests/cli/cold_starts.py build/test/healcl --processes 16 \
    --rounds $(((100 + share - 1) / share)) || failed=1

step "many calls"
build/test/tests/sessions/session_many pocl 400 100000 transcripts/segments.json || failed=1
say_processor_time
exit "$failed"
