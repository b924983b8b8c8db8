/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Objects for prefabs, getters, sessions, deltas and replays, and the words of worlds, commands and contexts for many. */

#include "expect.h"

#include <quern/getters.hpp>
#include <quern/prefabs.hpp>
#include <quern/saves.hpp>

#include <memory>
#include <string>
#include <vector>

namespace {

struct Position {
    float x;
};
struct Health {
    int points = 100;
};
struct Id {
    uint64_t value;
};
struct Gun {
    quern_entity base;
    int range;
};
struct Frozen {};
struct Title {
    std::string text;
};
struct Keys {
    int step;
};
struct Armor {
    float thickness;
};
struct Weather {
    float rain;
};
struct Total {
    int points = 0;
};

/* Two layouts of one struct. */
struct OldThing {
    int second;
};
struct NewThing {
    int first, second;
};

} // namespace

template <> inline constexpr auto quern::name<OldThing> = "Thing";
template <> inline constexpr auto quern::name<NewThing> = "Thing";
QUERN_DESCRIBE(OldThing, second);
QUERN_DESCRIBE(NewThing, first, second);
QUERN_DESCRIBE(Id, value);
QUERN_DESCRIBE(Gun, base, range);
QUERN_DESCRIBE(Keys, step);
QUERN_DESCRIBE(Health, points);
QUERN_DESCRIBE(Position, x);

namespace {

void relations_have_options()
{
    quern::app app;
    const quern_relation likes =
        app.relation("likes", quern::many, quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    const quern_relation owns = app.relation("owns", quern::ordered, quern::with_levels);
    EXPECT(app.find_relation("likes").bits == likes.bits && app.find_relation("hates").bits == 0);
    const auto bee = app.create(Position{1}), plum = app.create(Position{2}),
               pear = app.create(Position{3});
    const quern_entity bees[] = {bee, bee}, fruits[] = {plum, pear};
    app.relate_many(bees, likes, fruits, 2);
    bee.relate(owns, plum);
    EXPECT(bee.target_count(likes) == 2 && bee.target(owns) == plum);
    static quern_relation related;
    static quern_entity source, target;
    static std::vector<quern_entity> seen;
    static float sum;
    related = likes;
    source = bee;
    target = plum;
    app.add_once(
        "look",
        [](quern::context context) {
            EXPECT(context.target_count(source, related) == 2);
            context.each_target(source, related, [](quern_entity each) { seen.push_back(each); });
            context.each_source_of_many(target, related, [](quern_entity each) { seen.push_back(each); });
            const quern_entity both[] = {source, quern::null, target};
            context.lookup_each<Position>(both, 3, [](uint32_t i, const Position &position) {
                sum += static_cast<float>(i + 1) * position.x;
            });
        },
        quern::reads_relation{likes}, quern::lookup<Position>{}, quern::flags{QUERN_SYSTEM_SERIAL});
    app.run(1);
    EXPECT(seen.size() == 3 && seen[0] == plum && seen[1] == pear && seen[2] == bee && sum == 7);
    for (int i = 0; i < 100; i++)
        bee.relate(likes, app.create());
    seen.clear();
    quern::must(app.schedule().set_enabled(app.schedule().find("look"), false));
    app.add_once(
        "all",
        [](quern::context context) {
            context.each_target(source, related, [](quern_entity each) { seen.push_back(each); });
        },
        quern::reads_relation{likes}, quern::flags{QUERN_SYSTEM_SERIAL});
    app.run(1);
    EXPECT(seen.size() == 102);
    pear.destroy();
    EXPECT(bee.target_count(likes) == 101);
}

void prefabs_are_described()
{
    quern::app app;
    const auto arena = app.create();
    const quern_component muzzle = app.prefab_slot("muzzle");
    const quern_relation aims = app.relation("aims", quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    quern::blueprint tower(app);
    const auto root = tower.root().set(Position{1}).add<Health>().set(Title{"tower"}).add<Frozen>();
    const auto gun = root.child("gun").set(Gun{root.handle(), 10}).slot(muzzle).relate(aims, root.handle());
    EXPECT(gun.index() == 1 && tower.member_count() == 2);
    const quern_prefab prefab = tower.create();
    EXPECT(prefab.bits != 0 && app.member_count(prefab) == 2 && app.find_member(prefab, "gun") == 1);
    EXPECT(app.find_member(prefab, muzzle) == 1 && app.is_enabled(prefab));
    const auto first = app.spawn(prefab, quern::instances(app).under(arena));
    EXPECT(first.get<Position>().x == 1 && first.get<Health>().points == 100 && first.has<Frozen>());
    EXPECT(first.get<Title>().text == "tower" && first.parent() == arena);
    const auto part = first.part(muzzle);
    EXPECT(part == first.find("gun") && part.get<Gun>().base == first && part.target(aims) == first);
    const Position places[] = {{10}, {20}, {30}};
    int next = 0;
    quern_entity roots[3], members[6];
    app.spawn_many(prefab, 3,
                   quern::instances(app).override(places).fill([&](Gun &each) { each.range = ++next; }, 1),
                   roots, members);
    EXPECT(app.entity(roots[2]).get<Position>().x == 30 && members[4] == roots[2] && next == 3);
    EXPECT(app.entity(members[5]).get<Gun>().range == 3 &&
           app.entity(members[5]).get<Gun>().base == roots[2]);
    static quern_prefab spawned;
    spawned = prefab;
    app.add_once("spawn", [](quern::context context) {
        quern::commands commands = context.commands();
        const quern_entity instance = commands.spawn(spawned).set_name("fourth");
        commands.spawned_member(spawned, instance, 1).set(Health{7});
    });
    app.run(1);
    EXPECT(app.find("fourth/gun").get<Health>().points == 7);
    const quern_prefab again = tower.create();
    app.destroy_prefab(prefab);
    EXPECT(again.bits != prefab.bits && app.spawn(again).get<Health>().points == 100);
    quern::blueprint deep(app);
    deep.root().child("gun").child("sight").set(Health{3});
    EXPECT(app.spawn(deep.create()).find("gun/sight").get<Health>().points == 3);
    /* A mistake in a description is that of the call. */
    quern::world world;
    quern::blueprint wrong(world);
    wrong.root().child("a");
    wrong.root().child("a");
    EXPECT(result_of([&] {
               return wrong.create().bits != 0 ? QUERN_OK : QUERN_ERROR_SIBLING_NAME_TAKEN;
           }) == QUERN_ERROR_SIBLING_NAME_TAKEN);
}

void queries_change_what_they_match()
{
    quern::app app;
    for (int i = 0; i < 10; i++)
        app.create(Position{float(i)});
    quern::query<const Position> query(app);
    uint64_t count = 0;
    quern::must(query.add_to_all(Health{5}, &count));
    EXPECT(count == 10 && quern::query<const Health>(app).count() == 10 && query.view_count() == 1);
    quern::must(query.remove_from_all<Health>(&count));
    quern::must(query.add_to_all<Health>());
    quern::must(query.add_to_all<Frozen>());
    for (auto [entity, health] : quern::query<const Health>(app, quern::with<Frozen>{}))
        count += app.is_alive(entity) && health.points == 100;
    EXPECT(count == 20);
    std::vector<quern_entity> all;
    for (auto [entity, position] : query)
        if (position.x < 5) all.push_back(entity);
    app.destroy_many(all.data(), static_cast<uint32_t>(all.size()));
    EXPECT(query.count() == 5);
}

void getters_find_values()
{
    quern::app app;
    std::vector<quern_entity> entities;
    for (int i = 0; i < 1000; i++) {
        const auto entity = app.create(Position{float(i)});
        if (i % 2 == 0) entity.set(Health{i});
        entities.push_back(entity);
    }
    quern::getter<Health> healths(app, quern::with_refs);
    quern::getter<Position> positions(app);
    EXPECT(healths.get(entities[4])->points == 4 && healths.get(entities[5]) == nullptr);
    positions.get_write(entities[5])->x = 50;
    quern::ref<Health> ref(entities[6]);
    healths.get_write(ref)->points = 60;
    app.entity(entities[6]).set(Frozen{});
    EXPECT(healths.get(ref)->points == 60 && ref.handle() == entities[6]);
    uint32_t count = 0;
    healths.each_write(entities.data(), 1000, [&](uint32_t i, Health &health) {
        EXPECT(i % 2 == 0);
        health.points = 3 * static_cast<int>(i);
    });
    healths.each(entities.data(), 1000, [&](uint32_t i, const Health &health) {
        EXPECT(i == 2 * count && health.points == 3 * static_cast<int>(i));
        count++;
    });
    EXPECT(count == 500 && app.get<Position>(entities[5])->x == 50);
}

void commands_are_for_many()
{
    quern::app app;
    app.component<Position>();
    app.component<Health>();
    app.component<Frozen>();
    const auto boss = app.create(Health{10});
    static quern_entity hit;
    static quern_combine most;
    hit = boss;
    most = app.combine<Health>("most", [](Health &value, const Health &other) {
        if (other.points > value.points) value.points = other.points;
    });
    app.add_once("create", [](quern::context context) {
        quern::commands commands = context.commands();
        const Position positions[] = {{1}, {2}, {3}};
        const Frozen *const tags = nullptr;
        quern_entity created[3];
        commands.create_many(3, created, positions, tags);
        commands.entity(created[1]).set(Health{2});
        commands.accumulate(hit, Health{5});
        commands.accumulate(hit, Health{-1});
        commands.accumulate(hit, Health{40}, most);
    });
    app.run(1);
    EXPECT(quern::query<const Position>(app, quern::with<Frozen>{}).count() == 3);
    EXPECT(boss.get<Health>().points == 40);
    most = app.redefine_combine<Health>("most", [](Health &value, const Health &) { value.points = -5; });
    app.remove_system(app.schedule().find("create"));
    app.add(
        "each",
        [](const quern_view &view, quern::commands commands) {
            std::vector<Health> values(view.count);
            for (uint32_t i = 0; i < view.count; i++)
                values[i].points = static_cast<int>(i) + 1;
            commands.set_each(view, values.data());
            commands.accumulate(hit, Health{1}, most);
        },
        quern::with<Position>{});
    app.run(1);
    int sum = 0;
    for (auto [entity, position, health] : quern::query<const Position, const Health>(app)) {
        sum += health.points;
        EXPECT(position.x > 0 && app.is_alive(entity));
    }
    EXPECT(sum == 1 + 2 + 1 || sum == 1 + 1 + 2);
    EXPECT(boss.get<Health>().points == -5);
    app.commands().entity(boss).set(Health{1});
    app.discard_commands();
    app.flush();
    EXPECT(boss.get<Health>().points == -5 && app.flush_stats().command_count == 0);
}

void schedules_and_worlds_have_words()
{
    quern::app app;
    app.add_once("a", [](quern::context) {});
    app.add_once("b", [](quern::context) {});
    quern::schedule &schedule = app.schedule();
    const quern_system a = schedule.find("a"), b = schedule.find("b");
    EXPECT(schedule.previous_system(b).bits == a.bits && schedule.previous_system(a).bits == 0);
    quern::must(schedule.move_system(a, b));
    EXPECT(schedule.previous_system(a).bits == b.bits);
    app.run(1);
    EXPECT(schedule.dropped_command_count() == 0 && schedule.kept_command_count() == 0);
    quern::must(schedule.discard_commands());
    app.create(Id{1}, Position{1});
    const auto other = app.create(Id{2}, Health{1});
    const uint64_t before = app.hash_by<Id>();
    other.get<Health>().points = 2;
    EXPECT(app.hash_by<Id>() != before && app.restore_count() == app.restore_count());
    other.destroy();
    uint32_t count = 0;
    EXPECT(app.remove_empty_archetypes(&count) == QUERN_OK && count >= 1);
}

void bytes_sessions_and_deltas_lead_to_other_worlds()
{
    quern::app app;
    quern::world other;
    other.component<Position>();
    other.component<Health>();
    const auto first = app.create(Position{1}), second = app.create(Position{2}, Health{3});
    {
        quern::byte_buffer bytes;
        app.save(bytes.sink());
        EXPECT(bytes.size() > 0 && bytes.data() != nullptr);
        quern::must(other.load(bytes.source()));
        quern::app bare;
        uint32_t count = 0;
        EXPECT(bare.register_archived(bytes.source(), &count) == QUERN_OK && count == 2);
        quern::must(bare.load(bytes.source()));
        EXPECT(bare.hash() == app.hash());
        bytes.clear();
        EXPECT(bytes.size() == 0);
    }
    quern::history history(app);
    quern::must(history.save(1));
    second.set(Health{4});
    app.create(Position{5});
    quern::must(history.save(2));
    uint64_t oldest = 0, newest = 0;
    EXPECT(history.frames(oldest, newest) && oldest == 1 && newest == 2);
    EXPECT((history.list_frames() == std::vector<uint64_t>{1, 2}) && history.stats().frame_count == 2);
    {
        quern::delta delta(history, 1, 2);
        uint32_t created = 0, changed = 0;
        for (const quern_delta_batch &batch : delta) {
            created += batch.kind == QUERN_DELTA_CREATED ? batch.count : 0;
            changed += batch.kind == QUERN_DELTA_CHANGED ? batch.count : 0;
        }
        EXPECT(created == 1 && changed == 1 && delta.size() >= 2 && delta.stats().compared_bytes > 0);
        quern::byte_buffer bytes;
        quern::must(delta.write(bytes.sink()));
        quern::delta_applier applier(other);
        quern::must(applier.apply(bytes.source()));
        const quern_entity there = applier.find(second.key());
        EXPECT(other.get<Health>(there)->points == 4);
        quern::must(applier.map(first.key(), there));
        EXPECT(applier.find(first.key()) == there);
        quern_delta_def def{};
        def.components[0] = app.component<Health>();
        EXPECT(quern::delta(history, 1, 2, def).size() >= 1);
    }
    EXPECT(quern::query<const Position>(other).count() == 3);
    quern::world third;
    third.component<Position>();
    third.component<Health>();
    quern::save_session writer(app);
    quern::load_session reader(third);
    for (int i = 0; i < 3; i++) {
        quern::byte_buffer bytes;
        quern::archive archive(app);
        quern::must(archive.append(second));
        quern::must(writer.write(archive, bytes.sink()));
        quern_entity loaded[1];
        if (i == 0)
            quern::must(reader.read(bytes.source()));
        else
            quern::must(reader.read(bytes.source(), loaded, 1));
        if (i > 0) EXPECT(third.get<Health>(loaded[0])->points == 4);
        EXPECT(result_of([&] { return reader.read(bytes.source()); }) == QUERN_ERROR_BAD_ARCHIVE);
    }
    EXPECT(quern::query<const Health>(third).count() == 3);
}

void make_replayed(quern::app &app)
{
    app.resource<Keys>()->step = 1;
    app.add(
        "move",
        [](Position &position, quern::context context) {
            position.x += static_cast<float>(context.resource<const Keys>().step);
        },
        quern::reads_resource<Keys>{});
    for (int i = 0; i < 10; i++)
        app.create(Position{float(i)});
}

void recordings_are_replayed(uint32_t thread_count)
{
    quern::byte_buffer bytes;
    uint64_t hash;
    {
        quern::app app;
        make_replayed(app);
        quern::replay_recorder recorder(app.schedule(), bytes.sink(), quern::replay_inputs<Keys>(app));
        EXPECT(recorder != nullptr);
        quern::world other;
        const auto def = quern::replay_inputs<Keys, Position>(other, QUERN_REPLAY_WHOLE);
        EXPECT(def.inputs[0].bits != 0 && def.inputs[1].bits != 0 &&
               def.inputs[1].bits != def.inputs[0].bits);
        EXPECT(def.detail == QUERN_REPLAY_WHOLE);
        for (int i = 0; i < 5; i++) {
            app.resource<Keys>()->step = i;
            quern::must(recorder.run(app.jobs(), 1));
        }
        quern::must(recorder.run(app.jobs(), 1, 2));
        quern::must(recorder.finish());
        hash = app.hash();
    }
    quern_jobs_def def{};
    def.thread_count = thread_count;
    quern::app app({}, {}, def);
    make_replayed(app);
    quern_replay_report report{};
    uint64_t before = 0, after = 0;
    quern::must(quern::replay(
        app.schedule(), app.jobs(), bytes.source(), &report, [&](uint64_t) { before++; },
        [&](uint64_t frame) {
            after += frame;
            return true;
        }));
    EXPECT(report.frame_count == 7 && before >= 7 && after == 21 && app.hash() == hash);
    quern::app other({}, {}, def);
    make_replayed(other);
    other.create(Position{99});
    EXPECT(result_of([&] {
               quern::app returns(quern::returns_failures);
               make_replayed(returns);
               returns.create(Position{99});
               return quern::replay(returns.schedule(), nullptr, bytes.source());
           }) == QUERN_ERROR_DIVERGED);
}

void failed_allocations_are_reported()
{
    bool is_done = false;
    for (uint64_t left = 0; !is_done; left++) {
        quern::world world(failing_allocator::world());
        world.component<Health>();
        const quern_entity entity = world.create(Health{1});
        failing_allocator::left = left;
        const quern_result result = result_of([&] {
            quern::blueprint tower(world);
            tower.root().set(Health{2}).child("gun").set(Health{3});
            const quern_prefab prefab = tower.create();
            if (prefab.bits == 0) return QUERN_ERROR_OUT_OF_MEMORY;
            quern::getter<Health> getter(world);
#ifdef QUERN_CPP_EXCEPTIONS
            EXPECT(getter != nullptr); /* the constructor has thrown otherwise */
#endif
            if (getter == nullptr) return QUERN_ERROR_OUT_OF_MEMORY;
            return getter.get(entity)->points == 1 ? QUERN_OK : QUERN_ERROR_LIMIT;
        });
        failing_allocator::left = UINT64_MAX;
        EXPECT(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        EXPECT(world.validate() == QUERN_OK && quern::query<const Health>(world).count() == 1);
        is_done = result == QUERN_OK;
    }
}

/* What override, fill, disable or replay_inputs could not do, the call that gets the object returns. */
void failures_of_descriptions_are_returned()
{
    quern::world world;
    quern_component_def armor_def{};
    armor_def.name = "Armor";
    armor_def.size_bytes = 12;
    armor_def.alignment_bytes = 4;
    quern_component armor;
    EXPECT(quern_component_register(world, &armor_def, &armor) == QUERN_OK);
    quern_resource_def weather_def{};
    weather_def.name = "Weather";
    weather_def.size_bytes = 12;
    weather_def.alignment_bytes = 4;
    quern_resource weather;
    EXPECT(quern_resource_register(world, &weather_def, &weather) == QUERN_OK);

    quern::blueprint tower(world);
    tower.root().set(Health{1}).child("gun").set(Health{2});
    const quern_prefab prefab = tower.create();
    const Armor armors[] = {{1}};
    const Health healths[] = {{1}};
    const auto spawned = [&](quern::instances &how) {
        const quern_result result = result_of([&] { return world.spawn_many(prefab, 1, how); });
        const quern_result one =
            result_of([&] { return world.spawn(prefab, how) ? QUERN_OK : how.result(); });
        EXPECT(result == one && result == how.result());
        return result;
    };
    quern::instances wrong(world), double_filled(world), full(world), right(world);
    const auto fill = [](Health &health) { health.points = 3; };
    const auto fill_gun = [](Health &health) { health.points = 4; };
    (void)result_of([&] { return wrong.override(armors).result(); });
    (void)result_of([&] { return double_filled.fill(fill).fill(fill_gun, 1).result(); });
    for (int i = 0; i <= QUERN_MAX_SPAWN_OVERRIDES; i++)
        (void)result_of([&] { return full.override(healths).result(); });
    EXPECT(spawned(wrong) == QUERN_ERROR_LAYOUT_MISMATCH && spawned(double_filled) == QUERN_ERROR_LIMIT);
    EXPECT(spawned(full) == QUERN_ERROR_LIMIT && quern::query<const Health>(world).count() == 0);
    EXPECT(spawned(right.fill(fill)) == QUERN_OK && quern::query<const Health>(world).count() == 4);

    for (const bool is_set_before : {false, true}) {
        quern::blueprint gate(world);
        if (is_set_before) gate.root().set(Health{1});
        gate.root().disable<Health>().set(Health{2});
        const quern_result result =
            result_of([&] { return gate.create().bits != 0 ? QUERN_OK : QUERN_ERROR_COMPONENT_ABSENT; });
        EXPECT(is_set_before || result == QUERN_ERROR_COMPONENT_ABSENT);
    }
    quern::schedule schedule(world);
    quern::byte_buffer bytes;
    const quern_result recorded = result_of([&] {
        quern::replay_recorder recorder(schedule, bytes.sink(), quern::replay_inputs<Weather>(world));
        return recorder == nullptr ? QUERN_ERROR_LAYOUT_MISMATCH : QUERN_OK;
    });
    EXPECT(recorded == QUERN_ERROR_LAYOUT_MISMATCH);
}

/* A name that the world does not know leads to a null handle. An option with it must not count as none. */
void null_options_are_refused()
{
    quern::world world;
    quern::schedule schedule(world);
    const auto refuses = [&](const auto &option) {
        const auto add = [&] {
            return schedule.add(
                "move", [](Position &) {}, option);
        };
        return result_of(add) == QUERN_ERROR_INVALID_ARGUMENT &&
               std::strstr(quern_error_message(), "is null") != nullptr;
    };
    const quern_relation relation = world.find_relation("no relation");
    EXPECT(refuses(quern::levels{relation}) && refuses(quern::reads_relation{relation}));
    EXPECT(refuses(quern::looks_up{quern_component_find(world, "nothing")}));
    EXPECT(refuses(quern::emits_event{quern_event_find(world, "nothing")}));
    EXPECT(refuses(quern::asks{nullptr}) && refuses(quern::term{quern_term{}}));
}

#ifdef QUERN_CPP_EXCEPTIONS
/* An exception must not go through Quern: the program ends. */
int throw_in_a_replay()
{
    end_on_abort();
    quern::world world;
    quern::schedule schedule(world);
    quern::byte_buffer bytes;
    quern::replay_recorder recorder(schedule, bytes.sink());
    recorder.run(nullptr, 1);
    recorder.finish();
    try {
        quern::replay(
            schedule, nullptr, bytes.source(), nullptr, [](uint64_t) { throw 1; },
            [](uint64_t) { return true; });
    } catch (int) {
    }
    return EXIT_FAILURE;
}
#endif

enum class Side : int8_t { left = -1, right = 1 };
struct Sprite {
    float depth;
    Side side;
    quern_entity owner;
    int32_t depth_rank;
};

void entities_are_sorted_and_found()
{
    quern::app app;
    quern_entity made[6] = {};
    const float depths[6] = {3, 1, 2, 0, 5, 4};
    for (int i = 0; i < 6; i++)
        made[i] =
            app.create(Sprite{depths[i], i % 2 == 0 ? Side::left : Side::right, made[0], i}, Position{0})
                .handle();
    quern::query<const Sprite> ascending(app, quern::order_by<&Sprite::depth>{});
    quern::query<const Sprite, const Position> descending(
        app, quern::order_by<&Sprite::depth, quern::direction::descending>{});
    float next = 0;
    EXPECT(ascending.each([&](const Sprite &sprite) { EXPECT(sprite.depth == next++); }) == QUERN_OK);
    EXPECT(ascending.order_stats().row_count == 6 && ascending.order_stats().sort_count == 1);
    for (auto [entity, sprite, position] : descending)
        EXPECT(sprite.depth == --next);
    quern::index<&Sprite::side> sides(app);
    quern::index<&Sprite::owner> owners(app, false, "owners");
    const quern::found_entities left = sides.find(Side::left);
    EXPECT(left.size() == 3 && !left.empty() && quern_entity_equal(left[1], made[2]));
    EXPECT(sides.stats().value_count == 2 && sides.stats().double_count == 2);
    quern::index<&Sprite::depth_rank> ranks(app, true);
    EXPECT(ranks.check_unique() == QUERN_OK && ranks.find(3).size() == 1);
    uint32_t count = 0;
    for (const quern_entity entity : owners.find(made[0]))
        count += quern_entity_equal(entity, made[1 + count]);
    EXPECT(count == 5);
    /* in systems */
    std::vector<float> seen;
    uint32_t found = 0;
    app.add(
        "draw",
        [&](quern::others<const Sprite, quern::with<Position>, quern::order_by<&Sprite::depth>> sprites) {
            sprites.each([&](const Sprite &sprite) { seen.push_back(sprite.depth); });
        });
    std::vector<float> painted; /* by one job: all rows are in one piece */
    app.add(
        "paint", [&](const Sprite &sprite) { painted.push_back(sprite.depth); },
        quern::order_by<&Sprite::depth, quern::direction::descending>{});
    app.add(
        "find",
        [&](const Position &, quern::context context) { found = context.find(sides, Side::right).size(); },
        quern::asks{sides});
    EXPECT(app.run(0) == QUERN_OK);
    EXPECT(found == 3 && seen.size() == 6 && seen[0] == 0 && seen[5] == 5);
    EXPECT(app.set(made[1], Sprite{9, Side::left, made[0], 9}) == QUERN_OK);
    seen.clear();
    EXPECT(app.run(0) == QUERN_OK);
    EXPECT(found == 2 && seen.size() == 6 && seen[5] == 9);
    EXPECT(painted.size() == 12 && painted[0] == 5 && painted[5] == 0 && painted[6] == 9);
}

/* Code with the layout of a struct from before a redefinition would read and write beyond its values. */
void old_layouts_are_refused()
{
    quern::world world;
    quern_redefine_report report;
    const auto thing = world.create(OldThing{7});
    EXPECT(world.redefine_component<NewThing>(nullptr, &report).bits != 0 && report.is_converted);
    EXPECT(world.get<NewThing>(thing)->second == 7);
    EXPECT(result_of([&] { return world.set(thing, OldThing{8}); }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(std::strstr(quern_error_message(), "'Thing'") != nullptr);
    EXPECT(world.get<NewThing>(thing)->second == 7);
    quern::blueprint outdated(world);
    EXPECT(result_of([&] {
               outdated.root().set(OldThing{8});
               return outdated.create().bits != 0 ? QUERN_OK : QUERN_ERROR_LAYOUT_MISMATCH;
           }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(std::strstr(quern_error_message(), "'Thing'") != nullptr);
    EXPECT(world.redefine_component<OldThing>().bits != 0);
    EXPECT(world.get<OldThing>(thing)->second == 7);
    EXPECT(result_of([&] { return world.set(thing, NewThing{1, 8}); }) == QUERN_ERROR_LAYOUT_MISMATCH);
}

} // namespace

int main(int argc, [[maybe_unused]] char **argv)
{
#ifdef QUERN_CPP_EXCEPTIONS
    if (argc > 1 && std::strcmp(argv[1], "throw") == 0) return throw_in_a_replay();
#endif
    if (argc > 1) return EXIT_FAILURE;
    relations_have_options();
    prefabs_are_described();
    queries_change_what_they_match();
    getters_find_values();
    commands_are_for_many();
    schedules_and_worlds_have_words();
    bytes_sessions_and_deltas_lead_to_other_worlds();
    for (uint32_t thread_count : {1u, 2u, 3u, 8u})
        recordings_are_replayed(thread_count);
    failures_of_descriptions_are_returned();
    null_options_are_refused();
    entities_are_sorted_and_found();
    failed_allocations_are_reported();
    old_layouts_are_refused();
    std::puts("all objects work");
}
