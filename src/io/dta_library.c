/* dta_library.c - ReadStat (https://github.com/WizardMac/ReadStat), opened when a file asks for it,
 * as drivers of devices are: programs that read no such file do without.
 *
 * Its header is needed where fourge is built, the library where a file is read.  It takes memory
 * from malloc: blocks of it are neither counted nor limited, and tests cannot refuse them.
 */
#include "io/io.h"

#if FOURGE_READSTAT
#include <dlfcn.h>
#include <string.h>

#include "io/dta.h"

frg_status frgi_readstat_open(frgi_readstat *out, frg_context *ctx, const char *file)
{
    static const char *const names[] = {
#define NAME(name) "readstat_" #name,
        FRGI_READSTAT(NAME)
#undef NAME
    };
    enum { COUNT = sizeof names / sizeof *names };
    static_assert(sizeof *out == COUNT * sizeof(void *), "pointers alone");
    void *const library = dlopen("libreadstat.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *pointers[COUNT] = {NULL};
    int n = 0;
    while (library && n < COUNT && (pointers[n] = dlsym(library, names[n]))) {
        n++;
    }
    if (n < COUNT) {
        frgi_at(ctx, "%s", file);
        FAIL(ctx, E_DECODER,
             "'%s': files of Stata are read by ReadStat, %s; install it (Debian: apt install "
             "libreadstat1), or export the data to csv",
             file, library ? "whose version here is another" : "which is not on this machine");
    }
    memcpy(out, pointers, sizeof *out);
    return FRG_OK;
}
#endif
