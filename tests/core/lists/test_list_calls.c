/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/lists/bag.h"
#include "tests/support/failing_allocator.h"

#include <string.h>

/* The calls of quern/list.h on lists in variables. */

static failing_allocator *memory;

static void open_memory(void)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
}

static void close_memory(void)
{
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(list_calls, .init = open_memory, .fini = close_memory);

typedef QUERN_LIST(int) int_list;

static int_list list_of(int count)
{
    int_list list = {{{0}, 0, 0}};
    for (int i = 0; i < count; i++)
        must(QUERN_LIST_PUSH(&list, int, i));
    return list;
}

static void assert_list(const int_list *list, const int *expected, uint32_t count)
{
    cr_assert_eq(list->list.count, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(list->items[i], expected[i], "element %u is %d", i, list->items[i]);
}

#define assert_ints(list, ...) \
    assert_list((list), (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

Test(list_calls, push_appends)
{
    int_list list = list_of(3);
    must(QUERN_LIST_PUSH(&list, int, 7, 8, 9));
    assert_ints(&list, 0, 1, 2, 7, 8, 9);
    quern_list_free(&list.list);
    cr_assert_eq(list.list.count, 0u);
    cr_assert_null(list.items);
}

Test(list_calls, insert_and_remove_keep_the_order)
{
    int_list list = list_of(5);
    must(QUERN_LIST_INSERT(&list, 1, int, 10, 11));
    assert_ints(&list, 0, 10, 11, 1, 2, 3, 4);
    must(QUERN_LIST_REMOVE(&list, 2, 3));
    assert_ints(&list, 0, 10, 3, 4);
    must(QUERN_LIST_REMOVE_SWAP(&list, 0));
    assert_ints(&list, 4, 10, 3);
    must(QUERN_LIST_REMOVE(&list, 0, 3));
    cr_assert_eq(list.list.count, 0u);
    quern_list_free(&list.list);
}

Test(list_calls, elements_may_come_from_the_list_itself)
{
    int_list list = list_of(12); /* has room for more: pushes grow it twofold */
    must(quern_list_insert(&list.list, sizeof(int), 0, list.items + 2, 3));
    assert_ints(&list, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    must(QUERN_LIST_RESERVE(&list, 100));
    must(quern_list_push(&list.list, sizeof(int), list.items));
    cr_assert_eq(list.items[15], 2);
    quern_list_free(&list.list);
}

Test(list_calls, resize_adds_zeros)
{
    int_list list = list_of(3);
    must(QUERN_LIST_RESIZE(&list, 1));
    must(QUERN_LIST_RESIZE(&list, 3));
    assert_ints(&list, 0, 0, 0);
    must(QUERN_LIST_RESIZE(&list, 0));
    cr_assert_eq(list.list.count, 0u);
    quern_list_free(&list.list);
}

Test(list_calls, pop_returns_the_last_element)
{
    int_list list = list_of(2);
    int last = -1;
    must(QUERN_LIST_POP(&list, &last));
    cr_assert_eq(last, 1);
    must(QUERN_LIST_POP(&list, NULL));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_POP(&list, NULL));
    quern_list_free(&list.list);
}

Test(list_calls, a_copy_needs_no_memory_and_changes_alone)
{
    int_list list = list_of(4), copy = {{{0}, 0, 0}}, other = list_of(2);
    const uint64_t calls = failing_allocator_call_count(memory);
    quern_list_copy(&copy.list, &list.list);
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    cr_assert_eq(copy.items, list.items);
    QUERN_LIST_WRITE(&copy, int)[0] = 50;
    must(QUERN_LIST_PUSH(&copy, int, 51));
    assert_ints(&list, 0, 1, 2, 3);
    assert_ints(&copy, 50, 1, 2, 3, 51);
    quern_list_copy(&other.list, &list.list);
    quern_list_copy(&other.list, &other.list);
    must(QUERN_LIST_REMOVE(&list, 0, 2));
    assert_ints(&list, 2, 3);
    quern_list_clear(&list.list);
    assert_ints(&other, 0, 1, 2, 3);
    quern_list_free(&list.list);
    quern_list_free(&copy.list);
    assert_ints(&other, 0, 1, 2, 3);
    quern_list_free(&other.list);
}

Test(list_calls, one_of_the_lists_that_share_elements_appends_in_place)
{
    int_list list = list_of(3), copy = {{{0}, 0, 0}}, again = {{{0}, 0, 0}};
    must(QUERN_LIST_RESERVE(&list, 10));
    must(QUERN_LIST_PUSH(&list, int, 3));
    quern_list_copy(&copy.list, &list.list);
    const uint64_t calls = failing_allocator_call_count(memory);
    must(QUERN_LIST_PUSH(&list, int, 10));
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    cr_assert_eq(list.items, copy.items);
    must(QUERN_LIST_PUSH(&copy, int, 20)); /* needs elements of its own */
    assert_ints(&list, 0, 1, 2, 3, 10);
    assert_ints(&copy, 0, 1, 2, 3, 20);
    quern_list_copy(&copy.list, &list.list);
    must(QUERN_LIST_PUSH(&list, int, 11));
    quern_list_copy(&again.list, &copy.list);
    must(QUERN_LIST_POP(&list, NULL));
    must(QUERN_LIST_PUSH(&list, int, 12));
    quern_list_free(&list.list);
    must(QUERN_LIST_PUSH(&again, int, 30));
    must(QUERN_LIST_PUSH(&copy, int, 31)); /* has the elements alone now, and appends in place */
    assert_ints(&again, 0, 1, 2, 3, 10, 30);
    assert_ints(&copy, 0, 1, 2, 3, 10, 31);
    quern_list_free(&copy.list);
    quern_list_free(&again.list);
}

Test(list_calls, long_lists_and_large_elements_are_appended_to)
{
    enum { COUNT = 70000, LARGE_BYTES = 70000 };
    static char large[LARGE_BYTES];
    int_list list = list_of(COUNT);
    quern_list larger = {.count = 0};
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(list.items[i], i);
    for (int i = 0; i < 5; i++) {
        memset(large, i + 1, sizeof large);
        must(quern_list_push(&larger, LARGE_BYTES, large));
    }
    for (int i = 0; i < 5; i++)
        cr_assert_eq(((const char *)larger.items)[i * LARGE_BYTES + LARGE_BYTES - 1], i + 1);
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_push(&list.list, 5, large));
    quern_list_free(&list.list);
    quern_list_free(&larger);
}

Test(list_calls, a_list_that_has_room_needs_no_memory)
{
    int_list list = {{{0}, 0, 0}};
    must(QUERN_LIST_RESERVE(&list, 50));
    cr_assert_eq(list.list.count, 0u);
    const uint64_t calls = failing_allocator_call_count(memory);
    for (int i = 0; i < 50; i++)
        must(QUERN_LIST_PUSH(&list, int, i));
    quern_list_clear(&list.list);
    for (int i = 0; i < 50; i++)
        must(QUERN_LIST_PUSH(&list, int, i));
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    quern_list_free(&list.list);
}

Test(list_calls, strings_in_lists_are_copied_and_destroyed)
{
    QUERN_LIST(quern_string) names = {{{0}, 0, 0}}, copy = {{{0}, 0, 0}};
    quern_string name = {{{0}, 0, 0}}, last = {{{0}, 0, 0}};
    for (int i = 0; i < 10; i++) {
        must(quern_string_print(&name, "a rather long name, number %d", i));
        must(QUERN_LIST_PUSH(&names, quern_string, name));
    }
    quern_list_copy(&copy.list, &names.list);
    must(quern_string_append(&QUERN_LIST_WRITE(&copy, quern_string)[3], "!"));
    cr_assert_str_eq(quern_string_text(&names.items[3]), "a rather long name, number 3");
    cr_assert_str_eq(quern_string_text(&copy.items[3]), "a rather long name, number 3!");
    must(QUERN_LIST_POP(&copy, &last));
    cr_assert_str_eq(quern_string_text(&last), "a rather long name, number 9");
    must(QUERN_LIST_REMOVE(&names, 2, 5));
    must(QUERN_LIST_REMOVE_SWAP(&names, 0));
    cr_assert_str_eq(quern_string_text(&names.items[0]), "a rather long name, number 9");
    must(QUERN_LIST_RESIZE(&names, 2));
    must(QUERN_LIST_RESIZE(&names, 4));
    cr_assert_str_eq(quern_string_text(&names.items[3]), "");
    quern_list_clear(&names.list);
    quern_string_free(&name);
    quern_string_free(&last);
    quern_list_free(&names.list);
    quern_list_free(&copy.list);
}

Test(list_calls, strings_are_set_appended_and_printed)
{
    quern_string text = {{{0}, 0, 0}}, copy = {{{0}, 0, 0}};
    cr_assert_str_eq(quern_string_text(&text), "");
    must(quern_string_set(&text, "one"));
    quern_string_copy(&copy, &text);
    must(quern_string_append(&text, ", two"));
    must(quern_string_append_bytes(&text, "three", 2));
    cr_assert_str_eq(quern_string_text(&text), "one, twoth");
    cr_assert_eq(quern_string_bytes(&text), 10u);
    cr_assert_str_eq(quern_string_text(&copy), "one");
    must(quern_string_print(&text, "%s and %d", quern_string_text(&text), 5));
    cr_assert_str_eq(quern_string_text(&text), "one, twoth and 5");
    must(quern_string_append_print(&text, "%*d", 400, 7));
    cr_assert_eq(quern_string_bytes(&text), 416u);
    cr_assert_eq(strlen(quern_string_text(&text)), 416u);
    must(quern_string_set(&text, quern_string_text(&text) + 410));
    cr_assert_str_eq(quern_string_text(&text), "     7");
    must(quern_string_set(&text, ""));
    cr_assert_str_eq(quern_string_text(&text), "");
    must(quern_string_set_bytes(&text, "abc", 1));
    cr_assert_str_eq(quern_string_text(&text), "a");
    quern_string_free(&text);
    quern_string_free(&copy);
}

Test(list_calls, wrong_calls_are_refused)
{
    int_list list = list_of(3);
    quern_string text = {{{0}, 0, 0}};
    must(quern_string_set(&text, "text"));
    must_refuse(NULL_ARGUMENT, NULL, quern_list_push(NULL, 4, &text));
    must_refuse(NULL_ARGUMENT, NULL, quern_list_push(&list.list, 4, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_list_resize(NULL, 4, 3));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_INSERT(&list, 4, int, 1));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_REMOVE(&list, 1, 3));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_REMOVE(&list, 4, 0));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_REMOVE_SWAP(&list, 3));
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_push(&list.list, 8, &(double){1}));
    cr_expect_not_null(strstr(quern_error_message(), "quern_list_push: "), "%s", quern_error_message());
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_push(&text.list, 1, "x"));
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_resize(&list.list, 0, 3));
    must_refuse(INVALID_ARGUMENT, NULL, QUERN_LIST_RESIZE(&list, QUERN_MAX_LIST_BYTES / 4 + 1));
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_insert(&list.list, 4, 0, NULL, 0xFFFFFFFFu));
    must_refuse(INVALID_ARGUMENT, NULL, quern_string_set_bytes(&text, "a\0b", 3));
    must_refuse(NULL_ARGUMENT, NULL, quern_string_set(&text, NULL));
    must_refuse(NULL_ARGUMENT, NULL, quern_string_print(NULL, "x"));
    must_refuse(INVALID_ARGUMENT, NULL, quern_string_print(&text, "a%cb", 0));
    must_refuse(INVALID_ARGUMENT, NULL, quern_string_append_print(&text, "%400d%c", 1, 0));
    cr_assert_null(quern_list_write(&text.list, 4));
    assert_ints(&list, 0, 1, 2);
    cr_assert_str_eq(quern_string_text(&text), "text");
    quern_list_free(&list.list);
    quern_string_free(&text);
    quern_list_free(NULL);
    quern_list_clear(NULL);
    quern_list_copy(NULL, &list.list);
    list = list_of(3);
    quern_list_copy(&list.list, NULL);
    cr_assert_eq(QUERN_LIST_RESERVE(&list, 0), QUERN_OK);
    must_refuse(INVALID_ARGUMENT, NULL, quern_list_reserve(&list.list, QUERN_LIST_STRINGS, 50));
    assert_ints(&list, 0, 1, 2);
    quern_list_free(&list.list);
    cr_assert_str_eq(quern_string_text(NULL), "");
}

Test(list_calls, without_memory_a_list_is_unchanged)
{
    int_list list = list_of(3), copy = {{{0}, 0, 0}};
    quern_list_copy(&copy.list, &list.list);
    failing_allocator_fail_from(memory, 1);
    must_refuse(OUT_OF_MEMORY, NULL, QUERN_LIST_PUSH(&copy, int, 1));
    must_refuse(OUT_OF_MEMORY, NULL, QUERN_LIST_REMOVE(&copy, 0, 1));
    must_refuse(OUT_OF_MEMORY, NULL, QUERN_LIST_REMOVE_SWAP(&copy, 0));
    must_refuse(OUT_OF_MEMORY, NULL, QUERN_LIST_POP(&copy, NULL));
    must_refuse(OUT_OF_MEMORY, NULL, QUERN_LIST_RESIZE(&copy, 100));
    cr_assert_null(QUERN_LIST_WRITE(&copy, int));
    failing_allocator_heal(memory);
    assert_ints(&list, 0, 1, 2);
    assert_ints(&copy, 0, 1, 2);
    quern_list_free(&list.list);
    quern_list_free(&copy.list);
}

Test(list_calls, lists_do_what_a_model_does)
{
    static bag_model model[2];
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_source random = {seed};
        bag it[2] = {{0}, {0}};
        memset(model, 0, sizeof model);
        failing_allocator_fail_often(memory, seed % 2 == 0 ? 10 : 0, seed);
        for (int step = 0; step < 1500; step++) {
            const uint64_t k = random_below(&random, 2);
            (void)bag_change(&it[k], &model[k], &random, (const quern_entity[]){{1}, {2}, {3}}, 3);
            if (random_below(&random, 20) == 0) { /* copies */
                quern_list_copy(&it[k].items.list, &it[1 - k].items.list);
                quern_list_copy(&it[k].names.list, &it[1 - k].names.list);
                quern_string_copy(&it[k].label, &it[1 - k].label);
                model[k].item_count = model[1 - k].item_count;
                model[k].name_count = model[1 - k].name_count;
                memcpy(model[k].items, model[1 - k].items, sizeof model[k].items);
                memcpy(model[k].names, model[1 - k].names, sizeof model[k].names);
                memcpy(model[k].label, model[1 - k].label, sizeof model[k].label);
            }
            bag_assert(&it[0], &model[0], NULL);
            bag_assert(&it[1], &model[1], NULL);
        }
        failing_allocator_heal(memory);
        bag_free(&it[0]);
        bag_free(&it[1]);
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0u);
    }
}
