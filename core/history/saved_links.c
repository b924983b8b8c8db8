/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores the links and edges of all relations, in groups of slots. A relation that is newer than
 * the snapshot has no links and edges after a restore. */

#include "core/history/saved_edges.h"

enum {
    GROUPS_IN_PAGE = QUERN__LINK_PAGE_SLOTS / QUERN__LINK_GROUP,
    GROUP_BYTES = QUERN__LINK_GROUP * sizeof(quern__link_node)
};

_Static_assert((int)QUERN__EDGE_GROUP == (int)QUERN__LINK_GROUP &&
                   (int)QUERN__EDGE_PAGE_SLOTS == (int)QUERN__LINK_PAGE_SLOTS,
               "links and edges have the same groups");

static quern__saved_links *saved_links(const quern__history *history, const quern__snapshot *snapshot)
{
    return (quern__saved_links *)(void *)quern__page_memory(&history->store, snapshot->relations);
}

/* Returns the saved links of the i-th relation; none if the relation is newer than the snapshot. */
static quern__saved_links links_of(const quern__history *history, const quern__snapshot *snapshot,
                                   uint32_t i)
{
    return i < snapshot->relation_count ? saved_links(history, snapshot)[i] : (quern__saved_links){0};
}

static quern__page group_of(const quern__history *history, const quern__saved_links *saved, uint32_t group)
{
    return group < saved->page_count * GROUPS_IN_PAGE ? quern__pages_in(history, saved->groups)[group] : 0;
}

quern__page quern__saved_group(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t group)
{
    const quern__saved_links saved = links_of(history, snapshot, relation_index);
    return group_of(history, &saved, group);
}

uint32_t quern__saved_group_count(const quern__history *history, const quern__snapshot *a,
                                  const quern__snapshot *b, uint32_t relation_index)
{
    const uint32_t pages_in_a = links_of(history, a, relation_index).page_count,
                   pages_in_b = links_of(history, b, relation_index).page_count;
    return (pages_in_a > pages_in_b ? pages_in_a : pages_in_b) * GROUPS_IN_PAGE;
}

static bool is_touched(const quern__links *links, uint32_t group)
{
    return (links->touched.items[group / GROUPS_IN_PAGE] >> group % GROUPS_IN_PAGE & 1) != 0;
}

static quern__link_node *group_at(const quern__links *links, uint32_t group)
{
    return quern__links_at(links, group * QUERN__LINK_GROUP);
}

/* ------------------------------------------------------------------------------------------ saving */

/* Whether the page equals the links of the group in the world. For builds with checks. */
static inline bool page_equals_group(const quern__history *history, const quern__links *links,
                                     uint32_t group, quern__page page)
{
    const void *now = group_at(links, group);
    return memcmp(quern__page_memory(&history->store, page), now, GROUP_BYTES) == 0;
}

static quern_result build_group(quern__history *history, const quern__links *links,
                                const quern__saved_links *base, uint32_t group, quern__page *out_page)
{
    if (links->pages.items[group / GROUPS_IN_PAGE] == NULL) return QUERN_OK;
    const quern__page known = group_of(history, base, group);
    if (known != 0 && !is_touched(links, group)) {
        assert(page_equals_group(history, links, group, known));
        *out_page = quern__page_acquire(&history->store, known);
        return QUERN_OK;
    }
    *out_page = quern__page_allocate(&history->store, GROUP_BYTES);
    if (*out_page == 0) return quern__history_fail_memory("links of entities");
    memcpy(quern__page_memory(&history->store, *out_page), group_at(links, group), GROUP_BYTES);
    return QUERN_OK;
}

static bool are_edges_touched(const quern__edges *edges, uint32_t group)
{
    return (edges->touched.items[group / GROUPS_IN_PAGE] >> group % GROUPS_IN_PAGE & 1) != 0;
}

/* Performs build_group for a relation with several targets per source. */
static quern_result build_edges(quern__history *history, const quern__edges *edges,
                                const quern__saved_links *base, uint32_t group, quern__page *out_page)
{
    if (edges->pages.items[group / GROUPS_IN_PAGE] == NULL) return QUERN_OK;
    const quern__page known = group_of(history, base, group);
    if (known == 0 || are_edges_touched(edges, group))
        return quern__build_edge_group(history, edges, group, out_page);
    assert(quern__saved_edges_equal(history, edges, group, known));
    *out_page = quern__page_acquire(&history->store, known);
    return QUERN_OK;
}

/* Returns the number of pages of the relation's links or edges. */
static uint32_t count_pages(const quern__relation *relation)
{
    return relation->is_many ? relation->edges.pages.count : relation->links.pages.count;
}

static quern_result build_relation(quern__history *history, uint32_t i, quern__snapshot *snapshot)
{
    const quern__relation *relation = history->world->storage.relations->list.items[i];
    const quern__links *links = &relation->links;
    const quern__saved_links base = links_of(history, &history->base, i);
    const uint32_t count = count_pages(relation) * GROUPS_IN_PAGE;
    const quern__page groups = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (groups == 0) return quern__history_fail_memory("a list of links");
    memset(quern__pages_in(history, groups), 0, count * sizeof(quern__page));
    saved_links(history, snapshot)[i] = (quern__saved_links){count_pages(relation), groups};
    quern_result result = QUERN_OK;
    for (uint32_t group = 0; group < count && result == QUERN_OK; group++) {
        quern__page page = 0;
        result = relation->is_many ? build_edges(history, &relation->edges, &base, group, &page)
                                   : build_group(history, links, &base, group, &page);
        quern__pages_in(history, groups)[group] = page;
    }
    return result;
}

quern_result quern__build_links(quern__history *history, quern__snapshot *snapshot)
{
    const uint32_t count = history->world->storage.relations->list.count;
    if (count == 0) return QUERN_OK;
    snapshot->relations = quern__page_allocate(&history->store, count * sizeof(quern__saved_links));
    if (snapshot->relations == 0) return quern__history_fail_memory("a list of relations");
    memset(saved_links(history, snapshot), 0, count * sizeof(quern__saved_links));
    snapshot->relation_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = build_relation(history, i, snapshot);
    return result;
}

void quern__release_saved_links(quern__history *history, const quern__snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        const quern__saved_links saved = saved_links(history, snapshot)[i];
        for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE; group++)
            quern__page_release(&history->store, quern__pages_in(history, saved.groups)[group]);
        quern__page_release(&history->store, saved.groups);
    }
}

bool quern__saved_has_children(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t slot)
{
    const quern__saved_links saved = links_of(history, snapshot, relation_index);
    const quern__page page = group_of(history, &saved, slot / QUERN__LINK_GROUP);
    if (page == 0) return false;
    const quern__link_node *node =
        (const quern__link_node *)(const void *)quern__page_memory(&history->store, page);
    return node[slot % QUERN__LINK_GROUP].count > 0;
}

/* ------------------------------------------------------------------------------------------ restoring */

/* Whether the edges of a group in the world differ from the saved ones, or may do so. */
static bool has_other_edges(const quern__history *history, const quern__edges *edges,
                            const quern__saved_links *saved, const quern__saved_links *base, uint32_t group)
{
    const quern__page page = group_of(history, saved, group);
    if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP)) return page != 0;
    return page != group_of(history, base, group) || are_edges_touched(edges, group);
}

static quern_result prepare_edges(quern__history *history, const quern__snapshot *snapshot, uint32_t i)
{
    quern__edges *edges = &history->world->storage.relations->list.items[i]->edges;
    const quern__saved_links saved = links_of(history, snapshot, i);
    const quern__saved_links base = links_of(history, &history->base, i);
    quern_result result = QUERN_OK;
    for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE && result == QUERN_OK; group++)
        if (has_other_edges(history, edges, &saved, &base, group))
            result = quern__prepare_edge_group(history, edges, group, group_of(history, &saved, group));
    return result;
}

quern_result quern__prepare_links(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        if (storage->relations->list.items[i]->is_many) {
            const quern_result result = prepare_edges(history, snapshot, i);
            if (result != QUERN_OK) return result;
            continue;
        }
        const quern__saved_links saved = saved_links(history, snapshot)[i];
        for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE; group += GROUPS_IN_PAGE)
            if (group_of(history, &saved, group) != 0 &&
                !quern__links_reserve(&storage->relations->list.items[i]->links, &storage->allocator,
                                      group * QUERN__LINK_GROUP))
                return quern__history_fail_memory("the links of entities");
    }
    return QUERN_OK;
}

static void restore_group(const quern__history *history, const quern__links *links, uint32_t group,
                          quern__page page)
{
    quern__link_node *node = group_at(links, group);
    if (page != 0) memcpy(node, quern__page_memory(&history->store, page), GROUP_BYTES);
    for (uint32_t i = 0; page == 0 && i < QUERN__LINK_GROUP; i++)
        node[i] = quern__empty_link_node;
}

static bool restore_relation(const quern__history *history, const quern__links *links,
                             const quern__saved_links *saved, const quern__saved_links *base)
{
    bool is_other = false;
    for (uint32_t group = 0; group < links->pages.count * GROUPS_IN_PAGE; group++) {
        if (links->pages.items[group / GROUPS_IN_PAGE] == NULL) continue;
        const quern__page page = group_of(history, saved, group);
        if (page == group_of(history, base, group) && !is_touched(links, group)) continue;
        restore_group(history, links, group, page);
        is_other = true;
    }
    return is_other;
}

/* Clears all groups of edges that differ; quern__restore_edges then sets those of the snapshot. */
static bool clear_edges(const quern__history *history, quern__edges *edges, const quern__saved_links *saved,
                        const quern__saved_links *base)
{
    bool is_other = false;
    for (uint32_t group = 0; group < edges->pages.count * GROUPS_IN_PAGE; group++) {
        if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP) ||
            !has_other_edges(history, edges, saved, base, group))
            continue;
        quern__clear_edge_group(history, edges, group);
        is_other = true;
    }
    return is_other;
}

void quern__restore_links(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__relations *relations = history->world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern__links *links = &relations->list.items[i]->links;
        const quern__saved_links saved = links_of(history, snapshot, i);
        const quern__saved_links base = links_of(history, &history->base, i);
        if (restore_relation(history, links, &saved, &base)) links->version++;
        if (clear_edges(history, &relations->list.items[i]->edges, &saved, &base)) links->version++;
    }
    quern__restore_edges(history);
}
