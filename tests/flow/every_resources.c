/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Resources of the random program, and what the model knows of them: their values, and which of them each system with
 * if_changed has seen. Parallel systems read them; systems write them in `end`, serial and exclusive ones in `run`, the
 * program between frames. */

#include "tests/flow/every.h"
#include "tests/support/fixture.h"

#include <quern/redefine.h>

#include <stdio.h>
#include <string.h>

enum { SCORE, CHOSEN, TEXTS, FORMS = 3 };

/* How the values of a resource are laid out: sizes and offsets. A field that is not described neither counts as a change
 * nor is carried anywhere. */
typedef struct resource_form {
    uint32_t size_bytes, value_bytes, entity_bytes, numbers_bytes, text_bytes;
    quern_field_type type; /* of the value */
} resource_form;

static const resource_form forms[EVERY_RESOURCES][FORMS] = {
    [SCORE] = {{16, .type = QUERN_FIELD_U64},
               {16, 12, .type = QUERN_FIELD_U32},
               {24, 8, .type = QUERN_FIELD_U64}},
    [CHOSEN] = {{16, 8, .type = QUERN_FIELD_U64},
                {16, 0, 8, .type = QUERN_FIELD_U16},
                {32, 0, 16, .type = QUERN_FIELD_U32}},
    [TEXTS] = {
        {32, .text_bytes = 16}, {32, .numbers_bytes = 16}, {40, .numbers_bytes = 8, .text_bytes = 24}}};

static uint32_t form_of[EVERY_RESOURCES];

/* The least value that is written. It rises with each new layout: whether a system with if_changed takes an equal value in
 * another layout for a changed one is not said. */
static uint64_t least_of[EVERY_RESOURCES];

void every_resources_first_forms(void)
{
    memset(form_of, 0, sizeof form_of);
    memset(least_of, 0, sizeof least_of);
}

typedef struct state {
    every_resource values[EVERY_RESOURCES], seen[EVERY_SYSTEMS][EVERY_RESOURCES];
    bool has_run[EVERY_SYSTEMS];
} state;

static state it, saves[EVERY_SAVES];

static quern_resource_def define(uint32_t r, uint32_t form)
{
    static const char *const names[EVERY_RESOURCES] = {"score", "chosen", "every_list"};
    static const quern_element element = {.type = QUERN_FIELD_U64};
    const resource_form *of = &forms[r][form];
    quern_resource_def def = {.name = names[r], .size_bytes = of->size_bytes, .alignment_bytes = 8};
    const quern_field value = {.name = "value", .type = of->type, .offset_bytes = of->value_bytes};
    const quern_field entity = {
        .name = "entity", .type = QUERN_FIELD_ENTITY, .offset_bytes = of->entity_bytes};
    if (r == CHOSEN) def.fields[1] = entity;
    if (r != TEXTS) def.fields[0] = value;
    if (r != TEXTS) return def;
    def.fields[0] = (quern_field){.name = "numbers",
                                  .type = QUERN_FIELD_LIST,
                                  .offset_bytes = of->numbers_bytes,
                                  .element = &element};
    def.fields[1] =
        (quern_field){.name = "text", .type = QUERN_FIELD_STRING, .offset_bytes = of->text_bytes};
    return def;
}

void every_resources_register(quern_world *into, quern_resource handles[EVERY_RESOURCES])
{
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++) {
        const quern_resource_def def = define(r, form_of[r]);
        must(quern_resource_register(into, &def, &handles[r]));
    }
}

/* The lists of a value, which are still those of the value. */
static every_list lists_of(uint32_t r, const void *value)
{
    every_list lists;
    memcpy((void *)&lists.numbers, (const char *)value + forms[r][form_of[r]].numbers_bytes,
           sizeof lists.numbers);
    memcpy((void *)&lists.text, (const char *)value + forms[r][form_of[r]].text_bytes, sizeof lists.text);
    return lists;
}

every_resource every_resource_read(uint32_t r, const void *value)
{
    const resource_form *of = &forms[r][form_of[r]];
    const char *at = (const char *)value + of->value_bytes;
    every_resource read = {.entity = EVERY_NONE};
    uint16_t half;
    uint32_t word;
    const every_list lists = r == TEXTS ? lists_of(r, value) : (every_list){.text = {{{0}, 0, 0}}};
    memcpy(&half, at, sizeof half);
    memcpy(&word, at, sizeof word);
    if (r == TEXTS)
        read.value = every_list_read(&lists);
    else if (of->type == QUERN_FIELD_U64)
        memcpy(&read.value, at, sizeof read.value);
    else
        read.value = of->type == QUERN_FIELD_U16 ? half : word;
    if (r == CHOSEN) memcpy(&read.handle, (const char *)value + of->entity_bytes, sizeof read.handle);
    return read;
}

static void write_value(uint32_t r, void *value, uint64_t number, quern_entity handle)
{
    const resource_form *of = &forms[r][form_of[r]];
    const uint16_t half = (uint16_t)number;
    const uint32_t word = (uint32_t)number;
    char *at = (char *)value + of->value_bytes;
    if (r == TEXTS) {
        every_list lists = lists_of(r, value);
        every_list_write(&lists, number);
        memcpy((char *)value + of->numbers_bytes, (const void *)&lists.numbers, sizeof lists.numbers);
        memcpy((char *)value + of->text_bytes, (const void *)&lists.text, sizeof lists.text);
    } else if (of->type == QUERN_FIELD_U64) {
        memcpy(at, &number, sizeof number);
    } else if (of->type == QUERN_FIELD_U16) {
        memcpy(at, &half, sizeof half);
    } else {
        memcpy(at, &word, sizeof word);
    }
    if (r == CHOSEN) memcpy((char *)value + of->entity_bytes, &handle, sizeof handle);
}

/* Writes a value, of which there are few. */
void every_resource_write(int system, uint32_t resource, void *value, random_source *random)
{
    every_resource fresh = {.value = least_of[resource] + random_below(random, 4), .entity = EVERY_NONE};
    const quern_entity handle = every.known[random_below(random, every.known_count) % 3];
    const uint64_t hidden = random_next(random);
    if (resource == SCORE && form_of[SCORE] != 1)
        memcpy((char *)value + (form_of[SCORE] == 0 ? 8 : 0), &hidden, sizeof hidden);
    if (resource == CHOSEN) fresh.handle = handle;
    if (resource == CHOSEN && every.is_modelled) fresh.entity = every_model_find(handle);
    write_value(resource, value, fresh.value, handle);
    if (!every.is_modelled) return;
    if (system != EVERY_NONE) every_model_enter_system((uint32_t)system);
    it.values[resource] = fresh;
}

/* Gives a resource another layout and then a new value, which systems with if_changed must see. */
void every_resource_redefine(uint32_t r, uint32_t form)
{
    const quern_resource_def def = define(r, form);
    const uint64_t hash = quern_world_hash(every.world);
    quern_redefine_report report;
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    quern_result result =
        quern_resource_redefine(every.world, every.types.resources[r], &def, NULL, &report);
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    if (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY) {
        cr_assert_eq(quern_world_hash(every.world), hash);
        every.failed_count++;
        result = quern_resource_redefine(every.world, every.types.resources[r], &def, NULL, &report);
    }
    must(result);
    cr_assert_eq(report.is_converted, form != form_of[r]);
    if (every.replica != NULL)
        must(quern_resource_redefine(every.replica, quern_resource_find(every.replica, def.name), &def,
                                     NULL, NULL));
    if (form == form_of[r]) return;
    form_of[r] = form;
    every.converted_count++;
    every.type_features |= every_bit(EVERY_USES_NEW_RESOURCE);
    void *value = quern_resource_get(every.world, every.types.resources[r]);
    const every_resource before = every_resource_read(r, value);
    const uint64_t fresh = least_of[r] += 4;
    if (every.is_modelled) cr_assert_eq(before.value, it.values[r].value);
    write_value(r, value, fresh, before.handle);
    it.values[r].value = fresh;
    if (every.replica == NULL) return;
    value = quern_resource_get(every.replica, quern_resource_find(every.replica, def.name));
    write_value(r, value, fresh, every_resource_read(r, value).handle);
}

void every_resources_check(quern_context *context, const every_terms *terms)
{
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++) {
        if (!every_has(terms->uses_resources, r)) continue;
        const every_resource seen =
            every_resource_read(r, quern_context_resource(context, every.types.resources[r]));
        atomic_fetch_add_explicit(&every.observed, every_mix(seen.value * 7 + r), memory_order_relaxed);
        if (every.is_modelled)
            cr_assert_eq(seen.value, it.values[r].value, "seed %llu, frame %llu: resource %u",
                         (unsigned long long)every.seed, (unsigned long long)every.frame, r);
    }
}

/* Writes some resources between frames, by their address or as text. */
void every_resources_play(void)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 37 + 11))};
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++)
        if (random_chance(&random, 40))
            every_resource_write(EVERY_NONE, r, quern_resource_get(every.world, every.types.resources[r]),
                                 &random);
    if (!random_chance(&random, 20)) return;
    char text[24];
    const uint64_t value = least_of[CHOSEN] + random_below(&random, 4);
    snprintf(text, sizeof text, "%u", (unsigned)value);
    must(quern_resource_set_text(every.world, "chosen.value", text));
    if (every.is_modelled) it.values[1].value = value;
}

/* --------------------------------------------------------------------------------------- if_changed */

void every_resources_open(void)
{
    memset((void *)&it, 0, sizeof it);
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++)
        it.values[r].entity = EVERY_NONE;
}

void every_resources_save(uint32_t number)
{
    saves[number] = it;
}

void every_resources_restore(uint32_t number)
{
    it = saves[number];
}

every_resource every_resource_at(uint32_t resource)
{
    return it.values[resource];
}

void every_resources_forget(uint32_t system)
{
    it.has_run[system] = false;
}

/* A system runs if one of the resources that it watches has another value than at its last run. */
bool every_resources_let_run(uint32_t system, const every_terms *terms)
{
    bool runs = terms->watched == 0 || !it.has_run[system];
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++)
        runs |=
            every_has(terms->watched, r) && (it.seen[system][r].value != it.values[r].value ||
                                             it.seen[system][r].handle.bits != it.values[r].handle.bits);
    if (!runs) return false;
    it.has_run[system] = true;
    memcpy(it.seen[system], it.values, sizeof it.values);
    return true;
}
