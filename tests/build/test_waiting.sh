#!/bin/sh
# How threads wait at the end of a loop: shortly spinning and then asleep, unless the user says otherwise; nobody else is told.
#     test_waiting.sh BUILD
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT
python="/usr/bin/env PYTHONPATH=$build/python /usr/bin/python3"

# spins COUNT [VARIABLE=VALUE] COMMAND...: GCC's OpenMP runtime, as it says itself, spins so many turns.
spins() {
    count=$1
    shift
    env OMP_DISPLAY_ENV=verbose "$@" 2>&1 | grep -F GOMP_SPINCOUNT | tee /dev/stderr | grep -qF "GOMP_SPINCOUNT = '$count'"
}
check "the program spins shortly" spins 2000 "$build/fourge" --version
check "a count that is given holds" spins 77 GOMP_SPINCOUNT=77 "$build/fourge" --version
check "so does a policy" spins 0 OMP_WAIT_POLICY=passive "$build/fourge" --version
check "it keeps its name and arguments" sh -c \
    '"$1" --nonsense 2>&1 | grep "unknown option --nonsense"' sh "$build/fourge"
if [ -d "$build/python" ]; then
    # shellcheck disable=SC2086 # a command and its arguments
    {
        check "the package spins shortly" spins 2000 $python -c 'import fourge'
        check "a count that is given holds there" spins 77 GOMP_SPINCOUNT=77 $python -c 'import fourge'
        check "so does a policy there" spins 0 OMP_WAIT_POLICY=passive $python -c 'import fourge'
        check "its variable is gone after the import" $python -c '
import os, fourge
assert "GOMP_SPINCOUNT" not in os.environ'
    }
fi
finish
