#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a clone runs on a bare machine. Creates a root folder of Debian with only the packages
# that every Debian has, clones the last commit into it, and runs scripts/demo.sh and scripts/test.sh
# there. scripts/setup.sh must install what they need.
#
#   fresh_root.sh [OPTION...] [bullseye|bookworm|trixie] [COMMAND [ARGUMENT...]]
#
# With COMMAND, only that runs in the clone, as in: fresh_root.sh trixie scripts/test.sh -R install
#
# --folder FOLDER: the folder for roots, and for an archive of each release's fresh root, which makes a
#   second run quick; by default ~/.cache/healcl-roots. Remove an archive to create it again.
# --mirror URL: the mirror of Debian's packages; by default DEBIAN_MIRROR, else that of this machine's
#   apt.
# --no-shared: hides the shared folder. By default the root sees it if it is beside the clone, or if
#   HEALCL_SHARED names it.
# --keep: keeps the root; the next run with --keep uses it again. By default it is removed.
#
# It needs root's rights, a network, packages debootstrap and git, and 4 GB of disk. Mounts and
# processes are in their own namespaces, so none of them remains.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

folder=${XDG_CACHE_HOME:-$HOME/.cache}/healcl-roots
shared=$(realpath -m -- "${HEALCL_SHARED:-../shared}")
mirror=${DEBIAN_MIRROR-} keep='' codename=bookworm

while [ $# -gt 0 ]; do
    case $1 in
    --folder | --mirror)
        [ $# -gt 1 ] || die "fresh_root.sh: $1 takes a value"
        if [ "$1" = --folder ]; then folder=$(realpath -m -- "$2"); else mirror=$2; fi
        shift
        ;;
    --no-shared) shared='' ;;
    --keep) keep=1 ;;
    -*)
        print_help scripts/fresh_root.sh
        [ "$1" = --help ] || exit 2
        exit 0
        ;;
    *) break ;;
    esac
    shift
done
case ${1-} in
bullseye | bookworm | trixie)
    codename=$1
    shift
    ;;
esac
[ $# -gt 0 ] || set -- sh -c 'scripts/demo.sh && scripts/test.sh'

[ "$(id -u)" = 0 ] || die "fresh_root.sh: only root can create a root folder and change into it"
for command in debootstrap git unshare chroot tar; do
    command -v "$command" >/dev/null ||
        die "fresh_root.sh: $command is missing: install package debootstrap, git or util-linux"
done
archive=$folder/$codename.tar.gz
root=$folder/$codename-kept

# A signal ends processes in namespaces, and EXIT removes the root unless it stays.
child='' made=()
# shellcheck disable=SC2317 # trap calls it
finish() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    [ ${#made[@]} = 0 ] || rm -rf --one-file-system "${made[@]}" || true
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# isolated COMMAND...: in namespaces of its own, so that nothing stays mounted and no process stays
# behind. In the background, where it could not be waited for otherwise while a signal comes.
isolated() {
    local status=0
    unshare --mount --pid --fork --kill-child -- "$@" <&0 &
    child=$!
    wait "$child" || status=$?
    child=''
    return "$status"
}

# Prints the mirror of Debian's main component for this machine's apt; off Debian, Debian's own.
mirror_of_apt() {
    local found=''
    if command -v apt-get >/dev/null; then
        # shellcheck disable=SC2016 # apt expands
        found=$(apt-get indextargets --format '$(COMPONENT) $(REPO_URI) $(ORIGIN)' \
            'Identifier: Packages' | awk '$1 $3 == "mainDebian" && !found++ { print $2 }') || found=''
    fi
    echo "${found:-http://deb.debian.org/debian}"
}

# Prints this machine's apt settings for downloads: proxies, and checks of dates.
downloads_of_apt() {
    ! command -v apt-config >/dev/null ||
        apt-config dump | grep -E '^Acquire::(https?::|Check-Date |Check-Valid-Until ).*".+";$' || true
}

make_archive() {
    local fresh proxy='' include='' log=$folder/$codename.log
    [ ! -e "$archive" ] || return 0
    mirror=${mirror:-$(mirror_of_apt)}
    step "a root of $codename, from $mirror"
    fresh=$(mktemp -d "$folder/fresh-XXXXXX")
    made+=("$fresh" "$archive.part")
    chmod 755 "$fresh"
    ! command -v apt-config >/dev/null || eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [[ $mirror != https:* ]] || include=ca-certificates # which minbase has not
    isolated env ${proxy:+"http_proxy=$proxy"} debootstrap --variant=minbase \
        ${include:+"--include=$include"} "$codename" "$fresh" "$mirror" >"$log" 2>&1 || {
        tail -n 20 "$log"
        die "fresh_root.sh: debootstrap failed ($log); --mirror selects another mirror"
    }
    downloads_of_apt >"$fresh/etc/apt/apt.conf.d/90downloads"
    tar -C "$fresh" -czf "$archive.part" .
    mv "$archive.part" "$archive"
}

make_root() {
    if [ -z "$keep" ]; then
        root=$(mktemp -d "$folder/$codename-XXXXXX")
        made+=("$root")
    fi
    if [ ! -e "$root/etc/debian_version" ]; then
        mkdir -p "$root"
        tar -C "$root" -xzf "$archive"
    fi
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    # Authorities that this machine trusts of its own: package ca-certificates takes them up.
    cp -r /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null || true
}

# The last commit, which is what others get: not what is uncommitted.
clone() {
    local there=$root/root/healcl
    if [ -e "$there" ]; then
        git -C "$there" fetch -q "$PWD" HEAD
        git -C "$there" reset -q --hard FETCH_HEAD
    else
        git clone -q --no-hardlinks "$PWD" "$there"
    fi
    step "$codename $(cat "$root/etc/debian_version"): $(git log -1 --format='%h %s')"
}

# within COMMAND...: runs it in the root's clone, with nothing of this machine's environment.
within() {
    # shellcheck disable=SC2016 # inner shells expand
    isolated sh -ec '
        root=$1 shared=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        if [ -d "$shared" ]; then
            mkdir -p "$root/root/shared"
            mount --bind "$shared" "$root/root/shared"
            mount -o remount,bind,ro "$root/root/shared"
        else
            rm -rf --one-file-system "$root/root/shared" # of an earlier run: empty
        fi
        exec chroot "$root" /usr/bin/env -i --default-signal=INT HOME=/root TERM="${TERM-dumb}" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            ${HEALCL_JOBS:+"HEALCL_JOBS=$HEALCL_JOBS"} \
            ${HEALCL_TEST_SEED:+"HEALCL_TEST_SEED=$HEALCL_TEST_SEED"} \
            sh -c '\''cd /root/healcl && exec "$@"'\'' sh "$@"
    ' sh "$root" "$shared" "$@"
}

mkdir -p "$folder"
make_archive
make_root
clone
status=0
within "$@" || status=$?
[ -z "$keep" ] || step "kept: $root"
exit "$status"
