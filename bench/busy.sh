#!/bin/sh
# Alignments, a fit and regressions on cores that spinning processes use too, and on cores that nobody else uses, under each
# way in which OpenMP's threads can wait: busy.sh [OPTION...], those of bench/python/py_busy.py.  Prints JSON lines.
# The quiet half counts on a machine that is quiet.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../build}
PYTHONPATH=$build/python exec "${PYTHON:-/usr/bin/python3}" "$here/python/py_busy.py" "$@"
