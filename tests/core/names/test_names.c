/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/names/name_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

/* The table of names alone, with distant slots, compared with a plain list. */

enum { SLOT_COUNT = 400, STRIDE = 1021, TEXT_COUNT = 60, PARENT_COUNT = 5 };

typedef struct naive_name {
    bool is_there;
    uint32_t parent;
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
} naive_name;

static failing_allocator *memory;
static quern_allocator allocator;
static quern__names names;
static naive_name wanted[SLOT_COUNT];

static void open_names(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
}

static void close_names(void)
{
    quern__names_release(&names, &allocator);
    failing_allocator_close(memory);
}

TestSuite(names, .init = open_names, .fini = close_names);

static uint32_t find_wanted(uint32_t parent, const char *text)
{
    for (uint32_t i = 0; i < SLOT_COUNT; i++)
        if (wanted[i].is_there && wanted[i].parent == parent && strcmp(wanted[i].text, text) == 0)
            return i * STRIDE;
    return QUERN__SLOT_NONE;
}

static void make_text(uint32_t number, char text[QUERN_MAX_ENTITY_NAME_BYTES + 1])
{
    const int bytes = snprintf(text, QUERN_MAX_ENTITY_NAME_BYTES + 1, "n%u", number);
    if (number % 7 == 0) /* maximal length */
        memset(text + bytes, 'x', (size_t)(QUERN_MAX_ENTITY_NAME_BYTES - bytes));
    if (number % 7 == 0) text[QUERN_MAX_ENTITY_NAME_BYTES] = '\0';
}

static void check_all(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        const quern__name *name = quern__names_of(&names, i * STRIDE);
        cr_assert_eq(name != NULL, wanted[i].is_there, "slot %u", i * STRIDE);
        if (name == NULL) continue;
        cr_assert_str_eq(name->text, wanted[i].text);
        count++;
    }
    cr_assert_eq(names.count, count);
    for (uint32_t parent = 0; parent < PARENT_COUNT; parent++)
        for (uint32_t i = 0; i < TEXT_COUNT; i++) {
            char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
            make_text(i, text);
            cr_assert_eq(quern__names_find(&names, parent, text, (uint32_t)strlen(text)),
                         find_wanted(parent, text));
        }
}

static void put(uint32_t i, uint32_t parent, const char *text)
{
    if (wanted[i].is_there || find_wanted(parent, text) != QUERN__SLOT_NONE) return;
    while (!quern__names_reserve(&names, &allocator, i * STRIDE))
        check_all();
    quern__names_put(&names, i * STRIDE, parent, text, (uint32_t)strlen(text));
    wanted[i] = (naive_name){.is_there = true, .parent = parent};
    snprintf(wanted[i].text, sizeof wanted[i].text, "%s", text);
}

static void step(random_source *random)
{
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
    const uint32_t i = random_below(random, SLOT_COUNT), parent = random_below(random, PARENT_COUNT);
    make_text(random_below(random, TEXT_COUNT), text);
    const uint32_t kind = random_below(random, 100);
    if (kind < 50) {
        put(i, parent, text);
    } else if (kind < 75) {
        quern__names_drop(&names, i * STRIDE);
        wanted[i].is_there = false;
    } else if (kind < 99) {
        if (wanted[i].is_there && find_wanted(parent, wanted[i].text) != QUERN__SLOT_NONE) return;
        quern__names_move(&names, i * STRIDE, parent);
        if (wanted[i].is_there) wanted[i].parent = parent;
    } else {
        quern__names_trim(&names, &allocator);
    }
}

static void run_program(uint64_t seed)
{
    random_source random = {seed};
    memset(wanted, 0, sizeof wanted);
    for (uint32_t i = 0; i < 4000; i++) {
        step(&random);
        if (i % 100 == 0) check_all();
    }
    check_all();
}

Test(names, random_programs_agree_with_a_list)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        run_program(seed);
        quern__names_release(&names, &allocator);
    }
}

Test(names, out_of_memory_loses_no_name)
{
    failing_allocator_fail_often(memory, 60, 3);
    for (uint64_t seed = 11; seed < 15; seed++) {
        run_program(seed);
        quern__names_release(&names, &allocator);
    }
    cr_assert_gt(failing_allocator_failed_count(memory), 100u);
}

Test(names, text_of_a_name_never_moves)
{
    put(0, 1, "kept");
    const char *text = quern__names_of(&names, 0)->text;
    for (uint32_t i = 1; i < SLOT_COUNT; i++) {
        char other[16];
        snprintf(other, sizeof other, "other %u", i);
        put(i, 1, other);
    }
    quern__names_move(&names, 0, 2);
    for (uint32_t i = 1; i < SLOT_COUNT; i++)
        quern__names_drop(&names, i * STRIDE);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_of(&names, 0)->text, text);
    cr_assert_str_eq(text, "kept");
    cr_assert_eq(quern__names_find(&names, 2, "kept and more", 4), 0u);
}

Test(names, trim_releases_memory_without_names)
{
    put(0, 1, "first");
    quern__names_trim(&names, &allocator);
    const uint64_t for_one = quern__names_held_bytes(&names);
    for (uint32_t i = 1; i < SLOT_COUNT; i++) {
        char other[16];
        snprintf(other, sizeof other, "other %u", i);
        put(i, 1, other);
    }
    cr_assert_gt(quern__names_held_bytes(&names), 2 * for_one);
    for (uint32_t i = 1; i < SLOT_COUNT; i++)
        quern__names_drop(&names, i * STRIDE);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_held_bytes(&names), for_one);
    quern__names_drop(&names, 0);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_held_bytes(&names), 0u);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0u);
}

Test(names, reserved_put_needs_no_memory)
{
    put(3, 1, "a");
    cr_assert(quern__names_reserve(&names, &allocator, 4 * STRIDE));
    failing_allocator_fail_from(memory, failing_allocator_call_count(memory) + 1);
    for (uint32_t i = 0; i < 3; i++) {
        quern__names_drop(&names, 3 * STRIDE);
        quern__names_put(&names, 3 * STRIDE, 2, "b", 1);
    }
    quern__names_put(&names, 4 * STRIDE, 2, "c", 1);
    cr_assert_eq(quern__names_find(&names, 2, "b", 1), 3u * STRIDE);
    cr_assert_eq(quern__names_find(&names, 2, "c", 1), 4u * STRIDE);
    failing_allocator_heal(memory);
}
