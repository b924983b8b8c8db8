/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <stdlib.h>

/* Messages to entities by id. Systems emit them as events, which the schedule keeps in the same order at every number of threads.
 * After the frame they go to the ranks that own the receivers: the own rank, the owner of a ghost, or, if this rank knows
 * neither, all. There they are sorted, so their order does not depend on which rank has sent them, and recorded as commands of
 * one callback. Events wait for the beginning of the next frame, and move with their entities until then. */

/* A place of the table of entities by id. */
typedef struct ranks_known {
    uint64_t id;
    quern_entity entity; /* null: empty */
} ranks_known;

/* ------------------------------------------------------------------------------------------ sending */

quern_event quern_ranks_messages(quern_ranks *ranks)
{
    const quern_event none = {0};
    if (ranks == NULL) return none;
    const quern_event_reader_def def = {.event = ranks->letter_event, .name = "quern_ranks"};
    if (ranks->letter_reader == NULL &&
        quern_event_reader_create(ranks->world, &def, &ranks->letter_reader) != QUERN_OK)
        return none;
    return ranks->letter_event;
}

static bool refuse(const char *what)
{
    quern_error_set(QUERN_ERROR_INVALID_ARGUMENT, "%s: %s", "quern_ranks_send", what);
    return false;
}

static bool has_hooks(const quern_type_info *info)
{
    return info->hooks.copy != NULL || info->hooks.move != NULL || info->hooks.destroy != NULL;
}

bool quern_ranks_send(quern_context *context, const quern_ranks *ranks, const quern_ranks_message *message)
{
    if (context == NULL || ranks == NULL || message == NULL) {
        quern__ranks_fail_null("quern_ranks_send", context == NULL ? "context"
                                                   : ranks == NULL ? "ranks"
                                                                   : "message");
        return false;
    }
    ranks_letter letter = {.from = message->from,
                           .to = message->to,
                           .order = message->order,
                           .combine = message->combine.bits,
                           .verb = (uint8_t)message->verb};
    quern_type_info info = {0};
    switch (message->verb) {
    case QUERN_RANKS_DESTROY:
        return quern_context_emit(context, ranks->letter_event, &letter, 1);
    case QUERN_RANKS_EMIT:
        if (quern_event_get_info(ranks->world, message->event, &info) != QUERN_OK) return false;
        letter.type = message->event.bits & 0xFFFF;
        break;
    case QUERN_RANKS_SET:
    case QUERN_RANKS_REMOVE:
    case QUERN_RANKS_ACCUMULATE:
        if (quern_component_get_info(ranks->world, message->component, &info) != QUERN_OK) return false;
        letter.type = message->component.bits & 0xFFFF;
        break;
    default:
        return refuse("'verb' is not a quern_ranks_verb");
    }
    if (message->verb != QUERN_RANKS_REMOVE) {
        if (info.size_bytes > QUERN_RANKS_MAX_MESSAGE_BYTES || has_hooks(&info))
            return refuse("the value is too large or has hooks: send plain bytes, at most "
                          "QUERN_RANKS_MAX_MESSAGE_BYTES");
        if (message->value == NULL && info.size_bytes > 0)
            return refuse("'value' is NULL for a type with a value: pass the value");
        letter.size_bytes = (uint8_t)info.size_bytes;
        if (info.size_bytes > 0) memcpy(letter.value, message->value, info.size_bytes);
    }
    return quern_context_emit(context, ranks->letter_event, &letter, 1);
}

/* ------------------------------------------------------------------------------------------ finding */

static ranks_known *known_place(quern_ranks *ranks, uint64_t id)
{
    ranks_known *table = ranks->table.bytes;
    const uint32_t mask = RANKS_COUNT(ranks->table, ranks_known) - 1;
    uint32_t at = (uint32_t)quern_random_mix(id) & mask;
    while (!quern_entity_is_null(table[at].entity) && table[at].id != id)
        at = (at + 1) & mask;
    return &table[at];
}

/* Whether the entity of a place is alive and has its id, by itself or as a ghost. */
static bool is_known(quern_ranks *ranks, const ranks_known *place, bool *out_is_owned)
{
    *out_is_owned = false;
    if (quern_entity_is_null(place->entity) || !quern_entity_is_alive(ranks->world, place->entity))
        return false;
    const uint64_t *id = quern_entity_get(ranks->world, place->entity, ranks->def.id);
    *out_is_owned = id != NULL;
    if (id != NULL) return *id == place->id;
    const quern_ranks_ghost_info *ghost = quern_entity_get(ranks->world, place->entity, ranks->ghost);
    return ghost != NULL && ghost->id == place->id;
}

static void insert(quern_ranks *ranks, uint64_t id, quern_entity entity, bool is_owned)
{
    ranks_known *place = known_place(ranks, id);
    bool has_owned;
    ranks->known_count += quern_entity_is_null(place->entity);
    if (!is_owned && is_known(ranks, place, &has_owned) && has_owned) return;
    *place = (ranks_known){id, entity};
}

/* Inserts the entities of a query, whose first term is the id or the component of ghosts. Returns false if the table gets too
 * full, after a look at all of them. */
static bool insert_all(quern_ranks *ranks, quern_query *query, bool are_owned)
{
    bool has_room = true;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *ids = are_owned ? quern_view_read(&it.view, 0) : NULL;
        const quern_ranks_ghost_info *ghosts = are_owned ? NULL : quern_view_read(&it.view, 0);
        for (uint32_t end = it.view.count, i = 0; i < end && has_room; i++) {
            insert(ranks, are_owned ? ids[i] : ghosts[i].id, it.view.entities[i], are_owned);
            has_room = 2 * ranks->known_count < RANKS_COUNT(ranks->table, ranks_known);
        }
    }
    return has_room;
}

/* Brings the table up to date: inserts what is in chunks that have changed, by change filters. Entities that are gone stay in
 * it, so a place is checked when it is used, and the table is made anew when it is full. */
static quern_result update_table(quern_ranks *ranks)
{
    const bool has_table = ranks->table.size_bytes > 0;
    bool is_complete = has_table && insert_all(ranks, ranks->changed_owned, true);
    is_complete = (has_table && insert_all(ranks, ranks->changed_ghosts, false)) && is_complete;
    if (is_complete) {
        ranks->table_is_current = true;
        return QUERN_OK;
    }
    const uint64_t count = quern_query_count(ranks->all_owned) + quern_query_count(ranks->all_ghosts);
    size_t capacity = 64;
    while (capacity < 4 * (count + 1))
        capacity *= 2;
    ranks->table.size_bytes = 0;
    ranks->known_count = 0;
    if (quern__ranks_append(&ranks->table, NULL, capacity * sizeof(ranks_known)) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    memset(ranks->table.bytes, 0, capacity * sizeof(ranks_known));
    (void)insert_all(ranks, ranks->all_owned, true);
    (void)insert_all(ranks, ranks->all_ghosts, false);
    ranks->table_is_current = true;
    return QUERN_OK;
}

quern_result quern__ranks_find_entity(quern_ranks *ranks, uint64_t id, quern_entity *out_entity)
{
    bool is_owned;
    const quern_result result = ranks->table_is_current ? QUERN_OK : update_table(ranks);
    if (result != QUERN_OK) return result;
    const ranks_known *place = known_place(ranks, id);
    *out_entity = is_known(ranks, place, &is_owned) ? place->entity : quern_entity_null();
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- exchanging */

static quern_result sort_letter(quern_ranks *ranks, const ranks_letter *letter)
{
    quern_entity entity;
    const quern_result result = quern__ranks_find_entity(ranks, letter->to, &entity);
    quern_byte_buffer *buffer = &ranks->letters;
    if (result != QUERN_OK) return result;
    if (quern_entity_is_null(entity)) {
        if (ranks->rank_count > 1) buffer = &ranks->far;
    } else if (!quern_entity_has(ranks->world, entity, ranks->def.id)) {
        const quern_ranks_ghost_info *ghost = quern_entity_get(ranks->world, entity, ranks->ghost);
        buffer = &ranks->peers[ghost->owner].out;
    }
    if (quern__ranks_append(buffer, letter, sizeof *letter) == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    return QUERN_OK;
}

quern_result quern__ranks_sort_letters(quern_ranks *ranks)
{
    quern_event_block block;
    uint32_t sequence = 0;
    quern_result result = QUERN_OK;
    ranks->letters.size_bytes = ranks->far.size_bytes = 0;
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        ranks->peers[i].out.size_bytes = 0;
    while (quern_event_reader_next(ranks->letter_reader, &block)) {
        for (uint32_t i = 0; i < block.count && result == QUERN_OK; i++) {
            ranks_letter letter = ((const ranks_letter *)block.values)[i];
            letter.sequence = sequence++;
            result = sort_letter(ranks, &letter);
        }
    }
    ranks->own.far_count += RANKS_COUNT(ranks->far, ranks_letter);
    ranks->letter_count += sequence;
    return result;
}

quern_result quern__ranks_send_letters(quern_ranks *ranks, bool has_far)
{
    quern_result result = QUERN_OK;
    quern__ranks_begin(ranks);
    for (uint32_t i = 0; i < ranks->rank_count && result == QUERN_OK; i++) {
        ranks_peer *peer = &ranks->peers[i];
        if (i == ranks->rank || !(has_far || peer->is_neighbour)) continue;
        quern__ranks_expect(ranks, i);
        if (has_far && quern__ranks_append(&peer->out, ranks->far.bytes, ranks->far.size_bytes) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
        result = quern__ranks_send(ranks, i, &peer->out);
    }
    return result;
}

bool quern__ranks_letters_are_good(const quern_ranks *ranks, const void *bytes, size_t size_bytes)
{
    if (size_bytes % sizeof(ranks_letter) != 0) return false;
    for (size_t at = 0; at < size_bytes; at += sizeof(ranks_letter)) {
        ranks_letter letter;
        quern_type_info info = {0};
        memcpy(&letter, (const char *)bytes + at, sizeof letter);
        const uint32_t bits = letter.type | ranks->tag_bits;
        if (letter.verb < QUERN_RANKS_SET || letter.verb > QUERN_RANKS_EMIT || letter.type > 0xFFFF)
            return false;
        if (letter.verb == QUERN_RANKS_DESTROY) continue;
        if ((letter.verb == QUERN_RANKS_EMIT
                 ? quern_event_get_info(ranks->world, (quern_event){bits}, &info)
                 : quern_component_get_info(ranks->world, (quern_component){bits}, &info)) != QUERN_OK)
            return false;
        if (letter.verb != QUERN_RANKS_REMOVE &&
            (has_hooks(&info) || letter.size_bytes != info.size_bytes ||
             letter.size_bytes > sizeof letter.value))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------- applying */

static int compare(const void *first, const void *second)
{
    const ranks_letter *a = first, *b = second;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static quern_result apply(quern_ranks *ranks, const ranks_letter *letter)
{
    const quern_component component = {letter->type | ranks->tag_bits};
    const void *value = letter->size_bytes > 0 ? letter->value : NULL;
    quern_commands *commands = quern_world_commands(ranks->world);
    quern_entity entity;
    const quern_result result = quern__ranks_find_entity(ranks, letter->to, &entity);
    if (result != QUERN_OK) return result;
    if (quern_entity_is_null(entity) || !quern_entity_has(ranks->world, entity, ranks->def.id))
        return QUERN_OK;
    ranks->own.message_count++;
    switch ((quern_ranks_verb)letter->verb) {
    case QUERN_RANKS_SET:
        return quern_commands_set(commands, entity, component, value);
    case QUERN_RANKS_REMOVE:
        return quern_commands_remove(commands, entity, component);
    case QUERN_RANKS_ACCUMULATE:
        return quern_commands_accumulate(commands, entity, component, value,
                                         (quern_combine){letter->combine});
    case QUERN_RANKS_DESTROY:
        return quern_commands_destroy(commands, entity);
    default:
        return quern__ranks_append(&ranks->pending, letter, sizeof *letter) != NULL
                   ? QUERN_OK
                   : QUERN_ERROR_OUT_OF_MEMORY;
    }
}

quern_result quern__ranks_apply_letters(quern_ranks *ranks)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        const ranks_peer *peer = &ranks->peers[i];
        if (!peer->has_arrived) continue;
        if (!quern__ranks_letters_are_good(ranks, peer->in.bytes, peer->in.size_bytes))
            return quern_error_set(
                QUERN_ERROR_BAD_ARCHIVE,
                "quern_ranks_run: the messages of rank %u are damaged: check that all ranks "
                "run the same program",
                (unsigned)i);
        if (quern__ranks_append(&ranks->letters, peer->in.bytes, peer->in.size_bytes) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    }
    ranks_letter *letters = ranks->letters.bytes;
    const uint32_t count = RANKS_COUNT(ranks->letters, ranks_letter);
    if (count == 0) return QUERN_OK;
    qsort(letters, count, sizeof *letters, compare);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = apply(ranks, &letters[i]);
    ranks->letters.size_bytes = 0;
    return result == QUERN_OK ? quern_world_flush(ranks->world) : result;
}

static quern_result emit(quern_ranks *ranks, const ranks_letter *letter)
{
    const quern_event event = {letter->type | ranks->tag_bits};
    quern_type_info info;
    quern_entity entity;
    unsigned char value[QUERN_RANKS_MAX_MESSAGE_BYTES];
    quern_result result = quern__ranks_find_entity(ranks, letter->to, &entity);
    if (result == QUERN_OK) result = quern_event_get_info(ranks->world, event, &info);
    if (result != QUERN_OK) return result;
    if (quern_entity_is_null(entity)) {
        ranks->own.dropped_count++;
        return QUERN_OK;
    }
    memcpy(value, letter->value, sizeof value);
    for (uint32_t i = 0; i < info.field_count; i++) {
        if (info.fields[i].type != QUERN_FIELD_ENTITY) continue;
        memcpy(value + info.fields[i].offset_bytes, &entity, sizeof entity);
        break;
    }
    return quern_world_emit(ranks->world, event, letter->size_bytes > 0 ? value : NULL, 1);
}

quern_result quern__ranks_emit_pending(quern_ranks *ranks)
{
    ranks_letter *pending = ranks->pending.bytes;
    const uint32_t count = RANKS_COUNT(ranks->pending, ranks_letter);
    quern_result result = QUERN_OK;
    if (count == 0) return QUERN_OK;
    qsort(pending, count, sizeof *pending, compare);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = emit(ranks, &pending[i]);
    ranks->pending.size_bytes = 0;
    return result;
}
