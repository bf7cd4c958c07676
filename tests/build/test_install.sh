#!/bin/sh
# The installed library serves a small program in four ways: pkg-config and find_package, shared and static.
#     test_install.sh BUILD
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
prefix=$scratch/prefix

cat >"$scratch/consumer.c" <<'END'
#include <fourge/fe.h>
#include <stdio.h>
int main(void)
{
    const int codes[4] = {0, 0, 1, 1};
    double y[4] = {1, 2, 3, 5};
    frg_context *ctx;
    frg_demean *d;
    if (frg_context_create(&ctx, NULL) < 0 ||
        frg_demean_create(&d, ctx, frg_matrix(codes, FRG_I32, 4, 1, 1), NULL, NULL, 0, 0, NULL) < 0 ||
        frg_demean_run(d, frg_matrix(y, FRG_F64, 4, 1, 1), frg_matrix(y, FRG_F64, 4, 1, 1), NULL, NULL) < 0)
        return 1;
    printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
    frg_demean_destroy(d);
    frg_context_destroy(ctx);
    return 0;
}
END
cat >"$scratch/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(fourge 0.1 REQUIRED)
add_executable(shared consumer.c)
target_link_libraries(shared fourge::fourge)
add_executable(static consumer.c)
target_link_libraries(static fourge::fourge_static)
END

answers() {
    said=$(LD_LIBRARY_PATH=$libraries "$1") || return 1
    echo "$said"
    [ "$said" = "-0.5 0.5 -1 1" ]
}
# without LIBRARY PROGRAM: the program does not load it
without() {
    ldd "$2" >"$scratch/needed" && ! grep "$1" "$scratch/needed"
}

by_pkg_config() {
    # shellcheck disable=SC2086 # a list of words
    gcc "$scratch/consumer.c" -o "$scratch/pc_$1" $2
}

check "cmake --install" cmake --install "$build" --prefix "$prefix"
libraries=$(dirname "$(find "$prefix" -name 'libfourge.so' | head -n 1)")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
pc=pkg-config
check "pkg-config knows the version" test "$($pc --modversion fourge)" = "$(sed -n 's/^#define FRG_VERSION_[A-Z]* *//p' \
    "$prefix/include/fourge/fourge.h" | paste -sd.)"
check "builds by pkg-config, shared" by_pkg_config shared "$($pc --cflags --libs fourge)"
check "runs" answers "$scratch/pc_shared"
static=$($pc --cflags --libs --static fourge | sed 's/-lfourge/-l:libfourge.a/')
check "builds by pkg-config, static" by_pkg_config static "$static"
check "runs" answers "$scratch/pc_static"
check "loads no libfourge.so" without libfourge "$scratch/pc_static"

# without the shared library beside it, and then without any: the flags as they are given
mkdir "$scratch/lone"
cp -r "$prefix" "$scratch/lone/prefix"
rm "$scratch/lone/prefix/${libraries#"$prefix"/}"/libfourge.so*
lone=$(PKG_CONFIG_PATH="$scratch/lone/prefix/${libraries#"$prefix"/}/pkgconfig" $pc --cflags --libs --static fourge)
check "builds by pkg-config --static alone" by_pkg_config lone "$lone"
check "runs" answers "$scratch/pc_lone"
case $lone in
*-lgfortran*)
    check "builds by gcc -static" by_pkg_config whole "-static $lone"
    check "runs" answers "$scratch/pc_whole"
    ;;
*) skip "builds by gcc -static" "libgfortran.a, which LAPACK in OpenBLAS's archive needs, is not here" ;;
esac

mkdir "$scratch/cxx"
cp "$scratch/consumer.c" "$scratch/cxx/consumer.cc"
sed 's/consumer C/consumer CXX/; s/consumer\.c/consumer.cc/' "$scratch/CMakeLists.txt" >"$scratch/cxx/CMakeLists.txt"
cmake_build_cxx() {
    cmake -S "$scratch/cxx" -B "$scratch/cxx/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$scratch/cxx/build"
}
cmake_build() {
    cmake -S "$scratch" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$scratch/build"
}
check "builds by find_package" cmake_build
check "shared runs" answers "$scratch/build/shared"
check "static runs" answers "$scratch/build/static"
check "static loads no libfourge.so" without libfourge "$scratch/build/static"
check "builds by find_package in a project of C++ alone" cmake_build_cxx
check "shared runs" answers "$scratch/cxx/build/shared"
check "static runs" answers "$scratch/cxx/build/static"
check "the man page of fe" grep -q '^.SH NAME' "$prefix/share/man/man1/fourge-fe.1"
check "the completion of bash" grep -q complete "$prefix/share/bash-completion/completions/fourge"
check "the program is installed" "$prefix/bin/fourge" --version
check "run paths name whole folders" whole_run_paths "$prefix/bin/fourge" "$libraries/libfourge.so"
tour() {
    (cd "$scratch" && "$prefix/bin/fourge" tour)
}
check "and finds the data of the tour" tour
finish
