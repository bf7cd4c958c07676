/* emulated_tiles.h - the instructions of AMX that bf16_tiles.h uses, in plain C: what is written
 * for them runs on CPUs without.
 *
 * Included before bf16_tiles.h.  Intel, Architecture Instruction Set Extensions: TDPBF16PS sums the
 * products of the even and of the odd halves of words apart, one k after another, and adds both
 * sums to C; products of two bfloat16 are exact. */
#ifndef EMULATED_TILES_H
#define EMULATED_TILES_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TILE_LINES = 16, TILE_WORDS = 16 };

/** A tile of words: two bfloat16 or a float. */
static _Thread_local uint32_t emulated_tile[8][TILE_LINES][TILE_WORDS];
static _Thread_local int emulated_open; /* whether the shape is set; no tile may be used before */
static _Atomic int emulated_products, emulated_closed_uses;

static void emulated_config(const void *shape)
{
    const unsigned char *const bytes =
        shape; /* palette 1, lines of 64 bytes, 16 of them, of eight tiles */
    emulated_open = bytes[0] == 1;
    for (int t = 0; t < 8; t++) {
        emulated_open = emulated_open && bytes[16 + 2 * t] == 64 && bytes[48 + t] == TILE_LINES;
    }
}

static void emulated_release(void)
{
    emulated_open = 0;
}

static void emulated_zero(int t)
{
    emulated_closed_uses += !emulated_open;
    memset(emulated_tile[t], 0, sizeof emulated_tile[t]);
}

static void emulated_load(int t, const void *from, ptrdiff_t stride)
{
    emulated_closed_uses += !emulated_open;
    for (int r = 0; r < TILE_LINES; r++) {
        memcpy(emulated_tile[t][r], (const char *)from + r * stride, sizeof emulated_tile[t][r]);
    }
}

static void emulated_store(int t, void *to, ptrdiff_t stride)
{
    for (int r = 0; r < TILE_LINES; r++) {
        memcpy((char *)to + r * stride, emulated_tile[t][r], sizeof emulated_tile[t][r]);
    }
}

static float emulated_half(uint32_t word, int upper)
{
    const uint32_t bits = upper ? word & 0xffff0000u : word << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void emulated_dot(int c, int a, int b)
{
    float even[TILE_LINES][TILE_WORDS], odd[TILE_LINES][TILE_WORDS];
    emulated_products++;
    for (int k = 0; k < TILE_LINES; k++) {
        for (int n = 0; n < TILE_WORDS; n++) {
            even[k][n] = emulated_half(emulated_tile[b][k][n], 0);
            odd[k][n] = emulated_half(emulated_tile[b][k][n], 1);
        }
    }
    for (int m = 0; m < TILE_LINES; m++) {
        float sums[2][TILE_WORDS] = {{0}}, old[TILE_WORDS];
        for (int k = 0; k < TILE_WORDS; k++) {
            const float x = emulated_half(emulated_tile[a][m][k], 0);
            const float y = emulated_half(emulated_tile[a][m][k], 1);
            for (int n = 0; n < TILE_WORDS; n++) {
                sums[0][n] += x * even[k][n];
                sums[1][n] += y * odd[k][n];
            }
        }
        memcpy(old, emulated_tile[c][m], sizeof old);
        for (int n = 0; n < TILE_WORDS; n++) {
            old[n] += sums[0][n] + sums[1][n];
        }
        memcpy(emulated_tile[c][m], old, sizeof old);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig emulated_config
#define _tile_release    emulated_release
#define _tile_zero       emulated_zero
#define _tile_loadd      emulated_load
#define _tile_stored     emulated_store
#define _tile_dpbf16ps   emulated_dot

#endif
