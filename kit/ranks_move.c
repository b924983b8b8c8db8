/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

/* Entities that move to their rank, by archive sessions, with the events that wait for them. */

/* ------------------------------------------------------------------------------------------- leaving */

quern_result quern__ranks_list_leaving(quern_ranks *ranks, int64_t *out_far_count)
{
    uint32_t stride;
    *out_far_count = 0;
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        ranks->peers[i].leaving.size_bytes = 0;
    if (ranks->rank_count == 1) return QUERN_OK;
    quern_component_get_size(ranks->world, ranks->def.position, &stride);
    quern_query_iterator it = quern_query_iterate(ranks->roots);
    while (quern_query_next(&it)) {
        const char *positions = quern_view_read(&it.view, 1);
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            int64_t units[3];
            const float *position = (const float *)(const void *)(positions + (size_t)i * stride);
            if (quern__ranks_contains(&ranks->surely_own, position, ranks->dimensions)) continue;
            quern__ranks_units(ranks, position, units);
            const uint32_t rank = quern__ranks_find(ranks, units);
            if (rank == ranks->rank) continue;
            *out_far_count += !ranks->peers[rank].is_neighbour;
            if (quern__ranks_append(&ranks->peers[rank].leaving, &it.view.entities[i],
                                    sizeof it.view.entities[i]) == NULL)
                return QUERN_ERROR_OUT_OF_MEMORY;
        }
    }
    return QUERN_OK;
}

/* Appends the entities below those of `list` in the relations that hold entities together, level by level. */
static quern_result list_trees(quern_ranks *ranks)
{
    for (uint32_t i = 0; i < RANKS_COUNT(ranks->list, quern_entity); i++) {
        for (uint32_t k = 0; k < QUERN_RANKS_MAX_HOLDS && ranks->def.holds[k].bits != 0; k++) {
            const quern_relation holds = ranks->def.holds[k];
            const quern_entity target = ((const quern_entity *)ranks->list.bytes)[i];
            for (quern_entity source = quern_entity_first_source(ranks->world, target, holds);
                 !quern_entity_is_null(source);
                 source = quern_entity_next_source(ranks->world, target, holds, source))
                if (quern__ranks_append(&ranks->list, &source, sizeof source) == NULL)
                    return QUERN_ERROR_OUT_OF_MEMORY;
        }
    }
    return QUERN_OK;
}

/* Called for each entity outside of the trees that leave to which one of them refers. The world is locked. */
static uint64_t note_outside(void *user_data, quern_entity entity)
{
    quern_ranks *ranks = user_data;
    ranks->outside = entity;
    return 0;
}

static quern_result refuse_outside(quern_ranks *ranks)
{
    const uint64_t *id = quern_entity_get(ranks->world, ranks->outside, ranks->def.id);
    char what[48] = "an entity without id";
    if (id != NULL) snprintf(what, sizeof what, "the entity with the id %llu", (unsigned long long)*id);
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_ranks_run: an entity that moves from rank %u refers to %s, which does "
                           "not move with it: store "
                           "ids, or name the relation in 'holds' of quern_ranks_def",
                           (unsigned)ranks->rank, what);
}

static quern_result open_saving(quern_ranks *ranks, ranks_peer *peer)
{
    quern_save_def def = {.outside_id = note_outside, .user_data = ranks};
    if (peer->save != NULL) return QUERN_OK;
    memcpy(def.leave_out, ranks->def.local, sizeof ranks->def.local);
    return quern_save_session_create(ranks->world, &def, &peer->save);
}

/* Returns the rank that owns an entity after it has moved. */
static uint32_t find_owner(quern_ranks *ranks, quern_entity entity)
{
    for (uint32_t k = 0; k < QUERN_RANKS_MAX_HOLDS && ranks->def.holds[k].bits != 0;) {
        const quern_entity target = quern_entity_target(ranks->world, entity, ranks->def.holds[k]);
        if (quern_entity_is_null(target)) {
            k++;
            continue;
        }
        entity = target;
        k = 0;
    }
    int64_t units[3];
    const float *position = quern_entity_get(ranks->world, entity, ranks->def.position);
    if (position == NULL) return ranks->rank;
    quern__ranks_units(ranks, position, units);
    return quern__ranks_find(ranks, units);
}

/* Moves events that wait for entities that leave to the packets of their new ranks, each after the number of them. */
static quern_result send_pending(quern_ranks *ranks)
{
    ranks_letter *pending = ranks->pending.bytes;
    const uint32_t count = RANKS_COUNT(ranks->pending, ranks_letter);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        const uint64_t none = 0;
        ranks->peers[i].out.size_bytes = 0;
        if (quern__ranks_append(&ranks->peers[i].out, &none, sizeof none) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        quern_entity entity;
        const quern_result result = quern__ranks_find_entity(ranks, pending[i].to, &entity);
        if (result != QUERN_OK) return result;
        const uint32_t rank = quern_entity_is_null(entity) ? ranks->rank : find_owner(ranks, entity);
        if (rank == ranks->rank) {
            pending[kept++] = pending[i];
            continue;
        }
        quern_byte_buffer *out = &ranks->peers[rank].out;
        if (quern__ranks_append(out, &pending[i], sizeof pending[i]) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
        ++*(uint64_t *)out->bytes;
    }
    ranks->pending.size_bytes = kept * sizeof *pending;
    return QUERN_OK;
}

/* Appends the trees that leave for a rank to its packet, and destroys them. */
static quern_result send_trees(quern_ranks *ranks, ranks_peer *peer)
{
    ranks->list.size_bytes = 0;
    if (peer->leaving.size_bytes == 0) return QUERN_OK;
    if (quern__ranks_append(&ranks->list, peer->leaving.bytes, peer->leaving.size_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    quern_result result = list_trees(ranks);
    if (result == QUERN_OK) result = open_saving(ranks, peer);
    if (result != QUERN_OK) return result;
    quern_entity *list = ranks->list.bytes;
    const uint32_t count = RANKS_COUNT(ranks->list, quern_entity);
    quern_archive_clear(ranks->archive);
    ranks->outside = quern_entity_null();
    result = quern_archive_append(ranks->archive, list, count);
    if (result == QUERN_OK)
        result = quern_save_session_write(peer->save, ranks->archive, quern_sink_bytes(&peer->out));
    if (result != QUERN_OK) return result;
    if (!quern_entity_is_null(ranks->outside)) return refuse_outside(ranks);
    ranks->own.moved_count += RANKS_COUNT(peer->leaving, quern_entity);
    for (uint32_t i = 0; i < count / 2; i++) { /* children before their targets */
        const quern_entity other = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = other;
    }
    return quern_entity_destroy_many(ranks->world, list, count);
}

quern_result quern__ranks_send_leaving(quern_ranks *ranks, bool to_all)
{
    quern_result result = send_pending(ranks);
    quern__ranks_begin(ranks);
    for (uint32_t i = 0; i < ranks->rank_count && result == QUERN_OK; i++) {
        if (i == ranks->rank || !(to_all || ranks->peers[i].is_neighbour)) continue;
        quern__ranks_expect(ranks, i);
        result = send_trees(ranks, &ranks->peers[i]);
        if (result == QUERN_OK) result = quern__ranks_send(ranks, i, &ranks->peers[i].out);
    }
    ranks->table_is_current = false;
    return result;
}

quern_result quern__ranks_take_arriving(quern_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        ranks_peer *peer = &ranks->peers[i];
        if (!peer->has_arrived) continue;
        const char *bytes = peer->in.bytes;
        const size_t size_bytes = peer->in.size_bytes;
        uint64_t count = 0;
        if (size_bytes >= sizeof count) memcpy(&count, bytes, sizeof count);
        const size_t letter_bytes = (size_t)count * sizeof(ranks_letter);
        if (size_bytes < sizeof count || count > (size_bytes - sizeof count) / sizeof(ranks_letter) ||
            !quern__ranks_letters_are_good(ranks, bytes + sizeof count, letter_bytes))
            return quern_error_set(
                QUERN_ERROR_BAD_ARCHIVE,
                "quern_ranks_run: the entities of rank %u are damaged: check that all ranks "
                "run the same program",
                (unsigned)i);
        const size_t used = sizeof count + letter_bytes;
        if (count > 0 &&
            quern__ranks_append(&ranks->pending, bytes + sizeof count, used - sizeof count) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
        if (used == size_bytes) continue;
        quern_result result = QUERN_OK;
        if (peer->load == NULL) result = quern_load_session_create(ranks->world, NULL, &peer->load);
        if (result == QUERN_OK)
            result = quern_load_session_read(
                peer->load, quern_source_bytes(bytes + used, size_bytes - used), NULL, 0, NULL);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}
