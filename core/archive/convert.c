/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/convert.h"

#include "core/storage/field.h"

/* ----------------------------------------------------------------------------------------- layouts */

static bool is_number(quern_field_type type)
{
    return type >= QUERN_FIELD_BOOL && type <= QUERN_FIELD_F64;
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

static quern_result add_pair(quern__conversion *conversion, uint32_t source)
{
    const quern_field *from = &conversion->source->fields[source];
    uint32_t target;
    const quern_field *to = find_field(conversion->target, from->name, &target);
    if (to == NULL) {
        conversion->dropped_field_count++;
        return QUERN_OK;
    }
    if (from->type != to->type && !(is_number(from->type) && is_number(to->type)))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "field '%s' of '%s' had another kind when it was saved: entities and text "
                           "cannot be converted to or from other kinds; use a migration",
                           from->name, conversion->source->name);
    conversion->may_fail |= from->type != to->type;
    conversion->pairs[conversion->pair_count++] = (quern__field_pair){source, target};
    return QUERN_OK;
}

/* Checks that values can be copied as bytes if one side has no described fields: both sizes are equal,
 * and the source describes its handles if the target does. Errors: LAYOUT_MISMATCH. */
static quern_result check_bytes(const quern__type *source, const quern__type *target)
{
    if (source->size_bytes != target->size_bytes)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "'%s' had %u bytes when it was saved, but has %u bytes in this world, and one side has no "
            "described fields to convert: describe its fields, or use a migration",
            source->name, source->size_bytes, target->size_bytes);
    if (source->field_count > 0 || !target->has_entity_fields) return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "'%s' had no described fields when it was saved, but has an entity field in this "
                       "world, so the saved handles are unknown: use a migration",
                       source->name);
}

quern_result quern__conversion_init(quern__conversion *conversion, const quern__type *source,
                                    const quern__type *target)
{
    *conversion = (quern__conversion){.source = source, .target = target};
    if (source->size_bytes == target->size_bytes && source->field_count == target->field_count &&
        quern__type_different_field(target, source->fields) == target->field_count)
        return QUERN_OK;
    quern_result result = QUERN_OK;
    if (source->field_count == 0 || target->field_count == 0) return check_bytes(source, target);
    conversion->kind = QUERN__CONVERT_FIELDS;
    for (uint32_t i = 0; i < source->field_count && result == QUERN_OK; i++)
        result = add_pair(conversion, i);
    return result;
}

/* ----------------------------------------------------------------------------------------- values */

/* Copies text. Omits a UTF-8 character that the end of the target would divide, and fills the rest with
 * zeros. */
static void convert_text(const quern_field *from, const quern_field *to, const char *source, char *target)
{
    uint32_t bytes = from->count < to->count ? from->count : to->count;
    if (bytes < from->count && memchr(source, '\0', bytes) == NULL)
        while (bytes > 0 && ((unsigned char)source[bytes] & 0xC0) == 0x80)
            bytes--;
    memcpy(target, source, bytes);
    memset(target + bytes, 0, to->count - bytes);
}

/* Converts the elements that both fields have. Returns false if a number does not fit. */
static bool convert_field(const quern_field *from, const quern_field *to, const char *source, char *target)
{
    const uint32_t count = from->count < to->count ? from->count : to->count;
    const uint32_t step = quern__field_bytes(from->type);
    source += from->offset_bytes;
    target += to->offset_bytes;
    if (from->type == QUERN_FIELD_TEXT) {
        convert_text(from, to, source, target);
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
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "field '%s' of '%s': the saved value %.17g does not fit the field's type in "
                               "this world; use a migration",
                               from->name, conversion->source->name, quern__field_real(from->type, bits));
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
