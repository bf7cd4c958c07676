#!/bin/sh
# Installs OpenBLAS from the package index (scipy-openblas32, BSD) and lets pkg-config find it: pip_openblas.sh FOLDER
#
# FOLDER gets scipy-openblas.pc; with it on PKG_CONFIG_PATH CMake links with that library where no openblas.pc is found.
# Its names have a prefix, which the .pc file tells (src/linalg/blas.c).  PYTHON is the interpreter (python).
set -eu
folder=$1
python=${PYTHON:-python}
"$python" -m pip install -q --disable-pip-version-check scipy-openblas32
mkdir -p "$folder"
"$python" -c 'import scipy_openblas32 as b; print(b.get_pkg_config())' >"$folder/scipy-openblas.pc"
