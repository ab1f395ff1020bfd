#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds healcl for AArch64 and checks it in a Debian arm64 root, which it creates, with the PoCL of
# that root. On other machines it uses emulation.
#
#   aarch64.sh [--root FOLDER] [--quick|--shell]
#
# --root: the root's folder, which is created if missing; by default
#   ~/.cache/healcl-cpus/aarch64/root. Remove it to create it again.
# --quick: a few transcripts and calls, in minutes (platforms.py).
# --shell: builds, and then only opens a shell in the root, with healcl in build/qemu-aarch64.
#
# Otherwise it runs the conformance set, if it is beside the clone, the bundled transcripts, 100 random
# programs and `healcl check --quick`, with general kernels and with each way to multiply in vectors.
#
# It needs root's rights, a network, packages debootstrap, clang and lld, and qemu-aarch64-static
# (package qemu-user-static, or the file that QEMU_AARCH64 names). It takes a minute for the root,
# then an hour or two, because PoCL compiles in emulation. Times measured there mean nothing. Nothing
# stays mounted: mounts and the emulator's registration are in their own namespace.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

folder=${XDG_CACHE_HOME:-$HOME/.cache}/healcl-cpus/aarch64
root=$folder/root shell='' quick=''
given=("$@")
while [ $# -gt 0 ]; do
    case $1 in
    --root)
        [ $# -gt 1 ] || die "aarch64.sh: --root takes a folder"
        root=$(realpath -m -- "$2")
        shift
        ;;
    --shell) shell=1 ;;
    --quick) quick=1 ;;
    *)
        print_help scripts/aarch64.sh
        [ "$1" = --help ] || exit 2
        exit 0
        ;;
    esac
    shift
done

[ "$(id -u)" = 0 ] || die "aarch64.sh: only root can change into another root"
if [ -z "${HEALCL_AARCH64_NAMESPACE-}" ]; then
    HEALCL_AARCH64_NAMESPACE=1 exec unshare --mount "$0" "${given[@]}"
fi
for command in debootstrap clang ld.lld cmake pkg-config; do
    command -v "$command" >/dev/null || die "aarch64.sh: $command is missing (see --help)"
done

# debootstrap's end may have unmounted it.
show_registry() { [ -e "$registry/register" ] || mount -t binfmt_misc binfmt_misc "$registry"; }

# Has the kernel run AArch64's programs, also those of the root, where the emulator is not (flag F).
registry=/proc/sys/fs/binfmt_misc
register_emulator() {
    local qemu registered=$registry/healcl-aarch64-$$
    local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    [ "$(uname -m)" != aarch64 ] || return 0
    qemu=$(command -v "${QEMU_AARCH64:-qemu-aarch64-static}") ||
        die "aarch64.sh: qemu-aarch64-static is missing (see --help)"
    show_registry
    trap 'show_registry && echo -1 >"$registry/healcl-aarch64-$$"' EXIT
    printf ':%s:M::%s:%s:%s:F' "${registered##*/}" "$magic" "$mask" "$qemu" \
        >"$registry/register"
}

mount_in_root() {
    local path
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount --bind /tmp "$root/tmp"
    for path in "$PWD" "$folder" "$shared"; do
        [ ! -d "$path" ] || { mkdir -p "$root$path" && mount --bind "$path" "$root$path"; }
    done
}

make_root() {
    local packages=libc6-dev,libgcc-12-dev,ocl-icd-opencl-dev,opencl-headers,pocl-opencl-icd
    packages+=,libcjson-dev,libxxhash-dev,zlib1g-dev,libzstd-dev,libzip-dev
    [ ! -e "$root/.healcl-ready" ] || return 0
    step "a Debian arm64 root in $root"
    [ -z "$(ls -A "$root" 2>/dev/null)" ] || [ -d "$root/debootstrap" ] ||
        die "aarch64.sh: $root is neither empty nor a root that this script made"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    debootstrap --arch=arm64 --foreign --variant=minbase --include="$packages" bookworm "$root" \
        "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" | tail -n 1
    # Unpacked is enough: to configure packages takes ten minutes in emulation.
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$root" -x --skip-old-files --keep-directory-symlink
    done
    touch "$root/.healcl-ready"
}

# Compiled here for the root's libraries: in emulation it takes 12 minutes.
build() {
    local libraries=$root/usr/lib/aarch64-linux-gnu
    step "building build/qemu-aarch64"
    rm -f build/qemu-aarch64/CMakeCache.txt # it keeps what it found in another root
    {
        PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$root/usr/share/pkgconfig \
            cmake -G Ninja -B build/qemu-aarch64 -D CMAKE_BUILD_TYPE=Release -D HEALCL_WERROR=ON \
            -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=aarch64 -D CMAKE_SYSROOT="$root" \
            -D CMAKE_C_COMPILER=clang -D CMAKE_C_COMPILER_TARGET=aarch64-linux-gnu \
            -D CMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -D BUILD_TESTING=OFF \
            -D CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -D CMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
            -D CMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
        cmake --build build/qemu-aarch64 -j "$(jobs_count)" --target healcl
    } >"$folder/build.log" 2>&1 || { tail -n 50 "$folder/build.log"; die "aarch64.sh: the build failed"; }
}

shared=$(realpath -m -- "${HEALCL_SHARED:-../shared}")
export HEALCL_CACHE_DIR=$folder/healcl POCL_CACHE_DIR=$folder/pocl
mkdir -p "$HEALCL_CACHE_DIR" "$POCL_CACHE_DIR"
register_emulator
make_root
build
mount_in_root
if [ -n "$shell" ]; then
    chroot "$root" /bin/bash || true
    exit 0
fi
printf '#!/bin/sh\nexec chroot "%s" "%s" "$@"\n' "$root" "$PWD/build/qemu-aarch64/healcl" >"$folder/program"
chmod +x "$folder/program"
export TMPDIR=/tmp
if [ -n "$quick" ]; then
    compile_fast
    python3 -B scripts/platforms.py --healcl "$folder/program" aarch64
    exit
fi
step "AArch64"
check_cpu "$folder/program" check || die "wrong on AArch64"
step "all right on AArch64"
