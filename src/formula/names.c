/* names.c - interned strings: FNV-1a, open addressing at a load of at most one half. */
#include "formula/names.h"

#include <string.h>

static uint64_t hash(const char *s, size_t length)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) {
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    }
    return h ^ (h >> 29);
}

const char *frgi_names_text(const frgi_names *names, int32_t id)
{
    return names->pool.text + names->offsets[id];
}

/** The slot that holds the text, or the free one where it belongs. */
static int32_t slot_of(const frgi_names *names, const char *s, size_t length)
{
    const uint64_t mask = (uint64_t)names->n_slots - 1;
    uint64_t slot = hash(s, length) & mask;
    while (names->slots[slot] >= 0) {
        const char *const t = frgi_names_text(names, names->slots[slot]);
        if (strncmp(t, s, length) == 0 && t[length] == '\0') {
            break;
        }
        slot = (slot + 1) & mask;
    }
    return (int32_t)slot;
}

int32_t frgi_names_find(const frgi_names *names, const char *s, size_t length)
{
    return names->n_slots ? names->slots[slot_of(names, s, length)] : -1;
}

static frg_status grow(frgi_names *names, frg_context *ctx)
{
    const int32_t capacity = names->capacity ? 2 * names->capacity : 32;
    TRY(GROW(ctx, &names->offsets, capacity, "names"));
    int32_t *slots;
    TRY(NEW(ctx, &slots, 2 * (int64_t)capacity, "names"));
    DROP(ctx, &names->slots);
    names->slots = slots;
    names->capacity = capacity;
    names->n_slots = 2 * capacity;
    memset(slots, 0xff, sizeof *slots * (size_t)names->n_slots);
    for (int32_t id = 0; id < names->count; id++) {
        const char *const t = frgi_names_text(names, id);
        slots[slot_of(names, t, strlen(t))] = id;
    }
    return FRG_OK;
}

frg_status frgi_names_intern(frgi_names *names, frg_context *ctx, const char *s, size_t length,
                             int32_t *id)
{
    if (names->count == names->capacity) {
        TRY(grow(names, ctx));
    }
    const int32_t slot = slot_of(names, s, length);
    if (names->slots[slot] < 0) {
        const size_t offset = names->pool.length;
        TRY(frgi_text_append(ctx, &names->pool, s, length));
        TRY(frgi_text_append(ctx, &names->pool, "", 1));
        names->offsets[names->count] = (int64_t)offset;
        names->slots[slot] = names->count++;
    }
    *id = names->slots[slot];
    return FRG_OK;
}

void frgi_names_free(frgi_names *names, frg_context *ctx)
{
    frgi_text_free(ctx, &names->pool);
    DROP(ctx, &names->offsets);
    DROP(ctx, &names->slots);
    *names = (frgi_names){0};
}
