#!/bin/sh
# Checks and timings on a machine with an NVIDIA GPU that reaches no network.
#
#     gpu-check.sh --pack FOLDER [--build FOLDER]    on any machine with pip: what the other one needs and has not
#     gpu-check.sh [OPTION...] PART...               there: runs the parts; each line is printed at once
#
#     parity    ours on the GPU beside ours on the host: kernels against closed forms, fixed effects and alignments in every type
#               and option of their tests; compute-sanitizer on the first where it is installed
#     fe        demeaning of 1e4 to 5e6 rows, 1, 5 and 11 columns, two designs: the chosen solver, CG, LSMR with its scalars there
#               and on the host, in f64 and f32, beside pyfixest's torch backend eager, compiled and batched
#     gw        100 passes of Sinkhorn of 5001 x 6001 and 10001 x 12001, f32, u16 and f64, beside torch; six alignments beside
#               torchgw; 45000 x 45000
#     again     the tests of parity once more
#     peers     the seeds' tables by their old and new ways, with no code of ours
#     soap, gp  nothing to run yet
#
#     --pack FOLDER     what --pack has made: wheels, and with --build fourge itself and the libraries that it needs
#     --build FOLDER    fourge, its package, plug-ins and test programs as they were built; without it and a pack they are built
#     --out FILE        lines are added to FILE (such as bench/results/gpu.jsonl), and jobs that FILE says are done are left out
#     --seconds N       begins no job that might end later than N seconds from now
#     --most N          gives no job more than N seconds
#     --device opencl   on OpenCL's first device, such as PoCL's, and no peers: tries the script where there is no GPU
#     --small           the same jobs on a few rows and points, for the same purpose
#
# A part is a list of jobs, the most worth first, each with a limit of its own; one that fails or is cut off is said in a line
# and the next begins.  With a GPU for a quarter of an hour: --out FILE --seconds 500 parity fe gw again, and the same once more.
# There are expected: an NVIDIA driver, python3 with NumPy and torch (and GPyTorch for its rows); cmake and nvcc without
# --build.  No part changes a setting of the GPU.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PEERS="pyfixest torchgw"
PACK_MOST=64 # MiB
TESTS="test_device test_fe_device test_fe_device_passes test_fe_slopes_device test_gw_device test_gw_align_device test_gw_lowrank_device test_gw_state_device \
    test_gw_default_device"
PROGRAMS="fourge $TESTS"
TARGETS="fourge_program fourge_python fourge_opencl fourge_cuda $TESTS"

pack='' build='' out='' seconds=100000 longest=100000 device=cuda small=
while [ $# -gt 0 ]; do
    case $1 in
    --pack | --build | --out | --seconds | --most | --device)
        [ $# -ge 2 ] || { echo "gpu-check.sh: $1 takes a value" >&2; exit 2; }
        ;;
    esac
    case $1 in
    --pack) pack=$2 ;;
    --build) build=$(cd "$2" && pwd) ;;
    --out) out=$2 ;;
    --seconds) seconds=$2 ;;
    --most) longest=$2 ;;
    --device) device=$2 ;;
    --small) small=yes ;;
    -*) echo "gpu-check.sh: unknown option $1" >&2; exit 2 ;;
    *) break ;;
    esac
    [ "$1" = --small ] || shift
    shift
done

# The build's programs with the shared libraries that are not the C library's, as one archive.
pack_build() {
    packed=$(mktemp -d)
    mkdir "$packed/libs"
    # shellcheck disable=SC2086 # names of programs
    (cd "$build" && cp -L $PROGRAMS libfourge_*.so "$packed" && cp -RL python "$packed") || return 1
    find "$packed" -type f -exec ldd {} + 2>/dev/null | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|pthread|rt|fourge.*)\.so/ { print $3 }' |
        sort -u | while read -r library; do cp -L "$library" "$packed/libs"; done
    find "$packed" -name '*.so*' -exec strip {} + 2>/dev/null || :
    tar czf "$pack/ours.tar.gz" -C "$packed" . || return 1
    rm -rf "$packed"
}

# The wheels of $PEERS alone, each for the Python that torch's images have; a package without such a wheel is left out and said.
make_pack() {
    mkdir -p "$pack"
    [ -z "$build" ] || pack_build
    for name in $PEERS; do
        python3 -m pip download -q --no-deps --only-binary=:all: --python-version "${PEER_PYTHON:-3.12}" --implementation cp \
            --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
            -d "$pack" "$name" >/dev/null 2>&1 || echo "gpu-check.sh: no wheel of $name: its rows will be missing"
    done
    size=$(du -sm "$pack" | cut -f1)
    echo "$(find "$pack" -name '*.whl' | wc -l) wheels, $size MiB in $pack"
    [ "$size" -le $PACK_MOST ] || { echo "gpu-check.sh: more than $PACK_MOST MiB" >&2; exit 1; }
}

say() {
    if [ -n "$out" ]; then tee -a "$out"; else cat; fi
}

# job NAME SECONDS COMMAND...: what it prints are lines; the last says how it ended.  A job that did not end well runs again.
job() {
    name=$part/$1${small:+/small}
    most=$(($2 < longest ? $2 : longest))
    shift 2
    if [ -n "$out" ] && grep -qs "\"job\": \"$name\", \"device\": \"$device\", \"status\": 0," "$out"; then
        return 0
    fi
    start=$(date +%s)
    status=124
    if [ $((start + most)) -le "$end" ]; then
        status=0
        { timeout -k 5 "$most" "$@" || echo $? >"$site/status"; } | say
        [ ! -f "$site/status" ] || status=$(cat "$site/status")
        rm -f "$site/status"
        note="ended with $status after at most $most s"
    else
        note="no time left: it may take $most s"
    fi
    [ "$status" != 0 ] || note=
    echo "{\"machine\": \"$MACHINE\", \"bench\": \"gpu-check\", \"job\": \"$name\", \"device\": \"$device\", \"status\": $status," \
        "\"wall\": $(($(date +%s) - start))${note:+, \"note\": \"$note\"}}" | say
}

# script NAME SECONDS FILE OPTION...: a script of bench/ on the device.
script() {
    name=$1
    most=$2
    file=$3
    shift 3
    job "$name" "$most" env PYTHONPATH="$build/python:$site/wheels${PYTHONPATH:+:$PYTHONPATH}" \
        python3 "$root/bench/$file" --device "$device" "$@"
}

# tests NAME SECONDS PROGRAM CASES: of a test program those whose names have CASES; a line for each that failed, and the count.
tests() {
    # shellcheck disable=SC2016 # of the shell that it starts
    job "$1" "$2" sh -c '"$1" --only "$2" | awk -v machine="$3" "$4"' tests "$build/$3" "$4" "$MACHINE" '
        { gsub(/["\\]/, "") }
        /^not ok/ || /passed, .* failed/ {
            printf "{\"machine\": \"%s\", \"bench\": \"gpu-check\", \"said\": \"%s\"}\n", machine, $0
        }
        /passed, .* failed/ { good = $1 > 0 && / 0 failed/ }
        END { exit !good }'
}

need_ours() {
    [ -z "$build" ] || return 0
    build=$site/build
    # shellcheck disable=SC2086 # a list of targets
    if ! { cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release "-DFOURGE_CPU_LEVELS=plain;v4" -DFOURGE_TESTS=ON \
        -DFOURGE_PYTHON=ON && cmake --build "$build" -j "$(nproc)" --target $TARGETS; } >"$site/build.log" 2>&1; then
        echo "{\"bench\": \"gpu-check\", \"note\": \"ours was not built: $(tail -n 1 "$site/build.log" | tr -d '\\"')\"}" | say
    fi
}

all_tests() {
    tests kernels 60 test_device "$device"
    tests fe 90 test_fe_device OpenCL
    tests passes 60 test_fe_device_passes OpenCL
    tests slopes 60 test_fe_slopes_device OpenCL
    tests sinkhorn 90 test_gw_device OpenCL
    tests align 120 test_gw_align_device OpenCL
    tests lowrank 60 test_gw_lowrank_device OpenCL
    tests states 60 test_gw_state_device OpenCL
    tests defaults 60 test_gw_default_device OpenCL
}

again() {
    need_ours
    all_tests
}

parity() {
    need_ours
    # shellcheck disable=SC2016 # of the shell that it starts
    job doctor 60 sh -c '"$1" doctor --format json | tr -d "\n" | tr -s " " && echo' doctor "$build/fourge"
    all_tests
    if [ "$device" = cuda ] && command -v compute-sanitizer >/dev/null; then
        job memcheck 120 compute-sanitizer --error-exitcode 1 --log-file "$site/memcheck" "$build/test_device" --only cuda
    fi
}

# demean NAME SECONDS ROWS OPTION...: seed_fe.py.
demean() {
    name=$1
    most=$2
    rows=${small:+2e3}
    rows=${rows:-$3}
    shift 3
    script "$name" "$most" python/seed_fe.py --rows "$rows" "$@"
}

fe() {
    need_ours
    ours=fourge,fourge_cg,fourge_lsmr,fourge_lsmr_eager
    plain=$ours,torch_eager,torch_batched
    demean 1e6 90 1e6 --columns 11,1,5 --dtypes f64 --sides $plain
    demean 5e6 120 5e6 --columns 11,1 --dtypes f64 --sides $plain
    demean few 60 1e4,1e5 --columns 1,5,11 --sides $plain
    demean 1e6_f32 60 1e6 --columns 1,5,11 --dtypes f32 --sides $plain
    demean 5e6_f32 90 5e6 --columns 11,1 --dtypes f32 --sides $plain
    demean compiled 120 1e6 --columns 1,11 --dtypes f64 --sides torch_compiled,torch_batched_compiled
    demean others 150 5e5,2e6 --columns 1,5,11 --sides $plain
    demean 5e6_5 90 5e6 --columns 5 --sides $plain
    demean compiled_f32 150 1e4,1e5,1e6 --columns 1,11 --dtypes f32 --sides torch_compiled,torch_batched_compiled
}

gw() {
    need_ours
    one=${small:+0} # small: 50, 10 and 100 times fewer points
    script sinkhorn 90 python/seed_gw.py --parts sinkhorn --over "${one:+5}${one:-1}"
    script rows 120 python/seed_gw.py --parts rows --over "1$one"
    script large 120 python/seed_gw.py --parts large --over "1$one$one"
    script quality 40 python/seed_gw.py --parts quality --over "1$one"
}

peers() {
    script fe 130 python/seed_fe.py --rows 1e5,1e6,5e6 --columns 1,5,10 --sides torch_eager,torch_compiled,torch_batched,torch_batched_compiled
    script gp_fit 50 peers/gp_peers.py --job fit 50 100 500 1000
    script gp_fit_large 120 peers/gp_peers.py --job fit 2000 5000 10000
    script gp_step 50 peers/gp_peers.py --job step 500 2000 5000
    script gp_value 20 peers/gp_peers.py --job value 500 2000 5000
    script soap 30 python/seed_soap.py
    script soap_2048 40 python/seed_soap.py --hidden 2048
    script gw_sinkhorn 40 python/seed_gw.py --parts sinkhorn --sides torch
    script gw_rows 50 python/seed_gw.py --parts rows,quality --sides torchgw
}

for part in "$@"; do
    case $part in
    parity | fe | gw | again | peers | soap | gp) ;;
    *)
        echo "gpu-check.sh: unknown part $part: parity, fe, gw, again, peers, soap or gp" >&2
        exit 2
        ;;
    esac
done
if [ $# = 0 ]; then
    [ -n "$pack" ] || { sed -n '2,37s/^# \{0,1\}//p' "$0"; exit 2; }
    make_pack
    exit
fi
case $device in
cuda)
    MACHINE=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1) || MACHINE=
    [ -n "$MACHINE" ] || { echo "gpu-check.sh: no NVIDIA GPU: nvidia-smi names none" >&2; exit 69; }
    ;;
opencl) MACHINE="OpenCL without a GPU" ;;
*)
    echo "gpu-check.sh: unknown device $device: cuda or opencl" >&2
    exit 2
    ;;
esac
export MACHINE FOURGE_TEST_DEVICE="$device"
end=$(($(date +%s) + seconds))
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
for wheel in "${pack:-/nowhere}"/*.whl; do
    [ ! -f "$wheel" ] || python3 -m pip install -q --no-index --no-deps --no-compile --target "$site/wheels" "$wheel" >/dev/null 2>&1 ||
        echo "{\"bench\": \"gpu-check\", \"note\": \"not installed: $(basename "$wheel")\"}" | say
done
if [ -z "$build" ] && [ -f "$pack/ours.tar.gz" ]; then
    build=$site/build
    mkdir "$build"
    tar xzf "$pack/ours.tar.gz" -C "$build"
    LD_LIBRARY_PATH=$build/libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
LIMIT=${LIMIT:-5} # a first call of more seconds stays the only one
export LIMIT
for part in "$@"; do
    case $part in
    parity | fe | gw | again | peers) "$part" ;;
    *) echo "{\"bench\": \"gpu-check\", \"part\": \"$part\", \"note\": \"nothing to run yet\"}" | say ;;
    esac
done
