/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/access.h"

#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

/* What a system declares that it accesses: sets of pairs of systems, lookups, and the lists of terms, relations and
 * resources (access.h). */

enum { UNIT_BITS = 16, UNITS_PER_WORD = 4, UNUSED_UNITS = 65536 };

/* ------------------------------------------------------------------------------------------ sets of pairs */

void quern__pair_set_release(quern__pair_set *set, const quern_allocator *allocator)
{
    quern__array_release(allocator, &set->units);
    quern__array_release(allocator, &set->rows);
}

bool quern__pair_set_reset(quern__pair_set *set, const quern_allocator *allocator, uint32_t row_count)
{
    set->units.count = set->rows.count = set->unused_count = 0;
    /* One unit, so that also a set without pairs has an address of units. */
    if (!quern__array_reserve(allocator, &set->units, 1) ||
        !quern__array_reserve(allocator, &set->rows, row_count))
        return false;
    if (row_count > 0) memset(set->rows.items, 0, row_count * sizeof *set->rows.items);
    set->rows.count = row_count;
    return true;
}

static uint32_t units_of_bits(uint32_t later)
{
    return later / UNIT_BITS + 1;
}

/* Moves all rows to the beginning of new memory, in order. Returns false, with the set unchanged, if out of
 * memory. */
static bool compact(quern__pair_set *set, const quern_allocator *allocator)
{
    const uint32_t count = set->units.count - set->unused_count;
    quern__pair_set fresh = {.unused_count = 0};
    if (!quern__array_reserve(allocator, &fresh.units, count)) return false;
    for (uint32_t i = 0; i < set->rows.count; i++) {
        quern__pair_row *row = &set->rows.items[i];
        if (row->unit_count > 0) /* NOLINTNEXTLINE(clang-analyzer-core*): room was reserved */
            memcpy(fresh.units.items + fresh.units.count, set->units.items + row->first_unit,
                   row->unit_count * sizeof *fresh.units.items);
        row->first_unit = fresh.units.count;
        fresh.units.count += row->unit_count;
    }
    quern__array_release(allocator, &set->units);
    set->units = fresh.units;
    set->unused_count = 0;
    return true;
}

bool quern__pair_set_put(quern__pair_set *set, const quern_allocator *allocator, uint32_t later,
                         const uint64_t *words)
{
    quern__pair_row *row = &set->rows.items[later];
    const uint32_t word_count = QUERN__BITSET_WORDS(later + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        if (words[i] != 0) count += quern__count_bits_64(words[i]);
    const bool is_bits = count > units_of_bits(later);
    const uint32_t unit_count = is_bits ? units_of_bits(later) : count;
    if (unit_count > row->unit_count) {
        if (set->unused_count > UNUSED_UNITS && set->unused_count > set->units.count / 2 &&
            !compact(set, allocator))
            return false;
        if (!quern__array_reserve(allocator, &set->units, set->units.count + unit_count)) return false;
        set->unused_count += row->unit_count;
        row->first_unit = set->units.count;
        set->units.count += unit_count;
    } else
        set->unused_count += row->unit_count - unit_count;
    row->unit_count = (uint16_t)unit_count;
    row->is_bits = is_bits;
    uint16_t *units = set->units.items + row->first_unit;
    if (!row->is_bits)
        quern__bitset_list(words, word_count, units);
    else
        for (uint32_t i = 0; i < row->unit_count; i++)
            units[i] = (uint16_t)(words[i / UNITS_PER_WORD] >> i % UNITS_PER_WORD * UNIT_BITS);
    return true;
}

void quern__pair_set_get(const quern__pair_set *set, uint32_t later, uint64_t *words)
{
    const quern__pair_row *row = &set->rows.items[later];
    const uint16_t *units = set->units.items + row->first_unit;
    for (uint32_t i = 0; i < row->unit_count; i++)
        if (row->is_bits)
            words[i / UNITS_PER_WORD] |= (uint64_t)units[i] << i % UNITS_PER_WORD * UNIT_BITS;
        else
            quern__bitset_add(words, units[i]);
}

bool quern__pair_set_has(const quern__pair_set *set, uint32_t earlier, uint32_t later)
{
    const quern__pair_row *row = &set->rows.items[later];
    const uint16_t *units = set->units.items + row->first_unit;
    if (row->is_bits) return (units[earlier / UNIT_BITS] >> earlier % UNIT_BITS) & 1;
    uint32_t low = 0, high = row->unit_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (units[middle] < earlier)
            low = middle + 1;
        else
            high = middle;
    }
    return low < row->unit_count && units[low] == earlier;
}

/* ------------------------------------------------------------------------------------------------ lookups */

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
    if (result != QUERN_OK) return result;
    const quern__type *type = quern__components_type(components, lookup.index);
    if (type->size_bytes == 0 && writes)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a tag, which has no value to write: list it in lookups", type->name);
    if (writes && quern__components_is_managed(components, lookup.index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is the component of a relation: change it with relate and unrelate",
                           type->name);
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

/* An index is a lookup of its component in any entity. Precondition: the indexes have been checked. */
static void add_indexes(quern__lookups *lookups, const quern_system_def *def)
{
    for (uint32_t i = 0; i < QUERN_MAX_SYSTEM_INDEXES && def->indexes[i] != NULL; i++) {
        const uint32_t index = quern__component_index(quern__index_component(def->indexes[i]));
        uint32_t k = 0;
        while (k < lookups->count && lookups->list[k].index != index)
            k++;
        if (k == lookups->count)
            lookups->list[lookups->count++] = (quern__lookup){.index = (uint16_t)index};
        lookups->list[k].limit = (quern__archetype_filter){QUERN__FILTER_NONE, QUERN__FILTER_NONE};
        quern__bitset_remove(lookups->limited, index);
        quern__bitset_add(lookups->unlimited, index);
    }
}

quern_result quern__lookups_init(quern__lookups *lookups, const quern_world *world,
                                 const quern_system_def *def)
{
    quern_result result = add_list(lookups, world, def->lookups, false);
    if (result == QUERN_OK) result = add_list(lookups, world, def->write_lookups, true);
    if (result == QUERN_OK) add_indexes(lookups, def);
    return result;
}

const quern__lookup *quern__lookups_find(const quern__lookups *lookups, uint32_t component_index)
{
    for (uint32_t i = 0; i < lookups->count; i++)
        if (lookups->list[i].index == component_index) return &lookups->list[i];
    return NULL;
}

/* ---------------------------------------------------------------------------------------- declared access */

static quern_result add_relations(quern__access *access, const quern_world *world,
                                  const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->relations, QUERN_MAX_ACCESS, quern__is_end_of_handles,
                                            "relation", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__relation *relation;
        result = quern__relation_check(&world->storage, def->relations[i], &relation);
        if (result != QUERN_OK) return quern__message_add_element(result, "relation", i);
        if (quern__bitset_has(access->relations, relation->component_index))
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "system '%s' declares relation '%s' twice; once is enough", def->name,
                               quern__relation_name(&world->storage, relation));
        quern__bitset_add(access->relations, relation->component_index);
    }
    return result;
}

static bool is_end_of_resources(const void *list, uint32_t i)
{
    const quern_resource_access *use = &((const quern_resource_access *)list)[i];
    return use->resource.bits == 0 && use->access == QUERN_ACCESS_NONE;
}

static quern_result add_resources(quern__access *access, const quern_world *world,
                                  const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result =
        quern__list_count(def->resources, QUERN_MAX_ACCESS, is_end_of_resources, "resource", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const quern_resource_access *use = &def->resources[i];
        if (use->resource.bits == 0)
            return quern__fail(QUERN_ERROR_UNKNOWN_RESOURCE,
                               "resource %u names no resource: was it registered?", i);
        result = quern__resources_check(&world->resources, use->resource);
        if (result != QUERN_OK) return quern__message_add_element(result, "resource", i);
        uint32_t index = quern__resource_index(use->resource);
        const char *name = world->resources.list.items[index].type.name;
        if (use->access < QUERN_ACCESS_READ || use->access > QUERN_ACCESS_WRITE_CONCURRENT)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "system '%s': access %d to resource '%s' is neither QUERN_ACCESS_READ, "
                               "QUERN_ACCESS_WRITE nor "
                               "QUERN_ACCESS_WRITE_CONCURRENT",
                               def->name, (int)use->access, name);
        if (quern__access_to_resource(access, index) != QUERN_ACCESS_NONE)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "system '%s' declares resource '%s' twice; once is enough, and QUERN_ACCESS_WRITE "
                "lets it read, too",
                def->name, name);
        access->resources[access->resource_count++] =
            (quern__resource_use){.index = (uint16_t)index, .access = (uint8_t)use->access};
    }
    return result;
}

static quern__resource_use *find_resource(quern__access *access, uint32_t resource_index)
{
    for (uint32_t i = 0; i < access->resource_count; i++)
        if (access->resources[i].index == resource_index) return &access->resources[i];
    return NULL;
}

static quern_result add_watched_resources(quern__access *access, const quern_world *world,
                                          const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->if_changed, QUERN_MAX_CHANGED, quern__is_end_of_handles,
                                            "resource of if_changed", NULL, &count);
    if (result == QUERN_OK && count > 0 && def->reacts_to != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "reaction '%s' has if_changed: a reaction runs for rows that have changed; give it a condition",
            def->name);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__resources_check(&world->resources, def->if_changed[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "resource of if_changed", i);
        const uint32_t index = quern__resource_index(def->if_changed[i]);
        const quern__type *type = &world->resources.list.items[index].type;
        if (type->field_count == 0 && quern__hooks_own_resources(&type->hooks))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "system '%s' lists resource '%s' in if_changed, but what its values own cannot be "
                "compared: describe the fields of the resource, or use a condition",
                def->name, type->name);
        quern__resource_use *use = find_resource(access, index);
        if (use != NULL && use->is_watched)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "system '%s' lists resource '%s' twice in if_changed: list it once",
                               def->name, type->name);
        if (use == NULL && access->resource_count == QUERN_MAX_ACCESS)
            return quern__fail(QUERN_ERROR_LIMIT,
                               "system '%s' declares more than %d resources, those of if_changed included: "
                               "split the system, or put several values into one resource",
                               def->name, QUERN_MAX_ACCESS);
        if (use == NULL) {
            use = &access->resources[access->resource_count++];
            *use = (quern__resource_use){.index = (uint16_t)index, .access = QUERN_ACCESS_READ};
        }
        use->is_watched = access->watches_resources = true;
    }
    return result;
}

static void add_uses(quern__access *access, quern__use_kind kind, uint32_t word, uint64_t bits)
{
    while (bits != 0)
        access->uses.items[access->uses.count++] = (quern__access_use){
            .index = (uint16_t)(64 * word + quern__bitset_pop_lowest(&bits)), .kind = (uint16_t)kind};
}

bool quern__access_reads_row(const quern__components *components, const quern_term *term)
{
    return term->path == QUERN_PATH_ROW &&
           (term->access != QUERN_ACCESS_NONE || term->changed ||
            (term->match != QUERN_MATCH_NONE &&
             quern__components_has_flag(components, quern__component_index(term->component),
                                        QUERN__FLAG_CAN_DISABLE)));
}

/* Adds what the terms of the further queries read and write. Returns the number of terms. */
static uint32_t add_queries(quern__access *access, const quern__components *components)
{
    uint32_t term_count = 0;
    for (uint32_t i = 0; i < access->query_count; i++) {
        const quern__query *query = &access->queries[i];
        term_count += query->term_count;
        for (uint32_t k = 0; k < query->term_count; k++) {
            const quern_term *term = &query->terms[k];
            const uint32_t index = quern__component_index(term->component);
            if (term->path != QUERN_PATH_ROW) quern__bitset_add(access->upward_by_others, index);
            if (quern__access_reads_row(components, term)) quern__bitset_add(access->query_reads, index);
            if (term->access == QUERN_ACCESS_WRITE) quern__bitset_add(access->query_writes, index);
        }
    }
    return term_count;
}

quern_result quern__access_init(quern__access *access, const quern_world *world,
                                const quern_system_def *def, uint32_t term_count,
                                const quern__query *queries, uint32_t query_count)
{
    *access = (quern__access){.levels = def->levels, .queries = queries, .query_count = query_count};
    /* Adds the components that the terms read or write. */
    const quern__components *components = &world->storage.components;
    for (uint32_t i = 0; i < term_count; i++) {
        if (def->terms[i].path != QUERN_PATH_ROW) {
            const bool is_level = quern_relation_equal(def->terms[i].relation, def->levels);
            quern__bitset_add(is_level ? access->upward_by_levels : access->upward_by_others,
                              quern__component_index(def->terms[i].component));
            quern__bitset_add(access->reads, quern__term_index(&def->terms[i]));
            access->has_optional_terms = true;
            continue;
        }
        uint32_t index = quern__component_index(def->terms[i].component);
        const bool is_read = quern__access_reads_row(components, &def->terms[i]);
        if (is_read) quern__bitset_add(access->reads, index);
        const bool is_required = def->terms[i].match == 0 || def->terms[i].match == QUERN_MATCH_ALL;
        access->has_optional_terms |= is_read && !is_required;
        if (def->terms[i].access == QUERN_ACCESS_WRITE) quern__bitset_add(access->writes, index);
    }
    const uint32_t query_term_count = add_queries(access, components);
    quern_result result = quern__lookups_init(&access->lookups, world, def);
    if (result == QUERN_OK) result = add_relations(access, world, def);
    if (result == QUERN_OK) result = add_resources(access, world, def);
    if (result == QUERN_OK) result = add_watched_resources(access, world, def);
    /* Lists the uses: at most two for each term, lookup and resource. */
    if (result != QUERN_OK) return result;
    const uint32_t most =
        2 * (term_count + query_term_count + access->lookups.count + access->resource_count);
    if (!quern__array_reserve(&world->storage.allocator, &access->uses, most))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the accesses of system '%s'",
                           def->name);
    const quern__lookups *lookups = &access->lookups;
    for (uint32_t i = 0; i < QUERN__COMPONENT_WORDS; i++) {
        const uint64_t upward = access->upward_by_others[i] | access->upward_by_levels[i];
        const uint64_t elsewhere =
            lookups->unlimited[i] | lookups->limited[i] | upward | access->query_reads[i];
        access->looks_elsewhere |= elsewhere != 0;
        add_uses(access, QUERN__USE_TERM, i, access->reads[i]);
        add_uses(access, QUERN__USE_TERM_WRITE, i, access->writes[i]);
        add_uses(access, QUERN__USE_LOOKUP, i, elsewhere);
        add_uses(access, QUERN__USE_LOOKUP_WRITE, i, lookups->written[i] | access->query_writes[i]);
    }
    for (uint32_t i = 0; i < access->resource_count; i++) {
        const quern__resource_use *use = &access->resources[i];
        access->uses.items[access->uses.count++] =
            (quern__access_use){.index = use->index, .kind = QUERN__USE_RESOURCE};
        if (use->access != QUERN_ACCESS_READ)
            access->uses.items[access->uses.count++] =
                (quern__access_use){.index = use->index, .kind = QUERN__USE_RESOURCE_WRITE};
    }
    return QUERN_OK;
}

void quern__access_release(quern__access *access, const quern_allocator *allocator)
{
    quern__array_release(allocator, &access->uses);
}

quern_access quern__access_to_resource(const quern__access *access, uint32_t resource_index)
{
    for (uint32_t i = 0; i < access->resource_count; i++)
        if (access->resources[i].index == resource_index) return (quern_access)access->resources[i].access;
    return QUERN_ACCESS_NONE;
}

/* ------------------------------------------------------------------------------------------- lists */

static void list_add(char *text, size_t text_bytes, const char *verb, const char *name)
{
    quern__append(text, text_bytes, "%s%s'%s'", text[0] != '\0' ? ", " : "", verb, name);
}

static void list_end(char *text, size_t text_bytes)
{
    if (text[0] == '\0') quern__append(text, text_bytes, "none");
}

void quern__lookups_list(const quern__lookups *lookups, const quern_world *world, bool written, char *text,
                         size_t text_bytes)
{
    const quern__components *components = &world->storage.components;
    text[0] = '\0';
    for (uint32_t i = 0; i < lookups->count; i++) {
        const quern__lookup *lookup = &lookups->list[i];
        if (written && !lookup->writes) continue;
        list_add(text, text_bytes, "", quern__components_type(components, lookup->index)->name);
    }
    list_end(text, text_bytes);
}

void quern__access_list_relations(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < QUERN_MAX_COMPONENTS; i++)
        if (quern__bitset_has(access->relations, i))
            list_add(text, text_bytes, "", quern__components_type(&world->storage.components, i)->name);
    list_end(text, text_bytes);
}

void quern__access_list_resources(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes)
{
    static const char *const verbs[] = {[QUERN_ACCESS_READ] = "read ",
                                        [QUERN_ACCESS_WRITE] = "write ",
                                        [QUERN_ACCESS_WRITE_CONCURRENT] = "write concurrently "};
    text[0] = '\0';
    for (uint32_t i = 0; i < access->resource_count; i++) {
        const quern__resource_use *use = &access->resources[i];
        list_add(text, text_bytes, verbs[use->access], world->resources.list.items[use->index].type.name);
    }
    list_end(text, text_bytes);
}
