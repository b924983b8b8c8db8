/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The call of quern/reflect.h that lists entities by a prefix of their names.
 *
 * The names are a hash table without an order, so one pass visits all of them. The best matches so far form a binary
 * heap in the caller's array, with the last one of the order at the top: a better match replaces it. */

#include "core/reflect/handle_text.h"
#include "core/relations/naming.h"
#include "core/world/world_internal.h"

#include <quern/reflect.h>

typedef struct name_list {
    const quern__storage *storage;
    quern_entity *entities; /* the heap; NULL if capacity is 0 */
    uint32_t kept_count;    /* entities in the heap */
    uint32_t capacity;
    uint32_t match_count;
} name_list;

/* Which names match: those that begin with `prefix`, of the children of `parent` or of all entities. */
typedef struct name_filter {
    const char *prefix;
    size_t prefix_bytes;
    uint32_t parent; /* slot; QUERN__SLOT_NONE: the roots */
    bool by_parent;
} name_filter;

static bool matches(const name_filter *filter, const quern__name *name)
{
    return name->slot != QUERN__SLOT_NONE && (!filter->by_parent || name->parent == filter->parent) &&
           strncmp(name->text, filter->prefix, filter->prefix_bytes) == 0;
}

/* Returns the name of a listed entity. */
static const char *name_of(const name_list *list, quern_entity entity)
{
    const quern__names *names = list->storage->names;
    return quern__names_at(names, quern__names_number(names, quern_entity_index(entity)))->text;
}

/* Returns whether the entity `a` precedes `b` in the order of the list. */
static bool precedes(const name_list *list, quern_entity a, quern_entity b)
{
    const int order = strcmp(name_of(list, a), name_of(list, b));
    return order != 0 ? order < 0 : quern_entity_index(a) < quern_entity_index(b);
}

static void swap(name_list *list, uint32_t i, uint32_t k)
{
    const quern_entity entity = list->entities[i];
    list->entities[i] = list->entities[k];
    list->entities[k] = entity;
}

static void sift_up(name_list *list, uint32_t i)
{
    for (; i > 0 && precedes(list, list->entities[(i - 1) / 2], list->entities[i]); i = (i - 1) / 2)
        swap(list, i, (i - 1) / 2);
}

/* Moves the entity at the top of the first `count` entities down to its place. */
static void sift_down(name_list *list, uint32_t count)
{
    uint32_t i = 0;
    for (uint64_t child = 1; child < count; child = 2 * (uint64_t)i + 1) {
        if (child + 1 < count && precedes(list, list->entities[child], list->entities[child + 1])) child++;
        if (!precedes(list, list->entities[i], list->entities[child])) return;
        swap(list, i, (uint32_t)child);
        i = (uint32_t)child;
    }
}

static void add(name_list *list, uint32_t slot)
{
    const quern_entity entity = quern__entity_of_link(list->storage, slot);
    list->match_count++;
    if (list->kept_count < list->capacity) {
        list->entities[list->kept_count] = entity;
        sift_up(list, list->kept_count++);
    } else if (list->capacity > 0 && precedes(list, entity, list->entities[0])) {
        list->entities[0] = entity;
        sift_down(list, list->kept_count);
    }
}

static void sort_heap(name_list *list)
{
    for (uint32_t count = list->kept_count; count > 1; count--) {
        swap(list, 0, count - 1);
        sift_down(list, count - 1);
    }
}

/* Splits a prefix into the path of the parent and the prefix of the name. Returns false if there is no such parent. */
static bool read_filter(const quern__storage *storage, const char *prefix, name_filter *out_filter)
{
    const char *last = strrchr(prefix, '/');
    *out_filter = (name_filter){.prefix = last != NULL ? last + 1 : prefix, .by_parent = last != NULL};
    out_filter->prefix_bytes = strlen(out_filter->prefix);
    if (last == NULL) return true;
    if (prefix[0] != '/') return false; /* a path as text begins with '/', and no name contains it */
    return quern__handle_find_path(storage, prefix, (size_t)(last - prefix), &out_filter->parent);
}

uint32_t quern_world_list_named(const quern_world *world, const char *prefix, quern_entity *out_entities,
                                uint32_t capacity)
{
    static const char function[] = "quern_world_list_named";
    if (world == NULL || prefix == NULL || (out_entities == NULL && capacity > 0)) {
        quern__fail_null(function, world == NULL ? "world" : prefix == NULL ? "prefix" : "out_entities");
        return 0;
    }
    const quern__names *names = world->storage.names;
    name_list list = {.storage = &world->storage, .entities = out_entities, .capacity = capacity};
    name_filter filter;
    if (!read_filter(&world->storage, prefix, &filter)) return 0;
    for (uint32_t i = 0; i < names->blocks.count; i++)
        for (uint32_t k = 0; k < QUERN__NAME_BLOCK_NAMES && names->blocks.items[i] != NULL; k++)
            if (matches(&filter, &names->blocks.items[i][k])) add(&list, names->blocks.items[i][k].slot);
    sort_heap(&list);
    return list.match_count;
}
