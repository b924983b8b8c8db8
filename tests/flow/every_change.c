/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Changes of the random program: making them, by command or by call, and drawing them. */

#include "tests/flow/every_parts.h"

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ changing */

/* A command that may fail only for lack of memory. */
void every_must_record(quern_result result)
{
    cr_assert(result == QUERN_OK || (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY), "%s",
              quern_error_message());
}

uint64_t every_fresh_id(actor *by)
{
    return every_mix(by->id_base + ++by->id_count) | 1;
}

uint32_t every_next_stream(void)
{
    static uint32_t last;
    return every.is_modelled ? ++last : 0;
}

static quern_result create(const actor *by, every_change *change)
{
    value_room rooms[EVERY_TYPES];
    quern_component components[EVERY_TYPES + 1];
    const void *values[EVERY_TYPES + 1];
    quern_prefab_value shared[EVERY_TYPES];
    uint32_t count = 0;
    quern_result result = QUERN_OK;
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        if (t != EVERY_ID && !every_has(change->set, t)) continue;
        if (t == EVERY_OFF && change->is_shared) continue;
        components[count] = every.types.types[t];
        values[count++] = t == EVERY_ID ? &change->id : every_value_of(t, change, &rooms[t]);
    }
    if (change->relation > 0) {
        components[count] = quern_relation_component(every.types.relations[change->relation - 1]);
        values[count++] = &change->target;
    }
    for (uint32_t i = 0; i < count && change->is_shared; i++)
        shared[i] = (quern_prefab_value){.component = components[i], .value = values[i]};
    if (change->is_shared) {
        result = quern_shared_create(every.world, shared, count, &change->entity);
    } else if (by->commands == NULL) {
        result = quern_entity_create_with(every.world, components, values, count, &change->entity);
    } else {
        change->entity = record_entity_with(by->commands, components, values, count);
        if (quern_entity_is_null(change->entity)) result = QUERN_ERROR_INVALID_ARGUMENT;
    }
    for (uint32_t t = 0; t < EVERY_TYPES; t++)
        if (every_has(change->set, t)) every_release_value(t, &rooms[t]);
    return result;
}

static quern_result spawn(const actor *by, every_change *change)
{
    quern_spawn_def def = {.parent = change->target};
    const quern_prefab prefab = every_own.prefabs[change->prefab];
    const uint32_t count = every_member_counts[change->prefab], type = change->value_type;
    value_room room;
    for (uint32_t m = 0; m < count; m++)
        def.overrides[m] = (quern_spawn_override){
            .component = every.types.types[EVERY_ID], .member = m, .column = &change->ids[m]};
    if (type > 0)
        def.overrides[count] = (quern_spawn_override){.component = every.types.types[type],
                                                      .member = change->value_member,
                                                      .column = every_value_of(type, change, &room)};
    const quern_result result =
        by->commands == NULL
            ? quern_prefab_spawn_many(every.world, prefab, 1, &def, &change->entity, change->members)
            : quern_commands_spawn(by->commands, prefab, &def, &change->entity);
    if (type > 0) every_release_value(type, &room);
    if (by->commands == NULL) return result;
    for (uint32_t m = 0; m < count && result == QUERN_OK; m++)
        change->members[m] = quern_commands_spawned_member(by->commands, prefab, change->entity, m);
    return result;
}

/* Lists the tree of an entity as the members of a prefab. Returns their number; EVERY_MEMBERS + 1 if it is larger. */
uint32_t every_list_tree(quern_entity root, quern_entity members[EVERY_MEMBERS])
{
    const quern_relation parent = every.types.relations[EVERY_PARENT];
    uint32_t count = 1;
    members[0] = root;
    for (uint32_t m = 0; m < count; m++)
        for (quern_entity child = quern_entity_first_source(every.world, members[m], parent);
             !quern_entity_is_null(child); child = quern_entity_next_sibling(every.world, child, parent)) {
            if (count == EVERY_MEMBERS) return EVERY_MEMBERS + 1;
            members[count++] = child;
        }
    return count;
}

/* Copies a tree: beside it, with the ids of the original; otherwise below change->target, with ids of its every_own. */
static quern_result clone(every_change *change)
{
    quern_spawn_def def = {.parent = change->target};
    quern_entity root;
    for (uint32_t m = 0; m < change->member_count; m++)
        def.overrides[m] = (quern_spawn_override){
            .component = every.types.types[EVERY_ID], .member = m, .column = &change->ids[m]};
    const quern_result result =
        quern_entity_clone(every.world, change->entity, change->has_value ? &def : NULL, &root);
    if (result == QUERN_OK) every_list_tree(root, change->members);
    return result;
}

/* Whether a callback may copy an entity: it exists, and has no children. The copies of children would have the ids of the
 * originals, by which the model tells entities apart. Callbacks read the links themselves, which do not change meanwhile. */
static bool is_childless(quern_entity entity)
{
    const quern__storage *storage = &every.world->storage;
    return quern__entities_find(&storage->entities, entity) != NULL &&
           quern__links_first(&storage->relations->parent->links, quern_entity_index(entity)) ==
               QUERN__SLOT_NONE;
}

/* Records a copy of an entity without children, which gets its id by another command. */
static quern_result record_clone(const actor *by, every_change *change)
{
    const quern_spawn_def def = {.parent = change->target};
    return quern_commands_clone(by->commands, change->entity, change->has_value ? &def : NULL,
                                &change->members[0]);
}

static quern_result override_shared(every_change *change)
{
    value_room room = {.words = {0}};
    const void *value = every_value_of(change->type, change, &room);
    const quern_result result = quern_entity_override_shared(
        every.world, change->entity, every.types.types[change->type], value != NULL ? value : &room);
    if (value != NULL) every_release_value(change->type, &room);
    if (result != QUERN_OK) return result;
    const quern_entity copy =
        quern_entity_target(every.world, change->entity, every.types.relations[EVERY_SHARED]);
    if (change->member_count > 0)
        cr_assert_eq(every_list_tree(copy, change->members), change->member_count);
    const void *found =
        quern_entity_get_shared(every.world, change->entity, every.types.types[change->type]);
    cr_assert_eq(found, quern_entity_get(every.world, copy, every.types.types[change->type]));
    return QUERN_OK;
}

typedef union edge_room {
    every_edge edge;
    uint64_t words[2];
} edge_room;

/* Returns the value of the edge that a change sets, as calls take it. */
static const void *edge_value_of(const every_change *change, edge_room *room)
{
    if (change->relation < EVERY_SINGLES)
        every_home_write(change->edge_value, room->words);
    else
        room->edge = (every_edge){.value = change->edge_value};
    return room;
}

static quern_result change_now(const actor *by, every_change *change)
{
    const quern_entity entity = change->entity;
    const quern_component type = every.types.types[change->type];
    const quern_relation relation = every.types.relations[change->relation % EVERY_RELATIONS];
    value_room room;
    edge_room edge;
    uint64_t event[4];
    quern_result result = QUERN_OK;
    switch (change->kind) {
    case EVERY_CREATE:
        return create(by, change);
    case EVERY_SPAWN:
        return spawn(by, change);
    case EVERY_CLONE:
        return clone(change);
    case EVERY_OVERRIDE:
        return override_shared(change);
    case EVERY_DESTROY:
        return quern_entity_destroy(every.world, entity);
    case EVERY_ADD:
    case EVERY_SET: {
        const bool has_value = change->has_value || change->kind == EVERY_SET;
        const void *value = has_value ? every_value_of(change->type, change, &room) : NULL;
        if (change->looks)
            result = change->kind == EVERY_ADD
                         ? quern_entity_ensure(every.world, entity, type, NULL, NULL)
                         : quern_entity_set_if_different(every.world, entity, type, value, NULL);
        else
            result = change->kind == EVERY_ADD ? quern_entity_add(every.world, entity, type, value)
                                               : quern_entity_set(every.world, entity, type, value);
        if (has_value) every_release_value(change->type, &room);
        return result;
    }
    case EVERY_REMOVE:
        return quern_entity_remove(every.world, entity, type);
    case EVERY_TOGGLE:
        return quern_entity_set_component_enabled(every.world, entity, type, change->enabled);
    case EVERY_SWITCH:
        return quern_entity_set_enabled(every.world, entity, change->enabled);
    case EVERY_RELATE:
        if (change->edge_value != 0)
            return quern_entity_relate_with(every.world, entity, relation, change->target,
                                            edge_value_of(change, &edge));
        return quern_entity_relate(every.world, entity, relation, change->target);
    case EVERY_SET_EDGE:
        return quern_entity_set_edge_value(every.world, entity, relation, change->target,
                                           edge_value_of(change, &edge));
    case EVERY_UNRELATE:
        return quern_entity_unrelate(every.world, entity, relation);
    case EVERY_UNRELATE_FROM:
        return quern_entity_unrelate_from(every.world, entity, relation, change->target);
    case EVERY_RENAME:
        return quern_entity_set_name(every.world, entity, change->name);
    case EVERY_MARK:
        return quern_entity_mark_changed(every.world, entity, type);
    case EVERY_PLACE:
        return quern_entity_move_before(every.world, entity, relation, change->target);
    case EVERY_CLEAR:
        return quern_entity_clear(every.world, entity);
    case EVERY_EMIT:
        return quern_world_emit(every.world, every_own.event,
                                every_ping_write((ping){change->id, change->entity}, event), 1);
    default:
        return QUERN_ERROR_INVALID_ARGUMENT;
    }
}

static quern_result record(const actor *by, every_change *change)
{
    const quern_entity entity = change->entity;
    const quern_component type = every.types.types[change->type];
    const quern_relation relation = every.types.relations[change->relation % EVERY_RELATIONS];
    const quern_combine combines[] = {QUERN_SUM, QUERN_MIN, QUERN_MAX};
    value_room room;
    edge_room edge;
    uint64_t event[4];
    quern_result result = QUERN_OK;
    switch (change->kind) {
    case EVERY_CREATE:
        return create(by, change);
    case EVERY_SPAWN:
        return spawn(by, change);
    case EVERY_DESTROY:
        return quern_commands_destroy(by->commands, entity);
    case EVERY_ADD:
    case EVERY_SET: {
        const bool has_value = change->has_value || change->kind == EVERY_SET;
        const void *value = has_value ? every_value_of(change->type, change, &room) : NULL;
        result = change->kind == EVERY_ADD ? quern_commands_add(by->commands, entity, type, value)
                                           : quern_commands_set(by->commands, entity, type, value);
        if (has_value) every_release_value(change->type, &room);
        return result;
    }
    case EVERY_REMOVE:
        return quern_commands_remove(by->commands, entity, type);
    case EVERY_TOGGLE:
        return quern_commands_set_component_enabled(by->commands, entity, type, change->enabled);
    case EVERY_SWITCH:
        return quern_commands_set_enabled(by->commands, entity, change->enabled);
    case EVERY_SET_EDGE:
        return quern_commands_set_edge_value(by->commands, entity, relation, change->target,
                                             edge_value_of(change, &edge));
    case EVERY_RELATE:
        if (change->edge_value != 0)
            return quern_commands_relate_with(by->commands, entity, relation, change->target,
                                              edge_value_of(change, &edge));
        if (change->relation < EVERY_SINGLES && change->has_value)
            return quern_commands_set(by->commands, entity, quern_relation_component(relation),
                                      &change->target);
        return quern_commands_relate(by->commands, entity, relation, change->target);
    case EVERY_UNRELATE:
        if (change->has_value)
            return quern_commands_remove(by->commands, entity, quern_relation_component(relation));
        return quern_commands_unrelate(by->commands, entity, relation);
    case EVERY_UNRELATE_FROM:
        return quern_commands_unrelate_from(by->commands, entity, relation, change->target);
    case EVERY_RENAME:
        return quern_commands_set_name(by->commands, entity, change->name);
    case EVERY_ACCUMULATE:
        return quern_commands_accumulate(by->commands, entity, type,
                                         every_value_of(change->type, change, &room),
                                         combines[change->combine]);
    case EVERY_EMIT: {
        const ping value = {change->id, change->entity};
        if (by->context == NULL) return QUERN_ERROR_INVALID_ARGUMENT;
        const bool is_emitted =
            every_event_form == 0
                ? quern_emit(quern_context_emitter(by->context, every_own.event), &value)
                : quern_context_emit(by->context, every_own.event, every_ping_write(value, event), 1);
        return is_emitted ? QUERN_OK : QUERN_ERROR_INVALID_ARGUMENT;
    }
    case EVERY_CLONE:
        return record_clone(by, change);
    case EVERY_OVERRIDE:
    case EVERY_MARK:
    case EVERY_PLACE:
    case EVERY_CLEAR:
        break; /* calls only */
    }
    return QUERN_ERROR_INVALID_ARGUMENT;
}

uint64_t every_feature_of(const every_change *change)
{
    static const every_feature of_kinds[] = {
        EVERY_USES_CREATE,     EVERY_USES_DESTROY, EVERY_USES_ADD,         EVERY_USES_SET,
        EVERY_USES_REMOVE,     EVERY_USES_TOGGLE,  EVERY_USES_TREE_SWITCH, EVERY_USES_PARENT,
        EVERY_USES_PARENT,     EVERY_USES_PARENT,  EVERY_USES_PARENT,      EVERY_USES_NAME,
        EVERY_USES_ACCUMULATE, EVERY_USES_SPAWN,   EVERY_USES_CLONE,       EVERY_USES_OVERRIDE,
        EVERY_USES_EVENT,      EVERY_USES_MARK,    EVERY_USES_PLACE,       EVERY_USES_CLEAR,
    };
    static const every_feature of_relations[EVERY_RELATIONS] = {
        EVERY_USES_PARENT, EVERY_USES_LEVELS, EVERY_USES_REFUSAL, EVERY_USES_RING,
        EVERY_USES_SHARED, EVERY_USES_EDGES,  EVERY_USES_EDGES};
    uint64_t features = every_bit(of_kinds[change->kind]);
    if (change->kind == EVERY_CLONE && change->is_recorded) features = every_bit(EVERY_USES_CLONE_COMMAND);
    if (change->looks) features |= every_bit(EVERY_USES_LOOKS);
    const uint32_t set = change->kind == EVERY_CREATE ? change->set : BIT(change->type);
    if (change->kind >= EVERY_RELATE && change->kind <= EVERY_UNRELATE_FROM)
        return every_bit(of_relations[change->relation]) |
               (change->edge_value != 0 ? every_bit(EVERY_USES_EDGE_VALUE) : 0);
    if (change->kind == EVERY_CREATE && change->relation > 0)
        features |= every_bit(of_relations[change->relation - 1]);
    if (change->is_shared || (change->kind == EVERY_SPAWN && change->prefab == SHARING_PREFAB))
        features |= every_bit(EVERY_USES_SHARED);
    if (change->value_type > 0) features |= every_bit(EVERY_USES_SPAWN_VALUE);
    if (change->kind == EVERY_SPAWN && !quern_entity_is_null(change->target))
        features |= every_bit(EVERY_USES_SPAWN_CHANGED) | every_bit(EVERY_USES_PARENT);
    if (change->kind != EVERY_CREATE && change->kind != EVERY_ADD && change->kind != EVERY_SET &&
        change->kind != EVERY_REMOVE)
        return features;
    if ((set & (BIT(EVERY_NEED) | BIT(EVERY_DEEP))) != 0) features |= every_bit(EVERY_USES_REQUIRED);
    if (every_has(set, EVERY_GIVEN) && change->kind == EVERY_ADD && !change->has_value)
        features |= every_bit(EVERY_USES_DEFAULT);
    if (every_has(set, EVERY_LINK)) features |= every_bit(EVERY_USES_LINK);
    if (every_has(set, EVERY_HOOKED)) features |= every_bit(EVERY_USES_HOOKS);
    if (every_has(set, EVERY_LIST)) features |= every_bit(EVERY_USES_LIST);
    if (every_has(set, EVERY_OFF)) features |= every_bit(EVERY_USES_OFF_TAG);
    return features;
}

every_attempt every_begin_attempt(void)
{
    return (every_attempt){.hash = every.failing != NULL ? quern_world_hash(every.world) : 0};
}

/* Calls that fail for lack of memory must have changed nothing, and succeed when there is memory again. */
bool every_must_repeat(every_attempt *attempt, quern_result result)
{
    if (attempt->has_failed) failing_allocator_pause(every.failing, false);
    if (every.failing == NULL || result != QUERN_ERROR_OUT_OF_MEMORY) return false;
    cr_assert_eq(quern_world_hash(every.world), attempt->hash, "seed %llu, frame %llu: %s",
                 (unsigned long long)every.seed, (unsigned long long)every.frame, quern_error_message());
    every.failed_count++;
    attempt->has_failed = true;
    failing_allocator_pause(every.failing, true);
    every_check_outside(every.world);
    return true;
}

static quern_result change_or_repeat(const actor *by, every_change *change)
{
    every_attempt attempt = every_begin_attempt();
    quern_result result;
    do
        result = change_now(by, change);
    while (every_must_repeat(&attempt, result));
    return result;
}

/* Makes a change, by command or by call, and completes it. Returns the entity, or null if the library refuses the change. */
static quern_entity make_here(actor *by, every_change *given)
{
    every_change change = *given;
    change.stream = by->stream;
    change.is_by_level = by->is_by_level;
    change.ordinal = by->ordinal;
    change.features |= by->features;
    if (by->is_mute) return quern_entity_null();
    const quern_result result = by->commands != NULL ? record(by, &change) : change_or_repeat(by, &change);
    change.features |= every_feature_of(&change);
    if (every.is_modelled && by->commands != NULL && result == QUERN_OK)
        every_model_record(&change, by->waits);
    if (every.is_modelled && by->commands == NULL) {
        const bool must_succeed = every_model_now(&change);
        cr_assert_eq(result == QUERN_OK, must_succeed, "seed %llu, frame %llu: a call of kind %d %s: %s",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, (int)change.kind,
                     must_succeed ? "failed" : "succeeded", quern_error_message());
    }
    *given = change;
    return result == QUERN_OK ? change.entity : quern_entity_null();
}

quern_entity every_make(actor *by, every_change change)
{
    return make_here(by, &change);
}

/* ------------------------------------------------------------------------------------------- drawing */

quern_entity every_pick(actor *by)
{
    return every.known[random_below(&by->random, every.known_count)];
}

uint32_t every_pick_type(actor *by)
{
    static const uint32_t likely[] = {EVERY_NUMBER, EVERY_NUMBER, EVERY_LINK, EVERY_HOOKED, EVERY_TAG,
                                      EVERY_TAG,    EVERY_FLAG,   EVERY_MODE, EVERY_NEED,   EVERY_DEEP,
                                      EVERY_GIVEN,  EVERY_WIDE,   EVERY_ROWS, EVERY_LIST,   EVERY_OFF};
    const uint32_t type = likely[random_below(&by->random, COUNT_OF(likely))];
    return type == EVERY_HOOKED && !every.has_hooks ? EVERY_NUMBER : type;
}

uint32_t every_pick_relation(actor *by)
{
    static const uint32_t likely[] = {EVERY_PARENT, EVERY_PARENT, EVERY_PARENT, EVERY_PARENT, EVERY_HOME,
                                      EVERY_HOME,   EVERY_LOCK,   EVERY_RING,   EVERY_RING,   EVERY_SHARED,
                                      EVERY_SHARED, EVERY_LIKES,  EVERY_LIKES,  EVERY_PART};
    return likely[random_below(&by->random, COUNT_OF(likely))];
}

void every_draw_words(actor *by, every_change *change)
{
    for (uint32_t i = 1; i < EVERY_WORDS; i++)
        change->words[i] = random_below(&by->random, 1000);
    change->target = random_chance(&by->random, 70) ? every_pick(by) : quern_entity_null();
}

static void draw_name(actor *by, every_change *change)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", ""};
    snprintf(change->name, sizeof change->name, "%s", names[random_below(&by->random, COUNT_OF(names))]);
}

static quern_entity draw_create(actor *by)
{
    every_change change = {.kind = EVERY_CREATE, .id = every_fresh_id(by)};
    const uint32_t count = random_below(&by->random, 4);
    every_draw_words(by, &change);
    for (uint32_t i = 0; i < count; i++)
        change.set |= BIT(every_pick_type(by));
    if (random_chance(&by->random, 40)) {
        change.relation = 1 + random_below(&by->random, EVERY_SINGLES);
        change.target = every_pick(by);
    }
    return every_make(by, change);
}

/* Draws a value of a member, which has the type. */
static void draw_spawn_value(actor *by, every_change *change)
{
    change->value_member = random_below(&by->random, every_member_counts[change->prefab]);
    every_draw_words(by, change);
    for (uint32_t i = 0; i < 8 && change->value_type == 0; i++) {
        const uint32_t type = every_pick_type(by);
        if (every_types[type].word_count > 0 &&
            every_has(every_member_sets[change->prefab][change->value_member], type))
            change->value_type = type;
    }
}

quern_entity every_draw_spawn(actor *by, bool is_plain)
{
    if (every.has_no_prefabs) return quern_entity_null();
    every_change change = {.kind = EVERY_SPAWN, .prefab = random_below(&by->random, EVERY_PREFABS)};
    for (uint32_t m = 0; m < every_member_counts[change.prefab]; m++)
        change.ids[m] = every_fresh_id(by);
    if (random_chance(&by->random, 40)) draw_spawn_value(by, &change);
    change.target = !is_plain && random_chance(&by->random, 50) ? every_pick(by) : quern_entity_null();
    return every_make(by, change);
}

/* Creates an entity with values to share. */
quern_entity every_draw_shared(actor *by)
{
    every_change change = {
        .kind = EVERY_CREATE, .id = every_fresh_id(by), .set = BIT(EVERY_OFF), .is_shared = true};
    every_draw_words(by, &change);
    for (uint32_t i = 1 + random_below(&by->random, 4); i > 0; i--)
        change.set |= BIT(every_pick_type(by));
    return every_make(by, change);
}

/* Gives the copies of a tree ids of their own, instead of those of the original. */
static void give_ids(actor *by, const every_change *copied, const quern_entity *members)
{
    for (uint32_t m = 0; m < copied->member_count; m++) {
        every_change change = {
            .kind = EVERY_SET, .entity = members[m], .type = EVERY_ID, .has_value = true};
        change.words[0] = copied->ids[m];
        every_make(by, change);
    }
}

static void draw_clone(actor *by, quern_entity entity)
{
    quern_entity members[EVERY_MEMBERS];
    every_change change = {.kind = EVERY_CLONE, .entity = entity};
    change.has_value = random_chance(&by->random, 50); /* ids of its own */
    change.target = quern_entity_null();
    if (!quern_entity_is_alive(every.world, entity) || every.known_count > CROWD) return;
    change.member_count = every_list_tree(entity, members);
    if (change.member_count > EVERY_MEMBERS) return;
    for (uint32_t m = 0; m < change.member_count; m++)
        change.ids[m] = every_fresh_id(by);
    if (!change.has_value)
        change.target = quern_entity_target(every.world, entity, every.types.relations[EVERY_PARENT]);
    else if (random_chance(&by->random, 50))
        change.target = every_pick(by);
    const quern_entity root = make_here(by, &change);
    if (!change.has_value && !quern_entity_is_null(root)) give_ids(by, &change, change.members);
}

/* Copies an entity by command, and may change the copy. */
static void draw_recorded_clone(actor *by, quern_entity entity)
{
    every_change change = {.kind = EVERY_CLONE, .entity = entity, .member_count = 1, .is_recorded = true};
    change.has_value = random_chance(&by->random, 50); /* a parent other than that of the entity */
    const uint64_t id = every_fresh_id(by);
    const quern_entity other = every_pick(by);
    if (by->waits || by->is_interrupted || every.known_count > CROWD ||
        quern_entity_is_provisional(entity) || !is_childless(entity))
        return;
    change.ids[0] = id;
    if (change.has_value && random_chance(&by->random, 50)) change.target = other;
    if (quern_entity_is_null(make_here(by, &change))) return;
    give_ids(by, &change, change.members);
    if (random_chance(&by->random, 60)) every_draw_some(by, change.members[0]);
}

static void draw_override(actor *by, quern_entity entity)
{
    quern_entity members[EVERY_MEMBERS], shared;
    every_change change = {.kind = EVERY_OVERRIDE, .entity = entity};
    if (!quern_entity_is_alive(every.world, entity) || every.known_count > CROWD) return;
    every_draw_words(by, &change);
    shared = quern_entity_target(every.world, entity, every.types.relations[EVERY_SHARED]);
    if (quern_entity_is_null(shared) && random_chance(&by->random, 80)) {
        shared = random_chance(&by->random, 50) ? every_draw_shared(by) : every_pick(by);
        if (quern_entity_equal(shared, entity)) return;
        every_make(by,
                   (every_change){
                       .kind = EVERY_RELATE, .entity = entity, .relation = EVERY_SHARED, .target = shared});
        shared = quern_entity_target(every.world, entity, every.types.relations[EVERY_SHARED]);
    }
    for (uint32_t i = 0; i < 8; i++) { /* likely one that the shared entity has */
        change.type = every_pick_type(by);
        if (!quern_entity_is_null(shared) && every_types[change.type].word_count > 0 &&
            quern_entity_has(every.world, shared, every.types.types[change.type]))
            break;
    }
    if (!quern_entity_is_null(shared) &&
        !quern_entity_equal(quern_entity_target(every.world, shared, every.types.relations[EVERY_PARENT]),
                            entity))
        change.member_count = every_list_tree(shared, members);
    if (change.member_count > EVERY_MEMBERS) return;
    for (uint32_t m = 0; m < change.member_count; m++)
        change.ids[m] = every_fresh_id(by);
    const quern_entity made = make_here(by, &change);
    if (!quern_entity_is_null(made)) give_ids(by, &change, change.members);
}

static void draw_value(actor *by, quern_entity entity)
{
    every_change change = {.kind = random_chance(&by->random, 50) ? EVERY_SET : EVERY_ADD,
                           .entity = entity};
    change.type = every_pick_type(by);
    change.has_value = random_chance(&by->random, change.type == EVERY_GIVEN ? 20 : 50);
    every_draw_words(by, &change);
    if (by->commands == NULL && change.type != EVERY_HOOKED && random_chance(&by->random, 30)) {
        change.looks = true;
        change.has_value = false;
        for (uint32_t i = 1; i < EVERY_WORDS; i++)
            change.words[i] %= 4; /* few values, so that some are equal */
    }
    every_make(by, change);
}

static void draw_remove(actor *by, quern_entity entity)
{
    every_make(by, (every_change){.kind = EVERY_REMOVE, .entity = entity, .type = every_pick_type(by)});
}

static void draw_toggle(actor *by, quern_entity entity)
{
    const uint32_t type = random_chance(&by->random, 60) ? EVERY_MODE : EVERY_FLAG;
    every_make(by, (every_change){.kind = EVERY_TOGGLE,
                                  .entity = entity,
                                  .type = type,
                                  .enabled = random_chance(&by->random, 40)});
}

static void draw_relation(actor *by, quern_entity entity)
{
    every_change change = {.entity = entity, .relation = every_pick_relation(by), .target = every_pick(by)};
    const uint32_t kind = random_below(&by->random, 10);
    change.kind = kind < 6 ? EVERY_RELATE : kind < 8 ? EVERY_UNRELATE : EVERY_UNRELATE_FROM;
    change.has_value = random_chance(&by->random, 20);
    if (every_has_values(change.relation) && kind < 8) {
        if (kind >= 4) change.kind = EVERY_SET_EDGE;
        if (kind >= 2) change.edge_value = 1 + random_below(&by->random, 1000);
        if (kind >= 4 && random_chance(&by->random, 20)) change.kind = EVERY_UNRELATE;
        if (change.kind == EVERY_UNRELATE) change.edge_value = 0;
    }
    if (quern_entity_equal(change.target, entity)) return;
    every_make(by, change);
}

static void draw_accumulate(actor *by, quern_entity entity)
{
    every_change change = {.kind = EVERY_ACCUMULATE, .entity = entity, .type = EVERY_NUMBER};
    every_draw_words(by, &change);
    change.combine = random_below(&by->random, 3);
    change.target = quern_entity_null();
    if (by->commands != NULL) every_make(by, change);
}

static void draw_emit(actor *by, quern_entity entity)
{
    if (by->context != NULL || by->commands == NULL)
        every_make(by, (every_change){.kind = EVERY_EMIT, .entity = entity, .id = every_fresh_id(by)});
}

static void draw_name_of(actor *by, quern_entity entity)
{
    every_change change = {.kind = EVERY_RENAME, .entity = entity};
    draw_name(by, &change);
    every_make(by, change);
}

static void draw_switch(actor *by, quern_entity entity)
{
    every_make(by, (every_change){
                       .kind = EVERY_SWITCH, .entity = entity, .enabled = random_chance(&by->random, 55)});
}

/* Moves an entity among its siblings. */
static void draw_place(actor *by, quern_entity entity)
{
    every_change change = {
        .kind = EVERY_PLACE, .entity = entity, .relation = random_chance(&by->random, 70) ? 0 : 2};
    change.target = random_chance(&by->random, 50) ? every_pick(by) : quern_entity_null();
    if (!quern_entity_is_null(change.target)) /* likely a sibling */
        change.target = quern_entity_first_source(
            every.world, quern_entity_target(every.world, entity, every.types.relations[change.relation]),
            every.types.relations[change.relation]);
    every_make(by, change);
}

static void draw_mark(actor *by, quern_entity entity)
{
    every_make(by, (every_change){.kind = EVERY_MARK, .entity = entity, .type = every_pick_type(by)});
}

/* Clears an entity, which gets its id again at once. */
static void draw_clear(actor *by, quern_entity entity)
{
    const uint64_t *id = quern_entity_get(every.world, entity, every.types.types[EVERY_ID]);
    every_change given = {.kind = EVERY_SET, .entity = entity, .type = EVERY_ID, .has_value = true};
    if (id != NULL) given.words[0] = *id;
    if (!quern_entity_is_null(every_make(by, (every_change){.kind = EVERY_CLEAR, .entity = entity})))
        every_make(by, given);
}

/* Several changes of one entity, which may be new. */
void every_draw_some(actor *by, quern_entity entity)
{
    if (quern_entity_is_null(entity)) return;
    for (uint32_t i = 1 + random_below(&by->random, 4); i > 0; i--)
        switch (random_below(&by->random, by->commands == NULL ? 14 : 12)) {
        case 11:
            if (by->commands == NULL)
                draw_override(by, entity);
            else
                draw_recorded_clone(by, entity);
            break;
        case 12:
            draw_clone(by, entity);
            break;
        case 13:
            draw_clear(by, entity);
            break;
        case 0:
        case 1:
        case 2:
            draw_value(by, entity);
            break;
        case 3:
            draw_remove(by, entity);
            break;
        case 4:
            draw_toggle(by, entity);
            break;
        case 5:
        case 6:
            draw_relation(by, entity);
            break;
        case 7:
            draw_name_of(by, entity);
            break;
        case 8:
            if (by->commands == NULL)
                draw_place(by, entity);
            else
                draw_accumulate(by, entity);
            break;
        case 9:
            if (by->commands == NULL) draw_mark(by, entity);
            draw_emit(by, entity);
            break;
        default:
            draw_switch(by, entity);
            break;
        }
}

void every_act(actor *by, quern_entity self)
{
    const quern_entity entity =
        random_chance(&by->random, 60) && !quern_entity_is_null(self) ? self : every_pick(by);
    const bool is_crowded = every.known_count > CROWD;
    switch (random_below(&by->random, by->commands == NULL ? 28 : 25)) {
    case 24:
        if (by->commands == NULL)
            draw_override(by, entity);
        else
            draw_recorded_clone(by, entity);
        break;
    case 25:
        draw_override(by, entity);
        break;
    case 26:
        draw_clone(by, entity);
        break;
    case 27:
        draw_clear(by, entity);
        break;
    case 0:
    case 1:
        if (is_crowded)
            every_make(by, (every_change){.kind = EVERY_DESTROY, .entity = every_pick(by)});
        else
            every_draw_some(by, draw_create(by));
        break;
    case 2:
        if (!is_crowded) every_draw_spawn(by, true);
        break;
    case 3:
        if (!is_crowded) {
            const uint64_t features = by->features;
            by->features |= every_bit(EVERY_USES_SPAWN_CHANGED);
            every_draw_some(by, every_draw_spawn(by, false));
            by->features = features;
        }
        break;
    case 4:
        if (is_crowded || random_chance(&by->random, 40))
            every_make(by, (every_change){.kind = EVERY_DESTROY, .entity = entity});
        break;
    case 5:
    case 6:
    case 7:
        draw_value(by, entity);
        break;
    case 8:
        draw_remove(by, entity);
        break;
    case 9:
        draw_toggle(by, entity);
        break;
    case 10:
    case 11:
    case 12:
        draw_relation(by, entity);
        break;
    case 13:
        draw_name_of(by, entity);
        break;
    case 14:
        if (by->commands == NULL)
            draw_place(by, entity);
        else
            draw_accumulate(by, entity);
        break;
    case 15:
        if (by->commands == NULL) draw_mark(by, entity);
        draw_emit(by, entity);
        break;
    case 16:
        draw_switch(by, entity);
        break;
    default:
        every_draw_some(by, entity);
        break;
    }
}
