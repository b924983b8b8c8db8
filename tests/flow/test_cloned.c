/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

/* Random systems clone by command, in two worlds. In the second one, prefabs of all entities are captured before each frame
 * and spawned by command in place of clones: a clone copies what exists when the sync point begins. Ids of copies are
 * assigned after each frame, in the order of siblings. All thread counts have the same result. */

enum {
    FRAMES = effort(40, 40, 12),
    SEEDS = effort(6, 4, 2),
    BEGIN = 40,
    CROWD = 260,
    SYSTEMS = 2,
    MOST = 4096
};

typedef struct place {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_component id, number, link, tag, toggle, hooked, copied;
    quern_relation parent, likes, home;
    tracked_counts counts;
    bool has_prefabs; /* spawns prefabs instead of clones */
    uint64_t seed, frame;
    quern_entity all[MOST];
    quern_prefab prefabs[MOST];
    quern_entity parents[MOST];
    uint32_t count;
    uint64_t next_id, clone_count, drop_count;
} place;

static quern_entity pick(const place *in, random_source *random, uint32_t *out_index)
{
    *out_index = random_below(random, in->count);
    return in->all[*out_index];
}

/* Records a copy of a random entity. Returns the provisional handle of its root. */
static quern_entity record_copy(const place *in, quern_commands *commands, random_source *random,
                                quern_entity below)
{
    uint32_t index, ignored;
    quern_entity root;
    const quern_entity entity = pick(in, random, &index);
    quern_spawn_def def = {.parent = {0}};
    const uint32_t kind = random_below(random, 4);
    const uint64_t number = random_below(random, 1000), mark = random_next(random);
    bool has_def = kind > 0;
    if (kind == 1) def.parent = pick(in, random, &ignored);
    if (kind == 2 && !quern_entity_is_null(below)) def.parent = below;
    if (!in->has_prefabs) {
        must(quern_commands_clone(commands, entity, has_def ? &def : NULL, &root));
    } else {
        if (!has_def) def.parent = in->parents[index];
        must(quern_commands_spawn(commands, in->prefabs[index], &def, &root));
    }
    if (random_chance(random, 40)) must(quern_commands_set(commands, root, in->number, &number));
    must(quern_commands_set(commands, root, in->copied, &mark));
    return root;
}

/* Changes an entity, which may be a copy that this callback makes. */
static void record_change(const place *in, quern_commands *commands, random_source *random,
                          quern_entity entity)
{
    char name[16];
    uint32_t ignored;
    const quern_entity other = pick(in, random, &ignored);
    const uint64_t number = random_below(random, 1000);
    tracked value;
    switch (random_below(random, 14)) {
    case 0:
    case 1:
        must(quern_commands_set(commands, entity, in->number, &number));
        break;
    case 2:
        must(quern_commands_remove(commands, entity, in->number));
        break;
    case 3:
        must(quern_commands_add(commands, entity, in->tag, NULL));
        break;
    case 4:
        if (!quern_entity_equal(entity, other))
            must(quern_commands_relate(commands, entity, in->parent, other));
        break;
    case 5:
        if (!quern_entity_equal(entity, other))
            must(quern_commands_relate(commands, other, in->parent, entity));
        break;
    case 6:
        if (!quern_entity_equal(entity, other))
            must(quern_commands_relate(commands, entity, in->likes, other));
        break;
    case 7:
        if (!quern_entity_equal(entity, other))
            must(quern_commands_relate(commands, other, in->home, entity));
        break;
    case 8:
        snprintf(name, sizeof name, "n%u", (unsigned)random_below(random, 30));
        must(quern_commands_set_name(commands, entity, name));
        break;
    case 9:
        if (random_chance(random, in->count > CROWD ? 90 : 30))
            must(quern_commands_destroy(commands, entity));
        break;
    case 10:
        must(quern_commands_set(commands, other, in->link, &entity));
        break;
    case 11:
        tracked_construct(&value, number, (tracked_counts *)(uintptr_t)&in->counts);
        must(quern_commands_set(commands, entity, in->hooked, &value));
        tracked_destroy(&value, (tracked_counts *)(uintptr_t)&in->counts);
        break;
    case 12:
        must(quern_commands_set(commands, entity, in->toggle, &(uint32_t){(uint32_t)number}));
        if (random_chance(random, 50))
            must(quern_commands_set_component_enabled(commands, entity, in->toggle, false));
        break;
    default:
        must(quern_commands_set_enabled(commands, entity, random_chance(random, 60)));
    }
}

static void act(quern_context *context, const quern_view *view, uint64_t salt)
{
    place *in = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *ids = quern_view_read(view, 0);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        random_source random = {in->seed * 7919 + in->frame * 104729 + ids[i] * 31 + salt};
        quern_entity below = quern_entity_null();
        if (!random_chance(&random, 12)) continue;
        for (uint32_t step = random_below(&random, 5); step > 0; step--)
            if (in->count < CROWD && random_chance(&random, 40))
                below = record_copy(in, commands, &random, below);
            else
                record_change(
                    in, commands, &random,
                    !quern_entity_is_null(below) && random_chance(&random, 60) ? below : view->entities[i]);
    }
}

static void act_first(quern_context *context, const quern_view *view)
{
    act(context, view, 1);
}

static void act_second(quern_context *context, const quern_view *view)
{
    act(context, view, 2);
}

static void open_place(place *in, uint64_t seed, bool has_prefabs, uint32_t threads, uint32_t style)
{
    *in = (place){.world = setup_world(), .seed = seed, .has_prefabs = has_prefabs, .next_id = 1};
    in->id = setup_component(in->world, "id", 8, 8);
    in->number = setup_component(in->world, "number", 8, 8);
    in->link = make_component(in->world, .name = "link", .size_bytes = 8, .alignment_bytes = 8,
                              .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}});
    in->tag = setup_tag(in->world, "tag");
    in->toggle = make_component(in->world, .name = "toggle", .size_bytes = 4, .alignment_bytes = 4,
                                .can_disable = true);
    in->hooked = tracked_register(in->world, "hooked", &in->counts);
    in->copied = setup_component(in->world, "copied", 8, 8);
    in->parent = quern_world_parent(in->world);
    in->likes = make_relation(in->world, .name = "likes", .many = true);
    in->home = make_relation(in->world, .name = "home", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                             .levels = true);
    (void)quern_world_disabled_tag(in->world);
    in->jobs = setup_jobs(threads);
    in->schedule = setup_schedule_as(in->world, schedule_style(style), 1);
    for (uint32_t s = 0; s < SYSTEMS; s++) {
        char name[8];
        snprintf(name, sizeof name, "act%u", (unsigned)s);
        quern_system_def def = system_def(name, s == 0 ? act_first : act_second);
        def.terms[0] = quern_term_read(in->id);
        def.user_data = in;
        (void)setup_system(in->schedule, &def);
    }
    for (uint32_t i = 0; i < BEGIN; i++) {
        const uint64_t id = in->next_id++;
        quern_entity entity;
        must(quern_entity_create_with(in->world, (quern_component[]){in->id, in->number},
                                      (const void *[]){&id, &id}, 2, &entity));
    }
}

static void close_place(place *of)
{
    assert_valid(of->world);
    quern_schedule_destroy(of->schedule);
    quern_jobs_destroy(of->jobs);
    quern_world_destroy(of->world);
    cr_assert_eq(of->counts.broken_count, 0u);
    cr_assert_eq(tracked_live_count(&of->counts), 0u);
}

/* Lists all entities with a component, in the order of views. */
static uint32_t list_with(const place *in, quern_component component, quern_entity *list)
{
    quern_query *query = setup_query(
        in->world,
        (quern_term[]){quern_term_with(component),
                       quern_term_optional(quern_world_disabled_tag(in->world), QUERN_ACCESS_NONE)},
        2);
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        cr_assert_lt(count + it.view.count, (uint32_t)MOST);
        memcpy(list + count, it.view.entities, it.view.count * sizeof *list);
        count += it.view.count;
    }
    quern_query_destroy(query);
    return count;
}

static void give_ids(place *in, quern_entity root)
{
    const uint64_t id = in->next_id++;
    must(quern_entity_set(in->world, root, in->id, &id));
    for (quern_entity child = quern_entity_first_source(in->world, root, in->parent);
         !quern_entity_is_null(child); child = quern_entity_next_sibling(in->world, child, in->parent))
        give_ids(in, child);
}

typedef struct marked_root {
    uint64_t mark;
    quern_entity root;
} marked_root;

static int compare(const void *a, const void *b)
{
    const uint64_t first = ((const marked_root *)a)->mark, second = ((const marked_root *)b)->mark;
    return (first > second) - (first < second);
}

static void name_copies(place *in)
{
    static quern_entity roots[MOST];
    static marked_root marked[MOST];
    const uint32_t count = list_with(in, in->copied, roots);
    for (uint32_t i = 0; i < count; i++)
        marked[i] =
            (marked_root){*(const uint64_t *)quern_entity_get(in->world, roots[i], in->copied), roots[i]};
    qsort(marked, count, sizeof *marked, compare);
    for (uint32_t i = 0; i < count; i++) {
        give_ids(in, marked[i].root);
        must(quern_entity_remove(in->world, marked[i].root, in->copied));
    }
    in->clone_count += count;
}

/* Runs a frame with one sync point, after which the copies get their ids. */
static void run_frame(place *in, uint64_t frame)
{
    in->frame = frame;
    in->count = list_with(in, in->id, in->all);
    for (uint32_t i = 0; i < in->count; i++) {
        in->parents[i] = quern_entity_target(in->world, in->all[i], in->parent);
        if (in->has_prefabs) must(quern_prefab_capture(in->world, in->all[i], &in->prefabs[i]));
    }
    must_run(in->schedule, in->jobs);
    in->drop_count += stats_of_frame(in->schedule).dropped_count;
    for (uint32_t i = 0; i < in->count && in->has_prefabs; i++)
        must(quern_prefab_destroy(in->world, in->prefabs[i]));
    name_copies(in);
}

Test(cloned, agrees_with_prefabs_at_every_thread_count, .timeout = 300)
{
    static place clones, spawns;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static uint64_t hashes[FRAMES];
        for (uint32_t i = 0; i < SETTING_COUNT; i++) {
            const frame_setting setting = frame_setting_at(i, (uint32_t)seed);
            open_place(&clones, seed, false, setting.thread_count, setting.style);
            if (i == 0) open_place(&spawns, seed, true, 0, 0);
            for (uint64_t frame = 0; frame < FRAMES; frame++) {
                run_frame(&clones, frame);
                if (i > 0) {
                    cr_assert_eq(quern_world_hash(clones.world), hashes[frame], "seed %llu, frame %llu",
                                 (unsigned long long)seed, (unsigned long long)frame);
                    continue;
                }
                run_frame(&spawns, frame);
                hashes[frame] = quern_world_hash(clones.world);
                cr_assert_eq(clones.count, spawns.count, "seed %llu, frame %llu", (unsigned long long)seed,
                             (unsigned long long)frame);
                cr_assert_eq(quern_world_hash_by(clones.world, clones.id),
                             quern_world_hash_by(spawns.world, spawns.id), "seed %llu, frame %llu",
                             (unsigned long long)seed, (unsigned long long)frame);
                cr_assert_eq(clones.drop_count, spawns.drop_count);
            }
            cr_assert_gt(clones.clone_count, (uint64_t)FRAMES);
            if (i == 0) close_place(&spawns);
            close_place(&clones);
        }
    }
}
