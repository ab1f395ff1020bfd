#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing Debian or Ubuntu packages, without questions.
#
#   setup.sh          packages for building healcl and running it on a CPU
#   setup.sh --demo   also those for decrypting results
#   setup.sh --test   also those for testing
#   setup.sh --all    also those for .ci/run
#
# If nothing is missing, it changes nothing, and needs neither a network nor privileges.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(cmake ninja-build gcc libc6-dev pkg-config ocl-icd-opencl-dev opencl-headers
    pocl-opencl-icd libcjson-dev libxxhash-dev zlib1g-dev libzstd-dev
    libzip-dev)
demo_packages=(python3 python3-numpy)
test_packages=("${demo_packages[@]}" libcmocka-dev python3-jsonschema make)
all_packages=(help2man libopenmpi-dev openmpi-bin g++ clang clang-format clang-tidy shellcheck python3-dev python3-venv)

case "${1-}" in
"") ;;
--demo) packages+=("${demo_packages[@]}") ;;
--test) packages+=("${test_packages[@]}") ;;
--all) packages+=("${test_packages[@]}" "${all_packages[@]}") ;;
*)
    echo "usage: $0 [--demo|--test|--all]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup.sh: this is neither Debian nor Ubuntu, so nothing was installed. healcl needs:" >&2
    echo "  ${packages[*]}" >&2
    exit 0
fi

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | head -n 1)" = installed ]
}

# The sanitizers of clang are a package of their own, named after its version.
runtime_of_clang() {
    local version
    version=$(clang -dumpversion 2>/dev/null | cut -d . -f 1)
    [ -n "$version" ] && echo "libclang-rt-$version-dev"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "setup.sh: missing packages: ${missing[*]}; run this as root: $*" >&2
        exit 1
    fi
}

install_missing() {
    missing=()
    local package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup.sh: installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
        "${missing[@]}" </dev/null
}

install_missing "${packages[@]}"
if [ "${1-}" = --all ]; then
    # For the pages of healcl compare; Ubuntu has it only as a snap, and the test does without.
    if apt-cache show chromium >/dev/null 2>&1; then
        install_missing chromium fonts-dejavu-core
    fi
    # These compile kernels for GPUs that are not here (device_code.py, healcl compile --emit), and
    # healcl for AArch64; roots of other releases and machines are made by the last (platforms.sh).
    for package in clang-15 rocm-device-libs libclc-15 lld llvm-spirv-15 gcc-aarch64-linux-gnu \
        libc6-dev-arm64-cross debootstrap qemu-user-static; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            install_missing "$package"
        fi
    done
    # Oclgrind counts their bytes, unpacked beside the system's drivers and not among them.
    scripts/setup-vendors.sh oclgrind || true
    runtime=$(runtime_of_clang || true)
    if [ -n "$runtime" ] && apt-cache show "$runtime" >/dev/null 2>&1; then
        install_missing "$runtime"
    fi
fi
