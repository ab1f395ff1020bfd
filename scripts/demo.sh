#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clone to a verified run: installs what is missing (Debian, Ubuntu), builds a release in
# build/release, and runs a bundled transcript on PoCL, an OpenCL implementation for CPUs.
#
#   demo.sh [FILE [OPTION...]]   another transcript, and options of `healcl run`
set -euo pipefail
file=$(realpath -m -- "${1-$(dirname "$0")/../transcripts/recognizer.json}")
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/setup.sh

build_preset release

step "healcl devices"
build/release/healcl devices

step "healcl run --device pocl ${file#"$PWD"/}"
exec build/release/healcl run --device pocl "$@" -- "${file#"$PWD"/}"
