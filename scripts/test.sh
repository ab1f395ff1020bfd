#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds healcl with gcc, optimized and with warnings as errors, in build/test, and tests it on this
# machine's device.
#
#   test.sh [--all] [CTEST OPTION...]    e.g. scripts/test.sh -R conformance
#
# Long sweeps are tested in part, another one with each HEALCL_TEST_SEED, a number that is printed; --all
# tests the whole. Slow tests that find little on this device are left to .ci/run (ci_tests in
# common.sh), unless --all or a CTEST OPTION asks for it.
#
# The shared conformance set is looked for in ../shared, or where HEALCL_SHARED says.
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
    echo "all of it"
else
    echo "a share of the long sweeps: HEALCL_TEST_SEED=$HEALCL_TEST_SEED"
fi
[ $# -gt 0 ] || [ "${HEALCL_TEST_ALL-}" = 1 ] || set -- -E "$ci_tests"
failed=0
ctest --preset test -j "$(tests_count)" "$@" || failed=$?

# ctest hides how many transcripts and calls of operations were tested.
grep -hE '^(conformance: |all [0-9]+ calls are right)' build/test/Testing/Temporary/LastTest.log || true
say_processor_time
exit "$failed"
