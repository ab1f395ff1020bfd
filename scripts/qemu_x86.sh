#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks healcl on older x86-64 CPUs than this machine's, with PoCL compiling for them.
#
#   qemu_x86.sh [CPU...]    by default Nehalem (SSE4.2) and Haswell (AVX2); qemu-x86_64 -cpu help
#                           lists them
#
# Each runs the conformance set, if it is beside the clone, the bundled transcripts and 100 random
# programs, with general kernels and with each way to multiply in vectors.
# It needs qemu-x86_64 (package qemu-user), and an hour or two, because PoCL compiles in emulation. Its
# binaries are cached in ~/.cache/healcl-cpus. Times measured there mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

case ${1-} in
-*)
    print_help scripts/qemu_x86.sh
    exit 0
    ;;
"") set -- Nehalem Haswell ;;
esac
qemu=$(first_command qemu-x86_64 qemu-x86_64-static)
scripts/setup.sh --test
build_preset release

failed=()
for cpu in "$@"; do
    step "$cpu"
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/healcl-cpus/$cpu
    export HEALCL_CACHE_DIR=$folder/healcl POCL_CACHE_DIR=$folder/pocl
    mkdir -p "$HEALCL_CACHE_DIR" "$POCL_CACHE_DIR"
    printf '#!/bin/sh\nexec "%s" -cpu "%s" "%s" "$@"\n' "$qemu" "$cpu" "$PWD/build/release/healcl" \
        >"$folder/program"
    chmod +x "$folder/program"
    check_cpu "$folder/program" || failed+=("$cpu")
done
[ ${#failed[@]} = 0 ] || die "wrong on ${failed[*]}"
step "all right on $*"
