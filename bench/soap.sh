#!/bin/sh
# The optimizer's step and the batched QR beside the peers, in one run: soap.sh PEERS [HIDDEN MLP [LAYERS]]
#
# PEERS is the environment of bench/peers/setup.sh.  Prints JSON lines, the peers' and ours in turn.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
hidden=${2:-256}
mlp=${3:-1024}
layers=${4:-12}
build=${BUILD:-$here/../build}
threads=${THREADS:-$(nproc)}
. "$here/lines.sh"
cmake --build "$build" --target bench_soap fourge_program >/dev/null
"$peers/bin/python" "$here/peers/soap_peers.py" "$hidden" "$mlp" "$layers"
for gradients in gaussian powerlaw; do
    named "$build/fourge" soap bench --layers "$layers" --hidden "$hidden" --mlp "$mlp" --steps 5 --warmup 2 \
        --gradients "$gradients" --threads "$threads" --format json | tr -d '\n' | sed 's/  */ /g'
    echo
done
named "$build/fourge" soap bench --layers "$layers" --hidden "$hidden" --mlp "$mlp" --steps 20 --warmup 3 --frequency 10 \
    --stagger --gradients gaussian --threads "$threads" --format json | tr -d '\n' | sed 's/  */ /g'
echo
named "$build/bench_soap" --job qr --threads "$threads"
# One core's share of its sgemm, AVX2 against AVX2 where the machine has more.
OMP_NUM_THREADS=1 FOURGE_ISA=v3 OPENBLAS_CORETYPE=Haswell named "$build/bench_soap" --job share --repeat 20
OMP_NUM_THREADS=1 named "$build/bench_soap" --job share --repeat 20
