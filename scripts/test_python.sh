#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs bindings/python into a virtual environment, build/python, and runs its tests.
#
#   test_python.sh [OPTION OF UNITTEST...] [TEST...]    e.g. scripts/test_python.sh -v test_queue
#
# HEALCL_PYTHON names another Python than python3. HEALCL_TEST_ALL=1 repeats as often as is promised.
# HEALCL_TEST_SECONDS is the duration of each test with threads. If virtual environments cannot be
# created, or packages cannot be downloaded, it says so and tests nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
python=${HEALCL_PYTHON:-python3}
venv=build/python

skip() {
    echo "test_python.sh: skipped: $*"
    exit 0
}

step "installing bindings/python in $venv"
if [ ! -x $venv/bin/python ]; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        skip "$python cannot create virtual environments: install package python3-venv"
    "$python" -c 'import sysconfig as s, os, sys
sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))' ||
        skip "$python lacks its headers: install package python3-dev"
    "$python" -m venv $venv
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! $venv/bin/python -c 'import cffi, mypy, numpy, scikit_build_core' 2>/dev/null; then
    $venv/bin/pip install -q cffi mypy numpy scikit-build-core matplotlib >"$log" 2>&1 ||
        { tail -n 3 "$log" && skip "packages cannot be downloaded from PyPI"; }
fi
$venv/bin/python -c 'import tenseal, zstandard' 2>/dev/null ||
    $venv/bin/pip install -q tenseal zstandard >"$log" 2>&1 ||
    echo "test_python.sh: TenSEAL is not available for this Python: nothing is compared with SEAL"
CMAKE_BUILD_PARALLEL_LEVEL=$(jobs_count) $venv/bin/pip install -q --no-build-isolation \
    --no-deps --force-reinstall ./bindings/python >"$log" 2>&1 ||
    { cat "$log" && die "the build of bindings/python failed"; }

step "testing it"
cd bindings/python/tests
if [ $# -gt 0 ]; then
    exec ../../../$venv/bin/python -B -m unittest "$@"
fi
exec ../../../$venv/bin/python -B -m unittest
