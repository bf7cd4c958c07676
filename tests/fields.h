/* fields.h - a table of the fields of an options struct, each with another value: what a test does
 * for every option. */
#ifndef FOURGE_TESTS_FIELDS_H
#define FOURGE_TESTS_FIELDS_H

#include "fourge/fourge.h"
#include "test.h"

typedef enum { FIELD_INT, FIELD_INT64, FIELD_REAL, FIELD_POINTER } field_kind;
/** What another value of an option means to a run that is resumed: that is refused, or may go on to
 *  the same bits. */
typedef enum { DECIDES, LEAVES_BITS } field_effect;

typedef struct {
    const char *name;
    size_t at;
    field_kind kind;
    double value;
    const void *pointer; /* the value of FIELD_POINTER */
    field_effect what;
    int where; /* the caller's: where the option matters */
} field;
#define FIELD(type, name, kind, value, what, where)                                                \
    {                                                                                              \
#name, offsetof(type, name), FIELD_##kind, value, NULL, what, where                        \
    }
#define FIELD_TO(type, name, pointer, what, where)                                                 \
    {                                                                                              \
#name, offsetof(type, name), FIELD_POINTER, 0, pointer, what, where                        \
    }

static size_t field_bytes(const field *f)
{
    return f->kind == FIELD_INT ? sizeof(int) : sizeof(int64_t);
}

/** Whether the `count` fields of the table are all fields of a struct of `bytes` bytes behind
 *  struct_size, in its order: what lies between two of them is padding alone. */
TEST_UNUSED static void fields_cover(const field *fields, int count, size_t bytes)
{
    size_t end = sizeof(size_t);
    for (int i = 0; i < count; i++) {
        const size_t own = field_bytes(&fields[i]);
        CHECK_SAYS(fields[i].at == (end + own - 1) / own * own, "a field before %s is missing",
                   fields[i].name);
        end = fields[i].at + own;
    }
    CHECK_SAYS((end + 7) / 8 * 8 == bytes, "the last field is not %s", fields[count - 1].name);
}

/** Whether the library's table has the same fields in the same order, and says of each that a run
 *  must not go on with another value of that it decides bits. */
TEST_UNUSED static void fields_follow(const field *fields, int count, const frg_option *table)
{
    int i = 0;
    for (const frg_option *o = table; o->name; o++, i++) {
        const field *const f = &fields[i < count ? i : count - 1];
        CHECK_SAYS(strcmp(f->name, o->name) == 0 && f->at == o->offset, "%s is %s in the table",
                   f->name, o->name);
        CHECK_SAYS(o->decides_bits || f->what == LEAVES_BITS, "%s decides bits", f->name);
    }
    CHECK(i == count);
}

TEST_UNUSED static void field_set(const field *f, void *options)
{
    char *const to = (char *)options + f->at;
    switch (f->kind) {
    case FIELD_INT:
        memcpy(to, &(int){(int)f->value}, sizeof(int));
        break;
    case FIELD_INT64:
        memcpy(to, &(int64_t){(int64_t)f->value}, sizeof(int64_t));
        break;
    case FIELD_REAL:
        memcpy(to, &f->value, sizeof f->value);
        break;
    case FIELD_POINTER:
        memcpy(to, &f->pointer, sizeof f->pointer);
        break;
    }
}

#endif
