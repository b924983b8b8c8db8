/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/view_scene.h"
#include "tests/support/effort.h"

/* Commands for views, compared with the single commands that they stand for: rows, handles, values, reports, and
 * what reactions and change filters see must be equal, at every thread count. */

enum { FRAMES = 5, SEEDS = effort(6, 2, 1), MAX_DROPS = 24 };

static uint64_t salt;
static uint32_t destroy_percent;
static quern_resource seen; /* sum over all rows that reactions and filters have seen */

static uint64_t mix(uint64_t x)
{
    random_source source = {x};
    return random_next(&source);
}

static uint64_t seed_of(const quern_context *context, uint64_t what)
{
    const uint64_t system = (uintptr_t)quern_context_user_data(context);
    return mix(mix(salt ^ system << 40) + quern_context_frame_index(context) * 1000003 + what);
}

/* Half of the recordings create an entity with a target first, so that the sync point appends commands to a recording
 * that may end with a command for a view. */
static void act(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t drawn = seed_of(context, 2 + quern_entity_index(view->entities[0]));
    const quern_entity target = known[drawn / 2 % ENTITIES];
    if (drawn % 2 == 0 && parent.bits != 0 && quern_context_is_alive(context, target)) {
        const void *values[] = {&target};
        record_entity_with(commands, &components[PARENT], values, 1);
    }
    act_on_view(commands, view, seed_of(context, quern_entity_index(view->entities[0])), destroy_percent);
}

/* Single commands on entities of all chunks, so that a few rows of a chunk have commands of their own. */
static void act_at_end(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    random_source random = {seed_of(context, 1)};
    const uint32_t count = random_below(&random, 20);
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = known[random_below(&random, ENTITIES)];
        const uint32_t way = random_below(&random, 4);
        if (!quern_context_is_alive(context, entity)) continue;
        if (way == 0)
            expect(quern_commands_set_component_enabled(commands, entity, components[TOGGLED], false));
        if (way == 1) expect(quern_commands_add(commands, entity, components[TOGGLED], NULL));
        if (way == 2) expect(quern_commands_remove(commands, entity, components[TAG]));
        const quern_entity target = known[random_below(&random, ENTITIES)];
        if (way == 3 && parent.bits != 0 && quern_context_is_alive(context, target) &&
            !quern_entity_equal(entity, target))
            expect(quern_commands_relate(commands, entity, parent, target));
    }
}

static void note_seen(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t *sum = quern_context_resource_write(context, seen);
    const uint64_t system = (uintptr_t)quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        *sum += mix(system << 40 ^ (uint64_t)quern_context_reaction(context) << 32 ^
                    quern_entity_index(view->entities[i]));
}

/* Also notes the values from before the rows were set. */
static void note_old(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t *sum = quern_context_resource_write(context, seen);
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        *sum += mix(numbers[i] ^ (uint64_t)quern_entity_index(view->entities[i]) << 32);
}

static void add_system(const char *name, quern_view_callback *run, quern_term term, uint32_t phase,
                       uint32_t flags, uint32_t reacts_to)
{
    quern_system_def def = system_def(name, run);
    def.terms[0] = term;
    def.phase = phase;
    def.flags = flags;
    def.reacts_to = reacts_to;
    def.user_data = (void *)(uintptr_t)(1 + quern_schedule_system_count(schedule));
    if (run == act) def.end = act_at_end;
    if (run == note_seen || run == note_old)
        def.resources[0] = (quern_resource_access){seen, QUERN_ACCESS_WRITE_CONCURRENT};
    setup_system(schedule, &def);
}

static void add_systems(bool watches)
{
    add_system("numbers", act, quern_term_with(components[NUMBER]), 0, QUERN_SYSTEM_DEFAULT, 0);
    add_system("tags", act, quern_term_with(components[TAG]), 0, QUERN_SYSTEM_DEFAULT, 0);
    add_system("toggled", act, quern_term_with(components[TOGGLED]), 0, QUERN_SYSTEM_DEFAULT, 0);
    add_system("again", act, quern_term_with(components[NUMBER]), 1, QUERN_SYSTEM_DEFAULT, 0);
    add_system("whole", act, quern_term_with(components[TOGGLED]), 1, QUERN_SYSTEM_WHOLE_CHUNKS, 0);
    if (!watches) return;
    add_system("reaction", note_seen, quern_term_read(components[NUMBER]), 1, QUERN_SYSTEM_DEFAULT,
               QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED);
    add_system("old", note_old, quern_term_old(components[NUMBER]), 1, QUERN_SYSTEM_DEFAULT,
               QUERN_REACT_SET);
    add_system("filter", note_seen, quern_term_changed(quern_term_read(components[PLACE])), 1,
               QUERN_SYSTEM_DEFAULT, 0);
}

/* ----------------------------------------------------------------------------------------- programs */

/* What a frame leaves behind. */
typedef struct outcome {
    uint64_t hash, seen;
    quern_frame_stats stats;
    uint32_t drop_count;
    quern_dropped_command drops[MAX_DROPS]; /* without names, which the schedule owns */
} outcome;

typedef struct program {
    const quern_target_policy *policy;
    bool watches;
    uint32_t destroy_percent;
} program;

static outcome outcomes[FRAMES];

static void note_outcome(outcome *it)
{
    memset(it, 0, sizeof *it);
    it->hash = quern_world_hash(world);
    it->seen = counter_value(world, seen);
    it->stats = stats_of_frame(schedule);
    it->drop_count = quern_schedule_dropped_command_count(schedule);
    cr_assert_leq(it->drop_count, (uint32_t)MAX_DROPS);
    for (uint32_t i = 0; i < it->drop_count; i++)
        must(quern_schedule_get_dropped_command(schedule, i, &it->drops[i]));
}

static void assert_same(const outcome *actual, const outcome *expected, uint32_t frame, uint32_t threads)
{
    cr_assert_eq(actual->stats.command_count, expected->stats.command_count, "salt %llu, frame %u",
                 (unsigned long long)salt, frame);
    cr_assert_eq(actual->stats.dropped_count, expected->stats.dropped_count);
    cr_assert_eq(actual->stats.created_count, expected->stats.created_count);
    cr_assert_eq(actual->stats.destroyed_count, expected->stats.destroyed_count);
    cr_assert_eq(actual->hash, expected->hash, "salt %llu, frame %u, %u threads", (unsigned long long)salt,
                 frame, threads);
    cr_assert_eq(actual->seen, expected->seen, "salt %llu, frame %u, %u threads", (unsigned long long)salt,
                 frame, threads);
    cr_assert_eq(actual->drop_count, expected->drop_count);
    for (uint32_t i = 0; i < actual->drop_count; i++) {
        const quern_dropped_command *a = &actual->drops[i], *b = &expected->drops[i];
        cr_assert_eq(a->system.bits, b->system.bits);
        cr_assert_eq(a->reason, b->reason);
        cr_assert_eq(a->count, b->count, "%s", quern_drop_reason_string(a->reason));
        cr_assert_eq(quern_entity_index(a->first), quern_entity_index(b->first), "%s",
                     quern_drop_reason_string(a->reason));
    }
}

static void open_program(const program *it)
{
    open_scene(it->policy);
    destroy_percent = it->destroy_percent;
    seen = setup_counter(world, "seen");
    add_systems(it->watches);
}

/* Plays the program. The first call defines the expected outcomes, with single commands. */
static void play(const program *it, bool views, uint32_t threads, bool stages_only)
{
    quern_jobs *jobs = setup_jobs(threads);
    uses_views = views;
    open_program(it);
    schedule->playback.parallel_command_count = threads > 0 ? 1 : UINT64_MAX;
    schedule->playback.disable_fast_paths = stages_only;
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        outcome actual;
        must_run(schedule, jobs);
        assert_valid(world);
        note_outcome(views ? &actual : &outcomes[frame]);
        if (views) assert_same(&actual, &outcomes[frame], frame, threads);
    }
    close_scene();
    quern_jobs_destroy(jobs);
}

static void play_all(const program *it)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        salt = seed;
        play(it, false, 0, false);
        cr_assert_gt(outcomes[0].stats.command_count, 1000u);
        play(it, true, 0, false);
        play(it, true, 0, true);
        for (uint32_t i = 1; i < POOL_COUNT; i++)
            play(it, true, pool_threads[i], false);
    }
}

Test(view_commands, equal_single_commands, .timeout = 600)
{
    play_all(&(program){.destroy_percent = 20});
}

Test(view_commands, equal_single_commands_seen_by_reactions, .timeout = 600)
{
    play_all(&(program){.watches = true, .destroy_percent = 10});
}

Test(view_commands, equal_single_commands_in_relations, .timeout = 600)
{
    static const quern_target_policy policies[] = {QUERN_TARGET_REFUSES, QUERN_TARGET_DESTROYS_SOURCE};
    for (uint32_t i = 0; i < COUNT_OF(policies); i++)
        play_all(&(program){.policy = &policies[i], .watches = i == 1, .destroy_percent = 30});
}

/* ------------------------------------------------------------------------- at the end of a recording */

typedef enum beginning {
    WITH_TARGET,
    RELATED,
    RELATED_BY_LIKES,
    LIKES_MANY,
    DISABLED,
    NAMED,
    SPAWNED_BELOW,
    SPAWNED_DISABLED,
    BEGINNINGS
} beginning;

static beginning begins_with;
static view_kind ends_with;
static quern_relation likes, many;
static quern_prefab prefab;

/* The first commands of a recording: they create an entity for which the sync point adds commands of its own. */
static void begin_recording(quern_commands *commands)
{
    const void *values[] = {&known[0]};
    quern_entity entity = {0};
    if (begins_with == SPAWNED_BELOW)
        expect(quern_commands_spawn(commands, prefab, &(quern_spawn_def){.parent = known[0]}, &entity));
    else if (begins_with == SPAWNED_DISABLED)
        expect(quern_commands_spawn(commands, prefab, NULL, &entity));
    else if (begins_with == WITH_TARGET)
        entity = record_entity_with(commands, &components[PARENT], values, 1);
    else
        entity = record_entity(commands);
    cr_assert_not(quern_entity_is_null(entity), "%s", quern_error_message());
    if (begins_with == RELATED) expect(quern_commands_relate(commands, entity, parent, known[0]));
    if (begins_with == RELATED_BY_LIKES) expect(quern_commands_relate(commands, entity, likes, known[0]));
    if (begins_with == LIKES_MANY)
        for (uint32_t i = 0; i < 3; i++)
            expect(quern_commands_relate(commands, entity, many, known[i]));
    if (begins_with == DISABLED || begins_with == SPAWNED_DISABLED)
        expect(quern_commands_set_enabled(commands, entity, false));
    if (begins_with == NAMED) expect(quern_commands_set_name(commands, entity, "last"));
}

static void begin_and_end(quern_context *context, const quern_view *view)
{
    static const uint64_t zeros[MAX_ROWS] = {0};
    static bool chosen[MAX_ROWS];
    memset(chosen, true, sizeof chosen);
    const view_act act = {.kind = ends_with,
                          .component = ends_with == REMOVE ? TAG : NUMBER,
                          .values = ends_with == REMOVE || ends_with == DESTROY ? NULL : zeros,
                          .chosen = chosen};
    begin_recording(quern_context_commands(context));
    issue(quern_context_commands(context), view, &act);
}

/* Runs a frame in which each recording begins and ends like this. Returns the hash of the world. */
static uint64_t hash_after(bool views, bool stages_only)
{
    uses_views = views;
    open_scene(NULL);
    parent = quern_world_parent(world);
    components[PARENT] = quern_relation_component(parent);
    likes = make_relation(world, .name = "likes");
    many = make_relation(world, .name = "many", .many = true);
    quern_world_disabled_tag(world);
    const quern_component member[] = {components[NUMBER], components[PARENT]};
    const quern_entity root = setup_entity_with(world, member, 1);
    quern_entity child;
    must(quern_entity_create_with(world, member, (const void *[]){NULL, &root}, 2, &child));
    must(quern_prefab_capture(world, root, &prefab));
    add_system("begin and end", begin_and_end, quern_term_with(components[TAG]), 0, QUERN_SYSTEM_DEFAULT,
               0);
    schedule->playback.disable_fast_paths = stages_only;
    must_run(schedule, NULL);
    assert_valid(world);
    const uint64_t hash = quern_world_hash(world);
    close_scene();
    return hash;
}

Test(view_commands, may_end_a_recording_that_creates)
{
    for (begins_with = 0; begins_with < BEGINNINGS; begins_with++)
        for (ends_with = 0; ends_with < VIEW_KINDS; ends_with++)
            for (uint32_t stages_only = 0; stages_only < 2; stages_only++)
                cr_assert_eq(hash_after(true, stages_only > 0), hash_after(false, stages_only > 0),
                             "beginning %d, end %d", (int)begins_with, (int)ends_with);
}
