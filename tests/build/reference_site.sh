#!/bin/sh
# tools/docs.sh makes the reference site without a warning, with all that is public:
#
#     reference_site.sh BUILD
#
# A link to a page or a section that is not there is such a warning.  Skipped where the generator is
# not installed and the package index does not give it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
site=$scratch/site

sh "$root/tools/docs.sh" "$site" "$build" >"$scratch/said" 2>&1
status=$?
if [ "$status" = 3 ]; then
    skip "the reference site" "$(tail -n 1 "$scratch/said")"
    finish
    exit
fi
made() {
    cat "$scratch/said"
    [ "$status" = 0 ]
}
check "the site is made, and no warning is given" made

# without FOLDER: the anchors of the input that no page in FOLDER of the site has
without() {
    found "$scratch/ids" -ohE ' id="[^"]+"' "$site/$1"/*.html
    into "$scratch/anchors" sed 's/.*="//; s/"$//' "$scratch/ids"
    awk -v anchors="$scratch/anchors" 'BEGIN { while ((getline line <anchors) > 0) there[line] = 1 } !($0 in there)'
}
into "$scratch/public" declarations
into "$scratch/functions" sed -nE 's/^FRG_API [^(]*[ *](frg_[a-z0-9_]+) *\(.*/c.\1/p' "$scratch/public"
check "there are functions to look for" test -s "$scratch/functions"
into "$scratch/missing" without c <"$scratch/functions"
check "every public function of C has an entry" empty "$scratch/missing"
into "$scratch/structs" sed -nE 's/^\} (frg_[a-z0-9_]+);/c.\1/p' "$root"/include/fourge/*.h
into "$scratch/missing" without c <"$scratch/structs"
check "every public struct and enum has one" empty "$scratch/missing"
PYTHONPATH=$build/python into "$scratch/names" /usr/bin/python3 - <<'END_PYTHON'
from fourge import datasets, errors, fe, gp, gw, linalg, pot, soap
for module in datasets, errors, fe, gp, gw, linalg, pot, soap:
    classes = [name for name, value in vars(module).items() if isinstance(value, type)]
    public = getattr(module, "__all__", classes)
    print(*(f"{module.__name__}.{name}" for name in public), sep="\n")
END_PYTHON
check "there are names of Python to look for" test -s "$scratch/names"
into "$scratch/missing" without modules <"$scratch/names"
check "every public name of the Python modules has one" empty "$scratch/missing"
into "$scratch/help" "$build/fourge" help
into "$scratch/commands" sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/fourge-\1/p' "$scratch/help"
check "there are commands to look for" test -s "$scratch/commands"
into "$scratch/missing" without . <"$scratch/commands"
check "every command of the program has a section" empty "$scratch/missing"
finish
