/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/conversion.h"

#include "core/storage/list_values.h"

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

/* Returns the name of a field of the source in the target. */
static const char *target_name(const quern__conversion *conversion, const char *name)
{
    const quern_field_rename *rename = conversion->renames;
    for (uint32_t i = 0; rename != NULL && i < QUERN_MAX_FIELDS && rename[i].from != NULL; i++)
        if (strcmp(rename[i].from, name) == 0) return rename[i].to;
    return name;
}

/* Returns a type that stands for the structs in a list. Its fields belong to the field. */
static quern__type element_type(const quern_field *field)
{
    quern__type type = {.size_bytes = field->element->size_bytes,
                        .fields = (quern_field *)(uintptr_t)field->element->fields,
                        .field_count = field->element->field_count};
    memcpy(type.name, field->name, strlen(field->name) + 1);
    return type;
}

/* Checks that lists with other elements can be converted. Numbers become numbers, and structs become structs. */
static quern_result check_elements(quern__conversion *conversion, const quern_field *from,
                                   const quern_field *to)
{
    const quern_field_type a = from->element->type, b = to->element->type;
    conversion->changes_elements = true;
    if (a == 0 && b == 0) {
        const quern__type x = element_type(from), y = element_type(to);
        quern__conversion elements;
        const quern_result result = quern__conversion_init(&elements, &x, &y, conversion->words, NULL);
        conversion->dropped_field_count += elements.dropped_field_count;
        return result;
    }
    if (is_number(a) && is_number(b)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "the list '%s' of '%s' had elements of another kind %s: only numbers become numbers, "
        "and structs become structs; use a migration",
        from->name, conversion->source->name, conversion->words->before);
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
                           "field '%s' of '%s' had another kind %s: entities, text, strings and lists "
                           "cannot be converted to or from other kinds; use a migration",
                           from->name, conversion->source->name, conversion->words->before);
    if (from->type == QUERN_FIELD_LIST && !quern__field_same_elements(from, to)) {
        const quern_result result = check_elements(conversion, from, to);
        if (result != QUERN_OK) return result;
    }
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
        if (source->lists != NULL || target->lists != NULL)
            return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                               "'%s' has lists or strings that were not described %s, or are not %s: "
                               "describe its fields, or use a migration",
                               source->name, words->before, words->now);
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

/* Moves a list, of which the source is left empty. */
static void move_list(char *target, const char *source)
{
    char *writable = (char *)(uintptr_t)source; /* see conversion.h */
    quern_list list;
    memcpy(&list, target, sizeof list);
    quern_list_free(&list);
    memcpy(target, source, sizeof list);
    memset(writable, 0, sizeof list);
}

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
    if (quern__field_is_list(from->type)) {
        for (uint32_t i = 0; i < count; i++)
            move_list(target + i * sizeof(quern_list), source + i * sizeof(quern_list));
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
        for (uint32_t i = 0; conversion->source->lists != NULL && i < conversion->source->lists->count; i++)
            move_list(target + conversion->source->lists->offsets[i],
                      source + conversion->source->lists->offsets[i]);
        return;
    }
    for (uint32_t p = 0; p < conversion->pair_count; p++)
        convert_field(&conversion->source->fields[conversion->pairs[p].source],
                      &conversion->target->fields[conversion->pairs[p].target], source, target);
}

/* Copies as many bytes from each value to another one, for the usual sizes by single loads and stores. */
static void copy_from_each(char *target, size_t target_bytes, const char *source, size_t source_bytes,
                           size_t bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, target += target_bytes, source += source_bytes) {
        if (bytes == 4)
            memcpy(target, source, 4);
        else if (bytes == 8)
            memcpy(target, source, 8);
        else
            memcpy(target, source, bytes);
    }
}

/* Converts a pair of fields in all values. */
static void convert_pair(const quern__conversion *conversion, const quern__field_pair *pair, char *targets,
                         const char *sources, uint32_t count)
{
    const size_t source_bytes = conversion->source->size_bytes;
    const size_t target_bytes = conversion->target->size_bytes;
    const quern_field *from = &conversion->source->fields[pair->source];
    const quern_field *to = &conversion->target->fields[pair->target];
    if (from->type == to->type && from->type != QUERN_FIELD_TEXT && !quern__field_is_list(from->type)) {
        const uint32_t elements = from->count < to->count ? from->count : to->count;
        copy_from_each(targets + to->offset_bytes, target_bytes, sources + from->offset_bytes, source_bytes,
                       (size_t)elements * quern__field_bytes(from->type), count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        convert_field(from, to, sources + i * source_bytes, targets + i * target_bytes);
}

void quern__convert(const quern__conversion *conversion, char *targets, const char *sources, uint32_t count)
{
    const size_t source_bytes = conversion->source->size_bytes;
    const size_t target_bytes = conversion->target->size_bytes;
    /* what own hooks construct beside the described fields is no business of the source */
    const bool has_own =
        conversion->target->lists != NULL && conversion->target->hooks.copy != quern__lists_copy;
    if (conversion->kind == QUERN__CONVERT_BYTES && !has_own) {
        memcpy(targets, sources, target_bytes * count);
        for (uint32_t i = 0; i < count && conversion->source->lists != NULL; i++)
            quern__type_clear_lists(conversion->source, (char *)(uintptr_t)sources + i * source_bytes);
        return;
    }
    quern__type_construct(conversion->target, targets, count);
    if (conversion->kind == QUERN__CONVERT_BYTES) {
        for (uint32_t i = 0; i < count; i++)
            quern__convert_fields(conversion, targets + i * target_bytes, sources + i * source_bytes);
        return;
    }
    for (uint32_t p = 0; p < conversion->pair_count; p++)
        convert_pair(conversion, &conversion->pairs[p], targets, sources, count);
}

void quern__conversion_visit_lists(const quern__conversion *conversion, const quern__field_pair *pair,
                                   char *target, quern__remap_function *remap, void *argument)
{
    const quern_field *from = &conversion->source->fields[pair->source];
    quern_field both = conversion->target->fields[pair->target];
    if (from->count < both.count) both.count = from->count;
    quern__field_visit_lists(&both, target + both.offset_bytes, true, remap, argument);
}

/* Remaps the handles that the target got from the source. */
static void remap_pair(const quern__conversion *conversion, const quern__field_pair *pair, char *target,
                       quern__remap_function *remap, void *argument)
{
    const quern_field *from = &conversion->source->fields[pair->source];
    const quern_field *to = &conversion->target->fields[pair->target];
    const uint32_t count = from->count < to->count ? from->count : to->count;
    if (to->type == QUERN_FIELD_LIST)
        quern__conversion_visit_lists(conversion, pair, target, remap, argument);
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
        if (quern__field_is_list(field->type)) continue;
        memcpy(target + field->offset_bytes, source + field->offset_bytes,
               (size_t)quern__field_bytes(field->type) * field->count);
    }
}

/* ----------------------------------------------------------------------------------------- elements */

/* Converts numbers. Errors: INVALID_ARGUMENT. */
static quern_result convert_numbers(const quern__conversion *conversion, const quern_field *from,
                                    const quern_field *to, const quern_list *list, char *items)
{
    const quern_field_type a = from->element->type, b = to->element->type;
    for (uint32_t i = 0; i < list->count; i++) {
        uint64_t bits = quern__field_load(a, (const char *)list->items + (size_t)i * quern__field_bytes(a));
        if (!quern__field_convert(a, bits, b, &bits))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "element %u of the list '%s' of '%s' does not fit the type that the list has "
                "%s; use a migration",
                i, from->name, conversion->source->name, conversion->words->now);
        quern__field_store(b, items + (size_t)i * quern__field_bytes(b), bits);
    }
    return QUERN_OK;
}

static quern_result convert_list(const quern__conversion *conversion, const quern_field *from,
                                 const quern_field *to, quern_list *list)
{
    quern_list converted = {.count = 0};
    quern_result result = QUERN_OK;
    if (list->count == 0) return QUERN_OK;
    if (!quern__list_allocate(&converted, quern__field_element(to), list->count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory for the %u elements of list '%s' of '%s'; nothing was changed",
                           list->count, from->name, conversion->source->name);
    char *items = (char *)(uintptr_t)converted.items;
    if (from->element->type != 0) {
        result = convert_numbers(conversion, from, to, list, items);
    } else {
        const quern__type x = element_type(from), y = element_type(to);
        quern__conversion elements;
        result = quern__conversion_init(&elements, &x, &y, conversion->words, NULL);
        if (result == QUERN_OK) result = quern__conversion_check(&elements, list->items, list->count);
        memset(items, 0, (size_t)list->count * y.size_bytes);
        for (uint32_t i = 0; i < list->count && result == QUERN_OK; i++)
            quern__convert_fields(&elements, items + (size_t)i * y.size_bytes,
                                  (const char *)list->items + (size_t)i * x.size_bytes);
    }
    quern_list_free(result == QUERN_OK ? list : &converted);
    if (result == QUERN_OK) *list = converted;
    return result;
}

quern_result quern__conversion_convert_lists(const quern__conversion *conversion, char *source)
{
    quern_result result = QUERN_OK;
    for (uint32_t p = 0; p < conversion->pair_count && conversion->changes_elements; p++) {
        const quern_field *from = &conversion->source->fields[conversion->pairs[p].source];
        const quern_field *to = &conversion->target->fields[conversion->pairs[p].target];
        if (from->type != QUERN_FIELD_LIST || quern__field_same_elements(from, to)) continue;
        for (uint32_t k = 0; k < from->count && result == QUERN_OK; k++) {
            char *at = source + from->offset_bytes + k * sizeof(quern_list);
            quern_list list;
            memcpy(&list, at, sizeof list);
            result = convert_list(conversion, from, to, &list);
            memcpy(at, &list, sizeof list);
        }
    }
    return result;
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
        for (uint32_t i = 0; i < count && change->old.lists != NULL; i++)
            quern__type_free_lists(&change->old, (char *)sources + (size_t)i * change->old.size_bytes);
        return;
    }
    change->migrate(change->user_data, targets, sources, count);
    quern__type_destroy(&change->old, sources, count);
}
