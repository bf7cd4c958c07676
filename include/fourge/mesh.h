/* mesh.h - surfaces and curves from files: points, and the edges of their faces. */
#ifndef FOURGE_MESH_H
#define FOURGE_MESH_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Points in space and the edges between them.  Made by frg_mesh_read, freed by
 *  frg_mesh_destroy. */
typedef struct frg_mesh frg_mesh;

/** Reads an OFF (COFF, NOFF and the like), OBJ (v, f, l; the rest is passed over) or PLY file
 *  (ascii, binary of either byte order; vertex x y z, face vertex_indices or vertex_index, edge
 *  vertex1 vertex2); the kind is seen from its beginning, not from its name.  A file without faces
 *  is a cloud of points. Errors: E_NO_INPUT, E_READ, E_FORMAT and E_TRUNCATED with the line, or the
 *  byte in binary parts. FRG_INTERRUPTED, FRG_TIME_LIMIT: stopped while it waited for a pipe, *out
 *  is NULL. */
FRG_API FRG_MUST_USE frg_status frg_mesh_read(frg_mesh **out, frg_context *ctx, const char *path);
/** n x 3, f64; alive as long as m. */
FRG_API frg_array frg_mesh_points(const frg_mesh *m);
/** The sides of the faces and the edges, in the order of the file, twice where two faces meet:
 *  points ends[2 e] and ends[2 e + 1]; returns their number. */
FRG_API int64_t frg_mesh_edges(const frg_mesh *m, const int32_t **ends);
/** Frees the mesh and what was read from it; NULL is fine. */
FRG_API void frg_mesh_destroy(frg_mesh *m);

#ifdef __cplusplus
}
#endif
#endif
