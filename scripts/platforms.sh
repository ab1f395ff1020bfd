#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs OpenCL platforms that need no special hardware, and runs healcl on each of them, within a time
# limit, with counts of right results (platforms.py). They are this machine's PoCL, Intel's runtime for
# CPUs and its FPGA emulator, rusticl, Oclgrind, the rusticl of Debian 13 in a root folder, and AArch64
# in QEMU. It needs build/test, root's rights and a network.
#
# Fails if a platform cannot be installed or used. HEALCL_OFFLINE=1 leaves out all but PoCL, and says so.
# These commands update the table of devices:
#     cp build/platforms/*.json results/ && scripts/device_table.py README.md docs/DEVICES.md
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

failed=()
# try NAME SECONDS COMMAND...
try() {
    step "$1"
    timeout -k 30 "$2" "${@:3}" || failed+=("$1")
}

if [ "${HEALCL_OFFLINE-}" = 1 ]; then
    try "platforms: HEALCL_OFFLINE=1 leaves out all but PoCL" 900 python3 -B scripts/platforms.py pocl
else
    try "drivers of other platforms" 900 scripts/setup-vendors.sh
    # shellcheck disable=SC2016 # the inner shell expands it
    try "platforms" 1800 bash -c '. "${HEALCL_VENDORS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/healcl/vendors}/environment"
        exec python3 -B scripts/platforms.py "$@"' bash pocl intel fpga rusticl oclgrind
    try "rusticl of Debian 13" 1200 scripts/fresh_root.sh --keep --folder build/roots trixie bash -ec '
        scripts/setup.sh --demo
        scripts/setup-vendors.sh rusticl
        . scripts/common.sh
        build_preset release healcl
        . ~/.local/share/healcl/vendors/environment
        python3 -B scripts/platforms.py --healcl build/release/healcl rusticl-13 rusticl-13-fp64'
    cp build/roots/trixie-kept/root/healcl/build/platforms/*.json build/platforms/ || true
    [ "$(uname -m)" = aarch64 ] ||
        try "AArch64" 1200 scripts/aarch64.sh --root build/roots/arm64 --quick
fi
[ ${#failed[@]} = 0 ] || die "failed: $(printf '%s; ' "${failed[@]}")"
