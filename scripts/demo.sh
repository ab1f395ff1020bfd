#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clone to a verified run: installs what is missing (Debian, Ubuntu), builds a release in
# build/release, and runs bundled transcripts on PoCL, an OpenCL implementation for CPUs. The last
# one computes on encrypted digits, which are then decrypted and shown.
#
#   demo.sh [FILE [OPTION...]]   another transcript instead, and options of `healcl run`
set -euo pipefail
[ $# -eq 0 ] || file=$(realpath -m -- "$1")
cd "$(dirname "$0")/.."
. scripts/common.sh

scripts/setup.sh --demo

build_preset release
healcl=build/release/healcl

step "healcl devices"
"$healcl" devices

if [ $# -gt 0 ]; then
    step "healcl run --device pocl ${file#"$PWD"/}"
    exec "$healcl" run --device pocl "${@:2}" -- "${file#"$PWD"/}"
fi

step "healcl run --device pocl transcripts/recognizer.json"
"$healcl" run --device pocl transcripts/recognizer.json

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
step "healcl run --device pocl --dump DIR transcripts/encrypted_digits_toy.json.gz"
"$healcl" run --device pocl --dump "$results" transcripts/encrypted_digits_toy.json.gz

step "scripts/check_answers.py DIR: the same digits, decrypted"
"$(python_with_numpy)" -B scripts/check_answers.py "$results"
