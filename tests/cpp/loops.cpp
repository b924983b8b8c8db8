/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Range-based loops over quern::query. */

#include "expect.h"

#include <string>
#include <vector>

namespace {

struct Position {
    float x;
};
struct Velocity {
    float x;
};
struct Number {
    int value;
};
struct Frozen {};
struct Title {
    std::string text = "none";
};

void rows_are_visited()
{
    quern::app app;
    for (int i = 0; i < 5000; i++) {
        const quern_entity entity = app.create(Position{float(i)}, Velocity{1});
        if (i % 2 == 1) app.set(entity, Number{i});
        if (i % 7 == 0) app.set(entity, Title{"seven"});
    }
    quern::query<Position, const Velocity, Number *> query(app, quern::without<Frozen>{});
    for (auto [entity, position, velocity, number] : query) {
        static_assert(std::is_same<decltype(position), Position &>::value);
        static_assert(std::is_same<decltype(velocity), const Velocity &>::value);
        static_assert(std::is_same<decltype(entity), quern_entity>::value);
        EXPECT(app.get<Position>(entity) == &position && app.get<Number>(entity) == number);
        position.x += velocity.x;
    }
    std::vector<float> by_each, by_rows, by_chunks;
    quern::must(query.each([&](Position &position) { by_each.push_back(position.x); }));
    for (const auto &[entity, position, velocity, number] : query)
        by_rows.push_back(position.x);
    uint32_t number_count = 0;
    for (auto [entities, positions, velocities, numbers] : query.chunks()) {
        EXPECT(entities.size() == positions.size() && positions.size() == velocities.size());
        EXPECT(numbers.size() == 0 || numbers.size() == entities.size());
        for (const Position &position : positions)
            by_chunks.push_back(position.x);
        number_count += numbers.size();
        EXPECT(app.get<const Velocity>(entities[0]) == &velocities[0]);
    }
    EXPECT(by_each.size() == 5000 && by_each == by_rows && by_each == by_chunks && number_count == 2500);
}

void tags_hooks_and_targets_are_elements()
{
    quern::app app;
    const quern_entity ship = app.create(Position{100}), other = app.create(Position{7});
    for (int i = 0; i < 10; i++) {
        const quern_entity gun = app.create(Velocity{float(i)}, Frozen{}, Title{std::to_string(i)});
        app.relate(gun, app.parent(), i < 6 ? ship : other);
    }
    std::string text;
    float sum = 0;
    quern::query<const Title, quern::up<Position>, Frozen> query(app);
    for (auto [entity, title, above, frozen] : query) {
        (void)frozen;
        text += title.text;
        sum += above->x;
    }
    EXPECT(text == "0123456789" && sum == 628);
    for (auto [entities, titles, above, frozen] : query.chunks()) {
        (void)frozen, (void)titles;
        for (uint32_t i = 0; i < entities.size(); i++)
            sum -= above[i]->x;
    }
    EXPECT(sum == 0);
    /* Loops that are left early end: more than eight of them would end each other. */
    for (int i = 0; i < 20; i++)
        for (auto [entity, title, above, frozen] : query) {
            (void)title, (void)above, (void)frozen, (void)entity;
            break;
        }
    quern_result outer = QUERN_ERROR_LIMIT;
    uint32_t count = 0;
    for (auto [entity, title, above, frozen] : query.rows(outer)) {
        (void)title, (void)above, (void)frozen, (void)entity;
        for (auto [inner, title_too, above_too, frozen_too] : query) {
            (void)title_too, (void)above_too, (void)frozen_too, (void)inner;
            count++;
        }
    }
    EXPECT(outer == QUERN_OK && count == 100);
}

void empty_queries_have_no_rows()
{
    quern::world world;
    world.create(Velocity{1});
    quern::query<Position> query(world);
    for (auto [entity, position] : query)
        EXPECT((position.x = 1, quern_entity_is_null(entity)));
    for (auto [entities, positions] : query.chunks())
        EXPECT(entities.size() + positions.size() == 0);
}

void change_filters_see_what_loops_write()
{
    quern::app app;
    app.create(Position{1}, Number{0});
    quern::query<Position> writes(app);
    quern::query<const Position> changes(app, quern::changed<Position>{});
    const auto count = [&] {
        int found = 0;
        for (auto [entity, position] : changes)
            found += app.is_alive(entity) && position.x > 0;
        return found;
    };
    EXPECT(count() == 1 && count() == 0);
    for (auto [entity, position] : writes)
        position.x = app.is_alive(entity) ? 2.0f : 0.0f;
    EXPECT(count() == 1 && count() == 0);
}

void failures_of_loops_are_reported()
{
    quern::world world(failing_allocator::world());
    for (int i = 0; i < 3000; i++)
        world.create(Position{float(i)});
    quern::query<const Position> query(world);
    quern_result result = QUERN_OK;
    uint32_t count = 0;
    for (auto [entity, position] : query.rows(result))
        if (position.x == 0) EXPECT(result_of([&, e = entity] { return world.destroy(e); }) == QUERN_OK);
    EXPECT(result == QUERN_ERROR_STRUCTURE_CHANGED);
    for (auto [entity, position] : query.rows(result))
        if (position.x >= 0 && !quern_entity_is_null(entity)) break;
    EXPECT(result == QUERN_OK); /* also if the loop is left early */
    for (auto [entities, positions] : query.chunks(result)) {
        count += entities.size() + positions.size();
        EXPECT(result_of([&, e = entities[0]] { return world.destroy(e); }) == QUERN_OK);
    }
    EXPECT(result == QUERN_ERROR_STRUCTURE_CHANGED && count > 0);
    const quern_entity first = world.create(Position{-1});
    /* New archetypes: matching them needs memory. */
    EXPECT(result_of([&] { return world.set(first, Number{1}); }) == QUERN_OK);
    for (uint64_t left = 0; result != QUERN_OK; left++) {
        quern::query<const Position, const Number> other(world);
        EXPECT(result_of([&] { return world.set(first, Velocity{1}); }) == QUERN_OK);
        count = 0;
        failing_allocator::left = left;
        for (auto [entity, position, number] : other.rows(result))
            count += static_cast<uint32_t>(number.value) + (position.x < 0);
        failing_allocator::left = UINT64_MAX;
        EXPECT(result == QUERN_OK ? count == 2 : result == QUERN_ERROR_OUT_OF_MEMORY && count == 0);
    }
    quern::schedule schedule(world);
    static quern::query<const Position> *locked;
    static quern_result locked_result;
    locked = &query;
    EXPECT(schedule.add_once("loop", [](quern::context) {
        for (auto [entity, position] : locked->rows(locked_result))
            EXPECT((position.x == 1) != quern_entity_is_null(entity));
    }) == QUERN_OK);
    (void)schedule.run(nullptr, 1);
    EXPECT(locked_result == QUERN_ERROR_WORLD_LOCKED);
#ifdef QUERN_CPP_EXCEPTIONS
    EXPECT(result_of([&] {
               for (auto [entity, position] : query)
                   (void)(position.x < 0 || world.destroy(entity));
               return QUERN_OK;
           }) == QUERN_ERROR_STRUCTURE_CHANGED);
#endif
}

/* Loops, `each` and a list that the test keeps agree in worlds that change at random. */
void loops_agree_with_a_model()
{
    quern::app app;
    std::vector<std::pair<quern_entity, int>> model;
    quern::query<const Number> numbers(app);
    quern::query<const Number> unfrozen(app, quern::without<Frozen>{});
    uint32_t seed = 1;
    const auto draw = [&seed](uint32_t below) {
        seed = seed * 1664525u + 1013904223u;
        return (seed >> 8) % below;
    };
    for (int round = 0; round < 300; round++) {
        for (uint32_t i = draw(40); i > 0; i--) {
            const int value = static_cast<int>(draw(1000)) + (draw(2) == 0 ? 0 : 1000);
            const quern_entity entity = app.create(Number{value});
            if (draw(3) == 0) app.set(entity, Position{1});
            if (value >= 1000) app.set(entity, Frozen{});
            model.push_back({entity, value});
        }
        for (uint32_t i = draw(30); i > 0 && !model.empty(); i--) {
            const std::size_t index = draw(static_cast<uint32_t>(model.size()));
            app.destroy(model[index].first);
            model[index] = model.back();
            model.pop_back();
        }
        int64_t expected = 0, by_rows = 0, by_chunks = 0, expected_unfrozen = 0, by_unfrozen = 0;
        for (const auto &each : model) {
            expected += each.second;
            expected_unfrozen += each.second < 1000 ? each.second : 0;
        }
        uint32_t count = 0;
        for (auto [entity, number] : numbers) {
            by_rows += number.value;
            count += app.is_alive(entity);
        }
        for (auto [entities, column] : numbers.chunks())
            for (uint32_t i = 0; i < entities.size(); i++)
                by_chunks += column[i].value;
        for (auto [entity, number] : unfrozen)
            by_unfrozen += app.has<Frozen>(entity) ? 1000000 : number.value;
        EXPECT(count == model.size() && by_rows == expected && by_chunks == expected);
        EXPECT(by_unfrozen == expected_unfrozen);
    }
}

/* A serial system may read by a further query, by lookups, and in targets, what its own rows write. So may nested
 * loops. */
void loops_see_what_other_loops_write()
{
    const auto filled = [](quern::world &world, std::vector<quern_entity> &entities) {
        for (float x : {1.0f, 2.0f, 3.0f})
            entities.push_back(world.create(Position{x}));
    };
    const auto is_summed = [](quern::world &world) {
        std::vector<float> found;
        quern::must(
            quern::query<const Position>(world).each([&](const Position &at) { found.push_back(at.x); }));
        return found == std::vector<float>{7, 21, 62};
    };
    const quern::flags serial{QUERN_SYSTEM_SERIAL};
    {
        quern::app app;
        std::vector<quern_entity> entities;
        filled(app, entities);
        app.add(
            "sum",
            [](Position &at, quern::others<const Position> all) {
                all.each([&](const Position &other) { at.x += other.x; });
            },
            serial);
        app.run(1);
        EXPECT(is_summed(app));
    }
    {
        quern::app app;
        std::vector<quern_entity> entities;
        filled(app, entities);
        app.add(
            "sum",
            [](const Position &at, quern::others<Position> all) {
                all.each([&](Position &other) { other.x += at.x; });
            },
            serial);
        app.run(1);
        EXPECT(app.get<Position>(entities[0])->x == 19 && app.get<Position>(entities[1])->x == 21 &&
               app.get<Position>(entities[2])->x == 26);
    }
    {
        quern::app app;
        std::vector<quern_entity> entities;
        filled(app, entities);
        app.add(
            "sum",
            [&entities](Position &at, quern::context context) {
                const Position *others[3];
                for (int i = 0; i < 3; i++)
                    others[i] = context.lookup<Position>(entities[std::size_t(i)]);
                for (int i = 0; i < 3; i++)
                    at.x += others[i]->x;
            },
            serial, quern::lookup<Position>{});
        app.run(1);
        EXPECT(is_summed(app));
    }
    {
        quern::app app;
        const quern_relation follows = app.relation("follows");
        quern_entity last = app.create(Position{0});
        for (int i = 0; i < 100; i++) {
            const auto entity = app.create(Position{0}, Velocity{1});
            entity.relate(follows, last);
            last = entity;
        }
        app.add(
            "follow",
            [](Position &at, const Velocity &step, quern::up<Position> target) {
                at.x = target->x + step.x;
            },
            serial, quern::along{follows});
        app.run(1);
        EXPECT(app.get<Position>(last)->x == 100);
    }
    {
        quern::world world;
        std::vector<quern_entity> entities;
        filled(world, entities);
        quern::query<Position> query(world);
        quern::query<const Position> all(world);
        quern::must(query.each(
            [&](Position &at) { quern::must(all.each([&](const Position &other) { at.x += other.x; })); }));
        EXPECT(is_summed(world));
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && std::strcmp(argv[1], "fail") == 0) {
        end_on_abort();
        quern::world world;
        world.create(Position{1});
        quern::query<const Position> query(world);
        for (auto [entity, position] : query)
            (void)(position.x < 0 || world.destroy(entity));
        return EXIT_FAILURE;
    }
    rows_are_visited();
    tags_hooks_and_targets_are_elements();
    empty_queries_have_no_rows();
    change_filters_see_what_loops_write();
    failures_of_loops_are_reported();
    loops_agree_with_a_model();
    loops_see_what_other_loops_write();
    std::puts("all loops work");
}
