#include "cli/emit.h"

#include <string.h>

extern const char healcl_cli_one_source_awk[];

/* Each is called as: compile SOURCE BINARY. All tools can be named in the environment. */
static const struct {
    const char *prefix, *shape, *tools, *compile, *finish;
} targets[] = {
    {"fpga", "accelerator",
     "# Needs Intel's aoc, and clang, which preprocesses. All kernels become one source, for one\n"
     "# bitstream; AOCFLAGS may name the board.\n"
     "clang=${CLANG:-$(command -v clang-15 || echo clang)}\n"
     "aoc=${AOC:-aoc}\n"
     ": >workload.cl\n",
     "\"$clang\" -E -P -x cl -cl-std=CL1.2 -cl-no-stdinc -target spir64 \"$1\" |\n"
     "        awk -v prefix=\"p${1%%_*}_\" -v kernels=\"$(sed -n 's|^// kernels:||p' \"$1\")\" \\\n"
     "            -f one_source.awk >>workload.cl",
     "# shellcheck disable=SC2086 # flags are words\n"
     "\"$aoc\" ${AOCFLAGS:-} workload.cl -o workload.aocx\n"},
    {"gfx", "gpu",
     "# Needs clang with lld, and rocm-device-libs of its version.\n"
     "first() { for path in \"$@\"; do [ -e \"$path\" ] && { echo \"$path\"; break; }; done; }\n"
     "clang=${CLANG:-$(command -v clang-15 || echo clang)}\n"
     "libraries=${ROCM_DEVICE_LIBS:-$(first /usr/lib/*/amdgcn/bitcode "
     "/opt/rocm*/amdgcn/bitcode)}\n",
     "\"$clang\" -x cl -cl-std=CL1.2 -O3 -target amdgcn-amd-amdhsa -mcpu=\"$target\" \\\n"
     "        --rocm-device-lib-path=\"$libraries\" -o \"$2\" \"$1\"",
     ""},
    {"sm_", "gpu",
     "# Needs clang with libclc of its version. A binary is PTX, which the driver takes; where "
     "ptxas\n"
     "# is there, it is compiled too, to see that it can be.\n"
     "clang=${CLANG:-$(command -v clang-15 || echo clang)}\n"
     "library=${LIBCLC:-/usr/lib/clc/nvptx64--nvidiacl.bc}\n"
     "ptxas=${PTXAS:-$(command -v ptxas || true)}\n",
     "\"$clang\" -x cl -cl-std=CL1.2 -O3 -Wno-linker-warnings -target nvptx64-nvidia-nvcl -Xclang "
     "-target-cpu \\\n"
     "        -Xclang sm_75 -Xclang -target-feature -Xclang +ptx63 \\\n"
     "        -Xclang -mlink-builtin-bitcode -Xclang \"$library\" -S -o \"$2\" \"$1\"\n"
     "    [ -z \"$ptxas\" ] || \"$ptxas\" -arch=\"$target\" -o /dev/null \"$2\"",
     ""},
    {"spirv", "gpu",
     "# Needs clang, and llvm-spirv of its version. SPIR-V is what vendors' own tools finish.\n"
     "clang=${CLANG:-$(command -v clang-15 || echo clang)}\n"
     "spirv=${LLVM_SPIRV:-$(command -v llvm-spirv-15 || echo llvm-spirv)}\n",
     "\"$clang\" -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header \\\n"
     "        -Xclang -disable-llvm-passes \\\n"
     "        -emit-llvm -c -o \"$2.bc\" \"$1\"\n"
     "    \"$spirv\" --spirv-max-version=1.2 -o \"$2\" \"$2.bc\"\n"
     "    rm \"$2.bc\"",
     ""},
    {"", "gpu",
     "# Needs ocloc (intel-opencl-icd), which knows the name of the device.\n"
     "ocloc=${OCLOC:-ocloc}\n"
     "folder=$(mktemp -d)\n"
     "trap 'rm -rf \"$folder\"' EXIT\n",
     "rm -rf \"$folder\"/*\n"
     "    \"$ocloc\" compile -q -file \"$1\" -device \"$target\" -options -cl-std=CL1.2 \\\n"
     "        -out_dir \"$folder\"\n"
     "    mv \"$folder\"/*.bin \"$2\"",
     ""},
};

enum { TARGETS = sizeof targets / sizeof *targets };

/* TARGETS where there is none. */
static size_t find(const char *target)
{
    size_t length = strlen(target), i = 0;
    if (length == 0 || length > 32 ||
        strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length || *target == '-')
        return TARGETS;
    while (strncmp(target, targets[i].prefix, strlen(targets[i].prefix)) != 0)
        i++;
    return i;
}

const char *emit_shape(const char *target)
{
    size_t i = find(target);
    return i < TARGETS ? targets[i].shape : NULL;
}

bool emit_is_one_source(const char *target)
{
    return strcmp(target, "fpga") == 0;
}

bool emit_one_source(FILE *stream)
{
    return fputs(healcl_cli_one_source_awk, stream) >= 0;
}

bool emit_script(const char *target, FILE *stream)
{
    size_t i = find(target);
    return i < TARGETS &&
           fprintf(stream,
                   "#!/bin/sh\n"
                   "# Made by healcl compile --emit: compiles each source here for %s. Then, on a\n"
                   "# machine with the device: healcl compile --from THIS_FOLDER -o PACKAGE\n"
                   "set -eu\n"
                   "cd \"$(dirname \"$0\")\"\n"
                   "target=%s\n"
                   "%s"
                   "compile() {\n"
                   "    %s\n"
                   "}\n"
                   "for source in [0-9]*.cl; do\n"
                   "    compile \"$source\" \"${source%%.cl}.bin\"\n"
                   "done\n"
                   "%s",
                   target, target, targets[i].tools, targets[i].compile, targets[i].finish) > 0;
}

bool emit_defines(const char *options, FILE *stream)
{
    bool good = fprintf(stream, "/* %s */\n", options) > 0;
    for (const char *at = options; good && (at = strstr(at, "-D ")) != NULL;) {
        at += 3;
        size_t length = strcspn(at, " "), name = strcspn(at, " =");
        good = fprintf(stream, "#define %.*s %.*s\n", (int)name, at,
                       (int)(length > name ? length - name - 1 : 0), at + name + 1) > 0;
        at += length;
    }
    return good;
}
