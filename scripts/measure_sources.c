/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* measure_sources CASE COUNT PAD: runs a case three times to warm it, and then COUNT times in `measured`, in which
 * alone measure_sources.py counts what is called. One thread, and no input but the arguments, so that counts repeat.
 * PAD bytes are allocated first: caches with addresses as keys have collisions at some addresses. */

#include <quern/kit/background.h>
#include <quern/kit/states.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTITY_COUNT = 1000, SYSTEM_COUNT = 10, REQUEST_COUNT = 100, INSTANCE_COUNT = 10000 };

typedef struct Position {
    float x, y, z;
} Position;

typedef Position Velocity, Mark;

static quern_world *world;
static quern_schedule *schedule;
static quern_jobs *jobs; /* of one thread */
static quern_component position, velocity, mark;
static quern_relation parent;
static quern_entity entities[ENTITY_COUNT];
static const Mark value = {1, 2, 3};

static void set_value(void)
{
    QUERN_MUST(quern_entity_set(world, entities[0], position, &value));
}

static void get_value(void)
{
    if (quern_entity_get(world, entities[0], position) == NULL) abort();
}

static void add_and_remove(void)
{
    QUERN_MUST(quern_entity_add(world, entities[0], mark, &value));
    QUERN_MUST(quern_entity_remove(world, entities[0], mark));
}

static void create_and_destroy(void)
{
    quern_entity entity;
    QUERN_MUST(quern_entity_create_with(world, (quern_component[]){position, velocity},
                                        (const void *[]){&value, &value}, 2, &entity));
    QUERN_MUST(quern_entity_destroy(world, entity));
}

static void relate_again(void)
{
    QUERN_MUST(quern_entity_relate(world, entities[0], parent, entities[1]));
}

static void run_frame(void)
{
    QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 64));
}

static void add_by_commands(uint32_t count)
{
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < count; i++)
        QUERN_MUST(quern_commands_add(commands, entities[i], mark, &value));
    QUERN_MUST(quern_world_flush(world));
}

static void remove_by_commands(uint32_t count)
{
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < count; i++)
        QUERN_MUST(quern_commands_remove(commands, entities[i], mark));
    QUERN_MUST(quern_world_flush(world));
}

static void add_deferred(void)
{
    add_by_commands(1);
}

static void remove_deferred(void)
{
    remove_by_commands(1);
}

static void sync_1(void)
{
    add_by_commands(1);
    remove_by_commands(1);
}

static void sync_10(void)
{
    add_by_commands(10);
    remove_by_commands(10);
}

static void sync_300(void)
{
    add_by_commands(300);
    remove_by_commands(300);
}

/* ------------------------------------------------------------- what games ask for, besides the calls above */

typedef struct Bag {
    QUERN_LIST(uint32_t) numbers;
} Bag;

typedef struct Debt {
    quern_entity target; /* of an edge of a relation with several targets per source */
    uint32_t amount;
} Debt;

typedef struct Debts {
    QUERN_LIST(Debt) list;
} Debts;

typedef struct Amount {
    uint32_t number;
} Amount;

static quern_component bag, hooked, shared, wish;
static quern_relation home, owes;
static quern_resource setting;
static quern_schedule *idle; /* of one system */
static quern_states *states;
static quern_background *background;
static uint32_t hook_calls;

static void push_and_pop(void)
{
    Bag *own = quern_entity_get(world, entities[0], bag);
    QUERN_MUST(QUERN_LIST_PUSH(&own->numbers, uint32_t, 7));
    QUERN_MUST(quern_list_pop(&own->numbers.list, sizeof(uint32_t), NULL));
}

static void set_same(void)
{
    bool has_changed;
    QUERN_MUST(quern_entity_set_if_different(world, entities[0], position, &value, &has_changed));
}

static void clone_and_destroy(void)
{
    quern_entity copy;
    QUERN_MUST(quern_entity_clone(world, entities[1], NULL, &copy));
    QUERN_MUST(quern_entity_destroy(world, copy));
}

static quern_entity below;

static void open_tree(void)
{
    QUERN_MUST(quern_entity_create(world, &below));
    for (uint32_t i = 0; i < 3; i++)
        QUERN_MUST(quern_entity_relate(world, entities[i + 1], quern_world_parent(world),
                                       i == 0 ? below : entities[i]));
}

static void clone_tree(void)
{
    quern_entity copy;
    QUERN_MUST(quern_entity_clone(world, below, NULL, &copy));
    QUERN_MUST(quern_entity_destroy(world, copy));
}

/* 100 copies by command, which further commands destroy: the cost of one is a hundredth. */
static void record_clones(quern_entity entity)
{
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < 100; i++) {
        quern_entity copy;
        QUERN_MUST(quern_commands_clone(commands, entity, NULL, &copy));
        QUERN_MUST(quern_commands_destroy(commands, copy));
    }
    QUERN_MUST(quern_world_flush(world));
}

static void clone_by_command(void)
{
    record_clones(entities[1]);
}

static void clone_tree_by_command(void)
{
    record_clones(below);
}

static void set_edge(void)
{
    QUERN_MUST(quern_entity_set_edge_value(world, entities[0], home, entities[1], &(Amount){3}));
}

static void get_edge(void)
{
    if (quern_entity_edge_value(world, entities[0], home, entities[1]) == NULL) abort();
}

static void set_edge_of_four(void)
{
    QUERN_MUST(quern_entity_set_edge_value(world, entities[0], owes, entities[3], &(Debt){.amount = 3}));
}

static void get_edge_of_four(void)
{
    if (quern_entity_edge_value(world, entities[0], owes, entities[3]) == NULL) abort();
}

static void count_call(quern_world *of, quern_entity entity, void *added, void *user_data)
{
    (void)of, (void)entity, (void)added, (void)user_data;
    hook_calls++;
}

static void add_and_remove_hooked(void)
{
    QUERN_MUST(quern_entity_add(world, entities[0], hooked, &value));
    QUERN_MUST(quern_entity_remove(world, entities[0], hooked));
}

static void get_shared(void)
{
    if (quern_entity_get_shared(world, entities[0], shared) == NULL) abort();
}

/* The system adds a number of 64 bytes of statistics to the place of each instance. */
typedef struct Stats {
    float numbers[16];
} Stats;

static quern_component stats;

static void add_own(quern_context *context, const quern_view *view)
{
    Position *places = quern_view_write(view, 0);
    const Stats *of = quern_view_read(view, 1);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        places[i].x += of[i].numbers[3];
}

static void add_shared(quern_context *context, const quern_view *view)
{
    Position *places = quern_view_write(view, 0);
    const Stats *const *of = QUERN_UP(view, 1, Stats);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        places[i].x += of[i]->numbers[3];
}

/* Spawns instances of so many kinds in turn; of 0 kinds, the statistics are a component of each instance. */
static void open_instances(uint32_t kind_count)
{
    enum { KINDS = 4 };
    quern_prefab prefabs[KINDS];
    const Stats of_kind = {{1, 2, 3, 4}};
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &stats, Stats));
    const quern_term term = kind_count == 0 ? quern_term_read(stats) : quern_term_shared(world, stats);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        QUERN_MUST(quern_entity_destroy(world, entities[i]));
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const quern_prefab_value values[] = {{.component = position, .value = &value},
                                             {.component = stats, .value = &of_kind}};
        quern_prefab_member_def member = {.values = values, .value_count = kind_count == 0 ? 2 : 1};
        if (kind_count > 0) QUERN_MUST(quern_shared_create(world, &values[1], 1, &member.shared));
        QUERN_MUST(quern_prefab_create(world, &member, 1, &prefabs[kind]));
    }
    for (uint32_t i = 0; i < INSTANCE_COUNT; i++)
        QUERN_MUST(quern_prefab_spawn(world, prefabs[kind_count == 0 ? 0 : i % kind_count], NULL, NULL));
    QUERN_MUST(quern_schedule_create(world, NULL, &idle));
    const quern_system_def def = {.name = "add",
                                  .run = kind_count == 0 ? add_own : add_shared,
                                  .terms = {quern_term_write(position), term}};
    QUERN_MUST(quern_schedule_add_system(idle, &def, NULL));
}

static void open_own_stats(void)
{
    open_instances(0);
}

static void open_one_kind(void)
{
    open_instances(1);
}

static void open_four_kinds(void)
{
    open_instances(4);
}

static void find_nearest(void)
{
    if (quern_entity_is_null(quern_entity_nearest(world, entities[10], parent, mark))) abort();
}

static void run_idle(void)
{
    QUERN_MUST(quern_schedule_run(idle, jobs, 1.0 / 64));
}

static void do_nothing(quern_context *context, const quern_view *view)
{
    (void)context, (void)view;
}

static void open_idle(void)
{
    QUERN_MUST(quern_schedule_create(world, NULL, &idle));
}

static void open_plain(void)
{
    open_idle();
    QUERN_MUST(
        quern_schedule_add_system(idle, &(quern_system_def){.name = "plain", .run = do_nothing}, NULL));
}

static void open_watching(void)
{
    open_idle();
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &setting, Position, x, y, z));
    QUERN_MUST(quern_schedule_add_system(
        idle, &(quern_system_def){.name = "watching", .run = do_nothing, .if_changed = {setting}}, NULL));
}

static void open_states(void)
{
    open_idle();
    QUERN_MUST(quern_states_create(
        world, &(quern_states_def){.name = "game", .states = {"menu", "playing", "paused"}}, &states));
    QUERN_MUST(quern_states_add_systems(states, idle, 0));
    QUERN_MUST(quern_schedule_add_system(
        idle, &(quern_system_def){.name = "plain", .run = do_nothing, .sets = {"menu"}}, NULL));
}

static bool never_done(void *user_data, quern_background_step *step)
{
    (void)user_data, (void)step;
    return false;
}

static void open_background(void)
{
    open_idle();
    QUERN_MUST(quern_component_register(
        world, &(quern_component_def){.name = "wish", .size_bytes = 8, .alignment_bytes = 4}, &wish));
    const quern_background_def def = {
        .name = "work", .request = wish, .result = mark, .step = never_done, .frames = 60000};
    QUERN_MUST(quern_background_create(world, &def, &background));
    QUERN_MUST(quern_background_add_systems(background, idle, 0));
}

static void open_requests(void)
{
    open_background();
    for (uint32_t i = 0; i < REQUEST_COUNT; i++)
        QUERN_MUST(quern_entity_add(world, entities[i], wish, &(uint64_t){i}));
}

static void open_edges(void)
{
    quern_component amount, debts;
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &amount, Amount, number));
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Debts),
                               .fields = {QUERN_LIST_FIELD(Debts, list, Debt, target, amount)}},
        &debts));
    QUERN_MUST(
        quern_relation_register(world, &(quern_relation_def){.name = "home", .value = amount}, &home));
    QUERN_MUST(quern_relation_register(
        world, &(quern_relation_def){.name = "owes", .many = true, .value = debts}, &owes));
    QUERN_MUST(quern_entity_relate(world, entities[0], home, entities[1]));
    for (int i = 1; i <= 4; i++)
        QUERN_MUST(quern_entity_relate(world, entities[0], owes, entities[i]));
}

static void open_bag(void)
{
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Bag), .fields = {QUERN_LIST_FIELD(Bag, numbers, uint32_t)}},
        &bag));
    QUERN_MUST(quern_entity_add(world, entities[0], bag, NULL));
    push_and_pop();
}

static void open_hooked(void)
{
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){.name = "hooked",
                               .size_bytes = sizeof value,
                               .alignment_bytes = 4,
                               .entity_hooks = {.on_add = count_call, .on_remove = count_call}},
        &hooked));
}

static void open_shared(void)
{
    quern_entity holder;
    QUERN_MUST(quern_component_register(
        world, &(quern_component_def){.name = "mesh", .size_bytes = 12, .alignment_bytes = 4}, &shared));
    QUERN_MUST(quern_shared_create(world, &(quern_prefab_value){.component = shared, .value = &value}, 1,
                                   &holder));
    QUERN_MUST(quern_entity_relate(world, entities[0], quern_world_shared(world), holder));
}

/* The third ancestor has the component. */
static void open_chain(void)
{
    for (int i = 10; i < 13; i++)
        QUERN_MUST(quern_entity_relate(world, entities[i], parent, entities[i + 1]));
    QUERN_MUST(quern_entity_add(world, entities[13], mark, &value));
}

/* `undo` is called after the warm-up, so that the case changes the same again. `open` prepares the world. */
static const struct {
    const char *name;
    void (*run)(void);
    void (*undo)(void);
    void (*open)(void);
} cases[] = {
    {"set", set_value, NULL, NULL},
    {"get", get_value, NULL, NULL},
    {"add_remove", add_and_remove, NULL, NULL},
    {"create_destroy", create_and_destroy, NULL, NULL},
    {"relate", relate_again, NULL, NULL},
    {"frame", run_frame, NULL, NULL},
    {"sync_1", sync_1, NULL, NULL},
    {"sync_10", sync_10, NULL, NULL},
    {"sync_300", sync_300, NULL, NULL},
    {"deferred_add", add_deferred, remove_deferred, NULL},
    {"push_pop", push_and_pop, NULL, open_bag},
    {"set_same", set_same, NULL, NULL},
    {"clone", clone_and_destroy, NULL, NULL},
    {"clone_tree", clone_tree, NULL, open_tree},
    {"clone_100", clone_by_command, NULL, NULL},
    {"clone_tree_100", clone_tree_by_command, NULL, open_tree},
    {"set_edge", set_edge, NULL, open_edges},
    {"get_edge", get_edge, NULL, open_edges},
    {"set_edge4", set_edge_of_four, NULL, open_edges},
    {"get_edge4", get_edge_of_four, NULL, open_edges},
    {"hooked", add_and_remove_hooked, NULL, open_hooked},
    {"shared", get_shared, NULL, open_shared},
    {"own_stats", run_idle, NULL, open_own_stats},
    {"one_kind", run_idle, NULL, open_one_kind},
    {"four_kinds", run_idle, NULL, open_four_kinds},
    {"nearest", find_nearest, NULL, open_chain},
    {"idle", run_idle, NULL, open_plain},
    {"if_changed", run_idle, NULL, open_watching},
    {"states", run_idle, NULL, open_states},
    {"background", run_idle, NULL, open_background},
    {"requests", run_idle, NULL, open_requests},
};

static void move(quern_context *context, const quern_view *view)
{
    Position *positions = quern_view_write(view, 0);
    const Velocity *velocities = quern_view_read(view, 1);
    const float dt = (float)quern_context_delta_seconds(context);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x += velocities[i].x * dt;
}

static void open_world(void)
{
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &position, Position));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &velocity, Velocity));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &mark, Mark));
    parent = quern_world_parent(world);
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = 1}, &jobs));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    for (int i = 0; i < SYSTEM_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "move%d", i);
        const quern_system_def def = {
            .name = name, .run = move, .terms = {quern_term_write(position), quern_term_read(velocity)}};
        QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
    }
    for (int i = 0; i < ENTITY_COUNT; i++)
        QUERN_MUST(quern_entity_create_with(world, (quern_component[]){position, velocity},
                                            (const void *[]){&value, &value}, 2, &entities[i]));
}

__attribute__((noinline)) static void measured(void (*run)(void), unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        run();
}

int main(int argument_count, char **arguments)
{
    for (size_t i = 0; argument_count == 4 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(arguments[1], cases[i].name) != 0) continue;
        void *pad = malloc(strtoul(arguments[3], NULL, 10));
        open_world();
        if (cases[i].open != NULL) cases[i].open();
        for (int round = 0; round < 3; round++) {
            cases[i].run();
            if (cases[i].undo != NULL) cases[i].undo();
        }
        measured(cases[i].run, strtoul(arguments[2], NULL, 10));
        quern_schedule_destroy(schedule);
        quern_schedule_destroy(idle);
        quern_background_destroy(background);
        quern_states_destroy(states);
        quern_jobs_destroy(jobs);
        quern_world_destroy(world);
        free(pad);
        return 0;
    }
    fprintf(stderr, "usage: measure_sources CASE COUNT PAD\n");
    return 2;
}
