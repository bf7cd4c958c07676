# lines.sh - shared by the scripts that time fourge beside its peers; sourced with $here set to bench/ and $peers to their
# environment.  Both sides run on the kernels that their BLAS chooses.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
MACHINE=${MACHINE:-$(cd "$here/peers" && "$peers/bin/python" -c 'import common; print(common.MACHINE)')}
export MACHINE

# named COMMAND...: its JSON lines, each with the machine's name in front, as those of the peers have it.
named() {
    made=$(mktemp)
    status=0
    "$@" >"$made" || status=$?
    sed "s|^{|{\"machine\": \"$MACHINE\", |" "$made"
    rm -f "$made"
    return "$status"
}
