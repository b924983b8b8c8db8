/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Instances are put into the world block by block. For each block, every group gets its rows, the rows are filled
 * with copies of the group's columns, and then the block's members are linked and named.
 *
 * Rows are ordered by instance, and within an instance by member. Spawning n instances at once therefore leaves
 * the same world as spawning one n times. Usually each group has its own archetype, so the size of blocks does not
 * matter. Only at the deepest level can several groups share an archetype; a block then has one instance. */

#include "core/prefabs/prefab_internal.h"

#include "core/base/list_internal.h"
#include "core/storage/change.h"

/* -------------------------------------------------------------------------------------------- values */

/* Fills `bytes` with consecutive copies of a pattern. The first copy begins at offset `phase` of the pattern. */
static inline void repeat(char *to, const char *pattern, size_t pattern_bytes, size_t phase, size_t bytes)
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

/* Consecutive new rows of one group, and the block of instances to which they belong. */
typedef struct group_rows {
    const quern__prefab_group *group;
    const quern_entity *handles; /* handles of all members of the block */
    uint32_t group_index;
    uint32_t count;
    uintptr_t first;
    uint32_t first_instance; /* number of the block's first instance in the whole spawn */
    uint32_t instance;       /* index in the block of the instance that has the first row */
    uint32_t phase;          /* index of the first row among the rows of that instance */
} group_rows;

/* Returns the index of the first row that is row `at` of its instance. Each following instance has its row `at`
 * one group width later. */
static inline uint32_t first_row_of(const group_rows *rows, uint32_t at)
{
    return at >= rows->phase ? at - rows->phase : at + rows->group->width - rows->phase;
}

/* Returns the index in the block of the instance to which first_row_of(rows, at) belongs. */
static inline uint32_t instance_of_first(const group_rows *rows, uint32_t at)
{
    return rows->instance + (at < rows->phase);
}

static const quern__prefab_override *find_override(const quern__instances *it, uint32_t group,
                                                   uint32_t column, uint32_t row)
{
    for (uint32_t i = 0; i < it->override_count; i++) {
        const quern__prefab_override *override = &it->overrides[i];
        if (override->group == group && override->column == column && override->row == row) return override;
    }
    return NULL;
}

/* Fills a column with a copy hook. Overrides are applied here, so that the hook copies each value once. */
static void copy_hooked(const quern__instances *it, const group_rows *rows, uint32_t number, char *to)
{
    const quern__prefab_column *column = &it->prefab->columns.items[rows->group->first_column + number];
    for (uint32_t i = 0; i < rows->count; i++, to += column->size_bytes) {
        const uint32_t instance =
            rows->first_instance + rows->instance + (rows->phase + i) / rows->group->width;
        const uint32_t row = (rows->phase + i) % rows->group->width;
        const char *from = column->values + (size_t)row * column->size_bytes;
        const quern__prefab_override *override = find_override(it, rows->group_index, number, row);
        if (override != NULL) from = override->values + (size_t)instance * override->stride_bytes;
        quern__type_copy(column->type, to, from, 1);
    }
}

/* Returns the address of the first row's value in a column of the prefab. */
static inline char *column_of(const quern__instances *it, const group_rows *rows, uint32_t index)
{
    const quern__prefab_copy *copy = &it->plan->copies[index];
    return quern__column_at(copy->column, rows->first);
}

/* Copies a few values, in steps of 16, 8 or 4 bytes. The last two steps may overlap. */
static inline void copy_values(char *to, const char *from, size_t bytes)
{
    if (bytes >= 16) {
        for (size_t i = 0; i + 16 < bytes; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else {
        quern__copy_value(to, from, bytes);
    }
}

/* Fills all rows of one instance of a group. Precondition: the group is plain. */
static inline void fill_one(const quern__instances *it, const quern__prefab_group *group, uintptr_t first)
{
    const quern__prefab_copy *copy = it->plan->copies + group->first_column;
    for (const quern__prefab_copy *end = copy + group->column_count; copy < end; copy++)
        copy_values(quern__column_at(copy->column, first), copy->values, copy->bytes);
}

static inline void fill_columns(const quern__instances *it, const group_rows *rows)
{
    const quern__prefab_group *group = rows->group;
    if (rows->count == group->width && rows->phase == 0 && group->is_plain) {
        fill_one(it, group, rows->first);
        return;
    }
    for (uint32_t i = 0; i < group->column_count; i++) {
        const quern__prefab_column *column = &it->prefab->columns.items[group->first_column + i];
        const quern__prefab_copy *copy = &it->plan->copies[group->first_column + i];
        const size_t bytes = copy->column->size_bytes;
        char *to = quern__column_at(copy->column, rows->first);
        if (QUERN__LIKELY(column->is_plain))
            repeat(to, copy->values, copy->bytes, rows->phase * bytes, rows->count * bytes);
        else
            copy_hooked(it, rows, i, to);
    }
}

/* Writes a handle into the list at `at`, which gets a block of its own. Without memory for it, the handle stays null, which
 * is reported: instances are put into the world when nothing may fail any more. */
static QUERN__NO_INLINE void write_list(const quern__prefab_field *field, char *at, quern_entity handle)
{
    quern_list list;
    memcpy(&list, at, sizeof list);
    char *items = quern_list_write(&list, field->element);
    if (items == NULL) {
        quern__report_failure();
        return;
    }
    memcpy(items + field->list_offset_bytes, &handle, sizeof handle);
    memcpy(at, &list, sizeof list);
}

/* Replaces captured handles of members by the handles of the instance's own members. Handles in overridden values are
 * not replaced. */
static inline void write_fields(const quern__instances *it, const group_rows *rows)
{
    const quern__prefab *prefab = it->prefab;
    const quern__prefab_field *field = prefab->fields.items + rows->group->first_field;
    const uint32_t member_count = prefab->members.count, width = rows->group->width;
    for (uint32_t k = 0; k < rows->group->field_count; k++, field++) {
        const uint32_t column = rows->group->first_column + field->column;
        const size_t bytes = it->plan->copies[column].column->size_bytes;
        char *values = column_of(it, rows, column) + field->offset_bytes;
        if (it->override_count > 0 &&
            find_override(it, rows->group_index, field->column, field->row) != NULL)
            continue;
        const quern_entity *handle =
            rows->handles + (size_t)instance_of_first(rows, field->row) * member_count + field->member;
        for (uint32_t i = first_row_of(rows, field->row); i < rows->count;
             i += width, handle += member_count)
            if (QUERN__LIKELY(field->element == 0))
                memcpy(values + i * bytes, handle, sizeof *handle);
            else
                write_list(field, values + i * bytes, *handle);
    }
}

static void write_overrides(const quern__instances *it, const group_rows *rows)
{
    for (uint32_t k = 0; k < it->override_count; k++) {
        const quern__prefab_override *override = &it->overrides[k];
        if (override->group != rows->group_index) continue;
        const uint32_t index = rows->group->first_column + override->column;
        const quern__prefab_column *column = &it->prefab->columns.items[index];
        const size_t bytes = column->size_bytes;
        char *values = column_of(it, rows, index);
        if (!column->is_plain) continue;
        const char *from =
            override->values + (size_t)(rows->first_instance + instance_of_first(rows, override->row)) *
                                   override->stride_bytes;
        for (uint32_t i = first_row_of(rows, override->row); i < rows->count;
             i += rows->group->width, from += override->stride_bytes)
            quern__copy_value(values + i * bytes, from, bytes);
    }
}

/* ---------------------------------------------------------------------------------------------- rows */

/* Fills consecutive rows of one chunk. */
static inline void put_rows(const quern__instances *it, const group_rows *rows)
{
    const quern__prefab_group *group = rows->group;
    const quern__archetype *archetype = it->plan->archetypes[rows->group_index];
    const uint32_t member_count = it->prefab->members.count;
    const quern__handle_pattern turns = {.handles = rows->handles + (size_t)rows->instance * member_count,
                                         .stride = member_count,
                                         .picks = it->prefab->row_members.items + group->first_row,
                                         .width = group->width,
                                         .phase = rows->phase};
    quern__rows_arrive_by_pattern(it->storage, archetype, rows->first, &turns, rows->count);
    fill_columns(it, rows);
    if (group->field_count > 0) write_fields(it, rows);
    if (it->override_count > 0) write_overrides(it, rows);
    if (rows->group_index == 0 && it->parent_relation != NULL) {
        /* The captured columns have no parent for the roots. */
        quern_entity *targets = quern__storage_value(it->plan->archetypes[0], rows->first,
                                                     it->parent_relation->component_index);
        for (uint32_t i = 0; i < rows->count; i++)
            targets[i] = it->parent;
    }
}

/* Appends and fills the rows of one group for a block of `count` instances. */
static inline void put_group(const quern__instances *it, uint32_t group_index, uint32_t first_instance,
                             uint32_t count, const quern_entity *handles)
{
    const quern__prefab_group *group = &it->prefab->groups.items[group_index];
    uint32_t left = count * group->width, instance = 0, phase = 0;
    while (true) {
        uint32_t in_chunk;
        const uintptr_t first =
            quern__rows_append(it->storage, it->plan->archetypes[group_index], left, &in_chunk);
        const group_rows rows = {.group = group,
                                 .handles = handles,
                                 .group_index = group_index,
                                 .count = in_chunk,
                                 .first = first,
                                 .first_instance = first_instance,
                                 .instance = instance,
                                 .phase = phase};
        put_rows(it, &rows);
        left -= in_chunk;
        if (left == 0) return;
        instance += (phase + in_chunk) / group->width;
        phase = (phase + in_chunk) % group->width;
    }
}

/* Does the same as put_group for one instance of a plain group, if its rows fit one chunk. */
static inline void put_one(const quern__instances *it, uint32_t group_index, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    const quern__prefab_group *group = &prefab->groups.items[group_index];
    quern__archetype *archetype = it->plan->archetypes[group_index];
    const uintptr_t first = quern__rows_append_fitting(it->storage, archetype, group->width);
    quern__rows_arrive_picked(it->storage, archetype, first, handles,
                              prefab->row_members.items + group->first_row, group->width);
    fill_one(it, group, first);
    for (uint32_t i = 0; i < group->field_count; i++) {
        const quern__prefab_field *field = &prefab->fields.items[group->first_field + i];
        const quern__prefab_copy *copy = &it->plan->copies[group->first_column + field->column];
        memcpy(quern__column_at(copy->column, first + field->row) + field->offset_bytes,
               &handles[field->member], sizeof *handles);
    }
    if (group_index > 0 || it->parent_relation == NULL) return;
    memcpy(quern__storage_value(archetype, first, it->parent_relation->component_index), &it->parent,
           sizeof it->parent);
}

/* Puts the groups of one instance into the world by put_one if all of them allow it; otherwise does nothing
 * and returns false. Not inlined into quern__instances_put, because the loops there need the registers. */
static QUERN__NO_INLINE bool put_single(const quern__instances *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    if (it->override_count > 0 || it->plan->shares_archetypes) return false;
    for (uint32_t i = 0; i < prefab->groups.count; i++)
        if (!prefab->groups.items[i].is_plain ||
            !quern__rows_fit_chunk(it->plan->archetypes[i], prefab->groups.items[i].width))
            return false;
    for (uint32_t i = 0; i < prefab->groups.count; i++)
        put_one(it, i, handles);
    return true;
}

/* --------------------------------------------------------------------------------------------- links */

static inline void link_entity(quern__relation *relation, uint32_t source, uint32_t target)
{
    quern__links *links = &relation->links;
    quern__link_node *node = quern__links_at(links, source), *target_node = quern__links_at(links, target);
    quern__links_insert(links, relation->is_ordered, node, source, target_node, target);
    node->level = quern__relation_source_level_of(relation, target_node);
}

static void link_others(const quern__instances *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        /* quern__instances_reserve_links has added the edges */
        if (link->relation == it->storage->relations->parent || link->relation->is_many) continue;
        const quern_entity target = link->target != QUERN_NO_MEMBER ? handles[link->target] : link->outside;
        link_entity(link->relation, quern_entity_index(handles[link->source]), quern_entity_index(target));
    }
}

/* Links the members of a block. The plan contains the links of the hierarchy; only the slots are inserted. */
static void link_instances(const quern__instances *it, uint32_t count, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    const uint32_t member_count = prefab->members.count;
    quern__relation *parent = it->storage->relations->parent;
    if (prefab->has_children)
        quern__links_put_trees(&parent->links, it->plan->nodes, it->plan->node_bases, member_count, handles,
                               count);
    if (it->parent_relation == NULL && !prefab->has_other_links) return;
    for (uint32_t i = 0; i < count; i++, handles += member_count) {
        if (it->parent_relation != NULL)
            link_entity(parent, quern_entity_index(handles[0]), quern_entity_index(it->parent));
        if (prefab->has_other_links) link_others(it, handles);
    }
}

static void name_instance(const quern__instances *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 1; i < prefab->members.count; i++) {
        const uint32_t at = prefab->members.items[i].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = prefab->names.items + at;
        quern__names_put(it->storage->names, quern_entity_index(handles[i]),
                         quern_entity_index(handles[prefab->nodes.items[i].target]), name,
                         (uint32_t)strlen(name));
    }
}

/* ----------------------------------------------------------------------------------- links by the log */

quern_result quern__instance_link_target(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target)
{
    const quern_allocator *allocator = &storage->allocator;
    if (!quern__links_reserve(&relation->links, allocator, source) ||
        !quern__links_reserve(&relation->links, allocator, target))
        return quern__link_log_fail(storage);
    quern__link_change *entry =
        quern__link_log_add(storage, relation, source, quern__links_at(&relation->links, source));
    if (entry == NULL) return quern__link_log_fail(storage);
    entry->old_level = 0; /* the state before the instance was linked */
    entry->row_tier = QUERN__ROW_STAYS;
    link_entity(relation, source, target);
    return QUERN_OK;
}

quern_result quern__instance_link(const quern__instances *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    const uint32_t member_count = prefab->members.count;
    quern__storage *storage = it->storage;
    quern__relation *parent = storage->relations->parent;
    quern_result result = QUERN_OK;
    if (prefab->has_children) {
        uint32_t page = UINT32_MAX; /* of the latest member, whose neighbours usually are on it */
        for (uint32_t i = 0; i < member_count; i++) {
            const uint32_t slot = quern_entity_index(handles[i]);
            if (slot >> QUERN__LINK_PAGE_LOG2 == page) continue;
            page = slot >> QUERN__LINK_PAGE_LOG2;
            if (!quern__links_reserve(&parent->links, &storage->allocator, slot))
                return quern__link_log_fail(storage);
        }
        result = quern__link_log_put_tree(storage, parent, it->plan->nodes, it->plan->node_bases,
                                          member_count, handles);
    }
    if (it->parent_relation != NULL && result == QUERN_OK)
        result = quern__instance_link_target(storage, parent, quern_entity_index(handles[0]),
                                             quern_entity_index(it->parent));
    for (uint32_t i = 1; i < member_count && prefab->name_count > 0 && result == QUERN_OK; i++) {
        const uint32_t at = prefab->members.items[i].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = prefab->names.items + at;
        result = quern__link_log_put_name(storage, quern_entity_index(handles[i]),
                                          quern_entity_index(handles[prefab->nodes.items[i].target]), name,
                                          (uint32_t)strlen(name));
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- instances */

static void disable_components(const quern__instances *it, const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->toggles.count; i++) {
        const quern__prefab_toggle *toggle = &prefab->toggles.items[i];
        const quern__record *record =
            quern__entities_record(&it->storage->entities, quern_entity_index(handles[toggle->member]));
        const quern__archetype *archetype = quern__storage_archetype_of(it->storage, record);
        quern__row_enable(archetype, record->location,
                          quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE,
                                                      toggle->component_index),
                          false);
    }
}

/* Gives lists of values of edges the order of the members' slots. The edges exist already. */
static QUERN__NO_INLINE void settle_edge_values(const quern__instances *it, uint32_t count,
                                                const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        const bool is_repeated =
            i > 0 && link[-1].relation == link->relation && link[-1].source == link->source;
        if (!link->relation->is_many || !quern__relation_has_values(link->relation) || is_repeated)
            continue;
        for (uint32_t k = 0; k < count; k++)
            quern__edge_values_settle(
                it->storage, link->relation,
                quern_entity_index(handles[k * prefab->members.count + link->source]));
    }
}

void quern__instances_put(const quern__instances *it, uint32_t first, uint32_t count,
                          const quern_entity *handles)
{
    const quern__prefab *prefab = it->prefab;
    const uint32_t member_count = prefab->members.count;
    const bool is_one = count == 1 || it->plan->shares_archetypes;
    const uint32_t most = is_one ? 1 : quern__instances_per_block(prefab);
    for (uint32_t left = count, block; left > 0; left -= block) {
        block = left < most ? left : most;
        const bool is_put = block == 1 && put_single(it, handles);
        for (uint32_t i = 0; i < prefab->groups.count && !is_put; i++)
            put_group(it, i, first, block, handles);
        if (!it->is_linked) link_instances(it, block, handles);
        for (uint32_t i = 0; i < block && prefab->name_count > 0 && !it->is_linked; i++)
            name_instance(it, handles + (size_t)i * member_count);
        for (uint32_t i = 0; i < block && prefab->toggles.count > 0; i++)
            disable_components(it, handles + (size_t)i * member_count);
        if (QUERN__UNLIKELY(prefab->has_edges)) settle_edge_values(it, block, handles);
        handles += (size_t)block * member_count;
        first += block;
    }
}

/* ----------------------------------------------------------------------------------------------- room */

/* Returns the slot of the i-th new member. */
static inline uint32_t new_slot(const quern__new_slots *slots, uint32_t i)
{
    return i < slots->handle_count ? quern_entity_index(slots->handles[i])
                                   : slots->first + (i - slots->handle_count);
}

/* Returns the number of consecutive slots, from the i-th on, that share a page of links; 1 for a recycled slot. */
static inline uint32_t count_on_page(const quern__new_slots *slots, uint32_t i, uint32_t slot)
{
    return i < slots->handle_count ? 1 : QUERN__LINK_PAGE_SLOTS - (slot & (QUERN__LINK_PAGE_SLOTS - 1));
}

/* Reserves pages of links in one relation for all members. */
static bool reserve_relation(const quern__instances *it, quern__relation *relation,
                             const quern__new_slots *slots)
{
    const uint32_t count = it->count * it->prefab->members.count;
    for (uint32_t i = 0, slot; i < count; i += count_on_page(slots, i, slot)) {
        slot = new_slot(slots, i);
        if (!quern__links_reserve(&relation->links, &it->storage->allocator, slot)) return false;
    }
    return true;
}

/* Reserves pages of links for all members, and for their targets outside of the tree. */
static bool reserve_links(const quern__instances *it, const quern__new_slots *slots)
{
    const quern__prefab *prefab = it->prefab;
    const quern_allocator *allocator = &it->storage->allocator;
    const quern__relation *last = NULL;
    if (it->parent_relation != NULL &&
        (!reserve_relation(it, it->parent_relation, slots) ||
         !quern__links_reserve(&it->parent_relation->links, allocator, quern_entity_index(it->parent))))
        return false;
    for (uint32_t i = 0; i < prefab->links.count; i++) {
        const quern__prefab_link *link = &prefab->links.items[i];
        assert(link->relation != NULL);
        if (link->relation->is_many) continue;
        if (link->relation != last && !reserve_relation(it, link->relation, slots)) return false;
        last = link->relation;
        if (link->target == QUERN_NO_MEMBER &&
            !quern__links_reserve(&link->relation->links, allocator, quern_entity_index(link->outside)))
            return false;
    }
    return true;
}

/* The edges of all instances in their order: numbers from 0 to instances * links. */
typedef struct new_edge {
    quern__relation *relation; /* NULL: the link is no edge */
    uint32_t source, target;
} new_edge;

static new_edge edge_at(const quern__instances *it, const quern__new_slots *slots, uint64_t number)
{
    const quern__prefab *prefab = it->prefab;
    const quern__prefab_link *link = &prefab->links.items[number % prefab->links.count];
    const uint32_t first = (uint32_t)(number / prefab->links.count) * prefab->members.count;
    if (!link->relation->is_many) return (new_edge){.relation = NULL};
    return (new_edge){.relation = link->relation,
                      .source = new_slot(slots, first + link->source),
                      .target = link->target != QUERN_NO_MEMBER ? new_slot(slots, first + link->target)
                                                                : quern_entity_index(link->outside)};
}

/* Adds the edges of all instances. The members do not exist yet, so nothing else sees the edges. Removes them again if
 * memory is exhausted. */
static bool add_edges(const quern__instances *it, const quern__new_slots *slots)
{
    const uint64_t count = (uint64_t)it->count * it->prefab->links.count;
    uint64_t i = 0;
    for (; i < count; i++) {
        const new_edge edge = edge_at(it, slots, i);
        if (edge.relation == NULL) continue;
        if (!quern__edges_reserve(&edge.relation->edges, &it->storage->allocator, edge.source, edge.target))
            break;
        quern__edges_add(&edge.relation->edges, edge.source, edge.target);
        edge.relation->links.version++;
    }
    if (i == count) return true;
    while (i-- > 0) {
        const new_edge edge = edge_at(it, slots, i);
        if (edge.relation != NULL) quern__edges_remove(&edge.relation->edges, edge.source, edge.target);
    }
    return false;
}

static bool reserve_names(const quern__instances *it, const quern__new_slots *slots, uint32_t *name_count)
{
    quern__names *names = it->storage->names;
    const quern_allocator *allocator = &it->storage->allocator;
    const uint32_t member_count = it->prefab->members.count;
    for (uint32_t i = 0; i < it->count * member_count; i++)
        if (it->prefab->members.items[i % member_count].name != QUERN_NO_MEMBER &&
            !quern__names_reserve_page(names, allocator, new_slot(slots, i)))
            return false;
    *name_count += it->count * it->prefab->name_count;
    return quern__names_reserve_count(names, allocator, *name_count);
}

/* Returns whether nothing has to be reserved: all members get new slots on one page, for which the hierarchy
 * has links already, and they have no other links and no names. */
static inline bool has_links(const quern__instances *it, const quern__new_slots *slots)
{
    const quern__prefab *prefab = it->prefab;
    const quern__relation *parent = it->storage->relations->parent;
    const uint32_t last = slots->first + it->count * prefab->members.count - 1;
    return slots->handle_count == 0 && it->parent_relation == NULL && !prefab->has_other_links &&
           prefab->name_count == 0 && parent != NULL &&
           slots->first >> QUERN__LINK_PAGE_LOG2 == last >> QUERN__LINK_PAGE_LOG2 &&
           quern__links_has_page(&parent->links, last);
}

quern_result quern__instances_reserve_links(const quern__instances *it, const quern__new_slots *slots,
                                            uint32_t *name_count)
{
    if (has_links(it, slots)) return QUERN_OK;
    if (reserve_links(it, slots) && (it->prefab->name_count == 0 || reserve_names(it, slots, name_count)) &&
        (!it->prefab->has_edges || add_edges(it, slots)))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for links and names");
}
