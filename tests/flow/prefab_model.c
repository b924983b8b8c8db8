/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/prefab_model.h"

#include <stddef.h>

int prefab_model_add(prefab_model *model)
{
    model->things[model->slot_count] = (model_thing){.is_alive = true, .targets = {MODEL_NONE, MODEL_NONE}};
    return (int)model->slot_count++;
}

bool model_part_is_handle(model_part part)
{
    return part == MODEL_KNOWS || part == MODEL_SEAT;
}

void prefab_model_reuse(prefab_model *model, int slot)
{
    for (uint32_t i = 0; i < model->slot_count; i++)
        for (model_part part = 0; part < MODEL_PART_COUNT; part++)
            if (model_part_is_handle(part) && model->things[i].values[part] == slot)
                model->things[i].values[part] = MODEL_GONE;
    model->things[slot] = (model_thing){.is_alive = true, .targets = {MODEL_NONE, MODEL_NONE}};
}

int prefab_model_seat(const prefab_model *model, int slot)
{
    const model_thing *thing = &model->things[slot];
    const int64_t seat = thing->has[MODEL_SEAT] ? thing->values[MODEL_SEAT] : MODEL_NONE;
    return seat >= 0 && model->things[seat].is_alive ? (int)seat : MODEL_NONE;
}

uint32_t prefab_model_alive_count(const prefab_model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->slot_count; i++)
        count += model->things[i].is_alive;
    return count;
}

int prefab_model_next_child(const prefab_model *model, int parent, int child)
{
    const uint64_t after = child != MODEL_NONE ? model->things[child].joined : 0;
    int next = MODEL_NONE;
    for (int i = 0; i < (int)model->slot_count; i++) {
        const model_thing *thing = &model->things[i];
        if (!thing->is_alive || thing->targets[MODEL_PARENT] != parent || thing->joined <= after) continue;
        if (next == MODEL_NONE || thing->joined < model->things[next].joined) next = i;
    }
    return next;
}

/* ---------------------------------------------------------------------------------- names and relations */

/* Whether another entity below the parent has the name. Parent MODEL_NONE: whether another entity
 * without parent has it. */
static bool is_taken(const prefab_model *model, int slot, int parent, char name)
{
    for (int i = 0; i < (int)model->slot_count && name != 0; i++)
        if (i != slot && model->things[i].is_alive && model->things[i].name == name &&
            model->things[i].targets[MODEL_PARENT] == parent)
            return true;
    return false;
}

static bool is_below(const prefab_model *model, int slot, int above)
{
    while (slot != MODEL_NONE && slot != above)
        slot = model->things[slot].targets[MODEL_PARENT];
    return slot == above;
}

void prefab_model_relate(prefab_model *model, int source, model_relation relation, int target)
{
    model_thing *thing = &model->things[source];
    if (!thing->is_alive || !model->things[target].is_alive || thing->targets[relation] == target) return;
    if (relation == MODEL_PARENT) {
        if (is_below(model, target, source) || is_taken(model, source, target, thing->name)) return;
        thing->joined = ++model->clock;
    }
    thing->targets[relation] = target;
}

static void unrelate(prefab_model *model, int source, model_relation relation)
{
    model_thing *thing = &model->things[source];
    if (!thing->is_alive || thing->targets[relation] == MODEL_NONE) return;
    if (relation == MODEL_PARENT && is_taken(model, source, MODEL_NONE, thing->name)) return;
    thing->targets[relation] = MODEL_NONE;
}

static void destroy(prefab_model *model, int slot)
{
    model->things[slot].is_alive = false;
    for (int i = 0; i < (int)model->slot_count; i++) {
        model_thing *thing = &model->things[i];
        if (!thing->is_alive) continue;
        if (thing->targets[MODEL_LIKES] == slot) thing->targets[MODEL_LIKES] = MODEL_NONE;
        if (thing->targets[MODEL_PARENT] == slot) destroy(model, i);
    }
}

/* ------------------------------------------------------------------------------------------- commands */

static int slot_of(model_ref ref, int first)
{
    return ref.is_created ? first + ref.number : ref.number;
}

static void set(model_thing *thing, model_part part, int64_t value)
{
    thing->has[part] = true;
    thing->values[part] = value;
}

static void spawn(prefab_model *model, const model_command *command, int first)
{
    const model_prefab *prefab = &model->prefabs[command->prefab];
    const int root = (int)model->slot_count;
    for (uint32_t i = 0; i < prefab->member_count; i++) {
        const model_member *member = &prefab->members[i];
        model_thing *thing = &model->things[prefab_model_add(model)];
        for (model_part part = 0; part < MODEL_PART_COUNT; part++) {
            if (!member->has[part]) continue;
            const bool is_inside = part == MODEL_SEAT || (part == MODEL_KNOWS && member->knows_member);
            set(thing, part, member->values[part] + (is_inside ? root : 0));
        }
    }
    for (uint32_t i = 0; i < command->override_count; i++) {
        const model_override *other = &command->overrides[i];
        set(&model->things[root + (int)other->member], other->part,
            model_part_is_handle(other->part) ? slot_of(other->knows, first) : other->value);
    }
    if (command->other.number != MODEL_NONE)
        prefab_model_relate(model, root, MODEL_PARENT, slot_of(command->other, first));
    for (uint32_t i = 0; i < prefab->member_count; i++) {
        const model_member *member = &prefab->members[i];
        const int slot = root + (int)i;
        if (member->parent != MODEL_NONE)
            prefab_model_relate(model, slot, MODEL_PARENT, root + member->parent);
        if (member->likes != MODEL_NONE)
            prefab_model_relate(model, slot, MODEL_LIKES,
                                member->likes + (member->likes_outside ? 0 : root));
        model->things[slot].name = member->name;
    }
}

static void create(prefab_model *model, const model_command *command, int first)
{
    model_thing *thing = &model->things[prefab_model_add(model)];
    set(thing, command->part,
        model_part_is_handle(command->part) ? slot_of(command->other, first) : command->value);
}

static void set_off(model_thing *thing, bool is_off, bool is_by_parent)
{
    thing->has[MODEL_OFF] = is_off;
    thing->has[MODEL_OFF_BY_PARENT] = is_by_parent;
}

/* Gives the entities below a parent, unless they are disabled by themselves, the state of their parents. */
static void update_below(prefab_model *model, int parent)
{
    const bool is_off = model->things[parent].has[MODEL_OFF];
    for (int i = 0; i < (int)model->slot_count; i++) {
        model_thing *thing = &model->things[i];
        if (!thing->is_alive || thing->targets[MODEL_PARENT] != parent) continue;
        if (!thing->has[MODEL_OFF] || thing->has[MODEL_OFF_BY_PARENT]) set_off(thing, is_off, is_off);
        update_below(model, i);
    }
}

static void switch_tree(prefab_model *model, int slot, bool enables)
{
    const int parent = model->things[slot].targets[MODEL_PARENT];
    const bool is_off_by_parent = enables && parent != MODEL_NONE && model->things[parent].has[MODEL_OFF];
    set_off(&model->things[slot], !enables || is_off_by_parent, is_off_by_parent);
    update_below(model, slot);
}

/* Applies a command to an existing, living entity. */
static void change(prefab_model *model, const model_command *command, int slot, int first)
{
    model_thing *thing = &model->things[slot];
    switch (command->action) {
    case MODEL_SET:
        set(thing, command->part,
            model_part_is_handle(command->part) ? slot_of(command->other, first) : command->value);
        break;
    case MODEL_ADD:
        if (!thing->has[command->part]) set(thing, command->part, command->value);
        break;
    case MODEL_REMOVE:
        thing->has[command->part] = false;
        break;
    case MODEL_DESTROY:
        destroy(model, slot);
        break;
    case MODEL_RELATE:
        prefab_model_relate(model, slot, command->relation, slot_of(command->other, first));
        break;
    case MODEL_UNRELATE:
        unrelate(model, slot, command->relation);
        break;
    case MODEL_NAME_IT:
        if (!is_taken(model, slot, thing->targets[MODEL_PARENT], command->name))
            thing->name = command->name;
        break;
    case MODEL_ENABLE:
    case MODEL_DISABLE:
        switch_tree(model, slot, command->action == MODEL_ENABLE);
        break;
    default:
        break;
    }
}

void prefab_model_call(prefab_model *model, const model_command *commands, uint32_t count)
{
    const int first = (int)model->slot_count;
    for (uint32_t i = 0; i < count; i++) {
        const model_command *command = &commands[i];
        const int slot = slot_of(command->entity, first);
        if (command->action == MODEL_SPAWN)
            spawn(model, command, first);
        else if (command->action == MODEL_CREATE)
            create(model, command, first);
        else if (command->action == MODEL_ACCUMULATE) {
            model->accumulated[model->accumulated_count].slot = slot;
            model->accumulated[model->accumulated_count++].value = command->value;
        } else if (model->things[slot].is_alive)
            change(model, command, slot, first);
    }
}

void prefab_model_sync(prefab_model *model)
{
    for (uint32_t i = 0; i < model->accumulated_count; i++) {
        model_thing *thing = &model->things[model->accumulated[i].slot];
        if (thing->is_alive && thing->has[MODEL_OTHER])
            thing->values[MODEL_OTHER] += model->accumulated[i].value;
    }
    model->accumulated_count = 0;
}
