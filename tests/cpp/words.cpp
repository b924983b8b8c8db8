/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Words of <quern/quern.hpp> beside those of tests/quern_hpp.cpp, and the blocks of docs/cpp.md. */

#include <quern/quern.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace game {

struct Position {
    float x;
};
struct Velocity {
    float x;
};
struct Health {
    int points;
};
struct Poisoned {};
struct Burning {};
struct Hit {
    quern_entity victim;
    int damage;
};
struct Miss {
    int distance;
};
struct Sum {
    int points;
    uint32_t rows;
};
struct Total {
    int points = 0, runs = 0;
    uint32_t rows = 0;
    bool is_paused = false;
};
template <typename T> struct Stat {
    T value;
};

} // namespace game

template <> inline constexpr auto quern::name<game::Position> = "Position";
template <typename T> inline constexpr auto quern::name<game::Stat<T>> = "Stat"; // one T per world

using namespace game;

static void expect_at(bool is_right, const char *what, int line)
{
    if (is_right) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, what, quern_error_message());
    std::exit(EXIT_FAILURE);
}

#define EXPECT(...) expect_at((__VA_ARGS__), #__VA_ARGS__, __LINE__)

static void partial_results_are_parameters()
{
    quern::app app;
    app.resource<Total>();
    app.add(
        "sum",
        [](const Health &health, quern::reduce<Sum> sum) {
            sum->points += health.points;
            (*sum).rows++;
        },
        quern::at_end{[](quern::context context) {
            Total &total = context.resource<Total>();
            context.each_partial<Sum>([&](const Sum &sum) {
                total.points += sum.points;
                total.rows += sum.rows;
            });
        }},
        quern::at_begin{[](quern::context context) { context.resource<Total>() = {}; }},
        quern::writes_resource<Total>{});
    int next = 0;
    app.create_many(3000, [&](Health &health) { health.points = next++; });
    app.run(1, 2);
    EXPECT(app.resource<Total>()->points == 3000 * 2999 / 2 && app.resource<Total>()->rows == 3000);
}

static void conditions_are_options()
{
    quern::app app;
    app.resource<Total>();
    app.add_once(
        "count", [](quern::context context) { context.resource<Total>().runs++; },
        quern::run_if{[](quern::context context) { return !context.resource<Total>().is_paused; }},
        quern::writes_resource<Total>{});
    app.run(1, 2);
    app.resource<Total>()->is_paused = true;
    app.run(1, 2);
    EXPECT(app.resource<Total>()->runs == 2);
}

static void events_are_emitted_and_read()
{
    quern::app app;
    app.resource<Total>();
    app.add("burn", [](quern_entity entity, const Health &health, quern::emitter<Hit> hits) {
        hits.emit({entity, health.points});
    });
    app.add("burn whole", [](quern::column<const Health> health, quern::emitter<Hit> hits) {
        for (const Health &each : health)
            hits.emit({quern_entity_null(), each.points});
    });
    app.add_once(
        "hurt",
        [](quern::context context) {
            Total &total = context.resource<Total>();
            total.rows += static_cast<uint32_t>(context.event_count<Hit>() + context.event_count<Miss>());
            context.each_event<Hit>([&](const Hit &hit) { total.points += hit.damage; });
        },
        quern::reads_events<Miss, Hit>{}, quern::writes_resource<Total>{});
    app.create(Health{3});
    app.create(Health{4});
    app.run(1, 2);
    EXPECT(app.resource<Total>()->rows == 4 && app.resource<Total>()->points == 14);
}

static void terms_are_options()
{
    quern::world world;
    quern_component_def def{};
    def.name = "of C";
    def.size_bytes = sizeof(int);
    def.alignment_bytes = alignof(int);
    def.can_disable = true;
    quern_component of_c{}, disabled{};
    EXPECT(quern_component_register(world, &def, &of_c) == QUERN_OK);
    def.name = "game::Velocity";
    EXPECT(quern_component_register(world, &def, &disabled) == QUERN_OK);
    const quern_entity burning = world.create(Position{1}, Burning{}),
                       poisoned = world.create(Position{2}, Poisoned{});
    world.create(Position{4});
    const quern_entity slow = world.create(Position{8}, Velocity{1});
    world.create(Position{16}, Velocity{1});
    EXPECT(world.set_enabled<Velocity>(slow, false) == QUERN_OK && !world.is_enabled<Velocity>(slow));
    const int value = 5;
    EXPECT(quern_entity_set(world, burning, of_c, &value) == QUERN_OK);
    const auto sum_of = [&](auto... options) {
        float sum = 0;
        quern::query<const Position> query(world, options...);
        quern::must(query.each([&](const Position &position) { sum += position.x; }));
        return sum;
    };
    EXPECT(sum_of(quern::any<Burning, Poisoned>{}) == 3);
    EXPECT(sum_of(quern::disabled<Velocity>{}) == 8 && sum_of(quern::with<Velocity>{}) == 16);
    EXPECT(sum_of(quern::term{quern_term_without(of_c)}) == 30);
    EXPECT(sum_of(quern::term{quern_term_either(quern_term_with(disabled))}) == 24);
    quern::schedule schedule(world);
    static int seen;
    EXPECT(schedule.add(
               "look",
               [](const quern_view &view, quern::context context) {
                   const int *const values = static_cast<const int *>(quern_view_read(&view, 0));
                   for (uint32_t i = 0; i < view.count; i++)
                       seen += values[i];
                   (void)context;
               },
               quern::term{quern_term_read(of_c)}, quern::any<Burning, Poisoned>{},
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.add(
               "none", [](const Position &) { seen = -1; }, quern::disabled<Velocity>{},
               quern::any<Poisoned>{}, quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && seen == 5);
    EXPECT(world.is_alive(poisoned));
}

static void handles_and_relations_are_options()
{
    quern::world world;
    quern_resource_def resource_def{};
    resource_def.name = "of C";
    resource_def.size_bytes = sizeof(quern_entity);
    static quern_resource result;
    static quern_component health;
    static quern_relation likes;
    static quern_entity hero, friends[2];
    EXPECT(quern_resource_register(world, &resource_def, &result) == QUERN_OK);
    health = world.component<Health>();
    quern_relation_def def{};
    def.name = "likes";
    likes = world.relation(def);
    hero = world.create(Health{7});
    for (quern_entity &each : friends) {
        each = world.create(Health{1});
        EXPECT(world.relate(each, likes, hero) == QUERN_OK);
    }
    EXPECT(quern_entity_equal(world.target(friends[1], likes), hero) &&
           world.target_count(hero, likes) == 0);
    EXPECT(world.source_count(hero, likes) == 2);
    quern::schedule schedule(world);
    static uint32_t count;
    EXPECT(schedule.add_once(
               "look",
               [](quern::context context) {
                   count = context.source_count(hero, likes) * 10;
                   context.each_source(hero, likes, [](quern_entity) { count++; });
                   const void *const points = quern_context_lookup(context, hero, health);
                   count += points != nullptr ? 100 : 0;
                   count += context.is_enabled<Health>(hero) ? 1000 : 0;
                   count += context.has_target(friends[0], likes, hero) ? 10000 : 0;
                   count += context.has_target(hero, likes, friends[0]) ? 100000 : 0;
                   *static_cast<quern_entity *>(quern_context_resource_write(context, result)) =
                       context.target(friends[0], likes);
               },
               quern::reads_relation{likes}, quern::looks_up{health},
               quern::uses_resource{result, QUERN_ACCESS_WRITE}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && count == 11122);
    EXPECT(quern_entity_equal(*static_cast<quern_entity *>(quern_resource_get(world, result)), hero));
}

static void systems_are_switched()
{
    quern::world world;
    quern::schedule schedule(world);
    static int count;
    EXPECT(schedule.add_once("count", [](quern::context) { count++; }) == QUERN_OK &&
           schedule.compile() == QUERN_OK);
    const quern_system system = schedule.find("count");
    EXPECT(schedule.set_enabled(system, false) == QUERN_OK && !schedule.is_enabled(system));
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && count == 0);
    EXPECT(schedule.set_enabled(system, true) == QUERN_OK);
    EXPECT(schedule.set_fixed_step(0, 0.25, 8) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && count == 4);
    quern_relation_def def{};
    def.name = "owns";
    const quern_relation owns = world.relation(def);
    const quern_entity owner = world.create(), thing = world.create(Position{3});
    EXPECT(world.relate(thing, owns, owner) == QUERN_OK);
    quern::query<const Position> query(world, quern::target{owns, quern_entity_null()});
    EXPECT(query.count() == 0 && query.set_target(owner) == QUERN_OK && query.count() == 1);
    static float sum;
    EXPECT(schedule.add(
               "sum", [](const Position &position) { sum += position.x; },
               quern::target{owns, quern_entity_null()}, quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.set_target(schedule.find("sum"), owner) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0.25) == QUERN_OK && sum == 3);
}

static void systems_are_removed_and_replaced()
{
    quern::app app;
    static int sum;
    auto owned = std::make_shared<int>(1); /* counts the lambdas that are kept */
    app.add_once("a", [owned](quern::context) { sum += *owned; });
    app.add_once("b", [owned](quern::context) { sum += 10 * *owned; });
    EXPECT(owned.use_count() == 3);
    app.run(1);
    EXPECT(sum == 11);
    const quern_system a = app.schedule().find("a");
    app.add_once(
        "a", [owned](quern::context) { sum += 100 * *owned; }, quern::replaces);
    EXPECT(owned.use_count() == 3 && app.schedule().find("a").bits == a.bits);
    app.run(1);
    EXPECT(sum == 121);
    app.add_once(
        "a", [](quern::context) { sum += 1000; }, quern::replaces);
    EXPECT(owned.use_count() == 2);
    app.remove_system(app.schedule().find("b"));
    EXPECT(owned.use_count() == 1);
    app.run(1);
    EXPECT(sum == 1121);
    app.add_once(
        "c", [owned](quern::context) { sum += 10000 * *owned; }, quern::replaces, quern::phase{0});
    EXPECT(owned.use_count() == 2);
    EXPECT(app.schedule().set_phases({"early", "update"}) == QUERN_OK);
    app.run(1);
    EXPECT(sum == 12121);
    quern::world world;
    quern::schedule schedule(world);
#ifndef QUERN_CPP_EXCEPTIONS
    EXPECT(schedule.remove_system(a) == QUERN_ERROR_INVALID_ARGUMENT);
#endif
}

struct Volume {
    int32_t percent;
};
struct Title {
    int32_t number;
};

static void systems_run_if_resources_have_changed()
{
    quern::world world;
    quern::schedule schedule(world);
    static int runs;
    runs = 0;
    EXPECT(schedule.add_once(
               "both", [](quern::context) { runs++; }, quern::if_changed<Volume, Title>{}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1, 3) == QUERN_OK && runs == 1);
    world.resource<Title>()->number = 2;
    EXPECT(schedule.run(nullptr, 1, 3) == QUERN_OK && runs == 2);
    world.resource<Volume>()->percent = 50;
    EXPECT(schedule.run(nullptr, 1, 3) == QUERN_OK && runs == 3);
}

static void systems_are_in_sets_and_take_turns()
{
    quern::world world;
    quern::schedule schedule(world);
    static int sum;
    EXPECT(schedule.add_once(
               "a", [](quern::context) { sum += 1; }, quern::in_set{"ones"}, quern::in_set{"all"},
               quern::every{2}) == QUERN_OK);
    EXPECT(schedule.add_once(
               "b", [](quern::context) { sum += 10; }, quern::in_set{"all"}, quern::every{4, 2}) ==
           QUERN_OK);
    quern_set_def def{};
    def.name = "ones";
    EXPECT(schedule.add_set(def) == QUERN_OK);
    def.name = "all";
    EXPECT(schedule.add_set(def) == QUERN_OK && schedule.replace_set(def) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1, 4) == QUERN_OK && sum == 12);
    EXPECT(schedule.enable_set("ones", false) == QUERN_OK && !schedule.is_set_enabled("ones"));
    EXPECT(schedule.run(nullptr, 1, 4) == QUERN_OK && sum == 22);
    static int seen;
    EXPECT(schedule.add(
               "see", [](const Position &) { seen++; }, quern::after_commands_of{"spawn"},
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.add_once("spawn", [](quern::context context) {
        context.commands().create(Position{1});
    }) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && seen == 1);
    EXPECT(schedule.remove_set("all") == QUERN_OK);
    EXPECT(quern_schedule_compile(schedule) == QUERN_ERROR_UNKNOWN_SYSTEM);
}

static void entities_have_names_and_are_disabled()
{
    quern::app app;
    const quern_entity tower = app.create(Position{1}), gun = app.create(Position{2});
    app.set_name(tower, "tower");
    app.set_name(gun, "gun");
    app.relate(gun, app.parent(), tower);
    EXPECT(quern_entity_equal(app.find("tower/gun"), gun) &&
           quern_entity_equal(app.find(tower, "gun"), gun));
    EXPECT(std::strcmp(app.name(gun), "gun") == 0);
    app.set_enabled(gun, false);
    EXPECT(!app.is_enabled(gun) && app.is_enabled(tower));
    quern::commands commands = app.commands();
    commands.set_enabled(gun, true);
    commands.set_name(gun, "cannon");
    app.flush();
    EXPECT(app.is_enabled(gun) && quern_entity_is_null(app.find("tower/gun")) &&
           app.mark_changed<Position>(gun) == QUERN_OK);
    quern_component_def def{};
    def.name = "game::Health";
    def.size_bytes = sizeof(Health);
    def.alignment_bytes = alignof(Health);
    def.can_disable = true;
    quern_component health{};
    EXPECT(quern_component_register(app, &def, &health) == QUERN_OK);
    app.set(gun, Health{2});
    app.commands().set_enabled<Health>(gun, false);
    app.flush();
    EXPECT(!app.is_enabled<Health>(gun));
}

static void prefabs_and_worlds_are_copied()
{
    quern::app app, other;
    app.reserve({}); // results of an app need not be read
    app.trim();
    app.remove_empty_archetypes();
    app.validate();
    const quern_entity tower = app.create(Position{5});
    const quern_prefab prefab = app.prefab(tower);
    const quern_entity first = app.spawn(prefab);
    EXPECT(app.get<Position>(first)->x == 5);
    quern::commands commands = app.commands();
    EXPECT(!quern_entity_is_null(commands.spawn(prefab)));
    app.flush();
    EXPECT(quern::query<const Position>(app).count() == 3);
    quern_byte_buffer bytes{};
    other.component<Position>();
    app.save(quern_sink_bytes(&bytes));
    other.load(quern_source_bytes(bytes.bytes, bytes.size_bytes));
    EXPECT(quern::query<const Position>(other).count() == 3);
    quern_byte_buffer_release(&bytes);
    const uint64_t before = app.hash();
    app.get<Position>(first)->x = 6;
    EXPECT(app.hash() != before);
    static uint32_t kinds;
    app.add(
        "note", [](const Position &, quern::context context) { kinds |= context.reaction(); },
        quern::reacts_to{QUERN_REACT_ADDED}, quern::flags{QUERN_SYSTEM_SERIAL});
    app.create(Position{7});
    app.react();
    EXPECT(kinds == QUERN_REACT_ADDED);
}

static void parts_of_worlds_are_saved()
{
    quern::world world, other;
    quern::archive archive(world);
    const quern_entity root = world.create(Position{1}), leaf = world.create(Position{2});
    const quern_entity both[] = {root, leaf};
    world.create(Health{3});
    EXPECT(world.relate(leaf, world.parent(), root) == QUERN_OK);
    EXPECT(archive.append(leaf) == QUERN_OK && archive.count() == 1);
    archive.clear();
    EXPECT(archive.append(both, 2) == QUERN_OK && archive.count() == 2);
    archive.clear();
    EXPECT(archive.append_tree(root) == QUERN_OK && archive.count() == 2);
    quern::query<const Health> healthy(world);
    EXPECT(archive.append(healthy) == QUERN_OK && archive.count() == 3);
    quern_byte_buffer bytes{};
    EXPECT(archive.save(quern_sink_bytes(&bytes)) == QUERN_OK);
    other.component<Position>();
    other.component<Health>();
    EXPECT(other.load(quern_source_bytes(bytes.bytes, bytes.size_bytes)) == QUERN_OK);
    quern_byte_buffer_release(&bytes);
    quern::query<const Position> placed(other);
    uint64_t count = 0;
    EXPECT(placed.count() == 2 && quern::query<const Health>(other).count() == 1);
    EXPECT(placed.destroy_all(&count) == QUERN_OK && count == 2 && placed.count() == 0);
    quern_reserve_def reserve{};
    reserve.entity_count = 10;
    EXPECT(other.reserve(reserve) == QUERN_OK && other.trim() == QUERN_OK && other.validate() == QUERN_OK);
}

static void events_are_read_outside_of_systems()
{
    quern::world world;
    quern::event_reader<Hit> reader(world, "the screen");
    int damage = 0;
    const auto note = [&](const Hit &hit) { damage = damage * 10 + hit.damage; };
    EXPECT(world.emit(Hit{quern_entity_null(), 3}) == QUERN_OK);
    EXPECT(world.emit(Hit{quern_entity_null(), 4}) == QUERN_OK);
    reader.each(note);
    reader.each(note);
    EXPECT(damage == 34 && reader.lost_count() == 0);
}

static void loops_run_on_several_threads()
{
    quern::jobs jobs(2);
    static int squares[1000];
    EXPECT(jobs.thread_count() == 2);
    EXPECT(jobs.parallel_for(1000, 10, [](uint32_t begin, uint32_t end) {
        for (uint32_t i = begin; i < end; i++)
            squares[i] = static_cast<int>(i * i);
    }) == QUERN_OK);
    EXPECT(squares[31] == 961 && squares[999] == 998001);
    int factor = 2;
    const auto scale = [factor](uint32_t begin, uint32_t end, uint32_t worker_index) {
        for (uint32_t i = begin; i < end; i++)
            squares[i] *= worker_index < 64 ? factor : 0;
    };
    quern::must(jobs.parallel_for(1000, 10, scale));
    int sum = 0;
    EXPECT(jobs.run([&] {
        quern::must(jobs.parallel_for(1000, 10, scale));
        sum = squares[3] + squares[4];
    }) == QUERN_OK);
    EXPECT(sum == 100);
}

/* The blocks of docs/cpp.md that are no whole programs. */
static void systems_iterate_other_entities()
{
    quern::app app;
    app.resource<Total>();
    for (int i = 0; i < 10; i++)
        (void)app.create(Position{static_cast<float>(i)}, Health{0}, Burning{});
    for (int i = 0; i < 2000; i++) {
        const quern_entity far = app.create(Position{static_cast<float>(i)}, Health{1});
        if (i % 4 == 0) (void)app.add<Poisoned>(far);
    }
    /* a parallel system that writes its own rows and reads those of others */
    app.add(
        "near",
        [](const Position &at, Health &health,
           quern::others<const Position, const Health, quern::with<Poisoned>, quern::without<Burning>>
               others) {
            others.each([&](const Position &other, const Health &its) {
                if (other.x <= at.x) health.points += its.points;
            });
            int count = 0;
            others.each([&](const Position &) { count++; });
            EXPECT(count == 500);
        },
        quern::with<Burning>{});
    /* once per view, with an iteration that is left early */
    app.add(
        "first",
        [](quern::column<const Position> all, quern::others<const Health *, quern::with<Poisoned>> others) {
            quern_query_iterator it = others.iterate();
            EXPECT(all.size() > 0 && quern_query_next(&it) && it.view.count > 0);
        },
        quern::after{"near"});
    /* two queries and no rows of its own: called once; the one that writes makes it serial */
    app.add(
        "pairs",
        [](quern::others<const Position, quern::with<Burning>> ones, quern::others<Velocity> twos,
           quern::context context) {
            Total &total = context.resource<Total>();
            total.runs++;
            ones.each([&](const Position &, quern_entity entity) {
                EXPECT(!quern_entity_is_null(entity));
                total.rows++;
            });
            twos.each([](Velocity &velocity) { velocity.x++; });
        },
        quern::writes_resource<Total>{});
    const quern_entity fast = app.create(Velocity{1});
    app.run(1);
    EXPECT(app.get<Velocity>(fast)->x == 2);
    EXPECT(app.resource<Total>()->runs == 1 && app.resource<Total>()->rows == 10);
    int points = 0;
    quern::query<const Health, const Burning> burning(app);
    quern::must(burning.each([&](const Health &health, const Burning &) { points += health.points; }));
    EXPECT(points == 4 * 1 + 4 * 2 + 2 * 3);
}

static void blocks_of_the_page_run()
{
    quern::world world;
    quern::schedule schedule(world);
    quern::jobs jobs;
    quern::must(schedule.run(jobs, 1.0 / 60));
    quern_relation_def def{};
    def.name = "likes";
    def.on_target_destroyed = QUERN_TARGET_UNRELATES;
    def.many = true;
    const quern_relation likes = world.relation(def);
    const quern_entity bee = world.create(), plum = world.create();
    quern::must(world.relate(bee, likes, plum));
    world.each_target(bee, likes,
                      [&](quern_entity fruit) { quern::must(world.unrelate(bee, likes, fruit)); });
    EXPECT(world.target_count(bee, likes) == 0);
    quern::app app;
    const quern_entity last = app.create(Position{1}, Velocity{2});
    quern::query<Position, const Velocity> query(app);
    for (auto [entity, position, velocity] : query)
        position.x += velocity.x;
    for (auto [entities, positions, velocities] : query.chunks())
        for (uint32_t i = 0; i < entities.size(); i++)
            positions[i].x += velocities[i].x;
    EXPECT(app.get<Position>(last)->x == 5);
}

static void types_are_redefined()
{
    quern::world world;
    const quern_component_def def = [] {
        quern_component_def made{};
        made.name = "game::Health";
        made.size_bytes = sizeof(Health);
        made.alignment_bytes = alignof(Health);
        made.can_disable = true;
        return made;
    }();
    quern_component known, redefined;
    EXPECT(quern_component_register(world, &def, &known) == QUERN_OK);
    const quern_entity entity = world.create(Health{3});
    redefined = world.redefine_component<Health>();
    EXPECT(redefined.bits == known.bits); /* also the flags, which C has set, stay */
    EXPECT(world.get<Health>(entity)->points == 3);
    EXPECT(world.redefine_component<Position>().bits == world.component<Position>().bits);
    const quern_event hit = world.redefine_event<Hit>();
    EXPECT(hit.bits != 0 && world.redefine_event<Hit>().bits == hit.bits);
    Total *total = world.redefine_resource<Total>();
    EXPECT(total != nullptr);
    total->points = 8;
    quern_redefine_report report;
    EXPECT(world.redefine_resource<Total>(nullptr, &report)->points == 8 && !report.is_converted);
}

int main()
{
    types_are_redefined();
    partial_results_are_parameters();
    conditions_are_options();
    events_are_emitted_and_read();
    terms_are_options();
    handles_and_relations_are_options();
    systems_are_switched();
    systems_are_removed_and_replaced();
    systems_run_if_resources_have_changed();
    systems_are_in_sets_and_take_turns();
    entities_have_names_and_are_disabled();
    prefabs_and_worlds_are_copied();
    parts_of_worlds_are_saved();
    events_are_read_outside_of_systems();
    loops_run_on_several_threads();
    systems_iterate_other_entities();
    blocks_of_the_page_run();
    std::puts("all words work");
}
