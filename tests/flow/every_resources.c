/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Resources of the random program, and what the model knows of them: their values, and which of them each system with
 * if_changed has seen. Parallel systems read them; systems write them in `end`, serial and exclusive ones in `run`, the
 * program between frames. */

#include "tests/flow/every.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

/* A field that is not described neither counts as a change nor is carried anywhere. */
typedef struct score {
    uint64_t value, hidden;
} score;

typedef struct chosen {
    quern_entity entity;
    uint64_t value;
} chosen;

typedef struct state {
    every_resource values[EVERY_RESOURCES], seen[EVERY_SYSTEMS][EVERY_RESOURCES];
    bool has_run[EVERY_SYSTEMS];
} state;

static state it, saves[EVERY_SAVES];

void every_resources_register(quern_world *into, quern_resource handles[EVERY_RESOURCES])
{
    const quern_resource_def defs[EVERY_RESOURCES] = {
        {QUERN_TYPE(score), .fields = {QUERN_FIELD(score, value)}},
        {QUERN_TYPE(chosen), .fields = QUERN_FIELDS(chosen, entity, value)},
        {QUERN_TYPE(every_list),
         .fields = {QUERN_LIST_FIELD(every_list, numbers, uint64_t), QUERN_FIELD(every_list, text)}}};
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++)
        must(quern_resource_register(into, &defs[r], &handles[r]));
}

every_resource every_resource_read(uint32_t resource, const void *value)
{
    every_resource read = {.entity = EVERY_NONE};
    if (resource == 0) read.value = ((const score *)value)->value;
    if (resource == 1) {
        read.value = ((const chosen *)value)->value;
        read.handle = ((const chosen *)value)->entity;
    }
    if (resource == 2) read.value = every_list_read(value);
    return read;
}

/* Writes a value, of which there are few. */
void every_resource_write(int system, uint32_t resource, void *value, random_source *random)
{
    every_resource fresh = {.value = random_below(random, 4), .entity = EVERY_NONE};
    const quern_entity handle = every.known[random_below(random, every.known_count) % 3];
    if (resource == 0) *(score *)value = (score){fresh.value, random_next(random)};
    if (resource == 1) {
        fresh.handle = handle;
        if (every.is_modelled) fresh.entity = every_model_find(handle);
        *(chosen *)value = (chosen){handle, fresh.value};
    }
    if (resource == 2) every_list_write(value, fresh.value);
    if (!every.is_modelled) return;
    if (system != EVERY_NONE) every_model_enter_system((uint32_t)system);
    it.values[resource] = fresh;
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
    const uint64_t value = random_below(&random, 4);
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
