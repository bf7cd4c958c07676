#!/bin/sh
# The tables of the four seeds as far as two cores go, ours beside the named peers: seeds.sh PEERS [PART...]
#
#     fe      LSMR demeaning: designs, rows, columns, types; pyfixest's torch backend eager, compiled, batched (seed_fe.py)
#     soap    the 96 factors of a transformer, one by one and batched; steps of hidden 256 (seed_soap.py)
#     gw      alignments, quality by type, forced iterations, the pieces alone (seed_gw.py)
#     gp      fits of 50 to 10000 points in both types, forward and backward apart (gp.sh)
#
# PEERS is the environment of bench/peers/setup.sh with pytorch_optimizer; BUILD a folder with bench_gp and python/fourge.
# Prints JSON lines; a side that takes more than LIMIT seconds (600) runs once.  Rows that need a GPU are printed with the
# note "not run": tools/gpu-check.sh times them.  All parts take a night; FE, SOAP, GW, GP_SIZES, GP_STEPS take
# other options of the programs (FE="--rows 1e4 --columns 1").
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
shift
build=${BUILD:-$here/../build}
. "$here/lines.sh"
PYTHONPATH=$build/python
export PYTHONPATH BUILD="$build"

gpu_rows() {
    for device in cuda mps; do
        echo "{\"bench\": \"$1\", \"device\": \"$device\", \"peer\": \"fourge\", \"note\": \"not run\"}"
    done
}

# shellcheck disable=SC2086 # lists of options
for part in ${*:-fe soap gw gp}; do
    case $part in
    fe)
        "$peers/bin/python" "$here/python/seed_fe.py" ${FE:-}
        gpu_rows seed_fe
        ;;
    soap)
        "$peers/bin/python" "$here/python/seed_soap.py" ${SOAP:-}
        "$peers/bin/python" "$here/python/seed_soap.py" ${SOAP:---hidden 256 --mlp 1024 --steps}
        gpu_rows seed_soap_qr
        ;;
    gw)
        "$peers/bin/python" "$here/python/seed_gw.py" ${GW:-}
        gpu_rows seed_gw_rows
        ;;
    gp)
        sh "$here/gp.sh" "$peers" fit "${GP_SIZES:-50 100 500 1000 2000 5000 10000}"
        for job in step value; do
            sh "$here/gp.sh" "$peers" $job "${GP_STEPS:-50 100 500 1000 2000 5000}"
        done
        gpu_rows gp
        ;;
    *)
        echo "seeds.sh: unknown part $part: fe, soap, gw or gp" >&2
        exit 2
        ;;
    esac
done
