#!/bin/sh
# Exact Gaussian processes beside the peers, on the same inputs, in one run: gp.sh PEERS [JOB [SIZES [FOLDER]]]
#
# PEERS is the environment of bench/peers/setup.sh, with gpytorch and scikit-learn.  JOB is step (default), fit, batch or
# invquad; SIZES are separated by blanks (default: 50 100 500 1000 2000); FOLDER (default: a temporary one) takes
# the inputs.  Prints JSON lines, first the peers', then ours.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
job=${2:-step}
sizes=${3:-50 100 500 1000 2000}
folder=${4:-$(mktemp -d)}
build=${BUILD:-$here/../build}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
cmake --build "$build" --target bench_gp >/dev/null
# shellcheck disable=SC2086 # the sizes are words
"$peers/bin/python" "$here/peers/gp_peers.py" --job "$job" --out "$folder" $sizes
repeat=20
[ "$job" = fit ] && repeat=3
for dtype in f64 f32; do
    "$build/bench_gp" --job "$job" --dtype $dtype --n "$(echo "$sizes" | tr ' ' ',')" --repeat $repeat \
        --threads "${THREADS:-$(nproc)}" --data "$folder"
done
