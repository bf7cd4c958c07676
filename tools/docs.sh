#!/bin/sh
# Makes the reference site: docs.sh [OUT [BUILD]]
#
#     OUT      the folder of the pages, build/site by default; open OUT/index.html
#     BUILD    a build with the program and the package; without it both are built in build/
#
# The site has the public headers, the package's docstrings, the commands and options as the program
# prints them (fourge help --markdown), the tutorials and the pages of the tree.  Sphinx and what it
# needs go into an environment of tools/docs.txt in the cache folder, as the peers of ./test.sh do;
# status 3 where the package index does not give them.  A warning is an error, as of a link within
# the site that leads nowhere.  Links to elsewhere are not followed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"
case ${1:-} in
-h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
-*) die "unknown option $1" ;;
esac
out=${1:-$root/build/site}
folder=${2:-$root/build}
if [ -z "${2:-}" ]; then
    # shellcheck disable=SC2086 # a list of words
    need_packages $BUILD_PACKAGES python3-dev python3-venv
    build "$folder" "fourge fourge_python" -DCMAKE_BUILD_TYPE=Release -DFOURGE_PYTHON=ON
fi
folder=$(cd "$folder" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! listed_environment docs "$scratch/log"; then
    echo "$missing_environment" >&2
    exit 3
fi

# ---- the pages of the tree at their places, so that their links hold ----
source=$scratch/source
mkdir -p "$source/modules"
cd "$root"
{ git ls-files 2>/dev/null | grep . || find ./*.md docs src bench data python tests/golden -type f | sed 's|^\./||'; } |
    grep -E '^([^/]*\.md$|(docs|src|bench|data|python|tests/golden)/)' | grep -E '\.(md|png|svg)$' |
    grep -vE '(^|/)(LICENSE[^/]*|report\.md)$' | while read -r page; do
    cp --parents -p "$page" "$source"
done
mv "$source/docs/site/index.md" "$source/index.md"
sed -i 's|](../../|](|' "$source/index.md"

# ---- the pages that are made ----
"$folder/fourge" help --markdown >"$source/commands.md"
"$listed_python" "$root/tools/docs_headers.py" "$root/include" "$source"
for module in "$root"/python/fourge/[a-z]*.py; do
    name=$(basename "$module" .py)
    title=fourge.$name
    printf '%s\n%s\n\n.. automodule:: %s\n' "$title" "$(echo "$title" | sed 's/./=/g')" "$title" \
        >"$source/modules/$name.rst"
done

cd "$source" # hawkmoth looks for the headers from here
PYTHONPATH=$folder/python "$listed_python" -m sphinx -q -W --keep-going -j "$(cores)" \
    -c "$root/docs/site" -d "$scratch/trees" . "$out"
echo "$out/index.html"
