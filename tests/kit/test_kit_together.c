/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* A random program in which states and background work meet each other and all that carries worlds: calls and commands,
 * prefabs, clones, trees that are disabled, toggles, entities that live as long as a state, systems that are removed and
 * added again, histories, deltas, archives, copies, sessions and JSON. One run is compared with a serial model, which is
 * written from the documents, and the others with that run: at every number of threads, in every style, and after failed
 * allocations. A table counts which features were drawn in one frame.
 *
 * QUERN_TOGETHER_SEED=N in the environment plays that seed alone. */
#include <quern/kit/background.h>
#include <quern/kit/json.h>
#include <quern/kit/states.h>

#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <quern/archive.h>
#include <quern/history.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = effort(80, 12, 5),
    FRAMES = 16,
    DUE_FRAMES = 3, /* from request to result */
    MOST = 600,     /* entities of a run */
    CROWD = 70,
    NONE = -1
};
enum { MENU, PLAYING, PAUSED, STATE_COUNT };

typedef enum feature {
    USES_REQUEST,
    USES_CHANGED_REQUEST,
    USES_REMOVED_REQUEST,
    USES_WORLD_COMMAND,
    USES_SYSTEM_COMMAND,
    USES_RESULT,
    USES_DISABLED_TREE,
    USES_TOGGLE,
    USES_CLONE,
    USES_SPAWN,
    USES_DESTROY,
    USES_RELATE,
    USES_ENTER,
    USES_RESTART,
    USES_STATE_CALL,
    USES_CLEAR, /* an entity ends with its state */
    USES_NEW_SYSTEMS,
    USES_HISTORY,
    USES_DELTA,
    USES_ARCHIVE,
    USES_COPY,
    USES_SESSION,
    USES_JSON,
    FEATURES
} feature;

static const char *const feature_names[FEATURES] = {"request",
                                                    "changed request",
                                                    "removed request",
                                                    "world command",
                                                    "system command",
                                                    "result",
                                                    "disabled",
                                                    "toggle",
                                                    "clone",
                                                    "spawn",
                                                    "destroy",
                                                    "relate",
                                                    "enter",
                                                    "restart",
                                                    "state call",
                                                    "clear",
                                                    "new systems",
                                                    "history",
                                                    "delta",
                                                    "archive",
                                                    "copy",
                                                    "session",
                                                    "json"};

static uint32_t features; /* of this frame */
static uint64_t pairs[FEATURES][FEATURES];

static void use(feature used)
{
    features |= 1u << used;
}

static uint64_t mix(uint64_t x)
{
    random_source random = {x};
    return random_next(&random);
}

/* ------------------------------------------------------------------------------------------- the world */

typedef struct wish {
    uint64_t seed;
    uint32_t length, unused;
} wish;

typedef struct trail {
    uint64_t last;
    QUERN_LIST(uint64_t) numbers;
} trail;

typedef struct scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_background *background;
    quern_states *states;
    quern_component id, wish, trail, due;
    quern_prefab prefab;
    quern_query *everyone;
    bool has_new_systems; /* those of the states are the last ones */
} scene;

static scene *playing; /* the scene of the running program */
static uint64_t seed, at_frame;
static atomic_ullong observed; /* a sum over what reactions have seen */

static uint64_t number_after(uint64_t number)
{
    return mix(number + 1);
}

static bool walk(void *user_data, quern_background_step *step)
{
    const wish *wanted = step->request;
    trail *made = step->result;
    (void)user_data;
    made->last = number_after(step->index == 0 ? wanted->seed : made->last);
    cr_assert_eq(QUERN_LIST_PUSH(&made->numbers, uint64_t, made->last), QUERN_OK);
    return step->index + 1 >= wanted->length;
}

static wish wish_of(random_source *random)
{
    return (wish){random_below(random, 50), 1 + random_below(random, 40), 0};
}

/* What a system decides for an entity depends on nothing else. */
static random_source random_of(uint64_t id, uint64_t salt)
{
    return (random_source){mix(seed ^ mix(at_frame * 53 + salt)) ^ id};
}

/* In the set "playing": asks for work for some entities. */
static void ask(quern_context *context, const quern_view *view)
{
    const uint64_t *ids = QUERN_COLUMN(view, 0, const uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = random_of(ids[i], 1);
        if (!random_chance(&random, 12)) continue;
        const wish wanted = wish_of(&random);
        quern_commands_set(quern_context_commands(context), view->entities[i], playing->wish, &wanted);
    }
}

/* In the set "enter playing": creates an entity that lives as long as the state. */
static void build(quern_context *context, const quern_view *view)
{
    random_source random = random_of(0, 2);
    const uint64_t id = random_next(&random);
    const wish wanted = wish_of(&random);
    quern_commands *commands = quern_context_commands(context);
    quern_entity made;
    (void)view;
    if (quern_commands_create(commands, &made) != QUERN_OK) return; /* without memory; the frame fails */
    quern_commands_add(commands, made, playing->id, &id);
    quern_commands_add(commands, made, playing->wish, &wanted);
    quern_commands_add(commands, made, quern_states_tag(playing->states, PLAYING), NULL);
}

/* The state that the system "choose" sets in this frame, or QUERN_NO_STATE. */
static uint32_t chosen_state(bool *restarts)
{
    random_source random = random_of(0, 3);
    *restarts = random_chance(&random, 40);
    return random_chance(&random, 35) ? random_below(&random, STATE_COUNT) : QUERN_NO_STATE;
}

static void choose(quern_context *context, const quern_view *view)
{
    bool restarts;
    const uint32_t next = chosen_state(&restarts);
    (void)view;
    if (next != QUERN_NO_STATE) must(quern_context_set_state(context, playing->states, next, restarts));
}

static void see_results(quern_context *context, const quern_view *view)
{
    const uint64_t *ids = QUERN_COLUMN(view, 0, const uint64_t);
    const trail *trails = QUERN_COLUMN(view, 1, const trail);
    (void)context;
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert_eq(trails[i].numbers.items[trails[i].numbers.list.count - 1], trails[i].last);
        atomic_fetch_add(&observed, mix(ids[i] ^ mix(trails[i].last)));
    }
}

static void add_state_systems(scene *s)
{
    must(quern_states_add_systems(s->states, s->schedule, 0));
    const quern_resource state = quern_states_resource(s->states);
    make_system(s->schedule, "ask", ask, .terms = {quern_term_read(s->id)}, .sets = {"playing"});
    make_system(s->schedule, "build", build, .sets = {"enter playing"});
    make_system(s->schedule, "choose", choose, .phase = 2, .resources = {{state, QUERN_ACCESS_WRITE}});
}

/* Removes the systems of the states, and adds them again. */
static void renew_state_systems(scene *s)
{
    static const char *const names[] = {"ask", "build", "choose"};
    must(quern_states_remove_systems(s->states, s->schedule));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_schedule_remove_system(s->schedule, quern_schedule_find_system(s->schedule, names[i])));
    add_state_systems(s);
    s->has_new_systems = true;
}

static void make_prefab(scene *s)
{
    const wish wanted = {99, 7, 0};
    const quern_prefab_value root[] = {{.component = s->id}, {.component = s->wish, .value = &wanted}};
    const quern_prefab_value child[] = {{.component = s->id},
                                        {.component = s->wish, .value = &wanted, .is_disabled = true},
                                        {.component = quern_states_tag(s->states, PAUSED)}};
    const quern_prefab_member_def members[] = {{.values = root, .value_count = 2},
                                               {.values = child, .value_count = 3}};
    must(quern_prefab_create(s->world, members, 2, &s->prefab));
}

static void open_scene(scene *s, quern_schedule_def style, uint32_t thread_count,
                       const quern_allocator *allocator)
{
    *s = (scene){.jobs = setup_jobs(thread_count)};
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_world_create(&def, &s->world));
    (void)quern_world_parent(s->world);
    s->id = setup_component(s->world, "id", 8, 8);
    s->wish = make_component(s->world, QUERN_TYPE(wish), .can_disable = true,
                             .fields = QUERN_FIELDS(wish, seed, length));
    s->trail =
        make_component(s->world, QUERN_TYPE(trail),
                       .fields = {QUERN_FIELD(trail, last), QUERN_LIST_FIELD(trail, numbers, uint64_t)});
    must(quern_states_create(s->world,
                             &(quern_states_def){.name = "game", .states = {"menu", "playing", "paused"}},
                             &s->states));
    must(quern_background_create(s->world,
                                 &(quern_background_def){.name = "walks",
                                                         .jobs = s->jobs,
                                                         .request = s->wish,
                                                         .result = s->trail,
                                                         .step = walk,
                                                         .frames = DUE_FRAMES,
                                                         .budget_us = (uint32_t)(seed % 3) * 20},
                                 &s->background));
    s->due = quern_background_due(s->background);
    s->schedule = setup_schedule_as(s->world, style, 3);
    add_state_systems(s);
    must(quern_background_add_systems(s->background, s->schedule, 1));
    make_system(s->schedule, "see results", see_results, .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET,
                .terms = {quern_term_read(s->id), quern_term_read(s->trail)});
    s->everyone = setup_query(
        s->world,
        (const quern_term[]){quern_term_read(s->id),
                             quern_term_optional(quern_world_disabled_tag(s->world), QUERN_ACCESS_NONE)},
        2);
    make_prefab(s);
}

static void close_scene(scene *s)
{
    assert_valid(s->world);
    quern_query_destroy(s->everyone);
    quern_schedule_destroy(s->schedule);
    quern_background_destroy(s->background);
    quern_states_destroy(s->states);
    quern_jobs_destroy(s->jobs);
    quern_world_destroy(s->world);
}

/* ------------------------------------------------------------------------------------------- the model */

typedef struct thing {
    uint64_t id;
    int parent;
    bool is_alive, is_off, is_through; /* through: disabled through its parent */
    bool has_wish, wish_is_off, has_trail;
    wish wish, trail_of; /* trail_of: the request of the result */
    int due;             /* frames left, or NONE */
    bool tags[STATE_COUNT];
} thing;

typedef struct model {
    thing things[MOST];
    int count;
    quern_state state;
    struct {
        uint64_t id;
        wish wish;
    } waiting[8]; /* commands of the world itself */
    uint32_t waiting_count;
} model;

static model it;
static bool is_modelled;

static thing *thing_of(uint64_t id)
{
    for (int i = 0; i < it.count; i++)
        if (it.things[i].id == id) return &it.things[i];
    cr_assert_fail("no entity has the id %llx", (unsigned long long)id);
    return NULL;
}

static thing *add_thing(uint64_t id, int parent)
{
    cr_assert_lt(it.count, (int)MOST);
    it.things[it.count] = (thing){.id = id, .is_alive = true, .parent = parent, .due = NONE};
    return &it.things[it.count++];
}

static int number_of(const thing *of)
{
    return (int)(of - it.things);
}

static void give_wish(thing *to, wish wanted)
{
    if (to->has_wish) use(USES_CHANGED_REQUEST);
    use(USES_REQUEST);
    if (!to->has_wish) to->wish_is_off = false;
    to->has_wish = true;
    to->wish = wanted;
}

static bool is_below(int below, int above)
{
    while (below != NONE && below != above)
        below = it.things[below].parent;
    return below == above;
}

static void destroy_thing(int root)
{
    for (int i = 0; i < it.count; i++)
        if (i != root && it.things[i].is_alive && is_below(i, root)) it.things[i].is_alive = false;
    it.things[root].is_alive = false;
}

/* Disables or enables a tree, parents first: entities that are disabled by themselves remain so. */
static void switch_thing(int root, bool enabled)
{
    const int parent = it.things[root].parent;
    const bool parent_is_off = parent != NONE && it.things[parent].is_off;
    it.things[root].is_off = !enabled || parent_is_off;
    it.things[root].is_through = enabled && parent_is_off;
    bool is_done[MOST] = {false};
    is_done[root] = true;
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < it.count; i++) {
            thing *each = &it.things[i];
            if (is_done[i] || !each->is_alive || each->parent == NONE || !is_done[each->parent]) continue;
            if (!each->is_off || each->is_through)
                each->is_off = each->is_through = it.things[each->parent].is_off;
            is_done[i] = grows = true;
        }
    }
}

static void model_phase_of_states(void)
{
    for (int i = 0; i < it.count && it.state.left != QUERN_NO_STATE; i++)
        if (it.things[i].is_alive && it.things[i].tags[it.state.left]) {
            destroy_thing(i);
            use(USES_CLEAR);
        }
    if (it.state.entered != QUERN_NO_STATE) use(USES_ENTER);
    if (it.state.entered == PLAYING) {
        random_source random = random_of(0, 2);
        thing *made = add_thing(random_next(&random), NONE);
        give_wish(made, wish_of(&random));
        made->tags[PLAYING] = true;
    }
    for (int i = 0; i < it.count && it.state.current == PLAYING; i++) {
        thing *each = &it.things[i];
        random_source random = random_of(each->id, 1);
        if (!each->is_alive || each->is_off || !random_chance(&random, 12)) continue;
        give_wish(each, wish_of(&random));
        use(USES_SYSTEM_COMMAND);
    }
}

static void model_background(void)
{
    for (int i = 0; i < it.count; i++) {
        thing *each = &it.things[i];
        if (!each->is_alive || each->is_off) continue;
        if (each->due == NONE) {
            if (each->has_wish && !each->wish_is_off) each->due = DUE_FRAMES;
        } else if (!each->has_wish) {
            each->due = NONE;
        } else if (--each->due == 0) {
            each->has_trail = true;
            each->trail_of = each->wish;
            each->has_wish = false;
            each->due = NONE;
            use(USES_RESULT);
        }
    }
}

static void model_change_of_state(void)
{
    bool restarts;
    const uint32_t next = chosen_state(&restarts);
    quern_state *state = &it.state;
    const bool changes = next != QUERN_NO_STATE && (next != state->current || restarts);
    if (next != QUERN_NO_STATE && next == state->current && restarts) use(USES_RESTART);
    state->left = changes ? state->current : QUERN_NO_STATE;
    state->entered = changes ? next : QUERN_NO_STATE;
    if (changes) state->current = next;
}

static void model_frame(void)
{
    for (uint32_t i = 0; i < it.waiting_count; i++) {
        thing *of = thing_of(it.waiting[i].id);
        if (of->is_alive) give_wish(of, it.waiting[i].wish);
    }
    it.waiting_count = 0;
    model_phase_of_states();
    model_background();
    model_change_of_state();
}

/* ------------------------------------------------------------------------------------ between frames */

typedef struct known_entity {
    uint64_t id;
    quern_entity entity;
} known_entity;

static known_entity known[MOST];
static uint32_t known_count;

static int compare_known(const void *a, const void *b)
{
    const uint64_t x = ((const known_entity *)a)->id, y = ((const known_entity *)b)->id;
    return x < y ? -1 : x > y;
}

static void learn_known(scene *s)
{
    known_count = 0;
    for (quern_query_iterator walk = quern_query_iterate(s->everyone); quern_query_next(&walk);) {
        const uint64_t *ids = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++)
            known[known_count++] = (known_entity){ids[i], walk.view.entities[i]};
    }
    qsort(known, known_count, sizeof *known, compare_known);
}

static void create_one(scene *s, random_source *random)
{
    const uint64_t id = random_next(random);
    const uint32_t tag = random_below(random, 2 * STATE_COUNT);
    const known_entity parent = known[random_below(random, known_count)];
    const bool has_wish = random_chance(random, 60),
               has_parent = random_chance(random, 40) && quern_entity_is_alive(s->world, parent.entity);
    const wish wanted = wish_of(random);
    const quern_component components[] = {s->id, s->wish};
    quern_entity made;
    must(quern_entity_create_with(s->world, components, (const void *const[]){&id, &wanted}, 1u + has_wish,
                                  &made));
    if (has_parent) must(quern_entity_relate(s->world, made, quern_world_parent(s->world), parent.entity));
    if (tag < STATE_COUNT) must(quern_entity_add(s->world, made, quern_states_tag(s->states, tag), NULL));
    if (!is_modelled) return;
    thing *added = add_thing(id, has_parent ? number_of(thing_of(parent.id)) : NONE);
    if (has_wish) give_wish(added, wanted);
    if (tag < STATE_COUNT) added->tags[tag] = true;
}

/* Copies an entity without children. */
static void clone_one(scene *s, random_source *random, known_entity from)
{
    const uint64_t id = random_next(random);
    const quern_spawn_def def = {.overrides = {{.component = s->id, .column = &id}}};
    if (quern_entity_source_count(s->world, from.entity, quern_world_parent(s->world)) > 0) return;
    must(quern_entity_clone(s->world, from.entity, &def, NULL));
    use(USES_CLONE);
    if (!is_modelled) return;
    const thing *original = thing_of(from.id);
    thing *added = add_thing(id, NONE);
    *added = *original;
    added->id = id;
    added->parent = NONE;
}

static void spawn_one(scene *s, random_source *random)
{
    const uint64_t ids[2] = {random_next(random), random_next(random)};
    const quern_spawn_def def = {.overrides = {{.component = s->id, .column = &ids[0]},
                                               {.component = s->id, .member = 1, .column = &ids[1]}}};
    must(quern_prefab_spawn(s->world, s->prefab, &def, NULL));
    use(USES_SPAWN);
    if (!is_modelled) return;
    const wish wanted = {99, 7, 0};
    thing *root = add_thing(ids[0], NONE);
    give_wish(root, wanted);
    thing *child = add_thing(ids[1], number_of(root));
    give_wish(child, wanted);
    child->wish_is_off = true;
    child->tags[PAUSED] = true;
}

static void act_on_wish(scene *s, random_source *random, known_entity chosen, thing *model_of)
{
    const wish wanted = wish_of(random);
    const bool has_wish = quern_entity_has(s->world, chosen.entity, s->wish);
    switch (random_below(random, 5)) {
    case 0:
    case 1:
        must(quern_entity_set(s->world, chosen.entity, s->wish, &wanted));
        if (model_of != NULL) give_wish(model_of, wanted);
        break;
    case 2:
        if (!has_wish) return;
        must(quern_entity_remove(s->world, chosen.entity, s->wish));
        if (model_of != NULL) model_of->has_wish = false;
        use(USES_REMOVED_REQUEST);
        break;
    case 3:
        if (!has_wish) return;
        const bool enabled = random_chance(random, 50);
        must(quern_entity_set_component_enabled(s->world, chosen.entity, s->wish, enabled));
        if (model_of != NULL) model_of->wish_is_off = !enabled;
        use(USES_TOGGLE);
        break;
    default:
        must(quern_commands_set(quern_world_commands(s->world), chosen.entity, s->wish, &wanted));
        use(USES_WORLD_COMMAND);
        if (!is_modelled) return;
        cr_assert_lt(it.waiting_count, 8u);
        it.waiting[it.waiting_count].id = chosen.id;
        it.waiting[it.waiting_count++].wish = wanted;
        break;
    }
}

static void act(scene *s, random_source *random)
{
    const known_entity chosen = known[random_below(random, known_count)];
    if (!quern_entity_is_alive(s->world, chosen.entity)) return;
    thing *model_of = is_modelled ? thing_of(chosen.id) : NULL;
    const bool is_crowded = known_count > CROWD;
    switch (random_below(random, 12)) {
    case 0:
    case 1:
        if (!is_crowded) create_one(s, random);
        break;
    case 2:
        if (!is_crowded) clone_one(s, random, chosen);
        break;
    case 3:
        if (!is_crowded) spawn_one(s, random);
        break;
    case 4:
        must(quern_entity_destroy(s->world, chosen.entity));
        if (model_of != NULL) destroy_thing(number_of(model_of));
        use(USES_DESTROY);
        break;
    case 5: {
        const bool enabled = random_chance(random, 55);
        must(quern_entity_set_enabled(s->world, chosen.entity, enabled));
        if (model_of != NULL) switch_thing(number_of(model_of), enabled);
        use(USES_DISABLED_TREE);
        break;
    }
    case 6: {
        const known_entity parent = known[random_below(random, known_count)];
        const quern_relation relation = quern_world_parent(s->world);
        if (quern_entity_relate(s->world, chosen.entity, relation, parent.entity) != QUERN_OK) break;
        if (model_of != NULL) model_of->parent = number_of(thing_of(parent.id));
        use(USES_RELATE);
        break;
    }
    default:
        act_on_wish(s, random, chosen, model_of);
        break;
    }
}

static void play_between(scene *s)
{
    random_source random = {mix(seed ^ mix(at_frame * 61))};
    playing = s;
    if (random_chance(&random, 15)) {
        renew_state_systems(s);
        use(USES_NEW_SYSTEMS);
    }
    if (random_chance(&random, 15)) {
        const uint32_t next = random_below(&random, STATE_COUNT);
        must(quern_states_set(s->states, next));
        use(USES_STATE_CALL);
        if (is_modelled) {
            if (it.state.entered == QUERN_NO_STATE) it.state.left = it.state.current;
            it.state.current = it.state.entered = next;
        }
    }
    learn_known(s);
    for (uint32_t i = 0; i < 8; i++)
        act(s, &random);
}

/* ------------------------------------------------------------------------------------------ comparing */

/* Finds the entities of the model in a world. */
static void find_things(scene *s, quern_entity *entities)
{
    memset((void *)entities, 0, MOST * sizeof *entities);
    learn_known(s);
    for (uint32_t k = 0; k < known_count; k++)
        entities[number_of(thing_of(known[k].id))] = known[k].entity;
}

static void compare_trail(const trail *found, const wish *of)
{
    uint64_t number = of->seed;
    cr_assert_eq(found->numbers.list.count, of->length);
    for (uint32_t i = 0; i < of->length; i++) {
        number = number_after(number);
        cr_assert_eq(found->numbers.items[i], number);
    }
    cr_assert_eq(found->last, number);
}

/* `has_state`: the world also has the resource with the state. */
static void compare(scene *s, bool has_state)
{
    quern_entity entities[MOST];
    find_things(s, entities);
    assert_valid(s->world);
    for (int i = 0; i < it.count; i++) {
        const thing *each = &it.things[i];
        cr_assert_eq(!quern_entity_is_null(entities[i]), each->is_alive,
                     "seed %llu, frame %llu: entity %llx", (unsigned long long)seed,
                     (unsigned long long)at_frame, (unsigned long long)each->id);
        if (!each->is_alive) continue;
        const wish *wanted = quern_entity_get(s->world, entities[i], s->wish);
        const uint32_t *due = quern_entity_get(s->world, entities[i], s->due);
        const trail *made = quern_entity_get(s->world, entities[i], s->trail);
        const quern_entity parent =
            quern_entity_target(s->world, entities[i], quern_world_parent(s->world));
        cr_assert_eq(wanted != NULL, each->has_wish, "seed %llu, frame %llu: request of %llx",
                     (unsigned long long)seed, (unsigned long long)at_frame, (unsigned long long)each->id);
        cr_assert_eq(due != NULL ? (int)*due : NONE, each->due,
                     "seed %llu, frame %llu: %llx is due in %d frames, not %d", (unsigned long long)seed,
                     (unsigned long long)at_frame, (unsigned long long)each->id,
                     due != NULL ? (int)*due : NONE, each->due);
        cr_assert_eq(made != NULL, each->has_trail);
        if (wanted != NULL) {
            cr_assert(wanted->seed == each->wish.seed && wanted->length == each->wish.length);
            cr_assert_eq(quern_entity_is_component_enabled(s->world, entities[i], s->wish),
                         !each->wish_is_off);
        }
        if (made != NULL) compare_trail(made, &each->trail_of);
        cr_assert_eq(quern_entity_is_enabled(s->world, entities[i]), !each->is_off);
        cr_assert_eq(parent.bits, each->parent == NONE ? 0 : entities[each->parent].bits);
        for (uint32_t t = 0; t < STATE_COUNT; t++)
            cr_assert_eq(quern_entity_has(s->world, entities[i], quern_states_tag(s->states, t)),
                         each->tags[t]);
    }
    if (!has_state) return;
    const quern_state *state = quern_resource_get(s->world, quern_states_resource(s->states));
    cr_assert(state->current == it.state.current && state->left == it.state.left &&
                  state->entered == it.state.entered,
              "seed %llu, frame %llu: state %u, left %u, entered %u", (unsigned long long)seed,
              (unsigned long long)at_frame, state->current, state->left, state->entered);
}

/* -------------------------------------------------------------------------------------------- elsewhere */

typedef struct outcome {
    uint64_t hash, observed;
} outcome;

static outcome expected[FRAMES];
static quern_byte_buffer bytes;

static outcome play_frame(scene *s)
{
    play_between(s);
    if (is_modelled) model_frame();
    must_run(s->schedule, s->jobs);
    return (outcome){quern_world_hash(s->world), observed};
}

static void save_and_load(scene *from, scene *to, bool copies)
{
    const quern_save_def save = {.schedules = {from->schedule}};
    const quern_load_def load = {.schedules = {to->schedule}};
    if (copies) {
        must(quern_world_copy(from->world, to->world, &save, &load, NULL));
        return;
    }
    bytes.size_bytes = 0;
    must(quern_world_save(from->world, quern_sink_bytes(&bytes), &save));
    must(quern_world_load(to->world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &load, NULL));
}

/* Goes on in another world, with other threads, and notes what the next frames must be. */
static void go_on_elsewhere(scene *from, bool copies, outcome *later, uint64_t count)
{
    scene other;
    const uint64_t seen = observed, frame = at_frame;
    const uint32_t used = features;
    open_scene(&other, schedule_style((uint32_t)mix(seed + frame) % STYLE_COUNT),
               pool_threads[mix(seed * 3 + frame) % POOL_COUNT], NULL);
    if (from->has_new_systems) renew_state_systems(&other);
    save_and_load(from, &other, copies);
    cr_assert_eq(quern_world_hash(other.world), quern_world_hash(from->world));
    compare(&other, true);
    is_modelled = false;
    for (uint64_t i = 0; i < count; i++) {
        at_frame = frame + 1 + i;
        later[i] = play_frame(&other);
    }
    close_scene(&other);
    is_modelled = true;
    observed = seen;
    at_frame = frame;
    features = used;
    playing = from;
}

static void check_json(scene *s)
{
    scene other;
    open_scene(&other, (quern_schedule_def){.disable_fusing = true}, 1, NULL);
    bytes.size_bytes = 0;
    must(quern_json_write_world(s->world, quern_sink_bytes(&bytes)));
    must(quern_json_read_world(other.world, bytes.bytes, bytes.size_bytes, NULL));
    compare(&other, true);
    cr_assert_eq(quern_world_hash_by(other.world, other.id), quern_world_hash_by(s->world, s->id));
    close_scene(&other);
}

static void check_session(scene *s)
{
    scene other;
    quern_archive *list;
    quern_save_session *writer;
    quern_load_session *reader;
    open_scene(&other, (quern_schedule_def){.disable_fusing = true}, 1, NULL);
    must(quern_save_session_create(s->world, NULL, &writer));
    must(quern_load_session_create(other.world, NULL, &reader));
    must(quern_archive_create(s->world, &list));
    learn_known(s);
    for (uint32_t i = 0; i < known_count; i++)
        if (quern_entity_is_null(
                quern_entity_target(s->world, known[i].entity, quern_world_parent(s->world))))
            must(quern_archive_append_tree(list, known[i].entity));
    bytes.size_bytes = 0;
    must(quern_save_session_write(writer, list, quern_sink_bytes(&bytes)));
    must(quern_load_session_read(reader, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0, NULL));
    compare(&other, false);
    quern_archive_destroy(list);
    quern_save_session_destroy(writer);
    quern_load_session_destroy(reader);
    close_scene(&other);
}

static void follow(quern_history *history, scene *replica, quern_delta_applier *applier, uint64_t from,
                   uint64_t to)
{
    quern_delta *delta;
    must(quern_delta_create(history, from, to, &delta));
    bytes.size_bytes = 0;
    must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
    quern_delta_destroy(delta);
    compare(replica, true);
}

static void count_pairs(void)
{
    for (uint32_t a = 0; a < FEATURES; a++)
        for (uint32_t b = 0; b < FEATURES; b++)
            pairs[a][b] += (features >> a & 1) & (features >> b & 1);
}

/* --------------------------------------------------------------------------------------------- the runs */

static void open_program(scene *s, quern_schedule_def style, uint32_t thread_count,
                         const quern_allocator *allocator)
{
    open_scene(s, style, thread_count, allocator);
    observed = 0;
    at_frame = 999;
    random_source random = {mix(seed)};
    for (uint32_t i = 0; i < 12; i++) {
        learn_known(s);
        if (i == 0)
            spawn_one(s, &random);
        else
            create_one(s, &random);
    }
}

static void play_with_model(void)
{
    scene s, replica;
    quern_history *history;
    quern_delta_applier *applier;
    outcome later[3];
    uint64_t later_count = 0, later_first = 0, replica_frame = 0;
    memset((void *)&it, 0, sizeof it);
    it.state = (quern_state){.left = QUERN_NO_STATE};
    is_modelled = true;
    open_program(&s, (quern_schedule_def){.disable_fusing = true}, 1, NULL);
    open_scene(&replica, (quern_schedule_def){.disable_fusing = true}, 1, NULL);
    bytes.size_bytes = 0;
    must(quern_world_save(s.world, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(replica.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    must(quern_delta_applier_create(replica.world, &applier));
    must(quern_history_create(s.world, &(quern_history_def){.schedules = {s.schedule}, .frame_count = 32},
                              &history));
    must(quern_history_save(history, 0, NULL));
    for (uint64_t at = 0; at < FRAMES; at++) {
        const uint64_t chosen = mix(seed * 17 + at);
        features = 0;
        if (at > 3 && chosen % 4 == 0) { /* goes back, and runs these frames again */
            const uint64_t back = at - 1 - chosen / 4 % 3;
            const uint64_t seen = observed;
            must(quern_history_restore(history, back, NULL));
            is_modelled = false;
            for (at_frame = back; at_frame < at; at_frame++)
                cr_assert_eq(play_frame(&s).hash, expected[at_frame].hash, "seed %llu: frame %llu, again",
                             (unsigned long long)seed, (unsigned long long)at_frame);
            is_modelled = true;
            observed = seen;
            features = 1u << USES_HISTORY;
        }
        at_frame = at;
        expected[at] = play_frame(&s);
        compare(&s, true);
        if (at - later_first < later_count) {
            cr_assert_eq(expected[at].hash, later[at - later_first].hash,
                         "seed %llu, frame %llu: the hash in another world", (unsigned long long)seed,
                         (unsigned long long)at);
            cr_assert_eq(expected[at].observed, later[at - later_first].observed);
        }
        must(quern_history_save(history, at + 1, NULL));
        if (chosen / 16 % 3 != 0) {
            follow(history, &replica, applier, replica_frame, at + 1);
            replica_frame = at + 1;
            use(USES_DELTA);
        }
        if (at % 3 == 0 && at + 3 < FRAMES) {
            const bool copies = chosen / 64 % 2 == 0;
            go_on_elsewhere(&s, copies, later, 3);
            later_first = at + 1;
            later_count = 3;
            use(copies ? USES_COPY : USES_ARCHIVE);
        }
        if (chosen / 128 % 3 == 0) {
            check_json(&s);
            use(USES_JSON);
        }
        if (chosen / 512 % 3 == 0) {
            check_session(&s);
            use(USES_SESSION);
        }
        count_pairs();
    }
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    close_scene(&replica);
    close_scene(&s);
    is_modelled = false;
}

static void play_as_expected(quern_schedule_def style, uint32_t thread_count)
{
    scene s;
    open_program(&s, style, thread_count, NULL);
    for (at_frame = 0; at_frame < FRAMES; at_frame++) {
        const outcome actual = play_frame(&s);
        cr_assert_eq(actual.hash, expected[at_frame].hash, "seed %llu, frame %llu, %u threads: the hash",
                     (unsigned long long)seed, (unsigned long long)at_frame, thread_count);
        cr_assert_eq(actual.observed, expected[at_frame].observed,
                     "seed %llu, frame %llu, %u threads: what was seen", (unsigned long long)seed,
                     (unsigned long long)at_frame, thread_count);
    }
    close_scene(&s);
}

static uint64_t failed_count;

/* Frames in which allocations fail are taken back and run again. */
static void play_without_memory(quern_schedule_def style, uint32_t thread_count)
{
    scene s;
    quern_history *history;
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(failing);
    open_program(&s, style, thread_count, &allocator);
    must(quern_history_create(s.world, &(quern_history_def){.schedules = {s.schedule}}, &history));
    for (at_frame = 0; at_frame < FRAMES; at_frame++) {
        must(quern_history_save(history, at_frame, s.jobs));
        play_between(&s);
        failing_allocator_fail_often(failing, 1 + (uint32_t)(mix(seed + at_frame) % 40),
                                     seed * 3 + at_frame);
        const quern_result result = quern_schedule_run(s.schedule, s.jobs, 0);
        failing_allocator_heal(failing);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
            failed_count++;
            must(quern_history_restore(history, at_frame, s.jobs));
            play_between(&s);
            must_run(s.schedule, s.jobs);
        }
        cr_assert_eq(quern_world_hash(s.world), expected[at_frame].hash,
                     "seed %llu, frame %llu, %u threads: the hash after failed allocations",
                     (unsigned long long)seed, (unsigned long long)at_frame, thread_count);
    }
    quern_history_destroy(history);
    close_scene(&s);
    failing_allocator_close(failing);
}

static void check_amounts(void)
{
    cr_assert_gt(failed_count, 100u);
    for (uint32_t a = 0; a < FEATURES; a++)
        for (uint32_t b = 0; b < a; b++)
            cr_assert((a == USES_COPY && b == USES_ARCHIVE) || pairs[a][b] > 0,
                      "'%s' and '%s' were never drawn together", feature_names[a], feature_names[b]);
}

Test(kit_together, frames_match_the_model_in_every_style, .timeout = 600)
{
    const char *only = getenv("QUERN_TOGETHER_SEED");
    for (uint64_t i = 1; i <= SEEDS; i++) {
        seed = only != NULL ? strtoull(only, NULL, 10) : i;
        play_with_model();
        for (uint32_t k = 0; k < POOL_COUNT; k++)
            play_as_expected(schedule_style((uint32_t)(seed + k) % STYLE_COUNT), pool_threads[k]);
        play_without_memory(schedule_style((uint32_t)seed % STYLE_COUNT), pool_threads[seed % POOL_COUNT]);
        if (only != NULL) break;
    }
    if (SEEDS >= 80 && only == NULL) check_amounts(); /* under sanitizers, a few seeds reach all code */
}
