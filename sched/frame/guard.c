/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/base/containers.h"

/* Guards of columns against writes through kept pointers (schedule_internal.h). */

enum { GUARD_ALIGNMENT_BYTES = 64 };

const char quern__guard_no_system[] = "(no system)";

void quern__guards_release(quern__guards *guards, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < guards->tables.count; i++)
        quern__release(allocator, guards->tables.items[i].guards,
                       guards->tables.items[i].capacity * sizeof(quern__guard), GUARD_ALIGNMENT_BYTES);
    quern__array_release(allocator, &guards->tables);
}

void quern__guards_forget(quern_schedule *schedule)
{
    quern__guards_release(&schedule->guards, quern__plan_allocator(&schedule->plan));
    schedule->guards = (quern__guards){.are_valid = false};
}

/* ------------------------------------------------------------------------------------------- tables */

/* Reserves guards for all chunks of the archetype. Removing archetypes gives their indices to others: the
 * table of a new archetype starts empty. Returns false if out of memory. */
static bool prepare_table(quern__guard_table *table, const quern_allocator *allocator,
                          const quern__archetype *archetype)
{
    uint32_t wanted = archetype->chunk_count * archetype->column_count;
    bool is_known = table->archetype == archetype && table->set_hash == archetype->set_hash;
    if (is_known && wanted <= table->capacity) return true;
    uint32_t capacity = wanted * 2 + 1;
    quern__guard *fresh = quern__allocate(allocator, capacity * sizeof *fresh, GUARD_ALIGNMENT_BYTES);
    if (fresh == NULL) return false;
    memset(fresh, 0, capacity * sizeof *fresh);
    if (is_known) memcpy(fresh, table->guards, table->capacity * sizeof *fresh);
    quern__release(allocator, table->guards, table->capacity * sizeof *fresh, GUARD_ALIGNMENT_BYTES);
    *table = (quern__guard_table){
        .archetype = archetype, .set_hash = archetype->set_hash, .guards = fresh, .capacity = capacity};
    return true;
}

static quern__guard *guard_at(const quern_schedule *schedule, const quern__archetype *archetype,
                              uint32_t slot, uint32_t column)
{
    return &schedule->guards.tables.items[archetype->index].guards[slot * archetype->column_count + column];
}

/* Returns the sum of the rows' hashes. Single rows can be subtracted from a sum and added again. The hash
 * of a row depends on its index, so that rows with equal values differ. */
static uint64_t hash_rows(const quern__archetype *archetype, uint32_t slot, uint32_t column,
                          uint32_t first_row, uint32_t row_count)
{
    const quern__column *of = &archetype->columns[column];
    const char *value = quern__column_value(of, quern__slot_chunk(&archetype->slots[slot]), first_row);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < row_count; i++, value += of->size_bytes)
        hash += quern__hash_bytes(quern__hash_mix(first_row + i), value, of->size_bytes);
    return hash;
}

static uint64_t hash_column(const quern__archetype *archetype, uint32_t slot, uint32_t column)
{
    return hash_rows(archetype, slot, column, 0, archetype->slots[slot].row_count);
}

/* -------------------------------------------------------------------------------------------- checks */

static const char *report(const quern_schedule *schedule, const quern__archetype *archetype,
                          uint32_t column, const quern__guard *guard)
{
    char declared[256] = "";
    if (guard->last_writer != NULL)
        quern__query_describe(&guard->last_writer->query, declared, sizeof declared);
    const char *component = archetype->columns[column].type->name;
    const char *when = schedule->guards.when;
    const unsigned long long frame = schedule->frame_index;
    if (guard->last_writer != NULL)
        quern__report_violation(
            QUERN_ERROR_UNDECLARED_ACCESS,
            "component '%s' was changed %s frame %llu while no system had a view of it: code wrote through "
            "a pointer that it kept beyond its call. The last writable view was that of system '%s' "
            "(declared: %s). Do not keep pointers from views and lookups",
            component, when, frame, guard->last_writer->name, declared);
    else
        quern__report_violation(
            QUERN_ERROR_UNDECLARED_ACCESS,
            "component '%s' was changed %s frame %llu while no system had a view of it, and no system has "
            "had one for writing: code kept a pointer from outside of the frame, or cast const away; write "
            "through a view that declares the component for writing",
            component, when, frame);
    return guard->last_writer != NULL ? guard->last_writer->name : quern__guard_no_system;
}

/* Returns the archetype's column for the term, or UINT32_MAX if it has none. */
static uint32_t column_of_term(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    return column->offset_bytes != 0 ? column->version_index - 1u : UINT32_MAX;
}

static uint32_t slot_of(const quern_view *view)
{
    return quern__chunk_index_at(&quern__chunk_archetype(view->chunk)->shape, (uintptr_t)view->chunk);
}

static uint64_t hash_view(const quern__archetype *archetype, const quern_view *view, uint32_t column)
{
    return hash_rows(archetype, slot_of(view), column, view->first_row, view->count);
}

/* Returns whether the view has only a part of the chunk's rows. There may be many such views, so none of
 * them may hash the whole chunk. */
static bool shows_part(const quern__archetype *archetype, const quern_view *view)
{
    return view->count < archetype->slots[slot_of(view)].row_count;
}

void quern__guards_begin_view(quern_context *context, const quern__archetype *archetype,
                              const quern_view *view)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        uint32_t column = column_of_term(view, i), slot = slot_of(view);
        if (column == UINT32_MAX || view->columns[i].access == QUERN_ACCESS_NONE) continue;
        quern__guard *guard = guard_at(context->schedule, archetype, slot, column);
        if (shows_part(archetype, view)) {
            if (view->columns[i].access == QUERN_ACCESS_WRITE)
                guard->hash -= hash_view(archetype, view, column);
        } else if (guard->hash != hash_column(archetype, slot, column))
            context->refused_system = report(context->schedule, archetype, column, guard);
    }
}

void quern__guards_renew_view(quern_context *context, const quern__archetype *archetype,
                              const quern_view *view, bool was_refused)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        uint32_t column = column_of_term(view, i), slot = slot_of(view);
        quern_access access = (quern_access)view->columns[i].access;
        if (column == UINT32_MAX || access == QUERN_ACCESS_NONE) continue;
        if (access != QUERN_ACCESS_WRITE && !was_refused) continue;
        quern__guard *guard = guard_at(context->schedule, archetype, slot, column);
        guard->hash = access == QUERN_ACCESS_WRITE && shows_part(archetype, view)
                          ? guard->hash + hash_view(archetype, view, column)
                          : hash_column(archetype, slot, column);
        guard->last_writer = context->system;
    }
}

void quern__guards_open(quern_context *context, const quern__archetype *archetype, uint32_t slot,
                        uint32_t column)
{
    quern__guard *guard = guard_at(context->schedule, archetype, slot, column);
    if (guard->archetype != NULL) return;
    /* if the callback's view may write the component, this column may be half written */
    const uint32_t index = archetype->columns[column].component_index;
    const bool may_differ = quern__bitset_has(context->system->access.writes, index);
    if (!may_differ && guard->hash != hash_column(archetype, slot, column))
        context->refused_system = report(context->schedule, archetype, column, guard);
    guard->archetype = archetype;
    guard->slot = slot;
    guard->column = column;
    guard->next_open = context->open_guards;
    context->open_guards = guard;
}

void quern__guards_renew_open(quern_context *context)
{
    for (quern__guard *guard = context->open_guards; guard != NULL; guard = guard->next_open) {
        guard->hash = hash_column(guard->archetype, guard->slot, guard->column);
        guard->last_writer = context->system;
        guard->archetype = NULL;
    }
    context->open_guards = NULL;
}

/* ----------------------------------------------------------------------------------------- all guards */

typedef void guard_visit(quern_schedule *schedule, const quern__archetype *archetype, uint32_t slot,
                         uint32_t column);

/* Calls `visit` for each guard of the columns that systems can access. */
static void visit_all(quern_schedule *schedule, guard_visit *visit)
{
    const quern__storage *storage = &schedule->plan.world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        for (uint32_t column = 0; column < archetype->column_count; column++)
            if (quern__bitset_has(schedule->guards.reachable, archetype->columns[column].component_index))
                for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
                    visit(schedule, archetype, slot, column);
    }
}

static void renew_one(quern_schedule *schedule, const quern__archetype *archetype, uint32_t slot,
                      uint32_t column)
{
    guard_at(schedule, archetype, slot, column)->hash = hash_column(archetype, slot, column);
}

static void check_one(quern_schedule *schedule, const quern__archetype *archetype, uint32_t slot,
                      uint32_t column)
{
    quern__guard *guard = guard_at(schedule, archetype, slot, column);
    uint64_t hash = hash_column(archetype, slot, column);
    if (guard->hash == hash) return;
    const char *name = report(schedule, archetype, column, guard);
    if (schedule->contexts.items[0]->refused_system == NULL)
        schedule->contexts.items[0]->refused_system = name;
    guard->hash = hash; /* so that the change is not reported again */
}

/* Renews the guard if code other than systems may have written the component since the guards were built, otherwise
 * checks it. Relaxed: the code that stored these versions has returned, or is about to be refused; a frame and a
 * call on the same world do not overlap. */
static void check_or_renew(quern_schedule *schedule, const quern__archetype *archetype, uint32_t slot,
                           uint32_t column)
{
    const quern__storage *storage = &schedule->plan.world->storage;
    const quern__outside_writes *outside_writes =
        &storage->components.list.items[archetype->columns[column].component_index]->outside_writes;
    const bool may_be_written =
        atomic_load_explicit(&outside_writes->pointer_structure, memory_order_relaxed) ==
            storage->structure_version + 1 ||
        atomic_load_explicit(&outside_writes->written_in_period, memory_order_relaxed) ==
            storage->guard_period + 1;
    if (may_be_written)
        renew_one(schedule, archetype, slot, column);
    else
        check_one(schedule, archetype, slot, column);
}

void quern__guards_check_outside_writes(quern_schedule *schedule, const char *when)
{
    quern__guards *guards = &schedule->guards;
    quern__storage *storage = &schedule->plan.world->storage;
    if (guards->structure_version != storage->structure_version || storage->last_frame_schedule != schedule)
        guards->are_valid = false;
    /* Add the components to which systems added since the last call can get pointers, also those that they
     * only read: const can be cast away. */
    for (; guards->system_count < schedule->plan.systems.count; guards->system_count++) {
        const quern__access *access = &schedule->plan.systems.items[guards->system_count]->access;
        for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
            guards->reachable[word] |= access->reads[word] | access->upward_by_others[word] |
                                       access->upward_by_levels[word] | access->lookups.unlimited[word] |
                                       access->lookups.limited[word] | access->query_reads[word];
        guards->are_valid = false;
    }
    guards->when = when;
    if (guards->are_valid) visit_all(schedule, check_or_renew);
    storage->last_frame_schedule = schedule;
    storage->guard_period++;
    guards->when = "in";
}

void quern__guards_invalidate(quern_schedule *schedule)
{
    schedule->guards.are_valid = false;
}

bool quern__guards_rebuild(quern_schedule *schedule)
{
    quern__guards *guards = &schedule->guards;
    const quern__storage *storage = &schedule->plan.world->storage;
    if (guards->are_valid && guards->structure_version == storage->structure_version) return true;
    if (!quern__array_reserve(&storage->allocator, &guards->tables, storage->archetypes.count))
        return false;
    while (guards->tables.count < storage->archetypes.count)
        guards->tables.items[guards->tables.count++] = (quern__guard_table){.archetype = NULL};
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        if (!prepare_table(&guards->tables.items[i], &storage->allocator, storage->archetypes.items[i]))
            return false;
    visit_all(schedule, renew_one);
    guards->structure_version = storage->structure_version;
    guards->are_valid = true;
    return true;
}

void quern__guards_check_all(quern_schedule *schedule)
{
    visit_all(schedule, check_one);
}
