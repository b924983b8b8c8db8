/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Keys of fields, sorting by keys, and the chunks that have changed: see keys.h. */
#include "core/query/keys.h"

/* ------------------------------------------------------------------------------------------ sorting */

enum {
    FEW_ITEMS = 32,    /* so few are sorted by insertion */
    MANY_ITEMS = 4096, /* for so many, the counts of large digits are worth their room in the cache */
    LARGE_BITS = 11,   /* of a digit */
    LARGE_DIGITS = 3   /* of a number of 32 bits */
};

static void sort_few(quern__keyed *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const quern__keyed item = items[i];
        uint32_t k = i;
        for (; k > 0 && items[k - 1].key > item.key; k--)
            items[k] = items[k - 1];
        items[k] = item;
    }
}

/* Moves the items from one array to another, sorted by a digit of at most 11 bits. */
static void sort_by_digit(quern__keyed *to, const quern__keyed *from, uint32_t count, uint32_t shift,
                          uint32_t bits)
{
    uint32_t places[1 << LARGE_BITS];
    const uint32_t mask = (1u << bits) - 1;
    memset(places, 0, sizeof *places << bits);
    for (uint32_t i = 0; i < count; i++)
        places[from[i].key >> shift & mask]++;
    for (uint32_t digit = 0, place = 0; digit <= mask; digit++) {
        const uint32_t here = places[digit];
        places[digit] = place;
        place += here;
    }
    for (uint32_t i = 0; i < count; i++)
        to[places[from[i].key >> shift & mask]++] = from[i];
}

uint64_t *quern__words_sort(uint64_t *words, uint64_t *scratch, uint32_t count)
{
    uint32_t places[LARGE_DIGITS][1 << LARGE_BITS];
    const uint32_t mask = (1u << LARGE_BITS) - 1;
    uint64_t *from = words, *to = scratch;
    memset(places, 0, sizeof places);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < LARGE_DIGITS; k++)
            places[k][words[i] >> (32 + k * LARGE_BITS) & mask]++;
    for (uint32_t k = 0; k < LARGE_DIGITS && count > 0; k++) {
        const uint32_t shift = 32 + k * LARGE_BITS;
        if (places[k][from[0] >> shift & mask] == count) continue; /* all have this digit */
        for (uint32_t digit = 0, place = 0; digit <= mask; digit++) {
            const uint32_t here = places[k][digit];
            places[k][digit] = place;
            place += here;
        }
        for (uint32_t i = 0; i < count; i++)
            to[places[k][from[i] >> shift & mask]++] = from[i];
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

void quern__keyed_sort(quern__keyed *items, quern__keyed *scratch, uint32_t count)
{
    uint64_t differences = 0;
    uint32_t sorted_count = 1;
    if (count <= FEW_ITEMS) {
        sort_few(items, count);
        return;
    }
    while (sorted_count < count && items[sorted_count - 1].key <= items[sorted_count].key)
        sorted_count++;
    if (sorted_count == count) return;
    for (uint32_t i = 1; i < count; i++)
        differences |= items[i].key ^ items[0].key;
    const uint32_t bits = count < MANY_ITEMS ? 8 : LARGE_BITS;
    quern__keyed *from = items, *to = scratch;
    for (uint32_t shift = 0; shift < 64 && differences >> shift != 0; shift += bits) {
        shift += quern__lowest_bit_64(differences >> shift); /* no key differs in the bits before */
        sort_by_digit(to, from, count, shift, bits);
        quern__keyed *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}

/* -------------------------------------------------------------------------------------------- fields */

quern_result quern__key_field_resolve(quern__key_field *field, const quern__storage *storage)
{
    const quern__type *type = quern__components_type(&storage->components, field->component_index);
    const char *name = field->name[0] != '\0' ? field->name : field->known_name;
    if (name[0] != '\0') {
        uint32_t i = 0;
        while (i < type->field_count && strcmp(type->fields[i].name, name) != 0)
            i++;
        if (i == type->field_count) {
            quern_suggestion suggestion = {0};
            for (i = 0; i < type->field_count; i++)
                quern_suggestion_offer(&suggestion, name, strlen(name), type->fields[i].name);
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "component '%s' has no described field '%s': list it in the fields of its "
                "definition, or give offset_bytes and type of the field instead of its name%s",
                type->name, name, suggestion.text);
        }
        if (type->fields[i].count > 1 || type->fields[i].type > QUERN_FIELD_ENTITY)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "field '%s' of component '%s' is an array, a text or a list, which has no order: "
                "name a number, a bool, an enum or an entity",
                name, type->name);
        field->offset_bytes = type->fields[i].offset_bytes;
        field->type = type->fields[i].type;
    } else {
        /* a described field is found again by its name after a redefinition */
        for (uint32_t i = 0; i < type->field_count; i++)
            if (type->fields[i].offset_bytes == field->offset_bytes &&
                type->fields[i].type == field->type && type->fields[i].count == 1)
                snprintf(field->known_name, sizeof field->known_name, "%s", type->fields[i].name);
    }
    if (field->type < QUERN_FIELD_BOOL || field->type > QUERN_FIELD_ENTITY)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "type %d of a field of component '%s' is no number, bool or entity: name a "
                           "described field, or give offset_bytes and type of the field",
                           (int)field->type, type->name);
    const uint32_t bytes = quern__field_bytes(field->type);
    if (field->offset_bytes > type->size_bytes || type->size_bytes - field->offset_bytes < bytes)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "a field of %u bytes at offset %u is not in component '%s' of %u bytes: give "
                           "the offset of a field in the type",
                           bytes, field->offset_bytes, type->name, (uint32_t)type->size_bytes);
    return QUERN_OK;
}

/* Without branches, since signs are random. */
static inline uint64_t key_of_f32(uint32_t bits)
{
    enum { LEAST = 0x007FFFFF }; /* the key of minus infinity; that of infinity is ~LEAST */
    uint32_t key = bits ^ ((0 - (bits >> 31)) | 0x80000000);
    key += key == 0x7FFFFFFF;                                         /* -0 */
    return key - LEAST > ~(uint32_t)LEAST - LEAST ? UINT32_MAX : key; /* NaN */
}

static inline uint64_t key_of_f64(uint64_t bits)
{
    const uint64_t sign = UINT64_C(1) << 63;
    if ((bits & ~sign) > UINT64_C(0x7FF0000000000000)) return UINT64_MAX;
    if (bits == sign) bits = 0;
    return bits >> 63 != 0 ? ~bits : bits | sign;
}

/* Sign bits are inverted, so that negative numbers come first. */
static inline uint64_t key_of(quern_field_type type, uint64_t bits)
{
    switch (type) {
    case QUERN_FIELD_I8:
    case QUERN_FIELD_I16:
    case QUERN_FIELD_I32:
        return (uint32_t)bits ^ 0x80000000;
    case QUERN_FIELD_I64:
        return bits ^ UINT64_C(1) << 63;
    case QUERN_FIELD_F32:
        return key_of_f32((uint32_t)bits);
    case QUERN_FIELD_F64:
        return key_of_f64(bits);
    default:
        return bits;
    }
}

#define READ_KEYS(field_type, c_type)                                    \
    case field_type:                                                     \
        for (uint32_t i = 0; i < count; i++, first += stride_bytes) {    \
            c_type value;                                                \
            memcpy(&value, first, sizeof value);                         \
            items[i].key = key_of(field_type, (uint64_t)(int64_t)value); \
        }                                                                \
        break

void quern__keys_read(const quern__key_field *field, const char *first, uint32_t stride_bytes,
                      uint32_t count, quern__keyed *items)
{
    first += field->offset_bytes;
    switch (field->type) {
        READ_KEYS(QUERN_FIELD_I8, int8_t);
        READ_KEYS(QUERN_FIELD_U8, uint8_t);
        READ_KEYS(QUERN_FIELD_I16, int16_t);
        READ_KEYS(QUERN_FIELD_U16, uint16_t);
        READ_KEYS(QUERN_FIELD_I32, int32_t);
        READ_KEYS(QUERN_FIELD_U32, uint32_t);
        READ_KEYS(QUERN_FIELD_F32, uint32_t); /* the bits */
        READ_KEYS(QUERN_FIELD_I64, int64_t);
        READ_KEYS(QUERN_FIELD_F64, uint64_t);
    default:
        for (uint32_t i = 0; i < count; i++, first += stride_bytes)
            items[i].key = key_of(field->type, quern__field_load(field->type, first));
    }
}

/* ------------------------------------------------------------------------------------------- watches */

static bool has_same_base(const quern__watch *watch, const quern__query *query)
{
    return watch->is_valid && watch->removed_count == query->removed_count;
}

static quern__watched_chunk look_at(const quern__archetype *archetype, uint32_t version_index,
                                    uint32_t chunk)
{
    const uint64_t *versions = quern__versions_of(&archetype->versions, chunk);
    assert(versions != NULL); /* a watch registers a change filter */
    return (quern__watched_chunk){.rows_version = versions[0],
                                  .value_version = versions[version_index],
                                  .row_count = archetype->slots[chunk].row_count};
}

static inline bool is_same(const quern__watched_chunk *a, const quern__watched_chunk *b)
{
    return a->rows_version == b->rows_version && a->value_version == b->value_version &&
           a->row_count == b->row_count;
}

bool quern__watch_is_current(const quern__watch *watch, const quern__query *query)
{
    if (!has_same_base(watch, query) || watch->first_chunks.count != query->matches.count + 1) return false;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__archetype *archetype = query->matches.items[i].archetype;
        const uint32_t first = watch->first_chunks.items[i];
        if (watch->first_chunks.items[i + 1] - first != archetype->chunk_count) return false;
        if (archetype->chunk_count == 0) continue;
        const uint32_t version_index = quern__archetype_version_index(archetype, watch->component_index);
        for (uint32_t chunk = 0; chunk < archetype->chunk_count; chunk++) {
            const quern__watched_chunk now = look_at(archetype, version_index, chunk);
            if (!is_same(&now, &watch->chunks.items[first + chunk])) return false;
        }
    }
    return true;
}

static quern_result reserve(quern__watch *watch, const quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += query->matches.items[i].archetype->chunk_count;
    watch->spare.count = watch->spare_first_chunks.count = 0;
    if (count <= UINT32_MAX && quern__array_reserve(allocator, &watch->spare, (uint32_t)count) &&
        quern__array_reserve(allocator, &watch->spare_first_chunks, query->matches.count + 1))
        return QUERN_OK;
    watch->is_valid = false;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to watch %llu chunks",
                       (unsigned long long)count);
}

#define SWAP(a, b)                      \
    do {                                \
        unsigned char bytes[sizeof(a)]; \
        memcpy(bytes, &(a), sizeof(a)); \
        memcpy(&(a), &(b), sizeof(a));  \
        memcpy(&(b), bytes, sizeof(a)); \
    } while (0)

quern_result quern__watch_update(quern__watch *watch, quern__query *query, bool is_outside)
{
    const quern_result result = reserve(watch, query);
    if (result != QUERN_OK) return result;
    const bool is_fresh = !has_same_base(watch, query);
    watch->all_rows = watch->new_rows = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__archetype *archetype = query->matches.items[i].archetype;
        const bool is_known = !is_fresh && i + 1 < watch->first_chunks.count;
        const uint32_t first = is_known ? watch->first_chunks.items[i] : 0;
        const uint32_t known_count = is_known ? watch->first_chunks.items[i + 1] - first : 0;
        watch->spare_first_chunks.items[i] = watch->spare.count;
        if (archetype->chunk_count == 0) continue;
        const uint32_t version_index = quern__archetype_version_index(archetype, watch->component_index);
        for (uint32_t chunk = 0; chunk < archetype->chunk_count; chunk++) {
            quern__watched_chunk now = look_at(archetype, version_index, chunk);
            now.is_new = chunk >= known_count || !is_same(&now, &watch->chunks.items[first + chunk]);
            watch->all_rows += now.row_count;
            if (now.is_new) watch->new_rows += now.row_count;
            watch->spare.items[watch->spare.count++] = now;
        }
    }
    watch->spare_first_chunks.items[query->matches.count] = watch->spare.count;
    watch->spare_first_chunks.count = query->matches.count + 1;
    SWAP(watch->spare, watch->chunks);
    SWAP(watch->spare_first_chunks, watch->first_chunks);
    watch->removed_count = query->removed_count;
    watch->is_fresh = is_fresh;
    watch->is_valid = false;
    if (is_outside) query->storage->clock++;
    return QUERN_OK;
}

void quern__watch_release(quern__watch *watch, const quern_allocator *allocator)
{
    quern__array_release(allocator, &watch->chunks);
    quern__array_release(allocator, &watch->spare);
    quern__array_release(allocator, &watch->first_chunks);
    quern__array_release(allocator, &watch->spare_first_chunks);
}
