/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/playback.h"
#include "tests/support/fixture.h"

#include <stdio.h>

/* Sync points retain the edit sequences of earlier ones while they are valid (core/playback/stages.h). */

enum { TAGS = 11, WIDE_BYTES = 9000 };

static quern_component number, wide[2];
static quern_entity entity;

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    wide[0] = setup_component(world, "wide0", WIDE_BYTES, 8);
    wide[1] = setup_component(world, "wide1", WIDE_BYTES, 8);
    entity = setup_entity(world);
}

TestSuite(retained_sequences, .init = open_world, .fini = close_valid_world);

static uint32_t sequence_count(void)
{
    return world->commands->playback.merged.scratches.items[0]->sequences.list.count;
}

static void add_number(uint64_t value)
{
    must(quern_commands_add(quern_world_commands(world), entity, number, &value));
    must(quern_world_flush(world));
    const uint64_t *added = quern_entity_get(world, entity, number);
    cr_assert_not_null(added);
    cr_assert_eq(*added, value);
}

static void remove_number(void)
{
    must(quern_commands_remove(quern_world_commands(world), entity, number));
    must(quern_world_flush(world));
    cr_assert_not(quern_entity_has(world, entity, number));
}

Test(retained_sequences, repeated_sync_point_adds_no_sequence)
{
    add_number(1);
    remove_number();
    const uint32_t count = sequence_count();
    for (uint64_t i = 2; i < 100; i++) {
        add_number(i);
        remove_number();
    }
    cr_assert_eq(sequence_count(), count);
}

/* New archetypes may reuse the memory of the removed one. */
Test(retained_sequences, sequences_are_removed_with_their_archetype)
{
    for (uint64_t i = 0; i < 8; i++) {
        uint32_t removed_count;
        char name[16];
        add_number(i);
        remove_number();
        must(quern_world_remove_empty_archetypes(world, &removed_count));
        cr_assert_gt(removed_count, 0u);
        snprintf(name, sizeof name, "other%u", (uint32_t)i);
        const quern_component other = setup_component(world, name, 4, 4);
        setup_entity_with(world, (quern_component[]){other, wide[i % 2]}, 2);
    }
    add_number(8);
}

/* A sequence refused for lack of archetypes is not retained: the same commands are refused and reported again,
 * and the entity stays unchanged. */
Test(retained_sequences, refused_sequence_is_refused_and_reported_again)
{
    for (uint32_t i = 0; i < 3; i++) {
        quern_commands *commands = quern_world_commands(world);
        must(quern_commands_add(commands, entity, wide[0], NULL));
        must(quern_commands_add(commands, entity, wide[1], NULL));
        cr_assert_eq(quern_world_flush(world), QUERN_ERROR_COMPONENT_TOO_LARGE, "sync point %u", i);
        cr_assert_not(quern_entity_has(world, entity, wide[0]));
        add_number(i);
    }
}

Test(retained_sequences, refused_new_entity_is_refused_and_reported_again)
{
    for (uint32_t i = 0; i < 3; i++) {
        quern_commands *commands = quern_world_commands(world);
        const quern_entity created = record_entity(commands);
        must(quern_commands_add(commands, created, wide[0], NULL));
        must(quern_commands_add(commands, created, wide[1], NULL));
        cr_assert_eq(quern_world_flush(world), QUERN_ERROR_COMPONENT_TOO_LARGE, "sync point %u", i);
        cr_assert_eq(stats_of_world(world).entity_count, 1u);
    }
}

/* Adds more sequences than the maximum: one for each set of tags. */
Test(retained_sequences, sequences_above_the_maximum_are_removed)
{
    static quern_entity entities[1u << TAGS];
    quern_component tags[TAGS];
    for (uint32_t k = 0; k < TAGS; k++) {
        char name[16];
        snprintf(name, sizeof name, "tag%u", k);
        tags[k] = setup_tag(world, name);
    }
    for (uint32_t i = 0; i < 1u << TAGS; i++)
        entities[i] = setup_entity(world);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 1u << TAGS; i++)
            for (uint32_t k = 0; k < TAGS; k++) {
                if ((i >> k & 1) == 0) continue;
                must(turn != 1 ? quern_commands_add(quern_world_commands(world), entities[i], tags[k], NULL)
                               : quern_commands_remove(quern_world_commands(world), entities[i], tags[k]));
            }
        must(quern_world_flush(world));
        for (uint32_t i = 0; i < 1u << TAGS; i++)
            for (uint32_t k = 0; k < TAGS; k++)
                cr_assert_eq(quern_entity_has(world, entities[i], tags[k]), turn != 1 && (i >> k & 1) != 0);
    }
    cr_assert_gt(sequence_count(), (uint32_t)QUERN__MAX_RETAINED_SEQUENCES);
    add_number(1);
    cr_assert_leq(sequence_count(), 2u);
}
