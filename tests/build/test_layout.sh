#!/bin/sh
# The shape of the tree: which room may include which, unique file names, the public headers alone outside.
#     core <- linalg, io <- sparse, formula, graph <- {fe <- regress <- treatment, gp, gw, soap};  core <- report;  core <- device <- fe, gw;
#     core <- transport <- gw
# sparse, formula and graph know neither of each other nor of a solver.
# A solver never includes another; cli, bench, examples and python include fourge/*.h and their own files only.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
cd "$root" || exit 1

# only FOLDER ROOMS: quoted includes are fourge/*.h, files of the same folder, or of the rooms named.
only() {
    folder=$1
    rooms=$2
    found "$scratch/lines" -roE '^ *# *include *"[^"]+"' "$folder" --include='*.[ch]'
    into "$scratch/includes" sed 's/: *# *include *"/ /; s/"$//' "$scratch/lines" # lines "file header"
    while read -r file header; do
        case $header in
        fourge/*) continue ;;
        */*) [ -f "$folder/$header" ] && continue; room=${header%%/*} ;;
        *) [ -f "$folder/$header" ] && continue; [ -f "$(dirname "$file")/$header" ] && continue; room='?' ;;
        esac
        case " $rooms " in
        *" $room "*) ;;
        *) echo "$file includes \"$header\"" ;;
        esac
    done <"$scratch/includes" >"$scratch/wrong"
    empty "$scratch/wrong"
}

check "core includes core" only src/core "core"
check "linalg includes core, linalg" only src/linalg "core linalg"
check "io includes core, io" only src/io "core io"
check "report includes core, report" only src/report "core report"
check "device includes core, device" only src/device "core device"
check "transport includes core, transport" only src/transport "core transport"
for room in sparse formula graph; do
    check "$room includes core, linalg, io, and $room" only "src/$room" "core linalg io $room"
done
for room in fe gp soap; do
    check "$room includes the rooms below it, and $room" only "src/$room" "core device linalg io sparse formula graph $room"
done
check "gw includes the rooms below it, and gw" only src/gw "core device linalg io sparse formula graph transport gw"
check "regress includes fe, the rooms below it, and regress" only src/regress "core device linalg io sparse formula fe regress"
check "treatment includes regress, the rooms below it, and treatment" only src/treatment "core device linalg io sparse formula fe regress treatment"
for folder in src/*; do
    case $folder in
    src/core | src/device | src/linalg | src/io | src/report | src/sparse | src/formula | src/graph | src/fe | src/regress | src/treatment | src/gp | src/transport | src/gw | src/soap) ;;
    *) check "the room $folder has a place in the order" false ;;
    esac
done
for folder in cli examples bench python/ext; do
    if [ -d "$folder" ]; then
        check "$folder includes the public headers alone" only "$folder" ""
    fi
done

# A room's README names every file of it, kernels by what they are of: lsmr for lsmr_cpu.c, lsmr_ops.h.
for folder in src/*; do
    for file in "$folder"/*.[ch] "$folder"/*.def; do
        [ -f "$file" ] || continue
        stem=${file##*/} stem=${stem%%.*} stem=${stem%_cpu} stem=${stem%_ops}
        grep -qE "(^|[^a-z0-9_])${stem}(_cpu|_ops)?([^a-z0-9_]|\$)" "$folder/README.md" || echo "$file"
    done
done >"$scratch/unnamed"
check "the READMEs of the rooms name every file" empty "$scratch/unnamed"

# Who reports to the progress function is named by the caller of what several solvers may use.
found "$scratch/solvers" -rnE '"(fe|gp|gw|soap)"' src/core src/io src/report src/device src/sparse src/formula
check "sparse and what is below it name no solver" empty "$scratch/solvers"

# The symmetric matrix of gp is opaque: its layout is read by the dense core and by the passes over pairs alone.
found "$scratch/all" -rnE 'frgi_spd_layout|frgi_spd_(tile|rows|at) *\(|(\.|->)layout\b' src/gp src/linalg --include='*.[ch]'
found "$scratch/tiles" -vE '^src/(linalg/spd[a-z_]*|gp/gp_build)\.' "$scratch/all"
check "the tiles of a symmetric matrix are the dense core's" empty "$scratch/tiles"

# What an assignment and the network simplex keep from one solve to the next is theirs.
found "$scratch/all" -rnE 'struct frgi_simplex \{|assign(\.|->)[a-z]|(\.|->)assign\.' src --include='*.[ch]'
found "$scratch/kept" -vE '^src/transport/|assign\.(c|h|tmpl)' "$scratch/all"
check "duals and trees are reached by their solvers alone" empty "$scratch/kept"

into "$scratch/sources" source_files
into "$scratch/twins" awk -F/ '/\.(c|h|def|py|sh)$/ && seen[$NF]++ { print }' "$scratch/sources"
check "file names are unique" empty "$scratch/twins"

# Sums of doubles are added in the order of their chunks; minima, maxima, counts of integers and the flag that
# stops a loop are exact in any order, and these files have no others.
integers='src/(fe/fe_rows|formula/keys|gw/gw_(sinkhorn|transport)|graph/graph_(paths|tasks)|gp/gp_batch|linalg/qr_batch)\.[ch]'
found "$scratch/all" -rnE 'reduction *\(|# *pragma +omp +(atomic|critical)' src --include='*.[ch]'
found "$scratch/omp" -vE "omp simd|^($integers):" "$scratch/all"
check "no reductions or atomics across threads" empty "$scratch/omp"
found "$scratch/globals" -rnE '^ *(static )?[a-z].*\b(thread_local|_Thread_local)\b' src --include='*.[ch]'
check "no thread-local state" empty "$scratch/globals"

# Of a merge whose conflict was not resolved.
found "$scratch/marks" -rnE '^(<<<<<<< |>>>>>>> )' . --include='*.md' --include='*.[ch]' --include='*.py' --include='*.sh' --include='*.case' \
    --include='*.def' --exclude-dir=.git --exclude-dir='build*'
check "no marks of a merge" empty "$scratch/marks"

# A method that is not name_alone (python/ext/ext.h) runs beside another call on its object.  These touch no object,
# or take its turn themselves.
free='landmark_bounds|end_calls|context_warnings|context_held|context_peak|context_check_spool|context_set_stream|context_get|tensor_there|options|version'
found "$scratch/all" -nE '^ *\{?"[a-z_]+", *[a-z_]+, *METH_' python/ext/*.c
found "$scratch/open" -vE "\"[a-z_]+\", *([a-z_]+_alone|$free)," "$scratch/all"
check "Python's methods have their object to themselves" empty "$scratch/open"
finish
