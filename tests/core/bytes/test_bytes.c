/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/bytes.h"
#include "tests/support/failing_allocator.h"

#include <criterion/criterion.h>

#include <stdlib.h>

/* A copy of exactly `count` bytes, so that the address sanitizer finds a read past its end. */
static char *copy_of(const void *bytes, size_t count)
{
    char *copy = malloc(count > 0 ? count : 1);
    cr_assert_not_null(copy);
    if (count > 0) memcpy(copy, bytes, count);
    return copy;
}

/* ----------------------------------------------------------------------------------------- reading */

Test(bytes, truncated_numbers_read_as_zero_and_the_reader_fails)
{
    const uint64_t number = UINT64_MAX;
    for (size_t count = 0; count <= sizeof number; count++) {
        char *copy = copy_of(&number, count);
        quern__byte_reader reader = quern__byte_reader_open(copy, count);
        const bool is_whole = count == sizeof number;
        cr_assert_eq(quern__read_u64(&reader), is_whole ? UINT64_MAX : 0, "%zu bytes", count);
        cr_assert_eq(reader.has_failed, !is_whole);
        cr_assert_eq(quern__is_fully_read(&reader), is_whole);
        cr_assert_eq(quern__bytes_left(&reader), 0u, "a failed reader is at its end");
        free(copy);
    }
}

Test(bytes, a_failed_reader_stays_failed)
{
    const char bytes[6] = {1, 2, 3, 4, 5, 6};
    quern__byte_reader reader = quern__byte_reader_open(bytes, sizeof bytes);
    cr_assert_eq(quern__read_u64(&reader), 0u);
    cr_assert_eq(quern__read_u32(&reader), 0u, "four bytes were there, but the read before has failed");
    cr_assert_null(quern__read_in_place(&reader, 1));
    cr_assert_not_null(quern__read_in_place(&reader, 0));
    cr_assert(reader.has_failed);
    cr_assert_not(quern__is_fully_read(&reader));
}

Test(bytes, empty_bytes_can_be_read)
{
    quern__byte_reader reader = quern__byte_reader_open(NULL, 0);
    cr_assert(quern__is_fully_read(&reader));
    quern__read(&reader, NULL, 0);
    cr_assert_not_null(quern__read_items(&reader, 0, 8));
    cr_assert_not_null(quern__read_items(&reader, UINT64_MAX, 0), "any number of nothing");
    cr_assert(quern__is_fully_read(&reader));
    cr_assert_null(quern__read_items(&reader, 1, 1));
}

Test(bytes, counts_whose_product_overflows_are_rejected)
{
    const char bytes[64] = {0};
    static const struct {
        uint64_t count;
        size_t item_bytes;
    } cases[] = {{UINT64_MAX, 1},
                 {UINT64_MAX, 8},
                 {UINT64_C(1) << 61, 8},       /* product 2^64, which overflows to 0 */
                 {(UINT64_C(1) << 61) + 1, 8}, /* product 2^64 + 8, which overflows to 8 */
                 {UINT64_C(1) << 63, 2},
                 {UINT64_C(1) << 32, 1u << 30}, /* product 0 in 32 bits */
                 {2, SIZE_MAX},
                 {65, 1},
                 {9, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quern__byte_reader reader = quern__byte_reader_open(bytes, sizeof bytes);
        cr_assert_null(quern__read_items(&reader, cases[i].count, cases[i].item_bytes), "case %zu", i);
        cr_assert(reader.has_failed);
    }
    quern__byte_reader reader = quern__byte_reader_open(bytes, sizeof bytes);
    cr_assert_eq((const void *)quern__read_items(&reader, 8, 8), (const void *)bytes);
    cr_assert(quern__is_fully_read(&reader));
    reader = quern__byte_reader_open(bytes, sizeof bytes);
    cr_assert_null(quern__read_in_place(&reader, SIZE_MAX));
}

Test(bytes, numbers_need_no_alignment)
{
    for (size_t shift = 0; shift < sizeof(uint64_t); shift++) {
        const uint32_t half = UINT32_C(0x12345678);
        const uint64_t whole = UINT64_C(0x0123456789ABCDEF);
        _Alignas(uint64_t) char memory[2 * sizeof whole + 2 * sizeof half + sizeof whole];
        quern__byte_writer writer = {.bytes = memory + shift, .capacity = sizeof memory - shift};
        quern__write_u32(&writer, half);
        quern__write_u64(&writer, whole);
        quern__byte_reader reader = quern__byte_reader_open(memory + shift, writer.count);
        cr_assert_eq(quern__load_u32(reader.at, 0), half);
        cr_assert_eq(quern__load_u64(reader.at + sizeof half, 0), whole);
        cr_assert_eq(quern__read_u32(&reader), half);
        cr_assert_eq(quern__read_u64(&reader), whole);
        cr_assert(quern__is_fully_read(&reader));
    }
}

/* ----------------------------------------------------------------------------------------- writing */

static void write_some(quern__byte_writer *writer)
{
    quern__write_u64(writer, 7);
    quern__write(writer, "", 0);
    quern__write(writer, "abc", 3);
    quern__write_u32(writer, 9);
}

Test(bytes, a_measuring_writer_counts_what_a_fixed_one_needs)
{
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_some(&measure);
    quern__write_back(&measure, 0, "x", 1);
    cr_assert_not(measure.has_failed);
    cr_assert_eq(measure.count, 15u);
    for (size_t capacity = 0; capacity <= measure.count; capacity++) {
        char *memory = copy_of("...............", capacity);
        quern__byte_writer writer = {.bytes = memory, .capacity = capacity};
        write_some(&writer);
        cr_assert_eq(writer.has_failed, capacity < measure.count, "room for %zu bytes", capacity);
        cr_assert_eq(writer.count, capacity, "a failed writer is full");
        cr_assert(capacity < sizeof(uint64_t) || quern__load_u64(memory, 0) == 7);
        free(memory);
    }
}

Test(bytes, a_growing_writer_keeps_what_it_has)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern__byte_writer writer = {.allocator = &allocator};
    for (uint32_t i = 0; i < 5000; i++)
        quern__write_u32(&writer, i);
    const uint32_t first = 77;
    quern__write_back(&writer, 0, &first, sizeof first);
    cr_assert_eq(writer.count, 20000u);
    cr_assert_eq(quern__load_u32(writer.bytes, 0), first);
    for (uint32_t i = 1; i < 5000; i++)
        cr_assert_eq(quern__load_u32(writer.bytes, i), i);
    const char *bytes = writer.bytes;
    quern__byte_writer_clear(&writer);
    quern__write_u32(&writer, 1);
    cr_assert_eq(writer.count, 4u);
    cr_assert_eq((const void *)writer.bytes, (const void *)bytes, "clearing keeps the memory");
    quern__byte_writer_release(&writer);
    cr_assert_eq(writer.capacity, 0u);
    failing_allocator_close(memory);
}

Test(bytes, a_growing_writer_fails_without_memory_and_can_be_cleared)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern__byte_writer writer = {.allocator = &allocator};
    quern__write_u32(&writer, 5);
    failing_allocator_fail_from(memory, 1);
    cr_assert_null(quern__write_room(&writer, writer.capacity));
    cr_assert(writer.has_failed);
    cr_assert_null(quern__write_room(&writer, 1), "it is full, though a byte would have fitted before");
    quern__write_back(&writer, 0, "xxxx", 4);
    cr_assert_eq(quern__load_u32(writer.bytes, 0), 5u);
    failing_allocator_heal(memory);
    cr_assert_null(quern__write_room(&writer, 1), "it asks for no memory after it has failed");
    quern__byte_writer_clear(&writer);
    quern__write_u32(&writer, 6);
    cr_assert_not(writer.has_failed);
    cr_assert_eq(quern__load_u32(writer.bytes, 0), 6u);
    quern__byte_writer_release(&writer);
    failing_allocator_close(memory);
}

Test(bytes, an_impossible_length_allocates_nothing)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern__byte_writer writer = {.allocator = &allocator};
    quern__write_u32(&writer, 5);
    const uint64_t calls = failing_allocator_call_count(memory);
    const size_t lengths[] = {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX / 2, SIZE_MAX / 4 + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        quern__byte_writer_clear(&writer);
        quern__write_u32(&writer, 5);
        cr_assert_null(quern__write_room(&writer, lengths[i]), "%zu", lengths[i]);
        cr_assert(writer.has_failed);
    }
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    quern__byte_writer_release(&writer);
    failing_allocator_close(memory);
}

/* ------------------------------------------------------------------------------------------- names */

Test(bytes, a_name_is_not_empty_not_too_long_and_contains_no_0)
{
    static const struct {
        uint32_t length;
        const char *text;
        bool is_good;
    } cases[] = {{1, "a", true},     {3, "abc", true},    {0, "", false},
                 {4, "abcd", false}, {3, "ab", false},    {3, "a\0c", false},
                 {2, "a\0", false},  {255, "abc", false}, {3, "abcd", true}};
    for (uint32_t length_bytes = 1; length_bytes <= 4; length_bytes += 3)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char memory[16], name[4] = "xxx";
            const size_t text_bytes = i == 5 || i == 6 ? cases[i].length : strlen(cases[i].text);
            quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
            const uint8_t low_byte = (uint8_t)cases[i].length;
            if (length_bytes == 1)
                quern__write(&writer, &low_byte, 1);
            else
                quern__write_u32(&writer, cases[i].length);
            quern__write(&writer, cases[i].text, text_bytes);
            char *copy = copy_of(memory, writer.count);
            quern__byte_reader reader = quern__byte_reader_open(copy, writer.count);
            quern__read_text(&reader, length_bytes, 3, name);
            cr_assert_eq(reader.has_failed, !cases[i].is_good, "case %zu, %u bytes", i, length_bytes);
            cr_assert_eq(strlen(name), cases[i].is_good ? cases[i].length : 0u);
            cr_assert_eq(strncmp(name, cases[i].text, strlen(name)), 0);
            free(copy);
        }
}

Test(bytes, all_four_bytes_of_a_length_are_read)
{
    char name[4], memory[8];
    quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
    quern__write_u32(&writer, 0x10000003u); /* the first byte is 3 */
    quern__write(&writer, "abcd", 4);
    quern__byte_reader reader = quern__byte_reader_open(memory, sizeof memory);
    quern__read_text(&reader, 4, 3, name);
    cr_assert(reader.has_failed);
}

/* ----------------------------------------------------------------------------------------- schemas */

static const quern__schema_form forms[] = {{1, false}, {4, true}};

static const quern_field two_fields[] = {
    {.name = "x", .type = QUERN_FIELD_F32, .offset_bytes = 4, .count = 1},
    {.name = "names", .type = QUERN_FIELD_TEXT, .offset_bytes = 8, .count = 9}};

Test(bytes, the_encoding_of_schemas_is_stable)
{
    static const char archived[] = "\4unit\1x\12\0\0\0\4\0\0\0\1\0\0\0";
    static const char recorded[] = "\4\0\0\0unit\12\0\0\0\4\0\0\0\1\0\0\0\1\0\0\0x";
    char memory[64];
    quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
    const uint16_t one = 1;
    if (*(const unsigned char *)&one == 0)
        cr_skip_test("big-endian machines write no archives, and these numbers in another order");
    cr_assert_eq((int)QUERN_FIELD_F32, 10);
    quern__write_schema(&writer, forms[0], "unit", two_fields, 1);
    cr_assert_eq(writer.count, sizeof archived - 1);
    cr_assert_eq(memcmp(memory, archived, writer.count), 0);
    writer.count = 0;
    quern__write_schema(&writer, forms[1], "unit", two_fields, 1);
    cr_assert_eq(writer.count, sizeof recorded - 1);
    cr_assert_eq(memcmp(memory, recorded, writer.count), 0);
}

Test(bytes, a_schema_truncated_at_any_byte_is_rejected)
{
    for (uint32_t form = 0; form < 2; form++) {
        char memory[128];
        quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
        quern__write_schema(&writer, forms[form], "unit", two_fields, 2);
        cr_assert_leq(writer.count, quern__schema_max_bytes(forms[form]));
        for (size_t count = 0; count <= writer.count; count++) {
            char *copy = copy_of(memory, count);
            quern__byte_reader reader = quern__byte_reader_open(copy, count);
            quern__schema schema;
            quern__read_schema(&reader, forms[form], 2, &schema);
            cr_assert_eq(quern__is_fully_read(&reader), count == writer.count, "%zu bytes", count);
            free(copy);
        }
    }
}

Test(bytes, a_schema_is_read_as_written)
{
    for (uint32_t form = 0; form < 2; form++) {
        char memory[128];
        quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
        quern__write_schema(&writer, forms[form], "unit", two_fields, 2);
        quern__byte_reader reader = quern__byte_reader_open(memory, writer.count);
        quern__schema schema;
        quern__read_schema(&reader, forms[form], 2, &schema);
        cr_assert_str_eq(schema.name, "unit");
        for (uint32_t i = 0; i < 2; i++) {
            cr_assert_str_eq(schema.fields[i].name, two_fields[i].name);
            cr_assert_eq(schema.fields[i].type, two_fields[i].type);
            cr_assert_eq(schema.fields[i].offset_bytes, two_fields[i].offset_bytes);
            cr_assert_eq(schema.fields[i].count, two_fields[i].count);
        }
        cr_assert_null(schema.fields[2].name, "the list of fields ends with a zero");
    }
}

Test(bytes, a_schema_with_too_many_fields_is_rejected)
{
    const uint32_t counts[] = {QUERN_MAX_FIELDS + 1, UINT32_MAX};
    char memory[8192] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        quern__byte_writer writer = {.bytes = memory, .capacity = sizeof memory};
        quern__write_schema(&writer, forms[i], "unit", two_fields, 1);
        quern__byte_reader reader = quern__byte_reader_open(memory, sizeof memory);
        quern__schema schema;
        quern__read_schema(&reader, forms[i], counts[i], &schema);
        cr_assert(reader.has_failed);
    }
}
