/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/lookup.h"

#include "core/world/world_internal.h"

static bool is_end_of_lookups(const void *list, uint32_t i)
{
    const quern_lookup *lookup = &((const quern_lookup *)list)[i];
    return quern_component_is_null(lookup->component) && quern_component_is_null(lookup->with) &&
           quern_component_is_null(lookup->without);
}

static quern_result read_limit(const quern__components *components, quern_component component,
                               uint16_t *out_index)
{
    *out_index = QUERN__FILTER_NONE;
    if (quern_component_is_null(component)) return QUERN_OK;
    const quern_result result = quern__components_check(components, component);
    if (result == QUERN_OK) *out_index = (uint16_t)quern__component_index(component);
    return result;
}

/* Rejects a lookup if its limit excludes every entity: it must be a mistake. */
static quern_result check_limit(const quern__components *components, const quern__lookup *lookup)
{
    const uint16_t without = lookup->limit.without;
    if (without == QUERN__FILTER_NONE || (without != lookup->index && without != lookup->limit.with))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "a lookup of '%s' asks for entities with and without '%s', which finds nothing: "
                       "remove it from one list",
                       quern__components_type(components, lookup->index)->name,
                       quern__components_type(components, without)->name);
}

static quern_result check_written(const quern__components *components, uint32_t index)
{
    const quern__type *type = quern__components_type(components, index);
    if (type->size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a tag, which has no value to write: list it in lookups", type->name);
    if (quern__components_is_managed(components, index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is the component of a relation: change it with relate and unrelate",
                           type->name);
    return QUERN_OK;
}

static quern_result add_lookup(quern__lookups *lookups, const quern__components *components,
                               const quern_lookup *declared, bool writes)
{
    quern__lookup lookup = {.writes = writes};
    quern_result result = quern__components_check(components, declared->component);
    if (result != QUERN_OK) return result;
    lookup.index = (uint16_t)quern__component_index(declared->component);
    result = read_limit(components, declared->with, &lookup.limit.with);
    if (result == QUERN_OK) result = read_limit(components, declared->without, &lookup.limit.without);
    if (result == QUERN_OK) result = check_limit(components, &lookup);
    if (result == QUERN_OK && writes) result = check_written(components, lookup.index);
    if (result != QUERN_OK) return result;
    if (quern__lookups_find(lookups, lookup.index) != NULL)
        return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                           "the lookup of '%s' is declared twice; once is enough, and write_lookups "
                           "permit reading, too",
                           quern__components_type(components, lookup.index)->name);
    const bool is_limited =
        lookup.limit.with != QUERN__FILTER_NONE || lookup.limit.without != QUERN__FILTER_NONE;
    quern__bitset_add(is_limited ? lookups->limited : lookups->unlimited, lookup.index);
    if (writes) quern__bitset_add(lookups->written, lookup.index);
    lookups->list[lookups->count++] = lookup;
    return QUERN_OK;
}

static quern_result add_list(quern__lookups *lookups, const quern_world *world, const quern_lookup *list,
                             bool writes)
{
    const char *what = writes ? "write lookup" : "lookup";
    uint32_t count = 0;
    quern_result result = quern__list_count(list, QUERN_MAX_ACCESS, is_end_of_lookups, what, NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = add_lookup(lookups, &world->storage.components, &list[i], writes);
        if (result != QUERN_OK) quern__message_add_element(result, what, i);
    }
    return result;
}

quern_result quern__lookups_init(quern__lookups *lookups, const quern_world *world,
                                 const quern_system_def *def)
{
    quern_result result = add_list(lookups, world, def->lookups, false);
    return result != QUERN_OK ? result : add_list(lookups, world, def->write_lookups, true);
}

const quern__lookup *quern__lookups_find(const quern__lookups *lookups, uint32_t component_index)
{
    for (uint32_t i = 0; i < lookups->count; i++)
        if (lookups->list[i].index == component_index) return &lookups->list[i];
    return NULL;
}

/* Returns whether the limits exclude a common entity: one requires a component that the other forbids. */
static bool exclude_each_other(quern__archetype_filter a, quern__archetype_filter b)
{
    return (a.with != QUERN__FILTER_NONE && a.with == b.without) ||
           (b.with != QUERN__FILTER_NONE && b.with == a.without);
}

uint32_t quern__lookups_find_common(const quern__lookups *a, const quern__lookups *b, uint32_t first)
{
    uint32_t found = QUERN_MAX_COMPONENTS;
    for (uint32_t i = 0; i < a->count; i++) {
        const quern__lookup *mine = &a->list[i];
        if (mine->index < first || mine->index >= found) continue;
        const quern__lookup *other = quern__lookups_find(b, mine->index);
        if (other != NULL && (mine->writes || other->writes) &&
            !exclude_each_other(mine->limit, other->limit))
            found = mine->index;
    }
    return found;
}

void quern__lookups_list(const quern__lookups *lookups, const quern_world *world, bool written, char *text,
                         size_t text_bytes)
{
    const quern__components *components = &world->storage.components;
    text[0] = '\0';
    for (uint32_t i = 0; i < lookups->count; i++) {
        const quern__lookup *lookup = &lookups->list[i];
        if (written && !lookup->writes) continue;
        quern__append(text, text_bytes, "%s'%s'", text[0] != '\0' ? ", " : "",
                      quern__components_type(components, lookup->index)->name);
    }
    if (text[0] == '\0') quern__append(text, text_bytes, "none");
}
