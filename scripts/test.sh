#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds healcl with gcc, optimized and with warnings as errors, in build/test, and tests it on this
# machine's device.
#
#   test.sh [--all] [CTEST OPTION...]    e.g. scripts/test.sh -R conformance
#
# Only a part of each long sweep runs. HEALCL_TEST_SEED, a number that is printed, selects the part; --all
# runs the whole. Slow tests that find little on this device run only in .ci/run (ci_tests in common.sh),
# or with --all or a CTEST OPTION.
#
# The shared conformance set is expected in ../shared, or in the folder that HEALCL_SHARED names.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

if [ "${1-}" = --all ]; then
    export HEALCL_TEST_ALL=1
    shift
fi
export HEALCL_TEST_SEED=${HEALCL_TEST_SEED:-$(date +%s)}
compile_fast

scripts/setup.sh --test

build_preset test

step "testing build/test"
if [ "${HEALCL_TEST_ALL-}" = 1 ]; then
    echo "with all of the long sweeps"
else
    echo "with a part of the long sweeps: HEALCL_TEST_SEED=$HEALCL_TEST_SEED"
fi
[ $# -gt 0 ] || [ "${HEALCL_TEST_ALL-}" = 1 ] || set -- -E "$ci_tests"
failed=0
ctest --preset test -j "$(tests_count)" "$@" || failed=$?

# ctest hides how many transcripts and calls of operations were tested.
grep -hE '^(conformance: |all [0-9]+ calls are right)' build/test/Testing/Temporary/LastTest.log || true
say_processor_time
exit "$failed"
