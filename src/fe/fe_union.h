/* fe_union.h - union-find with path halving; the smaller label becomes the root, so that labels do
 * not depend on the order in which vertices are joined. */
#ifndef FRGI_FE_UNION_H
#define FRGI_FE_UNION_H

#include <stdint.h>

static inline int32_t fe_root_of(int32_t *parent, int32_t l)
{
    while (parent[l] != l) {
        parent[l] = parent[parent[l]];
        l = parent[l];
    }
    return l;
}

/** Joins two vertices; returns 1 when they were apart. */
static inline int fe_join(int32_t *parent, int32_t a, int32_t b)
{
    if (parent[a] == parent[b]) {
        return 0; /* most edges, and no path is walked */
    }
    a = fe_root_of(parent, a);
    b = fe_root_of(parent, b);
    if (a == b) {
        return 0;
    }
    if (a < b) {
        parent[b] = a;
    } else {
        parent[a] = b;
    }
    return 1;
}

#endif
