/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Memory that a world releases must return to the operating system. Also tests handles of released records, and a
 * system without memory. */

#include "core/platform/platform.h"
#include "core/storage/chunk.h"
#include "core/storage/entity.h"
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 3 * QUERN__PAGE_RECORDS / 2
}; /* entities of 72 bytes: about seven slabs and two pages of records */

static quern_entity entities[COUNT], later[COUNT];

static quern_component wide_of(quern_world *world)
{
    return setup_component(world, "wide", 64, 8);
}

static void create_all(quern_world *world, quern_component wide, quern_entity *out)
{
    must(quern_entity_create_many(world, &wide, NULL, 1, COUNT, out));
}

static void destroy_all(quern_world *world, const quern_entity *all)
{
    must(quern_entity_destroy_many(world, all, COUNT));
}

static void trim(quern_world *world)
{
    must(quern_world_trim(world));
    assert_valid(world);
}

static void assert_none_alive(const quern_world *world, const quern_entity *handles)
{
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_not(quern_entity_is_alive(world, handles[i]), "handle %u", i);
}

/* ---------------------------------------------------------------------------------------- the system */

#if QUERN__HAS_PAGES

#if defined(__linux__)

#include <sys/resource.h>
#include <unistd.h>

/* field 0: size of the address space; 1: size of its resident part */
static uint64_t statm_bytes(uint32_t field)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages[2];
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%llu %llu", &pages[0], &pages[1]), 2);
    fclose(file);
    return pages[field] * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t resident_bytes(void)
{
    return statm_bytes(1);
}

/* After a large array was freed, the C library allocates even large blocks in its heap. The heap shrinks only at
 * its end, so that any later block there prevents it from shrinking. */
Test(resident, trim_returns_memory_to_the_system)
{
    enum { ROUND_COUNT = 4, SLACK_BYTES = 8 << 20 };
    char *volatile array = malloc((size_t)24 << 20);
    free(array);
    quern_world *world = setup_world(), *others[ROUND_COUNT];
    const quern_component wide = wide_of(world);
    memset(entities, 0xFF, sizeof entities); /* makes the array resident */
    const uint64_t before = resident_bytes();
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        create_all(world, wide, entities);
        cr_assert_geq(resident_bytes(), before + COUNT * UINT64_C(72));
        others[round] = setup_world();
        setup_entity_with(others[round], (quern_component[]){wide_of(others[round])}, 1);
        destroy_all(world, entities);
        trim(world);
        cr_assert_eq(stats_of_world(world).held_bytes, 0u);
        const uint64_t after = resident_bytes();
        cr_assert_lt(after, before + SLACK_BYTES, "round %u: %llu bytes stayed resident", round,
                     (unsigned long long)(after - before));
    }
    for (uint32_t round = 0; round < ROUND_COUNT; round++)
        quern_world_destroy(others[round]);
    quern_world_destroy(world);
}

Test(resident, a_small_world_stays_small)
{
    const uint64_t before = resident_bytes();
    quern_world *world = setup_world();
    const quern_component wide = wide_of(world);
    for (uint32_t i = 0; i < 1000; i++)
        entities[i] = setup_entity_with(world, &wide, 1);
    const uint64_t grown = resident_bytes() - before;
    cr_assert_lt(grown, 1u << 20, "1000 entities take %llu bytes", (unsigned long long)grown);
    quern_world_destroy(world);
}

/* The address space is exactly what is mapped, whether or not a mapping had to be aligned. */
Test(resident, aligned_pages_take_no_more_than_their_size)
{
    enum { PIECES = 20, SIZE_BYTES = 1 << 16, ALIGNMENT_BYTES = 1 << 24 };
    char *pieces[PIECES], *odd[PIECES];
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    const uint64_t before = statm_bytes(0);
    for (uint32_t i = 0; i < PIECES; i++) {
        pieces[i] = quern__pages_map(SIZE_BYTES, ALIGNMENT_BYTES);
        odd[i] = quern__pages_map((i + 1) * page_bytes, page_bytes);
        cr_assert_not_null(pieces[i]);
        cr_assert_eq((uintptr_t)pieces[i] % ALIGNMENT_BYTES, 0u);
    }
    const uint64_t odd_bytes = (uint64_t)PIECES * (PIECES + 1) / 2 * page_bytes;
    cr_assert_eq(statm_bytes(0), before + (uint64_t)PIECES * SIZE_BYTES + odd_bytes);
    for (uint32_t i = 0; i < PIECES; i++) {
        pieces[i][0] = pieces[i][SIZE_BYTES - 1] = 1;
        quern__pages_unmap(pieces[i], SIZE_BYTES);
        quern__pages_unmap(odd[i], (i + 1) * page_bytes);
    }
    cr_assert_eq(statm_bytes(0), before);
}

/* There is room for the pages, and not for the padding with which they could be aligned. */
Test(resident, pages_that_cannot_be_aligned_are_not_mapped)
{
    enum { SIZE_BYTES = 1 << 16 };
    const size_t alignment = (size_t)1 << 30;
    struct rlimit limit, low;
    const uint64_t before = statm_bytes(0);
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)before + (rlim_t)1024 * SIZE_BYTES;
    cr_assert_eq(setrlimit(RLIMIT_AS, &low), 0);
    const char *first = quern__pages_map(SIZE_BYTES, alignment),
               *second = quern__pages_map(SIZE_BYTES, alignment);
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert(first == NULL || second == NULL, "both cannot be aligned by chance");
    cr_assert_eq(statm_bytes(0), before + (first != NULL || second != NULL ? SIZE_BYTES : 0));
}

/* Otherwise a release would also unmap what follows the block. */
Test(resident, the_default_allocator_maps_what_it_will_unmap)
{
    const quern_allocator allocator = quern_allocator_default();
    const size_t alignment = QUERN__PAGES_ALIGNMENT_BYTES, size_bytes = alignment + 1;
    const uint64_t before = statm_bytes(0);
    void *block = quern__allocate(&allocator, size_bytes, alignment);
    cr_assert_not_null(block);
    cr_assert_eq(statm_bytes(0), before + 2 * alignment);
    quern__release(&allocator, block, size_bytes, alignment);
    cr_assert_eq(statm_bytes(0), before);
}

/* Returns whether huge pages were requested for this address. */
static bool is_advised_huge(const void *memory)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    cr_assert_not_null(file);
    char line[512];
    bool is_here = false, is_huge = false;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long first, end;
        if (sscanf(line, "%llx-%llx ", &first, &end) == 2)
            is_here = first <= (uintptr_t)memory && (uintptr_t)memory < end;
        else if (is_here && strncmp(line, "VmFlags:", 8) == 0)
            is_huge = strstr(line, " hg") != NULL;
    }
    fclose(file);
    return is_huge;
}

/* Creates entities. Returns for the first two pages of records whether huge pages were requested. */
static void create_and_check_pages(quern_world *world, uint32_t count, bool *out_is_huge)
{
    const quern__entities *slots = &world->storage.entities;
    must(quern_entity_create_many(world, NULL, NULL, 0, count, entities));
    for (uint32_t page = 0; page < 2; page++)
        out_is_huge[page] = page < slots->pages.count && is_advised_huge(slots->pages.items[page]);
}

Test(resident, reallocated_records_have_pages_of_the_same_size)
{
    static const uint32_t counts[] = {100, COUNT, QUERN__PAGE_RECORDS + 100};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(counts); i++) {
        quern_world *world = setup_world();
        bool before[2], after[2];
        create_and_check_pages(world, counts[i], before);
        must(quern_entity_destroy_many(world, entities, counts[i]));
        trim(world);
        create_and_check_pages(world, counts[i], after);
        for (uint32_t page = 0; page < 2; page++)
            cr_assert_eq(after[page], before[page], "%u entities, page %u", counts[i], page);
        quern_world_destroy(world);
    }
}

Test(resident, a_system_without_memory_is_out_of_memory_like_any_allocator)
{
    enum { MANY = 4 * COUNT };
    static quern_entity many[MANY];
    quern_world *world = setup_world();
    const quern_component wide = wide_of(world);
    const quern_entity first = setup_entity_with(world, &wide, 1);
    struct rlimit limit, low;
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)statm_bytes(0) + (rlim_t)16 * 1024 * 1024;
    cr_assert_eq(setrlimit(RLIMIT_AS, &low), 0);
    must_refuse(OUT_OF_MEMORY, world, quern_entity_create_many(world, &wide, NULL, 1, MANY, many));
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    must(quern_entity_create_many(world, &wide, NULL, 1, MANY, many));
    cr_assert(quern_entity_is_alive(world, first));
    assert_valid(world);
    quern_world_destroy(world);
}

#endif

Test(resident, pages_are_aligned_at_any_address)
{
    enum { PIECES = 40 };
    static const size_t alignments[] = {QUERN__PAGES_ALIGNMENT_BYTES, 4 * QUERN__PAGES_ALIGNMENT_BYTES};
    char *pieces[PIECES], *odd[PIECES];
    for (uint32_t i = 0; i < PIECES; i++) {
        const size_t alignment = alignments[i % 2];
        pieces[i] = quern__pages_map(alignment, alignment);
        odd[i] = quern__pages_map(3 * 65536, 65536);
        cr_assert_not_null(pieces[i]);
        cr_assert_not_null(odd[i]);
        cr_assert_eq((uintptr_t)pieces[i] % alignment, 0u);
        cr_assert_eq(pieces[i][0] | pieces[i][alignment - 1], 0);
        pieces[i][0] = pieces[i][alignment - 1] = (char)(i + 1);
        odd[i][0] = odd[i][3 * 65536 - 1] = (char)(i + 1);
    }
    for (uint32_t i = 0; i < PIECES; i++) {
        const size_t alignment = alignments[i % 2];
        cr_assert_eq(pieces[i][0], (char)(i + 1));
        cr_assert_eq(pieces[i][alignment - 1], (char)(i + 1));
        quern__pages_unmap(pieces[i], alignment);
        cr_assert_eq(odd[i][0] + odd[i][3 * 65536 - 1], 2 * (int)(i + 1));
        quern__pages_unmap(odd[i], 3 * 65536);
    }
    cr_assert_null(quern__pages_map(SIZE_MAX / 16 * 15 / 4096 * 4096, QUERN__PAGES_ALIGNMENT_BYTES));
}

#endif

/* ------------------------------------------------------------------------------------------- handles */

Test(resident, handles_before_a_trim_stay_invalid)
{
    quern_world *world = setup_world();
    const quern_component wide = wide_of(world);
    create_all(world, wide, entities);
    destroy_all(world, entities);
    trim(world);
    assert_none_alive(world, entities);
    create_all(world, wide, later);
    assert_none_alive(world, entities);
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(quern_entity_index(later[i]), i);
        cr_assert_eq(quern_entity_use_count(world, later[i]), 2u);
        cr_assert_neq(quern_entity_seed(world, later[i]), quern_entity_seed(world, entities[i]));
    }
    assert_valid(world);
    destroy_all(world, later);
    trim(world);
    create_all(world, wide, entities);
    assert_none_alive(world, later);
    cr_assert_eq(quern_entity_use_count(world, entities[COUNT - 1]), 3u);
    must_refuse(STALE_ENTITY, world, quern_entity_destroy(world, later[7]));
    quern_world_destroy(world);
}

/* It must not be visible when a page of records is allocated again. Worlds with equal calls must be equal, even if
 * one of them lacked memory for a time or reserved more than it used. */
Test(resident, early_reallocation_of_records_is_not_visible)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    quern_world *plain = setup_world(), *troubled;
    must(quern_world_create(&def, &troubled));
    const quern_component wide = wide_of(plain), wide_too = wide_of(troubled);
    create_all(plain, wide, entities);
    destroy_all(plain, entities);
    create_all(troubled, wide_too, entities);
    destroy_all(troubled, entities);
    trim(plain);
    trim(troubled);
    cr_assert_eq(quern_world_hash(troubled), quern_world_hash(plain));
    for (uint32_t failing = 1; failing < 8; failing++) {
        /* every second time, the page stays and the next call reserves less */
        const bool stays = failing % 2 == 0;
        failing_allocator_fail_at(memory, (stays ? 1 : failing));
        must_refuse(OUT_OF_MEMORY, troubled,
                    quern_entity_create_many(troubled, &wide_too, NULL, 1, COUNT, entities));
        failing_allocator_heal(memory);
        cr_assert_eq(quern_world_hash(troubled), quern_world_hash(plain));
        assert_valid(troubled);
        if (stays) trim(troubled);
        cr_assert_eq(quern_world_hash(troubled), quern_world_hash(plain));
    }
    create_all(plain, wide, entities);
    create_all(troubled, wide_too, entities);
    cr_assert_eq(quern_world_hash(troubled), quern_world_hash(plain));
    quern_world_destroy(plain);
    quern_world_destroy(troubled);
    failing_allocator_close(memory);
}

Test(resident, only_pages_without_living_entities_are_released)
{
    quern_world *world = setup_world();
    const quern_component wide = wide_of(world);
    create_all(world, wide, entities);
    for (uint32_t i = 0; i < QUERN__PAGE_RECORDS; i++)
        must(quern_entity_destroy(world, entities[i]));
    const uint64_t before = stats_of_world(world).held_bytes;
    trim(world);
    const quern_world_stats stats = stats_of_world(world);
    cr_assert_leq(stats.held_bytes + QUERN__PAGE_RECORDS * sizeof(quern__record), before);
    cr_assert_eq(stats.entity_count, (uint64_t)COUNT - QUERN__PAGE_RECORDS);
    for (uint32_t i = QUERN__PAGE_RECORDS; i < COUNT; i++)
        cr_assert(quern_entity_is_alive(world, entities[i]));
    cr_assert_eq(quern_entity_index(setup_entity(world)), 0u);
    quern_world_destroy(world);
}
