/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The random program: what it decides before the first frame, the systems and reactions of a frame, and the calls
 * between frames. Each decision is a function of the seed, the frame, the system and the id of the row's entity, so
 * that all runs of a seed do the same. */

#include "tests/flow/every.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(type) ((uint32_t)1 << (type))

enum { START = 90, CROWD = 220, EXCLUSIVE_PHASE = 1 };

every_scene every;

typedef struct ping {
    uint64_t id;
    quern_entity entity;
} ping;

/* ---------------------------------------------------------------------------------------- the program */

/* What a seed decides before the first frame. */
static every_terms systems[EVERY_SYSTEMS], reactions[EVERY_REACTIONS];
static uint32_t system_phases[EVERY_SYSTEMS];

enum {
    LEVEL_SYSTEM = 3,
    TARGET_SYSTEM = 7,
    PLAIN_SYSTEMS = 8,
    LOOKING = PLAIN_SYSTEMS,
    EXCLUSIVE,
    READING,
    LISTENING
};

enum { SHARING_PREFAB = 3 }; /* the one whose instances share values */
static uint32_t member_counts[EVERY_PREFABS];
static tracked_counts hook_counts;

/* Objects outside of the world of the program, one for each entity with a type that has entity hooks. */
enum { OUTSIDE_TYPES = 2, OUTSIDE_SLOTS = 1 << 16 };
static const uint32_t outside_types[OUTSIDE_TYPES] = {EVERY_NUMBER, EVERY_TAG};

typedef struct outside_objects {
    quern_entity entities[OUTSIDE_TYPES][OUTSIDE_SLOTS]; /* by slot */
    uint32_t counts[OUTSIDE_TYPES];
} outside_objects;

/* What the program has in its world, and in the schedule. */
typedef struct opened {
    quern_system systems[EVERY_SYSTEMS], reactions[EVERY_REACTIONS];
    uint32_t
        order[EVERY_SYSTEMS + EVERY_REACTIONS]; /* of registration: systems, and EVERY_SYSTEMS + reaction */
    uint32_t order_count;
    bool is_off[PLAIN_SYSTEMS + EVERY_REACTIONS]; /* systems, then reactions */
    quern_event event;
    quern_event_reader *reader;
    quern_prefab prefabs[EVERY_PREFABS];
    quern_query *everyone, *few;
    quern_index *number_index; /* on the first number of EVERY_NUMBER */
    quern_entity dummy_entity;
    outside_objects outside;
} opened;

static opened own;

static outside_objects of_replica;

static outside_objects *outside_of(const quern_world *in)
{
    return in == every.world ? &own.outside : in == every.replica ? &of_replica : NULL;
}

static void add_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = (uint32_t)(uintptr_t)user_data, slot = quern_entity_index(entity);
    outside_objects *outside = outside_of(in);
    if (outside == NULL) return;
    cr_assert(slot < OUTSIDE_SLOTS && quern_entity_is_null(outside->entities[i][slot]),
              "on_add of '%s' twice", every_types[outside_types[i]].name);
    outside->entities[i][slot] = entity;
    outside->counts[i]++;
}

static void set_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = (uint32_t)(uintptr_t)user_data;
    const outside_objects *outside = outside_of(in);
    if (outside != NULL) cr_assert_eq(outside->entities[i][quern_entity_index(entity)].bits, entity.bits);
}

static void remove_outside(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const uint32_t i = (uint32_t)(uintptr_t)user_data;
    outside_objects *outside = outside_of(in);
    set_outside(in, entity, value, user_data);
    if (outside == NULL) return;
    outside->entities[i][quern_entity_index(entity)] = quern_entity_null();
    outside->counts[i]--;
}

static void give_entity_hooks(quern_component_def *def, uint32_t type)
{
    for (uint32_t i = 0; i < OUTSIDE_TYPES; i++)
        if (outside_types[i] == type)
            def->entity_hooks = (quern_entity_hooks){.on_add = add_outside,
                                                     .on_set = def->size_bytes > 0 ? set_outside : NULL,
                                                     .on_remove = remove_outside,
                                                     .user_data = (void *)(uintptr_t)i};
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
    const quern_component_def one = {.name = "value of home",
                                     .size_bytes = 8,
                                     .alignment_bytes = 8,
                                     .fields = {{.name = "value", .type = QUERN_FIELD_U64}}};
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
    const quern_field numbers =
        QUERN_LIST_FIELD(every_list, numbers, uint64_t); /* lives as long as its elements */
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        const every_type *type = &every_types[t];
        quern_component_def def = {.name = type->name,
                                   .size_bytes = every_value_bytes(t),
                                   .alignment_bytes = type->word_count > 0 ? 8 : 0,
                                   .can_disable = type->can_disable,
                                   .row_changes = type->row_changes,
                                   .default_value = type->has_default ? every_default : NULL};
        uint32_t required_count = 0;
        for (uint32_t r = 0; r < t; r++)
            if (every_has(type->required, r)) def.required[required_count++] = handles->types[r];
        if (t == EVERY_ID || t == EVERY_NEED)
            def.fields[0] = (quern_field){.name = "value", .type = QUERN_FIELD_U64};
        if (t == EVERY_NUMBER)
            def.fields[0] = (quern_field){.name = "values", .type = QUERN_FIELD_I64, .count = 2};
        if (t == EVERY_LINK) {
            def.fields[0] = (quern_field){.name = "entity", .type = QUERN_FIELD_ENTITY};
            def.fields[1] = (quern_field){.name = "value", .type = QUERN_FIELD_U64, .offset_bytes = 8};
        }
        if (t == EVERY_MODE || t == EVERY_DEEP)
            def.fields[0] = (quern_field){.name = "value", .type = QUERN_FIELD_U64};
        if (t == EVERY_GIVEN || t == EVERY_ROWS)
            def.fields[0] = (quern_field){.name = "values", .type = QUERN_FIELD_U64, .count = 2};
        if (t == EVERY_WIDE)
            def.fields[0] = (quern_field){.name = "values", .type = QUERN_FIELD_U64, .count = 8};
        if (t == EVERY_LIST) {
            def.fields[0] = numbers;
            def.fields[1] = (quern_field)QUERN_FIELD(every_list, text);
        }
        if (every_has_entity_hooks()) give_entity_hooks(&def, t);
        if (t == EVERY_HOOKED)
            handles->types[t] = tracked_register(into, type->name, &hook_counts);
        else if (t == EVERY_OFF)
            handles->types[t] = quern_world_disabled_tag(into);
        else
            must(quern_component_register(into, &def, &handles->types[t]));
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

/* ------------------------------------------------------------------------------------------ changing */

/* Something that changes the world: a callback that records, or code that calls. */
typedef struct actor {
    quern_commands *commands; /* NULL: immediate calls */
    quern_context *context;   /* NULL outside of systems */
    uint32_t stream, ordinal;
    bool is_by_level;
    bool waits;   /* the commands are those of the world */
    bool is_mute; /* there is no memory for commands */
    uint64_t features;
    random_source random;
    uint64_t id_base;
    uint32_t id_count;
} actor;

/* A command that may fail only for lack of memory. */
static void must_record(quern_result result)
{
    cr_assert(result == QUERN_OK || (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY), "%s",
              quern_error_message());
}

static uint64_t fresh_id(actor *by)
{
    return every_mix(by->id_base + ++by->id_count) | 1;
}

static uint32_t next_stream(void)
{
    static uint32_t last;
    return every.is_modelled ? ++last : 0;
}

/* The value of a type from the words of a change, until release_value. */
typedef union value_room {
    tracked hooked;
    every_list list;
    uint64_t words[EVERY_WORDS];
} value_room;

static const void *value_of(uint32_t type, const every_change *change, value_room *room)
{
    const uint32_t first = every_types[type].first_word, count = every_types[type].word_count;
    if (count == 0) return NULL;
    if (type == EVERY_HOOKED) {
        tracked_construct(&room->hooked, change->words[first], &hook_counts);
        return &room->hooked;
    }
    if (type == EVERY_LIST) {
        room->list = (every_list){.text = {{{0}, 0, 0}}};
        every_list_write(&room->list, change->words[first]);
        return &room->list;
    }
    memcpy(room->words, &change->words[first], count * sizeof *room->words);
    if (type == EVERY_LINK) room->words[0] = change->target.bits;
    return room->words;
}

static void release_value(uint32_t type, value_room *room)
{
    if (type == EVERY_HOOKED) tracked_destroy(&room->hooked, &hook_counts);
    if (type != EVERY_LIST) return;
    quern_list_free(&room->list.numbers.list);
    quern_string_free(&room->list.text);
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
        values[count++] = t == EVERY_ID ? &change->id : value_of(t, change, &rooms[t]);
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
        if (every_has(change->set, t)) release_value(t, &rooms[t]);
    return result;
}

static quern_result spawn(const actor *by, every_change *change)
{
    quern_spawn_def def = {.parent = change->target};
    const uint32_t count = member_counts[change->prefab];
    for (uint32_t m = 0; m < count; m++)
        def.overrides[m] = (quern_spawn_override){
            .component = every.types.types[EVERY_ID], .member = m, .column = &change->ids[m]};
    if (by->commands == NULL)
        return quern_prefab_spawn_many(every.world, own.prefabs[change->prefab], 1, &def, &change->entity,
                                       change->members);
    const quern_result result =
        quern_commands_spawn(by->commands, own.prefabs[change->prefab], &def, &change->entity);
    for (uint32_t m = 0; m < count && result == QUERN_OK; m++)
        change->members[m] =
            quern_commands_spawned_member(by->commands, own.prefabs[change->prefab], change->entity, m);
    return result;
}

/* Lists the tree of an entity as the members of a prefab. Returns their number; EVERY_MEMBERS + 1 if it is larger. */
static uint32_t list_tree(quern_entity root, quern_entity members[EVERY_MEMBERS])
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

/* Copies a tree: beside it, with the ids of the original; otherwise below change->target, with ids of its own. */
static quern_result clone(every_change *change)
{
    quern_spawn_def def = {.parent = change->target};
    quern_entity root;
    for (uint32_t m = 0; m < change->member_count; m++)
        def.overrides[m] = (quern_spawn_override){
            .component = every.types.types[EVERY_ID], .member = m, .column = &change->ids[m]};
    const quern_result result =
        quern_entity_clone(every.world, change->entity, change->has_value ? &def : NULL, &root);
    if (result == QUERN_OK) list_tree(root, change->members);
    return result;
}

static quern_result override_shared(every_change *change)
{
    value_room room;
    const void *value = value_of(change->type, change, &room);
    const quern_result result = quern_entity_override_shared(
        every.world, change->entity, every.types.types[change->type], value != NULL ? value : &room);
    if (value != NULL) release_value(change->type, &room);
    if (result != QUERN_OK) return result;
    const quern_entity copy =
        quern_entity_target(every.world, change->entity, every.types.relations[EVERY_SHARED]);
    if (change->member_count > 0) cr_assert_eq(list_tree(copy, change->members), change->member_count);
    const void *found =
        quern_entity_get_shared(every.world, change->entity, every.types.types[change->type]);
    cr_assert_eq(found, quern_entity_get(every.world, copy, every.types.types[change->type]));
    return QUERN_OK;
}

/* Returns the value of the edge that a change sets, as calls take it. */
static const void *edge_value_of(const every_change *change, every_edge *room)
{
    *room = (every_edge){.value = change->edge_value};
    return change->relation < EVERY_SINGLES ? (const void *)&room->value : room;
}

static quern_result change_now(const actor *by, every_change *change)
{
    const quern_entity entity = change->entity;
    const quern_component type = every.types.types[change->type];
    const quern_relation relation = every.types.relations[change->relation % EVERY_RELATIONS];
    value_room room;
    every_edge edge;
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
        const void *value = has_value ? value_of(change->type, change, &room) : NULL;
        if (change->looks)
            result = change->kind == EVERY_ADD
                         ? quern_entity_ensure(every.world, entity, type, NULL, NULL)
                         : quern_entity_set_if_different(every.world, entity, type, value, NULL);
        else
            result = change->kind == EVERY_ADD ? quern_entity_add(every.world, entity, type, value)
                                               : quern_entity_set(every.world, entity, type, value);
        if (has_value) release_value(change->type, &room);
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
    case EVERY_EMIT:
        return quern_world_emit(every.world, own.event, &(ping){change->id, change->entity}, 1);
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
    every_edge edge;
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
        const void *value = has_value ? value_of(change->type, change, &room) : NULL;
        result = change->kind == EVERY_ADD ? quern_commands_add(by->commands, entity, type, value)
                                           : quern_commands_set(by->commands, entity, type, value);
        if (has_value) release_value(change->type, &room);
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
        return quern_commands_accumulate(by->commands, entity, type, value_of(change->type, change, &room),
                                         combines[change->combine]);
    case EVERY_EMIT:
        if (by->context == NULL) return QUERN_ERROR_INVALID_ARGUMENT;
        return quern_emit(quern_context_emitter(by->context, own.event),
                          &(ping){change->id, change->entity})
                   ? QUERN_OK
                   : QUERN_ERROR_INVALID_ARGUMENT;
    case EVERY_CLONE:
    case EVERY_OVERRIDE:
    case EVERY_MARK:
    case EVERY_PLACE:
        break; /* calls only */
    }
    return QUERN_ERROR_INVALID_ARGUMENT;
}

static uint64_t feature_of(const every_change *change)
{
    static const every_feature of_kinds[] = {
        EVERY_USES_CREATE,     EVERY_USES_DESTROY, EVERY_USES_ADD,         EVERY_USES_SET,
        EVERY_USES_REMOVE,     EVERY_USES_TOGGLE,  EVERY_USES_TREE_SWITCH, EVERY_USES_PARENT,
        EVERY_USES_PARENT,     EVERY_USES_PARENT,  EVERY_USES_PARENT,      EVERY_USES_NAME,
        EVERY_USES_ACCUMULATE, EVERY_USES_SPAWN,   EVERY_USES_CLONE,       EVERY_USES_OVERRIDE,
        EVERY_USES_EVENT,      EVERY_USES_MARK,    EVERY_USES_PLACE,
    };
    static const every_feature of_relations[EVERY_RELATIONS] = {
        EVERY_USES_PARENT, EVERY_USES_LEVELS, EVERY_USES_REFUSAL, EVERY_USES_RING,
        EVERY_USES_SHARED, EVERY_USES_EDGES,  EVERY_USES_EDGES};
    uint64_t features = every_bit(of_kinds[change->kind]);
    if (change->looks) features |= every_bit(EVERY_USES_LOOKS);
    const uint32_t set = change->kind == EVERY_CREATE ? change->set : BIT(change->type);
    if (change->kind >= EVERY_RELATE && change->kind <= EVERY_UNRELATE_FROM)
        return every_bit(of_relations[change->relation]) |
               (change->edge_value != 0 ? every_bit(EVERY_USES_EDGE_VALUE) : 0);
    if (change->kind == EVERY_CREATE && change->relation > 0)
        features |= every_bit(of_relations[change->relation - 1]);
    if (change->is_shared || (change->kind == EVERY_SPAWN && change->prefab == SHARING_PREFAB))
        features |= every_bit(EVERY_USES_SHARED);
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

/* Calls that fail for lack of memory must have changed nothing, and succeed when there is memory again. */
static quern_result change_or_repeat(const actor *by, every_change *change)
{
    const uint64_t hash = every.failing != NULL ? quern_world_hash(every.world) : 0;
    quern_result result = change_now(by, change);
    if (every.failing == NULL || result != QUERN_ERROR_OUT_OF_MEMORY) return result;
    cr_assert_eq(quern_world_hash(every.world), hash,
                 "seed %llu, frame %llu: a call of kind %d without memory", (unsigned long long)every.seed,
                 (unsigned long long)every.frame, (int)change->kind);
    every.failed_count++;
    failing_allocator_pause(every.failing, true);
    every_check_outside(every.world);
    result = change_now(by, change);
    failing_allocator_pause(every.failing, false);
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
    change.features |= feature_of(&change);
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

static quern_entity make(actor *by, every_change change)
{
    return make_here(by, &change);
}

/* ------------------------------------------------------------------------------------------- drawing */

static quern_entity pick(actor *by)
{
    return every.known[random_below(&by->random, every.known_count)];
}

static uint32_t pick_type(actor *by)
{
    static const uint32_t likely[] = {EVERY_NUMBER, EVERY_NUMBER, EVERY_LINK, EVERY_HOOKED, EVERY_TAG,
                                      EVERY_TAG,    EVERY_FLAG,   EVERY_MODE, EVERY_NEED,   EVERY_DEEP,
                                      EVERY_GIVEN,  EVERY_WIDE,   EVERY_ROWS, EVERY_LIST,   EVERY_OFF};
    const uint32_t type = likely[random_below(&by->random, COUNT_OF(likely))];
    return type == EVERY_HOOKED && !every.has_hooks ? EVERY_NUMBER : type;
}

static uint32_t pick_relation(actor *by)
{
    static const uint32_t likely[] = {EVERY_PARENT, EVERY_PARENT, EVERY_PARENT, EVERY_PARENT, EVERY_HOME,
                                      EVERY_HOME,   EVERY_LOCK,   EVERY_RING,   EVERY_RING,   EVERY_SHARED,
                                      EVERY_SHARED, EVERY_LIKES,  EVERY_LIKES,  EVERY_PART};
    return likely[random_below(&by->random, COUNT_OF(likely))];
}

static void draw_words(actor *by, every_change *change)
{
    for (uint32_t i = 1; i < EVERY_WORDS; i++)
        change->words[i] = random_below(&by->random, 1000);
    change->target = random_chance(&by->random, 70) ? pick(by) : quern_entity_null();
}

static void draw_name(actor *by, every_change *change)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", ""};
    snprintf(change->name, sizeof change->name, "%s", names[random_below(&by->random, COUNT_OF(names))]);
}

static quern_entity draw_create(actor *by)
{
    every_change change = {.kind = EVERY_CREATE, .id = fresh_id(by)};
    const uint32_t count = random_below(&by->random, 4);
    draw_words(by, &change);
    for (uint32_t i = 0; i < count; i++)
        change.set |= BIT(pick_type(by));
    if (random_chance(&by->random, 40)) {
        change.relation = 1 + random_below(&by->random, EVERY_SINGLES);
        change.target = pick(by);
    }
    return make(by, change);
}

static quern_entity draw_spawn(actor *by, bool is_plain)
{
    if (every.has_no_prefabs) return quern_entity_null();
    every_change change = {.kind = EVERY_SPAWN, .prefab = random_below(&by->random, EVERY_PREFABS)};
    for (uint32_t m = 0; m < member_counts[change.prefab]; m++)
        change.ids[m] = fresh_id(by);
    if (!is_plain && random_chance(&by->random, 50)) change.target = pick(by);
    return make(by, change);
}

/* Creates an entity with values to share. */
static quern_entity draw_shared(actor *by)
{
    every_change change = {
        .kind = EVERY_CREATE, .id = fresh_id(by), .set = BIT(EVERY_OFF), .is_shared = true};
    draw_words(by, &change);
    for (uint32_t i = 1 + random_below(&by->random, 4); i > 0; i--)
        change.set |= BIT(pick_type(by));
    return make(by, change);
}

/* Gives the copies of a tree ids of their own, instead of those of the original. */
static void give_ids(actor *by, const every_change *copied, const quern_entity *members)
{
    for (uint32_t m = 0; m < copied->member_count; m++) {
        every_change change = {
            .kind = EVERY_SET, .entity = members[m], .type = EVERY_ID, .has_value = true};
        change.words[0] = copied->ids[m];
        make(by, change);
    }
}

static void draw_clone(actor *by, quern_entity entity)
{
    quern_entity members[EVERY_MEMBERS];
    every_change change = {.kind = EVERY_CLONE, .entity = entity};
    change.has_value = random_chance(&by->random, 50); /* ids of its own */
    change.target = quern_entity_null();
    if (!quern_entity_is_alive(every.world, entity) || every.known_count > CROWD) return;
    change.member_count = list_tree(entity, members);
    if (change.member_count > EVERY_MEMBERS) return;
    for (uint32_t m = 0; m < change.member_count; m++)
        change.ids[m] = fresh_id(by);
    if (!change.has_value)
        change.target = quern_entity_target(every.world, entity, every.types.relations[EVERY_PARENT]);
    else if (random_chance(&by->random, 50))
        change.target = pick(by);
    const quern_entity root = make_here(by, &change);
    if (!change.has_value && !quern_entity_is_null(root)) give_ids(by, &change, change.members);
}

static void draw_override(actor *by, quern_entity entity)
{
    quern_entity members[EVERY_MEMBERS], shared;
    every_change change = {.kind = EVERY_OVERRIDE, .entity = entity};
    if (!quern_entity_is_alive(every.world, entity) || every.known_count > CROWD) return;
    draw_words(by, &change);
    shared = quern_entity_target(every.world, entity, every.types.relations[EVERY_SHARED]);
    if (quern_entity_is_null(shared) && random_chance(&by->random, 80)) {
        shared = random_chance(&by->random, 50) ? draw_shared(by) : pick(by);
        if (quern_entity_equal(shared, entity)) return;
        make(by, (every_change){
                     .kind = EVERY_RELATE, .entity = entity, .relation = EVERY_SHARED, .target = shared});
        shared = quern_entity_target(every.world, entity, every.types.relations[EVERY_SHARED]);
    }
    for (uint32_t i = 0; i < 8; i++) { /* likely one that the shared entity has */
        change.type = pick_type(by);
        if (!quern_entity_is_null(shared) && every_types[change.type].word_count > 0 &&
            quern_entity_has(every.world, shared, every.types.types[change.type]))
            break;
    }
    if (!quern_entity_is_null(shared) &&
        !quern_entity_equal(quern_entity_target(every.world, shared, every.types.relations[EVERY_PARENT]),
                            entity))
        change.member_count = list_tree(shared, members);
    if (change.member_count > EVERY_MEMBERS) return;
    for (uint32_t m = 0; m < change.member_count; m++)
        change.ids[m] = fresh_id(by);
    const quern_entity made = make_here(by, &change);
    if (!quern_entity_is_null(made)) give_ids(by, &change, change.members);
}

static void draw_value(actor *by, quern_entity entity)
{
    every_change change = {.kind = random_chance(&by->random, 50) ? EVERY_SET : EVERY_ADD,
                           .entity = entity};
    change.type = pick_type(by);
    change.has_value = random_chance(&by->random, change.type == EVERY_GIVEN ? 20 : 50);
    draw_words(by, &change);
    if (by->commands == NULL && change.type != EVERY_HOOKED && random_chance(&by->random, 30)) {
        change.looks = true;
        change.has_value = false;
        for (uint32_t i = 1; i < EVERY_WORDS; i++)
            change.words[i] %= 4; /* few values, so that some are equal */
    }
    make(by, change);
}

static void draw_remove(actor *by, quern_entity entity)
{
    make(by, (every_change){.kind = EVERY_REMOVE, .entity = entity, .type = pick_type(by)});
}

static void draw_toggle(actor *by, quern_entity entity)
{
    const uint32_t type = random_chance(&by->random, 60) ? EVERY_MODE : EVERY_FLAG;
    make(by, (every_change){.kind = EVERY_TOGGLE,
                            .entity = entity,
                            .type = type,
                            .enabled = random_chance(&by->random, 40)});
}

static void draw_relation(actor *by, quern_entity entity)
{
    every_change change = {.entity = entity, .relation = pick_relation(by), .target = pick(by)};
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
    make(by, change);
}

static void draw_accumulate(actor *by, quern_entity entity)
{
    every_change change = {.kind = EVERY_ACCUMULATE, .entity = entity, .type = EVERY_NUMBER};
    draw_words(by, &change);
    change.combine = random_below(&by->random, 3);
    change.target = quern_entity_null();
    if (by->commands != NULL) make(by, change);
}

static void draw_emit(actor *by, quern_entity entity)
{
    if (by->context != NULL || by->commands == NULL)
        make(by, (every_change){.kind = EVERY_EMIT, .entity = entity, .id = fresh_id(by)});
}

static void draw_name_of(actor *by, quern_entity entity)
{
    every_change change = {.kind = EVERY_RENAME, .entity = entity};
    draw_name(by, &change);
    make(by, change);
}

static void draw_switch(actor *by, quern_entity entity)
{
    make(by,
         (every_change){.kind = EVERY_SWITCH, .entity = entity, .enabled = random_chance(&by->random, 55)});
}

/* Moves an entity among its siblings. */
static void draw_place(actor *by, quern_entity entity)
{
    every_change change = {
        .kind = EVERY_PLACE, .entity = entity, .relation = random_chance(&by->random, 70) ? 0 : 2};
    change.target = random_chance(&by->random, 50) ? pick(by) : quern_entity_null();
    if (!quern_entity_is_null(change.target)) /* likely a sibling */
        change.target = quern_entity_first_source(
            every.world, quern_entity_target(every.world, entity, every.types.relations[change.relation]),
            every.types.relations[change.relation]);
    make(by, change);
}

static void draw_mark(actor *by, quern_entity entity)
{
    make(by, (every_change){.kind = EVERY_MARK, .entity = entity, .type = pick_type(by)});
}

/* Several changes of one entity, which may be new. */
static void draw_some(actor *by, quern_entity entity)
{
    if (quern_entity_is_null(entity)) return;
    for (uint32_t i = 1 + random_below(&by->random, 4); i > 0; i--)
        switch (random_below(&by->random, by->commands == NULL ? 13 : 11)) {
        case 11:
            draw_override(by, entity);
            break;
        case 12:
            draw_clone(by, entity);
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

static void act(actor *by, quern_entity self)
{
    const quern_entity entity =
        random_chance(&by->random, 60) && !quern_entity_is_null(self) ? self : pick(by);
    const bool is_crowded = every.known_count > CROWD;
    switch (random_below(&by->random, by->commands == NULL ? 27 : 24)) {
    case 24:
    case 25:
        draw_override(by, entity);
        break;
    case 26:
        draw_clone(by, entity);
        break;
    case 0:
    case 1:
        if (is_crowded)
            make(by, (every_change){.kind = EVERY_DESTROY, .entity = pick(by)});
        else
            draw_some(by, draw_create(by));
        break;
    case 2:
        if (!is_crowded) draw_spawn(by, true);
        break;
    case 3:
        if (!is_crowded) {
            const uint64_t features = by->features;
            by->features |= every_bit(EVERY_USES_SPAWN_CHANGED);
            draw_some(by, draw_spawn(by, false));
            by->features = features;
        }
        break;
    case 4:
        if (is_crowded || random_chance(&by->random, 40))
            make(by, (every_change){.kind = EVERY_DESTROY, .entity = entity});
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
        draw_some(by, entity);
        break;
    }
}

/* ------------------------------------------------------------------------------------------- systems */

/* The indices of the terms of a system. */
typedef struct column_list {
    uint32_t of_type[EVERY_TYPES];
    uint32_t up, old;
} column_list;

static column_list list_terms(const every_terms *from, quern_term *terms)
{
    column_list found = {0};
    uint32_t count = 0;
    terms[count++] = quern_term_read(every.types.types[EVERY_ID]);
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        const quern_access access = every_has(from->writes, t)  ? QUERN_ACCESS_WRITE
                                    : every_has(from->reads, t) ? QUERN_ACCESS_READ
                                                                : QUERN_ACCESS_NONE;
        if (!every_has(from->with | from->without | from->optional, t)) continue;
        found.of_type[t] = count;
        if (every_has(from->with, t)) {
            terms[count] = quern_term_make(every.types.types[t], QUERN_MATCH_ALL, access);
            terms[count].enabled = from->enabled[t];
            terms[count].changed = from->filter_type == t + 1;
        } else {
            terms[count] = every_has(from->without, t) ? quern_term_without(every.types.types[t])
                                                       : quern_term_optional(every.types.types[t], access);
        }
        count++;
    }
    if (from->by_target)
        terms[count++] = quern_term_target(every.types.relations[from->tie - 1], from->target);
    else if (from->tie > 0)
        terms[count++] = quern_term_with(quern_relation_component(every.types.relations[from->tie - 1]));
    found.up = count;
    if (from->has_up && from->up_relation == EVERY_SHARED && !from->up_is_optional)
        terms[count++] = quern_term_shared(every.world, every.types.types[from->up_type]);
    else if (from->has_up)
        terms[count++] =
            quern_term_up_make(every.types.types[from->up_type], every.types.relations[from->up_relation],
                               from->up_is_optional ? QUERN_MATCH_OPTIONAL : QUERN_MATCH_ALL,
                               from->up_is_nearest ? QUERN_PATH_NEAREST : QUERN_PATH_TARGET);
    found.old = count;
    if (from->old_type > 0) terms[count++] = quern_term_old(every.types.types[from->old_type - 1]);
    return found;
}

/* The running callback of a system, reaction or parallel query. */
typedef struct run_of {
    const every_terms *terms;
    column_list columns;
    int system, reaction; /* EVERY_NONE: it is no such */
    actor by;
    uint64_t salt;
} run_of;

static run_of begin_run(quern_context *context, const every_terms *terms, uint64_t salt)
{
    quern_term unused[QUERN_MAX_TERMS];
    run_of run = {.terms = terms, .system = EVERY_NONE, .reaction = EVERY_NONE, .salt = salt};
    if (terms != NULL) run.columns = list_terms(terms, unused);
    run.by.context = context;
    run.by.commands = quern_context_commands(context);
    run.by.is_mute = run.by.commands == NULL;
    run.by.stream = next_stream();
    if (every.is_harmless)
        must_record(quern_commands_set_component_enabled(run.by.commands, own.dummy_entity,
                                                         every.types.types[EVERY_MODE], true));
    return run;
}

static void begin_row(run_of *run, uint64_t id)
{
    run->by.random.state = every_mix(every.seed ^ every_mix(every.frame * 1000003 + run->salt) ^ id);
    run->by.id_base = every_mix(id ^ every_mix(every.frame * 77 + run->salt) ^ every.seed);
    run->by.id_count = 0;
}

/* Adds the words of a value to what callbacks have seen. Handles differ between runs and are left out. */
static void observe(uint64_t id, uint32_t type, const uint64_t *words)
{
    for (uint32_t w = type == EVERY_LINK; w < every_types[type].word_count; w++)
        atomic_fetch_add_explicit(&every.observed,
                                  every_mix(id ^ every_mix(words[every_types[type].first_word + w] + w)),
                                  memory_order_relaxed);
}

/* Reads the row's columns, compares them with the model, and writes. */
static void use_columns(run_of *run, const quern_view *view, uint32_t row, uint64_t id, int entity,
                        const void *const *bases)
{
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        uint64_t words[EVERY_WORDS];
        if (bases[t] == NULL) continue;
        const uint32_t bytes = every_value_bytes(t);
        const char *value = (const char *)bases[t] + (size_t)bytes * row;
        every_read(t, value, words);
        observe(id, t, words);
        if (entity != EVERY_NONE)
            for (uint32_t w = t == EVERY_LINK; w < every_types[t].word_count; w++)
                cr_assert_eq(
                    words[every_types[t].first_word + w],
                    every_model_at(entity)->now.words[every_types[t].first_word + w],
                    "seed %llu, frame %llu: system %d, reaction %d, '%s' of the entity with id %llx",
                    (unsigned long long)every.seed, (unsigned long long)every.frame, run->system,
                    run->reaction, every_types[t].name, (unsigned long long)id);
        if (!every_has(run->terms->writes, t) || !random_chance(&run->by.random, 30)) continue;
        const uint64_t fresh = random_below(&run->by.random, 1000);
        words[every_types[t].first_word + every_types[t].word_count - 1] = fresh;
        if (t == EVERY_LIST)
            every_list_write((every_list *)(uintptr_t)value, fresh);
        else
            *(uint64_t *)(uintptr_t)(value + bytes - 8) = fresh;
        if (entity != EVERY_NONE) every_model_write(run->system, entity, t, words);
        if (every_types[t].can_disable && run->reaction == EVERY_NONE &&
            random_chance(&run->by.random, 40)) {
            const bool enabled = random_chance(&run->by.random, 50);
            cr_assert(quern_view_set_enabled(view, run->columns.of_type[t], row, enabled));
            if (entity != EVERY_NONE) every_model_toggle(run->system, entity, t, enabled);
        }
    }
}

static void find_columns(const run_of *run, const quern_view *view, const void **bases)
{
    const every_terms *terms = run->terms;
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        bases[t] = NULL;
        if (t == EVERY_ID || every_types[t].word_count == 0 || !every_has(terms->reads | terms->writes, t))
            continue;
        bases[t] = every_has(terms->writes, t) ? quern_view_write(view, run->columns.of_type[t])
                                               : quern_view_read(view, run->columns.of_type[t]);
    }
}

static void use_up(const run_of *run, const quern_view *view, uint32_t row, uint64_t id, int entity)
{
    uint64_t words[EVERY_WORDS];
    const uint32_t type = run->terms->up_type;
    const void *value = quern_view_up(view, run->columns.up)[row];
    if (value != NULL) {
        every_read(type, value, words);
        observe(id, type, words);
    }
    if (entity == EVERY_NONE) return;
    const int from = every_model_nearest(run->terms, entity);
    cr_assert_eq(value == NULL, from == EVERY_NONE, "up-term of the entity with id %llx",
                 (unsigned long long)id);
    for (uint32_t w = type == EVERY_LINK; value != NULL && w < every_types[type].word_count; w++)
        cr_assert_eq(words[every_types[type].first_word + w],
                     every_model_at(from)->now.words[every_types[type].first_word + w]);
}

/* Records a command for some rows of a view. */
static void command_view(run_of *run, const quern_view *view, const uint64_t *ids)
{
    uint64_t mask[QUERN_MAX_VIEW_ROWS / 64] = {0};
    begin_row(run, 12345); /* the same for all views */
    actor *by = &run->by;
    every_change change = {.is_by_level = by->is_by_level,
                           .ordinal = by->ordinal,
                           .stream = by->stream,
                           .type = pick_type(by),
                           .has_value = random_chance(&by->random, 50)};
    const uint32_t kind = random_below(&by->random, 12), percent = 10 + random_below(&by->random, 91);
    value_room room;
    if (kind == 11 && every.known_count < CROWD) return;
    draw_words(by, &change);
    change.target = quern_entity_null();
    change.kind = kind < 4 ? EVERY_ADD : kind < 8 ? EVERY_SET : kind < 11 ? EVERY_REMOVE : EVERY_DESTROY;
    const bool gives_each = change.kind == EVERY_SET && change.type == EVERY_NUMBER && percent % 2 == 0;
    uint64_t each[QUERN_MAX_VIEW_ROWS * 2];
    quern_row_range range = {0};
    bool is_any = false;
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            if (every_mix(ids[i] ^ run->salt) % 100 >= percent) continue;
            mask[i / 64] |= (uint64_t)1 << i % 64;
            is_any = true;
        }
    for (uint32_t i = 0; i < view->count; i++)
        each[2 * i] = ids[i] % 1000, each[2 * i + 1] = ids[i] % 777;
    if (!is_any || by->is_mute) return;
    const quern_view_rows rows = {.mask = mask};
    const quern_component type = every.types.types[change.type];
    const bool has_value = change.has_value || change.kind == EVERY_SET;
    const void *value =
        has_value && change.kind <= EVERY_SET ? value_of(change.type, &change, &room) : NULL;
    if (change.kind == EVERY_ADD)
        must_record(quern_commands_add_view(by->commands, view, &rows, type, value));
    if (change.kind == EVERY_SET && gives_each)
        must_record(quern_commands_set_view_values(by->commands, view, &rows, type, each));
    else if (change.kind == EVERY_SET)
        must_record(quern_commands_set_view(by->commands, view, &rows, type, value));
    if (change.kind == EVERY_REMOVE)
        must_record(quern_commands_remove_view(by->commands, view, &rows, type));
    if (change.kind == EVERY_DESTROY) must_record(quern_commands_destroy_view(by->commands, view, &rows));
    if (value != NULL) release_value(change.type, &room);
    for (uint32_t i = 0; i < view->count && every.is_modelled; i++) {
        if ((mask[i / 64] >> i % 64 & 1) == 0) continue;
        change.entity = view->entities[i];
        change.features = by->features | every_bit(EVERY_USES_VIEW_COMMAND) | feature_of(&change);
        if (gives_each) memcpy(&change.words[every_types[EVERY_NUMBER].first_word], &each[2 * i], 16);
        every_model_record(&change, false);
    }
}

static void visit_rows(run_of *run, const quern_view *view, uint32_t act_percent)
{
    const uint64_t *ids = quern_view_read(view, 0);
    const void *bases[EVERY_TYPES];
    quern_row_range range = {0};
    find_columns(run, view, bases);
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            int entity = EVERY_NONE;
            if (every.is_modelled && run->system != EVERY_NONE)
                entity = every_model_visit((uint32_t)run->system, view->entities[i], ids[i]);
            if (every.is_modelled && run->system == EVERY_NONE) {
                every_model_learn(view->entities[i], ids[i]);
                entity = every_model_find_id(ids[i]);
            }
            begin_row(run, ids[i]);
            atomic_fetch_add_explicit(&every.observed, every_mix(ids[i] ^ run->salt), memory_order_relaxed);
            use_columns(run, view, i, ids[i], entity, bases);
            if (run->terms->has_up) use_up(run, view, i, ids[i], entity);
            if (random_chance(&run->by.random, act_percent)) act(&run->by, view->entities[i]);
        }
    if (every_mix(every.seed ^ every_mix(every.frame + run->salt * 31)) % 100 < 25)
        command_view(run, view, ids);
}

/* The further query of each plain system; only reads. */
static every_terms further[EVERY_SYSTEMS];

/* Returns the type whose first word sorts the system's further query, or EVERY_TYPES if it has no order. */
static uint32_t order_of(uint32_t system)
{
    const every_terms *terms = &further[system];
    const uint32_t types = terms->with & terms->reads & ~(BIT(EVERY_HOOKED) | BIT(EVERY_LIST));
    uint32_t type = 0;
    if (terms->is_whole || system % 4 == 3) return EVERY_TYPES;
    while (type < EVERY_TYPES && (!every_has(types, type) || every_types[type].word_count == 0))
        type++;
    return type < EVERY_TYPES ? type : EVERY_ID;
}

static bool asks_index(uint32_t system)
{
    return system < PLAIN_SYSTEMS && !every_has(systems[system].writes, EVERY_NUMBER);
}

/* Compares what the index finds for some values with the model, in a system that does not write them. */
static void ask_index(quern_context *context, uint32_t system)
{
    const every_terms with_number = {.with = BIT(EVERY_NUMBER)};
    const uint32_t word = every_types[EVERY_NUMBER].first_word;
    random_source random = {every.seed * 31 + every.frame * 7 + system};
    for (uint32_t i = 0; i < 6; i++) {
        const quern_entity *found;
        uint64_t value = random_below(&random, 10);
        uint32_t expected = 0;
        if (every.is_modelled) {
            const int entity = (int)random_below(&random, every_model_count());
            if (every_model_matches(&with_number, entity)) value = every_model_at(entity)->now.words[word];
        }
        const uint32_t count = quern_context_find(context, own.number_index, value, &found);
        if (!every.is_modelled) continue;
        for (int k = 0; k < (int)every_model_count(); k++)
            expected += every_model_matches(&with_number, k) && every_model_at(k)->now.words[word] == value;
        cr_assert_eq(count, expected, "seed %llu, frame %llu: index in system %u",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, system);
        for (uint32_t k = 0; k < count; k++) {
            const int entity = every_model_find(found[k]);
            if (k > 0) cr_assert_lt(quern_entity_index(found[k - 1]), quern_entity_index(found[k]));
            if (entity == EVERY_NONE) continue; /* no view has shown its handle */
            cr_assert_eq(every_model_at(entity)->now.words[word], value);
            every_model_at(entity)->features |= every_bit(EVERY_USES_INDEX);
        }
    }
}

/* Where a handle stands in an order of entities. */
static uint64_t place_of(quern_entity entity)
{
    const uint64_t use_count =
        quern_entity_is_null(entity) ? 0 : quern_entity_use_count(every.world, entity);
    return use_count == 0 ? 0 : (uint64_t)quern_entity_index(entity) << 32 | use_count;
}

/* Reads the rows of the system's further query, and compares them with those that the model selects. */
static void visit_further(quern_context *context, uint32_t system)
{
    quern_term unused[QUERN_MAX_TERMS];
    run_of run = {.terms = &further[system], .system = EVERY_NONE, .reaction = EVERY_NONE};
    uint32_t seen = 0, expected = 0;
    const uint32_t order = order_of(system);
    uint64_t last = system % 2 == 0 ? 0 : UINT64_MAX;
    run.columns = list_terms(run.terms, unused);
    quern_query_iterator it = quern_context_query(context, 0);
    while (quern_query_next(&it)) {
        const uint64_t *ids = quern_view_read(&it.view, 0);
        const void *bases[EVERY_TYPES];
        quern_row_range range = {0};
        find_columns(&run, &it.view, bases);
        while (quern_view_next_range(&it.view, &range))
            for (uint32_t i = range.first; i < range.first + range.count; i++, seen++) {
                int entity = EVERY_NONE;
                if (order != EVERY_TYPES) {
                    const void *column = order == EVERY_ID ? (const void *)ids : bases[order];
                    const uint64_t word = ((const uint64_t *)column)[i * every_types[order].word_count];
                    const uint64_t key = order == EVERY_LINK ? place_of((quern_entity){word}) : word;
                    cr_assert(system % 2 == 0 ? key >= last : key <= last);
                    last = key;
                }
                if (every.is_modelled) {
                    every_model_learn(it.view.entities[i], ids[i]);
                    entity = every_model_find_id(ids[i]);
                    cr_assert(every_model_matches(run.terms, entity));
                    if (order != EVERY_TYPES)
                        every_model_at(entity)->features |= every_bit(EVERY_USES_ORDER);
                    every_model_at(entity)->features |= every_bit(EVERY_USES_FURTHER_QUERY);
                }
                use_columns(&run, &it.view, i, ids[i], entity, bases);
                if (run.terms->has_up) use_up(&run, &it.view, i, ids[i], entity);
            }
    }
    cr_assert_eq(it.result, QUERN_OK);
    for (int i = 0; every.is_modelled && i < (int)every_model_count(); i++)
        expected += every_model_matches(run.terms, i);
    if (every.is_modelled)
        cr_assert_eq(seen, expected, "seed %llu, frame %llu: further query of system %u",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, system);
}

static void run_plain(quern_context *context, const quern_view *view)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    if (every.is_modelled) every_model_enter_system(system);
    if (view->ordinal == 0) visit_further(context, system);
    if (view->ordinal == 0 && asks_index(system)) ask_index(context, system);
    every_resources_check(context, &systems[system]);
    run_of run = begin_run(context, &systems[system], 100 + system);
    run.system = (int)system;
    run.by.is_by_level = systems[system].is_by_level;
    run.by.ordinal = view->ordinal;
    visit_rows(&run, view, 7);
}

static void put_resource(quern_context *context, uint32_t system, uint32_t resource)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 41 + system))};
    every_resource_write((int)system, resource,
                         quern_context_resource_write(context, every.types.resources[resource]), &random);
}

static void end_plain(quern_context *context)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    if (every.is_modelled) every_model_end_system(system);
    put_resource(context, system, systems[system].put_resource - 1);
}

/* Writes to other entities, one after another. */
static void run_looking(quern_context *context, const quern_view *view)
{
    const uint64_t *ids = quern_view_read(view, 0);
    if (every.is_modelled) every_model_enter_system(LOOKING);
    run_of run = begin_run(context, &systems[LOOKING], 100 + LOOKING);
    if (view->ordinal == 0) put_resource(context, LOOKING, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        if (every.is_modelled) every_model_visit(LOOKING, view->entities[i], ids[i]);
        begin_row(&run, ids[i]);
        if (!random_chance(&run.by.random, 20)) continue;
        const quern_entity other = pick(&run.by);
        const int entity = every.is_modelled ? every_model_find(other) : EVERY_NONE;
        const bool is_alive = quern_context_is_alive(context, other);
        if (every.is_modelled) cr_assert_eq(is_alive, every_model_at(entity)->is_alive);
        if (!is_alive) continue;
        uint64_t words[EVERY_WORDS],
            *value = quern_context_lookup_write(context, other, every.types.types[EVERY_NUMBER]);
        const quern_entity parent = quern_context_target(context, other, every.types.relations[0]);
        if (entity != EVERY_NONE) {
            const every_entity *at = every_model_at(entity);
            cr_assert_eq(value != NULL, every_has(at->now.set, EVERY_NUMBER));
            cr_assert_eq(quern_entity_is_null(parent), at->targets[0] == EVERY_NONE);
            every_model_at(entity)->features |= every_bit(EVERY_USES_LOOKUP);
        }
        if (value == NULL) continue;
        every_read(EVERY_NUMBER, value, words);
        observe(ids[i], EVERY_NUMBER, words);
        const uint32_t first = every_types[EVERY_NUMBER].first_word;
        if (entity != EVERY_NONE) cr_assert_eq(words[first], every_model_at(entity)->now.words[first]);
        value[0] = words[first] = value[0] + ids[i] % 10;
        if (entity != EVERY_NONE) every_model_write(LOOKING, entity, EVERY_NUMBER, words);
    }
}

static void run_exclusive(quern_context *context, const quern_view *view)
{
    if (every.is_modelled) every_model_enter_system(EXCLUSIVE);
    run_of run = begin_run(context, NULL, 100 + EXCLUSIVE);
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 43))};
    every_resource_write(EXCLUSIVE, 1, quern_resource_get(every.world, every.types.resources[1]), &random);
    for (uint32_t i = 0; i < 4; i++) {
        actor now = run.by;
        begin_row(&run, i);
        act(&run.by, quern_entity_null());
        now.commands = NULL;
        now.context = NULL;
        now.features = every_bit(EVERY_USES_IMMEDIATE);
        now.random.state = run.by.random.state + 1;
        now.id_base = run.by.id_base + 1000;
        act(&now, quern_entity_null());
    }
}

/* Processes the events of the frame. */
static void run_reading(quern_context *context, const quern_view *view)
{
    const ping *pings = quern_view_events(view);
    if (every.is_modelled) every_model_enter_system(READING);
    for (uint32_t i = 0; i < view->count; i++) {
        atomic_fetch_add_explicit(&every.observed, every_mix(pings[i].id), memory_order_relaxed);
        if (every.is_modelled) every_model_read_event(0, pings[i].id, pings[i].entity);
    }
}

static void end_reading(quern_context *context)
{
    if (every.is_modelled) every_model_enter_system(READING);
    if (every.is_modelled) every_model_end_events(0);
}

/* Iterates over the events in one callback. */
static void run_listening(quern_context *context, const quern_view *view)
{
    if (every.is_modelled) every_model_enter_system(LISTENING);
    QUERN_EACH_EVENT(context, own.event, seen, ping)
    {
        atomic_fetch_add_explicit(&every.observed, every_mix(seen->id + 1), memory_order_relaxed);
        if (every.is_modelled) every_model_read_event(1, seen->id, seen->entity);
    }
    if (every.is_modelled) every_model_end_events(1);
}

/* How often each reaction has run in this frame. Reactions that act on each other must come to an end. */
static uint32_t reaction_runs[EVERY_REACTIONS];
enum { MOST_ACTING_RUNS = 4 };

static void begin_reaction(quern_context *context)
{
    reaction_runs[(uintptr_t)quern_context_user_data(context)]++;
}

static void run_reaction(quern_context *context, const quern_view *view)
{
    const uint32_t reaction = (uint32_t)(uintptr_t)quern_context_user_data(context);
    const every_terms *terms = &reactions[reaction];
    const uint32_t kind = quern_context_reaction(context);
    const uint64_t *ids = quern_view_read(view, 0);
    const void *bases[EVERY_TYPES];
    quern_term unused[QUERN_MAX_TERMS];
    if (every.is_modelled) every_model_enter_reaction(reaction);
    every_resources_check(context, terms);
    run_of run = begin_run(context, terms, 200 + reaction + 1000 * reaction_runs[reaction]);
    run.columns = list_terms(terms, unused);
    run.reaction = (int)reaction;
    every_terms seen = *terms;
    if (kind == QUERN_REACT_REMOVED) { /* copies are to read */
        seen.reads |= seen.writes;
        seen.writes = 0;
    }
    run.terms = &seen;
    find_columns(&run, view, bases);
    const void *olds =
        terms->old_type > 0 && kind == QUERN_REACT_SET ? quern_view_read(view, run.columns.old) : NULL;
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t words[EVERY_WORDS] = {ids[i]}, old[EVERY_WORDS] = {0};
        int entity = EVERY_NONE;
        for (uint32_t t = 1; t < EVERY_TYPES; t++)
            if (bases[t] != NULL && kind == QUERN_REACT_REMOVED) {
                const uint32_t bytes = every_value_bytes(t);
                every_read(t, (const char *)bases[t] + (size_t)bytes * i, words);
            }
        if (olds != NULL) {
            const uint32_t count = every_types[terms->old_type - 1].word_count;
            memcpy(old, (const char *)olds + (size_t)8 * count * i, (count < 2 ? count : 2) * sizeof *old);
        }
        atomic_fetch_add_explicit(&every.observed, every_mix(ids[i] ^ kind ^ every_mix(reaction)),
                                  memory_order_relaxed);
        if (every.is_modelled)
            entity = every_model_visit_reaction(reaction, kind, view->entities[i], ids[i], words,
                                                olds != NULL ? old : NULL);
        begin_row(&run, ids[i] + kind);
        if (kind != QUERN_REACT_REMOVED) use_columns(&run, view, i, ids[i], entity, bases);
        if (terms->has_up) use_up(&run, view, i, ids[i], entity);
        if (random_chance(&run.by.random, 6) && reaction_runs[reaction] <= MOST_ACTING_RUNS)
            act(&run.by, kind == QUERN_REACT_REMOVED ? quern_entity_null() : view->entities[i]);
    }
}

/* ------------------------------------------------------------------------------------ drawing systems */

static uint32_t draw_type(random_source *random)
{
    uint32_t type = 1 + random_below(random, EVERY_TYPES - 2);
    while (type == EVERY_HOOKED && !every.has_hooks)
        type = 1 + random_below(random, EVERY_TYPES - 2);
    return type;
}

static uint32_t draw_up_relation(random_source *random)
{
    static const uint32_t likely[] = {EVERY_PARENT, EVERY_HOME, EVERY_LOCK, EVERY_SHARED, EVERY_SHARED};
    return likely[random_below(random, COUNT_OF(likely))];
}

static void draw_terms(every_terms *terms, random_source *random, bool is_reaction)
{
    memset(terms, 0, sizeof *terms);
    for (uint32_t i = random_below(random, 3) + is_reaction; i > 0; i--)
        terms->with |= BIT(draw_type(random));
    if (random_chance(random, 25)) terms->without = BIT(draw_type(random)) & ~terms->with;
    if (random_chance(random, 30))
        terms->optional = BIT(draw_type(random)) & ~terms->with & ~terms->without;
    if (is_reaction) terms->optional = 0;
    if (random_chance(random, 15))
        terms->with |= BIT(EVERY_OFF);
    else if (random_chance(random, 20))
        terms->optional |= BIT(EVERY_OFF);
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        if (every_types[t].can_disable && every_has(terms->with, t) && !is_reaction)
            terms->enabled[t] = (quern_term_enabled)random_below(random, 3);
        if (every_types[t].word_count == 0) continue;
        if (every_has(terms->with | terms->optional, t) && random_chance(random, 75))
            terms->reads |= BIT(t);
        if (every_has(terms->with, t) && random_chance(random, 35)) terms->writes |= BIT(t);
    }
    if (random_chance(random, 20)) terms->tie = 1 + random_below(random, EVERY_RELATIONS);
    if (is_reaction) {
        terms->triggers = 1 + random_below(random, 7);
        if (terms->triggers == QUERN_REACT_REMOVED) terms->writes = 0;
        for (uint32_t t = 1; t < EVERY_TYPES && (terms->triggers & QUERN_REACT_SET) != 0; t++)
            if (every_has(terms->with, t) && every_types[t].word_count > 0 && t != EVERY_HOOKED &&
                t != EVERY_LIST && random_chance(random, 60))
                terms->old_type = t + 1;
        if ((terms->triggers & QUERN_REACT_REMOVED) == 0 && random_chance(random, 40)) {
            terms->has_up = terms->up_is_optional = true;
            terms->up_type = EVERY_NUMBER;
            terms->up_relation = draw_up_relation(random);
            terms->up_is_nearest = terms->up_relation < 2 && random_chance(random, 50);
            terms->writes &= ~BIT(terms->up_type);
        }
        return;
    }
    if (random_chance(random, 35)) {
        terms->has_up = true;
        terms->up_relation = draw_up_relation(random);
        terms->up_is_nearest = terms->up_relation < 2 && random_chance(random, 50);
        terms->up_is_optional = random_chance(random, 50);
        static const uint32_t valued[] = {EVERY_NUMBER, EVERY_LINK, EVERY_MODE, EVERY_NEED, EVERY_GIVEN};
        terms->up_type = valued[random_below(random, COUNT_OF(valued))];
        terms->writes &= ~BIT(terms->up_type);
    }
    for (uint32_t t = 1; t < EVERY_TYPES && random_chance(random, 40); t++)
        if (every_has(terms->with, t) && every_types[t].word_count > 0) terms->filter_type = t + 1;
    terms->is_whole = random_chance(random, 30);
}

void every_draw_program(void)
{
    random_source random = {every.seed * 7919};
    every.has_hooks = every.seed % 3 == 0;
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++) {
        draw_terms(&systems[s], &random, false);
        system_phases[s] = s < PLAIN_SYSTEMS / 2 ? 0 : 2;
        draw_terms(&further[s], &random, false);
    }
    /* one that carries values from parents to children, and one with the sources of a target */
    systems[LEVEL_SYSTEM] = (every_terms){.with = BIT(EVERY_NUMBER),
                                          .reads = BIT(EVERY_NUMBER),
                                          .writes = BIT(EVERY_NUMBER),
                                          .has_up = true,
                                          .up_type = EVERY_NUMBER,
                                          .up_is_optional = true,
                                          .is_by_level = true};
    static const uint32_t target_relations[] = {EVERY_PARENT, EVERY_HOME, EVERY_LIKES, EVERY_RING,
                                                EVERY_SHARED};
    systems[TARGET_SYSTEM] = (every_terms){.optional = BIT(EVERY_NUMBER),
                                           .reads = BIT(EVERY_NUMBER),
                                           .tie = 1 + target_relations[every.seed % 5],
                                           .by_target = true};
    /* A system cannot read by its further query what its own rows write. */
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++) {
        const uint32_t written = systems[s].writes;
        every_terms *terms = &further[s];
        terms->writes = terms->filter_type = 0;
        terms->with &= ~written;
        terms->without &= ~written;
        terms->optional &= ~written;
        terms->reads &= ~written;
        terms->has_up = terms->has_up && !every_has(written, terms->up_type);
    }
    memset(&systems[LOOKING], 0, sizeof systems[LOOKING]);
    system_phases[LOOKING] = 2;
    for (uint32_t s = EXCLUSIVE; s < EVERY_SYSTEMS; s++) { /* these have no rows */
        systems[s] = (every_terms){.with = BIT(EVERY_ID), .without = BIT(EVERY_ID)};
        system_phases[s] = s == EXCLUSIVE ? EXCLUSIVE_PHASE : 2;
    }
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++) {
        systems[s].uses_resources = random_below(&random, 1 << EVERY_RESOURCES);
        systems[s].watched = s % 4 == 1 ? 1 + random_below(&random, (1 << EVERY_RESOURCES) - 1) : 0;
        systems[s].put_resource =
            random_chance(&random, 25) ? 1 + random_below(&random, EVERY_RESOURCES) : 0;
    }
    systems[LISTENING].watched = 1; /* skips frames; events wait for it */
    for (uint32_t r = 0; r < EVERY_REACTIONS; r++) {
        draw_terms(&reactions[r], &random, true);
        reactions[r].uses_resources = random_below(&random, 1 << EVERY_RESOURCES);
    }
}

static void declare_resources(const every_terms *terms, quern_system_def *def)
{
    uint32_t count = 0, watched_count = 0;
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++) {
        const quern_resource resource = every.types.resources[r];
        if (terms->put_resource == r + 1)
            def->resources[count++] = (quern_resource_access){resource, QUERN_ACCESS_WRITE};
        else if (every_has(terms->uses_resources, r))
            def->resources[count++] = (quern_resource_access){resource, QUERN_ACCESS_READ};
        if (every_has(terms->watched, r)) def->if_changed[watched_count++] = resource;
    }
}

static quern_system_def def_of_system(uint32_t s)
{
    static char name[16];
    snprintf(name, sizeof name, "system %u", (unsigned)s);
    quern_system_def def = system_def(name, run_plain);
    def.phase = system_phases[s];
    def.user_data = (void *)(uintptr_t)s;
    def.emits[0] = own.event;
    if (s == LOOKING) {
        def.run = run_looking;
        def.terms[0] = quern_term_read(every.types.types[EVERY_ID]);
        def.write_lookups[0].component = every.types.types[EVERY_NUMBER];
        def.relations[0] = every.types.relations[0];
        def.resources[0] = (quern_resource_access){every.types.resources[0], QUERN_ACCESS_WRITE};
        return def;
    } else if (s == EXCLUSIVE) {
        def.run = run_exclusive;
        def.flags = QUERN_SYSTEM_EXCLUSIVE;
    } else if (s == READING) {
        def.run = run_reading;
        def.end = end_reading;
        def.items = own.event;
    } else if (s == LISTENING) {
        def.run = run_listening;
        def.reads_events[0] = own.event;
    } else {
        every_terms terms = systems[s];
        terms.target = quern_entity_null(); /* chosen later, by choose_target */
        list_terms(&terms, def.terms);
        if (systems[s].is_whole) def.flags |= QUERN_SYSTEM_WHOLE_CHUNKS;
        if (systems[s].is_by_level) def.levels = every.types.relations[0];
        list_terms(&further[s], def.queries[0].terms);
        def.queries[0].whole_chunks = further[s].is_whole;
        if (order_of(s) != EVERY_TYPES)
            def.queries[0].order_by =
                (quern_order){.component = every.types.types[order_of(s)],
                              .type = order_of(s) == EVERY_LINK ? QUERN_FIELD_ENTITY : QUERN_FIELD_U64,
                              .descending = s % 2 != 0};
        if (asks_index(s)) def.indexes[0] = own.number_index;
        if (systems[s].put_resource > 0) def.end = end_plain;
    }
    declare_resources(&systems[s], &def);
    return def;
}

static quern_system_def def_of_reaction(uint32_t r)
{
    static char name[16];
    snprintf(name, sizeof name, "reaction %u", (unsigned)r);
    quern_system_def def = system_def(name, run_reaction);
    def.begin = begin_reaction;
    def.user_data = (void *)(uintptr_t)r;
    def.emits[0] = own.event;
    def.reacts_to = reactions[r].triggers;
    list_terms(&reactions[r], def.terms);
    declare_resources(&reactions[r], &def);
    return def;
}

/* Adds a system, or reaction, as the last one. */
static void add_system(uint32_t number)
{
    const bool is_reaction = number >= EVERY_SYSTEMS;
    const quern_system_def def =
        is_reaction ? def_of_reaction(number - EVERY_SYSTEMS) : def_of_system(number);
    const quern_system added = setup_system(every.schedule, &def);
    uint32_t count = 0;
    if (is_reaction)
        own.reactions[number - EVERY_SYSTEMS] = added;
    else
        own.systems[number] = added;
    for (uint32_t i = 0; i < own.order_count; i++)
        if (own.order[i] != number) own.order[count++] = own.order[i];
    own.order[count++] = number;
    own.order_count = count;
}

/* ------------------------------------------------------------------------------------- between frames */

static actor program_actor(uint64_t salt, quern_commands *commands)
{
    return (actor){.commands = commands,
                   .stream = next_stream(),
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
    quern_query_iterator walk = quern_query_iterate(own.everyone);
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
        change.features |= every_bit(EVERY_USES_BULK) | feature_of(&change);
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
    const uint32_t relation = pick_relation(by), count = 1 + random_below(&by->random, 12);
    for (uint32_t i = 0; i < count; i++) {
        sources[i] = pick(by);
        targets[i] = pick(by);
        if (i == 0 && random_chance(&by->random, 30)) { /* a new instance */
            const quern_entity made = draw_spawn(by, random_chance(&by->random, 50));
            if (!quern_entity_is_null(made)) sources[i] = made;
        }
        changes[i] = (every_change){
            .kind = EVERY_RELATE, .entity = sources[i], .relation = relation, .target = targets[i]};
    }
    model_all(
        changes, count,
        quern_entity_relate_many(every.world, sources, every.types.relations[relation], targets, count));
}

static void create_some(actor *by)
{
    every_change changes[20] = {0};
    uint64_t ids[20], numbers[20][2];
    quern_entity made[20];
    const uint32_t count = 1 + random_below(&by->random, 20);
    const bool is_needy = random_chance(&by->random, 50);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = fresh_id(by);
        numbers[i][0] = ids[i] % 100;
        numbers[i][1] = ids[i] % 200;
    }
    const quern_component components[] = {every.types.types[EVERY_ID], every.types.types[EVERY_NUMBER],
                                          every.types.types[is_needy ? EVERY_DEEP : EVERY_TAG]};
    const void *columns[] = {ids, numbers, is_needy ? ids : NULL};
    const quern_result result =
        by->commands == NULL
            ? quern_entity_create_many(every.world, components, columns, 3, count, made)
            : quern_commands_create_many(by->commands, components, columns, 3, count, made);
    must(result);
    for (uint32_t i = 0; i < count; i++) {
        changes[i] = (every_change){.kind = EVERY_CREATE,
                                    .entity = made[i],
                                    .id = ids[i],
                                    .stream = by->stream,
                                    .set = BIT(EVERY_NUMBER) | BIT(is_needy ? EVERY_DEEP : EVERY_TAG),
                                    .features = by->features | every_bit(EVERY_USES_CREATE_MANY)};
        memcpy(&changes[i].words[every_types[EVERY_NUMBER].first_word], numbers[i], sizeof numbers[i]);
        changes[i].words[every_types[EVERY_DEEP].first_word] = ids[i];
        changes[i].features |= feature_of(&changes[i]);
        if (every.is_modelled && by->commands != NULL) every_model_record(&changes[i], by->waits);
    }
    if (by->commands == NULL) model_all(changes, count, result);
    /* otherwise, a new entity would rarely be a row of the system with a target term */
    if (by->commands == NULL && !quern_entity_is_null(systems[TARGET_SYSTEM].target) &&
        random_chance(&by->random, 40))
        make(by, (every_change){.kind = EVERY_RELATE,
                                .entity = made[0],
                                .relation = systems[TARGET_SYSTEM].tie - 1,
                                .target = systems[TARGET_SYSTEM].target});
    for (uint32_t i = 0; i < count && i < 4; i++)
        draw_some(by, made[i]);
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
    every_change like = {.type = pick_type(by)};
    const bool adds = random_chance(&by->random, 60);
    value_room room;
    uint64_t count = 0;
    quern_result result;
    draw_words(by, &like);
    like.target = quern_entity_null();
    like.kind = adds ? EVERY_ADD : EVERY_REMOVE;
    like.has_value = adds && random_chance(&by->random, 60);
    like.features = by->features;
    const uint32_t expected = list_matches(changes, EVERY_MOST_KNOWN, like, adds);
    if (adds) {
        const void *value = like.has_value ? value_of(like.type, &like, &room) : NULL;
        result = quern_entity_add_matching(own.few, every.types.types[like.type], value, &count);
        if (value != NULL) release_value(like.type, &room);
    } else {
        result = quern_entity_remove_matching(own.few, every.types.types[like.type], &count);
    }
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
        list[i] = pick(by);
        changes[i] =
            (every_change){.kind = EVERY_TOGGLE, .entity = list[i], .type = EVERY_MODE, .enabled = enabled};
    }
    for (uint32_t i = 0; i < 10; i++) /* so that the call has a chance to succeed */
        make(by, (every_change){.kind = EVERY_SET, .entity = list[i], .type = EVERY_MODE});
    model_all(changes, 10,
              quern_entity_set_component_enabled_many(every.world, list, 10, every.types.types[EVERY_MODE],
                                                      enabled));
}

static void run_parallel(quern_context *context, const quern_view *view)
{
    static const every_terms no_terms;
    run_of run = begin_run(context, &no_terms, 300);
    run.by.features = every_bit(EVERY_USES_PARALLEL_QUERY);
    run.by.context = NULL; /* parallel queries have no events */
    visit_rows(&run, view, 4);
}

static void switch_system(uint32_t i, bool is_enabled)
{
    const bool is_reaction = i >= PLAIN_SYSTEMS;
    const quern_system system = is_reaction ? own.reactions[i - PLAIN_SYSTEMS] : own.systems[i];
    must(quern_schedule_set_system_enabled(every.schedule, system, is_enabled));
    own.is_off[i] = !is_enabled;
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
        if (!is_after || (chosen && own.is_off[i])) switch_system(i, chosen);
    }
}

/* Replaces a system by one with the same definition: nothing else may change. */
static void replace_system(quern_system system, const quern_system_def *def)
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

/* Removes a system, and adds it again as the last one. */
static void renew_system(uint32_t number)
{
    quern_system *system =
        number < EVERY_SYSTEMS ? &own.systems[number] : &own.reactions[number - EVERY_SYSTEMS];
    const quern_system removed = *system;
    must(quern_schedule_remove_system(every.schedule, removed));
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    add_system(number);
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    cr_assert_neq(system->bits, removed.bits);
}

/* Replaces systems and reactions, or removes them and adds them again. A frame of a history that is restored does not know
 * the new ones, so no frame that runs twice may follow another one that renews (repeat_frames in test_every.c). */
static void change_systems(void)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 31 + 5))};
    const uint32_t renew_percent = every.frame % 3 == 1 ? 0 : 12;
    every.schedule_features = 0;
    for (uint32_t s = 0; s <= LISTENING; s++) {
        const quern_system_def def = def_of_system(s);
        if (random_chance(&random, renew_percent)) {
            renew_system(s);
            every.schedule_features |= every_bit(EVERY_USES_NEW_SYSTEM);
            if (s < PLAIN_SYSTEMS) own.is_off[s] = false;
            if (every.is_modelled) every_model_renew_system(s);
            if (every.is_modelled && s >= READING) every_model_skip_events(s - READING);
        } else if (random_chance(&random, 20)) {
            replace_system(own.systems[s], &def);
            every.schedule_features |= every_bit(EVERY_USES_REPLACED_SYSTEM);
        }
    }
    for (uint32_t r = 0; r < EVERY_REACTIONS; r++) {
        const quern_system_def def = def_of_reaction(r);
        if (random_chance(&random, renew_percent)) {
            renew_system(EVERY_SYSTEMS + r);
            every.schedule_features |= every_bit(EVERY_USES_NEW_REACTION);
            own.is_off[PLAIN_SYSTEMS + r] = false;
            if (every.is_modelled) every_model_renew_reaction(r);
        } else if (random_chance(&random, 20)) {
            replace_system(own.reactions[r], &def);
            every.schedule_features |= every_bit(EVERY_USES_REPLACED_REACTION);
        }
    }
}

/* Chooses the target with the most sources of several. */
static void choose_target(actor *by)
{
    const quern_relation relation = every.types.relations[systems[TARGET_SYSTEM].tie - 1];
    quern_entity target = pick(by);
    for (uint32_t i = 0; i < 20; i++) {
        const quern_entity other = pick(by);
        if (quern_entity_source_count(every.world, other, relation) >
            quern_entity_source_count(every.world, target, relation))
            target = other;
    }
    systems[TARGET_SYSTEM].target = target;
    must(quern_schedule_set_target(every.schedule, own.systems[TARGET_SYSTEM], target));
}

/* Changes what has no consequence for entities and values. */
static void tidy(void)
{
    if (every_mix(every.seed * 5 + every.frame) % 4 == 0) must(quern_world_trim(every.world));
    if (every_mix(every.seed * 6 + every.frame) % 4 == 0)
        must(quern_world_remove_empty_archetypes(every.world, NULL));
}

void every_play_between(quern_jobs *jobs)
{
    memset(reaction_runs, 0, sizeof reaction_runs);
    change_systems();
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    switch_systems(false);
    tidy();
    every_learn_known();
    every_resources_play();
    actor now = program_actor(1, NULL);
    choose_target(&now);
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    for (uint32_t i = 0; i < 10; i++)
        act(&now, quern_entity_null());
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    switch (every.frame % 5) {
    case 0:
        relate_some(&now);
        break;
    case 1:
        if (every.known_count < CROWD) create_some(&now);
        break;
    case 2:
    case 3:
        change_matches(&now);
        break;
    default:
        toggle_some(&now);
        break;
    }
    actor later = program_actor(2, quern_world_commands(every.world));
    for (uint32_t i = 0; i < 8; i++)
        act(&later, quern_entity_null());
    if (every.frame % 4 == 1 && every.known_count < CROWD) create_some(&later);
    if (every_mix(every.seed + every.frame) % 3 == 0) {
        must(quern_world_flush(every.world));
        if (every.is_modelled) every_model_flush(true);
        must(quern_query_parallel_for(own.everyone, jobs, run_parallel, NULL));
        if (every.is_modelled) every_model_flush(false);
    }
    quern_event_block block;
    while (quern_event_reader_next(own.reader, &block))
        for (uint32_t i = 0; i < block.count; i++) {
            const ping *seen = (const ping *)block.values + i;
            atomic_fetch_add_explicit(&every.observed, every_mix(seen->id + 2), memory_order_relaxed);
            if (every.is_modelled) every_model_read_event(2, seen->id, seen->entity);
        }
    if (every.is_modelled) every_model_end_events(2);
    switch_systems(true);
    every_learn_known();
}

/* ---------------------------------------------------------------------------------------- the scene */

static void open_event(void)
{
    const quern_event_def def = {
        .name = "ping",
        .size_bytes = sizeof(ping),
        .alignment_bytes = 8,
        .fields = {{.name = "id", .type = QUERN_FIELD_U64},
                   {.name = "entity", .type = QUERN_FIELD_ENTITY, .offset_bytes = 8}}};
    must(quern_event_register(every.world, &def, &own.event));
    must(quern_event_reader_create(
        every.world, &(quern_event_reader_def){.name = "program", .event = own.event}, &own.reader));
}

/* Creates a member of a prefab's tree, with a name, below another one. */
static quern_entity make_member(actor *by, uint32_t set, quern_entity parent, const char *name)
{
    every_change change = {.kind = EVERY_CREATE, .id = fresh_id(by), .set = set};
    draw_words(by, &change);
    change.target = parent;
    change.relation = quern_entity_is_null(parent) ? 0 : 1;
    const quern_entity made = make(by, change);
    every_change naming = {.kind = EVERY_RENAME, .entity = made};
    snprintf(naming.name, sizeof naming.name, "%s", name);
    make(by, naming);
    return made;
}

static void capture(uint32_t prefab, quern_entity root)
{
    must(quern_prefab_capture(every.world, root, &own.prefabs[prefab]));
    member_counts[prefab] = quern_prefab_member_count(every.world, own.prefabs[prefab]);
    if (every.is_modelled) cr_assert_eq(every_model_capture(prefab, root), member_counts[prefab]);
}

/* Describes a prefab whose members share values. The model captures a tree that is the same. */
static void describe_prefab(actor *by, quern_entity shared)
{
    const quern_entity none = quern_entity_null();
    const quern_entity root = make_member(by, BIT(EVERY_NUMBER), none, "s");
    const quern_entity child = make_member(by, BIT(EVERY_TAG) | BIT(EVERY_LINK), root, "a");
    make(by,
         (every_change){.kind = EVERY_RELATE, .entity = root, .relation = EVERY_SHARED, .target = shared});
    make(by,
         (every_change){.kind = EVERY_RELATE, .entity = child, .relation = EVERY_SHARED, .target = root});
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
    must(quern_prefab_create(every.world, members, 2, &own.prefabs[SHARING_PREFAB]));
    member_counts[SHARING_PREFAB] = 2;
    if (every.is_modelled) cr_assert_eq(every_model_capture(SHARING_PREFAB, root), 2u);
}

static void make_prefabs(actor *by)
{
    const quern_entity none = quern_entity_null(), outside = every.known[0];
    quern_entity root = make_member(by, BIT(EVERY_NUMBER) | BIT(EVERY_MODE), none, "x");
    quern_entity a = make_member(by, BIT(EVERY_DEEP) | BIT(EVERY_LINK), root, "a");
    quern_entity b = make_member(by, BIT(EVERY_FLAG) | BIT(EVERY_GIVEN), a, "b");
    quern_entity c = make_member(by, BIT(EVERY_MODE) | BIT(EVERY_TAG), root, "c");
    make(by, (every_change){.kind = EVERY_TOGGLE, .entity = c, .type = EVERY_MODE});
    make(by, (every_change){
                 .kind = EVERY_SET, .entity = a, .type = EVERY_LINK, .target = c, .has_value = true});
    make(by, (every_change){.kind = EVERY_SWITCH, .entity = a, .enabled = false});
    make(by,
         (every_change){
             .kind = EVERY_RELATE, .entity = b, .relation = EVERY_LIKES, .target = root, .edge_value = 71});
    make(by, (every_change){.kind = EVERY_RELATE, .entity = c, .relation = EVERY_SHARED, .target = a});
    capture(0, root);
    root = make_member(by, BIT(EVERY_WIDE) | (every.has_hooks ? BIT(EVERY_HOOKED) : 0), none, "y");
    capture(1, root);
    root = make_member(by, BIT(EVERY_NEED), none, "z");
    a = make_member(by, BIT(EVERY_ROWS), root, "a");
    make(by,
         (every_change){
             .kind = EVERY_RELATE, .entity = a, .relation = EVERY_HOME, .target = root, .edge_value = 72});
    if (every.seed % 2 == 0)
        make(by,
             (every_change){.kind = EVERY_RELATE, .entity = a, .relation = EVERY_LIKES, .target = outside});
    capture(2, root);
    describe_prefab(by, draw_shared(by));
}

static void fill_world(void)
{
    actor by = program_actor(99, NULL);
    for (uint32_t i = 0; i < START; i++) {
        every_change change = {.kind = EVERY_CREATE, .id = fresh_id(&by)};
        for (uint32_t k = random_below(&by.random, 5); k > 0; k--)
            change.set |= BIT(1 + random_below(&by.random, EVERY_TYPES - 2));
        if (!every.has_hooks) change.set &= ~BIT(EVERY_HOOKED);
        for (uint32_t w = 1; w < EVERY_WORDS; w++)
            change.words[w] = random_below(&by.random, 1000);
        if (i > 0 && random_chance(&by.random, 60)) {
            change.relation = 1;
            change.target = every.known[random_below(&by.random, i < 30 ? i : 30)];
        }
        every.known[i] = make(&by, change);
        every.known_count = i + 1;
    }
    make_prefabs(&by);
}

/* Creates the world and the schedule, without entities and systems. */
static void open_world(quern_schedule_def style, const quern_allocator *allocator)
{
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    memset((void *)&own, 0, sizeof own);
    must(quern_world_create(&def, &every.world));
    every_register(every.world, &every.types);
    open_event();
    own.everyone = setup_query(
        every.world,
        (const quern_term[]){quern_term_read(every.types.types[EVERY_ID]),
                             quern_term_optional(every.types.types[EVERY_OFF], QUERN_ACCESS_NONE)},
        2);
    own.few = setup_query(
        every.world,
        (const quern_term[]){quern_term_either(quern_term_with(every.types.types[EVERY_FLAG]))}, 1);
    must(quern_index_create(
        every.world,
        &(quern_index_def){.component = every.types.types[EVERY_NUMBER], .type = QUERN_FIELD_I64},
        &own.number_index));
    style.max_reaction_rounds = 64;
    every.schedule = setup_schedule_as(every.world, style, EVERY_PHASES);
    systems[TARGET_SYSTEM].target = quern_entity_null();
}

void every_open(quern_schedule_def style, const quern_allocator *allocator)
{
    open_world(style, allocator);
    own.dummy_entity = setup_entity(every.world);
    if (every.is_modelled)
        every_model_open(systems, system_phases, EVERY_SYSTEMS, reactions, EVERY_REACTIONS);
    every.frame = 0;
    fill_world();
    for (uint32_t i = 0; i <= LISTENING; i++)
        add_system(i);
    for (uint32_t i = 0; i < EVERY_REACTIONS; i++)
        add_system(EVERY_SYSTEMS + i);
    if (every.is_modelled) every_model_begin_schedule();
}

static void close_world(void)
{
    quern_event_reader_destroy(own.reader);
    quern_query_destroy(own.everyone);
    quern_query_destroy(own.few);
    quern_index_destroy(own.number_index);
    quern_schedule_destroy(every.schedule);
    quern_world_destroy(every.world);
    for (uint32_t i = 0; i < OUTSIDE_TYPES; i++)
        cr_assert_eq(own.outside.counts[i], 0u);
}

void every_close(void)
{
    close_world();
    cr_assert_eq(tracked_live_count(&hook_counts), 0u);
    cr_assert_eq(hook_counts.broken_count, 0u);
    if (every.is_modelled) every_model_close();
}

/* -------------------------------------------------------------------------------------------- copying */

static opened original;
static struct {
    quern_world *world;
    quern_schedule *schedule;
    every_handles types;
    quern_entity target;
} original_scene;

quern_world *every_open_copy(quern_schedule_def style)
{
    original = own;
    original_scene.world = every.world;
    original_scene.schedule = every.schedule;
    original_scene.types = every.types;
    original_scene.target = systems[TARGET_SYSTEM].target;
    open_world(style, NULL);
    for (uint32_t i = 0; i < original.order_count; i++)
        add_system(original.order[i]);
    must(quern_world_copy(original_scene.world, every.world,
                          &(quern_save_def){.schedules = {original_scene.schedule}},
                          &(quern_load_def){.schedules = {every.schedule}}, NULL));
    memcpy(own.is_off, original.is_off, sizeof own.is_off);
    return every.world;
}

void every_close_copy(void)
{
    close_world();
    own = original;
    every.world = original_scene.world;
    every.schedule = original_scene.schedule;
    every.types = original_scene.types;
    systems[TARGET_SYSTEM].target = original_scene.target;
}
