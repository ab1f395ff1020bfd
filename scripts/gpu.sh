#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests healcl on a machine with a GPU, in at most 8 minutes. That machine needs only the GPU's driver
# and bash: no network, CMake or Python. Everything comes in a folder.
#
#   gpu.sh --pack FOLDER   here: builds healcl into FOLDER, with the libraries that it needs, an ICD
#                          loader, and the bundled transcripts (and the good ones of
#                          ../shared/conformance or HEALCL_SHARED, if it exists)
#   FOLDER/gpu.sh [OUT]    there: runs devices, check, every transcript, bench, and compare with the
#                          CPU if it has a driver. Writes logs, JSON, page.html and
#                          VENDOR-DEVICE.json, for docs/SUBMIT.md, to OUT (default FOLDER/results)
#
# HEALCL_DEVICE selects another device than the GPU, GPU_SECONDS another time. The exit code is 1 if a
# step failed or had no time left; OUT/summary.txt names it.
#
# GPU_WORKLOADS=1 instead makes the largest encrypted workloads there and runs them: hybrid key
# switching of 466 MB, cold and warm, bootstrapping of 5.6 GB, sentiment. It needs Python 3.9 or later
# with NumPy and cffi there, and the Python package of scripts/test_python.sh here when it packs.
# GPU_N makes them with other polynomials than of 65536 coefficients.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

pack() { # FOLDER
    local folder library
    folder=$(realpath -m -- "$1")
    cd "$here/.."
    # shellcheck source=scripts/common.sh
    . scripts/common.sh
    # Only the program uses libraries beside it; drivers use the system's. An RPATH, unlike a RUNPATH,
    # also applies to libraries' own dependencies: libzip needs libcrypto.
    cmake --preset release -B build/pack -D CMAKE_SKIP_RPATH=ON \
        -D CMAKE_EXE_LINKER_FLAGS="-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" >/dev/null
    cmake --build build/pack -j "$(jobs_count)"
    mkdir -p "$folder/lib" "$folder/transcripts"
    cp build/pack/healcl scripts/gpu.sh "$folder"
    ldd build/pack/healcl | awk '$2 == "=>" { print $3 }' | while read -r library; do
        case $library in
        */libc.so.* | */libm.so.* | */libpthread.so.* | */libdl.so.*) ;; # glibc is the machine's
        *) cp -L "$library" "$folder/lib" ;;
        esac
    done
    # The program loads it when it runs, by the path of its other libraries.
    library=$(ldconfig -p | awk '$1 == "libOpenCL.so.1" && !found++ { print $NF }')
    [ -n "$library" ] || die "gpu.sh: libOpenCL.so.1 is missing: install ocl-icd-libopencl1"
    cp -L "$library" "$folder/lib/libOpenCL.so.1"
    cp transcripts/*.json transcripts/*.json.gz "$folder/transcripts"
    library=${HEALCL_SHARED:-../shared}/conformance
    if [ -d "$library" ]; then
        mkdir -p "$folder/conformance"
        find "$library" -name '*.json*' ! -name 'bad_*' -exec \
            cp --no-preserve=mode -t "$folder/conformance" {} +
    fi
    library=(build/python/lib/python3*/site-packages/healcl)
    if [ -d "${library[0]}" ]; then
        mkdir -p "$folder/python/bindings/python/src"
        cp -r scripts models "$folder/python"
        cp -r "${library[0]}" "$folder/python/bindings/python/src"
    fi
    echo "gpu.sh: $folder is complete: $(du -sh "$folder" | cut -f 1), for glibc $(
        objdump -T build/pack/healcl | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d _ -f 2
    ) and later"
}

# Registers known drivers if none is registered, as in containers that get one from outside.
register_drivers() {
    local library
    compgen -G "/etc/OpenCL/vendors/*.icd" >/dev/null || [ -n "${OCL_ICD_VENDORS-}" ] && return
    mkdir -p "$out/icd"
    for library in $(ldconfig -p 2>/dev/null |
        awk '/lib(nvidia-opencl|amdocl64|igdrcl|rusticl|RusticlOpenCL)\.so/ { print $NF }'); do
        echo "$library" >"$out/icd/${library##*/}.icd"
    done
    export OCL_ICD_VENDORS=$out/icd
}

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }

# step NAME SECONDS COMMAND...: at most so many of what is left; its output becomes NAME.txt.
failed=0
step() {
    local name=$1 seconds=$2 start=$SECONDS code=0
    shift 2
    [ "$seconds" -le $((end - SECONDS)) ] || seconds=$((end - SECONDS))
    if [ "$seconds" -le 0 ]; then
        say "$name: not run, because no time was left"
        failed=1
        return
    fi
    timeout -k 5 "$seconds" "$@" >"$out/$name.txt" 2>&1 </dev/null || code=$?
    case $code in
    0) say "$name: good, in $((SECONDS - start)) s" ;;
    124 | 137) say "$name: stopped after $((SECONDS - start)) s" ;;
    *) say "$name: exit code $code after $((SECONDS - start)) s: $(tail -n 1 "$out/$name.txt")" ;;
    esac
    [ "$code" = 0 ] || failed=1
}

run_transcripts() {
    local file bad=0 count=0
    for file in "$here"/transcripts/*.json* "$here"/conformance/*.json*; do
        [ -e "$file" ] || continue
        count=$((count + 1))
        echo "== ${file##*/}"
        "$healcl" run -q -d "$device" --json "$out/runs/${file##*/}.run" "$file" || bad=$((bad + 1))
    done
    echo "$bad of $count transcripts failed"
    [ "$bad" = 0 ]
}

make_workload() { # NAME
    PYTHONPATH=$here/python/bindings/python/src LD_LIBRARY_PATH=$here/lib python3 -B \
        "$here/python/scripts/make_transcripts.py" --encrypted "$1" "$out/made/$1.json" \
        ${GPU_N:+--n "$GPU_N"}
}

# Five first results with empty caches, and what they spent on building kernels.
run_cold() { # FILE
    for _ in 1 2 3 4 5; do
        HEALCL_CACHE_DIR=$(mktemp -d -p "$out/made") CUDA_CACHE_DISABLE=1 \
            "$healcl" run -q -d "$device" --json - "$1" | grep -E '"(first_result|compile)_ns"'
    done
}

measure_workloads() {
    local name
    export -f make_workload run_cold
    mkdir -p "$out/made"
    for name in hybrid bootstrap; do
        step "make_$name" 200 bash -c "make_workload $name"
        [ $name = bootstrap ] || step "cold_$name" 60 bash -c "run_cold '$out/made/$name.json'"
        step "run_$name" 90 "$healcl" run -d "$device" --repeat 21 --json "$out/$name.json" \
            "$out/made/$name.json"
    done
    step run_sentiment 30 "$healcl" run -d "$device" --repeat 101 --json "$out/sentiment.json" \
        "$here/transcripts/encrypted_sentiment.json.gz"
    rm -rf "$out/made"
}

measure() { # [OUT]
    local cpu=() files=()
    out=$(realpath -m -- "${1:-$here/results}")
    end=$((SECONDS + ${GPU_SECONDS:-480}))
    device=${HEALCL_DEVICE:-gpu}
    healcl=$here/healcl
    mkdir -p "$out/runs"
    : >"$out/summary.txt"
    export HEALCL_CACHE_DIR=$out/cache
    mkdir -p "$HEALCL_CACHE_DIR"
    register_drivers
    say "$("$healcl" --version | head -n 1), device $device, $(uname -srm)"
    step devices 40 "$healcl" devices --measure --json "$out/devices.json"
    export -f run_transcripts
    export here healcl device out
    if [ "${GPU_WORKLOADS-}" = 1 ]; then
        measure_workloads
        say "finished after $SECONDS s; the results are in $out"
        return "$failed"
    fi
    step transcripts 110 bash -c run_transcripts
    step check 100 "$healcl" check -d "$device" --quick --results "$out" --json "$out/check.json"
    step bench 110 "$healcl" bench -d "$device" --json "$out/bench.json"
    "$healcl" devices 2>/dev/null | grep -q ' cpu ' && cpu=(-d cpu)
    [ "$device" != cpu ] || cpu=()
    for file in recognizer encrypted_digits_toy encrypted_sentiment encrypted_sharpen ntt; do
        files+=("$(echo "$here/transcripts/$file".json*)")
    done
    step compare "$((end - SECONDS))" "$healcl" compare --no-measure -d "$device" "${cpu[@]}" \
        --repeat 3 --results "$out" --html "$out/page.html" --json "$out/compare.json" \
        "${files[@]}"
    rm -rf "$HEALCL_CACHE_DIR"
    say "finished after $SECONDS s; the results are in $out"
    return "$failed"
}

case ${1-} in
--pack)
    [ $# = 2 ] || { echo "usage: gpu.sh --pack FOLDER" >&2; exit 2; }
    pack "$2"
    ;;
-*)
    sed -n '3,/^set /s/^# \{0,1\}//p' "$0"
    ;;
*)
    [ -x "$here/healcl" ] || { echo "gpu.sh: make a folder with --pack first" >&2; exit 2; }
    measure "$@"
    ;;
esac
