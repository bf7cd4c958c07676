#!/bin/sh
# Every command and every program of README.md and docs, and every command of docs/tutorials and python/README.md, runs as it
# stands:
#
#     test_readme.sh BUILD [PYTHON]
#
# The programs of python/README.md and docs/tutorials, and what they print, are python/tests/test_readme.py's.
#
# Commands are the lines that are indented by four spaces, up to two spaces and what is said of the command; programs stand
# between ```c or ```python and ```.  All of them run one after the other in a folder with a copy of the data, so that what one
# writes the next may read.  A program in Python that needs a package which PYTHON (/usr/bin/python3) has not is skipped by the
# package's name; ./test.sh --peers runs those.  Builds and installations are other tests': elsewhere() names them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
python=${2:-/usr/bin/python3}
. "$here/tap.sh"
scratch=$(mktemp -d)
cp -r "$root/data" "$scratch/data"
export LD_LIBRARY_PATH="$build" PATH="$build:$PATH" PYTHONPATH="$build/python"

# blocks LANGUAGE FILE: the blocks of that language as $scratch/LANGUAGE.1, .2, ...
blocks() {
    awk -v language="$1" -v to="$scratch/$1." '
        $0 == "```" language { number++; inside = 1; next }
        /^```/ { inside = 0 }
        inside { print > (to number) }' "$2"
}
# commands FILE: the lines of indented blocks; a comment behind two spaces is none of the command.
commands() {
    awk '/^```/ { inside = !inside } !inside && /^    [a-z.]/ { sub(/^    /, ""); sub(/   *[#a-z].*/, ""); print }' "$1"
}
# elsewhere COMMAND: the test that runs it, or nothing
elsewhere() {
    case $1 in
    ./run.sh) echo "tests/build/test_install.sh runs the tour" ;;
    ./test.sh) echo "it is what runs this" ;;
    "cmake "*) echo "test.sh and tests/build/test_install.sh do it" ;;
    "pip install ."*) echo "tests/build/test_wheel.sh installs the package" ;;
    esac
}
inside() {
    (cd "$scratch" && "$@")
}
compiles() {
    gcc -std=c11 -Wall -Wextra -Werror -I"$root/include" -x c "$1" -o "$2" -L"$build" -lfourge -lm
}
# missing PROGRAM: the first package it imports that is not here
missing() {
    "$python" - "$1" <<'END'
import ast, importlib.util, sys
for node in ast.walk(ast.parse(open(sys.argv[1]).read())):
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
    for name in names:
        needs = {"fourge.torch": "torch", "fourge.sklearn": "sklearn", "fourge.pyfixest": "pyfixest", "fourge.gpytorch": "gpytorch"}
        needed = needs.get(name, name.split(".")[0])
        if importlib.util.find_spec(needed) is None:
            print(needed)
            sys.exit()
END
}

cd "$root" || exit 1
for page in README.md docs/*.md docs/tutorials/*.md python/README.md; do
    into "$scratch/commands" commands "$root/$page"
    while IFS= read -r command; do
        where=$(elsewhere "$command")
        if [ -n "$where" ]; then
            echo "# $page: $command: $where"
        elif [ -n "${2:-}" ]; then
            : # beside the peers programs alone
        else
            check "$page: $command" inside sh -c "$command"
        fi
    done <"$scratch/commands"
    case $page in python/README.md | docs/tutorials/*) continue ;; esac
    rm -f "$scratch"/c.* "$scratch"/python.*
    into /dev/null blocks c "$root/$page"
    into /dev/null blocks python "$root/$page"
    for program in "$scratch"/c.*; do
        [ -f "$program" ] && [ -z "${2:-}" ] || continue
        check "$page: ${program##*/} compiles" compiles "$program" "$scratch/program"
        check "$page: ${program##*/} runs" inside "$scratch/program"
    done
    for program in "$scratch"/python.*; do
        [ -f "$program" ] || continue
        lacks=$(missing "$program")
        if [ -n "$lacks" ]; then
            skip "$page: ${program##*/}" "$lacks is not here"
        else
            check "$page: ${program##*/} runs" inside "$python" "$program"
        fi
    done
done
finish
