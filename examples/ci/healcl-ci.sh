#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A CI job: verifies transcripts on PoCL, and compares times with those in cache/last.json.
set -eu
healcl --version
healcl check --quick --junit check.xml
set --
if [ -f cache/last.json ]; then set -- --baseline cache/last.json --fail-slower 15; fi
healcl compare -d pocl "$@" --no-measure --repeat 15 --json today.json --junit compare.xml \
    transcripts/ntt.json transcripts/recognizer.json
branch=${CI_COMMIT_BRANCH:-${GITHUB_REF_NAME:-main}}
if [ "$branch" = main ]; then cp today.json cache/last.json; fi
