/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Overrides of a spawn: their columns are found and checked before anything is spawned. */
#include "core/prefabs/prefab_internal.h"

static bool is_end_of_overrides(const void *list, uint32_t i)
{
    const quern_spawn_override *override = (const quern_spawn_override *)list + i;
    return override->component.bits == 0 && override->member == 0 && override->column == NULL;
}

/* Whether a managed component is a tag: that of a level, or "disabled by parent". All others belong to relations. */
static bool is_hidden_tag(const quern__storage *storage, uint32_t component_index)
{
    return storage->components.list.items[component_index]->managed.is_hidden;
}

quern_result quern__prefab_find_column(const quern__storage *storage, const quern__prefab *prefab,
                                       uint32_t member, quern_component component, uint32_t *out_column)
{
    quern_result result = quern__components_check(&storage->components, component);
    if (result != QUERN_OK) return result;
    if (member >= prefab->members.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "the prefab has no member %u: it has %u members",
                           member, prefab->members.count);
    const uint32_t index = quern__component_index(component);
    const char *name = quern__components_type(&storage->components, index)->name;
    if (quern__components_is_managed(&storage->components, index))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            is_hidden_tag(storage, index)
                ? "'%s' is a tag that Quern maintains, which has no values to override: override a "
                  "component with values"
                : "'%s' is a relation, which an override cannot set: use .parent, or relate the "
                  "spawned entities",
            name);
    const quern__prefab_group *group = &prefab->groups.items[prefab->members.items[member].group];
    for (uint32_t i = 0; i < group->column_count; i++) {
        *out_column = i;
        if (prefab->columns.items[group->first_column + i].component_index == index) return QUERN_OK;
    }
    if (quern__components_type(&storage->components, index)->size_bytes == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' is a tag, which has no values to override: override a component with values", name);
    return quern__fail(QUERN_ERROR_COMPONENT_ABSENT,
                       "member %u has no '%s': only captured components can be overridden", member, name);
}

static quern_result resolve_override(const quern__storage *storage, const quern__prefab *prefab,
                                     const quern_spawn_override *given,
                                     quern__prefab_override *out_override)
{
    uint32_t column;
    quern_result result =
        quern__prefab_find_column(storage, prefab, given->member, given->component, &column);
    if (result != QUERN_OK) return result;
    if (given->column == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "its column is NULL: it must have one value per instance");
    const quern__prefab_member *member = &prefab->members.items[given->member];
    *out_override = (quern__prefab_override){
        .group = member->group,
        .row = member->row,
        .column = column,
        .values = given->column,
        .stride_bytes =
            prefab->columns.items[prefab->groups.items[member->group].first_column + column].size_bytes};
    return QUERN_OK;
}

quern_result quern__prefab_resolve_overrides(const quern__storage *storage, const quern__prefab *prefab,
                                             const quern_spawn_def *def,
                                             quern__prefab_override *out_overrides, uint32_t *out_count)
{
    quern_result result = quern__list_count(def->overrides, QUERN_MAX_SPAWN_OVERRIDES, is_end_of_overrides,
                                            "override", NULL, out_count);
    for (uint32_t i = 0; i < *out_count && result == QUERN_OK; i++) {
        result = resolve_override(storage, prefab, &def->overrides[i], &out_overrides[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "override", i);
        for (uint32_t k = 0; k < i; k++)
            if (def->overrides[k].component.bits == def->overrides[i].component.bits &&
                def->overrides[k].member == def->overrides[i].member)
                return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                                   "overrides %u and %u are for the same component of member %u: keep one",
                                   k, i, def->overrides[i].member);
    }
    return result;
}
