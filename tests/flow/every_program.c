/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The random program: its world, and the calls between frames. Each decision is a function of the seed, the frame, the
 * system and the id of the row's entity, so that all runs of a seed do the same. */

#include "tests/flow/every_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START = 90 };

every_scene every;

/* ---------------------------------------------------------------------------------------- the program */

uint32_t every_member_counts[EVERY_PREFABS], every_member_sets[EVERY_PREFABS][EVERY_MEMBERS];

/* The types of objects outside of the world. */
static const uint32_t outside_types[OUTSIDE_TYPES] = {EVERY_NUMBER, EVERY_TAG};

opened every_own;

static outside_objects of_replica;

static outside_objects *outside_of(const quern_world *in)
{
    return in == every.world ? &every_own.outside : in == every.replica ? &of_replica : NULL;
}

/* The world knows the functions of the last definition alone. */
static uint32_t outside_index(const quern_world *in, const void *user_data)
{
    const uint32_t i = (uint32_t)(uintptr_t)user_data & 0xFF, version = (uint32_t)(uintptr_t)user_data >> 8;
    if (in == every.world) cr_assert_eq(version, every_forms[outside_types[i]].version);
    return i;
}

static void add_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = outside_index(in, user_data), slot = quern_entity_index(entity);
    outside_objects *outside = outside_of(in);
    if (outside == NULL) return;
    cr_assert(slot < OUTSIDE_SLOTS && quern_entity_is_null(outside->entities[i][slot]),
              "on_add of '%s' twice", every_types[outside_types[i]].name);
    outside->entities[i][slot] = entity;
    outside->counts[i]++;
}

static void set_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = outside_index(in, user_data);
    const outside_objects *outside = outside_of(in);
    if (outside != NULL) cr_assert_eq(outside->entities[i][quern_entity_index(entity)].bits, entity.bits);
}

static void remove_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = outside_index(in, user_data);
    outside_objects *outside = outside_of(in);
    set_outside(in, entity, value, user_data);
    if (outside == NULL) return;
    outside->entities[i][quern_entity_index(entity)] = quern_entity_null();
    outside->counts[i]--;
}

void every_give_entity_hooks(quern_component_def *def, uint32_t type, const every_form *form)
{
    for (uint32_t i = 0; i < OUTSIDE_TYPES && every_has_entity_hooks(); i++)
        if (outside_types[i] == type)
            def->entity_hooks =
                (quern_entity_hooks){.on_add = add_outside,
                                     .on_set = def->size_bytes > 0 ? set_outside : NULL,
                                     .on_remove = remove_outside,
                                     .user_data = (void *)(uintptr_t)(i | form->version << 8)};
}

void every_check_outside(quern_world *in)
{
    const outside_objects *outside = outside_of(in);
    every_handles handles;
    if (!every_has_entity_hooks()) return;
    every_register(in, &handles);
    quern_query *all =
        setup_query(in,
                    (const quern_term[]){quern_term_read(handles.types[EVERY_ID]),
                                         quern_term_optional(handles.types[EVERY_OFF], QUERN_ACCESS_NONE)},
                    2);
    for (uint32_t i = 0; i < OUTSIDE_TYPES; i++) {
        uint32_t count = 0;
        for (quern_query_iterator it = quern_query_iterate(all); quern_query_next(&it);)
            for (uint32_t row = 0; row < it.view.count; row++) {
                const quern_entity entity = it.view.entities[row];
                if (!quern_entity_has(in, entity, handles.types[outside_types[i]])) continue;
                cr_assert_eq(outside->entities[i][quern_entity_index(entity)].bits, entity.bits);
                count++;
            }
        cr_assert_eq(count, outside->counts[i],
                     "seed %llu, frame %llu: %u entities with '%s', and %u objects",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, count,
                     every_types[outside_types[i]].name, outside->counts[i]);
    }
    quern_query_destroy(all);
}

/* Registers a relation, and a component for the values of its edges if they have some. */
static void register_relation(quern_world *into, uint32_t r, every_handles *handles)
{
    quern_relation_def def = every_relations[r];
    const quern_component_def one = every_home_def(every_home_form);
    const quern_component_def many = {
        QUERN_TYPE(every_edges),
        .fields = {QUERN_LIST_FIELD(every_edges, list, every_edge, target, value)}};
    handles->edge_values[r] = (quern_component){0};
    if (every_has_values(r))
        must(quern_component_register(into, def.many ? &many : &one, &handles->edge_values[r]));
    def.value = handles->edge_values[r];
    must(quern_relation_register(into, &def, &handles->relations[r]));
}

void every_register(quern_world *into, every_handles *handles)
{
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        every_definition *room;
        quern_component_def *def = every_define(t, &every_forms[t], &room);
        every_require(t, def, handles);
        every_give_entity_hooks(def, t, &every_forms[t]);
        if (t == EVERY_OFF)
            handles->types[t] = quern_world_disabled_tag(into);
        else
            must(quern_component_register(into, def, &handles->types[t]));
        every_forget_definition(room);
        cr_assert_not(quern_component_is_null(handles->types[t]));
    }
    for (uint32_t r = 0; r < EVERY_RELATIONS; r++)
        if (r == EVERY_PARENT)
            handles->relations[r] = quern_world_parent(into);
        else if (r == EVERY_SHARED)
            handles->relations[r] = quern_world_shared(into);
        else
            register_relation(into, r, handles);
    every_resources_register(into, handles->resources);
}

uint64_t every_mix(uint64_t x)
{
    random_source random = {x};
    return random_next(&random);
}

/* ------------------------------------------------------------------------------------- between frames */

actor every_program_actor(uint64_t salt, quern_commands *commands)
{
    return (actor){.commands = commands,
                   .stream = every_next_stream(),
                   .features =
                       every_bit(commands == NULL ? EVERY_USES_IMMEDIATE : EVERY_USES_WORLD_COMMANDS),
                   .random = {every_mix(every.seed ^ every_mix(every.frame * 13 + salt))},
                   .waits = true,
                   .id_base = every_mix(every.seed + every_mix(every.frame * 17 + salt))};
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void every_learn_known(void)
{
    static struct {
        uint64_t id;
        quern_entity entity;
    } found[EVERY_MOST_KNOWN];
    quern_query_iterator walk = quern_query_iterate(every_own.everyone);
    every.known_count = 0;
    while (quern_query_next(&walk)) {
        const uint64_t *ids = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++) {
            cr_assert_lt(every.known_count, (uint32_t)EVERY_MOST_KNOWN);
            found[every.known_count].id = ids[i];
            found[every.known_count++].entity = walk.view.entities[i];
            if (every.is_modelled) every_model_learn(walk.view.entities[i], ids[i]);
        }
    }
    qsort(found, every.known_count, sizeof *found, compare_ids);
    for (uint32_t i = 0; i < every.known_count; i++)
        every.known[i] = found[i].entity;
}

/* Shows the model the changes of a call that makes all of them, or none. */
static void model_all(const every_change *changes, uint32_t count, quern_result result)
{
    bool all = true;
    if (!every.is_modelled) return;
    every_model_save(0);
    for (uint32_t i = 0; i < count && all; i++) {
        every_change change = changes[i];
        change.features |= every_bit(EVERY_USES_BULK) | every_feature_of(&change);
        all = every_model_now(&change);
    }
    if (!all) every_model_restore(0);
    cr_assert_eq(result == QUERN_OK, all, "seed %llu, frame %llu: a call with %u changes of kind %d %s: %s",
                 (unsigned long long)every.seed, (unsigned long long)every.frame, (unsigned)count,
                 (int)changes[0].kind, all ? "failed" : "succeeded", quern_error_message());
}

static void relate_some(actor *by)
{
    every_change changes[12] = {0};
    quern_entity sources[12], targets[12];
    const uint32_t relation = every_pick_relation(by), count = 1 + random_below(&by->random, 12);
    for (uint32_t i = 0; i < count; i++) {
        sources[i] = every_pick(by);
        targets[i] = every_pick(by);
        if (i == 0 && random_chance(&by->random, 30)) { /* a new instance */
            const quern_entity made = every_draw_spawn(by, random_chance(&by->random, 50));
            if (!quern_entity_is_null(made)) sources[i] = made;
        }
        changes[i] = (every_change){
            .kind = EVERY_RELATE, .entity = sources[i], .relation = relation, .target = targets[i]};
    }
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        result =
            quern_entity_relate_many(every.world, sources, every.types.relations[relation], targets, count);
    while (every_must_repeat(&attempt, result));
    model_all(changes, count, result);
}

/* What a call creates, as columns of its components. */
typedef struct created_columns {
    const void *columns[3];
    uint32_t value_bytes[3]; /* 0: no values */
} created_columns;

/* Writes the values of a call's entities, instead of the call. */
static void fill_created(quern_context *context, const quern_view *view)
{
    const created_columns *from = quern_context_user_data(context);
    for (uint32_t c = 0; c < COUNT_OF(from->columns); c++) {
        const size_t bytes = from->value_bytes[c];
        if (from->columns[c] != NULL)
            memcpy(quern_view_write(view, c), (const char *)from->columns[c] + bytes * view->fill_index,
                   bytes * view->count);
    }
}

void every_create_some(actor *by)
{
    every_change changes[20] = {0};
    uint64_t ids[20], numbers[20 * EVERY_TYPE_WORDS], deeps[20 * EVERY_TYPE_WORDS];
    quern_entity made[20];
    const uint32_t count = 1 + random_below(&by->random, 20);
    const bool is_needy = random_chance(&by->random, 50);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *words = changes[i].words;
        ids[i] = every_fresh_id(by);
        words[every_types[EVERY_NUMBER].first_word] = ids[i] % 100;
        words[every_types[EVERY_NUMBER].first_word + 1] = ids[i] % 200;
        words[every_types[EVERY_DEEP].first_word] = ids[i] % 300;
        every_write(EVERY_NUMBER, (char *)numbers + (size_t)every_value_bytes(EVERY_NUMBER) * i, words);
        every_write(EVERY_DEEP, (char *)deeps + (size_t)every_value_bytes(EVERY_DEEP) * i, words);
    }
    const quern_component components[] = {every.types.types[EVERY_ID], every.types.types[EVERY_NUMBER],
                                          every.types.types[is_needy ? EVERY_DEEP : EVERY_TAG]};
    const void *columns[] = {ids, numbers, is_needy ? deeps : NULL};
    created_columns filled = {
        {ids, numbers, is_needy ? deeps : NULL},
        {sizeof *ids, every_value_bytes(EVERY_NUMBER), every_value_bytes(EVERY_DEEP)}};
    const bool fills = random_chance(&by->random, 50);
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        if (by->commands != NULL)
            result = quern_commands_create_many(by->commands, components, columns, 3, count, made);
        else if (fills)
            result =
                quern_entity_create_filled(every.world, components, 3, count, fill_created, &filled, made);
        else
            result = quern_entity_create_many(every.world, components, columns, 3, count, made);
    while (every_must_repeat(&attempt, result));
    must(result);
    for (uint32_t i = 0; i < count; i++) {
        changes[i].kind = EVERY_CREATE;
        changes[i].entity = made[i];
        changes[i].id = ids[i];
        changes[i].stream = by->stream;
        changes[i].set = BIT(EVERY_NUMBER) | BIT(is_needy ? EVERY_DEEP : EVERY_TAG);
        changes[i].features = by->features | every_bit(EVERY_USES_CREATE_MANY);
        changes[i].features |= every_feature_of(&changes[i]);
        if (every.is_modelled && by->commands != NULL) every_model_record(&changes[i], by->waits);
    }
    if (by->commands == NULL) model_all(changes, count, result);
    /* otherwise, a new entity would rarely be a row of the system with a target term */
    if (by->commands == NULL && !quern_entity_is_null(every_system_terms[TARGET_SYSTEM].target) &&
        random_chance(&by->random, 40))
        every_make(by, (every_change){.kind = EVERY_RELATE,
                                      .entity = made[0],
                                      .relation = every_system_terms[TARGET_SYSTEM].tie - 1,
                                      .target = every_system_terms[TARGET_SYSTEM].target});
    for (uint32_t i = 0; i < count && i < 4; i++)
        every_draw_some(by, made[i]);
}

/* The changes that a call for all matches of the query `few` makes: entities with a flag, disabled ones left out. */
static uint32_t list_matches(every_change *changes, uint32_t most, every_change like, bool wants_absent)
{
    uint32_t count = 0;
    if (!every.is_modelled) return 0;
    for (uint32_t i = 0; i < every_model_count(); i++) {
        const every_entity *entity = every_model_at((int)i);
        if (!entity->is_alive || !every_has(entity->now.set, EVERY_FLAG) ||
            every_has(entity->now.set, EVERY_OFF))
            continue;
        if (like.kind != EVERY_DESTROY && every_has(entity->now.set, like.type) == wants_absent) continue;
        cr_assert_lt(count, most);
        changes[count] = like;
        changes[count++].entity = entity->handle;
    }
    return count;
}

static void change_matches(actor *by)
{
    static every_change changes[EVERY_MOST_KNOWN];
    every_change like = {.type = every_pick_type(by)};
    const bool adds = random_chance(&by->random, 60);
    value_room room;
    uint64_t count = 0;
    quern_result result;
    every_draw_words(by, &like);
    like.target = quern_entity_null();
    like.kind = adds ? EVERY_ADD : EVERY_REMOVE;
    like.has_value = adds && random_chance(&by->random, 60);
    like.features = by->features;
    const uint32_t expected = list_matches(changes, EVERY_MOST_KNOWN, like, adds);
    const void *value = like.has_value ? every_value_of(like.type, &like, &room) : NULL;
    every_attempt attempt = every_begin_attempt();
    do
        result = adds
                     ? quern_entity_add_matching(every_own.few, every.types.types[like.type], value, &count)
                     : quern_entity_remove_matching(every_own.few, every.types.types[like.type], &count);
    while (every_must_repeat(&attempt, result));
    if (value != NULL) every_release_value(like.type, &room);
    if (!every.is_modelled || expected == 0) return;
    model_all(changes, expected, result);
    if (result == QUERN_OK) cr_assert_eq(count, expected);
}

static void toggle_some(actor *by)
{
    every_change changes[10] = {0};
    quern_entity list[10];
    const bool enabled = random_chance(&by->random, 40);
    for (uint32_t i = 0; i < 10; i++) {
        list[i] = every_pick(by);
        changes[i] =
            (every_change){.kind = EVERY_TOGGLE, .entity = list[i], .type = EVERY_MODE, .enabled = enabled};
    }
    for (uint32_t i = 0; i < 10; i++) /* so that the call has a chance to succeed */
        every_make(by, (every_change){.kind = EVERY_SET, .entity = list[i], .type = EVERY_MODE});
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        result = quern_entity_set_component_enabled_many(every.world, list, 10,
                                                         every.types.types[EVERY_MODE], enabled);
    while (every_must_repeat(&attempt, result));
    model_all(changes, 10, result);
}

/* Destroys a list of entities. Some are in it twice, some with sources that would refuse the end of their target. */
static void destroy_some(actor *by)
{
    quern_entity list[6];
    const uint32_t count = 1 + random_below(&by->random, COUNT_OF(list));
    for (uint32_t i = 0; i < count; i++) {
        list[i] = every_pick(by);
        const quern_entity before = list[i > 0 ? random_below(&by->random, i) : 0],
                           source = quern_entity_first_source(every.world, before,
                                                              every.types.relations[EVERY_LOCK]);
        if (random_chance(&by->random, 15)) list[i] = before;
        if (random_chance(&by->random, 40) && !quern_entity_is_null(source)) list[i] = source;
    }
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        result = quern_entity_destroy_many(every.world, list, count);
    while (every_must_repeat(&attempt, result));
    if (!every.is_modelled) return;
    const bool all = every_model_destroy_all(list, count,
                                             by->features | every_bit(EVERY_USES_BULK) |
                                                 every_bit(EVERY_USES_DESTROY_MANY)) != EVERY_NONE;
    cr_assert_eq(result == QUERN_OK, all, "seed %llu, frame %llu: %s", (unsigned long long)every.seed,
                 (unsigned long long)every.frame, quern_error_message());
}

/* Destroys the entities with two types, whether they are disabled or not. */
static void destroy_matches(actor *by)
{
    static quern_entity list[EVERY_MOST_KNOWN];
    uint32_t count = 0;
    uint64_t destroyed_count = 0;
    for (uint32_t i = 0; every.is_modelled && i < every_model_count(); i++) {
        const every_entity *entity = every_model_at((int)i);
        if (entity->is_alive && every_has(entity->now.set, EVERY_WIDE) &&
            every_has(entity->now.set, EVERY_GIVEN))
            list[count++] = entity->handle;
    }
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        result = quern_entity_destroy_matching(every_own.rare, &destroyed_count);
    while (every_must_repeat(&attempt, result));
    if (!every.is_modelled) return;
    const int expected = every_model_destroy_all(
        list, count, by->features | every_bit(EVERY_USES_BULK) | every_bit(EVERY_USES_DESTROY_MANY));
    cr_assert_eq(result == QUERN_OK, expected != EVERY_NONE, "seed %llu, frame %llu: %s",
                 (unsigned long long)every.seed, (unsigned long long)every.frame, quern_error_message());
    if (result == QUERN_OK) cr_assert_eq(destroyed_count, (uint64_t)expected);
}

/* Writes values that getters and refs find. */
static void use_getters(actor *by)
{
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t words[EVERY_WORDS];
        const quern_entity entity = every_pick(by);
        const uint32_t type = i % 2 == 0 ? EVERY_NUMBER : EVERY_ROWS, first = every_types[type].first_word;
        const quern_getter *getter = i % 2 == 0 ? every_own.number_getter : every_own.rows_getter;
        quern_ref ref = {.entity = entity};
        void *value = quern_entity_get(every.world, entity, every.types.types[type]), *found;
        cr_assert_eq(quern_getter_get(getter, entity), value);
        if (i % 4 == 0) cr_assert_eq(quern_ref_get(getter, &ref), value);
        quern_getter_get_many_write(getter, &entity, 1, &found);
        if (i % 4 == 0) found = quern_ref_get_write(getter, &ref);
        if (i % 4 == 1) found = quern_getter_get_write(getter, entity);
        cr_assert_eq(found, value);
        if (value == NULL) continue;
        every_read(type, value, words);
        words[first] = every_fit(&every_forms[type], 0, random_below(&by->random, 1000));
        every_write(type, value, words);
        if (!every.is_modelled) continue;
        every_model_write(EVERY_NONE, every_model_find(entity), type, words);
        every_model_at(every_model_find(entity))->features |= every_bit(EVERY_USES_GETTER);
    }
}

void every_act_on_many(actor *by, uint32_t kind)
{
    switch (kind) {
    case 0:
        relate_some(by);
        break;
    case 1:
        if (every.known_count < CROWD) every_create_some(by);
        break;
    case 2:
    case 3:
        change_matches(by);
        break;
    case 4:
        toggle_some(by);
        break;
    case 5:
        destroy_some(by);
        break;
    case 6:
        destroy_matches(by);
        break;
    default:
        use_getters(by);
        break;
    }
}

/* Refs of earlier frames find what calls find, whatever has happened since. */
void every_check_refs(void)
{
    for (uint32_t i = 0; i < KEPT_REFS; i++) {
        quern_ref *ref = &every_own.refs[i];
        if (every_mix(every.frame * KEPT_REFS + i) % 4 == 0)
            *ref = (quern_ref){.entity = every.known[every_mix(i + every.frame) % every.known_count]};
        const bool is_alive = quern_entity_is_alive(every.world, ref->entity);
        const void *expected =
            is_alive ? quern_entity_get(every.world, ref->entity, every.types.types[EVERY_NUMBER]) : NULL;
        cr_assert_eq(quern_ref_get(every_own.number_getter, ref), expected, "seed %llu, frame %llu: ref %u",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, i);
    }
}

static void switch_system(uint32_t i, bool is_enabled)
{
    const bool is_reaction = i >= PLAIN_SYSTEMS;
    const quern_system system = is_reaction ? every_own.reactions[i - PLAIN_SYSTEMS] : every_own.systems[i];
    must(quern_schedule_set_system_enabled(every.schedule, system, is_enabled));
    every_own.is_off[i] = !is_enabled;
    if (every.is_modelled && is_reaction) every_model_enable_reaction(i - PLAIN_SYSTEMS, is_enabled);
    if (every.is_modelled && !is_reaction) every_model_enable_system(i, is_enabled);
}

/* Enables and disables systems and reactions before other calls, and enables some after them. A disabled reaction misses
 * what happens meanwhile. */
static void switch_systems(bool is_after)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 29 + is_after))};
    for (uint32_t i = 0; i < PLAIN_SYSTEMS + EVERY_REACTIONS; i++) {
        const bool chosen = random_chance(&random, is_after ? 60 : 80);
        if (!is_after || (chosen && every_own.is_off[i])) switch_system(i, chosen);
    }
    if (is_after) return;
    const bool is_enabled = random_chance(&random, 75);
    must(quern_schedule_enable_set(every.schedule, every_def_of_set(EVERY_SWITCHED).name, is_enabled));
    if (every.is_modelled) every_model_enable_switched(is_enabled);
}

void every_replace_system(quern_system system, const quern_system_def *def)
{
    quern_result result = quern_schedule_replace_system(every.schedule, system, def);
    if (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY) {
        every.failed_count++;
        failing_allocator_pause(every.failing, true);
        result = quern_schedule_replace_system(every.schedule, system, def);
        failing_allocator_pause(every.failing, false);
    }
    must(result);
}

/* Returns the handle of a system, or of a reaction: EVERY_SYSTEMS and more. */
static quern_system *system_numbered(uint32_t number)
{
    return number < EVERY_SYSTEMS ? &every_own.systems[number]
                                  : &every_own.reactions[number - EVERY_SYSTEMS];
}

/* Removes a system, and adds it again as the last one. */
static void renew_system(uint32_t number)
{
    const quern_system *system = system_numbered(number), removed = *system;
    must(quern_schedule_remove_system(every.schedule, removed));
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    every_add_system(number);
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    cr_assert_neq(system->bits, removed.bits);
}

/* Moves a system or reaction behind another one, or to the beginning. To do it twice is to do it once. */
static void move_system(random_source *random)
{
    enum { ALL = EVERY_SYSTEMS + EVERY_REACTIONS };
    uint32_t others[ALL], order[EVERY_SYSTEMS], other_count = 0, count = 0, system_count = 0;
    const uint32_t moved = random_below(random, ALL), previous = random_below(random, ALL + 1);
    if (previous == moved) return;
    must(quern_schedule_move_system(every.schedule, *system_numbered(moved),
                                    previous < ALL ? *system_numbered(previous) : (quern_system){0}));
    for (uint32_t i = 0; i < every_own.order_count; i++)
        if (every_own.order[i] != moved) others[other_count++] = every_own.order[i];
    if (previous == ALL) every_own.order[count++] = moved;
    for (uint32_t i = 0; i < other_count; i++) {
        every_own.order[count++] = others[i];
        if (others[i] == previous) every_own.order[count++] = moved;
    }
    for (uint32_t i = 0; i < count; i++)
        if (every_own.order[i] < EVERY_SYSTEMS) order[system_count++] = every_own.order[i];
    if (every.is_modelled) every_model_order_systems(order);
    every.schedule_features |= every_bit(EVERY_USES_MOVED_SYSTEM);
}

/* Replaces systems and reactions by the same definition, so that nothing else may change, or removes them and adds them
 * again, or moves one. A frame of a history that is restored does not know the new ones, so no frame that runs twice may
 * follow another one that renews (repeat_frames in test_every.c). */
static void change_systems(void)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 31 + 5))};
    const uint32_t renew_percent = every.frame % 3 == 1 ? 0 : 12;
    every.schedule_features = 0;
    for (uint32_t s = 0; s <= LISTENING; s++) {
        const quern_system_def def = every_def_of_system(s);
        if (random_chance(&random, renew_percent)) {
            renew_system(s);
            every.schedule_features |= every_bit(EVERY_USES_NEW_SYSTEM);
            if (s < PLAIN_SYSTEMS) every_own.is_off[s] = false;
            if (every.is_modelled) every_model_renew_system(s);
            if (every.is_modelled && s >= READING) every_model_skip_events(s - READING);
        } else if (random_chance(&random, 20)) {
            every_replace_system(every_own.systems[s], &def);
            every.schedule_features |= every_bit(EVERY_USES_REPLACED_SYSTEM);
        }
    }
    for (uint32_t r = 0; r < EVERY_REACTIONS; r++) {
        const quern_system_def def = every_def_of_reaction(r);
        if (random_chance(&random, renew_percent)) {
            renew_system(EVERY_SYSTEMS + r);
            every.schedule_features |= every_bit(EVERY_USES_NEW_REACTION);
            every_own.is_off[PLAIN_SYSTEMS + r] = false;
            if (every.is_modelled) every_model_renew_reaction(r);
        } else if (random_chance(&random, 20)) {
            every_replace_system(every_own.reactions[r], &def);
            every.schedule_features |= every_bit(EVERY_USES_REPLACED_REACTION);
        }
    }
    if (renew_percent > 0 && random_chance(&random, 50)) move_system(&random);
    for (uint32_t set = 0; set < EVERY_SETS; set++) {
        const quern_set_def def = every_def_of_set(set);
        if (!random_chance(&random, 20)) continue;
        every_attempt attempt = every_begin_attempt();
        quern_result result;
        do
            result = quern_schedule_replace_set(every.schedule, &def);
        while (every_must_repeat(&attempt, result));
        must(result);
    }
}

/* Chooses the target with the most sources of several. */
static void choose_target(actor *by)
{
    const quern_relation relation = every.types.relations[every_system_terms[TARGET_SYSTEM].tie - 1];
    quern_entity target = every_pick(by);
    for (uint32_t i = 0; i < 60; i++) {
        const quern_entity other = every_pick(by);
        if (quern_entity_source_count(every.world, other, relation) >
            quern_entity_source_count(every.world, target, relation))
            target = other;
    }
    every_system_terms[TARGET_SYSTEM].target = target;
    must(quern_schedule_set_target(every.schedule, every_own.systems[TARGET_SYSTEM], target));
    const quern_entity first = quern_entity_first_source(every.world, target, relation);
    if (!quern_entity_is_null(first) && random_chance(&by->random, 20))
        every_make(by, (every_change){.kind = EVERY_PLACE, .entity = first, .relation = EVERY_PARENT});
}

static void learn_sets(uint32_t prefab, quern_entity root)
{
    quern_entity members[EVERY_MEMBERS];
    memset(every_member_sets[prefab], 0, sizeof every_member_sets[prefab]);
    cr_assert_eq(every_list_tree(root, members), every_member_counts[prefab]);
    for (uint32_t m = 0; m < every_member_counts[prefab]; m++)
        for (uint32_t t = 0; t < EVERY_TYPES; t++)
            if (quern_entity_has(every.world, members[m], every.types.types[t]))
                every_member_sets[prefab][m] |= BIT(t);
}

static void capture(uint32_t prefab, quern_entity root)
{
    must(quern_prefab_capture(every.world, root, &every_own.prefabs[prefab]));
    every_member_counts[prefab] = quern_prefab_member_count(every.world, every_own.prefabs[prefab]);
    learn_sets(prefab, root);
    if (every.is_modelled) cr_assert_eq(every_model_capture(prefab, root), every_member_counts[prefab]);
}

/* Captures a tree of the world, which may have instances and copies in it. A history does not take prefabs back, so only
 * frames do it that may be the first ones to run twice (repeat_frames in test_every.c). */
static void capture_again(actor *by)
{
    quern_entity members[EVERY_MEMBERS];
    if (every.frame % 3 != 0 || every.has_no_prefabs) return;
    for (uint32_t i = 0; i < 8; i++) {
        const quern_entity root = every_pick(by);
        if (!quern_entity_is_enabled(every.world, root) || every_list_tree(root, members) > EVERY_MEMBERS)
            continue;
        must(quern_prefab_destroy(every.world, every_own.prefabs[LATER_PREFAB]));
        capture(LATER_PREFAB, root);
        return;
    }
}

/* Changes what has no consequence for entities and values. */
static void tidy(void)
{
    if (every_mix(every.seed * 5 + every.frame) % 4 == 0) must(quern_world_trim(every.world));
    if (every_mix(every.seed * 6 + every.frame) % 4 == 0)
        must(quern_world_remove_empty_archetypes(every.world, NULL));
}

/* Records commands of the world. */
static void record_for_world(uint64_t salt)
{
    actor by = every_program_actor(salt, quern_world_commands(every.world));
    for (uint32_t i = 0; i < 8; i++)
        every_act(&by, quern_entity_null());
    if (every.frame % 4 == 1 && every.known_count < CROWD) every_create_some(&by);
}

void every_play_between(quern_jobs *jobs)
{
    memset(every_reaction_runs, 0, sizeof every_reaction_runs);
    change_systems();
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    switch_systems(false);
    tidy();
    every_learn_known();
    every_resources_play();
    actor now = every_program_actor(1, NULL);
    choose_target(&now);
    capture_again(&now);
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    for (uint32_t i = 0; i < 10; i++)
        every_act(&now, quern_entity_null());
    use_getters(&now);
    every_act_on_many(&now, (uint32_t)(every.frame % 7));
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    record_for_world(2);
    if (every_mix(every.seed * 7 + every.frame) % 5 == 0) {
        must(quern_world_discard_commands(every.world));
        if (every.is_modelled) every_model_discard();
        every.schedule_features |= every_bit(EVERY_USES_DISCARD);
        record_for_world(9);
    }
    if (every_mix(every.seed + every.frame) % 3 == 0) {
        must(quern_world_flush(every.world));
        if (every.is_modelled) every_model_flush(true);
        must(quern_query_parallel_for(every_own.everyone, jobs, every_run_parallel, NULL));
        if (every.is_modelled) every_model_flush(false);
    }
    quern_event_block block;
    while (quern_event_reader_next(every_own.reader, &block))
        for (uint32_t i = 0; i < block.count; i++) {
            const ping seen = every_ping_read(block.values, i);
            atomic_fetch_add_explicit(&every.observed, every_mix(seen.id + 2), memory_order_relaxed);
            if (every.is_modelled) every_model_read_event(2, seen.id, seen.entity);
        }
    if (every.is_modelled) every_model_end_events(2);
    switch_systems(true);
    every_learn_known();
}

/* ---------------------------------------------------------------------------------------- the scene */

static void open_event(void)
{
    const quern_event_def def = every_event_def(every_event_form);
    must(quern_event_register(every.world, &def, &every_own.event));
    must(quern_event_reader_create(every.world,
                                   &(quern_event_reader_def){.name = "program", .event = every_own.event},
                                   &every_own.reader));
}

/* Creates a member of a prefab's tree, with a name, below another one. */
static quern_entity make_member(actor *by, uint32_t set, quern_entity parent, const char *name)
{
    every_change change = {.kind = EVERY_CREATE, .id = every_fresh_id(by), .set = set};
    every_draw_words(by, &change);
    change.target = parent;
    change.relation = quern_entity_is_null(parent) ? 0 : 1;
    const quern_entity made = every_make(by, change);
    every_change naming = {.kind = EVERY_RENAME, .entity = made};
    snprintf(naming.name, sizeof naming.name, "%s", name);
    every_make(by, naming);
    return made;
}

/* Describes a prefab whose members share values. The model captures a tree that is the same. */
static void describe_prefab(actor *by, quern_entity shared)
{
    const quern_entity none = quern_entity_null();
    const quern_entity root = make_member(by, BIT(EVERY_NUMBER), none, "s");
    const quern_entity child = make_member(by, BIT(EVERY_TAG) | BIT(EVERY_LINK), root, "a");
    every_make(by, (every_change){
                       .kind = EVERY_RELATE, .entity = root, .relation = EVERY_SHARED, .target = shared});
    every_make(by, (every_change){
                       .kind = EVERY_RELATE, .entity = child, .relation = EVERY_SHARED, .target = root});
    uint64_t link[2]; /* the child knows its root */
    memcpy(link, quern_entity_get(every.world, child, every.types.types[EVERY_LINK]), sizeof link);
    cr_assert_eq(link[0], root.bits);
    link[0] = quern_prefab_member_handle(0).bits;
    const quern_prefab_value of_root[] = {
        {.component = every.types.types[EVERY_ID]},
        {.component = every.types.types[EVERY_NUMBER],
         .value = quern_entity_get(every.world, root, every.types.types[EVERY_NUMBER])}};
    const quern_prefab_value of_child[] = {{.component = every.types.types[EVERY_ID]},
                                           {.component = every.types.types[EVERY_TAG]},
                                           {.component = every.types.types[EVERY_LINK], .value = link}};
    const quern_prefab_member_def members[] = {
        {.values = of_root, .value_count = COUNT_OF(of_root), .shared = shared},
        {.name = "a",
         .values = of_child,
         .value_count = COUNT_OF(of_child),
         .shared = quern_prefab_member_handle(0)}};
    must(quern_prefab_create(every.world, members, 2, &every_own.prefabs[SHARING_PREFAB]));
    every_member_counts[SHARING_PREFAB] = 2;
    learn_sets(SHARING_PREFAB, root);
    if (every.is_modelled) cr_assert_eq(every_model_capture(SHARING_PREFAB, root), 2u);
}

static void make_prefabs(actor *by)
{
    const quern_entity none = quern_entity_null(), outside = every.known[0];
    quern_entity root = make_member(by, BIT(EVERY_NUMBER) | BIT(EVERY_MODE), none, "x");
    quern_entity a = make_member(by, BIT(EVERY_DEEP) | BIT(EVERY_LINK), root, "a");
    quern_entity b = make_member(by, BIT(EVERY_FLAG) | BIT(EVERY_GIVEN), a, "b");
    quern_entity c = make_member(by, BIT(EVERY_MODE) | BIT(EVERY_TAG), root, "c");
    every_make(by, (every_change){.kind = EVERY_TOGGLE, .entity = c, .type = EVERY_MODE});
    every_make(by, (every_change){
                       .kind = EVERY_SET, .entity = a, .type = EVERY_LINK, .target = c, .has_value = true});
    every_make(by, (every_change){.kind = EVERY_SWITCH, .entity = a, .enabled = false});
    every_make(
        by,
        (every_change){
            .kind = EVERY_RELATE, .entity = b, .relation = EVERY_LIKES, .target = root, .edge_value = 71});
    every_make(by,
               (every_change){.kind = EVERY_RELATE, .entity = c, .relation = EVERY_SHARED, .target = a});
    capture(0, root);
    root = make_member(by, BIT(EVERY_WIDE) | (every.has_hooks ? BIT(EVERY_HOOKED) : 0), none, "y");
    capture(1, root);
    root = make_member(by, BIT(EVERY_NEED), none, "z");
    a = make_member(by, BIT(EVERY_ROWS), root, "a");
    every_make(
        by,
        (every_change){
            .kind = EVERY_RELATE, .entity = a, .relation = EVERY_HOME, .target = root, .edge_value = 72});
    if (every.seed % 2 == 0)
        every_make(by, (every_change){
                           .kind = EVERY_RELATE, .entity = a, .relation = EVERY_LIKES, .target = outside});
    capture(2, root);
    capture(LATER_PREFAB, root);
    describe_prefab(by, every_draw_shared(by));
}

static void fill_world(void)
{
    actor by = every_program_actor(99, NULL);
    for (uint32_t i = 0; i < START; i++) {
        every_change change = {.kind = EVERY_CREATE, .id = every_fresh_id(&by)};
        for (uint32_t k = random_below(&by.random, 5); k > 0; k--)
            change.set |= BIT(1 + random_below(&by.random, EVERY_TYPES - 2));
        if (!every.has_hooks) change.set &= ~BIT(EVERY_HOOKED);
        for (uint32_t w = 1; w < EVERY_WORDS; w++)
            change.words[w] = random_below(&by.random, 1000);
        if (i > 0 && random_chance(&by.random, 60)) {
            change.relation = 1;
            change.target = every.known[random_below(&by.random, i < 30 ? i : 30)];
        }
        every.known[i] = every_make(&by, change);
        every.known_count = i + 1;
    }
    make_prefabs(&by);
}

/* Creates the world and the schedule, without entities and systems. */
static void open_world(quern_schedule_def style, const quern_allocator *allocator)
{
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    memset((void *)&every_own, 0, sizeof every_own);
    must(quern_world_create(&def, &every.world));
    every_register(every.world, &every.types);
    open_event();
    every_own.everyone = setup_query(
        every.world,
        (const quern_term[]){quern_term_read(every.types.types[EVERY_ID]),
                             quern_term_optional(every.types.types[EVERY_OFF], QUERN_ACCESS_NONE)},
        2);
    every_own.few = setup_query(
        every.world,
        (const quern_term[]){quern_term_either(quern_term_with(every.types.types[EVERY_FLAG]))}, 1);
    every_own.rare = setup_query(
        every.world,
        (const quern_term[]){quern_term_with(every.types.types[EVERY_WIDE]),
                             quern_term_with(every.types.types[EVERY_GIVEN]),
                             quern_term_optional(every.types.types[EVERY_OFF], QUERN_ACCESS_NONE)},
        3);
    must(quern_getter_create(
        every.world, &(quern_getter_def){.component = every.types.types[EVERY_NUMBER], .refs = true},
        &every_own.number_getter));
    must(quern_getter_create(every.world, &(quern_getter_def){.component = every.types.types[EVERY_ROWS]},
                             &every_own.rows_getter));
    must(quern_index_create(
        every.world, &(quern_index_def){.component = every.types.types[EVERY_NUMBER], .field = "word0"},
        &every_own.number_index));
    style.max_reaction_rounds = 64;
    every.schedule = setup_schedule_as(every.world, style, EVERY_PHASES);
    for (uint32_t set = 0; set < EVERY_SETS; set++) {
        const quern_set_def of_set = every_def_of_set(set);
        must(quern_schedule_add_set(every.schedule, &of_set));
    }
    every_system_terms[TARGET_SYSTEM].target = quern_entity_null();
}

void every_open(quern_schedule_def style, const quern_allocator *allocator)
{
    every_forms_open();
    every_draw_program(); /* definitions change while the program runs */
    open_world(style, allocator);
    every_own.dummy_entity = setup_entity(every.world);
    if (every.is_modelled)
        every_model_open(every_system_terms, every_system_phases, EVERY_SYSTEMS, every_reaction_terms,
                         EVERY_REACTIONS);
    every.frame = 0;
    fill_world();
    for (uint32_t i = 0; i <= LISTENING; i++)
        every_add_system(i);
    for (uint32_t i = 0; i < EVERY_REACTIONS; i++)
        every_add_system(EVERY_SYSTEMS + i);
    if (every.is_modelled) every_model_begin_schedule();
}

static void close_world(void)
{
    quern_event_reader_destroy(every_own.reader);
    quern_query_destroy(every_own.everyone);
    quern_query_destroy(every_own.few);
    quern_query_destroy(every_own.rare);
    quern_getter_destroy(every_own.number_getter);
    quern_getter_destroy(every_own.rows_getter);
    quern_index_destroy(every_own.number_index);
    quern_schedule_destroy(every.schedule);
    quern_world_destroy(every.world);
    for (uint32_t i = 0; i < OUTSIDE_TYPES; i++)
        cr_assert_eq(every_own.outside.counts[i], 0u);
}

void every_close(void)
{
    close_world();
    cr_assert_eq(tracked_live_count(&every_hook_counts[0]) + tracked_live_count(&every_hook_counts[1]), 0u);
    cr_assert_eq(every_hook_counts[0].broken_count + every_hook_counts[1].broken_count, 0u);
    if (every.is_modelled) every_model_close();
}

/* -------------------------------------------------------------------------------------------- copying */

static opened original;
static struct {
    quern_world *world;
    quern_schedule *schedule;
    every_handles types;
    every_form forms[EVERY_TYPES];
    quern_entity target;
} original_scene;

quern_world *every_open_copy(quern_schedule_def style)
{
    original = every_own;
    original_scene.world = every.world;
    original_scene.schedule = every.schedule;
    original_scene.types = every.types;
    memcpy(original_scene.forms, every_forms, sizeof every_forms);
    original_scene.target = every_system_terms[TARGET_SYSTEM].target;
    open_world(style, NULL);
    for (uint32_t i = 0; i < original.order_count; i++)
        every_add_system(original.order[i]);
    must(quern_world_copy(original_scene.world, every.world,
                          &(quern_save_def){.schedules = {original_scene.schedule}},
                          &(quern_load_def){.schedules = {every.schedule}}, NULL));
    memcpy(every_own.is_off, original.is_off, sizeof every_own.is_off);
    return every.world;
}

void every_close_copy(void)
{
    close_world();
    every_own = original;
    every.world = original_scene.world;
    every.schedule = original_scene.schedule;
    every.types = original_scene.types;
    memcpy(every_forms, original_scene.forms, sizeof every_forms);
    every_system_terms[TARGET_SYSTEM].target = original_scene.target;
}
