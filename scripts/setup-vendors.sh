#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs further OpenCL implementations on this machine, for comparison and for tests, and registers
# them in a separate folder. The system's registrations, and thereby the default device, do not change.
#
#   setup-vendors.sh [rusticl] [oclgrind] [intel] [fpga]     by default all four
#
# rusticl, oclgrind: Debian or Ubuntu packages, unpacked but not installed.
# intel: Intel's runtime for CPUs, from the Python package index. Its license, which is in the package,
#   applies to everyone who downloads it, and forbids shipping it: keep it out of the repository.
# fpga: an FPGA emulator, which is an older version of the same runtime under another name.
#
# The folder is HEALCL_VENDORS_DIR, by default ~/.local/share/healcl/vendors. Existing
# files are left alone. Exits with 1 if something could not be installed; the others then work.
set -euo pipefail

folder=${HEALCL_VENDORS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/healcl/vendors}
registered=$folder/icd          # for OCL_ICD_VENDORS
environment=$folder/environment # to be sourced
libclc=/usr/lib/clc/spirv64-mesa3d-.spv # rusticl looks for it nowhere else
failed=0

say() { echo "setup-vendors.sh: $*"; }

could_not() { # NAME WHY
    say "$1 is not installed: $2"
    failed=1
}

# find_file NAME: prints where the folder has a file of that name; fails where it has none.
find_file() { find "$folder" -name "$1" -print -quit 2>/dev/null | grep .; }

# is_installed NAME PACKAGE FILE: whether the system has the package, with that file: then what it
# registers is visible already.
is_installed() {
    dpkg -L "$2" 2>/dev/null | grep "/$3" >/dev/null || return 1
    say "$1 is the system's: package $2"
}

# unpack PACKAGE...: unpacks them and what they need that is not installed here into the folder.
unpack() {
    local download missing package
    missing=$(apt-get install -s --no-install-recommends "$@" 2>/dev/null |
        awk '$1 == "Inst" && $3 !~ /^\[/ { print $2 }') || return 1
    [ -n "$missing" ] || return 0
    download=$(mktemp -d)
    # shellcheck disable=SC2086 # a list of words
    if (cd "$download" && apt-get download -q $missing) >"$download/log" 2>&1; then
        for package in "$download"/*.deb; do
            dpkg -x "$package" "$folder/packages"
        done
        rm -r "$download"
        return 0
    fi
    tail -n 3 "$download/log" >&2 || true
    rm -r "$download"
    return 1
}

# register NAME LIBRARY: has the loader find it, if all that it needs is there.
register() {
    local absent
    # shellcheck source=/dev/null
    absent=$(. "$environment" && ldd "$2" | awk '/not found/ { print $1 }' | sort -u)
    if [ -n "$absent" ]; then
        could_not "$1" "these libraries are missing: ${absent//$'\n'/ }"
        return
    fi
    rm -f "$registered/$1.icd" # it may be a link to the system's
    echo "$2" >"$registered/$1.icd"
    say "$1 is registered: $2"
}

# The loader then looks at this list instead of the system's: so it has that too, but for names that
# are taken.
write_environment() {
    local icd libraries
    mkdir -p "$registered"
    for icd in /etc/OpenCL/vendors/*.icd; do
        [ ! -e "$icd" ] || [ -e "$registered/${icd##*/}" ] || ln -sf "$icd" "$registered/"
    done
    libraries=$folder/packages/usr/lib/$(uname -m)-linux-gnu
    cat >"$environment" <<END
export OCL_ICD_VENDORS='$registered'
export LD_LIBRARY_PATH='$libraries'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export RUSTICL_ENABLE=llvmpipe
END
}

# The package with the version of $libclc that this distribution's rusticl is built with; others may
# not have that file at all (Debian 12: libclc-15 has it, libclc-19 has not). Nothing where apt-cache
# does not know.
libclc_package() {
    apt-cache depends mesa-opencl-icd 2>/dev/null |
        awk '$1 ~ /Depends:$/ && $2 ~ /^libclc-[0-9]+$/ && !found++ { print $2 }' || true
}

install_libclc() {
    local package
    package=$(libclc_package)
    if [ "$(id -u)" = 0 ] && [ -n "$package" ]; then
        apt-get install -q -y --no-install-recommends "$package" </dev/null >/dev/null 2>&1
    fi
    [ -e "$libclc" ]
}

setup_rusticl() {
    local name=libRusticlOpenCL.so.1 package
    if is_installed rusticl mesa-opencl-icd "$name"; then
        return
    elif ! find_file "$name" >/dev/null && ! unpack mesa-opencl-icd; then
        could_not rusticl "package mesa-opencl-icd cannot be downloaded"
    elif ! find_file "$name" >/dev/null; then
        could_not rusticl "this distribution's package mesa-opencl-icd is built without it"
    elif [ ! -e "$libclc" ] && ! install_libclc; then
        package=$(libclc_package)
        could_not rusticl "it needs $libclc: install package ${package:-libclc-N}, as root"
    else
        register rusticl "$(find_file "$name")"
    fi
}

# Debian's package registers nothing: the library is found by who names it, or registers it here.
setup_oclgrind() {
    local name=liboclgrind-rt-icd.so library
    library=$(dpkg -L oclgrind 2>/dev/null | grep "/$name$" || true)
    if [ -n "$library" ] && grep -qs "$name" /etc/OpenCL/vendors/*.icd; then
        say "oclgrind is the system's: package oclgrind"
    elif [ -n "$library" ]; then
        register oclgrind "$library"
    elif ! find_file "$name" >/dev/null && ! { unpack oclgrind && find_file "$name" >/dev/null; }; then
        could_not oclgrind "package oclgrind cannot be downloaded"
    else
        register oclgrind "$(find_file "$name")"
    fi
}

# make_environment NAME: an empty Python environment of that name, for a package of Intel's.
make_environment() {
    if [ "$(uname -m)" != x86_64 ]; then
        could_not "$1" "it is for x86_64 only"
        return 1
    fi
    if ! python3 -m venv "$folder/$1" >/dev/null; then
        could_not "$1" "python3 makes no virtual environments (package python3-venv)"
        return 1
    fi
}

setup_intel() {
    local python=$folder/intel/bin/python name=intel/lib/libintelocl.so version
    if [ ! -e "$folder/$name" ]; then
        make_environment intel || return 0
        say "downloading intel-opencl-rt, 250 MB; Intel's licence applies"
        # The compiler's libraries, which the runtime needs and its package does not name.
        if ! "$python" -m pip install -q --disable-pip-version-check intel-opencl-rt ||
            ! version=$("$python" -m pip show intel-opencl-rt | sed -n 's/^Version: //p') ||
            ! "$python" -m pip install -q --disable-pip-version-check "intel-cmplr-lib-rt==$version"; then
            could_not intel "package intel-opencl-rt cannot be had from the Python package index"
            return
        fi
    fi
    register intel "$folder/$name"
}

# A library of that name, with that line in its settings, is the emulator.
setup_fpga() {
    local library=$folder/fpga/lib/libintelocl_emu.so version=2024.2.1
    if [ ! -e "$library" ]; then
        make_environment fpga || return 0
        say "downloading intel-opencl-rt $version, 250 MB; Intel's licence applies"
        if ! "$folder/fpga/bin/python" -m pip install -q --disable-pip-version-check \
            "intel-opencl-rt==$version" "intel-cmplr-lib-rt==$version" tbb; then
            could_not fpga "package intel-opencl-rt $version cannot be had from the Python package index"
            return
        fi
        echo "CL_CONFIG_DEVICES = fpga-emu" >>"$folder/fpga/lib/cl.cfg"
        ln -s libintelocl.so "$library"
    fi
    register fpga "$library"
}

[ $# -gt 0 ] || set -- rusticl oclgrind intel fpga
write_environment
for vendor in "$@"; do
    case $vendor in
    rusticl) setup_rusticl ;;
    oclgrind) setup_oclgrind ;;
    intel) setup_intel ;;
    fpga) setup_fpga ;;
    *)
        echo "usage: $0 [rusticl] [oclgrind] [intel] [fpga]" >&2
        exit 2
        ;;
    esac
done
say "set these variables to make them visible, in addition to the system's:"
sed -n '/^export/s/^/    /p' "$environment"
say "or source them from a file: . $environment"
exit "$failed"
