/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/flow/prefab_model.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Random programs of commands on entities and prefab instances, compared with a naive model: in frames
 * at several thread counts and in several styles, and in single callbacks with quern_world_commands.
 * Recorders that are kept beyond their callback must fail. */

enum { SPAWNERS = 20, FRAMES = 4, COMMANDS = 14, CALLS = 32, PREFABS = 7, HUB = 0, CREATES = 256 };

typedef struct spawner {
    unsigned char bytes[2000]; /* large, so that a chunk has few rows and there are several views */
} spawner;

static const model_prefab prefabs[PREFABS] = {
    {{{.has = {[MODEL_NUMBER] = true}, .values = {9}, .parent = MODEL_NONE, .likes = MODEL_NONE}}, 1},
    {{{.has = {[MODEL_KNOWS] = true}, .parent = MODEL_NONE, .likes = MODEL_NONE, .knows_member = true}}, 1},
    {{{.has = {[MODEL_NUMBER] = true, [MODEL_OTHER] = true, [MODEL_SEAT] = true},
       .values = {1, 10, [MODEL_SEAT] = 2},
       .parent = MODEL_NONE,
       .likes = MODEL_NONE},
      {.has = {[MODEL_NUMBER] = true, [MODEL_KNOWS] = true},
       .values = {2},
       .likes = MODEL_NONE,
       .knows_member = true},
      {.has = {[MODEL_NUMBER] = true, [MODEL_TRACKED] = true},
       .values = {[MODEL_NUMBER] = 3, [MODEL_TRACKED] = 5},
       .likes = 1,
       .name = 'l'}},
     3},
    {{{.has = {[MODEL_MARK] = true, [MODEL_SEAT] = true},
       .values = {[MODEL_SEAT] = 3},
       .parent = MODEL_NONE,
       .likes = MODEL_NONE},
      {.has = {[MODEL_NUMBER] = true}, .values = {4}, .likes = MODEL_NONE},
      {.has = {[MODEL_NUMBER] = true, [MODEL_OFF] = true}, .values = {5}},
      {.has = {[MODEL_NUMBER] = true, [MODEL_KNOWS] = true},
       .values = {4, [MODEL_KNOWS] = 3},
       .parent = 1,
       .likes = 2,
       .knows_member = true}},
     4},
    {{{.has = {[MODEL_NUMBER] = true, [MODEL_KNOWS] = true},
       .values = {6, [MODEL_KNOWS] = HUB},
       .parent = MODEL_NONE,
       .likes = HUB,
       .likes_outside = true}},
     1},
    {{{.parent = MODEL_NONE, .likes = MODEL_NONE}}, 1},
    {{{.has = {[MODEL_NUMBER] = true}, .values = {7}, .parent = MODEL_NONE, .likes = MODEL_NONE},
      {.has = {[MODEL_OFF] = true}, .likes = MODEL_NONE},
      {.has = {[MODEL_OFF] = true, [MODEL_OFF_BY_PARENT] = true}, .parent = 1, .likes = MODEL_NONE}},
     3},
};

/* A description has no member that is disabled through its parent. */
static bool can_be_described(uint32_t number)
{
    for (uint32_t i = 0; i < prefabs[number].member_count; i++)
        if (prefabs[number].members[i].has[MODEL_OFF_BY_PARENT]) return false;
    return true;
}

/* A world with the program that runs in it. */
typedef struct subject {
    quern_world *world;
    quern_component parts[MODEL_PART_COUNT], spawner;
    quern_relation relations[MODEL_RELATION_COUNT];
    quern_prefab prefabs[PREFABS];
    quern_query *spawners;
    uint32_t view_count;
    int first_slot; /* first slot of the entities that commands may name */
    uint64_t seed;
    uint32_t frame;
    model_command commands[CALLS][COMMANDS];
    uint32_t counts[CALLS];
    /* indexed by slot: the entity in it, or the last one before this frame */
    quern_entity handles[MODEL_SLOTS];
    quern_commands *kept[FRAMES];
    tracked_counts counts_of_tracked;
} subject;

static subject it;
static prefab_model model;

/* -------------------------------------------------------------------------------------------- the world */

static quern_entity handle_of(int slot)
{
    return slot != MODEL_NONE ? it.handles[slot] : quern_entity_null();
}

/* A call that gives a component with a value to an entity. It receives the value as the component stores
 * it. */
typedef quern_result give(void *argument, quern_entity entity, quern_component component,
                          const void *value);

static quern_result give_part(give *to, void *argument, quern_entity entity, model_part part,
                              int64_t number, quern_entity known)
{
    tracked value;
    if (part == MODEL_MARK || part == MODEL_OFF) return to(argument, entity, it.parts[part], NULL);
    if (model_part_is_handle(part)) return to(argument, entity, it.parts[part], &known);
    if (part != MODEL_TRACKED) return to(argument, entity, it.parts[part], &number);
    tracked_construct(&value, (uint64_t)number, &it.counts_of_tracked);
    const quern_result result = to(argument, entity, it.parts[part], &value);
    tracked_destroy(&value, &it.counts_of_tracked);
    return result;
}

static quern_result add_now(void *argument, quern_entity entity, quern_component component,
                            const void *value)
{
    return quern_entity_add(argument, entity, component, value);
}

static void capture_prefab(uint32_t number)
{
    const model_prefab *from = &prefabs[number];
    quern_entity made[MODEL_MEMBERS] = {{0}};
    for (uint32_t i = 0; i < from->member_count; i++)
        must(quern_entity_create(it.world, &made[i]));
    for (uint32_t i = 0; i < from->member_count; i++) {
        const model_member *member = &from->members[i];
        for (model_part part = 0; part < MODEL_OFF; part++) {
            const bool is_inside = part == MODEL_SEAT || (part == MODEL_KNOWS && member->knows_member);
            if (member->has[part])
                must(give_part(add_now, it.world, made[i], part, member->values[part],
                               is_inside ? made[member->values[part]] : it.handles[HUB]));
        }
        if (member->parent != MODEL_NONE)
            must(quern_entity_relate(it.world, made[i], it.relations[MODEL_PARENT], made[member->parent]));
        if (member->likes != MODEL_NONE)
            must(quern_entity_relate(it.world, made[i], it.relations[MODEL_LIKES],
                                     member->likes_outside ? it.handles[HUB] : made[member->likes]));
        if (member->name != 0)
            must(quern_entity_set_name(it.world, made[i], (const char[]){member->name, '\0'}));
    }
    for (uint32_t i = 0; i < from->member_count; i++)
        if (from->members[i].has[MODEL_OFF] && !from->members[i].has[MODEL_OFF_BY_PARENT])
            must(quern_entity_set_enabled(it.world, made[i], false));
    must(quern_prefab_capture(it.world, made[0], &it.prefabs[number]));
    must(quern_entity_destroy(it.world, made[0]));
}

static void describe_part(const model_member *member, model_part part, const void *value,
                          quern_prefab_member_def *out_member, quern_prefab_value *values)
{
    if (!member->has[part]) return;
    values[out_member->value_count++] = (quern_prefab_value){it.parts[part], .value = value};
    out_member->values = values;
}

/* Makes the prefab from a list of members, without entities. */
static void describe_prefab(uint32_t number)
{
    const model_prefab *from = &prefabs[number];
    quern_prefab_member_def members[MODEL_MEMBERS];
    quern_prefab_value values[MODEL_MEMBERS][MODEL_PART_COUNT];
    quern_prefab_target targets[MODEL_MEMBERS];
    quern_entity knows[MODEL_MEMBERS];
    tracked counted[MODEL_MEMBERS];
    char names[MODEL_MEMBERS][2] = {{0}};
    for (uint32_t i = 0; i < from->member_count; i++) {
        const model_member *member = &from->members[i];
        tracked_construct(&counted[i], (uint64_t)member->values[MODEL_TRACKED], &it.counts_of_tracked);
        names[i][0] = member->name;
        knows[i] = member->knows_member ? quern_prefab_member_handle((uint32_t)member->values[MODEL_KNOWS])
                                        : it.handles[HUB];
        members[i] = (quern_prefab_member_def){
            .parent = member->parent != MODEL_NONE ? (uint32_t)member->parent : 0, .name = names[i]};
        if (from->members[0].has[MODEL_SEAT] && from->members[0].values[MODEL_SEAT] == (int64_t)i)
            members[i].slot = it.parts[MODEL_SEAT];
        describe_part(member, MODEL_TRACKED, &counted[i], &members[i], values[i]);
        describe_part(member, MODEL_KNOWS, &knows[i], &members[i], values[i]);
        describe_part(member, MODEL_MARK, NULL, &members[i], values[i]);
        describe_part(member, MODEL_OFF, NULL, &members[i], values[i]);
        describe_part(member, MODEL_NUMBER, &member->values[MODEL_NUMBER], &members[i], values[i]);
        describe_part(member, MODEL_OTHER, &member->values[MODEL_OTHER], &members[i], values[i]);
        if (member->likes == MODEL_NONE) continue;
        targets[i] = (quern_prefab_target){
            it.relations[MODEL_LIKES],
            member->likes_outside ? it.handles[HUB] : quern_prefab_member_handle((uint32_t)member->likes)};
        members[i].targets = &targets[i];
        members[i].target_count = 1;
    }
    must(quern_prefab_create(it.world, members, from->member_count, &it.prefabs[number]));
    for (uint32_t i = 0; i < from->member_count; i++)
        tracked_destroy(&counted[i], &it.counts_of_tracked);
}

static void register_parts(void)
{
    it.parts[MODEL_NUMBER] = setup_component(it.world, "number", 8, 8);
    it.parts[MODEL_OTHER] = make_component(it.world, .name = "other", .size_bytes = 8, .alignment_bytes = 8,
                                           .fields = {{"other", QUERN_FIELD_I64, 0, .count = 1}});
    it.parts[MODEL_MARK] = setup_tag(it.world, "mark");
    it.parts[MODEL_KNOWS] = make_component(it.world, .name = "knows", .size_bytes = 8, .alignment_bytes = 8,
                                           .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}});
    it.parts[MODEL_TRACKED] = tracked_register(it.world, "tracked", &it.counts_of_tracked);
    must(quern_prefab_slot_register(it.world, "seat", &it.parts[MODEL_SEAT]));
    it.parts[MODEL_OFF] = quern_world_disabled_tag(it.world);
    it.parts[MODEL_OFF_BY_PARENT] =
        quern__component_handle(&it.world->storage.components, it.world->storage.disabled_index + 1);
    it.relations[MODEL_PARENT] = quern_world_parent(it.world);
    it.relations[MODEL_LIKES] =
        make_relation(it.world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES);
}

/* Uses up the free slots, so that commands create entities in new slots in ascending order. */
static void use_free_slots(void)
{
    for (bool is_new = false; !is_new;) {
        const quern_entity made = setup_entity(it.world);
        const uint32_t slot = quern_entity_index(made);
        is_new = slot == model.slot_count;
        it.handles[slot] = made;
        if (is_new)
            prefab_model_add(&model);
        else
            prefab_model_reuse(&model, (int)slot);
    }
}

static void open_subject(uint64_t seed)
{
    memset((void *)&it, 0, sizeof it);
    memset(&model, 0, sizeof model);
    it.seed = seed;
    it.world = setup_world();
    model.prefabs = prefabs;
    register_parts();
    it.spawner = setup_component(it.world, "spawner", sizeof(spawner), 8);
    it.spawners = setup_query(it.world, (quern_term[]){quern_term_read(it.spawner)}, 1);
    must(quern_entity_create(it.world, &it.handles[HUB]));
    cr_assert_eq(quern_entity_index(it.handles[HUB]), (uint32_t)HUB);
    prefab_model_add(&model);
    for (uint32_t i = 0; i < PREFABS; i++)
        (seed + i) % 2 == 0 || !can_be_described(i) ? capture_prefab(i) : describe_prefab(i);
    model.slot_count = it.world->storage.entities.slot_count;
    use_free_slots();
    it.first_slot = (int)model.slot_count + SPAWNERS;
    for (uint32_t i = 0; i < SPAWNERS; i++)
        it.handles[prefab_model_add(&model)] = setup_entity_with(it.world, &it.spawner, 1);
    for (quern_query_iterator walk = quern_query_iterate(it.spawners); quern_query_next(&walk);)
        it.view_count++;
    cr_assert_gt(it.view_count, 1u);
    cr_assert_leq(2 * it.view_count + 1, (uint32_t)CALLS);
}

static void close_subject(void)
{
    quern_query_destroy(it.spawners);
    quern_world_destroy(it.world);
    cr_assert_eq(tracked_live_count(&it.counts_of_tracked), 0u, "values were not destroyed, or twice");
    cr_assert_eq(it.counts_of_tracked.broken_count, 0u, "hooks were called on what was no live value");
}

/* ----------------------------------------------------------------------------------------- the programs */

/* Returns a random entity that a command may name, created by the same callback or before. Its number is
 * MODEL_NONE if there is none. */
static model_ref choose(random_source *random, int created_count)
{
    if (created_count > 0 && random_chance(random, 75))
        return (model_ref){true, (int)random_below(random, (uint32_t)created_count)};
    for (uint32_t tries = 0; tries < 20 && (int)model.slot_count > it.first_slot; tries++) {
        const int slot =
            it.first_slot + (int)random_below(random, model.slot_count - (uint32_t)it.first_slot);
        if (model.things[slot].is_alive) return (model_ref){false, slot};
    }
    return model.things[HUB].is_alive ? (model_ref){false, HUB} : (model_ref){false, MODEL_NONE};
}

static void choose_overrides(random_source *random, model_command *command, int created_count)
{
    const model_prefab *prefab = &prefabs[command->prefab];
    const uint32_t wanted = random_below(random, MODEL_OVERRIDES + 1);
    for (uint32_t i = 0; i < wanted; i++) {
        model_override made = {.member = random_below(random, prefab->member_count),
                               .part = (model_part)random_below(random, MODEL_PART_COUNT),
                               .value = random_below(random, 1000)};
        if (!prefab->members[made.member].has[made.part] || made.part == MODEL_MARK ||
            made.part >= MODEL_OFF)
            continue;
        if (i > 0 && command->override_count > 0 && command->overrides[0].member == made.member &&
            command->overrides[0].part == made.part)
            continue;
        made.knows = choose(random, created_count);
        if (made.knows.number != MODEL_NONE) command->overrides[command->override_count++] = made;
    }
}

/* Fills in a random command. Returns whether it may be recorded. */
static bool choose_command(random_source *random, model_command *command, int created_count)
{
    static const model_action actions[] = {MODEL_SPAWN,  MODEL_SPAWN,   MODEL_SPAWN,    MODEL_SPAWN,
                                           MODEL_CREATE, MODEL_SET,     MODEL_SET,      MODEL_ADD,
                                           MODEL_REMOVE, MODEL_DESTROY, MODEL_RELATE,   MODEL_RELATE,
                                           MODEL_RELATE, MODEL_NAME_IT, MODEL_UNRELATE, MODEL_ACCUMULATE,
                                           MODEL_ENABLE, MODEL_DISABLE, MODEL_DISABLE};
    *command = (model_command){.action = actions[random_below(random, COUNT_OF(actions))],
                               .entity = choose(random, created_count),
                               .other = choose(random, created_count),
                               .part = (model_part)random_below(random, MODEL_OFF_BY_PARENT),
                               .relation = (model_relation)random_below(random, MODEL_RELATION_COUNT),
                               .value = random_below(random, 1000),
                               .name = random_chance(random, 50) ? 'l' : 'm',
                               .prefab = random_below(random, PREFABS)};
    if (command->action == MODEL_SPAWN) {
        if (command->prefab == 4 && !model.things[HUB].is_alive) return false;
        if (random_chance(random, 60)) command->other = (model_ref){false, MODEL_NONE}; /* no parent */
        choose_overrides(random, command, created_count);
        return true;
    }
    if (command->entity.number == MODEL_NONE || command->other.number == MODEL_NONE) return false;
    if (command->action == MODEL_ADD)
        command->value = command->part == MODEL_TRACKED        ? TRACKED_DEFAULT
                         : model_part_is_handle(command->part) ? MODEL_NONE
                                                               : 0;
    return command->action != MODEL_RELATE || command->entity.is_created != command->other.is_created ||
           command->entity.number != command->other.number;
}

static void write_programs(uint32_t call_count)
{
    for (uint32_t call = 0; call < call_count; call++) {
        random_source random = {it.seed * 1000003 + it.frame * 1009 + call};
        const uint32_t wanted = random_below(&random, COMMANDS + 1);
        int created_count = 0;
        it.counts[call] = 0;
        for (uint32_t i = 0; i < wanted; i++) {
            model_command *command = &it.commands[call][it.counts[call]];
            if (!choose_command(&random, command, created_count)) continue;
            it.counts[call]++;
            if (command->action == MODEL_CREATE) created_count++;
            if (command->action == MODEL_SPAWN) created_count += (int)prefabs[command->prefab].member_count;
        }
    }
}

/* -------------------------------------------------------------------------------------------- recording */

/* The recorder of a callback and the provisional handles of entities that it has created. */
typedef struct recording {
    quern_commands *commands;
    quern_entity created[CREATES];
    uint32_t created_count;
} recording;

static quern_entity handle_in(const recording *in, model_ref ref)
{
    return ref.is_created ? in->created[ref.number] : handle_of(ref.number);
}

static quern_result set_later(void *argument, quern_entity entity, quern_component component,
                              const void *value)
{
    return quern_commands_set(argument, entity, component, value);
}

/* `entity` is ignored. */
static quern_result create_later(void *argument, quern_entity entity, quern_component component,
                                 const void *value)
{
    recording *in = argument;
    in->created[in->created_count] = record_entity_with(in->commands, &component, &value, 1);
    return quern_entity_is_null(in->created[in->created_count++]) ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_OK;
}

static void record_spawn(recording *in, const model_command *command)
{
    const quern_prefab prefab = it.prefabs[command->prefab];
    quern_entity known[MODEL_OVERRIDES], root;
    tracked values[MODEL_OVERRIDES];
    quern_spawn_def def = {.parent = handle_in(in, command->other)};
    for (uint32_t i = 0; i < command->override_count; i++) {
        const model_override *other = &command->overrides[i];
        known[i] = handle_in(in, other->knows);
        tracked_construct(&values[i], (uint64_t)other->value, &it.counts_of_tracked);
        def.overrides[i] =
            (quern_spawn_override){.component = it.parts[other->part],
                                   .member = other->member,
                                   .column = model_part_is_handle(other->part) ? (const void *)&known[i]
                                             : other->part == MODEL_TRACKED    ? (const void *)&values[i]
                                                                            : (const void *)&other->value};
    }
    must(quern_commands_spawn(in->commands, prefab, &def, &root));
    for (uint32_t i = 0; i < command->override_count; i++)
        tracked_destroy(&values[i], &it.counts_of_tracked);
    for (uint32_t i = 0; i < prefabs[command->prefab].member_count; i++)
        in->created[in->created_count++] = quern_commands_spawned_member(in->commands, prefab, root, i);
    const model_member *top = prefabs[command->prefab].members;
    if (!top->has[MODEL_SEAT]) return;
    cr_assert_eq(quern_prefab_find_slot(it.world, prefab, it.parts[MODEL_SEAT]),
                 (uint32_t)top->values[MODEL_SEAT]);
}

static void record_command(recording *in, const model_command *command)
{
    const quern_entity entity = handle_in(in, command->entity), other = handle_in(in, command->other);
    const quern_component component = it.parts[command->part];
    quern_commands *commands = in->commands;
    switch (command->action) {
    case MODEL_CREATE:
        must(give_part(create_later, in, entity, command->part, command->value, other));
        break;
    case MODEL_SET:
        must(give_part(set_later, commands, entity, command->part, command->value, other));
        break;
    case MODEL_ADD:
        must(quern_commands_add(commands, entity, component, NULL));
        break;
    case MODEL_REMOVE:
        must(quern_commands_remove(commands, entity, component));
        break;
    case MODEL_DESTROY:
        must(quern_commands_destroy(commands, entity));
        break;
    case MODEL_RELATE:
        must(quern_commands_relate(commands, entity, it.relations[command->relation], other));
        break;
    case MODEL_UNRELATE:
        must(quern_commands_unrelate(commands, entity, it.relations[command->relation]));
        break;
    case MODEL_NAME_IT:
        must(quern_commands_set_name(commands, entity, (const char[]){command->name, '\0'}));
        break;
    case MODEL_ACCUMULATE:
        must(
            quern_commands_accumulate(commands, entity, it.parts[MODEL_OTHER], &command->value, QUERN_SUM));
        break;
    case MODEL_ENABLE:
    case MODEL_DISABLE:
        must(quern_commands_set_enabled(commands, entity, command->action == MODEL_ENABLE));
        break;
    default:
        record_spawn(in, command);
        break;
    }
}

static void record_call(quern_commands *commands, uint32_t call)
{
    recording in = {.commands = commands};
    for (uint32_t i = 0; i < it.counts[call]; i++)
        record_command(&in, &it.commands[call][i]);
}

/* -------------------------------------------------------------------------------------------- comparing */

static void expect_value(const model_thing *thing, int slot, model_part part)
{
    const quern_entity entity = it.handles[slot];
    cr_assert_eq(quern_entity_has(it.world, entity, it.parts[part]), thing->has[part], "slot %d, part %u",
                 slot, (unsigned)part);
    if (!thing->has[part] || part == MODEL_MARK || part >= MODEL_OFF) return;
    const void *value = quern_entity_get(it.world, entity, it.parts[part]);
    const int64_t expected = thing->values[part];
    if (part == MODEL_TRACKED) {
        cr_assert(tracked_is_live(value));
        cr_assert_eq((int64_t)((const tracked *)value)->payload, expected, "slot %d", slot);
    } else if (!model_part_is_handle(part)) {
        cr_assert_eq(*(const int64_t *)value, expected, "slot %d, part %u", slot, (unsigned)part);
    } else if (expected == MODEL_NONE) {
        cr_assert(quern_entity_is_null(*(const quern_entity *)value), "slot %d", slot);
    } else if (expected == MODEL_GONE) {
        cr_assert_not(quern_entity_is_alive(it.world, *(const quern_entity *)value), "slot %d", slot);
    } else {
        const quern_entity known = *(const quern_entity *)value;
        cr_assert_eq((int64_t)quern_entity_index(known), expected, "slot %d", slot);
        cr_assert_not(quern_entity_is_provisional(known), "slot %d", slot);
    }
}

static void expect_thing(int slot)
{
    const model_thing *thing = &model.things[slot];
    const quern_entity entity = it.handles[slot];
    for (model_part part = 0; part < MODEL_PART_COUNT; part++)
        expect_value(thing, slot, part);
    for (model_relation i = 0; i < MODEL_RELATION_COUNT; i++)
        cr_assert_eq(quern_entity_target(it.world, entity, it.relations[i]).bits,
                     handle_of(thing->targets[i]).bits, "slot %d, relation %u", slot, (unsigned)i);
    cr_assert_eq(quern_prefab_part(it.world, entity, it.parts[MODEL_SEAT]).bits,
                 handle_of(prefab_model_seat(&model, slot)).bits, "slot %d", slot);
    cr_assert_eq(quern_entity_is_enabled(it.world, entity), !thing->has[MODEL_OFF], "slot %d", slot);
    const char *name = quern_entity_name(it.world, entity);
    cr_assert_eq(name != NULL ? name[0] : '\0', thing->name, "slot %d", slot);
    int child = MODEL_NONE;
    for (quern_entity real = quern_entity_first_source(it.world, entity, it.relations[MODEL_PARENT]);
         !quern_entity_is_null(real);
         real = quern_entity_next_sibling(it.world, real, it.relations[MODEL_PARENT])) {
        child = prefab_model_next_child(&model, slot, child);
        cr_assert_eq((int)quern_entity_index(real), child, "slot %d", slot);
    }
    cr_assert_eq(prefab_model_next_child(&model, slot, child), MODEL_NONE, "slot %d", slot);
}

/* Compares the world with the model. docs/commands.md defines the slots that created entities get, so
 * the model knows them. */
static void expect_model(void)
{
    const quern__entities *entities = &it.world->storage.entities;
    assert_valid(it.world);
    cr_assert_eq(entities->slot_count, model.slot_count, "seed %llu", (unsigned long long)it.seed);
    cr_assert_eq(stats_of_world(it.world).entity_count, prefab_model_alive_count(&model));
    for (uint32_t slot = 0; slot < model.slot_count; slot++) {
        const quern__record *record = quern__entities_record(entities, slot);
        const quern_entity entity = {(uint64_t)record->handle_high << 32 | slot};
        cr_assert_eq(quern_entity_is_alive(it.world, entity), model.things[slot].is_alive,
                     "slot %u, frame %u, seed %llu", slot, it.frame, (unsigned long long)it.seed);
        if (model.things[slot].is_alive) it.handles[slot] = entity;
    }
    for (uint32_t slot = 0; slot < model.slot_count; slot++)
        if (model.things[slot].is_alive) expect_thing((int)slot);
}

/* -------------------------------------------------------------------------------------------- in frames */

static void call_with(quern_context *context, uint32_t call)
{
    quern_commands *commands = quern_context_commands(context);
    if (call == it.frame % 3) it.kept[it.frame] = commands;
    record_call(commands, call);
}

static void run_first(quern_context *context, const quern_view *view)
{
    call_with(context, view->ordinal);
}

static void begin_second(quern_context *context)
{
    call_with(context, it.view_count);
}

static void run_second(quern_context *context, const quern_view *view)
{
    call_with(context, it.view_count + 1 + view->ordinal);
}

static quern_schedule *make_schedule(uint32_t style, bool is_parallel)
{
    quern_schedule *schedule = setup_schedule_as(it.world, schedule_style(style), 1);
    quern_system_def def = system_def("first", run_first);
    def.terms[0] = quern_term_read(it.spawner);
    setup_system(schedule, &def);
    def.name = "second";
    def.run = run_second;
    def.begin = begin_second;
    def.after[0] = "first";
    setup_system(schedule, &def);
    if (is_parallel) schedule->playback.parallel_command_count = 1;
    schedule->playback.disable_fast_paths = style % 2 == 1;
    return schedule;
}

/* Asserts that all kept recorders fail, also those of frames with smaller pools. */
static void expect_kept_refused(void)
{
    captured_reports reports = {0};
    capture_reports(&reports);
    for (uint32_t i = 0; i <= it.frame; i++) {
        const uint32_t before = reports.log_count + reports.assert_count;
        cr_assert(quern_entity_is_null(record_entity(it.kept[i])));
        cr_assert_neq(quern_commands_destroy(it.kept[i], it.handles[it.first_slot - 1]), QUERN_OK);
        cr_assert_gt(reports.log_count + reports.assert_count, before);
    }
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

/* The results that must be equal in every setting. */
typedef struct outcome {
    uint64_t hash, command_count, dropped_count, created_count, destroyed_count;
} outcome;

/* Runs frames with one pool each; NULL for none. */
static void run_frames(uint64_t seed, uint32_t style, bool is_parallel, quern_jobs *const *pools,
                       outcome out[FRAMES])
{
    open_subject(seed);
    quern_schedule *schedule = make_schedule(style, is_parallel);
    for (; it.frame < FRAMES; it.frame++) {
        const uint32_t call_count = 2 * it.view_count + 1;
        use_free_slots();
        write_programs(call_count);
        must_run(schedule, pools[it.frame]);
        for (uint32_t i = 0; i < call_count; i++)
            prefab_model_call(&model, it.commands[i], it.counts[i]);
        prefab_model_sync(&model);
        expect_model();
        expect_kept_refused();
        const quern_frame_stats stats = stats_of_frame(schedule);
        out[it.frame] = (outcome){quern_world_hash(it.world), stats.command_count, stats.dropped_count,
                                  stats.created_count, stats.destroyed_count};
    }
    quern_schedule_destroy(schedule);
    close_subject();
}

static void expect_outcome(const outcome *actual, const outcome *expected, uint64_t seed, uint32_t setting)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        const unsigned long long n = seed;
        cr_assert_eq(actual[i].hash, expected[i].hash, "seed %llu, setting %u, frame %u", n, setting, i);
        cr_assert_eq(actual[i].command_count, expected[i].command_count, "seed %llu, setting %u", n,
                     setting);
        cr_assert_eq(actual[i].dropped_count, expected[i].dropped_count, "seed %llu, setting %u", n,
                     setting);
        cr_assert_eq(actual[i].created_count, expected[i].created_count, "seed %llu, setting %u", n,
                     setting);
        cr_assert_eq(actual[i].destroyed_count, expected[i].destroyed_count, "seed %llu, setting %u", n,
                     setting);
    }
}

/* Tests one setting per thread count and style, and one in which each frame has a larger pool than the
 * one before. */
Test(prefab_model, random_programs_in_frames, .timeout = 600)
{
    enum { POOLS = 4, SETTINGS = 7 };
    static const uint32_t threads[POOLS] = {1, 2, 3, 8};
    static const uint32_t pool_of_setting[SETTINGS] = {0, 1, 2, 3, 2, 3, 1};
    quern_jobs *jobs[POOLS], *growing[FRAMES] = {NULL};
    for (uint32_t i = 0; i < POOLS; i++)
        jobs[i] = setup_jobs(threads[i]);
    for (uint32_t i = 1; i < FRAMES; i++)
        growing[i] = jobs[i];
    for (uint64_t seed = 1; seed <= effort(60, 12, 3); seed++) {
        outcome expected[FRAMES], actual[FRAMES];
        run_frames(seed, 0, false, growing, expected);
        for (uint32_t i = 0; i < SETTINGS; i++) {
            quern_jobs *const same[FRAMES] = {jobs[pool_of_setting[i]], jobs[pool_of_setting[i]],
                                              jobs[pool_of_setting[i]], jobs[pool_of_setting[i]]};
            run_frames(seed, i % STYLE_COUNT, i > 0, same, actual);
            expect_outcome(actual, expected, seed, i);
        }
    }
    for (uint32_t i = 0; i < POOLS; i++)
        quern_jobs_destroy(jobs[i]);
}

/* Each callback has its own sync point. */
Test(prefab_model, random_programs_between_frames, .timeout = 600)
{
    runs_on_one_thread();
    for (uint64_t seed = 1; seed <= effort(400, 80, 1); seed++) {
        open_subject(seed);
        for (; it.frame < 2 * FRAMES; it.frame++) {
            use_free_slots();
            write_programs(1);
            record_call(quern_world_commands(it.world), 0);
            must(quern_world_flush(it.world));
            prefab_model_call(&model, it.commands[0], it.counts[0]);
            prefab_model_sync(&model);
            expect_model();
        }
        close_subject();
    }
}
