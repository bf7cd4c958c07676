#!/bin/sh
# Exact Gaussian processes beside the peers, on the same inputs, in one run: gp.sh PEERS [JOB [SIZES [FOLDER]]]
#
# PEERS is the environment of bench/peers/setup.sh, with gpytorch and scikit-learn.  JOB is step (default), value, fit, batch,
# invquad or factor; SIZES are separated by blanks (default: 50 100 500 1000 2000); FOLDER (default: a temporary one) takes
# the inputs.  Prints JSON lines, for each type first the peers', then ours, each with the machine's name.  Parts of a
# run: DTYPES (default "f64 f32"), REPEAT (ours, 20; fit 3), PEER (one of the peers).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
job=${2:-step}
sizes=${3:-50 100 500 1000 2000}
folder=${4:-$(mktemp -d)}
build=${BUILD:-$here/../build}
. "$here/lines.sh"
cmake --build "$build" --target bench_gp >/dev/null
repeat=20
[ "$job" = fit ] && repeat=3
for dtype in ${DTYPES:-f64 f32}; do
    # shellcheck disable=SC2086 # the sizes are words
    "$peers/bin/python" "$here/peers/gp_peers.py" --job "$job" --out "$folder" --dtype $dtype \
        ${PEER:+--peer "$PEER"} $sizes
    named "$build/bench_gp" --job "$job" --dtype $dtype --n "$(echo "$sizes" | tr ' ' ',')" \
        --repeat "${REPEAT:-$repeat}" --threads "${THREADS:-$(nproc)}" --data "$folder"
done
