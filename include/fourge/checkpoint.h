/* checkpoint.h - saved states of long runs: named sections of bytes in one file that is never half
 * there.
 *
 * A file says which solver wrote it and carries two hashes, of the options and of the data, so that
 * a state is not taken up for another run, and a checksum of the head and of every section.  It
 * holds numbers as the machine has them: a machine of the other byte order refuses it.
 */
#ifndef FOURGE_CHECKPOINT_H
#define FOURGE_CHECKPOINT_H

#include "fourge/fourge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** 64 bits of `count` bytes; the same on every machine of one byte order, chained by `seed`.
 *  Against accidents, not against malice. */
FRG_API uint64_t frg_hash(uint64_t seed, const void *bytes, int64_t count);

/** A state: solver, hashes of options and data, named sections.  Made by frg_checkpoint_create or
 *  _load, freed by frg_checkpoint_destroy before its context. */
typedef struct frg_checkpoint frg_checkpoint;

/** An empty one.  solver: at most 15 bytes.  Errors: E_ARG for a longer name, E_MEMORY. */
FRG_API FRG_MUST_USE frg_status frg_checkpoint_create(frg_checkpoint **out, frg_context *ctx,
                                                      const char *solver, uint64_t options,
                                                      uint64_t data);
/** Sets section `name` (at most 15 bytes, 32 sections).  The bytes are borrowed until the last
 *  save.  Errors: E_ARG for another name or one section too many. */
FRG_API FRG_MUST_USE frg_status frg_checkpoint_put(frg_checkpoint *c, const char *name,
                                                   const void *bytes, int64_t count);
/** The bytes of a section, which live as long as c; NULL where there is none. */
FRG_API const void *frg_checkpoint_get(const frg_checkpoint *c, const char *name, int64_t *count);

/** Writes PATH, whole or not at all; the PATH that was there becomes PATH~.  Errors: E_CREATE,
 *  E_WRITE, E_MEMORY; E_ARG for "-", which is no file. */
FRG_API FRG_MUST_USE frg_status frg_checkpoint_save(const frg_checkpoint *c, const char *path);
/** Reads PATH, or PATH~ with a warning where PATH is damaged or gone.  Errors: E_NO_INPUT,
 *  E_CHECKPOINT, E_MISMATCH for another version or byte order. FRG_INTERRUPTED, FRG_TIME_LIMIT:
 *  stopped while it waited for a pipe, *out is NULL. */
FRG_API FRG_MUST_USE frg_status frg_checkpoint_load(frg_checkpoint **out, frg_context *ctx,
                                                    const char *path);
/** E_MISMATCH, which says what differs, unless solver and hashes are these. */
FRG_API FRG_MUST_USE frg_status frg_checkpoint_check(const frg_checkpoint *c, const char *solver,
                                                     uint64_t options, uint64_t data);
/** The name of the solver that wrote it, alive as long as c. */
FRG_API const char *frg_checkpoint_solver(const frg_checkpoint *c);
/** Frees it, and of one that was loaded the sections; NULL is fine. */
FRG_API void frg_checkpoint_destroy(frg_checkpoint *c);

#ifdef __cplusplus
}
#endif
#endif
