/* gw_tiles.h - factors of a cost on the CPU's tiles (AMX), see linalg/bf16_tiles.h. */
#ifndef FRGI_GW_TILES_H
#define FRGI_GW_TILES_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { FRGI_BLOCK_ROWS = 16, FRGI_BLOCK_COLUMNS = 48 };

/** Bytes of a factor of `count` rows or columns. */
size_t frgi_tiles_bytes(int64_t count, int64_t rank);
/** The left factor from rows[r][i], n of each, times `scale`; tiles of 16 points first ..
 *  last-1. */
void frgi_tiles_pack_left(const float *rows, int64_t n, int64_t rank, float scale, void *out,
                          int64_t first, int64_t last);
/** The same of the right factor. */
void frgi_tiles_pack_right(const float *rows, int64_t n, int64_t rank, float scale, void *out,
                           int64_t first, int64_t last);
/** The thread's tiles are ours from here to the close; lines: rows of a block, 8 or 16. */
void frgi_tiles_open(int lines);
void frgi_tiles_close(void);
/** sums[line][48] <- products of the rows from i on and the columns from j on, a multiple of 48. */
void frgi_tiles_block(const void *left, int64_t i, const void *right, int64_t j, int64_t rank,
                      float *sums);

#pragma GCC visibility pop
#endif
