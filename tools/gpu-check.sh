#!/bin/sh
# Checks and timings on a machine with an NVIDIA GPU that reaches no network.
#
#     gpu-check.sh --pack FOLDER                 on any machine with pip: what the other one needs and has not, into FOLDER
#     gpu-check.sh [--pack FOLDER] PART...       there: runs the parts; each line is printed at once
#
#     peers     the seeds' tables by their old and new ways, with no code of ours: pyfixest's torch backend eager, compiled and
#               batched, GPyTorch beside a backward of its own, batched QR, torchgw, plain torch for Sinkhorn's iteration
#     parity    ours on the GPU beside ours on the host: so far the kernels of kernels/basic, in every type, against closed forms
#     fe, gw, soap, gp    ours on the GPU beside the peers'
#
# There are expected: an NVIDIA driver, python3 with torch (and GPyTorch for its rows), cmake and nvcc for our own code.  A part
# takes nine minutes at most; a row that would take longer is left out and said.  Python packages of FOLDER are installed
# into a temporary folder.  No part changes a setting of the GPU.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PEERS="pyfixest torchgw"
PACK_MOST=64 # MiB

pack=
if [ "${1:-}" = --pack ]; then
    pack=${2:?gpu-check.sh: --pack takes a folder}
    shift 2
fi

# The wheels of $PEERS alone, each for the Python that torch's images have; a package without such a wheel is left out and said.
make_pack() {
    mkdir -p "$pack"
    for name in $PEERS; do
        python3 -m pip download -q --no-deps --only-binary=:all: --python-version "${PEER_PYTHON:-3.12}" --implementation cp \
            --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
            -d "$pack" "$name" >/dev/null 2>&1 || echo "gpu-check.sh: no wheel of $name: its rows will be missing"
    done
    size=$(du -sm "$pack" | cut -f1)
    echo "$(ls "$pack" | wc -l) wheels, $size MiB in $pack"
    [ "$size" -le $PACK_MOST ] || { echo "gpu-check.sh: more than $PACK_MOST MiB" >&2; exit 1; }
}

# row SECONDS COMMAND...: one program of lines; what it has printed stays where its time is over.
row() {
    most=$1
    shift
    status=0
    timeout "$most" "$@" || status=$?
    [ "$status" = 0 ] || echo "{\"bench\": \"gpu-check\", \"command\": \"$*\", \"note\": \"ended with $status after at most $most s\"}"
}

# gpu SCRIPT OPTION...: a script of bench/ on the GPU.
gpu() {
    most=$1
    script=$2
    shift 2
    row "$most" python3 "$root/bench/$script" --device cuda "$@"
}

# The limits of the rows of a part are 530 s together.
peers() {
    gpu 130 python/seed_fe.py --rows 1e5,1e6,5e6 --columns 1,5,10
    gpu 50 peers/gp_peers.py --job fit 50 100 500 1000
    gpu 120 peers/gp_peers.py --job fit 2000 5000 10000
    gpu 50 peers/gp_peers.py --job step 500 2000 5000
    gpu 20 peers/gp_peers.py --job value 500 2000 5000
    gpu 30 python/seed_soap.py
    gpu 40 python/seed_soap.py --hidden 2048
    gpu 40 python/seed_gw.py --parts sinkhorn
    gpu 50 python/seed_gw.py --parts rows,quality
}

# Ours is built from the checkout; the test of the machine runs the kernels on the GPU against closed forms, twice.
ours=
build_ours() {
    [ -z "$ours" ] || return 0
    ours=$site/build
    if ! { cmake -S "$root" -B "$ours" -DCMAKE_BUILD_TYPE=Release "-DFOURGE_CPU_LEVELS=plain" &&
        cmake --build "$ours" -j "$(nproc)" --target fourge_program test_device; } >"$site/build.log" 2>&1; then
        echo "{\"bench\": \"gpu-check\", \"note\": \"ours was not built: $(tail -n 1 "$site/build.log" | tr -d '\\"')\"}"
        ours=missing
    fi
}

parity() {
    build_ours
    [ "$ours" != missing ] || return 0
    row 60 "$ours/fourge" doctor --format json
    for run in 1 2; do
        row 120 "$ours/test_device" --only cuda >"$site/parity.$run" || :
        count=$(tail -n 1 "$site/parity.$run")
        echo "{\"bench\": \"gpu-check\", \"part\": \"parity\", \"run\": $run, \"machine\": \"$MACHINE\", \"said\": \"$count\"}"
        grep '^#\|^not ok' "$site/parity.$run" | grep -v '^# \(seed\|random\)' >&2 || :
    done
}

nothing_yet() {
    echo "{\"bench\": \"gpu-check\", \"part\": \"$1\", \"note\": \"nothing to run yet\"}"
}

for part in "$@"; do
    case $part in
    peers | parity | fe | gw | soap | gp) ;;
    *)
        echo "gpu-check.sh: unknown part $part: peers, parity, fe, gw, soap or gp" >&2
        exit 2
        ;;
    esac
done
if [ $# = 0 ]; then
    [ -n "$pack" ] || { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
    make_pack
    exit
fi

MACHINE=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1) || MACHINE=
[ -n "$MACHINE" ] || { echo "gpu-check.sh: no NVIDIA GPU: nvidia-smi names none" >&2; exit 69; }
export MACHINE
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
if [ -n "$pack" ]; then
    python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" "$pack"/*.whl
    PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
fi
LIMIT=${LIMIT:-20} # a first call of more seconds stays the only one
export LIMIT
for part in "$@"; do
    case $part in
    peers) peers ;;
    parity) parity ;;
    *) nothing_yet "$part" ;;
    esac
done
