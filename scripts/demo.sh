#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clone to a verified run: installs what is missing (Debian, Ubuntu), builds a release in
# build/release, and encrypts 200 images of digits, with 128 bits of security, into a transcript that
# recognizes them. The transcript runs on PoCL, an OpenCL implementation for CPUs, and on the host
# reference in plain C. The results are then decrypted and shown.
#
#   demo.sh [FILE [OPTION...]]   runs another transcript, with options of `healcl run`
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

demo=build/demo
if [ ! -e "$demo/digits.answers" ]; then
    step "scripts/make_transcripts.py --encrypted digits $demo/digits.json"
    mkdir -p "$demo"
    python3 -B scripts/make_transcripts.py --encrypted digits "$demo/digits.json"
fi

step "healcl run --device pocl --dump $demo/results $demo/digits.json"
"$healcl" run --device pocl --dump "$demo/results" "$demo/digits.json"

step "healcl run --reference $demo/digits.json: the same in plain C, on one core"
"$healcl" run --reference "$demo/digits.json"

step "scripts/check_answers.py $demo/results: the same digits, decrypted"
python3 -B scripts/check_answers.py --answers "$demo/digits.answers" "$demo/results"
