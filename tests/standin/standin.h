/* standin.h - what a test tells a stand-in for a driver, and what it hears of it.
 *
 * A stand-in is a library under the name of the driver's, which the test loads first.  Its device
 * memory has no rights outside of copies and launches; commands wait in queues until somebody waits
 * for them, and those of different streams run in random order; a launch runs the plain C life of
 * its kernel with the groups in random order. */
#ifndef FOURGE_STANDIN_H
#define FOURGE_STANDIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    /* told */
    int64_t fail_at;  /* the call that fails, from 1 on; 0: none */
    int fail_with;    /* its error */
    int64_t lose_at;  /* from that call on all fail: the device is lost; 0: none */
    size_t memory;    /* bytes of the device */
    int major, minor; /* compute capability */
    int ordinal;      /* of the device that CUDA's addresses lie on */
    uint64_t random;  /* state of the order */
    /* heard */
    int64_t calls, launches, waits, copies, bytes_in, bytes_out;
    int64_t objects;       /* contexts, streams, events, modules, blocks that are there */
    int64_t cubins, texts; /* modules loaded from either */
    size_t held;           /* bytes of blocks */
    char complaint[256];   /* the first thing that a real driver would not have borne */
} standin;

#endif
