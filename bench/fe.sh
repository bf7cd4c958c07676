#!/bin/sh
# Demeaning beside the peers, on the same inputs, in one run: fe.sh PEERS [ROWS [FOLDER]]
#
# PEERS is the environment of bench/peers/setup.sh.  FOLDER (default: a temporary one) takes the inputs.  Prints
# JSON lines, first the peers', then ours.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
peers=$1
rows=${2:-1e6}
folder=${3:-$(mktemp -d)}
build=${BUILD:-$here/../build}
. "$here/lines.sh"
cmake --build "$build" --target bench_fe >/dev/null
"$peers/bin/python" "$here/peers/fe_peers.py" "$rows" "$folder"
named "$build/bench_fe" --threads "${THREADS:-$(nproc)}" "$folder"/*_?fe
named "$build/bench_fe" --threads "${THREADS:-$(nproc)}" --small --repeat 200
