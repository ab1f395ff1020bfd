#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a release of the last commit: a tarball of its sources, and two Debian packages for each named
# release of Debian: healcl, and healcl-mpi, the only one that needs MPI.
#
#   release.sh [--folder FOLDER] [--wheel] [bookworm] [trixie]
#
# FOLDER, by default build/release-VERSION, gets healcl-VERSION.tar.gz and NAME_VERSION-1~CODENAME_ARCH.deb
# with their SHA256SUMS. Each package is built twice from the tarball, in a bare root of its release, in
# folders of different names. Both builds must be equal byte for byte. In another bare root the package is
# installed, runs the README's transcript, serves to build an application, and is removed without a trace.
# --wheel: also builds the wheel of the Python package with wheel.sh, in a bare root of Debian 11. It is
# tested in bare roots of Debian 12 and 13 with only Python: it is installed, and runs a transcript in
# plain C, then on PoCL.
# The roots come from fresh_root.sh, which needs root's rights, a network, debootstrap and minutes.
#
# CMakeLists.txt has the version. A release is a commit with the tag vVERSION whose CHANGELOG.md has that
# entry. Any other commit is reported as not a release, but built all the same, for a trial.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

version=$(sed -n 's/^project(healcl VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
folder=build/release-$version
releases=() wheel=''
while [ $# -gt 0 ]; do
    case $1 in
    --folder)
        folder=${2:?$(print_help scripts/release.sh >&2)}
        shift
        ;;
    --wheel) wheel=1 ;;
    bookworm | trixie) releases+=("$1") ;;
    *)
        print_help scripts/release.sh >&2
        [ "$1" = --help ] || exit 2
        exit 0
        ;;
    esac
    shift
done
folder=$(realpath -m -- "$folder")
name=healcl-$version
tarball=$folder/$name.tar.gz
made=$(git log -1 --format=%ct)

# Makes the same bytes on every machine: git takes the commit's time, and gzip stores none.
make_tarball() {
    mkdir -p "$folder"
    step "$tarball, of $(git log -1 --format='%h %s')"
    git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$tarball"
    [ "$(git tag --points-at HEAD --list "v$version")" ] || echo "not a release: the commit lacks the tag v$version"
    grep -q "^## $version" CHANGELOG.md || echo "not a release: CHANGELOG.md lacks the entry '## $version'"
}

# In a bare root: HEALCL_SHARED shows FOLDER there.
in_root() { # CODENAME [OPTION...] -- COMMAND
    local codename=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    HEALCL_SHARED=$folder scripts/fresh_root.sh --folder "$roots" "${options[@]}" "$codename" "$@"
}

# shellcheck disable=SC2016 # the root's shell expands
build_package='set -eu
    tarball=$1 version=$2 codename=$3
    export SOURCE_DATE_EPOCH=$4
    scripts/setup.sh
    apt-get install -q -y --no-install-recommends dpkg-dev file libopenmpi-dev >/dev/null
    for folder in one another/folder; do
        rm -rf "/root/$folder"
        mkdir -p "/root/$folder"
        tar -C "/root/$folder" -xzf "$tarball"
        cd "/root/$folder/healcl-$version"
        cmake --preset release -D CPACK_DEBIAN_PACKAGE_RELEASE="1~$codename" >/dev/null
        cmake --build --preset release >/dev/null
        (cd build/release && cpack -G DEB)
    done
    cd /root
    for package in one/healcl-*/build/release/*.deb; do
        cmp "$package" "another/folder/${package#one/}"
    done
    echo "both builds are equal"
    mkdir /root/healcl/packages
    cp one/healcl-*/build/release/*.deb /root/healcl/packages'

# Lists files of removed packages that remain, in all folders that packages write to.
# shellcheck disable=SC2016
try_package='set -eu
    package=$1 mpi_package=$2
    files() { find /usr /etc /var/lib /opt -xdev ! -path "/var/lib/dpkg/*" ! -path "/var/lib/apt/*" \
        ! -path "/etc/ld.so.cache" ! -path "*/__pycache__*" | sort; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update >/dev/null
    apt-get -q -y install --no-install-recommends gcc libc6-dev pkg-config >/dev/null
    [ -e /etc/hosts ] || echo "127.0.0.1 localhost" >/etc/hosts # else netbase makes one, and leaves it
    files >/root/before
    apt-get -q -y install "$package" >/dev/null
    healcl --version
    healcl devices
    healcl run /usr/share/healcl/transcripts/encrypted_digits_toy.json.gz
    test -f /usr/share/man/man1/healcl.1.gz -o -f /usr/share/man/man1/healcl.1
    cc tests/install/application/application.c -o /root/application $(pkg-config --cflags --libs healcl)
    /root/application /usr/share/healcl/transcripts/recognizer.json
    apt-get -q -y purge healcl >/dev/null
    apt-get -q -y autoremove --purge -o APT::AutoRemove::RecommendsImportant=false \
        -o APT::AutoRemove::SuggestsImportant=false >/dev/null
    files >/root/after
    if ! diff /root/before /root/after; then
        echo "these files were not removed"
        exit 1
    fi
    echo "all files were removed"
    apt-get -q -y install "$mpi_package" >/dev/null
    healcl-mpi --version'

make_package() { # CODENAME
    local root=$roots/$1-kept package mpi_package
    step "a package for $1"
    rm -rf --one-file-system "$root"
    in_root "$1" --keep -- sh -c "$build_package" sh "/root/shared/$name.tar.gz" "$version" "$1" "$made"
    package=$(basename "$root"/root/healcl/packages/healcl_*.deb)
    mpi_package=$(basename "$root"/root/healcl/packages/healcl-mpi_*.deb)
    cp "$root/root/healcl/packages/$package" "$root/root/healcl/packages/$mpi_package" "$folder"
    rm -rf --one-file-system "$root"
    step "$package and $mpi_package in a bare root"
    in_root "$1" -- sh -c "$try_package" sh "/root/shared/$package" "/root/shared/$mpi_package"
}

# shellcheck disable=SC2016
try_wheel='set -eu
    cd /
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update >/dev/null
    apt-get -q -y install --no-install-recommends ca-certificates python3-venv >/dev/null
    python3 -m venv /root/venv
    PATH=/root/venv/bin:$PATH
    start=$(date +%s)
    pip install -q "$1"
    python3 -m healcl run seal_multiply.json.gz
    echo "from pip install to the first verified result: $(($(date +%s) - start)) s"
    healcl run -q -d reference recognizer.json
    if healcl run -d cpu recognizer.json; then
        exit 1
    fi
    apt-get -q -y install --no-install-recommends pocl-opencl-icd ocl-icd-libopencl1 >/dev/null
    healcl devices
    healcl run -d pocl seal_multiply.json.gz
    python3 -c "import healcl
report = healcl.load(healcl.sample(\"recognizer.json\")).run(healcl.open(\"pocl\"))
assert report.verified, report"
    pip uninstall -q -y healcl
    [ -z "$(find /root/venv -name "*healcl*")" ]'

make_wheel() {
    local root=$roots/bullseye-kept codename made_wheel
    step "a wheel"
    rm -rf --one-file-system "$root"
    in_root bullseye --keep -- env SOURCE_DATE_EPOCH="$made" scripts/wheel.sh "/root/shared/$name.tar.gz" wheel
    made_wheel=$(basename "$root"/root/healcl/wheel/*.whl)
    cp "$root/root/healcl/wheel/$made_wheel" "$folder"
    rm -rf --one-file-system "$root"
    for codename in bookworm trixie; do
        step "$made_wheel in a bare root"
        in_root "$codename" -- sh -c "$try_wheel" sh "/root/shared/$made_wheel"
    done
}

make_tarball
roots=${XDG_CACHE_HOME:-$HOME/.cache}/healcl-roots
for codename in "${releases[@]}"; do
    make_package "$codename"
done
[ -z "$wheel" ] || make_wheel
cd "$folder"
shopt -s nullglob
sha256sum -- *.tar.gz *.deb *.whl | tee SHA256SUMS
