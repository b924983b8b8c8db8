/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/reacting.h"

#include "core/query/query_internal.h"
#include "tests/support/setup.h"

#include <stdlib.h>

reacting reacting_begin(quern_world *world, uint32_t kinds, const quern_term *terms, uint32_t term_count)
{
    quern_term first = terms[0];
    first.old = false; /* quern_query_create refuses old terms */
    reacting it = {.query = setup_query(world, &first, 1)};
    quern__query_release(it.query);
    cr_assert_eq(quern__query_init(it.query, &world->storage, terms, term_count), QUERN_OK, "%s",
                 quern_error_message());
    it.query->world = world;
    const quern__reaction_def def = {.kinds = kinds,
                                     .terms = it.query->terms,
                                     .term_count = term_count,
                                     .matches = quern__query_matches,
                                     .query = it.query};
    cr_assert_eq(quern__reaction_add(&world->storage, &def, &it.reaction), QUERN_OK, "%s",
                 quern_error_message());
    return it;
}

void reacting_end(reacting *it)
{
    quern__reaction_remove(it->query->storage, it->reaction);
    quern_query_destroy(it->query);
    free(it->rows);
    *it = (reacting){0};
}

static reacting_row *append(reacting *it)
{
    if ((it->count & (it->count - 1)) == 0) { /* the capacity is the next power of two */
        it->rows = realloc(it->rows, (it->count > 0 ? 2 * (size_t)it->count : 1) * sizeof *it->rows);
        if (it->rows == NULL) abort();
    }
    it->rows[it->count] = (reacting_row){0};
    return &it->rows[it->count++];
}

static void list_removed(reacting *it, const quern__taken_block *block)
{
    const quern__archetype *archetype = block->subscription->archetype;
    cr_assert_gt(block->count, 0u);
    for (uint32_t i = 0; i < block->count; i++) {
        reacting_row *row = append(it);
        *row = (reacting_row){
            .entity = block->entities[i], .archetype = archetype, .kind = QUERN_REACT_REMOVED};
        for (uint32_t k = 0; k < it->query->term_count; k++) {
            const quern_view_column *column = &block->columns[k];
            cr_assert_eq(column->present,
                         quern__archetype_has(archetype, quern__term_index(&it->query->terms[k])));
            if (column->offset_bytes != 0)
                row->values[k] = block->memory + column->offset_bytes + (size_t)i * column->size_bytes;
        }
    }
}

static void list_rows(reacting *it, const quern__taken_rows *rows)
{
    const quern__archetype *archetype = rows->archetype;
    const quern__chunk_slot *slot = &archetype->slots[rows->slot];
    const uint64_t *words = it->reaction->taken.words.items + rows->first_word;
    uint32_t count = 0;
    for (uint32_t row = 0; row < archetype->shape.row_capacity; row++) {
        if ((words[row / 64] >> row % 64 & 1) == 0) continue;
        cr_assert_lt(row, slot->row_count, "bits of rows that are not there");
        *append(it) =
            (reacting_row){.entity = quern__archetype_entities(archetype, quern__slot_chunk(slot))[row],
                           .archetype = archetype,
                           .kind = rows->kind};
        for (uint32_t k = 0; k < it->query->term_count && rows->old != NULL; k++) {
            const uint32_t index = quern__component_index(it->query->terms[k].component);
            const quern__column_position position = quern__archetype_column_position(archetype, index);
            if (rows->old[k] != NULL)
                it->rows[it->count - 1].old[k] =
                    (const char *)rows->old[k] + (size_t)row * position.size_bytes;
        }
        count++;
    }
    cr_assert_eq(count, rows->count);
    cr_assert_gt(count, 0u);
}

static bool comes_before(const quern__taken_rows *a, const quern__taken_rows *b)
{
    if (a->archetype->index != b->archetype->index) return a->archetype->index < b->archetype->index;
    return a->slot != b->slot ? a->slot < b->slot : a->kind < b->kind;
}

void reacting_look(reacting *it)
{
    quern__storage *storage = it->query->storage;
    it->count = 0;
    cr_assert_eq(quern__reaction_take(storage, it->reaction), QUERN_OK, "%s", quern_error_message());
    cr_assert_not(it->reaction->is_pending);
    const quern__taken *taken = &it->reaction->taken;
    for (uint32_t i = 0; i < taken->removed.count; i++) {
        cr_assert(i == 0 || taken->removed.items[i].subscription->archetype->index >=
                                taken->removed.items[i - 1].subscription->archetype->index);
        list_removed(it, &taken->removed.items[i]);
    }
    for (uint32_t i = 0; i < taken->rows.count; i++) {
        cr_assert(i == 0 || comes_before(&taken->rows.items[i - 1], &taken->rows.items[i]));
        list_rows(it, &taken->rows.items[i]);
    }
}

void reacting_done(reacting *it)
{
    quern__reaction_finish(it->query->storage, it->reaction);
}

const reacting_row *reacting_find(const reacting *it, quern_reaction_kind kind, quern_entity entity)
{
    for (uint32_t i = 0; i < it->count; i++)
        if (it->rows[i].kind == kind && quern_entity_equal(it->rows[i].entity, entity)) return &it->rows[i];
    return NULL;
}
