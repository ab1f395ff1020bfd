#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats all C and C++ files in place, including the headers of kernels; --check only lists those that would change.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

# Version 14, that of Debian 12, decides: others differ in details.
format=$(first_command clang-format-14 clang-format)
case "${1-}" in
"") options=(-i) ;;
--check) options=(--dry-run --Werror) ;;
*) die "usage: $0 [--check]" ;;
esac
git ls-files -z '*.c' '*.h' '*.cpp' | xargs -0 "$format" "${options[@]}"
