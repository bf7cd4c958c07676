#!/bin/sh
# Paths, Sinkhorn's iteration and alignments beside the peers, on the same inputs, in one run:
# gw.sh PEERS [small|large [FOLDER]]
#
# PEERS is the environment of bench/peers/setup.sh; torchgw, where it is installed there, is timed as it is.
# FOLDER (default: a temporary one) takes the inputs.  Prints JSON lines, first the peers', then ours.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
size=${2:-small}
folder=${3:-$(mktemp -d)}
build=${BUILD:-$here/../build}
. "$here/lines.sh"
cmake --build "$build" --target bench_gw >/dev/null
"$peers/bin/python" "$here/peers/gw_peers.py" "$size" "$folder"
named "$build/bench_gw" --threads "${THREADS:-$(nproc)}" "$folder"
