/* fuzz_csv.c - any bytes as a text table: no crash, nothing lost, the same answer in any steps,
 * little memory.
 *
 * The first byte chooses the delimiter, whether there is a header, and how small the second
 * reading's steps are; the rest is the file (gzip where it begins as one).
 */
#include "fourge/table.h"
#include "io/io.h"

#include "fuzz.h"

/** Everything must be readable, and the codes within the labels. */
static int64_t walk(const frg_table *t)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < frg_table_columns(t); i++) {
        const frg_column *const c = frg_table_column(t, i);
        insist(frg_table_find(t, c->name) == c);
        int64_t missing = 0;
        for (int64_t r = 0; r < c->n; r++) {
            if (c->codes) {
                insist(c->codes[r] >= -1 && c->codes[r] < (c->kind == FRG_BOOL ? 2 : c->n_labels));
                missing += c->codes[r] < 0;
                sum = sum * 31 + c->codes[r];
                sum += c->labels && c->codes[r] >= 0 ? c->labels[c->codes[r]][0] : 0;
            } else if (c->integers) {
                missing += c->integers[r] == FRG_MISSING_INTEGER;
                sum = (int64_t)((uint64_t)sum * 31 + (uint64_t)c->integers[r]);
            } else {
                missing += c->numbers[r] != c->numbers[r];
                sum += c->numbers[r] > 0;
            }
            sum &= INT64_MAX >> 8;
        }
        insist(missing == c->n_missing);
    }
    return sum;
}

static frg_status read_in_steps(frg_table **t, frg_context *ctx, const frgi_span *span,
                                const frg_table_opts *o, frgi_csv_steps steps)
{
    const frgi_input input = {.name = "fuzz.csv", .spans = span, .n_spans = 1};
    frgi_source *source;
    *t = NULL;
    frg_status status = frgi_source_open(&source, ctx, &input, true);
    if (status == FRG_OK)
        status = frgi_csv_read(t, ctx, &input, source, o, &steps);
    frgi_source_close(&source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    frg_context *const ctx = fuzz_context(1 << 30);
    if (!ctx)
        return 0;
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.delimiter = "\0,\t;"[data[0] & 3];
    o.header = !(data[0] & 4);
    const int64_t segment = 1 + 7 * (data[0] >> 3);
    const frgi_span span = {(const char *)data + 1, (int64_t)size - 1};
    frg_table *a, *b;
    const frg_status s = read_in_steps(&a, ctx, &span, &o, frgi_csv_default_steps);
    insist((s == FRG_OK) == (a != NULL));
    const frg_status r =
        read_in_steps(&b, ctx, &span, &o, (frgi_csv_steps){segment / 3 + 1, segment, 0});
    insist(r == s);
    if (s == FRG_OK) {
        insist(frg_table_rows(a) == frg_table_rows(b));
        insist(frg_table_columns(a) == frg_table_columns(b));
        insist(walk(a) == walk(b));
        for (int64_t i = 0; i < frg_table_columns(a); i++)
            insist(frg_table_column(a, i)->kind == frg_table_column(b, i)->kind);
    }
    frg_table_destroy(a);
    frg_table_destroy(b);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
