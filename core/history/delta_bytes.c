/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A delta as bytes. All numbers are little-endian.
 *
 *   | head | components | resources | batches |
 *
 *   component, resource   name with a length of one byte, size, hash of the layout. Numbered from 0
 *   batch                 head; keys of the entities; values in `to`, if the kind has any and the type a size; the
 *                         elements of the lists in them, value by value (list_values.h), where the values have zero
 *                         bytes; of RELATED and UNRELATED batches the keys of the targets; of a NAMED batch the length
 *                         of the name (0: none) and the name
 *
 * The *key* of an entity is its handle as quern__entity_to_relative gives it: use count and slot in the world of the
 * history. It is the same in all processes. Handles in described fields are keys, too. 0 is the null handle.
 *
 * Only values in `to` are written, so bytes cannot be applied backwards. */

#include "core/history/history_internal.h"
#include "core/playback/playback.h"
#include "core/storage/list_values.h"

#include <quern/commands.h>
#include <quern/history.h>

#define IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef struct delta_batch_head {
    uint32_t kind;   /* quern_delta_kind */
    uint32_t number; /* of the component or resource; 0 for other kinds */
    uint32_t count;  /* entities */
} delta_batch_head;

/* Returns a hash of everything that both sides must agree on about a type. */
static uint64_t layout_hash(const quern__type *type)
{
    uint64_t hash = quern__hash_word(type->size_bytes, type->field_count);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        hash = quern__hash_word(hash, quern__hash_string(field->name));
        hash = quern__hash_word(hash, (uint64_t)field->type << 32 | field->offset_bytes);
        hash = quern__hash_word(hash, field->count);
        if (field->type != QUERN_FIELD_LIST) continue;
        const quern_element *element = field->element;
        const quern__type structs = {.size_bytes = element->size_bytes,
                                     .fields = (quern_field *)(uintptr_t)element->fields,
                                     .field_count = element->field_count};
        hash = quern__hash_word(hash, element->type);
        if (element->type == 0) hash = quern__hash_word(hash, layout_hash(&structs));
    }
    return hash;
}

/* Whether a batch of the kind has a target for each entity. */
static bool has_targets(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_RELATED || kind == QUERN_DELTA_UNRELATED;
}

/* Whether a batch of the kind is about one component. */
static bool has_component(quern_delta_kind kind)
{
    return (kind >= QUERN_DELTA_ADDED && kind <= QUERN_DELTA_DISABLED) || has_targets(kind);
}

/* Whether a batch of the kind has values in `to`. */
static bool has_values_in_to(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_ADDED || kind == QUERN_DELTA_CHANGED;
}

/* ------------------------------------------------------------------------------------------ writing */

enum { UNNUMBERED = 0 }; /* numbers are stored plus 1 */

typedef struct delta_writing {
    const quern_delta *delta;
    const quern_delta_write_def *def;
    const quern_world *world;
    uint32_t first_handle_high;
    uint32_t *component_numbers, *resource_numbers; /* by index */
    quern__delta_head head;
    quern__byte_writer components, resources, batches;
} delta_writing;

/* ------------------------------------------------------------------------------------------- types */

static quern_result check_savable(const quern__type *type, bool is_component)
{
    if (!quern__type_owns_unknown(type) || (type->field_count > 0 && !is_component)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "values of '%s' have hooks, so bytes cannot contain what they own: list the components to "
        "write without it, or set skip_resources for a resource",
        type->name);
}

/* Writes a type if it is new, and stores its number. */
static void number_type(uint32_t *numbers, uint32_t index, uint32_t *count, const quern__type *type,
                        quern__byte_writer *writer, uint32_t *out_number)
{
    if (numbers[index] == UNNUMBERED) {
        numbers[index] = ++*count;
        quern__write_text(writer, QUERN__DELTA_NAME_LENGTH_BYTES, type->name);
        quern__write_u32(writer, type->size_bytes);
        quern__write_u64(writer, layout_hash(type));
    }
    *out_number = numbers[index] - 1;
}

/* ----------------------------------------------------------------------------------------- batches */

static quern_entity key_of(void *argument, quern_entity entity)
{
    const delta_writing *it = argument;
    return (quern_entity){quern__entity_to_relative(entity, it->first_handle_high)};
}

static void write_values(delta_writing *it, const quern__type *type, const char *values, uint32_t count)
{
    char *room = quern__write_room(&it->batches, (size_t)count * type->size_bytes);
    if (room == NULL || type->size_bytes == 0) return;
    memcpy(room, values, (size_t)count * type->size_bytes);
    for (uint32_t i = 0; i < count && type->lists != NULL; i++)
        quern__type_clear_lists(type, room + (size_t)i * type->size_bytes);
    for (uint32_t i = 0; i < count && type->has_entity_fields; i++)
        quern__type_remap(type, room + (size_t)i * type->size_bytes, key_of, it);
    for (uint32_t i = 0; i < count && type->lists != NULL; i++)
        quern__type_write_lists(type, values + (size_t)i * type->size_bytes, &it->batches, key_of, it);
}

static void write_head_and_keys(delta_writing *it, const quern_delta_batch *batch, uint32_t number)
{
    const delta_batch_head head = {batch->kind, number, batch->count};
    quern__write(&it->batches, &head, sizeof head);
    for (uint32_t i = 0; i < batch->count; i++)
        quern__write_u64(&it->batches, key_of(it, batch->entities[i]).bits);
    it->head.batch_count++;
}

static quern_result write_batch(delta_writing *it, const quern_delta_batch *batch)
{
    if (batch->kind == QUERN_DELTA_RESOURCE) {
        if (it->def->skip_resources) return QUERN_OK;
        const uint32_t index = quern__resource_index(batch->resource);
        const quern__type *type = &it->world->resources.list.items[index].type;
        const quern_result result = check_savable(type, false);
        if (result != QUERN_OK || batch->values == NULL) return result;
        uint32_t number;
        number_type(it->resource_numbers, index, &it->head.resource_count, type, &it->resources, &number);
        write_head_and_keys(it, batch, number);
        write_values(it, type, batch->values, 1);
        return QUERN_OK;
    }
    if (has_component(batch->kind)) {
        if (!quern__delta_lists(it->def->components, batch->component)) return QUERN_OK;
        const uint32_t index = quern__component_index(batch->component);
        const quern__type *type = quern__components_type(&it->world->storage.components, index);
        const bool has_values = has_values_in_to(batch->kind);
        const quern_result result = has_values ? check_savable(type, true) : QUERN_OK;
        if (result != QUERN_OK) return result;
        uint32_t number;
        number_type(it->component_numbers, index, &it->head.component_count, type, &it->components,
                    &number);
        write_head_and_keys(it, batch, number);
        if (has_values) write_values(it, type, batch->values, batch->count);
        const quern_entity *targets =
            batch->kind == QUERN_DELTA_RELATED ? batch->values : batch->old_values;
        for (uint32_t i = 0; has_targets(batch->kind) && i < batch->count; i++)
            quern__write_u64(&it->batches, key_of(it, targets[i]).bits);
        return QUERN_OK;
    }
    if (batch->kind == QUERN_DELTA_NAMED && it->def->skip_names) return QUERN_OK;
    write_head_and_keys(it, batch, 0);
    if (batch->kind == QUERN_DELTA_NAMED)
        quern__write_text(&it->batches, QUERN__DELTA_NAME_LENGTH_BYTES,
                          batch->name != NULL ? batch->name : "");
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ sinking */

static quern_result fail_written_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the bytes of a delta; nothing was written");
}

static quern_result write_all(delta_writing *it, quern_sink sink)
{
    const uint32_t count = it->delta->count;
    const uint32_t first = it->def->first_batch < count ? it->def->first_batch : count;
    const uint32_t most = it->def->batch_count > 0 ? it->def->batch_count : count;
    const uint32_t end = most < count - first ? first + most : count;
    quern_result result = QUERN_OK;
    for (uint32_t i = first; i < end && result == QUERN_OK; i++)
        result = write_batch(it, &it->delta->batches[i]);
    if (result != QUERN_OK) return result;
    /* the parts are joined in the first of them */
    quern__byte_writer *all = &it->components;
    quern__write(all, it->resources.bytes, it->resources.count);
    quern__write(all, it->batches.bytes, it->batches.count);
    if (all->has_failed || it->resources.has_failed || it->batches.has_failed) return fail_written_memory();
    memcpy(it->head.magic, QUERN__DELTA_MAGIC, sizeof it->head.magic);
    it->head.version = QUERN__DELTA_VERSION;
    it->head.bytes = all->count;
    it->head.checksum = quern__delta_checksum(&it->head, all->bytes);
    quern__sink_writer writer = {.sink = sink};
    quern__sink_write(&writer, &it->head, sizeof it->head);
    quern__sink_write(&writer, all->bytes, all->count);
    quern__sink_write(&writer, "", 0);
    return quern__sink_check(&writer, "the delta");
}

quern_result quern__delta_check_components(const quern_world *world, const quern_component *list)
{
    uint32_t count;
    quern_result result = quern__list_count(list, QUERN_MAX_DELTA_COMPONENTS, quern__is_end_of_handles,
                                            "component", NULL, &count);
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = quern__components_check(&world->storage.components, list[i]);
        if (result != QUERN_OK) quern__message_add_element(result, "component", i);
    }
    return result;
}

static quern_result check_and_write(const quern_delta *delta, const quern_delta_write_def *def,
                                    quern_sink sink)
{
    static const quern_delta_write_def zero;
    delta_writing it = {.delta = delta,
                        .def = def != NULL ? def : &zero,
                        .world = delta->history->world,
                        .first_handle_high = delta->history->world->storage.entities.first_handle_high};
    quern_result result = quern__world_check_unlocked(it.world, "quern_delta_write");
    if (result == QUERN_OK) result = quern__delta_check_components(it.world, it.def->components);
    if (result == QUERN_OK && !IS_NATIVE)
        result = quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "deltas are little-endian, but this machine is big-endian: write them on a little-endian "
            "machine");
    if (result != QUERN_OK) return result;
    const quern_allocator *allocator = &delta->history->store.allocator;
    const uint32_t component_count = it.world->storage.components.list.count;
    const uint32_t count = component_count + it.world->resources.list.count;
    const size_t numbers_bytes = (count + 1) * sizeof(uint32_t);
    it.components.allocator = it.resources.allocator = it.batches.allocator = allocator;
    it.component_numbers = quern__allocate(allocator, numbers_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (it.component_numbers == NULL) return fail_written_memory();
    memset(it.component_numbers, 0, numbers_bytes);
    it.resource_numbers = it.component_numbers + component_count;
    result = write_all(&it, sink);
    quern__release(allocator, it.component_numbers, numbers_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__byte_writer_release(&it.components);
    quern__byte_writer_release(&it.resources);
    quern__byte_writer_release(&it.batches);
    return result;
}

quern_result quern_delta_write(const quern_delta *delta, const quern_delta_write_def *def, quern_sink sink)
{
    QUERN__NEED(delta);
    const quern_result result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(check_and_write(delta, def, sink), __func__);
}
/* ----------------------------------------------------------------------------------------- applying */

/* Applies the bytes of a delta to a world. The bytes are first turned into commands, completely: if they are damaged or
 * memory is exhausted, the commands are discarded, and nothing has changed. Applying the commands is one sync point,
 * which succeeds or fails as a whole. The last steps, the map of keys and the resources, cannot fail. */

enum { APPLIER_ALIGNMENT_BYTES = 128 };

struct quern_delta_applier {
    quern_world *world;
    quern_world_user user;
    /* The entities that the program or a delta has entered. All others have the handle that follows from their key. */
    quern__map entities; /* key -> handle in the world */
    quern__map keys;     /* the inverse */
    quern_commands recorder;
    quern__playback playback;
};

/* A type of the message and its counterpart in the world. */
typedef struct delta_type {
    const quern__type *type;
    uint32_t index;
} delta_type;

/* The value of a resource in the message. */
typedef struct delta_resource {
    const delta_type *of;
    const char *value;
} delta_resource;

typedef QUERN__ARRAY(delta_type) delta_types;
typedef QUERN__ARRAY(uint64_t) delta_keys;

typedef struct delta_applying {
    quern_delta_applier *applier;
    quern__storage *storage;
    quern__byte_writer copy; /* the message, if the source is not in memory */
    quern__byte_reader bytes;
    quern__delta_head head;
    delta_types components, resources;
    QUERN__ARRAY(delta_resource) resource_values; /* their batches are the last */
    quern__map made;                              /* key -> provisional handle of a created entity */
    delta_keys created_keys;                      /* in the order of creation */
    delta_keys destroyed_keys;
    char *value; /* memory of QUERN_MAX_COMPONENT_BYTES for an aligned value */
    QUERN__ARRAY(quern_list)
    resource_lists; /* the lists of resources, in order; handles in them are keys */
} delta_applying;

/* ----------------------------------------------------------------------------------------- failures */

static quern_result fail_bytes(const char *what)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the bytes are no delta, or are damaged: %s; use an intact copy", what);
}

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory to apply a delta; the world is unchanged");
}

/* ----------------------------------------------------------------------------------------- handles */

/* Returns the entity of the world with the key before the message is applied, or null. */
static quern_entity find_entity(const quern_delta_applier *applier, uint64_t key)
{
    const quern__entities *entities = &applier->world->storage.entities;
    const uint64_t *mapped = key != 0 ? quern__map_find(&applier->entities, key) : NULL;
    const quern_entity entity = mapped != NULL
                                    ? (quern_entity){*mapped}
                                    : quern__entity_from_relative(key, entities->first_handle_high);
    if (quern__entities_find(entities, entity) == NULL) return (quern_entity){0};
    return mapped != NULL || quern__map_find(&applier->keys, entity.bits) == NULL ? entity
                                                                                  : (quern_entity){0};
}

static void forget_entity(quern_delta_applier *applier, uint64_t key)
{
    const uint64_t *known = quern__map_find(&applier->entities, key);
    if (known == NULL) return;
    quern__map_remove(&applier->keys, *known);
    quern__map_remove(&applier->entities, key);
}

/* Precondition: both maps have room for one more. */
static void enter_entity(quern_delta_applier *applier, uint64_t key, quern_entity entity)
{
    const uint64_t *known_key = quern__map_find(&applier->keys, entity.bits);
    if (known_key != NULL) forget_entity(applier, *known_key);
    forget_entity(applier, key);
    quern__map_put(&applier->entities, key, entity.bits);
    quern__map_put(&applier->keys, entity.bits, key);
}

static bool reserve_entities(quern_delta_applier *applier, uint32_t more)
{
    const quern_allocator *allocator = &applier->world->storage.allocator;
    return quern__map_reserve(&applier->entities, allocator, applier->entities.count + more) &&
           quern__map_reserve(&applier->keys, allocator, applier->keys.count + more);
}

/* Maps a key in a value or in front of it: created entities have provisional handles until the commands are applied. */
static quern_entity map_key(void *argument, quern_entity key)
{
    const delta_applying *it = argument;
    const uint64_t *made = key.bits != 0 ? quern__map_find(&it->made, key.bits) : NULL;
    return made != NULL ? (quern_entity){*made} : find_entity(it->applier, key.bits);
}

static quern_entity map_final_key(void *argument, quern_entity key)
{
    return find_entity(argument, key.bits);
}

/* --------------------------------------------------------------------------------------------- types */

static const quern__type *find_component(const delta_applying *it, const char *name, uint32_t *out_index)
{
    const quern_component found = quern__components_find(&it->storage->components, name);
    if (found.bits == 0) return NULL;
    *out_index = quern__component_index(found);
    return quern__components_type(&it->storage->components, *out_index);
}

static const quern__type *find_resource(const delta_applying *it, const char *name, uint32_t *out_index)
{
    const quern__resources *resources = &it->applier->world->resources;
    const quern_resource found = quern__resources_find(resources, name);
    if (found.bits == 0) return NULL;
    *out_index = quern__resource_index(found);
    return &resources->list.items[*out_index].type;
}

typedef const quern__type *find_function(const delta_applying *it, const char *name, uint32_t *out_index);

static quern_result read_types(delta_applying *it, uint32_t count, find_function *find, delta_types *types)
{
    for (uint32_t i = 0; i < count; i++) {
        char name[QUERN_MAX_NAME_BYTES + 1];
        quern__read_text(&it->bytes, QUERN__DELTA_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, name);
        const uint32_t size_bytes = quern__read_u32(&it->bytes);
        const uint64_t layout = quern__read_u64(&it->bytes);
        if (it->bytes.has_failed) return fail_bytes("a type is incomplete");
        delta_type found;
        found.type = find(it, name, &found.index);
        if (found.type == NULL)
            return quern__fail(
                QUERN_ERROR_UNKNOWN_COMPONENT,
                "the world lacks '%s', which the delta has changes of: register it, or write the delta "
                "without it",
                name);
        if (found.type->size_bytes != size_bytes || layout_hash(found.type) != layout)
            return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                               "'%s' has other fields or another size in this world than in the one of the "
                               "delta: register "
                               "the same type, or send an archive, which converts values",
                               name);
        if (!quern__array_reserve(&it->storage->allocator, types, types->count + 1)) return fail_memory();
        types->items[types->count++] = found;
    }
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- commands */

static bool remember(const delta_applying *it, delta_keys *list, uint64_t key)
{
    if (!quern__array_reserve(&it->storage->allocator, list, list->count + 1)) return false;
    list->items[list->count++] = key;
    return true;
}

static quern_result record_created(delta_applying *it, uint64_t key)
{
    if (key == 0 || map_key(it, (quern_entity){key}).bits != 0)
        return fail_bytes(
            "an entity is created that exists already, so the world is not in the older state");
    quern_entity made;
    const quern_result result = quern_commands_create(&it->applier->recorder, &made);
    if (result != QUERN_OK) return result;
    if (!quern__map_reserve(&it->made, &it->storage->allocator, it->made.count + 1) ||
        !remember(it, &it->created_keys, key))
        return fail_memory();
    quern__map_put(&it->made, key, made.bits);
    return QUERN_OK;
}

static quern_result record_name(delta_applying *it, quern_entity entity)
{
    char name[QUERN_MAX_ENTITY_NAME_BYTES + 1] = "";
    uint8_t length = 0;
    quern__read(&it->bytes, &length, sizeof length);
    const char *text = quern__read_in_place(&it->bytes, length);
    if (text == NULL || length > QUERN_MAX_ENTITY_NAME_BYTES || memchr(text, '\0', length) != NULL)
        return fail_bytes("a name is invalid");
    memcpy(name, text, length);
    return quern_commands_set_name(&it->applier->recorder, entity, length > 0 ? name : NULL);
}

static quern_component component_of(const delta_applying *it, const delta_type *of)
{
    return quern__component_handle(&it->storage->components, of->index);
}

/* Records the values of edges in it->value: that of the entity's target, or one for each element of the list. Elements
 * without an edge are left out: those of targets that this world does not have, or that the delta destroys. */
static quern_result record_edge_values(delta_applying *it, quern_entity entity, const delta_type *of)
{
    quern_commands *commands = &it->applier->recorder;
    const quern__components *components = &it->storage->components;
    const uint32_t owner = components->list.items[of->index]->edge_owner - 1;
    const quern__relation *known = components->list.items[owner]->managed.relation;
    const quern_relation relation = {quern__component_handle(components, owner).bits};
    if (!known->is_many)
        return quern__commands_set_target_value(commands, entity, relation, it->value, "quern_delta_apply");
    quern_list list;
    memcpy(&list, it->value, sizeof list);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < list.count && result == QUERN_OK; i++) {
        const char *element = (const char *)list.items + (size_t)i * known->element.size_bytes;
        quern_entity target;
        memcpy(&target, element, sizeof target);
        if (target.bits != 0)
            result =
                quern__commands_set_target_value(commands, entity, relation, element, "quern_delta_apply");
    }
    return result;
}

/* Records that the entity gets the component with the value in it->value, whose lists are the next bytes. */
static quern_result record_lists(delta_applying *it, quern_entity entity, const delta_type *of)
{
    if (!quern__type_has_no_lists(of->type, it->value, 1))
        return fail_bytes("the bytes of a list are not zero");
    quern_result result = QUERN_OK;
    if (!quern__type_read_lists(of->type, it->value, &it->bytes))
        result = fail_memory();
    else if (it->bytes.has_failed)
        result = fail_bytes("a list is invalid");
    if (result == QUERN_OK) {
        quern__type_remap(of->type, it->value, map_key, it);
        result = quern__components_is_edge_value(&it->storage->components, of->index)
                     ? record_edge_values(it, entity, of)
                     : quern_commands_set(&it->applier->recorder, entity, component_of(it, of), it->value);
    }
    quern__type_free_lists(of->type, it->value);
    return result;
}

/* Records that the entity gets the component with the value at `value`, whose handles are keys. */
static quern_result record_value(delta_applying *it, quern_entity entity, const delta_type *of,
                                 const char *value)
{
    quern_commands *commands = &it->applier->recorder;
    if (of->type->size_bytes == 0) return quern_commands_add(commands, entity, component_of(it, of), NULL);
    memcpy(it->value, value, of->type->size_bytes);
    if (QUERN__UNLIKELY(of->type->lists != NULL)) return record_lists(it, entity, of);
    quern__type_remap(of->type, it->value, map_key, it);
    if (quern__components_is_managed(&it->storage->components, of->index)) {
        quern_entity target;
        memcpy(&target, it->value, sizeof target);
        if (target.bits == 0) return fail_bytes("the target of an entity does not exist");
        const quern_relation relation = {component_of(it, of).bits};
        if (quern__relation_of(it->storage, relation) != NULL)
            return quern_commands_relate(commands, entity, relation, target);
    }
    if (quern__components_is_edge_value(&it->storage->components, of->index))
        return record_edge_values(it, entity, of);
    return quern_commands_set(commands, entity, component_of(it, of), it->value);
}

/* Returns the type that a batch names. Precondition: has_component(batch->kind). */
static const delta_type *type_of(const delta_applying *it, const delta_batch_head *batch)
{
    return &it->components.items[batch->number];
}

static quern_result record_on_entity(delta_applying *it, const delta_batch_head *batch, uint64_t key,
                                     const char *value)
{
    quern_commands *commands = &it->applier->recorder;
    const quern_entity entity = map_key(it, (quern_entity){key});
    if (entity.bits == 0)
        return fail_bytes("an entity changes that does not exist, so the world is not in the older state");
    switch ((quern_delta_kind)batch->kind) {
    case QUERN_DELTA_ADDED:
    case QUERN_DELTA_CHANGED:
        return record_value(it, entity, type_of(it, batch), value);
    case QUERN_DELTA_REMOVED:
        if (quern__components_is_edge_value(&it->storage->components, type_of(it, batch)->index))
            return QUERN_OK; /* it ends with the target */
        return quern_commands_remove(commands, entity, component_of(it, type_of(it, batch)));
    case QUERN_DELTA_ENABLED:
    case QUERN_DELTA_DISABLED:
        return quern_commands_set_component_enabled(commands, entity, component_of(it, type_of(it, batch)),
                                                    batch->kind == QUERN_DELTA_ENABLED);
    case QUERN_DELTA_RELATED:
    case QUERN_DELTA_UNRELATED: {
        const quern_relation relation = {component_of(it, type_of(it, batch)).bits};
        const quern_entity target = map_key(it, (quern_entity){quern__load_u64(value, 0)});
        if (target.bits == 0) return fail_bytes("the target of an entity does not exist");
        return batch->kind == QUERN_DELTA_RELATED
                   ? quern_commands_relate(commands, entity, relation, target)
                   : quern_commands_unrelate_from(commands, entity, relation, target);
    }
    case QUERN_DELTA_NAMED:
        return record_name(it, entity);
    default:
        break;
    }
    if (!remember(it, &it->destroyed_keys, key)) return fail_memory();
    return quern_commands_destroy(commands, entity);
}

/* ----------------------------------------------------------------------------------------- batches */

static bool is_valid_batch(const delta_applying *it, const delta_batch_head *batch)
{
    if (it->bytes.has_failed || batch->kind < QUERN_DELTA_CREATED || batch->kind > QUERN_DELTA_UNRELATED)
        return false;
    if (batch->kind == QUERN_DELTA_RESOURCE)
        return batch->count == 0 && batch->number < it->resources.count;
    if (it->resource_values.count > 0 || batch->count == 0) return false;
    if (batch->kind == QUERN_DELTA_NAMED && batch->count != 1) return false;
    return has_component(batch->kind) ? batch->number < it->components.count : batch->number == 0;
}

/* Reads the lists of a resource, which follow its value. */
static quern_result read_resource_lists(delta_applying *it, const quern__type *type, const char *value)
{
    if (type->lists == NULL) return QUERN_OK;
    const quern_allocator *allocator = &it->storage->allocator;
    if (!quern__type_has_no_lists(type, value, 1)) return fail_bytes("the bytes of a list are not zero");
    char *lists = quern__allocate(allocator, type->size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (lists == NULL) return fail_memory();
    memset(lists, 0, type->size_bytes);
    quern_result result = QUERN_OK;
    if (!quern__array_reserve(allocator, &it->resource_lists,
                              it->resource_lists.count + type->lists->count) ||
        !quern__type_read_lists(type, lists, &it->bytes))
        result = fail_memory();
    else if (it->bytes.has_failed)
        result = fail_bytes("a list is invalid");
    for (uint32_t i = 0; i < type->lists->count && result == QUERN_OK; i++)
        memcpy(&it->resource_lists.items[it->resource_lists.count++], lists + type->lists->offsets[i],
               sizeof(quern_list));
    if (result != QUERN_OK) quern__type_free_lists(type, lists);
    quern__release(allocator, lists, type->size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    return result;
}

static quern_result record_batch(delta_applying *it)
{
    delta_batch_head batch;
    quern__read(&it->bytes, &batch, sizeof batch);
    if (!is_valid_batch(it, &batch)) return fail_bytes("a batch is invalid");
    if (batch.kind == QUERN_DELTA_RESOURCE) {
        /* Skips the value of a resource, which is read after the commands were applied. */
        const quern__type *type = it->resources.items[batch.number].type;
        const char *value = quern__read_in_place(&it->bytes, type->size_bytes);
        if (value == NULL) return fail_bytes("a resource is incomplete");
        const quern_result result = read_resource_lists(it, type, value);
        if (result != QUERN_OK) return result;
        if (quern__type_owns_unknown(type) && type->field_count == 0)
            return quern__fail(
                QUERN_ERROR_LAYOUT_MISMATCH,
                "resource '%s' has hooks but no described fields in this world, so bytes cannot be its "
                "value: describe its fields, or write the delta without resources",
                type->name);
        if (!quern__array_reserve(&it->storage->allocator, &it->resource_values,
                                  it->resource_values.count + 1))
            return fail_memory();
        it->resource_values.items[it->resource_values.count++] =
            (delta_resource){&it->resources.items[batch.number], value};
        return QUERN_OK;
    }
    const char *keys = quern__read_items(&it->bytes, batch.count, sizeof(uint64_t));
    const bool has_values = has_values_in_to(batch.kind);
    uint32_t size_bytes = has_values ? it->components.items[batch.number].type->size_bytes : 0;
    if (has_targets(batch.kind)) size_bytes = sizeof(uint64_t);
    const char *values = quern__read_items(&it->bytes, batch.count, size_bytes);
    if (keys == NULL || values == NULL) return fail_bytes("a batch is incomplete");
    if (has_values && quern__type_owns_unknown(it->components.items[batch.number].type))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "component '%s' has hooks in this world, so bytes cannot be its value: write the delta "
            "without it",
            it->components.items[batch.number].type->name);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < batch.count && result == QUERN_OK; i++) {
        const uint64_t key = quern__load_u64(keys, i);
        result = batch.kind == QUERN_DELTA_CREATED
                     ? record_created(it, key)
                     : record_on_entity(it, &batch, key, values + (size_t)i * size_bytes);
    }
    return result;
}

static quern_result record_all(delta_applying *it)
{
    quern_result result = read_types(it, it->head.component_count, find_component, &it->components);
    if (result == QUERN_OK) result = read_types(it, it->head.resource_count, find_resource, &it->resources);
    for (uint32_t i = 0; i < it->head.batch_count && result == QUERN_OK; i++)
        result = record_batch(it);
    if (result == QUERN_OK && !quern__is_fully_read(&it->bytes))
        result = fail_bytes("bytes follow the last batch");
    if (result != QUERN_OK) return result;
    if (it->applier->recorder.failed != QUERN_OK) return fail_memory();
    return reserve_entities(it->applier, it->created_keys.count) ? QUERN_OK : fail_memory();
}

/* ------------------------------------------------------------------------------------------ reading */

static quern_result check_head(const quern__delta_head *head)
{
    if (!IS_NATIVE)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "deltas are little-endian, but this machine is big-endian: apply them on a little-endian "
            "machine");
    if (memcmp(head->magic, QUERN__DELTA_MAGIC, sizeof head->magic) != 0)
        return fail_bytes("they do not begin with '" QUERN__DELTA_MAGIC "'");
    if (head->version == QUERN__DELTA_VERSION) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_BAD_ARCHIVE,
        "the delta has version %u, but this library reads version %d only: use one version on both "
        "sides",
        head->version, QUERN__DELTA_VERSION);
}

/* Reads the bytes after the head, without a copy if they are in memory. Memory is allocated as bytes arrive. */
static quern_result read_bytes(delta_applying *it, quern__source_reader *source)
{
    enum { PIECE = 64 * 1024 };
    const char *bytes = NULL;
    if (source->source.memory != NULL) {
        bytes = it->head.bytes <= SIZE_MAX ? quern__source_borrow(source, (size_t)it->head.bytes) : NULL;
        if (bytes == NULL) return fail_bytes("they are truncated");
    }
    it->copy.allocator = &it->storage->allocator;
    for (uint64_t done = 0, piece; bytes == NULL && done < it->head.bytes; done += piece) {
        piece = it->head.bytes - done < PIECE ? it->head.bytes - done : PIECE;
        char *room = quern__write_room(&it->copy, (size_t)piece);
        if (room == NULL) return fail_memory();
        if (!quern__source_read(source, room, (size_t)piece)) return fail_bytes("they are truncated");
    }
    it->bytes = quern__byte_reader_open(bytes != NULL ? bytes : it->copy.bytes, (size_t)it->head.bytes);
    return quern__delta_checksum(&it->head, it->bytes.at) == it->head.checksum
               ? QUERN_OK
               : fail_bytes("they do not match their checksum");
}

/* ----------------------------------------------------------------------------------------- applying */

/* Called at the end of the sync point: enters the handles of created entities into the map. */
static void note_created(void *argument, const quern__gathered *gathered, const quern_entity *created)
{
    const delta_applying *it = argument;
    (void)gathered;
    for (uint32_t i = 0; i < it->created_keys.count; i++)
        enter_entity(it->applier, it->created_keys.items[i], created[i]);
}

/* Moves the lists of a resource, which were read before, into its value. */
static void apply_resource_lists(delta_applying *it, const quern__type *type, char *target,
                                 uint32_t *next_list)
{
    quern__type_free_lists(type, target);
    for (uint32_t i = 0; i < type->lists->count; i++) {
        quern_list *list = &it->resource_lists.items[(*next_list)++];
        memcpy(target + type->lists->offsets[i], list, sizeof *list);
        *list = (quern_list){.count = 0};
    }
}

static quern_result apply(delta_applying *it)
{
    quern__playback_stats stats = {0};
    quern_delta_applier *applier = it->applier;
    quern_commands *recorders[] = {&applier->recorder};
    quern__commands_end(&applier->recorder);
    if (applier->recorder.streams.count > 0) {
        applier->playback.on_created = note_created;
        applier->playback.on_created_argument = it;
        quern__playback_start_frame(&applier->playback);
        quern__world_set_locked(applier->world, true); /* as at sync points of frames */
        const quern_result result =
            quern__playback_run(&applier->playback, (quern__recorders){recorders, 1}, NULL, &stats);
        quern__world_set_locked(applier->world, false);
        for (uint32_t i = 0; QUERN_CHECKS && i < it->storage->components.list.count; i++)
            quern__storage_note_written(it->storage, i);
        if (result != QUERN_OK) return result;
    }
    for (uint32_t i = 0; i < it->destroyed_keys.count; i++)
        forget_entity(applier, it->destroyed_keys.items[i]);
    uint32_t next_list = 0;
    for (uint32_t i = 0; i < it->resource_values.count; i++) {
        const delta_type *of = it->resource_values.items[i].of;
        const quern__type *type = of->type;
        const char *value = it->resource_values.items[i].value;
        char *target = applier->world->resources.list.items[of->index].value;
        for (uint32_t k = 0; k < type->field_count; k++) {
            const quern_field *field = &type->fields[k];
            if (quern__field_is_list(field->type)) continue;
            memcpy(target + field->offset_bytes, value + field->offset_bytes,
                   (size_t)quern__field_bytes(field->type) * field->count);
        }
        if (type->lists != NULL) apply_resource_lists(it, type, target, &next_list);
        if (type->field_count == 0) memcpy(target, value, type->size_bytes);
        quern__type_remap(type, target, map_final_key, applier);
    }
    if (stats.dropped_count + stats.refused_count == 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%llu changes of the delta had no effect, because the world was not in the older state; the "
        "others were applied: load an archive of the newer state",
        (unsigned long long)(stats.dropped_count + stats.refused_count));
}

static quern_result read_and_apply(quern_delta_applier *applier, quern_source source)
{
    quern_world *world = applier->world;
    delta_applying it = {.applier = applier, .storage = &world->storage};
    quern_result result = quern__world_check_unlocked(world, "quern_delta_apply");
    if (result == QUERN_OK) {
        quern__source_reader reader;
        quern__source_reader_open(&reader, source);
        quern__world_set_locked(it.applier->world,
                                true); /* the source may call a function of the program */
        result = quern__source_read(&reader, &it.head, sizeof it.head) ? check_head(&it.head)
                                                                       : fail_bytes("they are truncated");
        if (result == QUERN_OK) result = read_bytes(&it, &reader);
        quern__world_set_locked(it.applier->world, false);
    }
    if (result == QUERN_OK) {
        const quern__origin origin = {.serial = quern__serial_of(world->next_serial++)};
        it.value =
            quern__allocate(&it.storage->allocator, QUERN_MAX_COMPONENT_BYTES, QUERN_MAX_ALIGNMENT_BYTES);
        quern__commands_begin(&applier->recorder, &origin);
        applier->recorder.callback_thread = quern__this_thread();
        result = it.value != NULL ? record_all(&it) : fail_memory();
        if (result == QUERN_OK) result = apply(&it);
        quern__commands_end(&applier->recorder);
        quern__commands_reset(&applier->recorder);
        applier->recorder.failed = QUERN_OK;
    }
    const quern_allocator *allocator = &it.storage->allocator;
    quern__array_release(allocator, &it.components);
    quern__array_release(allocator, &it.resources);
    quern__array_release(allocator, &it.created_keys);
    quern__array_release(allocator, &it.destroyed_keys);
    for (uint32_t i = 0; i < it.resource_lists.count; i++)
        quern_list_free(&it.resource_lists.items[i]);
    quern__array_release(allocator, &it.resource_lists);
    quern__array_release(allocator, &it.resource_values);
    quern__map_release(&it.made, allocator);
    if (it.copy.allocator != NULL) quern__byte_writer_release(&it.copy);
    quern__release(allocator, it.value, QUERN_MAX_COMPONENT_BYTES, QUERN_MAX_ALIGNMENT_BYTES);
    return result;
}

quern_result quern_delta_apply(quern_delta_applier *applier, quern_source source)
{
    QUERN__NEED(applier);
    const quern_result result = quern__check_source(source, __func__);
    if (result != QUERN_OK) return result;
    QUERN__ENTER(applier->world);
    return quern__in_call(read_and_apply(applier, source), __func__);
}

/* ----------------------------------------------------------------------------------------- appliers */

quern_result quern_delta_applier_create(quern_world *world, quern_delta_applier **out_applier)
{
    QUERN__NEED(world);
    QUERN__NEED(out_applier);
    const quern_result result = quern__world_check_unlocked(world, __func__);
    if (result != QUERN_OK) return result;
    quern_delta_applier *applier =
        quern__allocate(&world->storage.allocator, sizeof *applier, APPLIER_ALIGNMENT_BYTES);
    if (applier == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for an applier of deltas",
                           __func__);
    *applier = (quern_delta_applier){.world = world,
                                     .user = {.name = "an applier of deltas (quern_delta_applier)"}};
    quern__commands_init(&applier->recorder, &world->storage);
    quern__commands_list(&applier->recorder);
    quern__playback_init(&applier->playback, &world->storage);
    *out_applier = applier;
    return quern_world_add_user(world, &applier->user);
}

void quern_delta_applier_destroy(quern_delta_applier *applier)
{
    if (applier == NULL) return;
    quern_world_remove_user(applier->world, &applier->user);
    const quern_allocator *allocator = &applier->world->storage.allocator;
    quern__commands_release(&applier->recorder);
    quern__playback_release(&applier->playback);
    quern__map_release(&applier->entities, allocator);
    quern__map_release(&applier->keys, allocator);
    quern__release(allocator, applier, sizeof *applier, APPLIER_ALIGNMENT_BYTES);
}

quern_result quern_delta_applier_map(quern_delta_applier *applier, uint64_t key, quern_entity entity)
{
    QUERN__NEED(applier);
    quern_result result = quern__world_check_unlocked(applier->world, __func__);
    if (result == QUERN_OK)
        result = quern__in_call(quern__entities_check(&applier->world->storage.entities, entity), __func__);
    if (result != QUERN_OK) return result;
    if (key == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the key is 0, which is the null handle: pass a result of quern_entity_key",
                           __func__);
    if (!reserve_entities(applier, 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "%s: out of memory for %u entities; nothing has changed", __func__,
                           applier->entities.count + 1);
    enter_entity(applier, key, entity);
    return QUERN_OK;
}

quern_entity quern_delta_applier_find(const quern_delta_applier *applier, uint64_t key)
{
    QUERN__NEED_OR(applier, (quern_entity){0});
    return find_entity(applier, key);
}

uint64_t quern_entity_key(const quern_world *world, quern_entity entity)
{
    QUERN__NEED_OR(world, 0);
    return quern__entity_to_relative(entity, world->storage.entities.first_handle_high);
}
