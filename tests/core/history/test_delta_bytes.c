/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/history_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Deltas as bytes: a world changes at random, and another one follows it. quern_world_hash_by says whether both are
 * equal, apart from slots and rows. */

enum { FIRST = 40, STEPS = 60, MOST = 400 };

typedef struct aim {
    uint32_t power;
    quern_entity at;
} aim;

typedef struct weather {
    uint64_t rain;
    quern_entity cloud;
} weather;

typedef struct side {
    quern_world *world;
    quern_component id, place, aim, tag;
    quern_relation owner, parent, likes; /* likes: several targets per source */
    quern_resource weather;
} side;

static side from, to;
static quern_history *history;
static quern_delta_applier *applier;
static quern_byte_buffer bytes;
static quern_entity entities[MOST]; /* of `from`; null: destroyed */
static uint64_t frame, next_id;

static void open_side(side *it, const quern_allocator *allocator)
{
    it->world = make_world(.allocator = allocator != NULL ? *allocator : (quern_allocator){0});
    it->id = setup_component(it->world, "id", 8, 8);
    it->place = make_component(it->world, .name = "place", .size_bytes = 12, .alignment_bytes = 4,
                               .can_disable = true);
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->aim, aim, power, at));
    it->tag = setup_tag(it->world, "tag");
    const quern_component share = setup_component(it->world, "share", 4, 4);
    it->owner = make_relation(it->world, .name = "owner", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                              .levels = true, .value = share);
    it->likes = make_relation(it->world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                              .many = true);
    it->parent = quern_world_parent(it->world);
    (void)quern_world_disabled_tag(it->world);
    must(QUERN_RESOURCE_REGISTER_FIELDS(it->world, &it->weather, weather, rain, cloud));
}

static quern_entity some(random_source *random)
{
    const quern_entity entity = entities[random_below(random, MOST)];
    return quern_entity_is_alive(from.world, entity) ? entity : (quern_entity){0};
}

static void create(void)
{
    const uint64_t id = ++next_id;
    must(quern_entity_create_with(from.world, &from.id, (const void *const[]){&id}, 1,
                                  &entities[id % MOST]));
}

/* Changes one entity. Calls that are impossible at the moment fail, which does not matter. */
static void change(quern_entity entity, random_source *random)
{
    const float place[3] = {(float)random_below(random, 9), 0, 0};
    const aim value = {(uint32_t)random_below(random, 9), some(random)};
    const uint32_t share = 5;
    char name[16];
    snprintf(name, sizeof name, "n%u", (unsigned)random_below(random, 12));
    switch (random_below(random, 16)) {
    case 12:
    case 13:
    case 14:
        (void)quern_entity_relate(from.world, entity, from.likes, some(random));
        break;
    case 15:
        (void)quern_entity_unrelate_from(from.world, entity, from.likes,
                                         quern_entity_target(from.world, entity, from.likes));
        break;
    case 0:
        (void)quern_entity_destroy(from.world, entity);
        break;
    case 1:
        if (quern_entity_add(from.world, entity, from.place, place) != QUERN_OK)
            must(quern_entity_set(from.world, entity, from.place, place));
        break;
    case 2:
        if (quern_entity_add(from.world, entity, from.aim, &value) != QUERN_OK)
            must(quern_entity_set(from.world, entity, from.aim, &value));
        break;
    case 3:
        (void)quern_entity_remove(from.world, entity, from.aim);
        break;
    case 4:
        if (quern_entity_add(from.world, entity, from.tag, NULL) != QUERN_OK)
            must(quern_entity_remove(from.world, entity, from.tag));
        break;
    case 5:
        (void)quern_entity_relate_with(from.world, entity, from.owner, some(random),
                                       value.power > 4 ? &value.power : &share);
        break;
    case 6:
    case 7:
        (void)quern_entity_relate(from.world, entity, from.parent, some(random));
        break;
    case 8:
        (void)quern_entity_unrelate(from.world, entity, from.parent);
        break;
    case 9:
        (void)quern_entity_set_name(from.world, entity, random_below(random, 4) > 0 ? name : NULL);
        break;
    case 10:
        if (quern_entity_has(from.world, entity, from.place))
            must(quern_entity_set_component_enabled(from.world, entity, from.place,
                                                    random_below(random, 2) == 0));
        break;
    default:
        (void)quern_entity_remove(from.world, entity, from.place);
        break;
    }
}

static void step(random_source *random)
{
    for (uint64_t i = 1 + random_below(random, 30); i > 0; i--) {
        const quern_entity entity = some(random);
        if (quern_entity_is_null(entity) || random_below(random, 8) == 0)
            create();
        else
            change(entity, random);
    }
    weather *sky = quern_resource_get(from.world, from.weather);
    sky->rain = random_below(random, 3);
    sky->cloud = some(random);
}

static uint64_t hash_from(void)
{
    return quern_world_hash_by(from.world, from.id);
}

static uint64_t hash_to(void)
{
    return quern_world_hash_by(to.world, to.id);
}

/* Makes `from`, saves a frame of it, and loads its archive into `to`. */
static void open_sides(void)
{
    random_source random = {5};
    open_side(&from, NULL);
    next_id = frame = 0;
    memset(entities, 0, sizeof entities);
    for (uint32_t i = 0; i < FIRST; i++)
        create();
    for (uint32_t i = 0; i < 10; i++)
        step(&random);
    must(quern_history_create(from.world, NULL, &history));
    must(quern_history_save(history, frame, NULL));
    quern_byte_buffer archive = {0};
    must(quern_world_save(from.world, quern_sink_bytes(&archive), NULL));
    open_side(&to, NULL);
    must(quern_world_load(to.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    quern_byte_buffer_release(&archive);
    must(quern_delta_applier_create(to.world, &applier));
    cr_assert_eq(hash_to(), hash_from());
    cr_assert_gt(stats_of_world(to.world).edge_count, 0u);
}

static void close_sides(void)
{
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    quern_byte_buffer_release(&bytes);
    quern_world_destroy(to.world);
    quern_world_destroy(from.world);
}

TestSuite(delta_bytes, .init = open_sides, .fini = close_sides);

/* Writes the changes between two frames. Returns the number of batches. */
static uint32_t write_delta(uint64_t older, uint64_t newer, const quern_delta_write_def *def)
{
    quern_delta *delta;
    uint32_t count;
    bytes.size_bytes = 0;
    must(quern_delta_create(history, older, newer, &delta));
    (void)quern_delta_batches(delta, &count);
    must(quern_delta_write(delta, def, quern_sink_bytes(&bytes)));
    quern_delta_destroy(delta);
    return count;
}

static quern_result apply_bytes(void)
{
    return quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes));
}

static void save_frame(void)
{
    must(quern_history_save(history, ++frame, NULL));
}

Test(delta_bytes, another_world_follows, .timeout = 120)
{
    random_source random = {9};
    for (uint32_t i = 0; i < STEPS; i++) {
        step(&random);
        save_frame();
        write_delta(frame - 1, frame, NULL);
        must(apply_bytes());
        cr_assert_eq(hash_to(), hash_from(), "step %u", i);
        assert_valid(to.world);
    }
    for (uint32_t i = 0; i < MOST; i++) {
        const quern_entity is =
            quern_delta_applier_find(applier, quern_entity_key(from.world, entities[i]));
        cr_assert_eq(quern_entity_is_alive(from.world, entities[i]), !quern_entity_is_null(is));
        if (quern_entity_is_null(is)) continue;
        cr_assert_eq(*(const uint64_t *)quern_entity_get(to.world, is, to.id),
                     *(const uint64_t *)quern_entity_get(from.world, entities[i], from.id));
    }
}

Test(delta_bytes, frames_can_be_skipped_and_parts_sent_singly, .timeout = 120)
{
    random_source random = {10};
    uint64_t known = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        step(&random);
        save_frame();
        if (random_below(&random, 3) > 0) continue;
        const uint32_t count = write_delta(known, frame, &(quern_delta_write_def){.batch_count = 1}),
                       piece = 1 + i % 5;
        for (uint32_t first = 0; first < count; first += piece) {
            write_delta(known, frame, &(quern_delta_write_def){.first_batch = first, .batch_count = piece});
            must(apply_bytes());
            assert_valid(to.world);
        }
        known = frame;
        cr_assert_eq(hash_to(), hash_from(), "step %u", i);
    }
}

/* A new edge begins with the default value, so a delta has its value even if the old edge had the same one. */
Test(delta_bytes, another_edge_has_its_value_in_each_part)
{
    quern_entity sources[4], *target = &sources[1], *next = &sources[2], *below = &sources[3];
    const uint32_t share = 5;
    for (uint32_t i = 0; i < 4; i++) {
        create();
        sources[i] = entities[next_id % MOST];
    }
    must(quern_entity_relate_with(from.world, sources[0], from.owner, *target, &share));
    save_frame();
    write_delta(frame - 1, frame, NULL);
    must(apply_bytes());
    must(quern_entity_relate_with(from.world, sources[0], from.owner, *next, &share));
    must(quern_entity_relate(from.world, *below, from.owner,
                             sources[0])); /* the source changes in two steps */
    save_frame();
    const uint32_t count = write_delta(frame - 1, frame, NULL);
    for (uint32_t i = 0; i < count; i++) {
        write_delta(frame - 1, frame, &(quern_delta_write_def){.first_batch = i, .batch_count = 1});
        must(apply_bytes());
    }
    cr_assert_eq(hash_to(), hash_from());
}

static size_t read_few(void *user_data, void *target, size_t capacity_bytes)
{
    size_t *at = user_data;
    const size_t left = bytes.size_bytes - *at, count = capacity_bytes < left ? capacity_bytes : left;
    const size_t few = count < 7 ? count : 7;
    memcpy(target, (const char *)bytes.bytes + *at, few);
    *at += few;
    return few;
}

Test(delta_bytes, source_may_be_a_function)
{
    random_source random = {11};
    size_t at = 0;
    step(&random);
    save_frame();
    write_delta(0, frame, NULL);
    must(quern_delta_apply(applier, (quern_source){.read = read_few, .user_data = &at}));
    cr_assert_eq(hash_to(), hash_from());
}

/* A world that has the entities in other slots follows, too. */
Test(delta_bytes, entities_in_other_slots_are_mapped)
{
    random_source random = {12};
    side other;
    quern_delta_applier *mapped;
    open_side(&other, NULL);
    for (uint32_t i = 0; i < 7; i++)
        setup_entity(other.world);
    quern_byte_buffer archive = {0};
    quern_entity loaded[MOST], listed[MOST];
    quern_archive *list;
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST; i++)
        if (quern_entity_is_alive(from.world, entities[i])) listed[count++] = entities[i];
    must(quern_archive_create(from.world, &list));
    must(quern_archive_append(list, listed, count));
    must(quern_archive_save(list, quern_sink_bytes(&archive), NULL));
    must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes),
                          &(quern_load_def){.entities = loaded, .entity_capacity = MOST}, NULL));
    must(quern_delta_applier_create(other.world, &mapped));
    for (uint32_t i = 0; i < count; i++)
        must(quern_delta_applier_map(mapped, quern_entity_key(from.world, listed[i]), loaded[i]));
    weather *sky = quern_resource_get(other.world, other.weather);
    *sky = *(const weather *)quern_resource_get(from.world, from.weather);
    sky->cloud = quern_delta_applier_find(mapped, quern_entity_key(from.world, sky->cloud));
    cr_assert_eq(quern_world_hash_by(other.world, other.id), hash_from());
    for (uint32_t i = 0; i < 10; i++) {
        step(&random);
        save_frame();
        write_delta(frame - 1, frame, NULL);
        must(quern_delta_apply(mapped, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
        cr_assert_eq(quern_world_hash_by(other.world, other.id), hash_from());
    }
    must_refuse(INVALID_ARGUMENT, other.world, quern_delta_applier_map(mapped, 0, loaded[0]));
    must_refuse(NULL_ENTITY, other.world, quern_delta_applier_map(mapped, 1, (quern_entity){0}));
    quern_archive_destroy(list);
    quern_delta_applier_destroy(mapped);
    quern_byte_buffer_release(&archive);
    quern_world_destroy(other.world);
}

/* ------------------------------------------------------------------------------------------ limits */

Test(delta_bytes, only_listed_components_are_sent)
{
    const quern_entity entity = some(&(random_source){3});
    const float place[3] = {77, 0, 0};
    cr_assert(!quern_entity_is_null(entity));
    (void)quern_entity_remove(from.world, entity, from.place);
    (void)quern_entity_remove(from.world, entity, from.aim);
    must(quern_entity_set_name(from.world, entity, "left out"));
    must(quern_entity_add(from.world, entity, from.place, place));
    must(quern_entity_add(from.world, entity, from.aim, &(aim){.power = 77}));
    ((weather *)quern_resource_get(from.world, from.weather))->rain = 77;
    save_frame();
    const quern_delta_write_def def = {
        .components = {from.place}, .skip_names = true, .skip_resources = true};
    write_delta(0, frame, &def);
    must(apply_bytes());
    const quern_entity is = quern_delta_applier_find(applier, quern_entity_key(from.world, entity));
    cr_assert_eq(*(const float *)quern_entity_get(to.world, is, to.place), 77.0f);
    const aim *at = quern_entity_has(to.world, is, to.aim) ? quern_entity_get(to.world, is, to.aim) : NULL;
    cr_assert(at == NULL || at->power != 77);
    cr_assert_neq(((const weather *)quern_resource_get(to.world, to.weather))->rain, 77u);
    const char *name = quern_entity_name(to.world, is);
    cr_assert(name == NULL || strcmp(name, "left out") != 0);
    write_delta(0, frame, NULL);
}

Test(delta_bytes, empty_delta_can_be_applied)
{
    save_frame();
    cr_assert_eq(write_delta(0, frame, NULL), 0u);
    const uint64_t hash = quern_world_hash(to.world);
    must(apply_bytes());
    cr_assert_eq(quern_world_hash(to.world), hash);
}

/* ------------------------------------------------------------------------------------------ errors */

static void copy_owned(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(uint64_t));
}

Test(delta_bytes, values_with_hooks_are_rejected)
{
    quern_delta *delta;
    quern_component owned =
        make_component(from.world, .name = "owned", .size_bytes = sizeof(uint64_t),
                       .alignment_bytes = _Alignof(uint64_t), .hooks = {.copy = copy_owned});
    const quern_entity entity = some(&(random_source){3});
    must(quern_entity_add(from.world, entity, owned, &(uint64_t){1}));
    save_frame();
    must(quern_delta_create(history, 0, frame, &delta));
    must_refuse(INVALID_ARGUMENT, from.world, quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    cr_assert_eq(bytes.size_bytes, 0u);
    must(quern_delta_write(delta, &(quern_delta_write_def){.components = {from.place}},
                           quern_sink_bytes(&bytes)));
    must_refuse(UNKNOWN_COMPONENT, from.world,
                quern_delta_write(delta, &(quern_delta_write_def){.components = {to.place}},
                                  quern_sink_bytes(&bytes)));
    must_refuse(NULL_ARGUMENT, from.world, quern_delta_write(NULL, NULL, quern_sink_bytes(&bytes)));
    must_refuse(NULL_ARGUMENT, from.world, quern_delta_write(delta, NULL, (quern_sink){0}));
    quern_delta_destroy(delta);
}

Test(delta_bytes, missing_and_different_types_are_rejected)
{
    quern_component extra;
    const quern_entity entity = some(&(random_source){3});
    extra = setup_component(from.world, "extra", 4, 4);
    must(quern_entity_add(from.world, entity, extra, NULL));
    save_frame();
    write_delta(0, frame, NULL);
    must_refuse(UNKNOWN_COMPONENT, to.world, apply_bytes());
    setup_component(to.world, "extra", 8, 8);
    must_refuse(LAYOUT_MISMATCH, to.world, apply_bytes());
    must_refuse(NULL_ARGUMENT, to.world, quern_delta_apply(NULL, quern_source_bytes("", 0)));
    must_refuse(NULL_ARGUMENT, to.world, quern_delta_apply(applier, (quern_source){0}));
    must_refuse(BAD_ARCHIVE, to.world, quern_delta_apply(applier, quern_source_bytes("", 0)));
}

/* A delta that was applied before creates entities that exist. */
Test(delta_bytes, delta_for_another_state_is_rejected)
{
    create();
    save_frame();
    write_delta(0, frame, NULL);
    must(apply_bytes());
    must_refuse(BAD_ARCHIVE, to.world, apply_bytes());
    must(quern_entity_destroy(from.world, entities[next_id % MOST]));
    save_frame();
    write_delta(1, frame, NULL);
    must(apply_bytes());
    must_refuse(BAD_ARCHIVE, to.world, apply_bytes());
}

Test(delta_bytes, every_truncation_and_flipped_bit_is_rejected, .timeout = 120)
{
    random_source random = {13};
    step(&random);
    save_frame();
    write_delta(0, frame, NULL);
    const uint64_t hash = quern_world_hash(to.world);
    for (size_t size = 0; size < bytes.size_bytes; size++) {
        char *cut = malloc(size + 1);
        memcpy(cut, bytes.bytes, size);
        cr_assert_eq(quern_delta_apply(applier, quern_source_bytes(cut, size)), QUERN_ERROR_BAD_ARCHIVE);
        free(cut);
    }
    for (size_t i = 0; i < 8 * bytes.size_bytes; i++) {
        ((uint8_t *)bytes.bytes)[i / 8] ^= (uint8_t)(1u << i % 8);
        cr_assert_eq(apply_bytes(), QUERN_ERROR_BAD_ARCHIVE, "bit %zu", i);
        ((uint8_t *)bytes.bytes)[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    cr_assert_eq(quern_world_hash(to.world), hash);
    must(apply_bytes());
    cr_assert_eq(hash_to(), hash_from());
}

static void reseal_delta(char *message)
{
    quern__delta_head head;
    memcpy(&head, message, sizeof head);
    if (head.bytes != bytes.size_bytes - sizeof head) return;
    head.checksum = quern__delta_checksum(&head, message + sizeof head);
    memcpy(message, &head, sizeof head);
}

/* Behind a repaired checksum, forged bytes are rejected without a change, or give a valid world. */
Test(delta_bytes, forged_bytes_give_a_valid_world, .timeout = 300)
{
    random_source random = {14};
    for (uint32_t i = 0; i < 3; i++)
        step(&random);
    save_frame();
    write_delta(0, frame, NULL);
    quern_byte_buffer archive = {0};
    must(quern_world_save(to.world, quern_sink_bytes(&archive), NULL));
    char *message = malloc(bytes.size_bytes);
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        side other;
        quern_delta_applier *forged;
        if (i % 4 == 0) {
            open_side(&other, NULL);
            must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL,
                                  NULL));
            must(quern_delta_applier_create(other.world, &forged));
            memcpy(message, bytes.bytes, bytes.size_bytes);
            memset(message + i, 0xFF, bytes.size_bytes - i < 4 ? bytes.size_bytes - i : 4);
            reseal_delta(message);
            (void)quern_delta_apply(forged, quern_source_bytes(message, bytes.size_bytes));
            assert_valid(other.world);
            memcpy(message, bytes.bytes, bytes.size_bytes);
            ((uint8_t *)message)[i] ^= 1;
            reseal_delta(message);
            const uint64_t hash = quern_world_hash(other.world);
            const quern_result result =
                quern_delta_apply(forged, quern_source_bytes(message, bytes.size_bytes));
            if (result == QUERN_ERROR_BAD_ARCHIVE) cr_assert_eq(quern_world_hash(other.world), hash);
            assert_valid(other.world);
            quern_delta_applier_destroy(forged);
            quern_world_destroy(other.world);
        }
    }
    free(message);
    quern_byte_buffer_release(&archive);
}

Test(delta_bytes, every_failed_allocation_changes_nothing, .timeout = 120)
{
    random_source random = {15};
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern_byte_buffer archive = {0};
    must(quern_world_save(from.world, quern_sink_bytes(&archive), NULL));
    for (uint32_t i = 0; i < 3; i++)
        step(&random);
    save_frame();
    write_delta(0, frame, NULL);
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        side other;
        quern_delta_applier *failing;
        open_side(&other, &allocator);
        must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL,
                              NULL));
        must(quern_delta_applier_create(other.world, &failing));
        const uint64_t hash = quern_world_hash(other.world);
        failing_allocator_fail_at(memory, call);
        result = quern_delta_apply(failing, quern_source_bytes(bytes.bytes, bytes.size_bytes));
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        if (result != QUERN_OK) {
            cr_assert_eq(quern_world_hash(other.world), hash);
            must(quern_delta_apply(failing, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
        }
        cr_assert_eq(quern_world_hash_by(other.world, other.id), hash_from());
        assert_valid(other.world);
        quern_delta_applier_destroy(failing);
        quern_world_destroy(other.world);
    }
    failing_allocator_close(memory);
    quern_byte_buffer_release(&archive);
}

/* -------------------------------------------------------------------------------------- limited deltas */

/* Limited deltas: `to` begins empty, and follows the entities of `from` that a query matches. After each step it is
 * compared with a naive copy of them, entity by entity. */

enum { LIMIT_KINDS = 6, LIMIT_STEPS = 40 };

static quern_delta_def limit;
static uint32_t limit_kind;

static void open_limited(void)
{
    next_id = frame = 0;
    memset(entities, 0, sizeof entities);
    open_side(&from, NULL);
    open_side(&to, NULL);
    must(quern_history_create(from.world, &(quern_history_def){.frame_count = LIMIT_STEPS + 1}, &history));
    must(quern_history_save(history, frame, NULL));
    must(quern_delta_applier_create(to.world, &applier));
}

TestSuite(delta_limited, .init = open_limited, .fini = close_sides);

static quern_delta_def make_limit(uint32_t kind)
{
    const quern_component disabled = quern_world_disabled_tag(from.world);
    const quern_term terms[LIMIT_KINDS][2] = {
        {quern_term_with(from.id), quern_term_without(from.tag)},
        {quern_term_either(quern_term_read(from.place))},
        {quern_term_without(from.aim), quern_term_optional(disabled, QUERN_ACCESS_NONE)},
        {quern_term_any(from.aim, QUERN_ACCESS_NONE), quern_term_any(from.tag, QUERN_ACCESS_NONE)},
        {quern_term_with(from.id), quern_term_without(from.tag)},
        {quern_term_with(from.id), quern_term_without(from.tag)}};
    quern_delta_def def = {.query = setup_query(from.world, terms[kind], kind == 1 ? 1 : 2)};
    if (kind >= 4) {
        def.skip_resources = true;
        def.components[0] = from.id;
        def.components[1] = from.place;
        def.components[2] = quern_relation_component(kind == 4 ? from.likes : from.parent);
    }
    return def;
}

/* What the terms of make_limit mean. */
static bool is_member(quern_entity entity)
{
    const quern_world *world = from.world;
    if (!quern_entity_is_alive(world, entity)) return false;
    const bool has_aim = quern_entity_has(world, entity, from.aim),
               has_tag = quern_entity_has(world, entity, from.tag);
    if (limit_kind == 2) return !has_aim;
    if (!quern_entity_is_enabled(world, entity)) return false;
    if (limit_kind == 1) return quern_entity_has(world, entity, from.place);
    return limit_kind == 3 ? has_aim || has_tag : !has_tag;
}

static quern_entity copy_of(quern_entity entity)
{
    return quern_delta_applier_find(applier, quern_entity_key(from.world, entity));
}

static void expect_component(quern_entity entity, quern_component component, quern_component copied,
                             bool is_listed, size_t value_bytes)
{
    const quern_entity copy = copy_of(entity);
    const bool exists = quern_entity_has(from.world, entity, component);
    cr_assert_eq(quern_entity_has(to.world, copy, copied), exists && is_listed);
    if (exists && is_listed && value_bytes > 0)
        cr_assert_arr_eq(quern_entity_get(from.world, entity, component),
                         quern_entity_get(to.world, copy, copied), value_bytes);
}

/* A handle is not repaired if its entity begins to match later, so it may be null. */
static void expect_aim(quern_entity entity)
{
    expect_component(entity, from.aim, to.aim, limit_kind < 4, sizeof(uint32_t));
    if (limit_kind >= 4 || !quern_entity_has(from.world, entity, from.aim)) return;
    const quern_entity at = ((const aim *)quern_entity_get(from.world, entity, from.aim))->at;
    const quern_entity copy = ((const aim *)quern_entity_get(to.world, copy_of(entity), to.aim))->at;
    if (quern_entity_is_alive(to.world, copy))
        cr_assert(is_member(at) && quern_entity_equal(copy, copy_of(at)));
}

static void expect_target(quern_entity entity, quern_relation relation, quern_relation copied,
                          bool is_listed)
{
    const quern_entity target = quern_entity_target(from.world, entity, relation);
    const bool is_copied = is_listed && is_member(target);
    cr_assert_eq(quern_entity_target(to.world, copy_of(entity), copied).bits,
                 is_copied ? copy_of(target).bits : 0);
}

static void expect_likes(quern_entity entity)
{
    const quern_entity copy = copy_of(entity);
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        const bool likes = limit_kind != 5 && is_member(entities[i]) &&
                           quern_entity_has_target(from.world, entity, from.likes, entities[i]);
        if (likes) cr_assert(quern_entity_has_target(to.world, copy, to.likes, copy_of(entities[i])));
        count += likes;
    }
    cr_assert_eq(quern_entity_target_count(to.world, copy, to.likes), count);
}

static void expect_name(quern_entity entity)
{
    const quern_entity parent = quern_entity_target(from.world, entity, from.parent);
    const bool is_copied = quern_entity_is_null(parent) || (limit_kind != 4 && is_member(parent));
    const char *name = is_copied ? quern_entity_name(from.world, entity) : NULL,
               *copy = quern_entity_name(to.world, copy_of(entity));
    cr_assert_str_eq(copy != NULL ? copy : "", name != NULL ? name : "");
}

static void expect_copy(void)
{
    uint32_t count = 0;
    assert_valid(to.world);
    for (uint32_t i = 0; i < MOST; i++) {
        const quern_entity entity = entities[i];
        if (quern_entity_is_alive(from.world, entity))
            cr_assert_eq(quern_entity_is_null(copy_of(entity)), !is_member(entity));
        if (!is_member(entity)) continue;
        count++;
        expect_component(entity, from.id, to.id, true, 8);
        expect_component(entity, from.place, to.place, true, 12);
        expect_component(entity, from.tag, to.tag, limit_kind < 4, 0);
        if (quern_entity_has(from.world, entity, from.place))
            cr_assert_eq(quern_entity_is_component_enabled(from.world, entity, from.place),
                         quern_entity_is_component_enabled(to.world, copy_of(entity), to.place));
        cr_assert_eq(quern_entity_is_enabled(from.world, entity),
                     quern_entity_is_enabled(to.world, copy_of(entity)));
        expect_aim(entity);
        expect_target(entity, from.owner, to.owner, limit_kind < 4);
        expect_target(entity, from.parent, to.parent, limit_kind != 4);
        expect_likes(entity);
        expect_name(entity);
    }
    cr_assert_eq(stats_of_world(to.world).entity_count, count);
    const weather *now = quern_resource_get(from.world, from.weather),
                  *copied = quern_resource_get(to.world, to.weather);
    cr_assert_eq(copied->rain, limit.skip_resources ? 0 : now->rain);
}

static quern_result write_limited(uint64_t older, uint64_t newer)
{
    quern_delta *delta;
    bytes.size_bytes = 0;
    const quern_result result = quern_delta_create_limited(history, older, newer, &limit, &delta);
    if (result != QUERN_OK) return result;
    must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    quern_delta_destroy(delta);
    return QUERN_OK;
}

static quern_entity some_alive(random_source *random)
{
    quern_entity entity = some(random);
    while (quern_entity_is_null(entity))
        entity = some(random);
    return entity;
}

/* Relates and names entities. What is impossible at the moment fails, which does not matter. */
static void relate_some(random_source *random, uint32_t count)
{
    const quern_relation relations[] = {from.owner, from.parent, from.likes};
    for (; count > 0; count--) {
        char name[16];
        snprintf(name, sizeof name, "r%u", (unsigned)random_below(random, 30));
        const quern_entity source = some_alive(random), target = some_alive(random);
        (void)quern_entity_relate(from.world, source, relations[random_below(random, 3)], target);
        if (random_below(random, 3) == 0) (void)quern_entity_set_name(from.world, source, name);
    }
}

static void fill(random_source *random)
{
    for (uint32_t i = 0; i < 2 * FIRST; i++)
        create();
    for (uint32_t i = 0; i < 10; i++)
        step(random);
    relate_some(random, 6 * FIRST);
}

/* Lets an entity begin or cease to match, perhaps, and changes little else, so that frames share most pages. */
static void cross(random_source *random)
{
    const quern_component list[] = {from.tag, from.aim, from.place};
    quern_entity entity = some_alive(random);
    const quern_entity target = quern_entity_target(from.world, entity, from.parent);
    if (!quern_entity_is_null(target)) entity = target;
    const quern_component component = list[random_below(random, 3)];
    const float place[3] = {0};
    const aim at = {1, {0}};
    if (random_below(random, 4) == 0)
        must(quern_entity_set_enabled(from.world, entity, !quern_entity_is_enabled(from.world, entity)));
    else if (quern_entity_has(from.world, entity, component))
        must(quern_entity_remove(from.world, entity, component));
    else
        must(quern_entity_add(from.world, entity, component,
                              component.bits == from.aim.bits     ? (const void *)&at
                              : component.bits == from.place.bits ? (const void *)place
                                                                  : NULL));
    const quern_entity child = quern_entity_first_source(from.world, entity, from.parent);
    if (!quern_entity_is_null(child) && random_below(random, 3) == 0)
        (void)quern_entity_relate(from.world, child, from.parent, some_alive(random));
    if (random_below(random, 2) == 0) relate_some(random, 2);
}

static void follow(uint32_t kind)
{
    random_source random = {kind + 77};
    limit_kind = kind;
    limit = make_limit(kind);
    uint64_t known = 0;
    for (uint32_t i = 0; i < LIMIT_STEPS; i++) {
        if (i == 0) fill(&random);
        if (i % 3 == 0)
            step(&random);
        else
            cross(&random);
        save_frame();
        if (i % 3 == 0 && random_below(&random, 2) == 0) continue;
        must(write_limited(known, frame));
        must(apply_bytes());
        known = frame;
        expect_copy();
        if (random_below(&random, 8) > 0) continue;
        must(write_limited(frame, 0)); /* to the empty frame, and to the present one again */
        must(apply_bytes());
        cr_assert_eq(stats_of_world(to.world).entity_count, 0u);
        must(write_limited(0, frame));
        must(apply_bytes());
        expect_copy();
    }
    cr_assert_gt(stats_of_world(to.world).entity_count, 3u);
    quern_query_destroy(limit.query);
}

Test(delta_limited, another_world_follows_what_a_query_matches, .timeout = 120)
{
    for (uint32_t kind = 0; kind < LIMIT_KINDS; kind++) {
        if (kind > 0) {
            close_sides();
            bytes = (quern_byte_buffer){0};
            open_limited();
        }
        follow(kind);
    }
}

static void expect_refused(quern_query *query, quern_component component, quern_result result,
                           const char *what)
{
    quern_delta *delta = NULL;
    const quern_delta_def def = {.query = query, .components = {from.id, component}};
    assert_refused(from.world, result, quern_delta_create_limited(history, 0, 1, &def, &delta));
    cr_assert_not_null(strstr(quern_error_message(), what), "%s", quern_error_message());
    cr_assert_null(delta);
}

static void expect_term_refused(quern_term term, const char *what)
{
    quern_query *query = setup_query(from.world, &term, 1);
    expect_refused(query, from.tag, QUERN_ERROR_INVALID_ARGUMENT, what);
    quern_query_destroy(query);
}

Test(delta_limited, impossible_limits_are_refused)
{
    const quern_entity target = setup_entity_with(from.world, &from.id, 1);
    save_frame();
    quern_term changed = quern_term_read(from.id);
    changed.changed = true;
    expect_term_refused(changed, "change filters");
    expect_term_refused(quern_term_target(from.owner, target), "target term");
    expect_term_refused(quern_term_up(from.id, from.parent), "up-terms");
    expect_term_refused(quern_term_read(from.place), "quern_term_either");
    quern_query *foreign = setup_query(to.world, (quern_term[]){quern_term_read(to.id)}, 1);
    expect_refused(foreign, from.tag, QUERN_ERROR_INVALID_ARGUMENT, "another world");
    quern_query_destroy(foreign);
    expect_refused(NULL, (quern_component){1}, QUERN_ERROR_UNKNOWN_COMPONENT, "component 1");
    quern_delta *delta = NULL;
    const quern_delta_def gap = {.components = {{0}, from.id}}, zero = {.query = NULL};
    must_refuse(INVALID_ARGUMENT, from.world, quern_delta_create_limited(history, 0, 1, &gap, &delta));
    must_refuse(INVALID_ARGUMENT, from.world, quern_delta_create_limited(history, 0, 9, &zero, &delta));
    must_refuse(NULL_ARGUMENT, from.world, quern_delta_create_limited(NULL, 0, 1, &zero, &delta));
    must_refuse(NULL_ARGUMENT, from.world, quern_delta_create_limited(history, 0, 1, NULL, &delta));
    must_refuse(NULL_ARGUMENT, from.world, quern_delta_create_limited(history, 0, 1, &zero, NULL));
    cr_assert_null(delta);
}
