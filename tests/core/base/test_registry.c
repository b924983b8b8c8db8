/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/containers.h"
#include "tests/support/failing_allocator.h"

#include <criterion/criterion.h>

enum { MOST_THINGS = 3 };

typedef struct thing {
    uint32_t number;
    struct {
        char name[8];
    } type;
} thing;

static const quern__registry things =
    QUERN__REGISTRY_OF_ITEMS("thing", "box", MOST_THINGS, QUERN_ERROR_UNKNOWN_EVENT, thing, type.name);
static const quern__registry pointers =
    QUERN__REGISTRY_OF_POINTERS("thing", "box", MOST_THINGS, QUERN_ERROR_UNKNOWN_EVENT, thing, type.name);

static thing items[] = {{1, {"one"}}, {2, {"two"}}, {3, {"one"}}};
static thing *const item_pointers[] = {&items[0], &items[1], &items[2]};

static void assert_found(const quern__registry *registry, const void *list)
{
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "one"), 0u);
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "two"), 1u);
    cr_assert_eq(quern__registry_find(registry, list, 1, 3, "one"), 2u, "from 1 on");
    cr_assert_eq(quern__registry_find(registry, list, 1, 2, "one"), 2u, "the third is beyond the count");
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "tw"), 3u);
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, ""), 3u);
    cr_assert_eq(quern__registry_find(registry, NULL, 0, 0, "one"), 0u, "nothing is registered");
}

Test(registry, items_and_pointers_to_items_are_found_by_name)
{
    assert_found(&things, items);
    assert_found(&pointers, item_pointers);
}

Test(registry, a_new_name_is_neither_empty_nor_taken)
{
    cr_assert_eq(quern__registry_check_new(&things, items, 3, "three"), QUERN_OK);
    cr_assert_eq(quern__registry_check_new(&things, items, 1, "two"), QUERN_OK);
    cr_assert_eq(quern__registry_check_new(&things, items, 3, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern__registry_check_new(&things, items, 3, ""), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(quern_error_message(), "a thing needs a name, and this one is empty: set a name");
    cr_assert_eq(quern__registry_check_new(&things, items, 3, "two"), QUERN_ERROR_DUPLICATE_NAME);
    cr_assert_str_eq(quern_error_message(), "the box already has a thing 'two': choose another name");
}

Test(registry, reserving_fails_at_the_limit_and_without_memory)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    QUERN__ARRAY(thing) list = {0};
    failing_allocator_fail_from(memory, 1);
    cr_assert_eq(quern__registry_reserve(&things, &allocator, &list, "one"), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_str_eq(quern_error_message(), "thing 'one': no memory to register it");
    cr_assert_null(list.items);
    failing_allocator_heal(memory);
    for (; list.count < MOST_THINGS; list.count++)
        cr_assert_eq(quern__registry_reserve(&things, &allocator, &list, "one"), QUERN_OK);
    cr_assert_geq(list.capacity, (uint32_t)MOST_THINGS);
    cr_assert_eq(quern__registry_reserve(&things, &allocator, &list, "four"), QUERN_ERROR_LIMIT);
    cr_assert_str_eq(quern_error_message(),
                     "thing 'four': the box has 3 already (MOST_THINGS): register fewer");
    quern__array_release(&allocator, &list);
    failing_allocator_close(memory);
}

Test(registry, messages_distinguish_null_and_foreign_handles)
{
    cr_assert_eq(quern__registry_fail_unknown(&things, 0, 7), QUERN_ERROR_UNKNOWN_EVENT);
    cr_assert_str_eq(quern_error_message(), "the thing handle is null: register it first");
    cr_assert_eq(quern__registry_fail_unknown(&things, 0x5000001, 7), QUERN_ERROR_UNKNOWN_EVENT);
    cr_assert_str_eq(
        quern_error_message(),
        "thing handle 0x5000001 is not of this world (tag 7): register the thing in this world");
}
