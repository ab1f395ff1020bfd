#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Open MPI's mpirun over two hosts that are none: network namespaces with names and addresses of
# their own, and a cable between them (veth). Files are those of this machine. It takes root, and
# Debian's iproute2 and openmpi-bin. Arguments are mpirun's, where HOST1 and HOST2 stand for names:
#
#     scripts/two_hosts.sh -n 2 build/test/healcl-mpi run transcripts/sentiment.json
#     scripts/two_hosts.sh -n 1 --host HOST1 healcl-mpi ... : -n 1 --host HOST2 healcl-mpi ...
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

[ "$(id -u)" = 0 ] || die "$0 makes network namespaces: it takes root"
command -v ip >/dev/null || die "$0 takes ip, of iproute2"
mpirun=${MPIRUN:-mpirun}
names=("hcl$$a" "hcl$$b")
folder=$(mktemp -d)

remove() {
    for name in "${names[@]}"; do
        ip netns del "$name" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap remove EXIT

for i in 0 1; do
    ip netns add "${names[i]}"
    ip -n "${names[i]}" link set lo up
done
ip link add "${names[0]}" netns "${names[0]}" type veth peer name "${names[1]}" netns "${names[1]}"
for i in 0 1; do
    ip -n "${names[i]}" address add "10.97.0.$((i + 1))/24" dev "${names[i]}"
    ip -n "${names[i]}" link set "${names[i]}" up
    echo "10.97.0.$((i + 1)) ${names[i]}" >>"$folder/names"
    echo "${names[i]} slots=$(nproc)" >>"$folder/hosts"
done

# Stands in for ssh: HOST COMMAND...
cat >"$folder/agent" <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec "\$host" unshare --uts --mount sh -c \\
    'hostname "\$0" && mount --bind $folder/names /etc/hosts && exec sh -c "\$1"' "\$host" "\$*"
END
chmod +x "$folder/agent"

arguments=("$@")
arguments=("${arguments[@]/#HOST1/${names[0]}}")
arguments=("${arguments[@]/#HOST2/${names[1]}}")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
printf -v command '%q ' "$mpirun" --mca plm_rsh_agent "$folder/agent" --hostfile "$folder/hosts" \
    --mca btl tcp,self --mca btl_tcp_if_include 10.97.0.0/24 --mca oob_tcp_if_include 10.97.0.0/24 \
    --map-by node "${arguments[@]}"
"$folder/agent" "${names[0]}" "cd $(printf %q "$PWD") && exec $command"
