#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a release, and measures whether it keeps its promises: about transcripts (bench.py), or with
# --kernels or --peer about kernels (kernels_bench.py). See docs/BENCHMARKS.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

script=bench.py
for argument in "$@"; do
    case $argument in
    --kernels | --peer | --peer=*) script=kernels_bench.py ;;
    esac
done

scripts/setup.sh --test >&2
build_preset release >&2
top=$PWD
cd "$OLDPWD" # files and programs are named from there
exec python3 -B "$top/scripts/$script" --healcl "$top/build/release/healcl" "$@"
