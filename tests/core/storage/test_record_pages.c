/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: optimised */
/* Tests of record pages that are released and allocated again, against a model that keeps all slots. */

#include "core/storage/entity.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

enum { PAGE = QUERN__PAGE_RECORDS, MAX_SLOTS = 6 * PAGE };

static failing_allocator *memory;
static quern_allocator allocator;
static quern__entities entities;

static void open_entities(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    quern__entities_init(&entities, quern__first_handle_high(3, 1));
}

static void close_entities(void)
{
    quern__entities_release(&entities, &allocator);
    failing_allocator_close(memory);
}

TestSuite(record_pages, .init = open_entities, .fini = close_entities);

static quern_entity take(void)
{
    cr_assert_eq(quern__entities_reserve(&entities, &allocator, 1), QUERN_OK);
    quern_entity entity = quern__entities_allocate(&entities);
    quern__entities_record(&entities, quern_entity_index(entity))->location =
        1; /* no chunk, but not a free slot */
    return entity;
}

static void take_many(quern_entity *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = take();
}

static void give_many(const quern_entity *given, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        quern__entities_free_or_retire(&entities, quern_entity_index(given[i]));
}

static void drop_pages(void)
{
    quern__entities_drop_pages(&entities, &allocator);
}

static quern_entity taken[MAX_SLOTS];

static uint64_t held_pages(void)
{
    return quern__entities_record_bytes(&entities) / sizeof(quern__record) / PAGE;
}

static uint32_t life_of(quern_entity entity)
{
    return quern__generation_use_count(entities.first_handle_high, quern_entity_generation(entity));
}

Test(record_pages, without_alive_entities_are_released)
{
    take_many(taken, 3 * PAGE);
    const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    give_many(&taken[PAGE - 1], PAGE + 1);
    drop_pages();
    cr_assert_eq(held_pages(), 2u);
    cr_assert_eq(bytes - failing_allocator_outstanding_bytes(memory), PAGE * sizeof(quern__record));
    cr_assert_eq(entities.absent_count, (uint32_t)PAGE);
    cr_assert_eq(entities.free_count, 1u);
    cr_assert_eq(quern__entities_alive_count(&entities), 2u * PAGE - 1);
}

Test(record_pages, with_one_alive_entity_are_kept)
{
    take_many(taken, 2 * PAGE);
    give_many(&taken[1], PAGE - 1);
    drop_pages();
    cr_assert_eq(held_pages(), 2u);
    cr_assert_eq(quern_entity_index(take()), PAGE - 1u, "the last one freed is the first one used");
}

Test(record_pages, that_are_absent_have_no_alive_handle)
{
    take_many(taken, PAGE + 10);
    give_many(taken, PAGE);
    drop_pages();
    for (uint32_t i = 0; i < PAGE; i++) {
        cr_assert_null(quern__entities_find(&entities, taken[i]));
        const quern_entity next = {taken[i].bits + (1ull << 32)};
        cr_assert_null(quern__entities_find(&entities, next), "a handle that may come later");
    }
    cr_assert_null(quern__entities_find(&entities, quern_entity_null()));
    cr_assert_null(quern__entities_find(&entities, (quern_entity){7}), "generation 0 is none");
    cr_assert_eq(quern__entities_check(&entities, taken[5]), QUERN_ERROR_STALE_ENTITY);
    cr_assert_not_null(quern__entities_find(&entities, taken[PAGE]));
}

/* One slot was used five times, the others once. */
Test(record_pages, are_allocated_again_with_an_unused_generation)
{
    take_many(taken, PAGE);
    quern_entity often = taken[77];
    for (uint32_t i = 0; i < 4; i++) {
        quern__entities_free_or_retire(&entities, 77);
        often = take();
    }
    cr_assert_eq(life_of(often), 5u);
    taken[77] = often;
    give_many(taken, PAGE);
    drop_pages();
    cr_assert_eq(held_pages(), 0u);
    for (uint32_t i = 0; i < PAGE; i++) {
        const quern_entity entity = take();
        cr_assert_eq(quern_entity_index(entity), i, "the lowest first");
        cr_assert_eq(life_of(entity), 6u);
        cr_assert_null(quern__entities_find(&entities, taken[i]));
    }
    cr_assert_eq(quern_entity_index(take()), (uint32_t)PAGE);
}

/* Generation 1 after the highest generation is a later use, not an earlier one. */
Test(record_pages, find_the_latest_generation_after_a_wrap)
{
    take_many(taken, 3);
    quern__entities_record(&entities, 1)->handle_high |= QUERN__MAX_GENERATION;
    give_many(taken, 3);
    cr_assert_eq(quern__record_generation(quern__entities_record(&entities, 1)), 1u);
    drop_pages();
    cr_assert_eq(held_pages(), 0u);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(quern_entity_generation(take()), 1u);
}

Test(record_pages, with_a_slot_retired_or_in_its_last_generation_are_kept)
{
    take_many(taken, 2);
    const uint32_t last = entities.first_handle_high - 1;
    quern__entities_record(&entities, 1)->handle_high = last - 1;
    give_many(taken, 2);
    cr_assert_eq(quern__entities_record(&entities, 1)->handle_high, last);
    drop_pages();
    cr_assert_eq(held_pages(), 1u);
    quern_entity in_last_life = take();
    cr_assert_eq(in_last_life.bits >> 32, last);
    give_many(&in_last_life, 1);
    cr_assert_eq(entities.retired_count, 1u);
    drop_pages();
    cr_assert_eq(held_pages(), 1u);
    cr_assert_eq(quern_entity_index(take()), 0u);
    cr_assert_eq(quern_entity_index(take()), 2u, "the retired slot never comes back");
}

Test(record_pages, that_are_partly_used_continue_after_being_absent)
{
    take_many(taken, PAGE + 100);
    give_many(taken, PAGE + 100);
    drop_pages();
    drop_pages();
    cr_assert_eq(entities.absent_count, PAGE + 100u);
    for (uint32_t i = 0; i < PAGE + 200; i++) {
        const quern_entity entity = take();
        cr_assert_eq(quern_entity_index(entity), i);
        cr_assert_eq(life_of(entity), i < PAGE + 100 ? 2u : 1u);
    }
}

Test(record_pages, remain_absent_without_memory)
{
    take_many(taken, 3 * PAGE);
    give_many(taken, 3 * PAGE);
    drop_pages();
    for (uint32_t failing = 1; failing <= 4; failing++) {
        failing_allocator_fail_at(memory, failing);
        cr_assert_eq(quern__entities_reserve(&entities, &allocator, 3 * PAGE + 1),
                     QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(entities.free_count + entities.absent_count, 3u * PAGE);
        cr_assert_eq(entities.slot_count, 3u * PAGE);
        failing_allocator_heal(memory);
        drop_pages();
        cr_assert_eq(held_pages(), 0u, "none of the slots lives");
    }
    for (uint32_t i = 0; i < 3 * PAGE + 1; i++)
        cr_assert_eq(quern_entity_index(take()), i);
}

/* --------------------------------------------------------------------------------------------- peeking */

/* Peeks handles of free slots, of an absent page, and of unused slots. */
Test(record_pages, peek_returns_the_next_handles)
{
    enum { COUNT = PAGE + 5 + 3 };
    static quern_entity peeked[COUNT];
    take_many(taken, 2 * PAGE);
    give_many(taken, PAGE);
    give_many(&taken[PAGE + 10], 5);
    drop_pages();
    cr_assert_eq(held_pages(), 1u);
    cr_assert_eq(quern__entities_reserve(&entities, &allocator, COUNT), QUERN_OK);
    const quern__entities before = entities;
    quern__entities_peek(&entities, COUNT, peeked);
    cr_assert_eq(memcmp(&before, &entities, sizeof before), 0, "nothing is taken");
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_null(quern__entities_find(&entities, peeked[i]), "it does not live yet");
        cr_assert_eq(take().bits, peeked[i].bits);
    }
}

/* ----------------------------------------------------------------------------------- random programs */

/* All slots, and the free ones in order of use: the last of the list first. */
typedef struct model {
    uint32_t lives[MAX_SLOTS]; /* use count of the alive entity, or of the next one */
    bool is_alive[MAX_SLOTS];
    uint32_t free[MAX_SLOTS];
    uint32_t alive[MAX_SLOTS];
    uint32_t slot_count, free_count, alive_count;
    quern_entity last[MAX_SLOTS]; /* last handle of the slot */
} model;

static model expected;

static void model_take(void)
{
    cr_assert_eq(quern__entities_reserve(&entities, &allocator, 1), QUERN_OK);
    uint32_t slot = expected.free_count > 0 ? expected.free[--expected.free_count] : expected.slot_count++;
    if (expected.lives[slot] == 0) expected.lives[slot] = 1;
    const quern_entity entity = take();
    cr_assert_eq(quern_entity_index(entity), slot);
    cr_assert_eq(life_of(entity), expected.lives[slot]);
    cr_assert_null(quern__entities_find(&entities, expected.last[slot]));
    expected.last[slot] = entity;
    expected.is_alive[slot] = true;
    expected.alive[expected.alive_count++] = slot;
}

static void model_give(uint32_t i)
{
    const uint32_t slot = expected.alive[i];
    expected.alive[i] = expected.alive[--expected.alive_count];
    expected.is_alive[slot] = false;
    expected.lives[slot]++;
    expected.free[expected.free_count++] = slot;
    quern__entities_free_or_retire(&entities, slot);
}

static bool model_is_dead(uint32_t page)
{
    for (uint32_t i = page * PAGE; i < (page + 1) * PAGE && i < expected.slot_count; i++)
        if (expected.is_alive[i]) return false;
    return true;
}

/* Moves the slots of unused pages to the bottom of the list, the lowest uppermost, with one use count. */
static void model_drop(void)
{
    static uint32_t order[MAX_SLOTS];
    bool is_dead[MAX_SLOTS / PAGE];
    uint32_t count = 0;
    for (uint32_t page = (expected.slot_count + PAGE - 1) / PAGE; page-- > 0;) {
        is_dead[page] = model_is_dead(page);
        if (!is_dead[page]) continue;
        uint32_t most = 0, end = (page + 1) * PAGE;
        if (end > expected.slot_count) end = expected.slot_count;
        for (uint32_t i = page * PAGE; i < end; i++)
            if (expected.lives[i] > most) most = expected.lives[i];
        for (uint32_t i = end; i-- > page * PAGE;) {
            expected.lives[i] = most;
            order[count++] = i;
        }
    }
    for (uint32_t i = 0; i < expected.free_count; i++)
        if (!is_dead[expected.free[i] / PAGE]) order[count++] = expected.free[i];
    cr_assert_eq(count, expected.free_count);
    memcpy(expected.free, order, count * sizeof *order);
    drop_pages();
}

static void random_step(random_source *random)
{
    switch (random_below(random, 4)) {
    case 0:
        for (uint32_t i = random_below(random, 2 * PAGE); i > 0 && expected.alive_count < 4 * PAGE; i--)
            model_take();
        break;
    case 1:
        for (uint32_t i = random_below(random, 2 * PAGE); i > 0 && expected.alive_count > 0; i--)
            model_give(random_below(random, expected.alive_count));
        break;
    case 2: /* destroys a whole page, as when a game level ends */
        for (uint32_t i = expected.alive_count, page = random_below(random, 4); i-- > 0;)
            if (expected.alive[i] / PAGE == page) model_give(i);
        break;
    default:
        failing_allocator_fail_from(memory, random_below(random, 3) + 1);
        (void)quern__entities_reserve(&entities, &allocator, random_below(random, 3 * PAGE));
        failing_allocator_heal(memory);
        break;
    }
    /* often twice in succession, and with pages that an earlier reservation allocated again */
    if (random_chance(random, 60)) model_drop();
}

Test(record_pages, released_and_allocated_again_match_the_model)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        random_source random = {.state = seed};
        memset(&expected, 0, sizeof expected);
        for (uint32_t step = 0; step < 60; step++)
            random_step(&random);
        cr_assert_eq(quern__entities_alive_count(&entities), expected.alive_count);
        quern__entities_release(&entities, &allocator);
        quern__entities_init(&entities, quern__first_handle_high(3, 1 + (uint32_t)seed));
    }
}
