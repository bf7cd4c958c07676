/* npy.h - the inside of an array that was read, for the files that read and write arrays. */
#ifndef FRGI_NPY_H
#define FRGI_NPY_H

#include "io/io.h"

struct frg_npy {
    frg_context *ctx;
    void *data;
    const char *file; /* mapped, and data part of it; NULL: data are a block */
    frg_array view;
    bool is_bool; /* stored as bool, held as int64 */
};

enum { NPY_HEADER_BYTES = 256 };
/** The head of an .npy file of version 1.0 for a host view; its length. */
int frgi_npy_header(const frg_array *a, bool fortran, char text[NPY_HEADER_BYTES]);

#endif
