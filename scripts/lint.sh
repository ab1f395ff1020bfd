#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads the code without running it: clang-format, clang-tidy, shellcheck, the one seam to OpenCL, and
# whether generated files are what their generators make. Needs a build (build/clang).
# shellcheck disable=SC2317 # the functions are called by check
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

failed=0
check() {
    local name=$1
    shift
    printf '%-18s ' "$name"
    local output
    if output=$("$@" 2>&1); then
        echo "clean"
    else
        echo "FAILED"
        printf '%s\n' "$output" | head -n 200
        failed=1
    fi
}

# Every call to OpenCL goes through the table in src/opencl/opencl.h: nobody else calls it directly.
opencl_seam() {
    ! git grep -nE '(^|[^>._A-Za-z0-9])cl[A-Z][A-Za-z]+ *\(' -- 'src/*.c' 'src/*.h' \
        ':!src/opencl/opencl.c' ':!src/opencl/opencl.h'
}

# One file a process: version 14 reports va_lists wrongly where it reads several.
tidy() {
    local tidy
    tidy=$(first_command clang-tidy-14 clang-tidy)
    git ls-files -z 'src/*.c' | xargs -0 -P "$(jobs_count)" -n 1 \
        "$tidy" -p build/clang --quiet --warnings-as-errors='*' 2>&1 |
        sed '/^[0-9]* warnings* generated\.$/d'
}

shell_scripts() {
    if ! command -v shellcheck >/dev/null; then
        echo "shellcheck is not installed: skipped"
        return
    fi
    shellcheck -x .ci/run scripts/*.sh
}

generated() {
    python3 -B scripts/make_transcripts.py --check &
    local bad=0
    python3 -B scripts/make_transcripts.py --check --bad tests/bad || bad=1
    wait "$!" || bad=1
    python3 -B scripts/device_table.py --check README.md docs/DEVICES.md || bad=1
    return "$bad"
}

# Dependencies point one way: a module includes headers of its own and of those before it, and the
# internal.h of no other one.
modules() {
    local bad=0 module allowed
    if git grep -nE '#include "[a-z]+/[a-z_]*internal[.]h"' -- 'src/*' |
        grep -vE '^src/([a-z]+)/[^:]*:[0-9]+:#include "\1/'; then
        bad=1
    fi
    while read -r module allowed; do
        if git grep -nE '#include "[a-z]+/' -- "src/$module/*" |
            grep -vE "#include \"($allowed)/"; then
            bad=1
        fi
    done <<'END'
core core
transcript core|transcript
plan core|transcript|plan
vendor core|transcript|plan|vendor
reference core|transcript|plan|reference
opencl core|opencl|cl
kernels core|transcript|plan|vendor|opencl|kernels|cl
run core|transcript|plan|vendor|reference|opencl|kernels|run
tools core|transcript|plan|vendor|reference|opencl|kernels|run|tools|cl
cli core|transcript|plan|vendor|opencl|kernels|run|tools|cli
mpi core|transcript|plan|vendor|opencl|run|tools|cli|mpi
END
    return "$bad"
}

# Files of these modules do not call each other in circles: tsort reports a loop.
file_circles() {
    local module bad=0
    for module in core vendor opencl kernels tools; do
        git ls-files "src/$module/*.c" |
            sed "s|.*|build/clang/CMakeFiles/healcl_$module.dir/&.o|" | xargs nm -A | awk '
            { file = $1; sub(/:.*/, "", file); name = $NF }
            $(NF - 1) ~ /^[TDRB]$/ { home[name] = file }
            $(NF - 1) == "U" { uses[file " " name] = file }
            END {
                for (use in uses) {
                    name = substr(use, length(uses[use]) + 2)
                    if (name in home) print uses[use], home[name]
                }
            }' | tsort >/dev/null || bad=1
    done
    return "$bad"
}

check "format" scripts/format.sh --check
check "OpenCL's one seam" opencl_seam
check "modules" modules
check "circles of files" file_circles
check "shell scripts" shell_scripts
check "generated files" generated
check "clang-tidy" tidy
exit "$failed"
