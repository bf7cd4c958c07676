#!/bin/sh
# A whole regression from a csv file beside the peers: fe_csv.sh PEERS [ROWS [FOLDER]]
#
# PEERS is the environment of bench/peers/setup.sh.  FOLDER (default: a temporary one) takes the files, which stay.
# The peer tries its demeaners on the first design; on the others, where some of them take minutes or do not
# converge, its LSMR.  CAP seconds (default 120) are the most that each of its runs may take.  Ours runs RUNS
# times (default 5), each in a process of its own, and every run is printed; the peer's lines are the best
# of two after a warm-up.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
rows=${2:-1e6}
folder=${3:-$(mktemp -d)}
build=${BUILD:-$here/../build}
threads=${THREADS:-$(nproc)}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
cmake --build "$build" --target fourge_program >/dev/null
for design in simple difficult worker_firm; do
    file=$folder/${design}_$rows.csv
    demeaners=within
    [ $design != simple ] || demeaners=rust_map,within,within_diagonal,numba_map
    make=
    [ -e "$file" ] || make="--make $rows"
    # shellcheck disable=SC2086
    THREADS=$threads timeout "${CAP:-120}" "$peers/bin/python" "$here/peers/fe_csv.py" "$file" $make \
        --design $design --demeaners $demeaners || echo "no more of the peer on $design after ${CAP:-120} s" >&2
    run=0
    while [ $run -lt "${RUNS:-5}" ]; do
        "$build/fourge" fe 'y ~ x1 + x2 + x3 + x4 + x5 | unit + firm' "$file" --vcov cluster=firm --threads "$threads" \
            --format json --output "$folder/run.json"
        "$peers/bin/python" "$here/peers/fe_csv_line.py" "$folder/run.json" "$file"
        run=$((run + 1))
    done
done
