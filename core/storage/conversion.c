/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/conversion.h"

/* ----------------------------------------------------------------------------------------- layouts */

static bool is_number(quern_field_type type)
{
    return type <= QUERN_FIELD_F64;
}

static const quern_field *find_field(const quern__type *type, const char *name, uint32_t *out_index)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        if (strcmp(type->fields[i].name, name) != 0) continue;
        *out_index = i;
        return &type->fields[i];
    }
    return NULL;
}

/* Returns the name of a field of the source in the target. */
static const char *target_name(const quern__conversion *conversion, const char *name)
{
    const quern_field_rename *rename = conversion->renames;
    for (uint32_t i = 0; rename != NULL && i < QUERN_MAX_FIELDS && rename[i].from != NULL; i++)
        if (strcmp(rename[i].from, name) == 0) return rename[i].to;
    return name;
}

static quern_result add_pair(quern__conversion *conversion, uint32_t source)
{
    const quern_field *from = &conversion->source->fields[source];
    uint32_t target;
    const quern_field *to = find_field(conversion->target, target_name(conversion, from->name), &target);
    if (to == NULL) {
        conversion->dropped_field_count++;
        return QUERN_OK;
    }
    if (from->type != to->type && !(is_number(from->type) && is_number(to->type)))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "field '%s' of '%s' had another kind %s: entities and text cannot be converted "
                           "to or from other kinds; use a migration",
                           from->name, conversion->source->name, conversion->words->before);
    conversion->may_fail |= from->type != to->type;
    conversion->pairs[conversion->pair_count++] = (quern__field_pair){source, target};
    return QUERN_OK;
}

quern_result quern__conversion_init(quern__conversion *conversion, const quern__type *source,
                                    const quern__type *target, const quern__conversion_words *words,
                                    const quern_field_rename *renames)
{
    *conversion =
        (quern__conversion){.source = source, .target = target, .words = words, .renames = renames};
    const bool renames_some = renames != NULL && renames[0].from != NULL;
    if (!renames_some && source->size_bytes == target->size_bytes &&
        source->field_count == target->field_count &&
        quern__type_different_field(target, source->fields) == target->field_count)
        return QUERN_OK;
    quern_result result = QUERN_OK;
    if (source->field_count == 0 || target->field_count == 0) {
        /* Checks that values can be copied as bytes if one side has no described fields: both sizes are
         * equal, and the source describes its handles if the target does. Errors: LAYOUT_MISMATCH. */
        if (source->size_bytes != target->size_bytes)
            return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                               "'%s' had %u bytes %s, but has %u bytes %s, and one side has no described "
                               "fields to convert: "
                               "describe its fields, or use a migration",
                               source->name, source->size_bytes, words->before, target->size_bytes,
                               words->now);
        if (source->field_count > 0 || !target->has_entity_fields) return QUERN_OK;
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "'%s' had no described fields %s, but has an entity field %s, so its handles "
                           "are unknown: use a "
                           "migration",
                           source->name, words->before, words->now);
    }
    conversion->kind = QUERN__CONVERT_FIELDS;
    for (uint32_t i = 0; i < source->field_count && result == QUERN_OK; i++)
        result = add_pair(conversion, i);
    return result;
}

/* ----------------------------------------------------------------------------------------- values */

/* Converts the elements that both fields have. Returns false if a number does not fit. */
static bool convert_field(const quern_field *from, const quern_field *to, const char *source, char *target)
{
    const uint32_t count = from->count < to->count ? from->count : to->count;
    const uint32_t step = quern__field_bytes(from->type);
    source += from->offset_bytes;
    target += to->offset_bytes;
    if (from->type == QUERN_FIELD_TEXT) {
        /* Copies text. Omits a UTF-8 character that the end of the target would divide, and fills the
         * rest with zeros. */
        uint32_t bytes = from->count < to->count ? from->count : to->count;
        if (bytes < from->count && memchr(source, '\0', bytes) == NULL)
            while (bytes > 0 && ((unsigned char)source[bytes] & 0xC0) == 0x80)
                bytes--;
        memcpy(target, source, bytes);
        memset(target + bytes, 0, to->count - bytes);
        return true;
    }
    if (from->type == to->type) {
        memcpy(target, source, (size_t)step * count);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = quern__field_load(from->type, source + (size_t)i * step);
        if (!quern__field_convert(from->type, bits, to->type, &bits)) return false;
        quern__field_store(to->type, target + (size_t)i * quern__field_bytes(to->type), bits);
    }
    return true;
}

quern_result quern__conversion_check(const quern__conversion *conversion, const char *sources,
                                     uint32_t count)
{
    for (uint32_t p = 0; p < conversion->pair_count && conversion->may_fail; p++) {
        const quern_field *from = &conversion->source->fields[conversion->pairs[p].source];
        const quern_field *to = &conversion->target->fields[conversion->pairs[p].target];
        const uint32_t elements = from->count < to->count ? from->count : to->count;
        if (from->type == to->type) continue;
        for (uint32_t i = 0; i < count * elements; i++) {
            const char *at = sources + (size_t)(i / elements) * conversion->source->size_bytes +
                             from->offset_bytes + (size_t)(i % elements) * quern__field_bytes(from->type);
            const uint64_t bits = quern__field_load(from->type, at);
            uint64_t converted;
            if (quern__field_convert(from->type, bits, to->type, &converted)) continue;
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "field '%s' of '%s': the %s value %.17g does not fit the field's type %s; use a "
                "migration",
                from->name, conversion->source->name, conversion->words->value,
                quern__field_real(from->type, bits), conversion->words->now);
        }
    }
    return QUERN_OK;
}

void quern__convert_fields(const quern__conversion *conversion, char *target, const char *source)
{
    if (conversion->kind == QUERN__CONVERT_BYTES) {
        /* uses the fields of the source, because the target may have none; both have the same size */
        quern__copy_fields(conversion->source, target, source);
        return;
    }
    for (uint32_t p = 0; p < conversion->pair_count; p++)
        convert_field(&conversion->source->fields[conversion->pairs[p].source],
                      &conversion->target->fields[conversion->pairs[p].target], source, target);
}

void quern__convert(const quern__conversion *conversion, char *targets, const char *sources, uint32_t count)
{
    const size_t source_bytes = conversion->source->size_bytes;
    const size_t target_bytes = conversion->target->size_bytes;
    if (conversion->kind == QUERN__CONVERT_BYTES) {
        memcpy(targets, sources, target_bytes * count);
        return;
    }
    quern__type_construct(conversion->target, targets, count);
    for (uint32_t i = 0; i < count; i++)
        quern__convert_fields(conversion, targets + i * target_bytes, sources + i * source_bytes);
}

/* Remaps the handles that the target got from the source. */
static void remap_pair(const quern__conversion *conversion, const quern__field_pair *pair, char *target,
                       quern__remap_function *remap, void *argument)
{
    const quern_field *from = &conversion->source->fields[pair->source];
    const quern_field *to = &conversion->target->fields[pair->target];
    const uint32_t count = from->count < to->count ? from->count : to->count;
    for (uint32_t i = 0; i < count && to->type == QUERN_FIELD_ENTITY; i++) {
        char *at = target + to->offset_bytes + i * sizeof(quern_entity);
        quern_entity entity;
        memcpy(&entity, at, sizeof entity);
        entity = remap(argument, entity);
        memcpy(at, &entity, sizeof entity);
    }
}

void quern__conversion_remap(const quern__conversion *conversion, char *targets, uint32_t count,
                             quern__remap_function *remap, void *argument)
{
    const quern__type *target = conversion->target;
    /* the target has the same bytes, so fields that only the source describes are valid for it */
    const bool is_described_by_source =
        conversion->kind == QUERN__CONVERT_BYTES && target->field_count == 0;
    const quern__type *described = is_described_by_source ? conversion->source : target;
    if (!described->has_entity_fields) return;
    for (uint32_t i = 0; i < count; i++, targets += target->size_bytes) {
        if (conversion->kind != QUERN__CONVERT_FIELDS)
            quern__type_remap(described, targets, remap, argument);
        for (uint32_t p = 0; p < conversion->pair_count; p++)
            remap_pair(conversion, &conversion->pairs[p], targets, remap, argument);
    }
}

void quern__copy_fields(const quern__type *type, char *target, const char *source)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        memcpy(target + field->offset_bytes, source + field->offset_bytes,
               (size_t)quern__field_bytes(field->type) * field->count);
    }
}

/* ------------------------------------------------------------------------------------ redefined types */

/* Returns the number of bytes of a text before its end. */
static uint32_t text_bytes(const char *text, uint32_t capacity)
{
    const char *end = memchr(text, '\0', capacity);
    return end != NULL ? (uint32_t)(end - text) : capacity;
}

quern_result quern__type_change_check(quern__type_change *change, const void *values, uint32_t count)
{
    const quern__conversion *conversion = &change->conversion;
    change->value_count += count;
    if (conversion->kind != QUERN__CONVERT_FIELDS) return QUERN_OK;
    for (uint32_t p = 0; p < conversion->pair_count; p++) {
        const quern_field *from = &conversion->source->fields[conversion->pairs[p].source];
        const quern_field *to = &conversion->target->fields[conversion->pairs[p].target];
        if (from->type != QUERN_FIELD_TEXT || to->count >= from->count) continue;
        for (uint32_t i = 0; i < count; i++)
            change->shortened_count +=
                text_bytes((const char *)values + (size_t)i * conversion->source->size_bytes +
                               from->offset_bytes,
                           from->count) > to->count;
    }
    return quern__conversion_check(conversion, values, count);
}

void quern__type_change_values(const quern__type_change *change, void *targets, void *sources,
                               uint32_t count)
{
    if (change->conversion.kind == QUERN__CONVERT_BYTES) {
        quern__type_move(&change->old, targets, sources, count); /* values may point into themselves */
        return;
    }
    if (change->conversion.kind == QUERN__CONVERT_FIELDS) {
        quern__convert(&change->conversion, targets, sources, count);
        return;
    }
    change->migrate(change->user_data, targets, sources, count);
    quern__type_destroy(&change->old, sources, count);
}
