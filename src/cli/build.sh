# Compiles each source here. Then, on a machine with the device:
# healcl compile --from THIS_FOLDER -o PACKAGE. All tools can be named in the environment.
set -eu
cd "$(dirname "$0")"
: "${target:?}"
clang=${CLANG:-$(command -v clang-15 || echo clang)}

first() {
    for path in "$@"; do
        if [ -e "$path" ]; then
            echo "$path"
            break
        fi
    done
}

# Each is called as: compile SOURCE BINARY
case $target in
fpga*)
    # Intel's aoc, and clang, which preprocesses. All kernels become one source, for one bitstream.
    : >workload.cl
    compile() {
        "$clang" -E -P -x cl -cl-std=CL1.2 -cl-no-stdinc -target spir64 "$1" |
            awk -v prefix="p${1%%_*}_" -v kernels="$(sed -n 's|^// kernels:||p' "$1")" \
                -f one_source.awk >>workload.cl
    }
    ;;
gfx*)
    # clang with lld, and rocm-device-libs of its version.
    libraries=${ROCM_DEVICE_LIBS:-$(first /usr/lib/*/amdgcn/bitcode /opt/rocm*/amdgcn/bitcode)}
    compile() {
        "$clang" -x cl -cl-std=CL1.2 -O3 -target amdgcn-amd-amdhsa -mcpu="$target" \
            --rocm-device-lib-path="$libraries" -o "$2" "$1"
    }
    ;;
sm_*)
    # clang with libclc of its version. A binary is PTX, which the driver takes; where ptxas is
    # there, it is compiled too, to see that it can be.
    library=${LIBCLC:-/usr/lib/clc/nvptx64--nvidiacl.bc}
    ptxas=${PTXAS:-$(command -v ptxas || true)}
    compile() {
        "$clang" -x cl -cl-std=CL1.2 -O3 -Wno-linker-warnings -target nvptx64-nvidia-nvcl \
            -Xclang -target-cpu -Xclang sm_75 -Xclang -target-feature -Xclang +ptx63 \
            -Xclang -mlink-builtin-bitcode -Xclang "$library" -S -o "$2" "$1"
        [ -z "$ptxas" ] || "$ptxas" -arch="$target" -o /dev/null "$2"
    }
    ;;
spirv*)
    # clang, and llvm-spirv of its version. SPIR-V is what vendors' own tools finish.
    compile() {
        "$clang" -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header \
            -Xclang -disable-llvm-passes -emit-llvm -c -o "$2.bc" "$1"
        "${LLVM_SPIRV:-$(command -v llvm-spirv-15 || echo llvm-spirv)}" \
            --spirv-max-version=1.2 -o "$2" "$2.bc"
        rm "$2.bc"
    }
    ;;
*)
    # ocloc (intel-opencl-icd), which knows the name of the device.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    compile() {
        rm -rf "${folder:?}"/*
        "${OCLOC:-ocloc}" compile -q -file "$1" -device "$target" -options -cl-std=CL1.2 \
            -out_dir "$folder"
        mv "$folder"/*.bin "$2"
    }
    ;;
esac

for source in [0-9]*.cl; do
    compile "$source" "${source%.cl}.bin"
done
# AOCFLAGS may name the board.
# shellcheck disable=SC2086 # flags are words
case $target in fpga*) "${AOC:-aoc}" ${AOCFLAGS:-} workload.cl -o workload.aocx ;; esac
