/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/replay/state.h"

#include "core/base/hash.h"
#include "core/check/world_hash.h"

/* ----------------------------------------------------------------------------------------- writing */

static void write_pair(quern__byte_writer *bytes, uint64_t index, uint64_t hash)
{
    quern__write_u64(bytes, index);
    quern__write_u64(bytes, hash);
}

static void write_relations(const quern__storage *storage, quern__byte_writer *bytes)
{
    quern__write_u32(bytes, storage->relations->list.count);
    for (uint32_t i = 0; i < storage->relations->list.count; i++) {
        const quern__relation *relation = storage->relations->list.items[i];
        write_pair(bytes, relation->component_index,
                   quern__hash_edges(&relation->edges, 0, quern__hash_links(&relation->links, 0, 0)));
    }
}

static void write_resources(const quern_world *world, quern__byte_writer *bytes)
{
    const uint32_t first_handle_high = world->storage.entities.first_handle_high;
    const size_t count_at = bytes->count;
    uint32_t count = 0;
    quern__write_u32(bytes, 0);
    for (uint32_t i = 0; i < world->resources.list.count; i++) {
        const quern__resource *resource = &world->resources.list.items[i];
        if (resource->type.field_count == 0) continue; /* excluded like in quern_world_hash */
        write_pair(bytes, i, quern__type_hash(&resource->type, 0, resource->value, first_handle_high));
        count++;
    }
    quern__write_back(bytes, count_at, &count, sizeof count);
}

static uint64_t hash_handles(const quern__archetype *archetype, uint32_t first_handle_high)
{
    uint64_t hash = 0;
    for (uint32_t k = 0; k < archetype->chunk_count; k++) {
        const quern_entity *handles = quern__archetype_entities(archetype, archetype->slots[k].chunk);
        for (uint32_t row = 0; row < archetype->slots[k].row_count; row++)
            hash = quern__hash_word(hash, quern__entity_to_relative(handles[row], first_handle_high));
    }
    return hash;
}

/* Hashes a column. Writes one hash per row to row_hashes unless it is NULL. */
static uint64_t hash_column(const quern__archetype *archetype, const quern__column *column,
                            uint32_t first_handle_high, char *row_hashes)
{
    uint64_t hash = 0;
    for (uint32_t k = 0; k < archetype->chunk_count; k++)
        for (uint32_t row = 0; row < archetype->slots[k].row_count; row++) {
            const void *value = quern__column_value(column, archetype->slots[k].chunk, row);
            const uint64_t row_hash = quern__type_hash(column->type, 0, value, first_handle_high);
            const uint32_t short_hash = (uint32_t)row_hash;
            hash = quern__hash_word(hash, row_hash);
            if (row_hashes == NULL) continue;
            memcpy(row_hashes, &short_hash, sizeof short_hash);
            row_hashes += sizeof short_hash;
        }
    return hash;
}

/* Continues a hash with the rows that have the bit of a bit column; no such row leaves the hash unchanged. */
static uint64_t hash_bit_column(const quern__archetype *archetype, quern__bit_column which, uint64_t hash)
{
    const uint32_t bit_column = quern__row_bits_find_column(archetype->row_bits, which.kind, which.id);
    for (uint32_t k = 0; bit_column != QUERN__NO_BIT_COLUMN && k < archetype->chunk_count; k++) {
        if (quern__bit_column_count(archetype->row_bits, bit_column, k) == 0) continue;
        const uint64_t *words = quern__bit_column_words(archetype->row_bits, bit_column, k);
        hash = quern__hash_word(hash, (uint64_t)which.kind << 32 | k);
        for (uint32_t word = 0; word * 64 < archetype->slots[k].row_count; word++)
            hash = quern__hash_word(hash, words[word]);
    }
    return hash;
}

/* Hashes which rows have the component's row flags. Returns 0 if no row has any. */
static uint64_t hash_row_flags(const quern__archetype *archetype, uint32_t component_index)
{
    uint64_t hash = 0;
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        hash = hash_bit_column(archetype, (quern__bit_column){flag, component_index}, hash);
    return hash;
}

/* Returns the column of the i-th component, or NULL for a tag. */
static const quern__column *column_of(const quern__archetype *archetype, uint32_t i)
{
    const uint32_t column = quern__archetype_column(archetype, archetype->component_indices[i]);
    return column != QUERN__COLUMN_TAG ? &archetype->columns[column] : NULL;
}

static bool write_disabled(const quern__archetype *archetype, quern__byte_writer *bytes)
{
    const size_t begin = bytes->count;
    bool has_disabled = false;
    for (uint32_t i = 0; archetype->row_bits != NULL && i < archetype->component_count; i++) {
        const uint64_t hash = hash_row_flags(archetype, archetype->component_indices[i]);
        has_disabled |= hash != 0;
        quern__write_u64(bytes, hash);
    }
    if (!has_disabled) bytes->count = begin;
    return has_disabled;
}

static void write_handles(const quern__archetype *archetype, uint32_t first_handle_high,
                          quern__byte_writer *bytes)
{
    for (uint32_t k = 0; k < archetype->chunk_count; k++) {
        const quern_entity *handles = quern__archetype_entities(archetype, archetype->slots[k].chunk);
        const uint32_t count = archetype->slots[k].row_count;
        char *to = quern__write_room(bytes, (size_t)count * sizeof(uint64_t));
        for (uint32_t row = 0; to != NULL && row < count; row++, to += sizeof(uint64_t)) {
            const uint64_t handle = quern__entity_to_relative(handles[row], first_handle_high);
            memcpy(to, &handle, sizeof handle);
        }
    }
}

/* Writes an archetype. One pass over the values computes the hashes of rows and of whole columns, which have
 * separate places in the format. */
static void write_archetype(const quern__archetype *archetype, uint32_t first_handle_high,
                            bool has_entities, quern__byte_writer *bytes)
{
    const uint64_t rows = quern__archetype_row_count(archetype);
    quern__write_u32(bytes, archetype->component_count);
    const size_t flags_at = bytes->count;
    quern__write_u32(bytes, 0);
    quern__write_u64(bytes, rows);
    quern__write_u64(bytes, hash_handles(archetype, first_handle_high));
    for (uint32_t i = 0; i < archetype->component_count; i++)
        quern__write_u32(bytes, archetype->component_indices[i] |
                                    (column_of(archetype, i) == NULL ? QUERN__REPLAY_TAG_BIT : 0u));
    const size_t values_at = bytes->count;
    quern__write_room(bytes, (size_t)archetype->component_count * sizeof(uint64_t));
    const uint32_t flags = write_disabled(archetype, bytes) ? QUERN__REPLAY_SOME_DISABLED : 0;
    quern__write_back(bytes, flags_at, &flags, sizeof flags);
    if (has_entities) write_handles(archetype, first_handle_high, bytes);
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__column *column = column_of(archetype, i);
        char *row_hashes = has_entities && column != NULL
                               ? quern__write_room(bytes, (size_t)rows * sizeof(uint32_t))
                               : NULL;
        const uint64_t hash =
            column != NULL ? hash_column(archetype, column, first_handle_high, row_hashes) : 0;
        quern__write_back(bytes, values_at + i * sizeof hash, &hash, sizeof hash);
    }
}

static void write_archetypes(const quern_world *world, bool has_entities, quern__byte_writer *bytes)
{
    const quern__storage *storage = &world->storage;
    const size_t count_at = bytes->count;
    uint32_t count = 0;
    quern__write_u32(bytes, 0);
    for (uint32_t i = 0; i < storage->archetypes.count && !bytes->has_failed; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->chunk_count == 0) continue;
        write_archetype(archetype, storage->entities.first_handle_high, has_entities, bytes);
        count++;
    }
    quern__write_back(bytes, count_at, &count, sizeof count);
}

void quern__state_write(const quern_world *world, uint64_t frame, quern_result result, uint32_t flags,
                        quern__type_counts listed, quern__type_counts end, quern__byte_writer *bytes)
{
    quern__byte_writer_clear(bytes);
    quern__write_u64(bytes, frame);
    quern__write_u32(bytes, result);
    quern__write_u32(bytes, flags);
    quern__write_u64(bytes, quern_world_hash(world));
    quern__types_write(world, listed, end, bytes);
    if (flags == 0 || bytes->has_failed) return;
    quern__write_u64(bytes, quern__hash_slots(&world->storage.entities, 0));
    quern__write_u64(bytes, quern__hash_entity_names(&world->storage, 0));
    write_relations(&world->storage, bytes);
    write_resources(world, bytes);
    write_archetypes(world, (flags & QUERN__STATE_HAS_ENTITIES) != 0, bytes);
}

/* ----------------------------------------------------------------------------------------- reading */

bool quern__state_next(quern__byte_reader *reader, uint32_t flags, quern__state_archetype *out_archetype)
{
    quern__state_archetype *archetype = out_archetype;
    *archetype = (quern__state_archetype){.component_count = quern__read_u32(reader)};
    const uint32_t count = archetype->component_count, archetype_flags = quern__read_u32(reader);
    archetype->rows = quern__read_u64(reader);
    archetype->handles_hash = quern__read_u64(reader);
    archetype->components = quern__read_items(reader, count, sizeof(uint32_t));
    archetype->values = quern__read_items(reader, count, sizeof(uint64_t));
    if ((archetype_flags & QUERN__REPLAY_SOME_DISABLED) != 0)
        archetype->disabled = quern__read_items(reader, count, sizeof(uint64_t));
    if ((flags & QUERN__STATE_HAS_ENTITIES) == 0 || reader->has_failed) return !reader->has_failed;
    archetype->handles = quern__read_items(reader, archetype->rows, sizeof(uint64_t));
    archetype->row_hashes = reader->at;
    for (uint32_t i = 0; i < count && !reader->has_failed; i++)
        if ((quern__load_u32(archetype->components, i) & QUERN__REPLAY_TAG_BIT) == 0)
            quern__read_items(reader, archetype->rows, sizeof(uint32_t));
    return !reader->has_failed;
}

/* Whether all components are registered, and in ascending order. */
static bool are_components_valid(const quern__state_archetype *archetype, uint32_t known_count)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint32_t component = quern__load_u32(archetype->components, i) & ~QUERN__REPLAY_TAG_BIT;
        if (component < least || component >= known_count) return false;
        least = component + 1;
    }
    return true;
}

static bool are_indices_known(const char *pairs, uint32_t count, uint32_t known_count)
{
    for (uint32_t i = 0; i < count; i++)
        if (quern__load_u64(pairs + (size_t)i * QUERN__PAIR_BYTES, 0) >= known_count) return false;
    return true;
}

static bool read_parts(quern__byte_reader *reader, const quern__type_counts *listed, quern__state *state)
{
    state->slots_hash = quern__read_u64(reader);
    state->names_hash = quern__read_u64(reader);
    state->relation_count = quern__read_u32(reader);
    state->relations = quern__read_items(reader, state->relation_count, QUERN__PAIR_BYTES);
    state->resource_count = quern__read_u32(reader);
    state->resources = quern__read_items(reader, state->resource_count, QUERN__PAIR_BYTES);
    state->archetype_count = quern__read_u32(reader);
    if (reader->has_failed ||
        !are_indices_known(state->relations, state->relation_count, listed->component_count) ||
        !are_indices_known(state->resources, state->resource_count, listed->resource_count))
        return false;
    state->archetypes = *reader;
    quern__state_archetype archetype;
    for (uint32_t i = 0; i < state->archetype_count; i++)
        if (!quern__state_next(reader, state->flags, &archetype) ||
            !are_components_valid(&archetype, listed->component_count))
            return false;
    return true;
}

quern_result quern__state_read(const quern_world *world, const quern__byte_writer *bytes, uint64_t number,
                               quern__type_counts *listed, quern__state *out_state)
{
    quern__byte_reader reader = quern__replay_payload(bytes);
    quern__state *state = out_state;
    *state = (quern__state){.frame = quern__read_u64(&reader)};
    state->result = quern__read_u32(&reader);
    state->flags = quern__read_u32(&reader);
    state->hash = quern__read_u64(&reader);
    quern_result result = quern__types_check(world, &reader, number, listed);
    if (result != QUERN_OK) return result;
    const bool has_valid_flags = state->flags == 0 || state->flags == QUERN__STATE_HAS_PARTS ||
                                 state->flags == (QUERN__STATE_HAS_PARTS | QUERN__STATE_HAS_ENTITIES);
    if (!has_valid_flags || (state->flags != 0 && !read_parts(&reader, listed, state)) ||
        !quern__is_fully_read(&reader))
        return quern__replay_fail_invalid(number, "its parts cannot be read");
    return QUERN_OK;
}
