/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/seal.h"

#include "core/hash.h"
#include "sched/context.h"

enum { ALIGNMENT_BYTES = 64 };

const char quern__seal_nobody[] = "(nobody)";

void quern__seals_release(quern__seals *seals, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < seals->tables.count; i++)
        quern__release(allocator, seals->tables.items[i].seals,
                       seals->tables.items[i].capacity * sizeof(quern__seal), ALIGNMENT_BYTES);
    quern__array_release(allocator, &seals->tables);
}

/* ------------------------------------------------------------------------------------------- tables */

static bool reserve_tables(quern__seals *seals, const quern_allocator *allocator, uint32_t count)
{
    if (!quern__array_reserve(allocator, &seals->tables, count)) return false;
    while (seals->tables.count < count)
        seals->tables.items[seals->tables.count++] = (quern__seal_table){.archetype = NULL};
    return true;
}

/* The table of an archetype, with room for its chunks. Collecting archetypes gives their numbers to others:
 * then the table starts again. NULL: no memory. */
static quern__seal_table *prepare_table(quern__seals *seals, const quern_allocator *allocator,
                                        const quern__archetype *archetype)
{
    if (!reserve_tables(seals, allocator, archetype->index + 1)) return NULL;
    quern__seal_table *table = &seals->tables.items[archetype->index];
    uint32_t wanted = archetype->chunk_count * archetype->column_count;
    if (table->archetype == archetype && wanted <= table->capacity) return table;
    uint32_t capacity = wanted * 2 + 1;
    quern__seal *fresh = quern__allocate(allocator, capacity * sizeof *fresh, ALIGNMENT_BYTES);
    if (fresh == NULL) return NULL;
    memset(fresh, 0, capacity * sizeof *fresh);
    quern__release(allocator, table->seals, table->capacity * sizeof(quern__seal), ALIGNMENT_BYTES);
    *table = (quern__seal_table){.archetype = archetype, .seals = fresh, .capacity = capacity};
    return table;
}

static quern__seal *seal_at(const quern_schedule *schedule, const quern__archetype *archetype,
                            uint32_t slot, uint32_t column)
{
    return &schedule->seals.tables.items[archetype->index].seals[slot * archetype->column_count + column];
}

static uint64_t hash_column(const quern__archetype *archetype, uint32_t slot, uint32_t column)
{
    const quern__chunk_slot *chunk = &archetype->slots[slot];
    return quern__hash_bytes(0, quern__column_value(&archetype->columns[column], chunk->chunk, 0),
                             (size_t)chunk->row_count * archetype->columns[column].size_bytes);
}

/* -------------------------------------------------------------------------------------------- checks */

static const char *report(const quern_schedule *schedule, const quern__archetype *archetype,
                          uint32_t column, const quern__seal *seal)
{
    char declared[256] = "";
    if (seal->holder != NULL) quern__query_declared(&seal->holder->query, declared, sizeof declared);
    const char *component = archetype->columns[column].type->name;
    if (seal->holder != NULL)
        quern__violation(
            QUERN_ERROR_UNDECLARED_ACCESS,
            "'%s' was changed while no system had a view of it: somebody keeps a pointer beyond "
            "its call. The latest to have it was system '%s' (declared: %s)",
            component, seal->holder->name, declared);
    else
        quern__violation(
            QUERN_ERROR_UNDECLARED_ACCESS,
            "'%s' was changed in frame %llu while no system had a view of it, and no system has had one "
            "to write: somebody keeps a pointer from outside the frame, or has cast const away",
            component, (unsigned long long)schedule->frame_index);
    return seal->holder != NULL ? seal->holder->name : quern__seal_nobody;
}

/* Which column of the archetype a term's is, or UINT32_MAX where it has none. */
static uint32_t column_of_term(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    return column->offset_bytes != 0 ? column->version_index - 1u : UINT32_MAX;
}

static uint32_t slot_of(const quern_view *view)
{
    return ((const quern__chunk *)(const void *)view->chunk)->index;
}

void quern__seals_check(quern_context *context, const quern__archetype *archetype, const quern_view *view)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        uint32_t column = column_of_term(view, i), slot = slot_of(view);
        if (column == UINT32_MAX || view->columns[i].access == QUERN_NO_ACCESS) continue;
        const quern__seal *seal = seal_at(context->schedule, archetype, slot, column);
        if (seal->hash != hash_column(archetype, slot, column))
            context->refused_system = report(context->schedule, archetype, column, seal);
    }
}

void quern__seals_renew(quern_context *context, const quern__archetype *archetype, const quern_view *view,
                        bool was_refused)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        uint32_t column = column_of_term(view, i), slot = slot_of(view);
        if (column == UINT32_MAX || (view->columns[i].access != QUERN_WRITE && !was_refused)) continue;
        *seal_at(context->schedule, archetype, slot, column) =
            (quern__seal){.hash = hash_column(archetype, slot, column), .holder = context->system};
    }
}

/* --------------------------------------------------------------------------------------------- steps */

static void seal_all(const quern_schedule *schedule, const quern__archetype *archetype)
{
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
        for (uint32_t column = 0; column < archetype->column_count; column++)
            seal_at(schedule, archetype, slot, column)->hash = hash_column(archetype, slot, column);
}

quern_result quern__seals_start(quern_schedule *schedule, const quern__step *step)
{
    const quern_allocator *allocator = quern__schedule_allocator(schedule);
    for (uint32_t i = 0; i < step->passes.count; i++) {
        const quern__pass *pass = step->passes.items[i];
        for (uint32_t k = 0; k < pass->tables.count; k++) {
            const quern__archetype *archetype = pass->tables.items[k].archetype;
            if (prepare_table(&schedule->seals, allocator, archetype) == NULL)
                return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                                   "no memory for the checks of %u chunks (QUERN_CHECKS)",
                                   archetype->chunk_count);
            seal_all(schedule, archetype);
        }
    }
    return QUERN_OK;
}

static void check_all(quern_schedule *schedule, const quern__archetype *archetype)
{
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
        for (uint32_t column = 0; column < archetype->column_count; column++) {
            quern__seal *seal = seal_at(schedule, archetype, slot, column);
            uint64_t hash = hash_column(archetype, slot, column);
            if (seal->hash == hash) continue;
            const char *name = report(schedule, archetype, column, seal);
            if (schedule->contexts[0].refused_system == NULL) schedule->contexts[0].refused_system = name;
            seal->hash = hash; /* an archetype may stand in several tables: told once */
        }
}

void quern__seals_finish(quern_schedule *schedule, const quern__step *step)
{
    for (uint32_t i = 0; i < step->passes.count; i++)
        for (uint32_t k = 0; k < step->passes.items[i]->tables.count; k++)
            check_all(schedule, step->passes.items[i]->tables.items[k].archetype);
}
