/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <string.h>

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

/* ------------------------------------------------------------------------- by the value of a component */

/* quern_world_hash_by: worlds with the same entities by id have one hash, whatever else differs. */

enum { UNITS = 60 };

typedef struct aim {
    uint32_t power;
    quern_entity at;
} aim;

typedef struct weather {
    uint64_t rain;
    quern_entity cloud;
} weather;

/* What both worlds have, in ids. 0: none. */
typedef struct unit {
    uint64_t id, place, power, at, owner, parent;
    bool has_place, has_aim, has_tag, is_off, has_name;
} unit;

typedef struct hashed {
    quern_world *world;
    quern_component id, place, aim, tag;
    quern_relation owner, parent;
    quern_resource weather;
    quern_entity handles[UNITS + 1]; /* by id */
} hashed;

static unit units[UNITS];

static void make_units(uint64_t seed)
{
    random_source random = {seed};
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = (unit){.id = i + 1,
                          .place = random_below(&random, 5),
                          .power = random_below(&random, 5),
                          .at = random_below(&random, UNITS + 1),
                          .owner = random_below(&random, 3) == 0 ? random_below(&random, i + 1) : 0,
                          .parent = random_below(&random, 3) == 0 ? random_below(&random, i + 1) : 0,
                          .has_place = random_below(&random, 2) == 0,
                          .has_aim = random_below(&random, 2) == 0,
                          .has_tag = random_below(&random, 2) == 0,
                          .is_off = random_below(&random, 2) == 0,
                          .has_name = random_below(&random, 3) == 0};
}

static void register_types(hashed *it, bool is_reversed)
{
    for (uint32_t i = 0; i < 4; i++)
        switch (is_reversed ? 3 - i : i) {
        case 0:
            it->id = setup_component(it->world, "id", 8, 8);
            break;
        case 1:
            it->place = make_component(it->world, .name = "place", .size_bytes = 8, .alignment_bytes = 8,
                                       .can_disable = true);
            break;
        case 2:
            must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->aim, aim, power, at));
            break;
        default:
            it->tag = setup_tag(it->world, "tag");
            break;
        }
    it->owner = make_relation(it->world, .name = "owner");
    it->parent = quern_world_parent(it->world);
    must(QUERN_RESOURCE_REGISTER_FIELDS(it->world, &it->weather, weather, rain, cloud));
}

/* Creates and destroys entities without ids, so that slots and rows differ. */
static void stir(const hashed *it, random_source *random)
{
    for (uint64_t i = random_below(random, 4); i > 0; i--) {
        const quern_entity gone = setup_entity_with(it->world, &it->place, 1);
        if (random_below(random, 2) == 0) must(quern_entity_destroy(it->world, gone));
    }
}

static void put_unit(hashed *it, const unit *from)
{
    const quern_entity entity = it->handles[from->id];
    const aim value = {(uint32_t)from->power, it->handles[from->at]};
    char name[16];
    if (from->has_place) must(quern_entity_add(it->world, entity, it->place, &from->place));
    if (from->has_place && from->is_off)
        must(quern_entity_set_component_enabled(it->world, entity, it->place, false));
    if (from->has_aim) must(quern_entity_add(it->world, entity, it->aim, &value));
    if (from->has_tag) must(quern_entity_add(it->world, entity, it->tag, NULL));
    if (from->owner > 0) must(quern_entity_relate(it->world, entity, it->owner, it->handles[from->owner]));
    if (from->parent > 0)
        must(quern_entity_relate(it->world, entity, it->parent, it->handles[from->parent]));
    snprintf(name, sizeof name, "n%u", (unsigned)from->id);
    if (from->has_name) must(quern_entity_set_name(it->world, entity, name));
}

static void shuffle(uint32_t *order, random_source *random)
{
    for (uint32_t i = 0; i < UNITS; i++)
        order[i] = i;
    for (uint32_t i = UNITS - 1; i > 0; i--) {
        const uint32_t k = (uint32_t)random_below(random, i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static hashed build_units(uint64_t seed)
{
    hashed it = {.world = setup_world()};
    random_source random = {seed};
    uint32_t order[UNITS];
    register_types(&it, seed % 2 == 1);
    shuffle(order, &random);
    for (uint32_t i = 0; i < UNITS; i++) {
        stir(&it, &random);
        const uint64_t id = units[order[i]].id;
        must(quern_entity_create_with(it.world, &it.id, (const void *const[]){&id}, 1, &it.handles[id]));
    }
    shuffle(order, &random);
    for (uint32_t i = 0; i < UNITS; i++) {
        stir(&it, &random);
        put_unit(&it, &units[order[i]]);
    }
    weather *sky = quern_resource_get(it.world, it.weather);
    sky->rain = 3;
    sky->cloud = it.handles[7];
    return it;
}

static uint64_t hash_of(const hashed *it)
{
    const uint64_t hash = quern_world_hash_by(it->world, it->id);
    cr_assert_neq(hash, 0u, "%s", quern_error_message());
    return hash;
}

Test(hash_by, same_entities_in_any_order_have_one_hash)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        make_units(seed);
        hashed first = build_units(2 * seed), second = build_units(2 * seed + 1);
        cr_assert_neq(quern_world_hash(first.world), quern_world_hash(second.world));
        cr_assert_eq(hash_of(&first), hash_of(&second), "seed %llu", (unsigned long long)seed);
        quern_world_destroy(first.world);
        quern_world_destroy(second.world);
    }
}

/* A change that must change the hash. */
typedef void alteration(unit *it);

static void alter_place(unit *it)
{
    it->place++, it->has_place = true;
}
static void alter_power(unit *it)
{
    it->power++, it->has_aim = true;
}
static void alter_at(unit *it)
{
    it->at = it->at == 5 ? 6 : 5, it->has_aim = true;
}
static void alter_no_at(unit *it)
{
    it->at = it->at == 0 ? 6 : 0, it->has_aim = true;
}
static void alter_owner(unit *it)
{
    it->owner = it->owner == 2 ? 3 : 2;
}
static void alter_parent(unit *it)
{
    it->parent = it->parent == 2 ? 3 : 2;
}
static void alter_tag(unit *it)
{
    it->has_tag = !it->has_tag;
}
static void alter_name(unit *it)
{
    it->has_name = !it->has_name;
}
static void alter_enabled(unit *it)
{
    it->is_off = !it->is_off, it->has_place = true;
}

Test(hash_by, every_difference_changes_the_hash)
{
    alteration *const all[] = {alter_place,  alter_power, alter_at,   alter_no_at,  alter_owner,
                               alter_parent, alter_tag,   alter_name, alter_enabled};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        make_units(3);
        units[40].has_place = units[40].has_aim = true;
        hashed first = build_units(4);
        all[i](&units[40]);
        hashed second = build_units(4);
        cr_assert_neq(hash_of(&first), hash_of(&second), "alteration %u", i);
        quern_world_destroy(first.world);
        quern_world_destroy(second.world);
    }
}

/* Two worlds with a parent and a child, both disabled: as a tree, or each by itself. */
Test(hash_by, disabled_trees_hash_like_disabled_entities)
{
    uint64_t hashes[2];
    for (uint32_t is_tree = 0; is_tree < 2; is_tree++) {
        quern_world *world = setup_world();
        const quern_component id = setup_component(world, "id", 8, 8);
        quern_entity parent, child;
        must(quern_entity_create_with(world, &id, (const void *[]){&(uint64_t){1}}, 1, &parent));
        must(quern_entity_create_with(world, &id, (const void *[]){&(uint64_t){2}}, 1, &child));
        must(quern_entity_relate(world, child, quern_world_parent(world), parent));
        if (is_tree == 0) must(quern_entity_set_enabled(world, child, false));
        must(quern_entity_set_enabled(world, parent, false));
        hashes[is_tree] = quern_world_hash_by(world, id);
        must(quern_entity_set_enabled(world, parent, true));
        cr_assert_neq(quern_world_hash_by(world, id), hashes[is_tree], "the tag itself is included");
        quern_world_destroy(world);
    }
    cr_assert_eq(hashes[0], hashes[1]);
}

Test(hash_by, resources_and_ids_are_included)
{
    make_units(5);
    hashed it = build_units(6);
    const uint64_t hash = hash_of(&it);
    weather *sky = quern_resource_get(it.world, it.weather);
    sky->rain++;
    cr_assert_neq(hash_of(&it), hash);
    sky->rain--;
    sky->cloud = it.handles[8];
    cr_assert_neq(hash_of(&it), hash);
    sky->cloud = it.handles[7];
    cr_assert_eq(hash_of(&it), hash);
    must(quern_entity_set(it.world, it.handles[9], it.id, &(uint64_t){UNITS + 1}));
    cr_assert_neq(hash_of(&it), hash);
    quern_world_destroy(it.world);
}

/* Two entities that exchange a value are not the same as before, although the sum of values is. */
Test(hash_by, values_belong_to_their_ids)
{
    make_units(5);
    for (uint32_t i = 10; i < 12; i++)
        units[i] = (unit){.id = i + 1, .place = i, .has_place = true};
    hashed first = build_units(6);
    units[10].place = 11;
    units[11].place = 10;
    hashed second = build_units(6);
    cr_assert_neq(hash_of(&first), hash_of(&second));
    quern_world_destroy(first.world);
    quern_world_destroy(second.world);
}

Test(hash_by, entities_without_id_are_left_out)
{
    make_units(5);
    hashed it = build_units(6);
    aim *aim_of = NULL;
    uint64_t id = 1;
    for (; id <= UNITS && aim_of == NULL; id++)
        aim_of = quern_entity_get(it.world, it.handles[id], it.aim);
    cr_assert_not_null(aim_of);
    aim_of->at = (quern_entity){0};
    must(quern_entity_create(it.world, &it.handles[0]));
    const uint64_t hash = hash_of(&it);
    const quern_entity other = setup_entity_with(it.world, &it.aim, 1);
    cr_assert_eq(hash_of(&it), hash);
    aim_of = quern_entity_get(it.world, it.handles[id - 1], it.aim);
    aim_of->at = other;
    cr_assert_eq(hash_of(&it), hash, "a handle of an entity without id counts as null");
    must(quern_entity_destroy(it.world, other));
    cr_assert_eq(hash_of(&it), hash, "a handle of a dead entity counts as null");
    for (id = 1; id <= UNITS && units[id - 1].owner > 0; id++)
        ;
    must(quern_entity_relate(it.world, it.handles[id], it.owner, it.handles[0]));
    cr_assert_eq(hash_of(&it), hash, "a target without id counts as none");
    quern_world_destroy(it.world);
}

/* The hashes of worlds that share entities without handles between them add up to that of one world. */
Test(hash_by, hashes_of_shared_entities_add_up)
{
    enum { WORLDS = 3, SHARED = 50 };
    quern_world *worlds[WORLDS + 1]; /* the last has all entities */
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= WORLDS; i++) {
        worlds[i] = setup_world();
        const quern_component list[] = {setup_component(worlds[i], "id", 8, 8),
                                        setup_component(worlds[i], "place", 8, 8)};
        cr_assert_eq(quern_world_hash_by(worlds[i], list[0]), 0u, "a world without entities");
        for (uint64_t id = 1; id <= SHARED; id++) {
            const void *const values[] = {&id, &(uint64_t){id * id}};
            if (i < WORLDS && id % WORLDS != i) continue;
            must(quern_entity_create_with(worlds[i], list, values, 2, NULL));
        }
        const uint64_t hash = quern_world_hash_by(worlds[i], list[0]);
        if (i == WORLDS) cr_assert_eq(hash, sum);
        sum += hash;
    }
    for (uint32_t i = 0; i <= WORLDS; i++)
        quern_world_destroy(worlds[i]);
}

static void copy_address(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(uint64_t));
}

/* The value of a type with hooks and without fields may be an address; its presence counts. */
Test(hash_by, values_with_hooks_count_only_as_present)
{
    make_units(5);
    hashed it = build_units(6);
    quern_component owned =
        make_component(it.world, .name = "owned", .size_bytes = sizeof(uint64_t),
                       .alignment_bytes = _Alignof(uint64_t), .hooks = {.copy = copy_address});
    const uint64_t hash = hash_of(&it);
    must(quern_entity_add(it.world, it.handles[1], owned, &(uint64_t){1}));
    const uint64_t with_owned = hash_of(&it);
    cr_assert_neq(with_owned, hash);
    must(quern_entity_set(it.world, it.handles[1], owned, &(uint64_t){2}));
    cr_assert_eq(hash_of(&it), with_owned);
    quern_world_destroy(it.world);
}

Test(hash_by, components_that_are_no_ids_are_rejected)
{
    hashed it = {.world = setup_world()}, other = {.world = setup_world()};
    register_types(&it, false);
    register_types(&other, false);
    assert_refused_value(it.world, quern_world_hash_by(NULL, it.id) != 0);
    assert_refused_value(it.world, quern_world_hash_by(it.world, it.tag) != 0);
    assert_refused_value(it.world, quern_world_hash_by(it.world, it.aim) != 0);
    assert_refused_value(it.world, quern_world_hash_by(it.world, quern_relation_component(it.owner)) != 0);
    assert_refused_value(it.world, quern_world_hash_by(it.world, other.id) != 0);
    assert_refused_value(it.world, quern_world_hash_by(it.world, (quern_component){0}) != 0);
    quern_world_destroy(other.world);
    quern_world_destroy(it.world);
}
