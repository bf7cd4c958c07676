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
    grep -ohE ' id="[^"]+"' "$site/$1"/*.html | sed 's/.*="//; s/"$//' | sort -u >"$scratch/anchors"
    sort -u | comm -23 - "$scratch/anchors"
}
declarations | grep -oE 'frg_[a-z0-9_]+ *\(' | tr -d ' (' | sed 's/^/c./' >"$scratch/functions"
check "there are functions to look for" test -s "$scratch/functions"
without c <"$scratch/functions" >"$scratch/missing"
check "every public function of C has an entry" empty "$scratch/missing"
grep -ohE '^\} frg_[a-z0-9_]+;' "$root"/include/fourge/*.h | tr -d '} ;' | sed 's/^/c./' |
    without c >"$scratch/missing"
check "every public struct and enum has one" empty "$scratch/missing"
PYTHONPATH=$build/python /usr/bin/python3 - <<'END_PYTHON' >"$scratch/names"
from fourge import datasets, errors, fe, gp, gw, linalg, pot, soap
for module in datasets, errors, fe, gp, gw, linalg, pot, soap:
    classes = [name for name, value in vars(module).items() if isinstance(value, type)]
    public = getattr(module, "__all__", classes)
    print(*(f"{module.__name__}.{name}" for name in public), sep="\n")
END_PYTHON
check "there are names of Python to look for" test -s "$scratch/names"
without modules <"$scratch/names" >"$scratch/missing"
check "every public name of the Python modules has one" empty "$scratch/missing"
"$build/fourge" help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/fourge-\1/p' >"$scratch/commands"
check "there are commands to look for" test -s "$scratch/commands"
without . <"$scratch/commands" >"$scratch/missing"
check "every command of the program has a section" empty "$scratch/missing"
finish
