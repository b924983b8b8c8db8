/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Relations themselves: registering and finding them, their settings, and their cached move plans. */
#include "core/relations/relation_internal.h"

#include "core/storage/storage.h"

const quern_relation_def quern__parent_def = {
    .name = "parent", .on_target_destroyed = QUERN_TARGET_DESTROYS_SOURCE, .levels = true, .ordered = true};

const quern_relation_def quern__shared_def = {.name = "shared",
                                              .on_target_destroyed = QUERN_TARGET_UNRELATES};

static void relation_release(quern__relation *relation, const quern_allocator *allocator)
{
    quern__links_release(&relation->links, allocator);
    quern__edges_release(&relation->edges, allocator);
    quern__type_release(&relation->element, allocator);
    quern__release(allocator, relation, sizeof *relation, _Alignof(quern__relation));
}

/* Releases scratch memory that is kept between calls. */
static void release_scratch(quern__relations *relations, const quern_allocator *allocator)
{
    quern__link_log_release(&relations->log, allocator);
    quern__array_release(allocator, &relations->added_pairs);
    memset(&relations->added_pairs, 0, sizeof relations->added_pairs);
    quern__tier_moves_release(&relations->tier_moves, allocator);
    quern__map_release(&relations->moved, allocator);
    quern__array_release(allocator, &relations->pending.list);
    quern__map_release(&relations->pending.by_source, allocator);
    relations->pending = (quern__pending_values){.list = {0}};
    quern__cascade_release(&relations->cascade, allocator);
}

void quern__relations_release(quern__relations *relations, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < relations->list.count; i++)
        relation_release(relations->list.items[i], allocator);
    quern__array_release(allocator, &relations->list);
    quern__edge_pool_trim(&relations->edge_pool, allocator);
    quern__link_pages_release(&relations->link_pages, allocator);
    release_scratch(relations, allocator);
}

/* ------------------------------------------------------------------------------------- registering */

static quern_result check_def(const quern_relation_def *def)
{
    quern_result result = quern__check_name(def->name, "relation");
    if (result != QUERN_OK) return result;
    if ((unsigned)def->on_target_destroyed > QUERN_TARGET_REFUSES)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "relation '%s': on_target_destroyed is %d, which is no value of quern_target_policy", def->name,
            (int)def->on_target_destroyed);
    if (!def->many || (!def->levels && !def->ordered)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "relation '%s' is .many and .%s, but a source with several targets has no %s: leave "
                       "one of them out",
                       def->name, def->levels ? "levels" : "ordered",
                       def->levels ? "single level" : "single list of siblings");
}

bool quern__relation_has_definition(const quern__relation *relation, const quern_relation_def *def)
{
    return relation->policy == def->on_target_destroyed && relation->has_levels == def->levels &&
           relation->is_ordered == def->ordered && relation->is_many == def->many &&
           relation->value_index ==
               (def->value.bits != 0 ? quern__component_index(def->value) : QUERN__NO_COMPONENT);
}

/* Registering a relation again returns the existing one. Errors: DUPLICATE_NAME if the name belongs to a component, or
 * to a relation with another definition. */
static quern_result use_registered(const quern__storage *storage, quern_component known,
                                   const quern_relation_def *def, quern__relation **out_relation)
{
    quern__relation *relation = quern__relation_of(storage, (quern_relation){known.bits});
    if (relation == NULL)
        return quern__fail(QUERN_ERROR_DUPLICATE_NAME,
                           "relation '%s': a component has this name, and a relation is a component, too: "
                           "choose another name",
                           def->name);
    if (!quern__relation_has_definition(relation, def))
        return quern__fail(
            QUERN_ERROR_DUPLICATE_NAME,
            "relation '%s' is registered with another policy, levels, order, number "
            "of targets or values of edges: register the same definition, or choose another name",
            def->name);
    *out_relation = relation;
    return QUERN_OK;
}

/* Registers the relation's components: that of the target, then one tag per level. Of a relation with several targets
 * per source, only the tag of its sources. */
static quern_result add_components(quern__storage *storage, const quern_relation_def *def,
                                   quern__relation *relation)
{
    const quern__managed managed = {.relation = relation};
    quern_component_def component = {.name = def->name,
                                     .size_bytes = sizeof(quern_entity),
                                     .alignment_bytes = _Alignof(quern_entity),
                                     .type_name = "quern_entity",
                                     .fields = {{.name = "target", .type = QUERN_FIELD_ENTITY}}};
    if (def->many) component = (quern_component_def){.name = def->name};
    component.required[0] = def->value;
    quern_result result =
        quern__components_add_managed(&storage->components, &storage->allocator, &component, &managed);
    for (uint32_t level = 1; result == QUERN_OK && def->levels && level < QUERN__LEVEL_COUNT; level++) {
        char name[QUERN_MAX_NAME_BYTES + 1] = "";
        quern__append(name, sizeof name, "level %u of %s", level, def->name);
        const quern__managed tag = {.relation = relation, .level = level, .is_hidden = true};
        result = quern__components_add_managed(&storage->components, &storage->allocator,
                                               &(quern_component_def){.name = name}, &tag);
    }
    return result;
}

static quern_result relation_create(quern__storage *storage, const quern_relation_def *def,
                                    quern__relation **out_relation)
{
    quern__relations *relations = storage->relations;
    const uint32_t component_count = storage->components.list.count;
    quern__relation *relation =
        quern__allocate(&storage->allocator, sizeof *relation, _Alignof(quern__relation));
    if (relation == NULL ||
        !quern__array_reserve(&storage->allocator, &relations->list, relations->list.count + 1)) {
        quern__release(&storage->allocator, relation, sizeof *relation, _Alignof(quern__relation));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "relation '%s': no memory to register it", def->name);
    }
    *relation = (quern__relation){.index = relations->list.count,
                                  .component_index = component_count,
                                  .policy = def->on_target_destroyed,
                                  .has_levels = def->levels,
                                  .is_ordered = def->ordered,
                                  .is_many = def->many,
                                  .links = {.memory = &relations->link_pages},
                                  .edges = {.pool = &relations->edge_pool}};
    quern_result result = QUERN_OK;
    if (relations->marks_touched_groups && !quern__relation_start_touching(relation, &storage->allocator))
        result =
            quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "relation '%s': no memory to mark changes", def->name);
    if (result == QUERN_OK) result = quern__edge_values_init(storage, relation, def);
    if (result == QUERN_OK) result = add_components(storage, def, relation);
    if (result != QUERN_OK) {
        quern__components_drop_last(&storage->components, &storage->allocator, component_count);
        relation_release(relation, &storage->allocator);
        return result;
    }
    if (quern__relation_has_values(relation))
        storage->components.list.items[relation->value_index]->edge_owner = component_count + 1;
    relations->list.items[relations->list.count++] = relation;
    relations->many_count += relation->is_many;
    storage->has_attachments = true;
    *out_relation = relation;
    return QUERN_OK;
}

quern_result quern__relation_register(quern__storage *storage, const quern_relation_def *def,
                                      quern__relation **out_relation)
{
    quern_result result = check_def(def);
    if (result != QUERN_OK) return result;
    const quern_component known = quern__components_find(&storage->components, def->name);
    if (!quern_component_is_null(known)) return use_registered(storage, known, def, out_relation);
    result = quern__edge_values_check(storage, def);
    if (result == QUERN_OK) result = relation_create(storage, def, out_relation);
    /* names depend on the hierarchy, so it is noted even if it is registered by name and not by quern_world_parent */
    if (result == QUERN_OK && strcmp(def->name, quern__parent_def.name) == 0 &&
        quern__relation_has_definition(*out_relation, &quern__parent_def))
        storage->relations->parent = *out_relation;
    return result;
}

/* ----------------------------------------------------------------------------------------- finding */

quern__relation *quern__relation_find(const quern__storage *storage, const char *name)
{
    const quern_component known = quern__components_find(&storage->components, name);
    return quern__relation_of(storage, (quern_relation){known.bits});
}

quern__relation *quern__relation_of(const quern__storage *storage, quern_relation relation)
{
    const uint32_t index =
        quern__components_unchecked_index(&storage->components, quern_relation_component(relation));
    if (index >= storage->components.list.count) return NULL;
    const quern__managed *managed = &storage->components.list.items[index]->managed;
    return managed->level == 0 ? managed->relation : NULL;
}

quern_result quern__relation_check(const quern__storage *storage, quern_relation relation,
                                   quern__relation **out_relation)
{
    *out_relation = quern__relation_of(storage, relation);
    if (QUERN__LIKELY(*out_relation != NULL)) return QUERN_OK;
    if (relation.bits == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the relation handle is null: register the relation, or call "
                           "quern_world_parent once, before the frame that uses it");
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "relation handle %#x is none of this world (tag %u): register the relation in this "
                       "world",
                       relation.bits, storage->components.first_bits >> 24);
}

quern_relation quern__relation_handle(const quern__storage *storage, const quern__relation *relation)
{
    return (quern_relation){quern__component_handle(&storage->components, relation->component_index).bits};
}

const char *quern__relation_name(const quern__storage *storage, const quern__relation *relation)
{
    return quern__components_type(&storage->components, relation->component_index)->name;
}

uint32_t quern__relation_level(const quern__relation *relation, const quern__archetype *archetype)
{
    for (uint32_t level = 1; relation->has_levels && level < QUERN__LEVEL_COUNT; level++)
        if (quern__archetype_has(archetype, quern__relation_tag(relation, level))) return level;
    return 0;
}

bool quern__relations_has_edges(const quern__relations *relations, uint32_t slot)
{
    for (uint32_t i = 0; i < relations->list.count; i++) {
        const quern__edges *edges = &relations->list.items[i]->edges;
        if (quern__edges_targets(edges, slot)->count > 0 || quern__edges_sources(edges, slot)->count > 0)
            return true;
    }
    return false;
}

/* --------------------------------------------------------------------------------- modification marks */

bool quern__relation_start_touching(quern__relation *relation, const quern_allocator *allocator)
{
    quern__links *links = &relation->links;
    quern__edges *edges = &relation->edges;
    return quern__marks_extend(&links->touched, allocator, links->pages.count) &&
           (!relation->is_many || quern__marks_extend(&edges->touched, allocator, edges->pages.count));
}

void quern__relation_stop_touching(quern__relation *relation, const quern_allocator *allocator)
{
    quern__marks_release(&relation->links.touched, allocator);
    quern__marks_release(&relation->edges.touched, allocator);
}

void quern__relation_clear_touched(const quern__relation *relation)
{
    quern__marks_fill(&relation->links.touched, 0);
    quern__marks_fill(&relation->edges.touched, 0);
}

/* ------------------------------------------------------------------------------------------- plans */

/* Writes the sorted component set of an archetype, with the relation's components replaced by those of the tier, and
 * with or without the values of edges. Returns the size of the set. */
static uint32_t make_set(const quern__components *components, const quern__relation *relation,
                         const quern__archetype *source, uint32_t tier, uint16_t *out_indices)
{
    uint32_t count = 0, i = 0, kept = 0;
    for (; i < source->component_count && source->component_indices[i] < relation->component_index; i++)
        out_indices[count++] = source->component_indices[i];
    if (tier > 0) out_indices[count++] = (uint16_t)relation->component_index;
    if (tier > 1) out_indices[count++] = (uint16_t)quern__relation_tag(relation, tier - 1);
    const uint32_t own_count = relation->has_levels ? QUERN__LEVEL_COUNT : 1;
    for (; i < source->component_count; i++)
        if (source->component_indices[i] - relation->component_index >= own_count)
            out_indices[count++] = source->component_indices[i];
    if (!quern__relation_has_values(relation)) return count;
    if (tier > 0) return quern__components_complete(components, out_indices, count);
    for (uint32_t k = 0; k < count; k++)
        if (out_indices[k] != relation->value_index) out_indices[kept++] = out_indices[k];
    return kept;
}

quern_result quern__relation_find_plan(quern__storage *storage, quern__relation *relation,
                                       quern__archetype *source, uint32_t tier,
                                       const quern__move_plan **out_plan)
{
    uint16_t set[QUERN_MAX_COMPONENTS];
    const uint32_t count = make_set(&storage->components, relation, source, tier, set);
    quern__archetype *target;
    quern_result result = quern__storage_ensure_archetype(storage, set, count, &target);
    if (result == QUERN_OK) result = quern__plan_between(storage, source, target, out_plan);
    if (result != QUERN_OK) return result;
    const uint64_t key = quern__plan_key(source, tier);
    relation->plans[key % QUERN__RELATION_PLANS] = (quern__cached_plan){.plan = *out_plan, .key = key};
    return QUERN_OK;
}

/* Clears all plan caches. Their keys contain archetype numbers, which are reused after an archetype is removed. */
static void forget_plans(quern__storage *storage, const quern__archetype *archetype)
{
    (void)archetype;
    const quern__relations *relations = storage->relations;
    for (uint32_t i = 0; i < relations->list.count; i++)
        memset(relations->list.items[i]->plans, 0, sizeof relations->list.items[i]->plans);
}

void quern__relations_init(quern__relations *relations, quern__storage *storage)
{
    *relations = (quern__relations){.listener = {.removed = forget_plans},
                                    .edge_pool = {.memory = &relations->link_pages}};
    storage->relations = relations;
    quern__storage_listen(storage, &relations->listener);
}

void quern__relations_trim(quern__storage *storage)
{
    quern__relations *relations = storage->relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern__links_trim(&relations->list.items[i]->links, &storage->allocator);
        quern__edges_trim(&relations->list.items[i]->edges, &storage->allocator);
    }
    quern__edge_pool_trim(&relations->edge_pool, &storage->allocator);
    release_scratch(relations, &storage->allocator);
}
