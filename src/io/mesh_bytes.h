/* mesh_bytes.h - the parser of meshes, for its tests. */
#ifndef FRGI_MESH_BYTES_H
#define FRGI_MESH_BYTES_H

#include "core/core.h"
#include "fourge/mesh.h"

#pragma GCC visibility push(hidden)

FRG_MUST_USE frg_status frgi_mesh_parse(frg_mesh **out, frg_context *ctx, const char *bytes,
                                        int64_t count, const char *name);

#pragma GCC visibility pop
#endif
