/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Netplay of worlds in which the features meet: prefabs, clones, shared values, relations of all kinds with values of
 * edges, lists, names, toggles, trees that are disabled, events, reactions with old values, orders, indexes, fixed steps,
 * states and background work. What is done follows from the inputs, a clock and the ids of entities, so frames that run
 * again do the same. Machines go back all the time; one of them joins later, and another one watches. */
#include "tests/flow/flow_setup.h"
#include "tests/kit/netplay_machines.h"
#include "tests/support/effort.h"

#include <quern/kit/background.h>
#include <quern/kit/states.h>

#include <stdatomic.h>
#include <stdio.h>

enum { CROWD = 60, MOST = 1024, DUE_FRAMES = 3, POWERS = 2 };
enum { MENU, PLAYING, PAUSED, STATE_COUNT };

typedef struct Unit {
    uint64_t id;
} Unit;

typedef struct Mood {
    int32_t value, change;
} Mood;

typedef struct Wares {
    QUERN_LIST(uint32_t) numbers;
    quern_string label;
} Wares;

typedef struct Power {
    int32_t value;
} Power;

typedef struct Debt {
    int32_t coins;
} Debt;

typedef struct Like {
    quern_entity target;
    int32_t strength;
} Like;

typedef struct Likes {
    QUERN_LIST(Like) edges;
} Likes;

typedef struct Wish {
    uint64_t seed;
} Wish;

typedef struct Trail {
    uint64_t last;
} Trail;

typedef struct Hit {
    quern_entity target;
    int32_t damage;
} Hit;

typedef struct Clock {
    uint64_t frame, word; /* the word is mixed from the inputs of the frame */
} Clock;

typedef struct Tally {
    uint64_t noticed, first, changes;
} Tally;

typedef struct town {
    const game *played;
    quern_component unit, mood, wares, power, debt, like_values, wish, trail;
    quern_relation likes, owes;
    quern_event hit;
    quern_resource clock, tally, score;
    quern_index *moods;
    quern_states *states;
    quern_background *background;
    quern_jobs *jobs;
    quern_prefab squad;
    quern_query *units;
    quern_entity known[MOST];
    uint32_t known_count;
} town;

/* Events that some world has had: the edits by number, and then these. */
enum {
    EDITS = 12,
    SAW_HIT = EDITS,
    SAW_SET,
    SAW_REMOVED,
    SAW_ORDER,
    SAW_CHANGE,
    SAW_POWER,
    SAW_STATE,
    SAW_TRAIL,
    SIGHTS
};
static atomic_uint seen;

static void see(uint32_t what)
{
    atomic_fetch_or_explicit(&seen, 1u << what, memory_order_relaxed);
}

static uint64_t mix(uint64_t x)
{
    random_source random = {x};
    return random_next(&random);
}

/* ------------------------------------------------------------------------------------------- edits */

typedef struct editor {
    town *at;
    quern_context *context; /* NULL before the first frame */
    quern_world *world;
    random_source random;
} editor;

static quern_entity draw(editor *by)
{
    return by->at->known[random_below(&by->random, by->at->known_count)];
}

static void make_unit(editor *by)
{
    town *at = by->at;
    const Unit unit = {random_next(&by->random)};
    const Mood mood = {(int32_t)random_below(&by->random, 5), 0};
    Wares wares = {.numbers.list.count = 0};
    quern_entity made;
    for (uint32_t i = random_below(&by->random, 4); i > 0; i--)
        must(QUERN_LIST_PUSH(&wares.numbers, uint32_t, i));
    must(quern_string_print(&wares.label, "%u", (unsigned)random_below(&by->random, 1000)));
    const quern_component types[] = {at->unit, at->mood, at->wares};
    must(quern_entity_create_with(by->world, types, (const void *const[]){&unit, &mood, &wares}, 3, &made));
    quern_list_free(&wares.numbers.list);
    quern_list_free(&wares.label.list);
}

/* Calls that may be refused: a ring of parents, a name that a sibling has. */
static void may(quern_result result)
{
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_CYCLE || result == QUERN_ERROR_SIBLING_NAME_TAKEN,
              "%s", quern_error_message());
}

static void unrelate(const editor *by, quern_entity entity, quern_relation relation)
{
    if (quern_entity_has(by->world, entity, quern_relation_component(relation)))
        may(quern_entity_unrelate(by->world, entity, relation));
}

static void edit_links(editor *by)
{
    const quern_entity entity = draw(by), other = draw(by);
    const town *at = by->at;
    if (entity.bits == other.bits) return;
    switch (random_below(&by->random, 7)) {
    case 0:
        may(quern_entity_relate(by->world, entity, quern_world_parent(by->world), other));
        break;
    case 1:
        unrelate(by, entity, quern_world_parent(by->world));
        break;
    case 2:
        must(quern_entity_relate_with(by->world, entity, at->likes, other,
                                      &(Like){.strength = (int32_t)random_below(&by->random, 9)}));
        break;
    case 3:
        must(quern_entity_relate(by->world, entity, at->likes, other));
        break;
    case 4:
        must(quern_entity_relate_with(by->world, entity, at->owes, other, &(Debt){3}));
        break;
    case 5:
        unrelate(by, entity, at->likes);
        break;
    default: {
        char name[16];
        snprintf(name, sizeof name, "n%u", (unsigned)random_below(&by->random, 12));
        may(quern_entity_set_name(by->world, entity, name));
    }
    }
}

static void edit_shared(editor *by)
{
    char name[16];
    const quern_relation shared = quern_world_shared(by->world);
    const quern_entity entity = draw(by);
    snprintf(name, sizeof name, "power%u", (unsigned)random_below(&by->random, POWERS));
    const quern_entity of_all = quern_entity_find(by->world, name);
    cr_assert(quern_entity_is_alive(by->world, of_all));
    if (quern_entity_is_null(quern_entity_target(by->world, entity, shared)))
        must(quern_entity_relate(by->world, entity, shared, of_all));
    else if (quern_entity_has(by->world, entity, by->at->power))
        must(quern_entity_remove(by->world, entity, by->at->power));
    else
        must(quern_entity_override_shared(by->world, entity, by->at->power, &(Power){7}));
    must(quern_entity_set(by->world, of_all, by->at->power,
                          &(Power){(int32_t)random_below(&by->random, 50)}));
}

static void edit(editor *by)
{
    town *at = by->at;
    const quern_entity entity = draw(by);
    if (!quern_entity_is_alive(by->world, entity)) return;
    const uint32_t choice = random_below(&by->random, 14);
    const bool is_full = at->known_count > CROWD;
    see(choice < EDITS ? choice : EDITS - 1);
    switch (is_full && choice < 4 ? 4 : choice) {
    case 0:
    case 1:
        make_unit(by);
        break;
    case 2:
        must(quern_prefab_spawn(by->world, at->squad, NULL, NULL));
        break;
    case 3:
        must(quern_entity_clone(by->world, entity, NULL, NULL));
        break;
    case 4:
        must(quern_entity_destroy(by->world, entity));
        break;
    case 5:
        must(quern_entity_set_enabled(by->world, entity, random_chance(&by->random, 50)));
        break;
    case 6:
        if (quern_entity_has(by->world, entity, at->mood))
            must(quern_entity_set_component_enabled(by->world, entity, at->mood,
                                                    random_chance(&by->random, 50)));
        break;
    case 7:
        must(quern_entity_set(by->world, entity, at->wish, &(Wish){random_below(&by->random, 30)}));
        break;
    case 8:
        if (quern_entity_has(by->world, entity, at->wish))
            must(quern_entity_remove(by->world, entity, at->wish));
        break;
    case 9:
        edit_shared(by);
        break;
    case 10:
        must(quern_context_set_state(by->context, at->states, random_below(&by->random, STATE_COUNT),
                                     random_chance(&by->random, 50)));
        break;
    default:
        edit_links(by);
    }
}

static void learn_known(town *at)
{
    at->known_count = 0;
    for (quern_query_iterator it = quern_query_iterate(at->units); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++) {
            cr_assert_lt(at->known_count, (uint32_t)MOST);
            at->known[at->known_count++] = it.view.entities[i];
        }
}

/* Exclusive: moves the clock, and edits the world as the inputs of the frame say. */
static void tick(quern_context *context, const quern_view *view)
{
    town *at = quern_context_user_data(context);
    quern_world *world = quern_context_world(context);
    const Input *inputs = quern_context_resource(context, at->played->inputs);
    Clock *clock = quern_context_resource_write(context, at->clock);
    (void)view;
    clock->word = mix(++clock->frame);
    for (uint32_t i = 0; i < at->played->player_count; i++)
        clock->word = mix(clock->word ^ ((uint64_t)(uint16_t)inputs[i].steer << 8 | inputs[i].fires));
    editor by = {at, context, world, {clock->word}};
    const uint32_t edit_count = random_below(&by.random, 4);
    for (uint32_t i = 0; i < edit_count; i++) {
        learn_known(at);
        if (at->known_count == 0)
            make_unit(&by);
        else
            edit(&by);
    }
}

/* ------------------------------------------------------------------------------------------- systems */

static random_source random_of(const quern_context *context, const town *at, uint64_t id)
{
    const Clock *clock = quern_context_resource((quern_context *)context, at->clock);
    return (random_source){mix(clock->word) ^ id};
}

static void feel(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const Unit *units = QUERN_COLUMN(view, 0, const Unit);
    Mood *moods = QUERN_COLUMN(view, 1, Mood);
    Wares *wares = QUERN_COLUMN(view, 2, Wares);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        random_source random = random_of(context, at, units[i].id);
        const quern_entity entity = view->entities[i];
        switch (random_below(&random, 24)) {
        case 0:
            moods[i].value = (int32_t)random_below(&random, 6);
            break;
        case 1:
            must(quern_commands_set(commands, entity, at->mood, &(Mood){1, 2}));
            break;
        case 2:
            must(quern_commands_accumulate(commands, entity, at->mood, &(Mood){1, 1}, QUERN_SUM));
            break;
        case 3:
            if (wares != NULL && wares[i].numbers.list.count < 8)
                must(QUERN_LIST_PUSH(&wares[i].numbers, uint32_t, (uint32_t)random_next(&random)));
            break;
        case 4:
            must(quern_commands_remove(commands, entity, at->wares));
            break;
        case 5:
            must(quern_commands_add(commands, entity, at->wish, &(Wish){random_below(&random, 30)}));
            break;
        case 6:
            quern_emit(quern_context_emitter(context, at->hit), &(Hit){entity, 3});
            break;
        case 7:
            must(quern_commands_set_component_enabled(commands, entity, at->mood, false));
            break;
        default:
            break;
        }
    }
}

static void suffer(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    const Hit *hits = QUERN_EVENTS(view, Hit);
    see(SAW_HIT);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        must(quern_commands_accumulate(quern_context_commands(context), hits[i].target, at->mood,
                                       &(Mood){-hits[i].damage, 0}, QUERN_SUM));
}

/* A reaction to moods that were set or removed, with what they were. Those that were removed have no old values. */
static void notice(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    const Mood *before = QUERN_COLUMN(view, 0, const Mood), *now = QUERN_COLUMN(view, 1, const Mood);
    Tally *tally = quern_context_resource_write(context, at->tally);
    const uint32_t count = view->count;
    see(before != NULL ? SAW_SET : SAW_REMOVED);
    for (uint32_t i = 0; i < count; i++)
        tally->noticed = mix(tally->noticed ^ (uint64_t)(uint32_t)(before != NULL ? before : now)[i].value);
}

/* Looks at all units in the order of their moods, and at those that feel like the first one. */
static void rank(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    Tally *tally = quern_context_resource_write(context, at->tally);
    (void)view;
    QUERN_EACH_VIEW(context, 0, it)
    {
        const Mood *moods = QUERN_COLUMN(&it.view, 0, const Mood);
        const quern_entity *same;
        const uint32_t count = quern_context_find(context, at->moods, (uint64_t)moods[0].value, &same);
        see(SAW_ORDER);
        tally->first = mix(tally->first ^ quern_entity_index(it.view.entities[0]));
        for (uint32_t i = 0; i < count; i++)
            tally->first = mix(tally->first ^ quern_entity_index(same[i]));
        if (moods[0].value < -20)
            must(quern_commands_destroy(quern_context_commands(context), it.view.entities[0]));
        break;
    }
}

static void count_change(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    (void)view;
    see(SAW_CHANGE);
    ((Tally *)quern_context_resource_write(context, at->score))->changes++;
}

static void use_power(quern_context *context, const quern_view *view)
{
    const Power *const *powers = QUERN_UP(view, 1, Power);
    Mood *moods = QUERN_COLUMN(view, 0, Mood);
    (void)context;
    const uint32_t count = view->count;
    see(SAW_POWER);
    for (uint32_t i = 0; i < count; i++)
        moods[i].change += powers[i]->value;
}

/* In the set "enter playing": a squad that lives as long as the state. */
static void build(quern_context *context, const quern_view *view)
{
    const town *at = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    quern_entity root;
    (void)view;
    see(SAW_STATE);
    must(quern_commands_spawn(commands, at->squad, NULL, &root));
    must(quern_commands_add(commands, root, quern_states_tag(at->states, PLAYING), NULL));
}

static bool walk(void *user_data, quern_background_step *step)
{
    Trail *made = step->result;
    (void)user_data;
    made->last = mix(step->index == 0 ? ((const Wish *)step->request)->seed : made->last);
    return step->index >= 5;
}

static void use_trail(quern_context *context, const quern_view *view)
{
    const Trail *trails = QUERN_COLUMN(view, 0, const Trail);
    Mood *moods = QUERN_COLUMN(view, 1, Mood);
    (void)context;
    const uint32_t count = view->count;
    see(SAW_TRAIL);
    for (uint32_t i = 0; i < count; i++)
        moods[i].change ^= (int32_t)(trails[i].last & 0xff);
}

/* --------------------------------------------------------------------------------------------- world */

static void register_types(town *at, quern_world *world)
{
    const quern_component_def mood = {QUERN_TYPE(Mood), .can_disable = true,
                                      .fields = QUERN_FIELDS(Mood, value, change)};
    const quern_component_def wares = {
        QUERN_TYPE(Wares),
        .fields = {QUERN_LIST_FIELD(Wares, numbers, uint32_t), QUERN_FIELD(Wares, label)}};
    const quern_component_def likes = {QUERN_TYPE(Likes),
                                       .fields = {QUERN_LIST_FIELD(Likes, edges, Like, target, strength)}};
    (void)quern_world_parent(world);
    (void)quern_world_shared(world);
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &at->unit, Unit, id));
    must(quern_component_register(world, &mood, &at->mood));
    must(quern_component_register(world, &wares, &at->wares));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &at->power, Power, value));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &at->debt, Debt, coins));
    must(quern_component_register(world, &likes, &at->like_values));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &at->wish, Wish, seed));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &at->trail, Trail, last));
    must(quern_relation_register(world,
                                 &(quern_relation_def){.name = "likes",
                                                       .on_target_destroyed = QUERN_TARGET_UNRELATES,
                                                       .many = true,
                                                       .value = at->like_values},
                                 &at->likes));
    must(quern_relation_register(world, &(quern_relation_def){.name = "owes", .value = at->debt},
                                 &at->owes));
    must(QUERN_EVENT_REGISTER_FIELDS(world, &at->hit, Hit, target, damage));
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &at->clock, Clock, frame, word));
    must(QUERN_RESOURCE_REGISTER_FIELDS(world, &at->tally, Tally, noticed, first, changes));
    must(quern_resource_register(
        world,
        &(quern_resource_def){.name = "score",
                              .size_bytes = sizeof(Tally),
                              .alignment_bytes = _Alignof(Tally),
                              .fields = QUERN_FIELDS(Tally, noticed, first, changes)},
        &at->score));
    must(
        quern_index_create(world, &(quern_index_def){.component = at->mood, .field = "value"}, &at->moods));
}

static void make_squad(town *at, quern_world *world)
{
    const Mood mood = {2, 0};
    const quern_prefab_value root[] = {{.component = at->unit}, {.component = at->mood, .value = &mood}},
                             child[] = {{.component = at->unit},
                                        {.component = at->mood, .value = &mood, .is_disabled = true},
                                        {.component = at->wares}};
    const quern_prefab_member_def members[] = {{.values = root, .value_count = 2},
                                               {.values = child, .value_count = 3}};
    must(quern_prefab_create(world, members, 2, &at->squad));
}

static void make_entities(town *at, quern_world *world)
{
    editor by = {at, NULL, world, {5}};
    for (uint32_t i = 0; i < POWERS; i++) {
        char name[16];
        quern_entity shared;
        const Power power = {(int32_t)i};
        snprintf(name, sizeof name, "power%u", (unsigned)i);
        must(quern_shared_create(world, &(quern_prefab_value){.component = at->power, .value = &power}, 1,
                                 &shared));
        must(quern_entity_set_name(world, shared, name));
    }
    for (int i = 0; i < 12; i++)
        make_unit(&by);
}

static void add_systems(town *at, quern_world *world, quern_schedule *schedule)
{
    const quern_term unit = quern_term_read(at->unit), mood = quern_term_write(at->mood);
    const quern_resource clock = at->clock;
    make_system(schedule, "tick", tick, .flags = QUERN_SYSTEM_EXCLUSIVE, .user_data = at,
                .resources = {{clock, QUERN_ACCESS_WRITE},
                              {at->played->inputs, QUERN_ACCESS_READ},
                              {quern_states_resource(at->states), QUERN_ACCESS_WRITE}});
    must(quern_states_add_systems(at->states, schedule, 0));
    must(quern_background_add_systems(at->background, schedule, 0));
    make_system(schedule, "feel", feel, .emits = {at->hit}, .user_data = at,
                .terms = {unit, mood, quern_term_optional(at->wares, QUERN_ACCESS_WRITE)},
                .resources = {{clock, QUERN_ACCESS_READ}}, .after_commands_of = {"tick"});
    make_system(schedule, "suffer", suffer, .items = at->hit, .user_data = at);
    make_system(schedule, "notice", notice, .user_data = at, .flags = QUERN_SYSTEM_SERIAL,
                .terms = {quern_term_old(at->mood), quern_term_read(at->mood)},
                .reacts_to = QUERN_REACT_SET | QUERN_REACT_REMOVED,
                .resources = {{at->tally, QUERN_ACCESS_WRITE}});
    make_system(schedule, "rank", rank, .user_data = at, .indexes = {at->moods},
                .queries = {{.terms = {quern_term_read(at->mood)},
                             .order_by = {.component = at->mood, .field = "value"}}},
                .resources = {{at->tally, QUERN_ACCESS_WRITE}});
    make_system(schedule, "count change", count_change, .user_data = at, .if_changed = {at->tally},
                .resources = {{at->score, QUERN_ACCESS_WRITE}});
    make_system(schedule, "use power", use_power, .interval_seconds = 0.05,
                .terms = {mood, quern_term_shared(world, at->power)});
    make_system(schedule, "build", build, .user_data = at, .sets = {"enter playing"});
    make_system(schedule, "use trail", use_trail, .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET,
                .terms = {quern_term_read(at->trail), mood});
}

static void furnish(game *played, bool has_entities)
{
    town *at = calloc(1, sizeof *at);
    quern_world *world = played->world;
    at->played = played;
    played->furniture = at;
    at->jobs = setup_jobs(2);
    register_types(at, world);
    must(quern_states_create(
        world, &(quern_states_def){.name = "game", .states = {"menu", "playing", "paused"}}, &at->states));
    must(quern_background_create(world,
                                 &(quern_background_def){.name = "walks",
                                                         .jobs = at->jobs,
                                                         .request = at->wish,
                                                         .result = at->trail,
                                                         .step = walk,
                                                         .frames = DUE_FRAMES},
                                 &at->background));
    const quern_term terms[] = {quern_term_read(at->unit),
                                quern_term_optional(quern_world_disabled_tag(world), QUERN_ACCESS_NONE)};
    at->units = setup_query(world, terms, 2);
    make_squad(at, world);
    add_systems(at, world, played->schedule);
    if (has_entities) make_entities(at, world);
}

static void unfurnish(game *played)
{
    town *at = played->furniture;
    assert_valid(played->world);
    quern_query_destroy(at->units);
    quern_index_destroy(at->moods);
    quern_background_destroy(at->background);
    quern_states_destroy(at->states);
    quern_jobs_destroy(at->jobs);
    free(at);
}

static void open_towns(void)
{
    machines_furnish = furnish;
    machines_unfurnish = unfurnish;
}

/* --------------------------------------------------------------------------------------------- tests */

static void give_inputs(void *user_data, uint64_t frame, void *inputs)
{
    for (uint32_t i = 0; i < 2; i++)
        ((Input *)inputs)[i] = input_of(i, (uint32_t)frame);
}

Test(netplay_together, frames_run_again_as_before)
{
    for (uint32_t p = 0; p < POOL_COUNT; p++) {
        game alone = {0};
        quern_replay_report report;
        quern_jobs *jobs = setup_jobs(pool_threads[p]);
        open_towns();
        open_game(&alone, 2, true);
        const quern_netplay_sync_def def = {.world = alone.world,
                                            .schedule = alone.schedule,
                                            .inputs = alone.inputs,
                                            .step_seconds = 1.0 / 60,
                                            .frame_count = effort(300, 120, 60),
                                            .rollback_frames = 3,
                                            .give_inputs = give_inputs};
        const quern_result result = quern_netplay_sync_test(&def, jobs, &report);
        cr_assert_eq(result, QUERN_OK, "%s: %s", quern_error_message(), report.text);
        close_game(&alone);
        quern_jobs_destroy(jobs);
    }
}

/* Each machine compares its hashes with those of a world that runs alone. */
Test(netplay_together, machines_agree_with_a_world_that_runs_alone)
{
    open_towns();
    for (uint64_t seed = 1; seed <= effort(8, 4, 2); seed++) {
        const plan played = {.player_count = 2 + (uint32_t)(seed % 2),
                             .frame_count = 150,
                             .thread_count = pool_threads[seed % POOL_COUNT],
                             .max_delay = 1 + (uint32_t)(seed * 3 % 7),
                             .lost_percent = seed % 3 == 0 ? 20 : 0,
                             .repeated_percent = 10,
                             .input_delay = (uint32_t)(seed % 3),
                             .max_rollback = 8};
        play_plan(&played, seed);
    }
    cr_assert_eq(seen, (1u << SIGHTS) - 1, "seen: %x", (unsigned)seen);
}

enum { PLAYERS = 3, WATCHER = PLAYERS, MACHINES, TICKS = 900 };

/* Player 2 joins, player 1 is cut off and returns, and a spectator watches. */
static void come_and_go(machine *machines, uint32_t *open, network *net, const quern_netplay_def *def,
                        uint64_t seed)
{
    quern_netplay_def later = *def;
    later.joins = true;
    if (net->tick == 100 + seed) {
        open_machine(&machines[2], net, 2, &later);
        *open |= 4;
    }
    if (net->tick == 300) net->cut = 2;
    if (net->tick == 400 + 10 * seed) {
        close_machine(&machines[1]);
        open_machine(&machines[1], net, 1, &later);
        net->cut = 0;
    }
    if (net->tick != 200) return;
    later = *def;
    later.spectates = true;
    later.spectator_count = 0;
    open_machine(&machines[WATCHER], net, 0, &later);
    *open |= 1u << WATCHER;
}

/* Compares the hashes of frames that a machine and the first one have confirmed. Returns their number. */
static uint32_t compare_with_first(const machine *machines, uint32_t i)
{
    uint32_t common = 0;
    for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++) {
        const quern__netplay_hash *own = &machines[i].netplay->hashes[k],
                                  *first = &machines[0].netplay->hashes[k];
        if (own->frame != first->frame || own->frame > machines[i].netplay->verified ||
            own->frame > machines[0].netplay->verified)
            continue;
        cr_assert_eq(own->hash, first->hash, "machine %u, frame %u", i, own->frame);
        common++;
    }
    return common;
}

/* Machines whose hashes differ would end with an error, and some hashes of frames that all have run are compared. */
Test(netplay_together, machines_come_and_go, .timeout = 120)
{
    open_towns();
    for (uint64_t seed = 1; seed <= effort(4, 2, 1); seed++) {
        network net;
        machine machines[MACHINES];
        quern_jobs *jobs = setup_jobs(pool_threads[seed % POOL_COUNT]);
        uint32_t open = 3, common = 0;
        const quern_netplay_def def = {.player_count = PLAYERS,
                                       .absent = 4,
                                       .timeout_seconds = .05,
                                       .max_rollback = 6,
                                       .save_interval = 1 + (uint32_t)(seed % 3),
                                       .spectator_count = 1};
        open_network(&net, seed);
        net.max_delay = 4;
        net.lost_percent = seed % 2 == 0 ? 15 : 0;
        open_machines(machines, 2, &net, &def);
        for (net.tick = 0; net.tick < TICKS; net.tick++) {
            come_and_go(machines, &open, &net, &def, seed);
            for (uint32_t i = 0; i < MACHINES; i++) {
                if ((open >> i & 1) == 0) continue;
                step_machine(&machines[i], jobs);
                cr_assert(machines[i].result == QUERN_OK || (i == 1 && net.cut != 0),
                          "seed %u, tick %u, machine %u: %s", (unsigned)seed, (unsigned)net.tick, i,
                          quern_error_message());
            }
        }
        for (uint32_t i = 0; i < MACHINES; i++) {
            cr_assert_gt(status_of(&machines[i]).confirmed_frame, 300u, "machine %u", i);
            if (i > 0) common += compare_with_first(machines, i);
        }
        cr_assert_gt(common, 10u);
        close_machines(machines, MACHINES, &net);
        quern_jobs_destroy(jobs);
    }
}
