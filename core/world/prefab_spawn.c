/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Spawning at once. All that may fail comes first: the plan, rows, slots, pages of links. Then block by
 * block of instances each group gets its rows, which are filled with copies of its columns, and the block's
 * members are linked.
 *
 * Rows come in the order of instances, and in each in that of members, so that spawning n at a time leaves
 * what spawning one n times leaves. Groups have archetypes of their own, and so blocks make no difference,
 * but where several groups share the archetype of the deepest level: there a block is one instance. */

#include <quern/prefab.h>

#include "core/storage/change.h"
#include "core/storage/prefab.h"
#include "core/world/query.h"
#include "core/world/world.h"

/* Members of a block of instances: their handles and records stay in the first cache from one group to the
 * next. Handles kept from call to call. */
enum { BLOCK_MEMBERS = 1024, KEPT_HANDLES = 4096 };

/* One call. */
typedef struct spawn {
    quern_world *world;
    quern__storage *storage;
    quern__prefab *prefab;
    const quern__prefab_plan *plan;
    quern__relation *parent_relation; /* NULL: roots get no parent */
    quern_entity parent;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t override_count;
    quern_entity *handles; /* of all instances */
    uint32_t count;
} spawn;

/* -------------------------------------------------------------------------------------------- values */

/* Fills `bytes` with copies of a pattern, one after the other, the first of which begins at `phase`. */
static void repeat(char *to, const char *pattern, size_t pattern_bytes, size_t phase, size_t bytes)
{
    if (bytes <= pattern_bytes - phase) {
        quern__copy_value(to, pattern + phase, bytes);
        return;
    }
    const size_t head = pattern_bytes - phase;
    quern__copy_value(to, pattern + phase, head);
    size_t done = bytes - head < phase ? bytes : pattern_bytes;
    quern__copy_value(to + head, pattern, done - head);
    for (size_t more; done < bytes; done += more) {
        more = bytes - done < done ? bytes - done : done;
        memcpy(to + done, to, more);
    }
}

/* New rows of a group, which lie next to each other. */
typedef struct group_rows {
    const quern__prefab_group *group;
    uint32_t group_index;
    const quern__archetype *archetype;
    uintptr_t first;
    uint32_t count;
    uint32_t instance; /* of the first row, */
    uint32_t phase;    /* which is this row of it */
} group_rows;

/* The first of the rows that is the row `at` of its instance. The next ones come a group's width later
 * each, of one instance after the other. */
static inline uint32_t first_row_of(const group_rows *rows, uint32_t at)
{
    return at >= rows->phase ? at - rows->phase : at + rows->group->width - rows->phase;
}

static inline uint32_t instance_of_first(const group_rows *rows, uint32_t at)
{
    return rows->instance + (at < rows->phase);
}

static const quern__prefab_override *find_override(const spawn *it, uint32_t group, uint32_t column,
                                                   uint32_t row)
{
    for (uint32_t i = 0; i < it->override_count; i++) {
        const quern__prefab_override *override = &it->overrides[i];
        if (override->group == group && override->column == column && override->row == row) return override;
    }
    return NULL;
}

/* With a copy hook each row is made of what it gets in the end. */
static void copy_hooked(const spawn *it, const group_rows *rows, uint32_t number, char *to)
{
    const quern__prefab_column *column = &it->prefab->columns.items[rows->group->first_column + number];
    for (uint32_t i = 0; i < rows->count; i++, to += column->size_bytes) {
        const uint32_t instance = rows->instance + (rows->phase + i) / rows->group->width;
        const uint32_t row = (rows->phase + i) % rows->group->width;
        const char *from = column->values + (size_t)row * column->size_bytes;
        const quern__prefab_override *override = find_override(it, rows->group_index, number, row);
        if (override != NULL) from = override->values + (size_t)instance * column->size_bytes;
        quern__type_copy(column->type, to, from, 1);
    }
}

static char *column_of(const group_rows *rows, const quern__prefab_column *column)
{
    return quern__storage_value(rows->archetype, rows->first, column->component_index);
}

static void fill_columns(const spawn *it, const group_rows *rows)
{
    const quern__prefab_group *group = rows->group;
    const quern__prefab_column *column = it->prefab->columns.items + group->first_column;
    const size_t phase = rows->phase;
    for (uint32_t i = 0; i < group->column_count; i++, column++) {
        const size_t bytes = column->size_bytes;
        char *to = column_of(rows, column);
        if (QUERN__LIKELY(column->is_plain))
            repeat(to, column->values, group->width * bytes, phase * bytes, rows->count * bytes);
        else
            copy_hooked(it, rows, i, to);
    }
}

/* Handles that named members name those of the instance; not in values that take the place of captured
 * ones. */
static void write_fields(const spawn *it, const group_rows *rows)
{
    const quern__prefab *prefab = it->prefab;
    const quern__prefab_field *field = prefab->fields.items + rows->group->first_field;
    const uint32_t member_count = prefab->members.count;
    for (uint32_t k = 0; k < rows->group->field_count; k++, field++) {
        const quern__prefab_column *column =
            &prefab->columns.items[rows->group->first_column + field->column];
        char *values = column_of(rows, column) + field->offset_bytes;
        if (it->override_count > 0 &&
            find_override(it, rows->group_index, field->column, field->row) != NULL)
            continue;
        for (uint32_t i = first_row_of(rows, field->row), instance = instance_of_first(rows, field->row);
             i < rows->count; i += rows->group->width, instance++)
            memcpy(values + (size_t)i * column->size_bytes,
                   &it->handles[(size_t)instance * member_count + field->member], sizeof(quern_entity));
    }
}

static void write_overrides(const spawn *it, const group_rows *rows)
{
    for (uint32_t k = 0; k < it->override_count; k++) {
        const quern__prefab_override *override = &it->overrides[k];
        if (override->group != rows->group_index) continue;
        const quern__prefab_column *column =
            &it->prefab->columns.items[rows->group->first_column + override->column];
        const size_t bytes = column->size_bytes;
        char *values = column_of(rows, column);
        if (!column->is_plain) continue;
        for (uint32_t i = first_row_of(rows, override->row),
                      instance = instance_of_first(rows, override->row);
             i < rows->count; i += rows->group->width, instance++)
            quern__copy_value(values + i * bytes, override->values + instance * bytes, bytes);
    }
}

/* The roots' own parent, of which the group of the root knows nothing. */
static void write_parent(const spawn *it, const group_rows *rows)
{
    quern_entity *targets =
        quern__storage_value(rows->archetype, rows->first, it->parent_relation->component_index);
    for (uint32_t i = 0; i < rows->count; i++)
        targets[i] = it->parent;
}

/* ---------------------------------------------------------------------------------------------- rows */

/* Handles of the rows, from those of the instances. */
static const quern_entity *gather_handles(const spawn *it, const group_rows *rows)
{
    const quern__prefab *prefab = it->prefab;
    const uint32_t *members = prefab->row_members.items + rows->group->first_row;
    const uint32_t width = rows->group->width, member_count = prefab->members.count;
    const quern_entity *instance = it->handles + (size_t)rows->instance * member_count;
    quern_entity *handles = it->storage->prefabs->group_handles.items;
    for (uint32_t i = 0, row = rows->phase; i < rows->count; i++) {
        handles[i] = instance[members[row]];
        if (++row < width) continue;
        row = 0;
        instance += member_count;
    }
    return handles;
}

static void spawn_rows(const spawn *it, uint32_t group_index, uint32_t first_instance, uint32_t count)
{
    quern__archetype *archetype = it->plan->archetypes[group_index];
    group_rows rows = {.group = &it->prefab->groups.items[group_index],
                       .group_index = group_index,
                       .archetype = archetype,
                       .instance = first_instance};
    for (uint32_t left = count * rows.group->width; left > 0;) {
        rows.first = quern__rows_append(it->storage, archetype, left, &rows.count);
        quern__rows_arrive(it->storage, archetype, rows.first, gather_handles(it, &rows), rows.count);
        fill_columns(it, &rows);
        if (rows.group->field_count > 0) write_fields(it, &rows);
        if (it->override_count > 0) write_overrides(it, &rows);
        if (group_index == 0 && it->parent_relation != NULL) write_parent(it, &rows);
        left -= rows.count;
        if (left == 0) break;
        rows.instance += (rows.phase + rows.count) / rows.group->width;
        rows.phase = (rows.phase + rows.count) % rows.group->width;
    }
}

/* --------------------------------------------------------------------------------------------- links */

static void link_entity(quern__relation *relation, uint32_t source, uint32_t target)
{
    quern__links *links = &relation->links;
    quern__links_link(links, source, target, quern__links_new_place(links, target, relation->is_ordered));
    quern__links_at(links, source)->level = quern__relation_child_level(relation, target);
}

/* The links of the hierarchy are known beforehand, but for slots. */
static void link_instance(const spawn *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    quern__relation *parent = it->storage->relations.parent;
    if (it->parent_relation != NULL)
        link_entity(parent, quern_entity_index(handles[0]), quern_entity_index(it->parent));
    if (prefab->has_children)
        quern__links_put_tree(&parent->links, prefab->kin.items, prefab->kin.count, handles);
    for (uint32_t i = 0; i < prefab->links.count && prefab->has_other_links; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        if (link->relation == parent) continue;
        const quern_entity target = link->target != QUERN_NO_MEMBER ? handles[link->target] : link->outside;
        link_entity(link->relation, quern_entity_index(handles[link->source]), quern_entity_index(target));
    }
}

static void name_instance(const spawn *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 1; i < prefab->members.count; i++) {
        const uint32_t at = prefab->members.items[i].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = prefab->names.items + at;
        quern__names_put(&it->storage->names, quern_entity_index(handles[i]),
                         quern_entity_index(handles[prefab->kin.items[i].target]), name,
                         (uint32_t)strlen(name));
    }
}

static void disable_components(const spawn *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->toggles.count; i++) {
        const quern__prefab_toggle *toggle = &prefab->toggles.items[i];
        const quern__record *record =
            quern__entities_record(&it->storage->entities, quern_entity_index(handles[toggle->member]));
        const quern__archetype *archetype = quern__storage_archetype_of(it->storage, record);
        quern__row_enable(
            archetype, record->location,
            quern__planes_find(archetype->planes, QUERN__PLANE_DISABLED, toggle->component_index), false);
    }
}

/* --------------------------------------------------------------------------------------------- spawn */

static void spawn_all(const spawn *it)
{
    const uint32_t member_count = it->prefab->members.count;
    uint32_t block = it->plan->shares_archetypes ? 1 : BLOCK_MEMBERS / member_count;
    if (block == 0) block = 1;
    for (uint32_t first = 0; first < it->count; first += block) {
        const uint32_t count = it->count - first < block ? it->count - first : block;
        for (uint32_t i = 0; i < it->prefab->groups.count; i++)
            spawn_rows(it, i, first, count);
        for (uint32_t i = first; i < first + count; i++)
            link_instance(it, it->handles + (size_t)i * member_count);
        for (uint32_t i = first; i < first + count && it->prefab->name_count > 0; i++)
            name_instance(it, it->handles + (size_t)i * member_count);
        for (uint32_t i = first; i < first + count && it->prefab->toggles.count > 0; i++)
            disable_components(it, it->handles + (size_t)i * member_count);
    }
}

/* Pages of links for all members, and for those that they are related to. */
static bool reserve_relation(const spawn *it, quern__relation *relation)
{
    const uint32_t count = it->count * it->prefab->members.count;
    for (uint32_t i = 0, page = UINT32_MAX; i < count; i++) {
        const uint32_t slot = quern_entity_index(it->handles[i]);
        if (slot >> QUERN__LINK_PAGE_LOG2 == page) continue;
        page = slot >> QUERN__LINK_PAGE_LOG2;
        if (!quern__links_reserve(&relation->links, &it->storage->allocator, slot)) return false;
    }
    return true;
}

static bool reserve_links(const spawn *it)
{
    const quern__prefab *prefab = it->prefab;
    const quern_allocator *allocator = &it->storage->allocator;
    const quern__relation *last = NULL;
    if (it->parent_relation != NULL &&
        (!reserve_relation(it, it->parent_relation) ||
         !quern__links_reserve(&it->parent_relation->links, allocator, quern_entity_index(it->parent))))
        return false;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        if (link->relation != last && !reserve_relation(it, link->relation)) return false;
        last = link->relation;
        if (link->target == QUERN_NO_MEMBER &&
            !quern__links_reserve(&link->relation->links, allocator, quern_entity_index(link->outside)))
            return false;
    }
    return true;
}

static bool reserve_names(const spawn *it)
{
    quern__names *names = &it->storage->names;
    const quern_allocator *allocator = &it->storage->allocator;
    const uint32_t member_count = it->prefab->members.count;
    if (it->prefab->name_count == 0) return true;
    for (uint32_t i = 0; i < it->count * member_count; i++)
        if (it->prefab->members.items[i % member_count].name != QUERN_NO_MEMBER &&
            !quern__names_reserve_page(names, allocator, quern_entity_index(it->handles[i])))
            return false;
    return quern__names_reserve_count(names, allocator, it->count * it->prefab->name_count);
}

static quern_result reserve_rows(const spawn *it)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->prefab->groups.count && result == QUERN_OK; i++)
        result = quern__rows_reserve(it->storage, it->plan->archetypes[i],
                                     it->count * it->prefab->groups.items[i].width);
    return result;
}

static void unreserve(const spawn *it)
{
    for (uint32_t i = 0; i < it->prefab->groups.count; i++)
        quern__rows_unreserve(it->storage, it->plan->archetypes[i]);
    quern__entities_trim(&it->storage->entities, &it->storage->allocator);
}

/* Room for the handles of all instances, and for those of one run of rows. */
static quern_result reserve_handles(spawn *it)
{
    enum { MOST_PER_CHUNK = QUERN__CHUNK_BYTES / sizeof(quern_entity) };
    quern__prefabs *prefabs = it->storage->prefabs;
    const quern_allocator *allocator = &it->storage->allocator;
    const uint32_t count = it->count * it->prefab->members.count;
    if (!quern__array_reserve(allocator, &prefabs->handles, count) ||
        !quern__array_reserve(allocator, &prefabs->group_handles,
                              count < MOST_PER_CHUNK ? count : MOST_PER_CHUNK))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the handles of %u entities", count);
    it->handles = prefabs->handles.items;
    return QUERN_OK;
}

/* What a large call has needed is not kept. */
static void trim_handles(const spawn *it)
{
    quern__prefabs *prefabs = it->storage->prefabs;
    if (prefabs->handles.capacity <= KEPT_HANDLES) return;
    quern__array_release(&it->storage->allocator, &prefabs->handles);
    prefabs->handles.items = NULL;
    prefabs->handles.capacity = 0;
}

/* All that may fail; on failure nothing is held that was not before, but for archetypes without rows, pages
 * of links and records that were absent. */
static quern_result reserve(spawn *it)
{
    const bool has_links = it->parent_relation != NULL || it->prefab->links.count > 0;
    const uint32_t count = it->count * it->prefab->members.count;
    quern_result result = reserve_handles(it);
    if (result == QUERN_OK)
        result = quern__entities_reserve(&it->storage->entities, &it->storage->allocator, count);
    if (result == QUERN_OK) result = reserve_rows(it);
    if (result == QUERN_OK && has_links) {
        quern__entities_peek(&it->storage->entities, count, it->handles);
        if (!reserve_links(it) || !reserve_names(it))
            result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for links and names");
    }
    if (result != QUERN_OK) unreserve(it);
    return result;
}

static void give_handles(const spawn *it, quern_entity *out_roots, quern_entity *out_members)
{
    const uint32_t member_count = it->prefab->members.count;
    for (uint32_t i = 0; out_roots != NULL && i < it->count; i++)
        out_roots[i] = it->handles[(size_t)i * member_count];
    if (out_members != NULL)
        memcpy(out_members, it->handles, (size_t)it->count * member_count * sizeof *out_members);
}

/* ---------------------------------------------------------------------------------------------- fill */

/* What a fill writes, checked before anything is spawned. */
typedef struct spawn_fill {
    const quern_spawn_def *def; /* NULL: there is none */
    uint32_t component_count;
} spawn_fill;

static bool is_end_of_components(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

static quern_result check_fill(const spawn *it, const quern_spawn_def *def, spawn_fill *out_fill)
{
    *out_fill = (spawn_fill){.def = def->fill != NULL ? def : NULL};
    quern_result result =
        quern__list_count(def->fill_components, QUERN_MAX_SPAWN_OVERRIDES, is_end_of_components,
                          "fill component", NULL, &out_fill->component_count);
    if (result == QUERN_OK && def->fill == NULL && out_fill->component_count > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "there are fill components, but no fill");
    for (uint32_t i = 0; i < out_fill->component_count && result == QUERN_OK; i++) {
        uint32_t column;
        result = quern__prefab_find_column(it->storage, it->prefab, def->fill_member,
                                           def->fill_components[i], &column);
        if (result != QUERN_OK) quern__name_element(result, "fill component", i);
    }
    if (result == QUERN_OK && def->fill_member >= it->prefab->members.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "fill member %u; the prefab has %u",
                           def->fill_member, it->prefab->members.count);
    return result;
}

static uintptr_t location_of(const spawn *it, uint32_t instance, uint32_t member)
{
    const quern_entity entity = it->handles[(size_t)instance * it->prefab->members.count + member];
    return quern__entities_record(&it->storage->entities, quern_entity_index(entity))->location;
}

/* The member's rows of so many instances lie next to each other. */
static void fill_run(const spawn *it, const spawn_fill *filler, quern_view *view, uintptr_t first)
{
    quern__chunk *chunk = quern__chunk_of(first);
    view->first_row = quern__location_row(first);
    view->entities = quern__archetype_entities(chunk->archetype, chunk) + view->first_row;
    view->chunk = (char *)chunk;
    quern__world_set_locked(it->world, true);
    filler->def->fill(view->context, view);
    quern__world_set_locked(it->world, false);
}

static void call_fill(const spawn *it, const spawn_fill *filler)
{
    const quern_spawn_def *def = filler->def;
    const quern__archetype *archetype =
        it->plan->archetypes[it->prefab->members.items[def->fill_member].group];
    quern_view_column columns[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < filler->component_count; i++) {
        const quern__place place = archetype->places[quern__component_index(def->fill_components[i])];
        columns[i] = (quern_view_column){.offset_bytes = place.offset_bytes,
                                         .size_bytes = place.size_bytes,
                                         .access = QUERN_WRITE,
                                         .present = true,
                                         .is_checked = QUERN_CHECKS};
    }
    quern__plain_context context = {.scope.caller = QUERN__CALLER_FILL,
                                    .world = it->world,
                                    .user_data = def->user_data,
                                    .thread = quern__this_thread()};
    quern_view view = {
        .context = (quern_context *)&context, .term_count = filler->component_count, .columns = columns};
    for (; view.first < it->count; view.first += view.count) {
        const uintptr_t first = location_of(it, view.first, def->fill_member);
        view.count = 1;
        while (view.first + view.count < it->count &&
               location_of(it, view.first + view.count, def->fill_member) == first + view.count)
            view.count++;
        fill_run(it, filler, &view, first);
    }
}

/* ------------------------------------------------------------------------------------------ the calls */

/* A living parent, and the relation to it. */
static quern_result find_parent(spawn *it, quern_entity parent)
{
    quern__relations *relations = &it->storage->relations;
    quern_result result = quern__entities_check(&it->storage->entities, parent);
    if (result == QUERN_OK && relations->parent == NULL)
        result = quern__relation_register(it->storage, &quern__parent_def, &relations->parent);
    it->parent = parent;
    it->parent_relation = relations->parent;
    return result;
}

/* Prefab, overrides, fill, parent and plan. */
static quern_result prepare(spawn *it, quern_prefab prefab, const quern_spawn_def *def,
                            spawn_fill *out_fill)
{
    it->storage = &it->world->storage;
    it->prefab = quern__prefabs_find(it->storage, prefab);
    if (it->prefab == NULL) return quern__prefabs_fail(it->storage, prefab);
    uint32_t parent_slot = QUERN__SLOT_NONE;
    quern_result result = QUERN_OK;
    if (def != NULL)
        result = quern__prefab_resolve(it->storage, it->prefab, def, it->overrides, &it->override_count);
    if (def != NULL && result == QUERN_OK) result = check_fill(it, def, out_fill);
    if (def != NULL && def->parent.bits != 0 && result == QUERN_OK) {
        parent_slot = quern_entity_index(def->parent);
        result = find_parent(it, def->parent);
    }
    if (result == QUERN_OK && (uint64_t)it->count * it->prefab->members.count > QUERN_MAX_ENTITIES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "%u instances of %u members; a world has at most %u entities "
                           "(QUERN_MAX_ENTITIES)",
                           it->count, it->prefab->members.count, QUERN_MAX_ENTITIES);
    if (result != QUERN_OK) return result;
    return quern__prefab_plan_find(it->storage, it->prefab, parent_slot, &it->plan);
}

static quern_result spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                               const quern_spawn_def *def, quern_entity *out_roots,
                               quern_entity *out_members)
{
    spawn it;
    it.world = world;
    it.parent_relation = NULL;
    it.override_count = 0;
    it.count = count;
    spawn_fill filler = {.def = NULL};
    quern_result result = prepare(&it, prefab, def, &filler);
    if (result != QUERN_OK || count == 0) return result;
    result = reserve(&it);
    if (result != QUERN_OK) return result;
    quern__slots_take(it.storage, count * it.prefab->members.count, it.handles);
    spawn_all(&it);
    if (filler.def != NULL) call_fill(&it, &filler);
    give_handles(&it, out_roots, out_members);
    trim_handles(&it);
    return QUERN_OK;
}

static quern_result check_and_spawn(quern_world *world, quern_prefab prefab, uint32_t count,
                                    const quern_spawn_def *def, quern_entity *out_roots,
                                    quern_entity *out_members, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(spawn_many(world, prefab, count, def, out_roots, out_members), function);
}

quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                     const quern_spawn_def *def, quern_entity *out_roots,
                                     quern_entity *out_members)
{
    if (!quern__world_enter(world, "quern_prefab_spawn_many")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, check_and_spawn(world, prefab, count, def, out_roots, out_members,
                                                    "quern_prefab_spawn_many"));
}

quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab, const quern_spawn_def *def,
                                quern_entity *out_root)
{
    if (!quern__world_enter(world, "quern_prefab_spawn")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world,
                             check_and_spawn(world, prefab, 1, def, out_root, NULL, "quern_prefab_spawn"));
}
