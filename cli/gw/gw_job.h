/* gw_job.h - what the files behind `fourge gw` share. */
#ifndef FOURGE_CLI_GW_JOB_H
#define FOURGE_CLI_GW_JOB_H

#include "cli.h"

/** One input: points, a matrix or a graph, by the name of its file. */
typedef struct {
    frg_npy *npy;
    frg_array array; /* of npy, of `values` or of the mesh */
    double *values;  /* of a table */
    frg_graph *graph;
    frg_mesh *mesh;
} gw_input;

/** Reads npy, a table of numbers (csv, tsv), a graph (mtx, edges, txt) or a mesh (off, obj, ply:
 *  its points, with --distance graph its edges).  Returns 0 or the exit code. */
int gw_read(cli *c, const char *path, gw_input *in);
void gw_release(gw_input *in);
/** A vector of n doubles from a npy file, any numeric type; *out is malloc's. */
int gw_read_vector(cli *c, const char *option, const char *path, int64_t n, double **out);
/** --plan, --matches; seconds spent are added to *write. */
int gw_write_plan(cli *c, const frg_plan *plan, double *write);
int gw_write_potentials(cli *c, const double *f, int64_t n, const double *g, int64_t m);

/** Keys of a plan in JSON. */
void gw_plan_json(frg_json *j, const frg_plan_report *p);

/** Distances of one side as a dense matrix: as given, or those that align would use.  *out is
 *  malloc's; the seconds of reading are added to *read. */
int gw_dense_side(cli *c, const char *path, gw_input *in, double **out, int64_t *n, double *read);
/** An alignment as its page shows it. */
typedef struct {
    const frg_gw *solver;
    const gw_input *x, *y;
    double *embedding; /* (n + m) rows of `stride` numbers, of which `dimensions` are coordinates;
                          malloc's; NULL: none */
    int64_t dimensions, stride;
} gw_alignment;

/** --embedding: the rows of X, then those of Y, which *a keeps. */
int gw_write_embedding(cli *c, gw_alignment *a);
/** What the page has besides the table. */
void gw_page_pictures(frg_report *r, const cli *c, const gw_alignment *a);

int gw_align(cli *c);
int gw_sinkhorn(cli *c);
int gw_paths(cli *c);
int gw_energy(cli *c);
int gw_barycenter(cli *c);

#endif
