#!/bin/sh
# What the library exports and what it calls: test_symbols.sh BUILD.
#  - the shared library exports exactly the FRG_API functions of the headers;
#  - the static library's names begin with frg_ or frgi_;
#  - no call that ends the process, prints, depends on the locale or keeps hidden state;
#  - memory comes from core's allocator alone, the environment is read in one file;
#  - the loader looks for what program, library and extension need in no folder that depends on where they are run;
#  - they are built with what compiler and linker have against overruns.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)

# Declarations that start with FRG_API: the name is what stands before the first bracket.
into "$scratch/public" declarations
into "$scratch/names" sed -nE 's/^FRG_API [^(]*[ *](frgi?_[a-z0-9_]+) *\(.*/\1/p' "$scratch/public"
into "$scratch/defined" nm -D --defined-only "$build/libfourge.so"
into "$scratch/symbols" awk '{ print $3 }' "$scratch/defined"
into "$scratch/declared" sort "$scratch/names"
into "$scratch/exported" sort "$scratch/symbols"
into "$scratch/missing" comm -23 "$scratch/declared" "$scratch/exported"
into "$scratch/extra" comm -13 "$scratch/declared" "$scratch/exported"
check "the headers declare functions" test "$(wc -l <"$scratch/declared")" -gt 50
check "every declared function is exported" empty "$scratch/missing"
check "nothing else is exported" empty "$scratch/extra"

into "$scratch/defined" nm -g --defined-only "$build/libfourge.a"
into "$scratch/foreign" awk 'NF == 3 && $3 !~ /^(\.gomp_critical_user_)?frgi?_/ { print $3 }' "$scratch/defined"
check "global names begin with frg_ or frgi_" empty "$scratch/foreign"

# A plug-in exports its table and nothing else, and needs nothing but the C library's.
plugins() {
    for plugin in "$build"/libfourge_opencl.so "$build"/libfourge_cuda.so; do
        [ -f "$plugin" ] || continue
        [ "$(nm -D --defined-only "$plugin" | awk '{print $3}')" = frg_device_table ] || { echo "$plugin: exports" && return 1; }
        into "$scratch/dynamic" readelf -d "$plugin"
        into "$scratch/undefined" nm -D -u "$plugin"
        awk '/NEEDED/ && !/\[lib(c|dl)\.so|ld-linux/ { print; bad = 1 } END { exit bad }' "$scratch/dynamic" ||
            { echo "$plugin: needs" && return 1; }
        ! grep -E ' (getenv|malloc|calloc|printf|exit|abort)(@|$)' "$scratch/undefined" || { echo "$plugin: calls" && return 1; }
    done
}
check "plug-ins export one table and take memory from their caller" plugins

# object: undefined symbol, one a line; FORTIFY's __read_chk is read
into "$scratch/undefined" nm -A -u "$build/libfourge.a"
into "$scratch/all" sed 's/^[^:]*:\([^:]*\):.* \([^ ]*\)$/\1 \2/; s/@.*//; s/ __\([a-z0-9_]*\)_chk$/ \1/' "$scratch/undefined"
into "$scratch/calls" sort -u "$scratch/all"

# users OBJECTS-ALLOWED NAMES: the calls of NAMES from other objects.
users() {
    found "$scratch/users" -E " ($2)\$" "$scratch/calls"
    found "$scratch/others" -vE "^($1) " "$scratch/users"
    empty "$scratch/others"
}
none='no such object'
# This is a build with tests: in one a step that falls back to the host beside a device says so and ends the process.
guard='host_step\.c\.o'
check "nothing ends the process" users "$guard" 'exit|quick_exit|abort|sigaction|system|popen'
without_tests() {
    "${CC:-cc}" -std=c11 -DFOURGE_TESTS=0 -I "$root/src" -I "$root/include" -c "$root/src/core/host_step.c" -o "$scratch/host_step.o" || return 1
    into "$scratch/quiet" nm -u "$scratch/host_step.o"
    ! grep -E 'abort|printf|stderr|fwrite' "$scratch/quiet"
}
check "nor does a step of the host in a build without tests" without_tests
check "children are made, and end, in one file" users 'confine\.c\.o' '_exit|signal|fork|waitpid|kill|setrlimit|prctl'
check "nothing prints" users "$guard" \
    'printf|vprintf|fprintf|vfprintf|puts|putchar|fputs|fputc|putc|perror|stdout|stderr|fwrite|dprintf'
check "nothing depends on the locale or keeps state" users "$none" \
    'strtod|strtof|strtold|atof|atoi|atol|setlocale|localeconv|sscanf|__isoc99_sscanf|fscanf|rand|srand|random|strtok|localtime|gmtime|asctime|ctime'
check "system messages are asked for in two files" users '(files|spool)\.c\.o' 'strerror|strerror_r'
check "no unbounded string calls" users "$none" 'gets|strcpy|strcat|sprintf|vsprintf|stpcpy'
# qsort of the C library allocates, and sorts otherwise when it cannot; amd_order allocates, amd_2 does not
check "memory comes from core alone" users 'memory\.c\.o' \
    'malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|strdup|strndup|asprintf|vasprintf|getline|fopen|qsort|qsort_r|amd_order|amd_l_order'
check "files are reached through core alone" users '(files|spool|confine)\.c\.o' \
    'open|open64|openat|openat64|creat|read|write|fsync|rename|unlink|close|pread|pwrite|mmap'
check "the environment is read in one file" users 'context\.c\.o' 'getenv|secure_getenv|setenv|putenv'
check "no assertions in a release" users "$none" '__assert_fail|__assert_perror_fail|__assert'

# ---- what the loader and the machine enforce ----
files="$build/fourge $build/libfourge.so"
extension=$build/python/fourge/_fourge.abi3.so
[ ! -f "$extension" ] || files="$files $extension ${extension%/*}/libfourge_package.so ${extension%/*}/bin/fourge"
# shellcheck disable=SC2086 # a list of words
check "run paths name whole folders" whole_run_paths $files

# each COMMAND PATTERN: what readelf says of every file, with the lines of PATTERN
each() {
    for file in $files; do
        readelf -W "$1" "$file" | grep -qE "$2" || { echo "$file: no $2" && return 1; }
    done
}
check "symbols are bound at the start" each -d '\(FLAGS\).*BIND_NOW'
check "and their tables are read-only then" each -l 'GNU_RELRO'
check "stacks do not run" each -l 'GNU_STACK.* RW +0x'
check "the program lies at a random address" sh -c 'readelf -hW "$1" | grep -q "Type: *DYN"' sh "$build/fourge"
check "frames with arrays are guarded" each --dyn-syms '__stack_chk_fail'
files=$(echo "$files" | sed 's/[^ ]*_fourge\.abi3\.so//') # it calls none of these functions
check "the C library checks the sizes of buffers" each --dyn-syms '_chk(@| |$)'
# A frame of more than a page is probed page by page with a write that changes nothing.
large_frames_are_probed() {
    objdump -d --no-show-raw-insn "$build/libfourge.so" >"$scratch/code" && grep -qE 'or[ql] +\$0x0,\(%rsp\)' "$scratch/code"
}
# CET: what is called through a pointer begins with a landing mark.  Objects say it; crt1.o of Debian 12 does not, so
# that the linker takes the note away again.
landing_marks() {
    readelf -nW "$build/libfourge.a" | awk '/^File: / { n++ } /x86 feature: .*IBT.*SHSTK/ { ok++ } END { print n, ok; exit !n || n != ok }'
}
case $(uname -m) in
x86_64)
    check "large frames are probed page by page" large_frames_are_probed
    check "indirect calls land on marks" landing_marks
    ;;
esac

# OpenBLAS tries for ever where it does not get the memory that it maps before main.
small_address_space() {
    (ulimit -v 100000 && OMP_NUM_THREADS=1 timeout 60 "$build/fourge" --version) >"$scratch/said" 2>&1
    [ $? = 71 ] && grep 'FRG-CORE-002: the address space is limited' "$scratch/said"
}
doctor_tells() {
    for one in OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS="; do
        # shellcheck disable=SC2086 # a list of variables
        (ulimit -v 4000000 && env $one "$build/fourge" doctor) | grep -q 'address space is limited to 3.8 GiB.*128.* MiB' ||
            { echo "$one: doctor says nothing of the address space" && return 1; }
    done
}
check "an address space that OpenBLAS hangs in ends the program" small_address_space
check "doctor tells of one that suffices" doctor_tells

# A library of the name of each that is needed, planted in the folder where the program is run, must not be loaded.
# Where it is, its constructor runs or the program ends for want of a symbol.
plant() {
    mkdir "$scratch/planted" && echo '#include <stdio.h>
        __attribute__((constructor)) static void run(void) { fclose(fopen("was-loaded", "w")); }' >"$scratch/planted/p.c" &&
        ${CC:-cc} -shared -fPIC -o "$scratch/planted/p.so" "$scratch/planted/p.c" || return 1
    # shellcheck disable=SC2086 # a list of words
    for name in $(readelf -dW $files | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u); do
        case $name in
        libc.so.* | ld-linux*) ;;
        *) cp "$scratch/planted/p.so" "$scratch/planted/$name" ;;
        esac
    done
}
unplanted() {
    rm -f "$scratch/planted/was-loaded"
    (cd "$scratch/planted" && unset LD_LIBRARY_PATH && "$@") && [ ! -e "$scratch/planted/was-loaded" ]
}
planted_is_seen() {
    ! unplanted env LD_LIBRARY_PATH=. "$build/fourge" --version
}
check "libraries to plant" plant
check "they would be seen" planted_is_seen
check "the program loads nothing from the current folder" unplanted "$build/fourge" --version
if command -v python3 >/dev/null 2>&1; then
    check "nor does the library" unplanted python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$build/libfourge.so"
    [ ! -f "$extension" ] ||
        check "nor does the extension" unplanted python3 -c 'import ctypes, sys; ctypes.PyDLL(sys.argv[1])' "$extension"
else
    skip "nor do the library and the extension" "there is no python3 to load them"
fi
finish
