/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

/* Ghosts: what other ranks see of entities near their borders. Both sides number the ghosts of one rank by slot. The owner keeps the
 * values that it has sent, and sends which slots are empty now, which values differ, and which entities are new. A packet has
 * the three counts, then slots, then changes (slot, bits of components, their values), then new ones (id, slot, bits of the
 * components that it has, their values). */

/* A ghost on the rank that sees it. */
typedef struct ranks_held {
    quern_entity entity; /* null: the slot is empty */
    uint64_t id;
    uint32_t present;
    uint32_t reserved;
} ranks_held;

static void *slot_of(quern_byte_buffer *buffer, uint32_t slot, size_t size_bytes)
{
    return (char *)buffer->bytes + slot * size_bytes;
}

/* ------------------------------------------------------------------------------------------- showing */

static uint32_t *table_place(ranks_peer *peer, uint64_t id)
{
    uint32_t *table = peer->shown_table.bytes;
    const uint32_t mask = RANKS_COUNT(peer->shown_table, uint32_t) - 1;
    uint32_t at = (uint32_t)quern_random_mix(id) & mask;
    while (table[at] != 0 && ((const ranks_shown *)peer->shown.bytes)[table[at] - 1].id != id)
        at = (at + 1) & mask;
    return &table[at];
}

/* Makes the table of slots anew, with room for as many again. */
static quern_result rebuild_table(ranks_peer *peer)
{
    const uint32_t count = RANKS_COUNT(peer->shown, ranks_shown);
    uint32_t capacity = 64;
    while (capacity < 4 * count)
        capacity *= 2;
    peer->shown_table.size_bytes = 0;
    if (quern__ranks_append(&peer->shown_table, NULL, capacity * sizeof(uint32_t)) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    memset(peer->shown_table.bytes, 0, capacity * sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        const ranks_shown *shown = slot_of(&peer->shown, i, sizeof *shown);
        if (shown->round != 0) *table_place(peer, shown->id) = i + 1;
    }
    return QUERN_OK;
}

static quern_result add_slot(quern_ranks *ranks, ranks_peer *peer, uint64_t id, uint32_t *out_slot)
{
    uint32_t slot = RANKS_COUNT(peer->shown, ranks_shown);
    if (peer->free_slots.size_bytes > 0) {
        peer->free_slots.size_bytes -= sizeof slot;
        memcpy(&slot, (char *)peer->free_slots.bytes + peer->free_slots.size_bytes, sizeof slot);
    } else if (quern__ranks_append(&peer->shown, NULL, sizeof(ranks_shown)) == NULL ||
               quern__ranks_append(&peer->values, NULL, ranks->ghost_bytes) == NULL) {
        return QUERN_ERROR_OUT_OF_MEMORY;
    }
    ranks_shown *shown = slot_of(&peer->shown, slot, sizeof *shown);
    *shown = (ranks_shown){.id = id};
    *out_slot = slot;
    return QUERN_OK;
}

static quern_result append_values(const quern_ranks *ranks, quern_byte_buffer *out, const char *values,
                                  uint32_t mask)
{
    for (uint32_t i = 0; i < ranks->ghost_count; i++)
        if ((mask >> i & 1) != 0 &&
            quern__ranks_append(out, values + ranks->ghost_offsets[i], ranks->ghost_sizes[i]) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    return QUERN_OK;
}

/* Shows an entity near the border of a rank to it. */
static quern_result show(quern_ranks *ranks, ranks_peer *peer, uint64_t id, uint32_t present,
                         const char *values)
{
    quern_result result = QUERN_OK;
    if (4 * (RANKS_COUNT(peer->shown, ranks_shown) + 1) > RANKS_COUNT(peer->shown_table, uint32_t) * 3)
        result = rebuild_table(peer);
    if (result != QUERN_OK) return result;
    uint32_t *place = table_place(peer, id), slot = *place - 1;
    const bool is_known = *place != 0;
    if (!is_known) {
        result = add_slot(ranks, peer, id, &slot);
        if (result != QUERN_OK) return result;
        *place = slot + 1;
    }
    ranks_shown *shown = slot_of(&peer->shown, slot, sizeof *shown);
    char *sent = slot_of(&peer->values, slot, ranks->ghost_bytes);
    if (is_known && shown->round == ranks->round)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_ranks_run: two entities of rank %u have the id %llu: ids are unique in "
            "all worlds (quern_ranks_child_id)",
            (unsigned)ranks->rank, (unsigned long long)id);
    shown->round = ranks->round;
    if (is_known && shown->present == present) {
        uint32_t mask = 0;
        for (uint32_t i = 0; i < ranks->ghost_count; i++)
            if ((present >> i & 1) != 0 &&
                memcmp(sent + ranks->ghost_offsets[i], values + ranks->ghost_offsets[i],
                       ranks->ghost_sizes[i]) != 0)
                mask |= 1u << i;
        if (mask == 0) return QUERN_OK;
        const uint32_t head[2] = {slot, mask};
        memcpy(sent, values, ranks->ghost_bytes);
        ++((uint32_t *)peer->out.bytes)[1];
        if (quern__ranks_append(&peer->leaving, head, sizeof head) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
        return append_values(ranks, &peer->leaving, values, mask);
    }
    if (is_known) {
        ++((uint32_t *)peer->out.bytes)[0];
        if (quern__ranks_append(&peer->out, &slot, sizeof slot) == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    }
    const uint32_t head[4] = {(uint32_t)id, (uint32_t)(id >> 32), slot, present};
    shown->present = present;
    memcpy(sent, values, ranks->ghost_bytes);
    ++((uint32_t *)peer->out.bytes)[2];
    if (quern__ranks_append(&peer->added, head, sizeof head) == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    return append_values(ranks, &peer->added, values, present);
}

/* Frees the slots of entities that are not near the border any more. */
static quern_result hide_others(quern_ranks *ranks, ranks_peer *peer)
{
    const uint32_t count = RANKS_COUNT(peer->shown, ranks_shown);
    bool has_changed = false;
    for (uint32_t i = 0; i < count; i++) {
        ranks_shown *shown = slot_of(&peer->shown, i, sizeof *shown);
        if (shown->round == 0 || shown->round == ranks->round) continue;
        shown->round = 0;
        has_changed = true;
        ++((uint32_t *)peer->out.bytes)[0];
        if (quern__ranks_append(&peer->out, &i, sizeof i) == NULL ||
            quern__ranks_append(&peer->free_slots, &i, sizeof i) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    }
    return has_changed ? rebuild_table(peer) : QUERN_OK;
}

static quern_result show_view(quern_ranks *ranks, const quern_view *view)
{
    const uint64_t *ids = quern_view_read(view, 0);
    const uint32_t *neighbours = ranks->neighbours.bytes;
    const uint32_t neighbour_count = RANKS_COUNT(ranks->neighbours, uint32_t);
    const ranks_node *nodes = ranks->nodes.bytes;
    const char *positions = quern_view_read(view, 1);
    const char *columns[QUERN_RANKS_MAX_COMPONENTS + 1] = {NULL};
    uint32_t present = 0;
    ranks->list.size_bytes = 0;
    if (quern__ranks_append(&ranks->list, NULL, ranks->ghost_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    char *values = ranks->list.bytes;
    memset(values, 0, ranks->ghost_bytes);
    for (uint32_t k = 0; k < ranks->ghost_count; k++) {
        if (!quern_view_has(view, 1 + k)) continue;
        present |= 1u << k;
        if (ranks->ghost_sizes[k] > 0) columns[k] = quern_view_read(view, 1 + k);
    }
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        int64_t units[3];
        bool is_gathered = false;
        const float *position =
            (const float *)(const void *)(positions + (size_t)i * ranks->ghost_sizes[0]);
        if (quern__ranks_contains(&ranks->surely_inner, position, ranks->dimensions)) continue;
        quern__ranks_units(ranks, position, units);
        for (uint32_t n = 0; n < neighbour_count; n++) {
            ranks_peer *peer = &ranks->peers[neighbours[n]];
            if (!quern__ranks_is_near(ranks, &nodes[peer->node].box, units)) continue;
            for (uint32_t k = 0; k < ranks->ghost_count && !is_gathered; k++)
                if (columns[k] != NULL)
                    memcpy(values + ranks->ghost_offsets[k], columns[k] + (size_t)i * ranks->ghost_sizes[k],
                           ranks->ghost_sizes[k]);
            is_gathered = true;
            const quern_result result = show(ranks, peer, ids[i], present, values);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

quern_result quern__ranks_send_ghosts(quern_ranks *ranks)
{
    const uint32_t *neighbours = ranks->neighbours.bytes;
    const uint32_t count = RANKS_COUNT(ranks->neighbours, uint32_t);
    quern_result result = QUERN_OK;
    if (++ranks->round == 0) ranks->round = 1;
    for (uint32_t n = 0; n < count; n++) {
        ranks_peer *peer = &ranks->peers[neighbours[n]];
        const uint32_t counts[3] = {0};
        peer->out.size_bytes = peer->leaving.size_bytes = peer->added.size_bytes = 0;
        if (quern__ranks_append(&peer->out, counts, sizeof counts) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    }
    quern_query_iterator it = quern_query_iterate(ranks->shown);
    while (result == QUERN_OK && quern_query_next(&it))
        result = show_view(ranks, &it.view);
    if (result != QUERN_OK) quern_query_iterator_end(&it);
    quern__ranks_begin(ranks);
    for (uint32_t n = 0; n < count && result == QUERN_OK; n++) {
        ranks_peer *peer = &ranks->peers[neighbours[n]];
        result = hide_others(ranks, peer);
        if (result == QUERN_OK &&
            (quern__ranks_append(&peer->out, peer->leaving.bytes, peer->leaving.size_bytes) == NULL ||
             quern__ranks_append(&peer->out, peer->added.bytes, peer->added.size_bytes) == NULL))
            result = QUERN_ERROR_OUT_OF_MEMORY;
        if (result == QUERN_OK) result = quern__ranks_send(ranks, neighbours[n], &peer->out);
        quern__ranks_expect(ranks, neighbours[n]);
    }
    return result;
}

/* -------------------------------------------------------------------------------------------- seeing */

/* The rest of a packet. */
typedef struct ranks_cursor {
    const char *at, *end;
} ranks_cursor;

/* Returns the next bytes of a packet; NULL if it has fewer. */
static const void *next(ranks_cursor *cursor, size_t size_bytes)
{
    const char *at = cursor->at;
    if ((size_t)(cursor->end - at) < size_bytes) return NULL;
    cursor->at += size_bytes;
    return at;
}

/* Returns the ghost of a slot; NULL if the slot is empty or not one. */
static ranks_held *held_at(ranks_peer *peer, uint32_t slot)
{
    if (slot >= RANKS_COUNT(peer->ghosts, ranks_held)) return NULL;
    ranks_held *held = slot_of(&peer->ghosts, slot, sizeof *held);
    return quern_entity_is_null(held->entity) ? NULL : held;
}

static quern_result take_removed(quern_ranks *ranks, ranks_peer *peer, ranks_cursor *cursor, uint32_t count)
{
    ranks->list.size_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot;
        const void *bytes = next(cursor, sizeof slot);
        if (bytes == NULL) return QUERN_ERROR_BAD_ARCHIVE;
        memcpy(&slot, bytes, sizeof slot);
        ranks_held *held = held_at(peer, slot);
        if (held == NULL) return QUERN_ERROR_BAD_ARCHIVE;
        if (quern_entity_is_alive(ranks->world, held->entity) &&
            quern__ranks_append(&ranks->list, &held->entity, sizeof held->entity) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
        held->entity = quern_entity_null();
    }
    return quern_entity_destroy_many(ranks->world, ranks->list.bytes,
                                     RANKS_COUNT(ranks->list, quern_entity));
}

/* Takes a value of a ghost, and remembers it if ghosts are checked. Returns NULL if the packet is too short. */
static const void *take_value(quern_ranks *ranks, ranks_peer *peer, ranks_cursor *cursor, uint32_t slot,
                              uint32_t component)
{
    const size_t size_bytes = ranks->ghost_sizes[component];
    const void *value = next(cursor, size_bytes);
    if (value != NULL && ranks->checks_ghosts)
        memcpy((char *)slot_of(&peer->ghost_values, slot, ranks->ghost_bytes) +
                   ranks->ghost_offsets[component],
               value, size_bytes);
    return value;
}

static quern_result take_changed(quern_ranks *ranks, ranks_peer *peer, ranks_cursor *cursor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t head[2];
        const void *bytes = next(cursor, sizeof head);
        if (bytes == NULL) return QUERN_ERROR_BAD_ARCHIVE;
        memcpy(head, bytes, sizeof head);
        const ranks_held *held = held_at(peer, head[0]);
        if (held == NULL || (head[1] & ~held->present) != 0) return QUERN_ERROR_BAD_ARCHIVE;
        for (uint32_t k = 0; k < ranks->ghost_count; k++) {
            if ((head[1] >> k & 1) == 0) continue;
            const void *value = take_value(ranks, peer, cursor, head[0], k);
            void *place = quern_entity_get(ranks->world, held->entity, ranks->ghost_list[k]);
            if (value == NULL) return QUERN_ERROR_BAD_ARCHIVE;
            if (place == NULL)
                return quern_error_set(
                    QUERN_ERROR_INVALID_ARGUMENT,
                    "quern_ranks_run: the frame has destroyed the ghost of entity %llu on rank %u, or a "
                    "component of it: send a message by quern_ranks_send",
                    (unsigned long long)held->id, (unsigned)ranks->rank);
            memcpy(place, value, ranks->ghost_sizes[k]);
            (void)quern_entity_mark_changed(ranks->world, held->entity, ranks->ghost_list[k]);
        }
    }
    return QUERN_OK;
}

static quern_result take_added(quern_ranks *ranks, ranks_peer *peer, ranks_cursor *cursor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        quern_component components[QUERN_RANKS_MAX_COMPONENTS + 2];
        const void *values[QUERN_RANKS_MAX_COMPONENTS + 2];
        uint32_t head[4], component_count = 0;
        const void *bytes = next(cursor, sizeof head);
        const uint32_t slot_count = RANKS_COUNT(peer->ghosts, ranks_held);
        if (bytes == NULL) return QUERN_ERROR_BAD_ARCHIVE;
        memcpy(head, bytes, sizeof head);
        if (head[2] > slot_count || (head[3] & 1) == 0 || head[3] >> ranks->ghost_count != 0 ||
            held_at(peer, head[2]) != NULL)
            return QUERN_ERROR_BAD_ARCHIVE;
        if (head[2] == slot_count) {
            const ranks_held none = {0};
            if ((ranks->checks_ghosts &&
                 quern__ranks_append(&peer->ghost_values, NULL, ranks->ghost_bytes) == NULL) ||
                quern__ranks_append(&peer->ghosts, &none, sizeof none) == NULL)
                return QUERN_ERROR_OUT_OF_MEMORY;
        }
        ranks_held *held = slot_of(&peer->ghosts, head[2], sizeof *held);
        held->id = head[0] | (uint64_t)head[1] << 32;
        held->present = head[3];
        const quern_ranks_ghost_info info = {
            .id = held->id, .owner = (uint32_t)(peer - ranks->peers), .slot = head[2]};
        for (uint32_t k = 0; k < ranks->ghost_count; k++) {
            if ((head[3] >> k & 1) == 0) continue;
            const void *value = take_value(ranks, peer, cursor, head[2], k);
            if (value == NULL) return QUERN_ERROR_BAD_ARCHIVE;
            components[component_count] = ranks->ghost_list[k];
            values[component_count++] = ranks->ghost_sizes[k] > 0 ? value : NULL;
        }
        components[component_count] = ranks->ghost;
        values[component_count++] = &info;
        const quern_result result =
            quern_entity_create_with(ranks->world, components, values, component_count, &held->entity);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

quern_result quern__ranks_take_ghosts(quern_ranks *ranks)
{
    ranks->table_is_current = false;
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        ranks_peer *peer = &ranks->peers[i];
        uint32_t counts[3];
        if (!peer->has_arrived) continue;
        ranks_cursor cursor = {peer->in.bytes, (const char *)peer->in.bytes + peer->in.size_bytes};
        const void *bytes = next(&cursor, sizeof counts);
        quern_result result = bytes != NULL ? QUERN_OK : QUERN_ERROR_BAD_ARCHIVE;
        if (bytes != NULL) memcpy(counts, bytes, sizeof counts);
        if (result == QUERN_OK) result = take_removed(ranks, peer, &cursor, counts[0]);
        if (result == QUERN_OK) result = take_changed(ranks, peer, &cursor, counts[1]);
        if (result == QUERN_OK) result = take_added(ranks, peer, &cursor, counts[2]);
        ranks->own.ghost_count += RANKS_COUNT(peer->ghosts, ranks_held); /* some slots may be empty */
        if (result == QUERN_ERROR_BAD_ARCHIVE || (result == QUERN_OK && cursor.at != cursor.end))
            return quern_error_set(QUERN_ERROR_BAD_ARCHIVE,
                                   "quern_ranks_run: the ghosts of rank %u are damaged: check that all "
                                   "ranks run the same program",
                                   (unsigned)i);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Fails if a ghost was written, destroyed or has lost a component. */
quern_result quern__ranks_check_ghosts(quern_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        ranks_peer *peer = &ranks->peers[i];
        for (uint32_t slot = 0; slot < RANKS_COUNT(peer->ghosts, ranks_held); slot++) {
            const ranks_held *held = slot_of(&peer->ghosts, slot, sizeof *held);
            const char *wanted = slot_of(&peer->ghost_values, slot, ranks->ghost_bytes);
            if (quern_entity_is_null(held->entity)) continue;
            const char *what = quern_entity_is_alive(ranks->world, held->entity) ? NULL : "was destroyed";
            for (uint32_t k = 0; k < ranks->ghost_count && what == NULL; k++) {
                if ((held->present >> k & 1) == 0) continue;
                if (!quern_entity_has(ranks->world, held->entity, ranks->ghost_list[k]) ||
                    (ranks->ghost_sizes[k] > 0 &&
                     memcmp(quern_entity_get(ranks->world, held->entity, ranks->ghost_list[k]),
                            wanted + ranks->ghost_offsets[k], ranks->ghost_sizes[k]) != 0))
                    what = quern_component_name(ranks->world, ranks->ghost_list[k]);
            }
            if (what == NULL) continue;
            return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                                   "quern_ranks_run: the frame has changed the ghost of entity %llu on "
                                   "rank %u (%s), which only rank %u may "
                                   "change: send a message by quern_ranks_send",
                                   (unsigned long long)held->id, (unsigned)ranks->rank, what, (unsigned)i);
        }
    }
    return QUERN_OK;
}

quern_result quern__ranks_forget_ghosts(quern_ranks *ranks)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < ranks->rank_count && result == QUERN_OK; i++) {
        ranks_peer *peer = &ranks->peers[i];
        ranks->list.size_bytes = 0;
        for (uint32_t slot = 0; slot < RANKS_COUNT(peer->ghosts, ranks_held); slot++) {
            const ranks_held *held = slot_of(&peer->ghosts, slot, sizeof *held);
            if (!quern_entity_is_null(held->entity) &&
                quern__ranks_append(&ranks->list, &held->entity, sizeof held->entity) == NULL)
                return QUERN_ERROR_OUT_OF_MEMORY;
        }
        if (ranks->list.size_bytes > 0)
            result = quern_entity_destroy_many(ranks->world, ranks->list.bytes,
                                               RANKS_COUNT(ranks->list, quern_entity));
        peer->shown.size_bytes = peer->shown_table.size_bytes = peer->free_slots.size_bytes = 0;
        peer->values.size_bytes = peer->ghosts.size_bytes = peer->ghost_values.size_bytes = 0;
    }
    ranks->table_is_current = false;
    return result;
}
