/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The public headers, used from C++17 and C++20. */

#include <quern/quern.h>

#include <cstdio>

struct Position {
    float x, y;
};

namespace game {
enum class Mood : uint16_t { Calm, Angry };

struct Agent {
    Mood mood;
    bool is_hunter;
    Position place;
    float matrix[16];
    long long number;
    quern_entity target;
};
} // namespace game

struct Prey {};

template <typename A, typename B> struct Pair {
    A first;
    B second;
};

static int fail(const char *what)
{
    std::fprintf(stderr, "%s: %s\n", what, quern_error_message());
    return 1;
}

static constexpr quern_field agent_fields[] =
    QUERN_FIELDS(game::Agent, mood, is_hunter, place.y, matrix, number, target);
static_assert(agent_fields[0].type == QUERN_FIELD_U16 && agent_fields[1].type == QUERN_FIELD_BOOL, "");
static_assert(agent_fields[2].type == QUERN_FIELD_F32 &&
                  agent_fields[2].offset_bytes == offsetof(game::Agent, place) + sizeof(float),
              "");
static_assert(agent_fields[3].type == QUERN_FIELD_F32 && agent_fields[3].count == 16, "");
static_assert(agent_fields[4].type == QUERN_FIELD_I64 && agent_fields[5].type == QUERN_FIELD_ENTITY, "");

struct Slot {
    uint16_t count;
    float weight;
};

struct Bag {
    char title[24];
    Slot slots[3];
};

static constexpr quern_field bag_fields[] = {
    QUERN_TEXT(Bag, title), QUERN_FIELD(Bag, slots[1].count),
#if __cplusplus >= 202002L
    QUERN_FIELD_WITH(Bag, slots[1].weight, .unit = "kg", .maximum = 50)
#endif
};
static_assert(bag_fields[0].type == QUERN_FIELD_TEXT && bag_fields[0].count == 24, "");
static_assert(bag_fields[1].type == QUERN_FIELD_U16 &&
                  bag_fields[1].offset_bytes == offsetof(Bag, slots[1].count),
              "");
#if __cplusplus >= 202002L
static_assert(bag_fields[2].type == QUERN_FIELD_F32 && bag_fields[2].maximum == 50 &&
                  bag_fields[2].count == 1,
              "");
#endif

static void move(quern_context *, const quern_view *view)
{
    Position *positions = QUERN_COLUMN(view, 0, Position);
    const game::Agent *agents = QUERN_COLUMN(view, 1, const game::Agent);
    const Pair<int, int> *cells = QUERN_COLUMN(view, 2, const Pair<int, int>);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        positions[i].x += agents[i].matrix[0] + static_cast<float>(cells[i].first);
}

/* Events are emitted and read by type, too. */
static quern_event cell_event;
static int cell_sum;

static void emit_cells(quern_context *context)
{
    const Pair<int, int> cell = {1, 2};
    quern_emitter *emitter = quern_context_emitter(context, cell_event);
    if (!quern_emit(emitter, &cell)) return;
    Pair<int, int> *place = QUERN_EMIT(emitter, Pair<int, int>);
    if (place != nullptr) *place = {10, 20};
    uint32_t count;
    Pair<int, int> *places = QUERN_EMIT_SOME(emitter, 2, &count, Pair<int, int>);
    for (uint32_t i = 0; i < count; i++)
        places[i] = {1, 2};
    quern_context_emit(context, cell_event, &cell, 1);
}

static void add_cells(quern_context *, const quern_view *view)
{
    const Pair<int, int> *cells = QUERN_EVENTS(view, Pair<int, int>);
    for (uint32_t i = 0; cells != nullptr && i < view->count; i++)
        cell_sum += cells[i].first + cells[i].second;
}

static int each_sum;

static void add_each_cell(quern_context *context)
{
    QUERN_EACH_EVENT(context, cell_event, cell, Pair<int, int>) each_sum += cell->first + cell->second;
}

static bool emits_cells(quern_world *world)
{
    quern_event agent;
    quern_schedule *schedule = nullptr;
    quern_system_def emitter = {}, reader = {}, looper = {};
    if (QUERN_EVENT_REGISTER(world, &cell_event, Pair<int, int>) != QUERN_OK ||
        QUERN_EVENT_REGISTER_FIELDS(world, &agent, game::Agent, mood, target) != QUERN_OK ||
        quern_schedule_create(world, nullptr, &schedule) != QUERN_OK)
        return false;
    emitter.name = "emitter";
    emitter.begin = emit_cells;
    emitter.emits[0] = cell_event;
    reader.name = "reader";
    reader.run = add_cells;
    reader.items = cell_event;
    reader.flags = QUERN_SYSTEM_SERIAL;
    looper.name = "looper";
    looper.begin = add_each_cell;
    looper.reads_events[0] = cell_event;
    const bool has_run = quern_schedule_add_system(schedule, &reader, nullptr) == QUERN_OK &&
                         quern_schedule_add_system(schedule, &looper, nullptr) == QUERN_OK &&
                         quern_schedule_add_system(schedule, &emitter, nullptr) == QUERN_OK &&
                         quern_schedule_run(schedule, nullptr, 0) == QUERN_OK &&
                         quern_schedule_run(schedule, nullptr, 0) == QUERN_OK;
    quern_schedule_destroy(schedule);
    return has_run && cell_sum == 42 && each_sum == 42;
}

/* What it looks up in other entities, and writes there. */
static quern_system_def hit_def(quern_component health, quern_component enemy)
{
    quern_system_def def;
    def.lookups[0].component = enemy;
    def.write_lookups[0] = {health, enemy, {}};
    return def;
}

static bool adds_hits(quern_schedule *schedule, quern_component health, quern_component enemy)
{
    quern_system_def def = hit_def(health, enemy);
    def.name = "hit";
    def.begin = [](quern_context *context) {
        quern_context_lookup_write(context, quern_entity_null(), {0});
    };
    return quern_schedule_add_system(schedule, &def, nullptr) == QUERN_OK &&
           quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "hit"),
                                             false) == QUERN_OK;
}

/* One entity belongs to another, and reads its position. */
static bool reads_upward(quern_world *world, quern_component position)
{
    quern_relation_def relation_def = {};
    relation_def.name = "belongs to";
    quern_relation relation;
    quern_entity target, source;
    const Position place = {3.0f, 4.0f};
    const void *const values[] = {&place};
    quern_query_def def = {};
    quern_query *query = nullptr;
    if (quern_relation_register(world, &relation_def, &relation) != QUERN_OK ||
        quern_entity_create_with(world, &position, values, 1, &target) != QUERN_OK ||
        quern_entity_create(world, &source) != QUERN_OK ||
        quern_entity_relate(world, source, relation, target) != QUERN_OK)
        return false;
    def.terms[0] = quern_term_up(position, relation);
    if (quern_query_create(world, &def, &query) != QUERN_OK) return false;
    quern_query_iterator it = quern_query_iterate(query);
    bool found = quern_query_next(&it);
    if (found) {
        const Position *const *up = QUERN_UP(&it.view, 0, Position);
        found = up[0]->x == place.x && up[0]->y == place.y;
    }
    quern_query_destroy(query);
    return found;
}

/* The macros of shorthand.h. */
QUERN_SYSTEM(step, (Position, place), (const game::Agent, agent))
{
    QUERN_ROWS(i) place[i].x += agent[i].matrix[0];
}

static quern_result shorthand_result;
static quern_entity recorded;

static void record_shorthand(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_RESOURCE(context, Position)->x += QUERN_RESOURCE(context, const Position)->y + 1;
    shorthand_result = QUERN_CREATE(commands, &recorded, QUERN_VALUE(Position, 7, 8), QUERN_TAG(Hungry));
    if (shorthand_result == QUERN_OK) shorthand_result = QUERN_SET(commands, recorded, Bag, Bag());
    if (shorthand_result == QUERN_OK) shorthand_result = QUERN_REMOVE(commands, recorded, Hungry);
    if (shorthand_result == QUERN_OK) shorthand_result = QUERN_ADD(commands, recorded, Hungry);
}

static bool adds_systems(quern_world *world, quern_schedule *schedule)
{
    quern_resource resource;
    quern_system_def def = {};
    if (QUERN_RESOURCE_REGISTER(world, &resource, Position) != QUERN_OK) return false;
    def.name = "record";
    def.begin = record_shorthand;
    def.resources[0] = {resource, QUERN_ACCESS_WRITE};
    if (quern_schedule_add_system(schedule, &def, nullptr) != QUERN_OK) return false;
#if __cplusplus >= 202002L
    return QUERN_ADD_SYSTEM(schedule, step, .after = {"record"}) == QUERN_OK;
#else
    return QUERN_ADD_SYSTEM(schedule, step) == QUERN_OK;
#endif
}

static bool runs_shorthand()
{
    quern_world *world = nullptr;
    quern_schedule *schedule = nullptr;
    quern_entity entity;
    const Bag bag = {};
    QUERN_MUST(quern_world_create(nullptr, &world));
    QUERN_MUST(quern_schedule_create(world, nullptr, &schedule));
    QUERN_MUST(QUERN_REGISTER(world, Bag, slots[1].count));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Hungry, Tired));
    game::Agent agent = {};
    agent.matrix[0] = 5;
    QUERN_MUST(QUERN_CREATE(world, &entity, QUERN_VALUE(Position, 1, 2), QUERN_VALUE(game::Agent, agent),
                            QUERN_VALUE_AT(Bag, &bag), QUERN_VALUE(Prey), QUERN_TAG(Tired)));
    QUERN_MUST(QUERN_SET(world, entity, Position, 3, 4));
    QUERN_MUST(QUERN_ADD(world, entity, Hungry));
    QUERN_MUST(QUERN_REMOVE(world, entity, Tired));
    bool is_right = adds_systems(world, schedule) && quern_schedule_run(schedule, nullptr, 1) == QUERN_OK &&
                    shorthand_result == QUERN_OK && QUERN_GET(world, entity, Position)->x == 8 &&
                    QUERN_GET(world, entity, const Position)->y == 4 && QUERN_HAS(world, entity, Hungry) &&
                    !QUERN_HAS(world, entity, Tired) && QUERN_HAS(world, entity, Prey) &&
                    QUERN_ID(world, Prey).bits == quern_component_find(world, "Prey").bits;
    quern_query_def def = {};
    quern_query *query = nullptr;
    def.terms[0] = quern_term_read(QUERN_ID(world, Bag));
    is_right =
        is_right && quern_query_create(world, &def, &query) == QUERN_OK && quern_query_count(query) == 2;
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return is_right;
}

struct Types {
    quern_component position, agent, cell, prey;
    quern_resource score;
};

static bool register_types(quern_world *world, Types *types)
{
    return QUERN_COMPONENT_REGISTER(world, &types->position, Position) == QUERN_OK &&
           QUERN_COMPONENT_REGISTER_FIELDS(world, &types->agent, game::Agent, mood, matrix, target) ==
               QUERN_OK &&
           QUERN_COMPONENT_REGISTER(world, &types->cell, Pair<int, int>) == QUERN_OK &&
           QUERN_COMPONENT_REGISTER(world, &types->prey, Prey) == QUERN_OK &&
           QUERN_RESOURCE_REGISTER_FIELDS(world, &types->score, Position, x, y) == QUERN_OK;
}

static quern_system_def define_move(const Types &types)
{
#if __cplusplus >= 202002L
    return {.name = "move",
            .run = move,
            .terms = {quern_term_write(types.position), quern_term_read(types.agent),
                      quern_term_read(types.cell), quern_term_with(types.prey)},
            .resources = {{types.score, QUERN_ACCESS_READ}}};
#else
    quern_system_def def = {};
    def.name = "move";
    def.run = move;
    def.terms[0] = quern_term_write(types.position);
    def.terms[1] = quern_term_read(types.agent);
    def.terms[2] = quern_term_read(types.cell);
    def.terms[3] = quern_term_with(types.prey);
    def.resources[0] = {types.score, QUERN_ACCESS_READ};
    return def;
#endif
}

#if __cplusplus >= 202002L
static bool register_again(quern_world *world)
{
    const quern_component_def def = {QUERN_TYPE(game::Agent),
                                     .fields = QUERN_FIELDS(game::Agent, mood, matrix, target)};
    quern_component again;
    return quern_component_register(world, &def, &again) == QUERN_OK;
}
#endif

int main()
{
    quern_world *world = nullptr;
    quern_schedule *schedule = nullptr;
    Types types;
    quern_entity entity;
    if (quern_world_create(nullptr, &world) != QUERN_OK) return fail("world");
    if (!register_types(world, &types)) return fail("register");
#if __cplusplus >= 202002L
    if (!register_again(world)) return fail("register again");
#endif
    if (!runs_shorthand()) return fail("shorthand");
    const Position position = {1.0f, 2.0f};
    game::Agent agent = {};
    agent.matrix[0] = 4;
    const Pair<int, int> cell = {8, 0};
    const quern_component components[] = {types.position, types.agent, types.cell, types.prey};
    const void *const values[] = {&position, &agent, &cell, nullptr};
    if (quern_entity_create_with(world, components, values, 4, &entity) != QUERN_OK) return fail("create");
    if (quern_schedule_create(world, nullptr, &schedule) != QUERN_OK) return fail("schedule");
    const quern_system_def def = define_move(types);
    if (quern_schedule_add_system(schedule, &def, nullptr) != QUERN_OK) return fail("system");
    if (!adds_hits(schedule, components[0], components[1])) return fail("lookups to write");
#if __cplusplus >= 202002L
    const quern_jobs_def jobs_def = {.thread_count = 2, .name = "C++"};
#else
    quern_jobs_def jobs_def;
    jobs_def.thread_count = 2;
#endif
    quern_jobs *jobs = nullptr;
    if (quern_jobs_create(&jobs_def, &jobs) != QUERN_OK) return fail("jobs");
    if (quern_schedule_run(schedule, jobs, 0) != QUERN_OK) return fail("run");
    quern_jobs_destroy(jobs);
    auto *stored = static_cast<const Position *>(quern_entity_get(world, entity, types.position));
    if (stored == nullptr || stored->x < 12.5f || stored->x > 13.5f) return fail("get");
    if (!reads_upward(world, types.position)) return fail("up");
    if (!emits_cells(world)) return fail("events");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return 0;
}
