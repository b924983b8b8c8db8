/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Links alone, compared with naive lists. */

#include "core/names/name_internal.h"
#include "core/relations/links.h"
#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------- links alone */

enum { NONE = (int)QUERN__SLOT_NONE, SLOTS = 40, CHAIN = 20, FAR = 5 * QUERN__LINK_PAGE_SLOTS };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__link_pages pages;
static quern__links links;

static void open_links(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    pages = (quern__link_pages){0};
    links = (quern__links){.memory = &pages};
}

static void close_links(void)
{
    quern__links_release(&links, &allocator);
    quern__link_pages_release(&pages, &allocator);
    failing_allocator_close(memory);
}

TestSuite(links, .init = open_links, .fini = close_links);

/* Returns the i-th slot. Slots are in several pages, so that lists cross pages. */
static uint32_t slot_of(uint32_t i)
{
    return i % 3 * QUERN__LINK_PAGE_SLOTS + i;
}

static void reserve_all(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        cr_assert(quern__links_reserve(&links, &allocator, slot_of(i)));
}

/* -------------------------------------------------------------------------------------- the model */

typedef struct naive_links {
    int target[SLOTS]; /* -1: none */
    int children[SLOTS][SLOTS];
    int count[SLOTS];
} naive_links;

static void naive_init(naive_links *naive)
{
    memset(naive, 0, sizeof *naive);
    for (int i = 0; i < SLOTS; i++)
        naive->target[i] = -1;
}

static int naive_position(const naive_links *naive, int target, int child)
{
    int i = 0;
    while (i < naive->count[target] && naive->children[target][i] != child)
        i++;
    return i;
}

static void naive_unlink(naive_links *naive, int source)
{
    const int target = naive->target[source];
    int *list = naive->children[target];
    const int at = naive_position(naive, target, source);
    memmove(list + at, list + at + 1, (size_t)(naive->count[target] - at - 1) * sizeof *list);
    naive->count[target]--;
    naive->target[source] = -1;
}

/* before: -1 for the end */
static void naive_link(naive_links *naive, int source, int target, int before)
{
    int *list = naive->children[target];
    const int at = before < 0 ? naive->count[target] : naive_position(naive, target, before);
    memmove(list + at + 1, list + at, (size_t)(naive->count[target] - at) * sizeof *list);
    list[at] = source;
    naive->count[target]++;
    naive->target[source] = target;
}

static uint32_t slot_or_none(int i)
{
    return i < 0 ? QUERN__SLOT_NONE : slot_of((uint32_t)i);
}

static void check_list(const naive_links *naive, int target)
{
    const quern__link_node *parent = quern__links_find(&links, slot_of((uint32_t)target));
    const int count = naive->count[target];
    cr_assert_eq(parent->count, (uint32_t)count);
    uint32_t slot = parent->first, previous = QUERN__SLOT_NONE;
    for (int i = 0; i < count; i++) {
        cr_assert_eq(slot, slot_of((uint32_t)naive->children[target][i]));
        cr_assert_eq(quern__links_at(&links, slot)->previous, previous);
        previous = slot;
        slot = quern__links_at(&links, slot)->next;
    }
    cr_assert_eq(slot, QUERN__SLOT_NONE);
    cr_assert_eq(parent->last, previous);
}

static void check_all(const naive_links *naive)
{
    for (int i = 0; i < SLOTS; i++) {
        cr_assert_eq(quern__links_target(&links, slot_of((uint32_t)i)), slot_or_none(naive->target[i]));
        check_list(naive, i);
    }
}

static int random_child(random_source *random, const naive_links *naive, int target)
{
    const int count = naive->count[target];
    const int at = (int)random_below(random, (uint32_t)count + 1);
    return at == count ? -1 : naive->children[target][at];
}

/* ------------------------------------------------------------------------------------------ tests */

Test(links, slots_without_pages_have_no_links)
{
    cr_assert_null(quern__links_find(&links, FAR));
    cr_assert_eq(quern__links_target(&links, FAR), QUERN__SLOT_NONE);
    cr_assert_eq(quern__links_first(&links, FAR), QUERN__SLOT_NONE);
    cr_assert_eq(quern__links_level(&links, FAR), 0u);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
}

Test(links, only_reserved_pages_exist)
{
    cr_assert(quern__links_reserve(&links, &allocator, FAR));
    cr_assert(quern__links_reserve(&links, &allocator, FAR + 1));
    cr_assert_eq(links.held_count, 1u);
    cr_assert_null(quern__links_find(&links, FAR - QUERN__LINK_PAGE_SLOTS));
    cr_assert_eq(quern__link_pages_held_bytes(&pages), (uint64_t)QUERN__LINK_BLOCK_BYTES);
}

Test(links, random_operations_agree_with_naive_lists)
{
    static naive_links naive;
    random_source random = {.state = 5};
    naive_init(&naive);
    reserve_all();
    for (uint32_t step = 0; step < 20000; step++) {
        const int source = (int)random_below(&random, SLOTS), target = (int)random_below(&random, 6);
        if (naive.target[source] < 0 && source != target) {
            const int before = random_child(&random, &naive, target);
            quern__links_link(&links, slot_of((uint32_t)source), slot_of((uint32_t)target),
                              slot_or_none(before));
            naive_link(&naive, source, target, before);
        } else if (naive.target[source] >= 0 && step % 2 == 0) {
            quern__links_unlink(&links, slot_of((uint32_t)source));
            naive_unlink(&naive, source);
        } else if (naive.target[source] >= 0) {
            const int its = naive.target[source], before = random_child(&random, &naive, its);
            quern__links_move_before(&links, slot_of((uint32_t)source), slot_or_none(before));
            if (before != source) {
                naive_unlink(&naive, source);
                naive_link(&naive, source, its, before);
            }
        }
        check_all(&naive);
    }
}

Test(links, ancestors_are_found_by_walking_up)
{
    reserve_all();
    for (uint32_t i = 1; i < CHAIN; i++) {
        quern__links_link(&links, slot_of(i), slot_of(i - 1), QUERN__SLOT_NONE);
        quern__links_at(&links, slot_of(i))->level =
            i < QUERN_MAX_RELATION_LEVEL ? i : QUERN_MAX_RELATION_LEVEL;
    }
    for (uint32_t above = 0; above < CHAIN; above++)
        for (uint32_t below = 0; below < CHAIN; below++)
            cr_assert_eq(quern__links_is_at_or_above(&links, slot_of(above), slot_of(below)),
                         above <= below);
    cr_assert_not(quern__links_is_at_or_above(&links, slot_of(0), slot_of(CHAIN)));
    cr_assert_not(quern__links_is_at_or_above(&links, slot_of(0), FAR));
}

Test(links, trim_releases_pages_without_links)
{
    reserve_all();
    cr_assert(quern__links_reserve(&links, &allocator, FAR));
    cr_assert_eq(links.held_count, 4u);
    quern__links_link(&links, slot_of(1), slot_of(2), QUERN__SLOT_NONE); /* uses two of the pages */
    quern__links_trim(&links, &allocator);
    cr_assert_eq(links.held_count, 2u);
    cr_assert_eq(quern__links_target(&links, slot_of(1)), slot_of(2));
    quern__links_unlink(&links, slot_of(1));
    quern__links_trim(&links, &allocator);
    cr_assert_eq(links.held_count, 0u);
    cr_assert_eq(quern__link_pages_held_bytes(&pages), 0u);
    reserve_all();
    cr_assert_eq(links.held_count, 3u);
}

/* Two relations allocate pages alternately, more than fit a block. */
Test(links, shared_blocks_are_released_when_all_pages_are_free)
{
    enum { PAGES = QUERN__LINK_BLOCK_PAGES };
    quern__links others = {.memory = &pages};
    for (uint32_t page = 0; page < PAGES; page++) {
        const uint32_t slot = page * QUERN__LINK_PAGE_SLOTS;
        cr_assert(quern__links_reserve(&links, &allocator, slot));
        cr_assert(quern__links_reserve(&others, &allocator, slot));
        quern__links_at(&links, slot)->count = quern__links_at(&others, slot)->count = page + 1;
    }
    cr_assert_eq(pages.block_count, 2u);
    for (uint32_t page = 0; page < PAGES; page++) {
        cr_assert_eq(quern__links_at(&links, page * QUERN__LINK_PAGE_SLOTS)->count, page + 1);
        cr_assert_eq(quern__links_at(&others, page * QUERN__LINK_PAGE_SLOTS)->count, page + 1);
    }
    /* the first block contains the first half of the pages of each relation */
    for (uint32_t page = 0; page < PAGES / 2; page++) {
        quern__links_at(&links, page * QUERN__LINK_PAGE_SLOTS)->count = 0;
        quern__links_at(&others, page * QUERN__LINK_PAGE_SLOTS)->count = 0;
    }
    quern__links_trim(&links, &allocator);
    cr_assert_eq(pages.block_count, 2u);
    quern__links_trim(&others, &allocator);
    cr_assert_eq(pages.block_count, 1u);
    cr_assert(quern__links_reserve(&others, &allocator, 0));
    cr_assert_eq(pages.block_count, 2u);
    quern__links_release(&others, &allocator);
}

Test(links, failed_page_allocation_changes_nothing)
{
    cr_assert(quern__links_reserve(&links, &allocator, 0));
    for (uint32_t i = 1; i < QUERN__LINK_BLOCK_PAGES; i++) /* the next page needs a block */
        cr_assert(quern__links_reserve(&links, &allocator, i * QUERN__LINK_PAGE_SLOTS));
    for (uint32_t lacking = 1; lacking <= 2; lacking++) {
        failing_allocator_fail_at(memory, lacking);
        cr_assert_eq(quern__links_reserve(&links, &allocator, lacking * 100 * FAR), false);
        failing_allocator_heal(memory);
        cr_assert_eq(links.held_count, (uint32_t)QUERN__LINK_BLOCK_PAGES);
        cr_assert_eq(pages.block_count, 1u);
    }
    cr_assert(quern__links_reserve(&links, &allocator, 100 * FAR));
}

/* ---------------------------------------------------------------------------- the log of a transaction */

/* Transactions over links and names alone: the entries of a log, and that reverting restores every link, level and name.
 * Other tests check that rows agree with links afterwards (test_random_relations, test_related). */

enum {
    ENTITIES = 40,
    NODE_BYTES = offsetof(quern__link_node, level) + sizeof(uint32_t),
    STEPS = 30,
    PROGRAMS = 100
};
static quern_world *world;
static quern__storage *storage;
static quern__relation *relations[3]; /* the hierarchy; an unordered one with levels; one without levels */
static uint32_t slots[ENTITIES];
static quern__link_node links_before[3][ENTITIES];
static char names_before[ENTITIES][QUERN_MAX_ENTITY_NAME_BYTES + 1];

static void open_world(void)
{
    memory = failing_allocator_create();
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &world));
    storage = &world->storage;
    quern_relation handles[3] = {quern_world_parent(world)};
    must(quern_relation_register(world, &(quern_relation_def){.name = "carrier", .levels = true},
                                 &handles[1]));
    must(quern_relation_register(world, &(quern_relation_def){.name = "likes"}, &handles[2]));
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern_entity entity = setup_entity_with(world, NULL, 0);
        slots[i] = quern_entity_index(entity);
        for (uint32_t k = 0; k < 3 && i > 0; k++)
            must(quern_entity_relate(world, entity, handles[k],
                                     quern__entity_of_slot(storage, slots[(i - 1) / 2])));
        if (i % 3 == 0) must(quern_entity_set_name(world, entity, i % 2 == 0 ? "even" : "odd"));
    }
    for (uint32_t k = 0; k < 3; k++)
        relations[k] = quern__relation_of(storage, handles[k]);
}

static void close_world(void)
{
    assert_at_end(quern_world_validate(world) == QUERN_OK);
    assert_at_end(storage->relations->log.changes.count == 0u);
    quern_world_destroy(world);
    failing_allocator_close(memory);
}

TestSuite(link_log, .init = open_world, .fini = close_world);

/* --------------------------------------------------------------------------------- states to compare */

static void save_state(void)
{
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern__name *name = quern__names_of(storage->names, slots[i]);
        memset(names_before[i], 0, sizeof names_before[i]);
        if (name != NULL) memcpy(names_before[i], name->text, strlen(name->text));
        for (uint32_t k = 0; k < 3; k++)
            links_before[k][i] = *quern__links_at(&relations[k]->links, slots[i]);
    }
}

static void assert_state(void)
{
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern__name *name = quern__names_of(storage->names, slots[i]);
        cr_assert_str_eq(name != NULL ? name->text : "", names_before[i]);
        if (name != NULL)
            cr_assert_eq(quern__names_find(storage->names, quern__parent_slot(storage, slots[i]),
                                           name->text, (uint32_t)strlen(name->text)),
                         slots[i]);
        for (uint32_t k = 0; k < 3; k++)
            cr_assert_eq(
                memcmp(&links_before[k][i], quern__links_at(&relations[k]->links, slots[i]), NODE_BYTES), 0,
                "entity %u of relation %u", i, k);
    }
}

static void take_back(void)
{
    quern__link_log_revert(storage);
    quern__link_log_clear(&storage->relations->log);
    assert_state();
}

/* ------------------------------------------------------------------------------------ random changes */

static quern_result change_target(random_source *random)
{
    quern__relation *relation = relations[random_below(random, 3)];
    const uint32_t source = slots[random_below(random, ENTITIES)];
    uint32_t target = random_below(random, ENTITIES + 5);
    target = target < ENTITIES ? slots[target] : QUERN__SLOT_NONE;
    if (target == source || target == quern__links_target(&relation->links, source) ||
        (target != QUERN__SLOT_NONE && quern__links_is_at_or_above(&relation->links, source, target)) ||
        !quern__naming_allows_target(storage, relation, source, target))
        return QUERN_OK;
    return quern__link_log_set_target(storage, relation, source, target, NULL);
}

static quern_result change_name(random_source *random)
{
    static const char *const texts[] = {"even", "odd", "third", "a name that is longer than others"};
    const uint32_t slot = slots[random_below(random, ENTITIES)], parent = quern__parent_slot(storage, slot);
    const char *text = texts[random_below(random, 4)];
    const uint32_t bytes = (uint32_t)strlen(text);
    if (random_below(random, 4) == 0) return quern__link_log_drop_name(storage, slot);
    if (quern__names_find(storage->names, parent, text, bytes) != QUERN__SLOT_NONE) return QUERN_OK;
    return quern__link_log_put_name(storage, slot, parent, text, bytes);
}

static quern_result change_at_random(uint64_t seed)
{
    random_source random = {seed};
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < STEPS && result == QUERN_OK; i++)
        result = random_below(&random, 4) > 0 ? change_target(&random) : change_name(&random);
    return result;
}

Test(link_log, revert_restores_links_levels_and_names)
{
    save_state();
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        cr_assert_eq(change_at_random(seed), QUERN_OK);
        cr_assert_gt(storage->relations->log.changes.count, 0u);
        take_back();
    }
}

Test(link_log, failed_change_is_reverted_with_all_before_it)
{
    save_state();
    uint64_t failed = 1;
    for (uint64_t skipped = 0; failed > 0; skipped++) {
        const uint64_t failed_before = failing_allocator_failed_count(memory);
        quern__link_log_release(&storage->relations->log, &storage->allocator);
        quern__names_trim(storage->names, &storage->allocator);
        failing_allocator_fail_at(memory, 1 + skipped);
        const quern_result result = change_at_random(1);
        failing_allocator_heal(memory);
        failed = failing_allocator_failed_count(memory) - failed_before;
        cr_assert_eq(result, failed > 0 ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
        if (failed > 0) cr_assert(strstr(quern_error_message(), "links and names") != NULL);
        take_back();
        cr_assert(skipped > 1 || failed > 0, "the log and the names need memory");
    }
}

/* -------------------------------------------------------------------------------------- what is listed */

Test(link_log, lists_entities_below_in_breadth_first_order_with_the_tiers_of_their_rows)
{
    save_state();
    cr_assert_eq(quern__link_log_set_target(storage, relations[0], slots[1], slots[2], NULL), QUERN_OK);
    const quern__link_log *log = &storage->relations->log;
    static const uint32_t numbers[] = {1, 3, 4, 7, 8, 9, 10, 15};
    for (uint32_t i = 0; i < 8; i++) {
        const quern__link_change *change = &log->changes.items[i];
        const uint32_t n = numbers[i], depth = n < 3 ? 1 : n < 7 ? 2 : n < 15 ? 3 : 4;
        cr_assert_eq(change->slot, slots[n]);
        cr_assert_eq(change->relation, relations[0]);
        cr_assert_eq(change->kind, i == 0 ? QUERN__CHANGE_TARGET : QUERN__CHANGE_LEVEL);
        cr_assert_eq(change->old_target, slots[(n - 1) / 2]);
        cr_assert_eq(change->old_level, depth);
        cr_assert_eq(change->row_tier, depth + 2,
                     "one level deeper, and 0 is kept for rows without a target");
        cr_assert_eq(quern__links_level(&relations[0]->links, slots[n]), depth + 1);
    }
    take_back();
}

Test(link_log, rows_move_only_if_the_tier_changes)
{
    save_state();
    const quern__link_log *log = &storage->relations->log;
    cr_assert_eq(quern__link_log_set_target(storage, relations[0], slots[5], slots[1], NULL), QUERN_OK);
    cr_assert_eq(log->changes.count, 1u, "all below stay on their levels");
    cr_assert_eq(log->changes.items[0].row_tier, QUERN__ROW_STAYS);
    cr_assert_eq(quern__link_log_set_target(storage, relations[2], slots[5], slots[1], NULL), QUERN_OK);
    cr_assert_eq(log->changes.items[1].row_tier, QUERN__ROW_STAYS);
    cr_assert_eq(quern__link_log_set_target(storage, relations[2], slots[5], QUERN__SLOT_NONE, NULL),
                 QUERN_OK);
    cr_assert_eq(log->changes.items[2].row_tier, 0u);
    cr_assert_eq(quern__link_log_set_target(storage, relations[2], slots[5], slots[2], NULL), QUERN_OK);
    cr_assert_eq(log->changes.items[3].row_tier, 1u);
    take_back();
}

Test(link_log, unlinking_a_destroyed_source_keeps_all_levels)
{
    save_state();
    cr_assert_eq(quern__link_log_unlink(storage, relations[0], slots[1]), QUERN_OK);
    cr_assert_eq(quern__links_target(&relations[0]->links, slots[1]), QUERN__SLOT_NONE);
    cr_assert_eq(quern__links_level(&relations[0]->links, slots[1]), 1u);
    cr_assert_eq(quern__links_at(&relations[0]->links, slots[0])->count, 1u);
    cr_assert_eq(storage->relations->log.changes.count, 1u);
    take_back();
}

Test(link_log, skips_entities_of_a_cascade_and_all_below)
{
    save_state();
    quern__cascade *cascade = &storage->relations->cascade;
    must(quern__cascade_begin(cascade, storage));
    must(quern__cascade_add(cascade, storage, slots[3]));
    cr_assert_eq(quern__link_log_set_target(storage, relations[1], slots[1], QUERN__SLOT_NONE, cascade),
                 QUERN_OK);
    cr_assert_eq(quern__links_level(&relations[1]->links, slots[1]), 0u);
    cr_assert_eq(quern__links_level(&relations[1]->links, slots[4]), 1u);
    cr_assert_eq(quern__links_level(&relations[1]->links, slots[3]), 2u);
    cr_assert_eq(quern__links_level(&relations[1]->links, slots[7]), 3u);
    quern__cascade_end(cascade);
    take_back();
}

Test(link_log, level_changes_mark_link_groups_as_touched)
{
    quern__links *hierarchy = &relations[0]->links;
    uint32_t child = 0;
    while (child < 4 * QUERN__LINK_GROUP)
        child = quern_entity_index(setup_entity_with(world, NULL, 0));
    must(quern__relate(storage, relations[0], quern__entity_of_slot(storage, child),
                       quern__entity_of_slot(storage, slots[1])));
    save_state();
    cr_assert(quern__marks_extend(&hierarchy->touched, &storage->allocator, hierarchy->pages.count));
    hierarchy->touched.items[0] = 0;
    cr_assert_eq(quern__link_log_set_target(storage, relations[0], slots[1], slots[2], NULL), QUERN_OK);
    cr_assert_neq(hierarchy->touched.items[0] >> (child >> QUERN__LINK_GROUP_LOG2) & 1, 0u);
    quern__marks_release(&hierarchy->touched, &storage->allocator);
    take_back();
}
