#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a release and measures what is promised of it; see bench.py --help and docs/BENCHMARKS.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/setup.sh --test >&2
build_preset release >&2
exec "$(python_with_numpy)" -B scripts/bench.py --healcl build/release/healcl "$@"
