/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Instances of prefabs, and clones, at a sync point (stages.h): lists them with their plans and rows, links them in the relate
 * stage if that runs, finds the rows of members for the stages between, and puts all instances into the world when
 * rows begin to change. */
#include "core/playback/stages.h"

#include "core/record/spawn.h"
#include "core/storage/change.h"

/* ---------------------------------------------------------------------------------------------- lists */

/* Number of overrides of the instances of an operation. */
static inline uint32_t count_overrides(const quern__operation *operation)
{
    return operation->variant != NULL ? operation->variant->override_count : 0;
}

/* Whether the members of the instances have scattered handles: those of a copied tree, which is alone in its entry. */
static inline bool is_scattered(const quern__spawned *it)
{
    return it->first_clone != QUERN__CLONE_NONE && it->prefab->members.count > 1;
}

/* Returns the number of a member, counted through all instances, among the creates of all streams. */
static inline uint32_t number_of(const quern__spawned *it, uint32_t member)
{
    return is_scattered(it) && member > 0 ? it->first_other + member - 1 : it->first_created + member;
}

/* Whether an instance directly continues the latest ones, if it has the same plan. Instances with overrides must be in one
 * batch, so that the distance between their values is constant. */
static bool continues(const quern__spawned *it, const quern__spawned *next)
{
    if (it->prefab != next->prefab || is_scattered(it)) return false;
    if (next->first_created != it->first_created + it->count * it->prefab->members.count) return false;
    if (!quern_entity_equal(it->parent, next->parent)) return false;
    if (next->operation == it->operation)
        return count_overrides(it->operation) == 0 ||
               next->first_item == it->first_item + (size_t)it->count * it->operation->item_bytes;
    return count_overrides(it->operation) == 0 && count_overrides(next->operation) == 0;
}

/* Returns whether the sync point has instances of the prefab already. */
static bool is_planned(const quern__resolved *resolved, const quern__prefab *prefab)
{
    assert(resolved->spawned.count == 0 || resolved->spawned.items != NULL);
    for (uint32_t i = resolved->spawned.count; i-- > 0;)
        if (resolved->spawned.items[i].prefab == prefab) return true;
    return false;
}

/* Returns how many rows each instance has in the archetype of a group, of those groups that precede `end`. */
static uint32_t count_shared(const quern__spawned *it, uint32_t group, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; i++)
        if (it->plan->archetypes[i] == it->plan->archetypes[group])
            count += it->prefab->groups.items[i].width;
    return count;
}

/* Assigns rows to the latest instances, after the rows of earlier ones. Returns false if out of memory. */
static bool assign_rows(quern__resolved *resolved, const quern__storage *storage)
{
    if (resolved->spawned.count == 0) return true;
    assert(resolved->spawned.items != NULL);
    quern__spawned *it = &resolved->spawned.items[resolved->spawned.count - 1];
    const quern__prefab *prefab = it->prefab;
    const uint32_t group_count = prefab->groups.count;
    it->first_row = resolved->spawned_rows.count;
    if (it->plan == NULL) return true;
    if (!quern__array_reserve(&storage->allocator, &resolved->spawned_rows, it->first_row + group_count))
        return false;
    uint32_t *rows = resolved->spawned_rows.items + it->first_row;
    resolved->spawned_rows.count += group_count;
    for (uint32_t i = 0; i < group_count; i++) {
        const quern__archetype_delta *delta =
            quern__resolved_add(resolved, storage, it->plan->archetypes[i]);
        if (delta == NULL) return false;
        rows[i] =
            quern__delta_row_count(delta) + (it->plan->shares_archetypes ? count_shared(it, i, i) : 0);
    }
    for (uint32_t i = 0; i < group_count; i++) {
        quern__archetype_delta *delta = quern__resolved_delta(resolved, it->plan->archetypes[i]);
        delta->spawned_count += it->count * prefab->groups.items[i].width;
    }
    return true;
}

/* Finds the plan of an instance, whose parent has its final handle. */
static quern_result find_plan(quern__resolved *resolved, quern__storage *storage, const quern__spawned *it,
                              quern__prefab *prefab, const quern__prefab_plan **out_plan)
{
    const uint32_t parent_slot = it->parent.bits != 0 ? quern_entity_index(it->parent) : QUERN__SLOT_NONE;
    /* A captured tree has a reference for each clone that copies it: with one, no instance before has planned it. */
    const bool is_alone =
        it->first_clone != QUERN__CLONE_NONE && prefab != NULL && prefab->reference_count == 1;
    if (prefab != NULL)
        return quern__prefab_plan_find(
            storage, prefab, parent_slot,
            prefab->has_outside_levels && !is_alone && is_planned(resolved, prefab), out_plan);
    const quern__clone *clone = &resolved->clones.items[it->first_clone];
    if (!clone->is_not_copied)
        return quern__leaf_plan_find(resolved, storage, clone->archetype, parent_slot, out_plan);
    *out_plan = NULL;
    return QUERN_OK;
}

/* Notes the handles of the members of a copied tree other than the root. */
static bool note_others(quern__resolved *resolved, const quern__storage *storage, const quern__spawned *it)
{
    const uint32_t count = resolved->others.count;
    if (!is_scattered(it)) return true;
    if (!quern__array_reserve(&storage->allocator, &resolved->others, count + 1)) return false;
    resolved->others.items[resolved->others.count++] =
        (quern__other_members){.first_created = it->first_other,
                               .count = it->prefab->members.count - 1,
                               .spawned = resolved->spawned.count};
    return true;
}

/* Adds an instance to the list, which has all but plan, count and refused_result. prefab: as it->prefab, or NULL if that is
 * quern__leaf_prefab. Refuses the instance if no archetype can be created for a member; it then has no plan. Errors:
 * OUT_OF_MEMORY. */
static quern_result add_instance(quern__resolved *resolved, quern__storage *storage, quern__spawned it,
                                 quern__prefab *prefab)
{
    const uint32_t count = resolved->spawned.count;
    quern__spawned *last = count > 0 ? &resolved->spawned.items[count - 1] : NULL;
    const bool is_next = last != NULL && continues(last, &it);
    if (is_next && it.parent.bits == 0 && prefab != NULL) {
        last->count++;
        return QUERN_OK;
    }
    it.refused_result = find_plan(resolved, storage, &it, prefab, &it.plan);
    if (it.refused_result == QUERN_ERROR_OUT_OF_MEMORY) return it.refused_result;
    if (it.refused_result != QUERN_OK) it.plan = NULL;
    if (is_next && last->plan == it.plan && last->refused_result == it.refused_result) {
        last->count++; /* the level of the parent has not changed */
        return QUERN_OK;
    }
    it.count = 1;
    if (!assign_rows(resolved, storage) || !note_others(resolved, storage, &it) ||
        !quern__array_reserve(&storage->allocator, &resolved->spawned, count + 1))
        return QUERN_ERROR_OUT_OF_MEMORY;
    resolved->spawned.items[resolved->spawned.count++] = it;
    return QUERN_OK;
}

/* Describes the instance or the copy that an item asks for, without a parent. stream_first: number of the first create of
 * its stream. Returns in *out_prefab the prefab, or NULL for a leaf. */
static quern__spawned describe_instance(const quern__resolved *resolved, const quern__operation *operation,
                                        const quern__item *item, uint32_t stream_first,
                                        quern__prefab **out_prefab)
{
    quern__spawned it = {.operation = operation,
                         .first_item = (const char *)item,
                         .first_created = stream_first + quern_entity_index(item->entity),
                         .first_clone = QUERN__CLONE_NONE};
    if (operation == &quern__operation_clone) {
        it.first_clone = ((const quern__clone_item *)(const void *)item)->index;
        const quern__clone *clone = &resolved->clones.items[it.first_clone];
        it.first_other = stream_first + clone->first_other;
        *out_prefab = clone->prefab;
    } else {
        *out_prefab = operation->variant->cache->prefab;
    }
    it.prefab = *out_prefab != NULL ? *out_prefab : &quern__leaf_prefab;
    return it;
}

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list spawned instances");
}

quern_result quern__spawned_list(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage)
{
    const quern_result limit = quern__created_check(gathered->create_count);
    if (limit != QUERN_OK) return limit; /* few items can spawn more entities than 32 bits count */
    uint32_t stream_first = 0;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        const bool spawns = QUERN__MAY(stream->traits, SPAWNS);
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count && spawns; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            const quern__operation *operation = batch->operation;
            if (quern__command_kinds[operation->kind].merge_kind != QUERN__MERGE_SPAWN) continue;
            const quern__item *item = quern__batch_item(batch, 0);
            for (uint32_t left = batch->item_count; left > 0;
                 left--, item = quern__item_next(item, operation)) {
                quern__prefab *prefab;
                const quern__spawned added =
                    describe_instance(resolved, operation, item, stream_first, &prefab);
                if (add_instance(resolved, storage, added, prefab) != QUERN_OK) return fail_memory();
            }
        }
        stream_first += stream->create_count;
    }
    return quern__spawned_reserve_rows(resolved, storage);
}

quern_result quern__spawned_reserve_rows(quern__resolved *resolved, quern__storage *storage)
{
    if (!assign_rows(resolved, storage)) return fail_memory();
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        quern__archetype_delta *delta = &resolved->deltas.items[i];
        if (delta->spawned_count == 0) continue;
        const quern_result result = quern__rows_reserve(storage, delta->archetype, delta->spawned_count);
        if (result != QUERN_OK) return result;
        delta->is_reserved = true;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- rows of members */

#define NO_TREE UINT32_MAX

/* Returns the number of the copied tree in which the entity that is created as number `created` is a member other than the
 * root, or NO_TREE. */
static uint32_t find_other(const quern__resolved *resolved, uint32_t created, uint32_t *out_member)
{
    uint32_t begin = 0, end = resolved->others.count;
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (resolved->others.items[middle].first_created <= created)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == 0) return NO_TREE;
    const quern__other_members *others = &resolved->others.items[begin - 1];
    *out_member = 1 + created - others->first_created;
    return *out_member <= others->count ? others->spawned : NO_TREE;
}

/* Returns the instances with the entity that is created as number `created`, and in *out_member its number among their
 * members, or NULL. */
static const quern__spawned *find_instances(const quern__resolved *resolved, uint32_t created,
                                            uint32_t *out_member)
{
    uint32_t begin = 0, end = resolved->spawned.count;
    if (QUERN__UNLIKELY(resolved->others.count > 0)) {
        const uint32_t tree = find_other(resolved, created, out_member);
        if (tree != NO_TREE) return &resolved->spawned.items[tree];
    }
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (resolved->spawned.items[middle].first_created <= created)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == 0) return NULL;
    const quern__spawned *it = &resolved->spawned.items[begin - 1];
    *out_member = created - it->first_created;
    return *out_member < (is_scattered(it) ? 1 : it->count * it->prefab->members.count) ? it : NULL;
}

const quern__archetype *quern__spawned_archetype(const quern__resolved *resolved, uint32_t created)
{
    uint32_t member;
    const quern__spawned *it = find_instances(resolved, created, &member);
    if (it == NULL || it->plan == NULL) return NULL;
    const quern__prefab *prefab = it->prefab;
    return it->plan->archetypes[prefab->members.items[member % prefab->members.count].group];
}

bool quern__spawned_is_not_copied(const quern__resolved *resolved, uint32_t created)
{
    uint32_t member;
    const quern__spawned *it = find_instances(resolved, created, &member);
    return it != NULL && it->plan == NULL && it->refused_result == QUERN_OK;
}

/* Returns the location of a member of these instances, with its distance from the row of the same member in the next
 * instance. */
static inline uintptr_t locate(const quern__resolved *resolved, const quern__spawned *it, uint32_t number,
                               const quern__prefab_member *member, uint32_t stride)
{
    const uint32_t row = resolved->spawned_rows.items[it->first_row + member->group] +
                         number / it->prefab->members.count * stride + member->row;
    return quern__archetype_location(it->plan->archetypes[member->group], row);
}

static uintptr_t locate_any(const quern__resolved *resolved, const quern__spawned *it, uint32_t number)
{
    const quern__prefab *prefab = it->prefab;
    if (it->plan == NULL) return 0;
    const quern__prefab_member *member = &prefab->members.items[number % prefab->members.count];
    const uint32_t stride = it->plan->shares_archetypes
                                ? count_shared(it, member->group, prefab->groups.count)
                                : prefab->groups.items[member->group].width;
    return locate(resolved, it, number, member, stride);
}

static QUERN__NO_INLINE bool find_any(const quern__resolved *resolved, uint32_t created, uint32_t *hint,
                                      uintptr_t *out_location)
{
    uint32_t member;
    const quern__spawned *it = find_instances(resolved, created, &member);
    if (it == NULL) return false;
    *hint = (uint32_t)(it - resolved->spawned.items);
    *out_location = locate_any(resolved, it, member);
    return true;
}

/* Calls no function for a member of the same instances as the previous call. */
bool quern__spawned_find(const quern__resolved *resolved, uint32_t created, uint32_t *hint,
                         uintptr_t *out_location)
{
    const quern__spawned *it = &resolved->spawned.items[*hint];
    const quern__prefab *prefab = it->prefab;
    const uint32_t number = created - it->first_created;
    if (QUERN__UNLIKELY(number >= it->count * prefab->members.count || it->plan == NULL ||
                        it->plan->shares_archetypes || is_scattered(it)))
        return find_any(resolved, created, hint, out_location);
    const quern__prefab_member *member = &prefab->members.items[number % prefab->members.count];
    *out_location = locate(resolved, it, number, member, prefab->groups.items[member->group].width);
    return true;
}

uint32_t quern__spawned_at(const quern__resolved *resolved, uintptr_t location)
{
    for (uint32_t i = 0; i < resolved->spawned.count; i++) {
        const quern__spawned *it = &resolved->spawned.items[i];
        for (uint32_t k = 0; k < it->count * it->prefab->members.count; k++)
            if (locate_any(resolved, it, k) == location) return number_of(it, k);
    }
    return UINT32_MAX;
}

/* -------------------------------------------------------------------------------- in the relate stage */

/* Returns the member whose handle the instance has at this offset of a list, or QUERN_NO_MEMBER. */
static uint32_t member_in_list(const quern__prefab *prefab, uint32_t source, uint32_t column,
                               uint32_t offset_bytes)
{
    const quern__prefab_member *member = &prefab->members.items[source];
    for (uint32_t i = 0; i < member->field_count; i++) {
        const quern__prefab_field *field = &prefab->fields.items[member->first_field + i];
        if (field->column == column && field->element != 0 && field->list_offset_bytes == offset_bytes)
            return field->member;
    }
    return QUERN_NO_MEMBER;
}

/* Gives an edge of a member the value that the prefab has, if it has one, for later commands on the member. */
static void put_captured_value(quern__relating *relating, const quern__prefab *prefab,
                               const quern__prefab_link *link, uint32_t target, const quern_entity *handles)
{
    char element[QUERN__EDGE_ELEMENT_BYTES];
    const uint32_t bytes = link->relation->element.size_bytes;
    const quern__prefab_member *member = &prefab->members.items[link->source];
    const quern__prefab_group *group = &prefab->groups.items[member->group];
    const quern__prefab_column *columns = prefab->columns.items + group->first_column;
    uint32_t column = 0;
    quern_list list;
    while (columns[column].component_index != link->relation->value_index)
        column++;
    memcpy(&list, columns[column].values + (size_t)member->row * sizeof list, sizeof list);
    for (uint32_t i = 0; i < list.count; i++) {
        memcpy(element, (const char *)list.items + (size_t)i * bytes, bytes);
        const uint32_t of = member_in_list(prefab, link->source, column, i * bytes);
        if (of != link->target ||
            (of == QUERN_NO_MEMBER && memcmp(element, &link->outside, sizeof link->outside) != 0))
            continue;
        for (uint32_t at = 0; at + sizeof(quern_entity) <= bytes; at += 8) {
            const uint32_t inside = member_in_list(prefab, link->source, column, i * bytes + at);
            if (inside != QUERN_NO_MEMBER) memcpy(element + at, &handles[inside], sizeof *handles);
        }
        if (quern__pending_put(relating->storage, link->relation, quern_entity_index(handles[link->source]),
                               target, element) != QUERN_OK)
            relating->is_out_of_memory = true;
        return;
    }
}

/* Relates the members of an instance in relations other than the hierarchy. A target outside of the instance may have
 * ended, or may have another level than the rows of the plan; the sources are noted then. */
static void link_targets(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                         const quern__prefab *prefab, const quern_entity *handles)
{
    quern__relating *relating = walk->relating;
    quern__storage *storage = relating->storage;
    for (uint32_t k = 0; k < prefab->links.count && !relating->is_out_of_memory; k++) {
        const quern__prefab_link *link = &prefab->links.items[k];
        quern__relation *relation = link->relation;
        if (relation == storage->relations->parent) continue;
        const bool is_outside = link->target == QUERN_NO_MEMBER;
        const quern_entity entity = is_outside ? link->outside : handles[link->target];
        const uint32_t source = quern_entity_index(handles[link->source]),
                       target = quern_entity_index(entity);
        uint32_t row_target = target;
        const bool has_ended = is_outside && (quern__entities_find(&storage->entities, entity) == NULL ||
                                              quern__relating_has_ended(relating, target));
        quern_result result = QUERN_OK;
        if (has_ended) {
            quern__play_drop(walk, item, i, QUERN_DROP_TARGET_DEAD, 1);
            row_target = QUERN__WRONG_TARGET;
        } else {
            result = relation->is_many ? quern__link_log_add_edge(storage, relation, source, target)
                                       : quern__instance_link_target(storage, relation, source, target);
        }
        if (result != QUERN_OK) relating->is_out_of_memory = true;
        if (QUERN__UNLIKELY(relation->is_many && quern__relation_has_values(relation)) && !has_ended &&
            !relating->is_out_of_memory)
            put_captured_value(relating, prefab, link, target, handles);
        relating->noted_count = storage->relations->log.changes.count;
        if (relating->is_out_of_memory) return;
        const uint32_t level = relation->is_many ? 0 : link->level;
        if (!has_ended && (relation->is_many || quern__links_level(&relation->links, source) == level))
            continue;
        quern__note *note = quern__relating_note(relating, source);
        if (note != NULL) quern__relating_note_row(relating, note, relation->index, row_target, level);
    }
}

/* Ends all members of an instance that is refused, or the copy of an entity that was not copied. */
static void end_members(quern__relating *relating, const quern__spawned *it, const quern_entity *handles)
{
    for (uint32_t i = 0; i < it->prefab->members.count; i++) {
        quern__note *note = quern__relating_note(relating, quern_entity_index(handles[i]));
        if (note == NULL) return;
        note->has_ended = note->is_destroyed = true;
        note->is_refused = it->refused_result != QUERN_OK;
        note->is_not_copied = !note->is_refused;
    }
}

/* Returns the handles of the members of one instance, or NULL if out of memory. created: those of all creates. */
static const quern_entity *handles_of(quern__resolved *resolved, const quern__storage *storage,
                                      const quern__spawned *it, const quern_entity *created)
{
    const uint32_t count = it->prefab->members.count;
    if (!is_scattered(it)) return created + it->first_created;
    if (!quern__array_reserve(&storage->allocator, &resolved->handles, count)) return NULL;
    for (uint32_t i = 0; i < count; i++)
        resolved->handles.items[i] = created[number_of(it, i)];
    return resolved->handles.items;
}

/* Returns the final handle of a parent; null, with a dropped command, if the parent has ended. */
static quern_entity find_parent(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                                quern_entity parent)
{
    const uint32_t slot = quern__play_find_slot(walk, parent);
    if (slot == QUERN__NOTE_NONE || quern__relating_has_ended(walk->relating, slot)) {
        quern__play_drop(walk, item, i, QUERN_DROP_TARGET_DEAD, 1);
        return quern_entity_null();
    }
    return quern_entity_is_provisional(parent) ? walk->created[quern_entity_index(parent)] : parent;
}

/* Lists and links an instance. parent: as recorded, or null. */
static void play_instance(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                          quern_entity parent)
{
    quern__relating *relating = walk->relating;
    quern__storage *storage = relating->storage;
    quern__resolved *resolved = relating->resolved;
    quern__prefab *prefab;
    quern__spawned added = describe_instance(resolved, walk->batch->operation, item,
                                             relating->streams.items[walk->stream].first_created, &prefab);
    if (parent.bits != 0) added.parent = find_parent(walk, item, i, parent);
    const quern_entity *handles = handles_of(resolved, storage, &added, relating->created.items);
    if (handles == NULL || add_instance(resolved, storage, added, prefab) != QUERN_OK) {
        relating->is_out_of_memory = true;
        return;
    }
    relating->marks_members = resolved->spawned_are_linked = true;
    for (uint32_t k = 0; k < added.prefab->members.count; k++)
        quern__relating_mark_member(relating, quern_entity_index(handles[k]), number_of(&added, k));
    const quern__spawned *latest = &resolved->spawned.items[resolved->spawned.count - 1];
    if (latest->plan == NULL) {
        end_members(relating, latest, handles);
        return;
    }
    const quern__instances instance = {.storage = storage,
                                       .prefab = added.prefab,
                                       .plan = latest->plan,
                                       .parent_relation =
                                           added.parent.bits != 0 ? storage->relations->parent : NULL,
                                       .parent = added.parent};
    if (quern__instance_link(&instance, handles) != QUERN_OK) relating->is_out_of_memory = true;
    /* the rows will agree with these links */
    relating->noted_count = storage->relations->log.changes.count;
    if (added.prefab->has_other_links) link_targets(walk, item, i, added.prefab, handles);
}

static void play_spawn(const quern__play_walk *walk, quern__item *item, uint32_t i)
{
    const quern__operation *operation = walk->batch->operation;
    const quern__spawn_variant *variant = operation->variant;
    quern_entity parent = quern_entity_null();
    if (variant->has_parent)
        memcpy(&parent, (const char *)item + operation->operands[variant->override_count].offset_bytes,
               sizeof parent);
    play_instance(walk, item, i, parent);
}

static void play_clone(const quern__play_walk *walk, quern__item *item, uint32_t i)
{
    const quern__clone_item *clone = (const quern__clone_item *)(const void *)item;
    const quern__clone *found = &walk->relating->resolved->clones.items[clone->index];
    play_instance(walk, item, i, found->is_not_copied ? quern_entity_null() : found->parent);
}

void quern__play_spawns(const quern__play_walk *walk)
{
    quern__play_each(walk, play_spawn);
}

void quern__play_clones(const quern__play_walk *walk)
{
    quern__play_each(walk, play_clone);
}

/* ----------------------------------------------------------------------------------------- instances */

/* Describes the instances for core/prefabs. overrides: array of QUERN_MAX_SPAWN_OVERRIDES elements. */
static quern__instances instances_of(const quern__resolved *resolved, const quern__spawned *it,
                                     quern__storage *storage, quern__prefab_override *overrides)
{
    const quern__operation *operation = it->operation;
    const uint32_t override_count = count_overrides(operation);
    for (uint32_t i = 0; i < override_count; i++) {
        overrides[i] = operation->variant->overrides[i];
        overrides[i].values = it->first_item + operation->operands[i].offset_bytes;
        overrides[i].stride_bytes = operation->item_bytes;
    }
    return (quern__instances){.storage = storage,
                              .prefab = it->prefab,
                              .plan = it->plan,
                              .parent_relation = it->parent.bits != 0 ? storage->relations->parent : NULL,
                              .parent = it->parent,
                              .overrides = overrides,
                              .override_count = override_count,
                              .count = it->count,
                              .is_linked = resolved->spawned_are_linked};
}

quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage)
{
    const quern__entities *entities = &storage->entities;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t used_count = (uint32_t)resolved->created_count, name_count = 0;
    for (uint32_t i = 0; i < resolved->spawned.count; i++) {
        quern__spawned *it = &resolved->spawned.items[i];
        if (it->plan != NULL) continue; /* the others are refused, and their members end at once */
        const uint32_t count = it->count * it->prefab->members.count;
        it->first_destroyed = (uint32_t)resolved->destroyed_count;
        resolved->destroyed_count += count;
        if (it->refused_result == QUERN_OK) continue; /* there was nothing to copy */
        resolved->refused_count += count;
        if (resolved->refused_result == QUERN_OK) resolved->refused_result = it->refused_result;
    }
    if (!quern__array_reserve(&storage->allocator, &resolved->created, used_count)) return fail_memory();
    if (resolved->spawned_are_linked) return QUERN_OK;
    if (entities->absent_count == 0 && entities->free_count < used_count) used_count = entities->free_count;
    quern__entities_peek(entities, used_count, resolved->created.items);
    for (uint32_t i = 0; i < resolved->spawned.count; i++) {
        const quern__spawned *it = &resolved->spawned.items[i];
        if (it->plan == NULL) continue;
        const quern__instances instances = instances_of(resolved, it, storage, overrides);
        const uint32_t first = it->first_created;
        const quern__new_slots slots = {.handles = resolved->created.items + first,
                                        .handle_count = first < used_count ? used_count - first : 0,
                                        .first = entities->slot_count +
                                                 (first > used_count ? first - used_count : 0)};
        const quern_result result = quern__instances_reserve_links(&instances, &slots, &name_count);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

void quern__spawned_put(quern__resolved *resolved, quern__storage *storage)
{
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    for (uint32_t i = 0; i < resolved->spawned.count; i++) {
        const quern__spawned *it = &resolved->spawned.items[i];
        /* the relate stage has reserved the memory for scattered handles */
        const quern_entity *handles = handles_of(resolved, storage, it, resolved->created.items);
        if (it->plan != NULL) {
            const quern__instances instances = instances_of(resolved, it, storage, overrides);
            quern__instances_put(&instances, 0, it->count, handles);
            for (uint32_t k = 0; k < it->count && it->prefab == &quern__leaf_prefab; k++)
                quern__leaf_fill(storage, resolved->clones.items[it->first_clone + k].entity, handles[k]);
            continue;
        }
        for (uint32_t k = 0; k < it->count * it->prefab->members.count; k++)
            resolved->destroyed.items[it->first_destroyed + k] = quern_entity_index(handles[k]);
    }
}
