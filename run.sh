#!/bin/sh
# Installs what is missing, builds fourge, and runs its main job: a panel regression with two fixed
# effects and clustered errors on data shipped in data/.  Arguments go to `fourge tour`.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
. "$root/tools/build.sh"

# shellcheck disable=SC2086 # lists of words
need_packages $BUILD_PACKAGES
build "$root/build" fourge_program -DCMAKE_BUILD_TYPE=Release -DFOURGE_CPU_LEVELS=native
status=0
"$root/build/fourge" tour "$@" || status=$?
if [ "$(command -v fourge)" != "$root/build/fourge" ]; then
    printf '\nTo have fourge in this shell:\n    export PATH="%s:$PATH"\n' "$root/build" >&2
fi
exit "$status"
