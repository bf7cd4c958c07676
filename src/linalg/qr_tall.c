/* qr_tall.c - QR of tall matrices in two levels (TSQR): blocks of rows, and the R that they leave
 * on top of each other.
 *
 *     A_i = Q_i R_i,  i < blocks;     (R_1; R_2; ..) = P R;     Q = (Q_1 P_1; Q_2 P_2; ..)
 *
 * A block stays in the L2 cache, where the panels of the whole matrix go through memory once for
 * every eight columns, and blocks are dealt to threads.  How rows are cut depends on the shape
 * alone, and no sum crosses a block but in the second level: bits do not depend on the team.  Q is
 * orthonormal whatever the rank, as every Q_i and P is.
 *
 * Cost: 6 m n^2 flops instead of 4, a third of them products.  Memory: R of all blocks, at most 1/8
 * of the matrix.
 *
 * References: Demmel, Grigori, Hoemmen and Langou (2012), Communication-optimal parallel and
 * sequential QR and LU. */
#include "linalg/qr_tall.h"

#include <omp.h>
#include <string.h>

#include "linalg/blas.h"

enum {
    ROWS = 2048,       /* of a block, at least; the last has up to twice as many */
    HEIGHT = 8,        /* rows of a block for each column, at least */
    BLOCKS = 4,        /* from so many on a matrix is tall */
    BUFFER_ROWS = 512, /* rows of Q that are computed at a time */
};

static ptrdiff_t block_rows(int64_t n)
{
    const ptrdiff_t least = frgi_qr_rounded(HEIGHT * n, QR_ROW_STEP);
    return least > ROWS ? least : ROWS;
}

bool frgi_qr_is_tall(int64_t m, int64_t n)
{
    return m >= BLOCKS * block_rows(n);
}

static ptrdiff_t stack_rows(int64_t m, int64_t n)
{
    return frgi_qr_rounded(m / block_rows(n) * n, QR_ROW_STEP);
}

static ptrdiff_t stack_distance(ptrdiff_t rows)
{
    return rows + (rows % 256 == 0 ? QR_ROW_STEP : 0);
}

size_t frgi_qr_stack_elements(int64_t m, int64_t n)
{
    return frgi_qr_is_tall(m, n) ? frgi_mul((size_t)stack_distance(stack_rows(m, n)),
                                            (size_t)frgi_qr_rounded(n, QR_LEAF))
                                 : 0;
}

void frgi_qr_tall_take(frgi_arena *arena, frgi_qr_tall *tall, frgi_product_way way, bool f64,
                       int64_t n, size_t stack, int team)
{
    const size_t element = f64 ? sizeof(double) : sizeof(float), wide = QR_PANEL;
    const size_t columns = (size_t)frgi_qr_rounded(n, QR_LEAF);
    const size_t rows = 2 * (size_t)block_rows(n);
    *tall = (frgi_qr_tall){0};
    if (stack == 0) {
        return;
    }
    tall->blocks = TAKE(arena, frgi_qr_block_workspace, team);
    for (int i = 0; i < team; i++) {
        frgi_qr_block_workspace b = {
            .x = {.v_leaf = frgi_take(arena, rows * QR_LEAF * element),
                  .v_tiles = frgi_take(arena, rows * wide * element),
                  .v_rows = frgi_take(arena, rows * wide * element),
                  .t = frgi_take(arena, (columns + wide) * wide * element),
                  .small = frgi_take(arena, (wide + 2 * QR_BAND) * wide * element),
                  .diagonal = frgi_take(arena, columns * element)},
            .buffer = frgi_take(arena, BUFFER_ROWS * columns * element),
        };
        frgi_product_workspace_take(arena, &b.product, f64 ? PRODUCT_BLAS : way);
        if (tall->blocks) {
            tall->blocks[i] = b;
        }
    }
    tall->stack = frgi_take(arena, frgi_mul(stack, element));
}

/** The blocks of a matrix, and what is done with one of them. */
typedef struct {
    const frgi_qr_ops *ops;
    const frgi_qr_tall *tall;
    const frgi_qr_matrix *x;
    const frgi_qr_matrix *stacked;
    size_t element;
} level;

typedef void (*block_step)(const level *l, frgi_qr_block_workspace *work, ptrdiff_t i);

static ptrdiff_t blocks_of(const frgi_qr_matrix *x)
{
    return x->m / block_rows(x->n);
}

static frgi_qr_matrix block_at(const level *l, const frgi_qr_block_workspace *work, ptrdiff_t i)
{
    const ptrdiff_t step = block_rows(l->x->n), first = i * step;
    const bool last = i + 1 == blocks_of(l->x);
    frgi_qr_matrix b = *l->x, own = work->x;
    b.m = last ? b.m - first : step;
    b.rows = last ? b.rows - first : step;
    b.team = 1;
    b.a = (char *)b.a + (size_t)first * l->element;
    b.v_leaf = own.v_leaf;
    b.v_tiles = own.v_tiles;
    b.v_rows = own.v_rows;
    b.t = own.t;
    b.small = own.small;
    b.diagonal = own.diagonal;
    return b;
}

static void each_block(const level *l, block_step step)
{
    const ptrdiff_t count = blocks_of(l->x);
    if (l->x->team == 1) { /* within a region of the caller's */
        for (ptrdiff_t i = 0; i < count; i++) {
            step(l, l->tall->blocks, i);
        }
        return;
    }
#pragma omp parallel num_threads(l->x->team)
    {
        frgi_blas_single();
#pragma omp for schedule(dynamic, 1)
        for (ptrdiff_t i = 0; i < count; i++) {
            step(l, &l->tall->blocks[omp_get_thread_num()], i);
        }
    }
}

/** A_i <- Q_i; R_i goes to the stack. */
static void factor_block(const level *l, frgi_qr_block_workspace *work, ptrdiff_t i)
{
    const frgi_qr_matrix b = block_at(l, work, i);
    const size_t ld = (size_t)b.ld * l->element, n = (size_t)b.n, to_ld = (size_t)l->stacked->ld;
    char *const to = (char *)l->stacked->a + (size_t)i * n * l->element;
    l->ops->factor(&b);
    for (size_t j = 0; j < n; j++) {
        memcpy(to + j * to_ld * l->element, (char *)b.a + j * ld, (j + 1) * l->element);
    }
    l->ops->form(&b);
}

/** Q_i <- Q_i P_i. */
static void multiply_block(const level *l, frgi_qr_block_workspace *work, ptrdiff_t i)
{
    const frgi_qr_matrix b = block_at(l, work, i);
    const size_t ld = (size_t)b.ld;
    const char *const p = (const char *)l->stacked->a + (size_t)(i * b.n) * l->element;
    for (ptrdiff_t first = 0; first < b.rows; first += BUFFER_ROWS) {
        const ptrdiff_t rows = b.rows - first < BUFFER_ROWS ? b.rows - first : BUFFER_ROWS;
        char *const q = (char *)b.a + (size_t)first * l->element;
        if (l->element == sizeof(double)) {
            frgi_dgemm('N', 'N', (int)rows, (int)b.n, (int)b.n, 1, (double *)(void *)q, (int)ld,
                       (const double *)(const void *)p, (int)l->stacked->ld, 0, work->buffer,
                       (int)rows);
        } else {
            frgi_product(&work->product, 'N', 'N', rows, b.n, b.n, (float *)(void *)q, b.ld,
                         (const float *)(const void *)p, l->stacked->ld, work->buffer, rows);
        }
        const size_t line = (size_t)rows * l->element;
        for (size_t j = 0; j < (size_t)b.n; j++) {
            memcpy(q + j * ld * l->element, (char *)work->buffer + j * line, line);
        }
    }
}

static level level_of(const frgi_qr_ops *ops, const frgi_qr_tall *tall, const frgi_qr_matrix *x,
                      bool f64, const frgi_qr_matrix *stacked)
{
    return (level){ops, tall, x, stacked, f64 ? sizeof(double) : sizeof(float)};
}

void frgi_qr_tall_factor(const frgi_qr_ops *ops, const frgi_qr_tall *tall, const frgi_qr_matrix *x,
                         bool f64, frgi_qr_matrix *stacked)
{
    const level l = level_of(ops, tall, x, f64, stacked);
    *stacked = *x;
    stacked->m = blocks_of(x) * x->n;
    stacked->rows = stack_rows(x->m, x->n);
    stacked->ld = stack_distance(stacked->rows);
    stacked->a = tall->stack;
    memset(stacked->a, 0, (size_t)(stacked->ld * stacked->columns) * l.element);
    each_block(&l, factor_block);
    ops->factor(stacked);
}

void frgi_qr_tall_form(const frgi_qr_ops *ops, const frgi_qr_tall *tall, const frgi_qr_matrix *x,
                       bool f64, const frgi_qr_matrix *stacked)
{
    const level l = level_of(ops, tall, x, f64, stacked);
    ops->form(stacked);
    each_block(&l, multiply_block);
}
