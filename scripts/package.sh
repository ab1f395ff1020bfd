#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of program and library: build/release/healcl_VERSION_ARCHITECTURE.deb.
#
#   package.sh [--test]
#
# --test installs it in a root of this release of Debian that debootstrap makes from nothing, runs a
# transcript there, and builds an application: as root, with a network, in minutes.
# shellcheck disable=SC2016 # other shells expand
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

# Runs a command in the root, with /proc and /sys, and leaves nothing mounted.
within() {
    unshare --mount sh -ec 'root=$1; shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
            chroot "$root" "$@"' sh "$root" "$@"
}

test_package() {
    local codename
    root=$(mktemp -d)
    trap 'rm -rf --one-file-system "$root"' EXIT
    chmod 755 "$root"
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    step "a root of $codename"
    debootstrap --variant=minbase "$codename" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" |
        tail -n 1
    cp "$1" transcripts/recognizer.json tests/install/application/application.c "$root/root"
    step "installing $1"
    within apt-get -q update
    within apt-get -q -y install "/root/${1##*/}" | tail -n 3
    step "running it"
    within healcl version
    within healcl run /root/recognizer.json
    test -f "$root/usr/share/man/man1/healcl.1" -a -f "$root/usr/share/man/man3/healcl.3"
    step "building with it"
    within apt-get -q -y install --no-install-recommends gcc libc6-dev pkg-config | tail -n 1
    within sh -ec 'cc /root/application.c -o /root/application $(pkg-config --cflags --libs healcl)
        /root/application /root/recognizer.json'
}

build_preset release
package=$(cd build/release && cpack -G DEB | sed -n 's/^CPack: - package: \(.*\) generated[.]$/\1/p')
step "$package"
[ "${1-}" != --test ] || test_package "$package"
