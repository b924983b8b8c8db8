/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

/* A component with 3 bytes of padding between its fields. */
typedef struct padded {
    uint8_t kind;
    uint32_t amount;
    quern_entity target;
} padded;

/* A world with one described and one plain type. */
typedef struct hashed_world {
    quern_world *world;
    quern_component plain;     /* uint64_t */
    quern_component described; /* padded */
    quern_entity entities[8];
} hashed_world;

static quern_component register_described(quern_world *world)
{
    quern_component_def def = {
        .name = "described",
        .size_bytes = sizeof(padded),
        .alignment_bytes = _Alignof(padded),
        .fields = {{"kind", QUERN_FIELD_U8, offsetof(padded, kind), .count = 1},
                   {"amount", QUERN_FIELD_U32, offsetof(padded, amount), .count = 1},
                   {"target", QUERN_FIELD_ENTITY, offsetof(padded, target), .count = 1}}};
    quern_component component = {0};
    must(quern_component_register(world, &def, &component));
    return component;
}

static hashed_world build(void)
{
    hashed_world built = {.world = setup_world()};
    built.plain = setup_component(built.world, "plain", 8, 8);
    built.described = register_described(built.world);
    for (uint64_t i = 0; i < 8; i++) {
        built.entities[i] = setup_entity(built.world);
        must(quern_entity_add(built.world, built.entities[i], built.plain, &i));
        if (i % 2 == 0) must(quern_entity_add(built.world, built.entities[i], built.described, NULL));
    }
    return built;
}

static uint64_t hash_and_destroy(hashed_world *built)
{
    uint64_t hash = quern_world_hash(built->world);
    quern_world_destroy(built->world);
    return hash;
}

static padded *described_of(const hashed_world *built, uint32_t i)
{
    return quern_entity_get(built->world, built->entities[i], built->described);
}

Test(hash, the_same_history_gives_the_same_hash_in_every_world)
{
    hashed_world first = build(), second = build();
    cr_assert_neq(quern_entity_world_tag(first.entities[0]), quern_entity_world_tag(second.entities[0]));
    cr_assert_eq(quern_world_hash(first.world), quern_world_hash(first.world));
    cr_assert_eq(hash_and_destroy(&first), hash_and_destroy(&second));
}

/* Creates and destroys worlds until tags are reused, so that later worlds have other generation bases. */
static void use_up_tags(void)
{
    for (uint32_t i = 0; i < QUERN_MAX_WORLDS; i++)
        quern_world_destroy(setup_world());
}

Test(hash, generation_base_does_not_affect_the_hash)
{
    hashed_world first = build();
    use_up_tags();
    hashed_world second = build();
    cr_assert_neq(quern_entity_generation(first.entities[0]), quern_entity_generation(second.entities[0]));
    cr_assert_eq(quern_world_hash(first.world), quern_world_hash(second.world));
    hashed_world *both[] = {&first, &second};
    for (uint32_t i = 0; i < 2; i++) {
        must(quern_entity_destroy(both[i]->world, both[i]->entities[5]));
        described_of(both[i], 2)->target = both[i]->entities[5]; /* a handle of a destroyed entity */
        described_of(both[i], 4)->target = setup_entity(both[i]->world);
    }
    cr_assert_eq(quern_world_hash(first.world), quern_world_hash(second.world));
    described_of(&second, 2)->target = described_of(&second, 4)->target;
    cr_assert_neq(hash_and_destroy(&first), hash_and_destroy(&second), "lives show");
}

Test(hash, every_byte_of_a_plain_value_affects_the_hash)
{
    hashed_world built = build();
    uint64_t before = quern_world_hash(built.world);
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t bit = 0; bit < 64; bit++) {
            uint64_t *value = quern_entity_get(built.world, built.entities[i], built.plain);
            *value ^= 1ull << bit;
            cr_assert_neq(quern_world_hash(built.world), before, "entity %u, bit %u", i, bit);
            *value ^= 1ull << bit;
        }
    cr_assert_eq(hash_and_destroy(&built), before);
}

Test(hash, only_described_fields_affect_the_hash)
{
    hashed_world built = build();
    uint64_t before = quern_world_hash(built.world);
    unsigned char *bytes = (unsigned char *)described_of(&built, 0);
    for (uint32_t i = 1; i < 4; i++)
        bytes[i] = 0xEE;
    cr_assert_eq(quern_world_hash(built.world), before, "padding counts");
    described_of(&built, 0)->kind = 1;
    cr_assert_neq(quern_world_hash(built.world), before, "a field does not count");
    described_of(&built, 0)->kind = 0;
    described_of(&built, 0)->amount = 1;
    cr_assert_neq(quern_world_hash(built.world), before, "a field does not count");
    quern_world_destroy(built.world);
}

Test(hash, handles_in_values_are_hashed_without_their_world_tag)
{
    hashed_world first = build(), second = build();
    described_of(&first, 2)->target = first.entities[5];
    cr_assert_neq(quern_world_hash(first.world), quern_world_hash(second.world));
    described_of(&second, 2)->target = second.entities[5];
    cr_assert_eq(hash_and_destroy(&first), hash_and_destroy(&second));
}

Test(hash, destroying_an_entity_changes_the_hash)
{
    hashed_world built = build();
    uint64_t before = quern_world_hash(built.world);
    must(quern_entity_destroy(built.world, built.entities[7]));
    uint64_t after = quern_world_hash(built.world);
    cr_assert_neq(after, before);
    setup_entity(built.world);
    cr_assert_neq(quern_world_hash(built.world), after);
    cr_assert_neq(quern_world_hash(built.world), before);
    quern_world_destroy(built.world);
}

Test(hash, adding_or_removing_a_component_changes_the_hash)
{
    hashed_world built = build();
    uint64_t before = quern_world_hash(built.world);
    quern_component tag = setup_tag(built.world, "tag");
    cr_assert_eq(quern_world_hash(built.world), before, "a type without values counts");
    must(quern_entity_add(built.world, built.entities[7], tag, NULL));
    cr_assert_neq(quern_world_hash(built.world), before);
    must(quern_entity_remove(built.world, built.entities[7], tag));
    cr_assert_eq(hash_and_destroy(&built), before, "back in its place, the world is the same");
}

Test(hash, hash_depends_on_which_component_was_added)
{
    hashed_world first = build(), second = build();
    quern_component tags[] = {setup_tag(first.world, "tag"), setup_tag(second.world, "other_tag")};
    must(quern_entity_add(first.world, first.entities[7], tags[0], NULL));
    must(quern_entity_add(second.world, second.entities[7], tags[1], NULL));
    cr_assert_neq(hash_and_destroy(&first), hash_and_destroy(&second));
}

Test(hash, hash_depends_on_the_order_of_rows)
{
    hashed_world first = build(), second = build();
    quern_component tag = setup_tag(first.world, "tag");
    must(quern_entity_add(first.world, first.entities[1], tag, NULL));
    must(quern_entity_remove(first.world, first.entities[1], tag));
    for (uint64_t i = 0; i < 8; i++)
        cr_assert_eq(*(uint64_t *)quern_entity_get(first.world, first.entities[i], first.plain), i);
    cr_assert_neq(hash_and_destroy(&first), hash_and_destroy(&second));
}

Test(hash, hash_depends_on_the_order_of_free_slots)
{
    hashed_world first = build(), second = build();
    must(quern_entity_destroy(first.world, first.entities[5]));
    must(quern_entity_destroy(first.world, first.entities[7]));
    must(quern_entity_destroy(second.world, second.entities[7]));
    must(quern_entity_destroy(second.world, second.entities[5]));
    cr_assert_neq(hash_and_destroy(&first), hash_and_destroy(&second));
}

Test(hash, hash_depends_on_the_use_counts_of_slots)
{
    hashed_world first = build(), second = build();
    must(quern_entity_destroy(first.world, setup_entity(first.world)));
    must(quern_entity_destroy(second.world, setup_entity(second.world)));
    cr_assert_eq(quern_world_hash(first.world), quern_world_hash(second.world));
    must(quern_entity_destroy(second.world, setup_entity(second.world)));
    cr_assert_neq(hash_and_destroy(&first), hash_and_destroy(&second));
}

Test(hash, hashing_does_not_change_the_world)
{
    hashed_world built = build();
    uint64_t before = quern_world_hash(built.world);
    for (uint32_t i = 0; i < 10; i++) {
        assert_valid(built.world);
        (void)stats_of_world(built.world);
        cr_assert_eq(quern_world_hash(built.world), before);
    }
    quern_world_destroy(built.world);
}

Test(hash, refused_calls_do_not_change_the_hash)
{
    hashed_world built = build();
    quern_entity entity = built.entities[0], created;
    quern_component twice[] = {built.plain, built.plain};
    uint64_t value = 1;
    must_refuse(COMPONENT_PRESENT, built.world, quern_entity_add(built.world, entity, built.plain, &value));
    must_refuse(COMPONENT_ABSENT, built.world,
                quern_entity_remove(built.world, built.entities[1], built.described));
    must_refuse(DUPLICATE_COMPONENT, built.world,
                quern_entity_create_with(built.world, twice, NULL, 2, &created));
    must_refuse(NULL_ENTITY, built.world, quern_entity_destroy(built.world, quern_entity_null()));
    assert_refused_value(built.world, quern_entity_get(built.world, entity, (quern_component){0}));
    quern_world_destroy(built.world);
}

/* ---------------------------------------------------------------------------------------- resources */

static void *add_resource(quern_world *world, const char *name, const quern_field *fields, uint32_t count)
{
    quern_resource_def def = {.name = name, .size_bytes = 16};
    for (uint32_t i = 0; i < count; i++)
        def.fields[i] = fields[i];
    quern_resource resource;
    must(quern_resource_register(world, &def, &resource));
    return quern_resource_get(world, resource);
}

Test(hash, resource_affects_the_hash_only_if_its_fields_are_described)
{
    quern_world *world = setup_world();
    quern_field field = {"score", QUERN_FIELD_U64, 8, .count = 1};
    uint64_t *described = add_resource(world, "described", &field, 1);
    uint64_t *plain = add_resource(world, "plain", NULL, 0);
    uint64_t before = quern_world_hash(world);
    plain[0] = plain[1] = 5;
    described[0] = 5;
    cr_assert_eq(quern_world_hash(world), before);
    described[1] = 5;
    cr_assert_neq(quern_world_hash(world), before);
    quern_world_destroy(world);
}

/* The bits of such handles depend on the process, and archives load them as null. */
Test(hash, handles_of_other_worlds_are_hashed_as_null)
{
    hashed_world built = build(), other = build();
    const uint64_t before = quern_world_hash(built.world);
    const quern_entity strangers[] = {other.entities[3],
                                      entity_provisional(2),
                                      entity_of_other_world(built.entities[1]),
                                      {built.entities[1].bits & ~(UINT64_C(0xFFFFFF) << 32)}};
    for (uint32_t i = 0; i < 4; i++) {
        described_of(&built, 2)->target = strangers[i];
        cr_assert_eq(quern_world_hash(built.world), before, "handle %u", i);
    }
    described_of(&built, 2)->target = (quern_entity){built.entities[1].bits + 1000};
    cr_assert_neq(quern_world_hash(built.world), before,
                  "a handle of this world counts, though none has lived there");
    quern_world_destroy(built.world);
    quern_world_destroy(other.world);
}

Test(hash, null_world_is_refused)
{
    assert_refused_value(NULL, quern_world_hash(NULL));
}
