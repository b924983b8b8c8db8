/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The types of the random program and their definitions. A form says which words of a type its values have, and where; the
 * words that a form lacks are 0. Everything else knows words alone. */

#include "tests/flow/every_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const every_type every_types[EVERY_TYPES] = {
    [EVERY_ID] = {.name = "id", .word_count = 1},
    [EVERY_NUMBER] = {.name = "number", .first_word = 1, .word_count = 3},
    [EVERY_LINK] = {.name = "link", .first_word = 4, .word_count = 3},
    [EVERY_HOOKED] = {.name = "hooked", .first_word = 7, .word_count = 1},
    [EVERY_TAG] = {.name = "tag"},
    [EVERY_FLAG] = {.name = "flag", .can_disable = true},
    [EVERY_MODE] =
        {.name = "mode", .first_word = 8, .word_count = 2, .can_disable = true, .row_changes = true},
    [EVERY_NEED] = {.name = "need",
                    .first_word = 10,
                    .word_count = 2,
                    .required = BIT(EVERY_NUMBER) | BIT(EVERY_TAG)},
    [EVERY_DEEP] = {.name = "deep",
                    .first_word = 12,
                    .word_count = 2,
                    .required = BIT(EVERY_NEED) | BIT(EVERY_MODE)},
    [EVERY_GIVEN] = {.name = "given", .first_word = 14, .word_count = 3},
    [EVERY_WIDE] = {.name = "wide", .first_word = 17, .word_count = 8},
    [EVERY_ROWS] = {.name = "rows", .first_word = 25, .word_count = 3, .row_changes = true},
    [EVERY_LIST] = {.name = "list", .first_word = 28, .word_count = 2},
    [EVERY_OFF] = {.name = "disabled"},
};

every_form every_forms[EVERY_TYPES];
tracked_counts every_hook_counts[2]; /* of definitions with an even and an odd version */

/* --------------------------------------------------------------------------------------------- words */

static uint32_t number_bytes(quern_field_type type)
{
    switch (type) {
    case QUERN_FIELD_U8:
        return 1;
    case QUERN_FIELD_U16:
        return 2;
    case QUERN_FIELD_U32:
    case QUERN_FIELD_I32:
        return 4;
    case QUERN_FIELD_LIST:
    case QUERN_FIELD_STRING:
        return sizeof(quern_list);
    default:
        return 8;
    }
}

static bool is_number(const every_field *field)
{
    return field->type < QUERN_FIELD_ENTITY;
}

static void store_word(quern_field_type type, void *to, uint64_t word)
{
    const uint8_t u8 = (uint8_t)word;
    const uint16_t u16 = (uint16_t)word;
    const uint32_t u32 = (uint32_t)word;
    const double real = (double)word;
    switch (number_bytes(type)) {
    case 1:
        memcpy(to, &u8, sizeof u8);
        break;
    case 2:
        memcpy(to, &u16, sizeof u16);
        break;
    case 4:
        memcpy(to, &u32, sizeof u32);
        break;
    default:
        memcpy(to, type == QUERN_FIELD_F64 ? (const void *)&real : &word, sizeof word);
        break;
    }
}

static uint64_t load_word(quern_field_type type, const void *from)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t word;
    double real;
    switch (number_bytes(type)) {
    case 1:
        memcpy(&u8, from, sizeof u8);
        return u8;
    case 2:
        memcpy(&u16, from, sizeof u16);
        return u16;
    case 4:
        memcpy(&u32, from, sizeof u32);
        return u32;
    default:
        memcpy(&real, from, sizeof real);
        memcpy(&word, from, sizeof word);
        return type == QUERN_FIELD_F64 ? (uint64_t)real : word;
    }
}

static const every_field *find_field(const every_form *form, uint32_t word)
{
    for (uint32_t f = 0; f < form->field_count; f++)
        if (word >= form->fields[f].word && word < form->fields[f].word + form->fields[f].count)
            return &form->fields[f];
    return NULL;
}

bool every_form_has(const every_form *form, uint32_t word)
{
    return find_field(form, word) != NULL;
}

uint64_t every_fit(const every_form *form, uint32_t word, uint64_t value)
{
    const every_field *field = find_field(form, word);
    uint64_t room = 0;
    if (field == NULL) return 0;
    if (!is_number(field)) return value;
    store_word(field->type, &room, value);
    return load_word(field->type, &room);
}

uint32_t every_value_bytes(uint32_t type)
{
    return every_forms[type].size_bytes;
}

/* --------------------------------------------------------------------------------------------- lists */

static uint32_t list_count(uint64_t word)
{
    return word != 0 ? 1 + (uint32_t)word % 5 : 0;
}

/* An element of the list that follows from a word. */
static uint64_t list_number(uint64_t word, uint32_t i)
{
    return every_mix(word + i) % 60000;
}

static void write_numbers(quern_list *list, quern_field_type type, uint64_t word)
{
    const uint32_t bytes = number_bytes(type), count = list_count(word);
    uint64_t room = 0;
    if (list->count > count) must(quern_list_remove(list, bytes, 0, list->count - count));
    char *numbers = quern_list_write(list, bytes);
    for (uint32_t i = 0; i < list->count; i++)
        store_word(type, numbers + (size_t)i * bytes, list_number(word, i));
    while (list->count < count) {
        store_word(type, &room, list_number(word, list->count));
        must(quern_list_push(list, bytes, &room));
    }
}

static void check_numbers(const quern_list *list, quern_field_type type, uint64_t word)
{
    cr_assert_eq(list->count, list_count(word));
    for (uint32_t i = 0; i < list->count; i++)
        cr_assert_eq(load_word(type, (const char *)list->items + (size_t)i * number_bytes(type)),
                     list_number(word, i));
}

static void write_text(quern_string *text, uint64_t word)
{
    must(word != 0 ? quern_string_print(text, "%llu", (unsigned long long)word)
                   : quern_string_set(text, ""));
}

static uint64_t read_text(const quern_string *text)
{
    const char *digits = quern_string_text(text);
    return digits[0] != '\0' ? strtoull(digits, NULL, 10) : 0;
}

void every_list_write(every_list *value, uint64_t word)
{
    write_numbers(&value->numbers.list, QUERN_FIELD_U64, word);
    write_text(&value->text, word);
}

uint64_t every_list_read(const every_list *value)
{
    const uint64_t word = read_text(&value->text);
    check_numbers(&value->numbers.list, QUERN_FIELD_U64, word);
    return word;
}

/* -------------------------------------------------------------------------------------------- values */

/* Returns the value with hooks inside a value of EVERY_HOOKED. */
tracked *every_hooked(const every_form *form, const void *value)
{
    return (tracked *)((uintptr_t)value + form->fields[0].offset_bytes - offsetof(tracked, payload));
}

void every_form_read(uint32_t type, const every_form *form, const void *value, uint64_t *words)
{
    uint64_t *to = &words[every_types[type].first_word];
    memset(to, 0, every_types[type].word_count * sizeof *to);
    if (type == EVERY_HOOKED) cr_assert(tracked_is_live(every_hooked(form, value)));
    for (uint32_t f = 0; f < form->field_count; f++) {
        const every_field *field = &form->fields[f];
        const char *at = (const char *)value + field->offset_bytes;
        if (field->type == QUERN_FIELD_LIST) continue;
        if (field->type == QUERN_FIELD_STRING)
            to[field->word] = read_text((const quern_string *)(const void *)at);
        for (uint32_t i = 0; i < field->count && field->type != QUERN_FIELD_STRING; i++)
            to[field->word + i] = load_word(field->type, at + (size_t)i * number_bytes(field->type));
    }
    for (uint32_t f = 0; f < form->field_count; f++)
        if (form->fields[f].type == QUERN_FIELD_LIST)
            check_numbers(
                (const quern_list *)(const void *)((const char *)value + form->fields[f].offset_bytes),
                form->element, to[0]);
}

void every_form_write(uint32_t type, const every_form *form, void *value, const uint64_t *words)
{
    const uint64_t *from = &words[every_types[type].first_word];
    for (uint32_t f = 0; f < form->field_count; f++) {
        const every_field *field = &form->fields[f];
        char *at = (char *)value + field->offset_bytes;
        if (field->type == QUERN_FIELD_LIST)
            write_numbers((quern_list *)(void *)at, form->element, from[field->word]);
        else if (field->type == QUERN_FIELD_STRING)
            write_text((quern_string *)(void *)at, from[field->word]);
        else
            for (uint32_t i = 0; i < field->count; i++)
                store_word(field->type, at + (size_t)i * number_bytes(field->type), from[field->word + i]);
    }
}

void every_read(uint32_t type, const void *value, uint64_t *words)
{
    every_form_read(type, &every_forms[type], value, words);
}

void every_write(uint32_t type, void *value, const uint64_t *words)
{
    every_form_write(type, &every_forms[type], value, words);
}

uint32_t every_last_word(uint32_t type)
{
    uint32_t word = every_types[type].word_count - 1;
    while (word > 0 && !every_form_has(&every_forms[type], word))
        word--;
    return every_types[type].first_word + word;
}

const void *every_value_of(uint32_t type, const every_change *change, value_room *room)
{
    uint64_t words[EVERY_WORDS];
    if (every_types[type].word_count == 0) return NULL;
    memset((void *)room, 0, sizeof *room);
    memcpy(words, change->words, sizeof words);
    if (type == EVERY_LINK) words[every_types[type].first_word] = change->target.bits;
    if (type == EVERY_HOOKED)
        tracked_construct(every_hooked(&every_forms[type], room), 0, &every_hook_counts[0]);
    every_write(type, room, words);
    return room;
}

void every_release_value(uint32_t type, value_room *room)
{
    const every_form *form = &every_forms[type];
    if (type == EVERY_HOOKED) tracked_destroy(every_hooked(form, room), &every_hook_counts[0]);
    for (uint32_t f = 0; f < form->field_count && type == EVERY_LIST; f++)
        if (!is_number(&form->fields[f]))
            quern_list_free((quern_list *)(void *)((char *)room + form->fields[f].offset_bytes));
}

/* ------------------------------------------------------------------------------------ values of edges */

uint32_t every_home_form;

static const struct {
    uint32_t size_bytes, offset_bytes;
    quern_field_type type;
} home_forms[EVERY_HOME_FORMS] = {
    {8, 0, QUERN_FIELD_U64}, {16, 12, QUERN_FIELD_U32}, {16, 8, QUERN_FIELD_F64}};

quern_component_def every_home_def(uint32_t form)
{
    return (quern_component_def){.name = "value of home",
                                 .size_bytes = home_forms[form].size_bytes,
                                 .alignment_bytes = 8,
                                 .fields = {{.name = "value",
                                             .type = home_forms[form].type,
                                             .offset_bytes = home_forms[form].offset_bytes}}};
}

void every_home_write(uint64_t value, uint64_t room[2])
{
    memset(room, 0, 2 * sizeof *room);
    store_word(home_forms[every_home_form].type, (char *)room + home_forms[every_home_form].offset_bytes,
               value);
}

uint64_t every_home_read(const void *value)
{
    return load_word(home_forms[every_home_form].type,
                     (const char *)value + home_forms[every_home_form].offset_bytes);
}

/* -------------------------------------------------------------------------------------------- events */

uint32_t every_event_form;

static const struct {
    uint32_t size_bytes, id_bytes, entity_bytes; /* size and offsets */
} event_forms[EVERY_EVENT_FORMS] = {{16, 0, 8}, {24, 16, 0}, {32, 8, 16}};

quern_event_def every_event_def(uint32_t form)
{
    const uint32_t id = event_forms[form].id_bytes, entity = event_forms[form].entity_bytes;
    return (quern_event_def){
        .name = "ping",
        .size_bytes = event_forms[form].size_bytes,
        .alignment_bytes = 8,
        .fields = {{.name = "id", .type = QUERN_FIELD_U64, .offset_bytes = id},
                   {.name = "entity", .type = QUERN_FIELD_ENTITY, .offset_bytes = entity}}};
}

const void *every_ping_write(ping value, uint64_t room[4])
{
    memset(room, 0, 4 * sizeof *room);
    memcpy((char *)room + event_forms[every_event_form].id_bytes, &value.id, sizeof value.id);
    memcpy((char *)room + event_forms[every_event_form].entity_bytes, &value.entity, sizeof value.entity);
    return room;
}

ping every_ping_read(const void *values, uint32_t i)
{
    const char *at = (const char *)values + (size_t)event_forms[every_event_form].size_bytes * i;
    ping value;
    memcpy(&value.id, at + event_forms[every_event_form].id_bytes, sizeof value.id);
    memcpy(&value.entity, at + event_forms[every_event_form].entity_bytes, sizeof value.entity);
    return value;
}

/* --------------------------------------------------------------------------------------------- hooks */

/* Values of EVERY_HOOKED in two layouts, of definitions with an even and an odd version. */
typedef struct hooked_layout {
    uint32_t size_bytes, offset_bytes;
    tracked_counts *counts;
} hooked_layout;

static const hooked_layout hooked_layouts[2][2] = {
    {{sizeof(tracked), 0, &every_hook_counts[0]}, {sizeof(tracked), 0, &every_hook_counts[1]}},
    {{sizeof(tracked) + 16, 8, &every_hook_counts[0]}, {sizeof(tracked) + 16, 8, &every_hook_counts[1]}},
};

static tracked *inner(const hooked_layout *layout, const void *values, uint32_t i)
{
    return (tracked *)((uintptr_t)values + (size_t)i * layout->size_bytes + layout->offset_bytes);
}

static void construct_hooked(void *values, uint32_t count, void *user_data)
{
    const hooked_layout *layout = user_data;
    memset(values, 0, (size_t)count * layout->size_bytes);
    for (uint32_t i = 0; i < count; i++)
        tracked_construct(inner(layout, values, i), TRACKED_DEFAULT, layout->counts);
}

static void copy_hooked(void *targets, const void *sources, uint32_t count, void *user_data)
{
    const hooked_layout *layout = user_data;
    memset(targets, 0, (size_t)count * layout->size_bytes);
    for (uint32_t i = 0; i < count; i++) {
        const tracked *source = inner(layout, sources, i);
        if (!tracked_is_live(source)) layout->counts->broken_count++;
        tracked_construct(inner(layout, targets, i), source->payload, layout->counts);
    }
}

static void destroy_hooked(void *values, uint32_t count, void *user_data)
{
    const hooked_layout *layout = user_data;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy(inner(layout, values, i), layout->counts);
}

static void move_hooked(void *targets, void *sources, uint32_t count, void *user_data)
{
    copy_hooked(targets, sources, count, user_data);
    destroy_hooked(sources, count, user_data);
}

/* --------------------------------------------------------------------------------------- definitions */

/* Memory of a definition, which ends with the call that gets it. */
struct every_definition {
    quern_component_def def;
    char name[16], unit[16], field_names[EVERY_TYPE_WORDS][16];
    _Alignas(16) char default_value[128];
    quern_element element;
};

void every_field_name(char name[16], const every_field *field)
{
    const char *kind = field->type == QUERN_FIELD_LIST     ? "list"
                       : field->type == QUERN_FIELD_STRING ? "text"
                                                           : "word";
    snprintf(name, 16, "%s%u%s", kind, (unsigned)field->word, field->alias > 0 ? "_other" : "");
}

quern_component_def *every_define(uint32_t t, const every_form *form, every_definition **out_room)
{
    const every_type *type = &every_types[t];
    every_definition *room = calloc(1, sizeof *room);
    cr_assert_not_null(room);
    *out_room = room;
    snprintf(room->name, sizeof room->name, "%s", type->name);
    snprintf(room->unit, sizeof room->unit, "version %u", (unsigned)form->version);
    room->element.type = form->element;
    quern_component_def *def = &room->def;
    def->name = room->name;
    def->size_bytes = form->size_bytes;
    def->alignment_bytes = type->word_count > 0 ? 8 : 0;
    def->can_disable = type->can_disable;
    def->row_changes = type->row_changes;
    for (uint32_t f = 0; f < form->field_count; f++) {
        const every_field *field = &form->fields[f];
        every_field_name(room->field_names[f], field);
        def->fields[f] = (quern_field){.name = room->field_names[f],
                                       .type = field->type,
                                       .offset_bytes = field->offset_bytes,
                                       .count = field->count,
                                       .unit = room->unit,
                                       .element = field->type == QUERN_FIELD_LIST ? &room->element : NULL};
    }
    if (form->has_default) {
        uint64_t words[EVERY_WORDS];
        memcpy(&words[type->first_word], form->default_words, type->word_count * sizeof *words);
        every_form_write(t, form, room->default_value, words);
        def->default_value = room->default_value;
    }
    if (t == EVERY_HOOKED)
        def->hooks = (quern_hooks){
            construct_hooked, copy_hooked, move_hooked, destroy_hooked,
            (void *)(uintptr_t)&hooked_layouts[form->size_bytes > sizeof(tracked)][form->version % 2]};
    return def;
}

void every_forget_definition(every_definition *room)
{
    memset((void *)room, 0xA5, sizeof *room);
    free(room);
}

void every_require(uint32_t t, quern_component_def *def, const every_handles *handles)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < t; r++)
        if (every_has(every_types[t].required, r)) def->required[count++] = handles->types[r];
}

/* --------------------------------------------------------------------------------------------- forms */

/* Lays the fields out one after another. */
static void place_fields(uint32_t type, every_form *form, uint32_t first_offset)
{
    uint32_t offset = first_offset;
    if (type == EVERY_HOOKED) offset += offsetof(tracked, payload);
    for (uint32_t f = 0; f < form->field_count; f++) {
        every_field *field = &form->fields[f];
        const uint32_t bytes = number_bytes(field->type), alignment = bytes < 8 ? bytes : 8;
        offset = (offset + alignment - 1) / alignment * alignment;
        field->offset_bytes = offset;
        offset += bytes * field->count;
    }
    form->size_bytes = (offset + first_offset + 7) / 8 * 8;
}

/* The form with which a world begins. */
static void first_form(uint32_t t, every_form *form)
{
    static const uint8_t counts[EVERY_TYPES] = {
        [EVERY_ID] = 1,   [EVERY_NUMBER] = 2, [EVERY_LINK] = 2, [EVERY_HOOKED] = 1,
        [EVERY_MODE] = 1, [EVERY_NEED] = 1,   [EVERY_DEEP] = 1, [EVERY_GIVEN] = 2,
        [EVERY_WIDE] = 8, [EVERY_ROWS] = 2,   [EVERY_LIST] = 1};
    memset(form, 0, sizeof *form);
    for (uint32_t w = 0; w < counts[t] && w < 2; w++)
        form->fields[form->field_count++] =
            (every_field){.word = w,
                          .count = w == 0 ? 1 : counts[t] - 1,
                          .type = t == EVERY_NUMBER           ? QUERN_FIELD_I64
                                  : t == EVERY_LINK && w == 0 ? QUERN_FIELD_ENTITY
                                  : t == EVERY_LIST           ? QUERN_FIELD_LIST
                                                              : QUERN_FIELD_U64};
    if (t == EVERY_LIST) {
        form->fields[form->field_count++] = (every_field){.count = 1, .type = QUERN_FIELD_STRING};
        form->element = QUERN_FIELD_U64;
    }
    place_fields(t, form, 0);
    form->has_default = t == EVERY_GIVEN;
    if (t == EVERY_GIVEN) form->default_words[0] = 41, form->default_words[1] = 42;
}

void every_forms_open(void)
{
    every_event_form = every_home_form = 0;
    every_resources_first_forms();
    for (uint32_t t = 0; t < EVERY_TYPES; t++)
        first_form(t, &every_forms[t]);
}

/* Sums of numbers need 32 bits. The first word of numbers has an index, which knows no reals. */
static quern_field_type draw_number(uint32_t type, uint32_t word, random_source *random)
{
    static const quern_field_type types[] = {QUERN_FIELD_I64, QUERN_FIELD_U64, QUERN_FIELD_U32,
                                             QUERN_FIELD_I32, QUERN_FIELD_F64, QUERN_FIELD_U16,
                                             QUERN_FIELD_U16, QUERN_FIELD_U8};
    return types[random_below(random, type != EVERY_NUMBER ? COUNT_OF(types) : word == 0 ? 4 : 5)];
}

/* Draws fields for the words after the first one. */
static void draw_fields(uint32_t t, every_form *form, random_source *random)
{
    for (uint32_t w = 1; w < every_types[t].word_count; w++) {
        if (random_chance(random, 25)) continue;
        every_field *field = &form->fields[form->field_count++];
        *field = (every_field){
            .word = w, .count = 1, .alias = random_chance(random, 30), .type = draw_number(t, w, random)};
        while (w + 1 < every_types[t].word_count && field->count < 4 && random_chance(random, 60))
            field->count++, w++;
    }
}

void every_form_draw(uint32_t t, every_form *form, random_source *random)
{
    first_form(t, form);
    const bool keeps_layout = t == EVERY_ID || every_types[t].word_count == 0 || random_chance(random, 15);
    if (!keeps_layout && t != EVERY_HOOKED) {
        form->field_count = t == EVERY_LIST ? 2 : 1;
        if (t != EVERY_LINK && t != EVERY_LIST) form->fields[0].type = draw_number(t, 0, random);
        if (t == EVERY_LIST && random_chance(random, 40)) {
            static const quern_field_type elements[] = {QUERN_FIELD_U16, QUERN_FIELD_U32, QUERN_FIELD_F64};
            form->element = elements[random_below(random, 3)];
        }
        draw_fields(t, form, random);
        for (uint32_t f = form->field_count; f-- > 1;) {
            const uint32_t other = random_below(random, f + 1);
            const every_field moved = form->fields[f];
            form->fields[f] = form->fields[other];
            form->fields[other] = moved;
        }
    }
    if (t == EVERY_NUMBER && random_chance(random, 70)) { /* only numbers without gaps can be accumulated */
        for (uint32_t f = 0; f < form->field_count; f++)
            if (number_bytes(form->fields[f].type) < 8) form->fields[f].type = QUERN_FIELD_I64;
        place_fields(t, form, 0);
    } else if (!keeps_layout) {
        place_fields(t, form, random_chance(random, 30) ? 8 : 0);
    }
}

void every_form_draw_default(uint32_t t, every_form *form, random_source *random)
{
    form->has_default = every_types[t].word_count > 0 && t != EVERY_ID && t != EVERY_LINK &&
                        t != EVERY_LIST && t != EVERY_HOOKED &&
                        random_chance(random, t == EVERY_GIVEN ? 80 : 30);
    for (uint32_t w = 0; w < EVERY_TYPE_WORDS; w++)
        form->default_words[w] = form->has_default ? every_fit(form, w, 1 + random_below(random, 200)) : 0;
}
