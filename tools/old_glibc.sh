#!/bin/sh
# Makes a folder that programs are linked in for an older C library: old_glibc.sh VERSION FOLDER
#
# FOLDER gets libraries without code under the names of glibc's own. They offer what the C library of
# this system offers in versions up to VERSION, each function in the newest of these, so that what is
# linked with -L FOLDER asks for nothing newer; a function that came later is an undefined reference,
# which the linker names. Beside them lies libgomp, GCC's OpenMP runtime, which the system has for its
# own C library alone: it is taken out of a wheel of scikit-learn in the package index, which was built
# where such wheels are (manylinux). CC is the compiler (gcc), another machine's too; PYTHON an
# interpreter with pip (python3).
set -eu
version=$1
folder=$2
cc=${CC:-gcc}
python=${PYTHON:-python3}
machine=$($cc -dumpmachine | cut -d - -f 1)
objdump=$($cc -print-prog-name=objdump)
scikit_learn=scikit-learn==1.9.1
here=$(cd "$(dirname "$0")" && pwd)
said="glibc $version, $machine, $scikit_learn, $(cksum <"$here/old_glibc.sh")"

[ "$(cat "$folder/complete" 2>/dev/null)" != "$said" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

# symbols FILE: "name version kind size replaced" of each, in its newest version up to $version;
# replaced is 1 where there is a newer one besides.
symbols() {
    # a word of flags, the section, the size, the version (in brackets: for old programs), the name
    LC_ALL=C $objdump -T "$1" | awk -v limit="$version" '
        # after: is version a newer than b?
        function after(a, b, x, y, i) {
            split(a, x, "."); split(b, y, ".")
            for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) return x[i] + 0 > y[i] + 0
            return 0
        }
        $1 ~ /^[0-9a-f]+$/ && !/\*UND\*/ && NF >= 4 {
            name = $NF; v = $(NF - 1); gsub(/[()]/, "", v)
            if (v !~ /^GLIBC_[0-9.]+$/ || name == v) next
            v = substr(v, 7)
            if (after(v, limit) || (name in best && !after(v, best[name]))) next
            best[name] = v; replaced[name] = $(NF - 1) ~ /[(]/
            size[name] = $(NF - 2); kind[name] = / DO / ? "object" : "function"
        }
        END { for (n in best) print n, best[n], kind[n], size[n], replaced[n] }' | sort
}

# stub SONAME SYMBOLS: a library of that name that offers these.
stub() {
    awk '{ at = "at_" NR
           print ".globl " at "\n.type " at ", %" $3 "\n.size " at ", 0x" $4
           print ".symver " at ", " $1 "@@GLIBC_" $2
           print ($3 == "object" ? ".data" : ".text") "\n" at ": .skip 8" }' "$2" >stub.s
    cut -d ' ' -f 2 "$2" | sort -uV | sed 's/.*/GLIBC_& { };/; $s/{ }/{ local: at_*; }/' >stub.map
    $cc -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script=stub.map stub.s -o "$1"
}

symbols "$($cc -print-file-name=libc.so.6)" | grep -v '^pthread_atfork ' >symbols.txt # see below
# Until 2.34 threads and dlopen lay in libraries of their own; in libc.so.6 they have newer versions since.
awk '$5 && $1 ~ /^(pthread|sem)_/' symbols.txt >threads.txt
awk '$5 && $1 ~ /^dl/' symbols.txt >dl.txt
grep -vxF -f threads.txt -f dl.txt symbols.txt >libc.txt
stub libpthread.so.0 threads.txt
stub libdl.so.2 dl.txt
stub libc.so.6 libc.txt
symbols "$($cc -print-file-name=libm.so.6)" >symbols.txt
stub libm.so.6 symbols.txt
case $machine in
x86_64) loader=ld-linux-x86-64.so.2 ;;
aarch64) loader=ld-linux-aarch64.so.1 ;;
*) echo "old_glibc.sh: no wheels are made for $machine" >&2 && exit 1 ;;
esac
symbols "$($cc -print-file-name=$loader)" >symbols.txt
stub $loader symbols.txt

# What is not in the library but in what is linked with it: the first three no longer since 2.33.
cat >inside.c <<'CODE'
#include <sys/stat.h>
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
#ifdef __x86_64__
enum { LAYOUT = 1 }; /* _STAT_VER of the old headers */
#else
enum { LAYOUT = 0 };
#endif
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int stat(const char *path, struct stat *s) { return __xstat(LAYOUT, path, s); }
HIDDEN int lstat(const char *path, struct stat *s) { return __lxstat(LAYOUT, path, s); }
HIDDEN int fstat(int file, struct stat *s) { return __fxstat(LAYOUT, file, s); }
typedef void handler(void);
int __register_atfork(handler *, handler *, handler *, void *);
extern void *__dso_handle __attribute__((visibility("hidden")));
HIDDEN int pthread_atfork(handler *before, handler *parent, handler *child)
{
    return __register_atfork(before, parent, child, __dso_handle);
}
CODE
$cc -O2 -fPIC -U_FORTIFY_SOURCE -c inside.c -o inside.o
ar rc libc_old.a inside.o
ln -s libm.so.6 libm.so
folder=$(pwd)
echo "GROUP ( $folder/libc.so.6 $folder/libc_old.a $folder/libpthread.so.0 $folder/libdl.so.2
    AS_NEEDED ( $folder/$loader ) )" >libc.so

"$python" -m pip download -q --disable-pip-version-check --retries 1 --timeout 20 --no-deps \
    --only-binary :all: --python-version 3.11 --platform "manylinux_2_27_$machine" \
    --platform "manylinux_2_28_$machine" -d wheel $scikit_learn
"$python" - wheel/*.whl <<'CODE'
import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    (name,) = [n for n in wheel.namelist() if "/libgomp" in n]
    pathlib.Path(pathlib.PurePosixPath(name).name).write_bytes(wheel.read(name))
CODE
rm -rf wheel stub.s stub.map ./*.txt inside.c inside.o
echo "$said" >complete
