#!/bin/sh
# Requests of the program for memory fail, one at a time: test_program_memory.sh BUILD.
#
# tests/fault/refuse_malloc.c runs each command below once to count its requests, once for each of the program's
# own, and once for each of MOST of those that the library makes for it: either the command says that memory ran out
# and leaves no file but whole ones, or it does without.  Every run is of small data; all of the library's requests
# are failed by the programs of tests/fault, here it is the program's answer that counts.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
refuse=$build/refuse_malloc.so
if [ ! -f "$refuse" ]; then
    skip "requests for memory that fail" "refuse_malloc.so is not built: a sanitizer has an allocator of its own"
    finish
    exit
fi
MOST=50
export LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive FOURGE_DATA="$scratch/data"
unset FOURGE_ISA
PATH=$build:$PATH

# ---- data ----
mkdir "$FOURGE_DATA"
for part in wage_panel.csv:81 co2.csv:40 digits.csv:41; do
    head -n "${part#*:}" "$root/data/${part%:*}" >"$FOURGE_DATA/${part%:*}"
done
cd "$FOURGE_DATA" || exit 1
fourge simulate simple --rows 60 --out s.csv -q
fourge simulate simple --rows 60 --out s -q
printf 'y,x,z,w,g\n1,1,0.5,1,a\n2,2,0.25,2,b\n1.5,4,1,1,a\n3,5,2,2,c\n2.5,7,1.5,1,b\n1,8,0.75,1,a\n' >p.csv
printf 'x,z\n1.5,0.5\n6,1\n' >new.csv
printf '%s\n' "$FOURGE_DATA/p.csv" "$FOURGE_DATA/p.csv" >list
printf 'a,b,c\n0,1,2\n1,0,1.5\n2,1.5,0\n' >cost.csv
printf 'x,y\n0,0\n1,0\n0,1\n2,2\n0.5,1\n1,3\n2,0\n0.25,0.25\n' >a.csv
printf 'x,y,z\n0,0,1\n1,0,0\n0,1,0\n2,2,1\n0.5,1,0\n1,3,1\n2,0,2\n0,0.25,0.25\n' >b.csv
printf 'm\n0.125\n0.125\n0.125\n0.125\n0.125\n0.125\n0.125\n0.125\n' >mass.csv
printf 'm\n0.2\n0.3\n0.5\n' >three.csv
printf '0 1\n1 2\n2 3\n3 0\n0 2\n' >g.edges
printf 'n\n0\n2\n' >nodes.csv
head -n 2000 "$root/data/shakespeare.txt" >shakespeare.txt
{
    fourge gp fit p.csv --y y --x x --kernel rbf --save model.gp -q
    fourge gw align a.csv b.csv --k 3 --plan plan.npy -q
    fourge gw paths a.csv --k 3 --out cost.npy -q
    fourge gw align a.csv b.csv --k 3 --checkpoint state --max-iter 3 -q
} >/dev/null || exit 1

# every FOURGE-WORDS...: fails with the first request whose refusal ends otherwise than it should.
every() {
    rm -rf "$scratch/runs"
    mkdir "$scratch/runs"
    REFUSE_IN=$scratch/runs REFUSE_MOST=$MOST LD_PRELOAD=$refuse "$build/fourge" "$@" && return 0
    cat "$scratch/runs/err"
    return 1
}

while read -r words; do
    case $words in '' | '#'*) continue ;; esac
    # shellcheck disable=SC2086 # a list of words
    check "fourge $words" every $(echo "$words" | sed "s|@|$FOURGE_DATA/|g")
done <<'END'
fe y~x1|unit+year @s.csv --vcov cluster=unit --save-effects e.csv
fe y~x1+x2|unit @s.csv --save-residuals r.csv --report r.html --repeat 1
fe y~x1|unit+firm @s.csv --format csv --dry-run
fe y~x1|unit @s.csv --checkpoint state
demean --columns @s/columns.npy --codes @s/codes.npy --out d.npy --report r.html
demean --columns @s/columns.npy --codes @s/codes.npy --out d.npy --repeat 1 --format json
demean --columns @s/columns.npy --codes @s/codes.npy --out d.npy --checkpoint state
demean --columns @s/columns.npy --codes @s/codes.npy --out d.npy --dry-run
gp fit @p.csv --y y --x x,`z` --kernel rbf --max-iter 2 --starts 2 --save m.json --report r.html
gp fit @p.csv --y y --x x --kernel rbf --max-iter 2 --checkpoint state
gp value @p.csv --y y --kernel rbf+noise --x x --repeat 1 --format csv
gp value @p.csv --y y --kernel rbf+noise --x x --noise-groups g --dry-run
gp loo @p.csv --y y --kernel rbf+noise --x x
gp predict @p.csv @new.csv --y y --kernel rbf+noise --x x,z --samples 2 --covariance q.npy
gp predict @model.gp @new.csv
gp sample @new.csv --kernel rbf --samples 2
gp batch @list --y y --x x --kernel rbf+noise
gp batch @list --y y --x x --kernel rbf+noise --fit --format json
gw align @a.csv @b.csv --k 3 --plan q.npy --potentials f.npy --source @mass.csv --target @mass.csv --report r.html
gw align @a.csv @b.csv --k 3 --repeat 1 --matches m.csv --format json
gw align @a.csv @b.csv --k 3 --checkpoint state --max-iter 2
gw align @a.csv @b.csv --k 3 --embedding e.npy --max-iter 2
gw sinkhorn @cost.csv --epsilon 1 --plan q.npy --potentials f.npy --source @three.csv --target @three.csv --repeat 1
gw paths @g.edges --out d.npy --sources @nodes.csv
gw energy @a.csv @b.csv @plan.npy --distance euclidean
gw barycenter @a.csv @b.csv --distance euclidean --max-iter 1 --out b.npy
soap train digits --steps 2 --report r.html
soap train @p.csv --label g --steps 2
soap train text --steps 1
soap train digits --steps 2 --checkpoint state
soap bench --layers 1 --hidden 8 --mlp 16 --steps 2 --warmup 0 --report r.html
soap qr @cost.npy --q q.npy --r r.npy --repeat 1
simulate simple --rows 60 --out s.csv
simulate akm --rows 60 --out s.csv
simulate gravity --rows 60 --out s
simulate hard --rows 60 --out s
simulate powerlaw --rows 60 --out s.csv
simulate clustered --rows 60 --out s.csv
simulate near_disconnected --rows 60 --out s.csv
simulate expander --rows 60 --out s.csv
bench fe --rows 100 --repeat 1 --output lines.json
resume @state
END
finish
