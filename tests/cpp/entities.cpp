/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Entities as objects: quern::entity_ref, quern::app_entity_ref and quern::entity_commands. */

#include "expect.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
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
struct Owner {
    std::unique_ptr<int> value;
};
struct Token {
    int number;
    explicit Token(int given) : number(given) {}
};

static_assert(std::is_trivially_copyable<quern::entity_ref>::value);
static_assert(std::is_trivially_copyable<quern::app_entity_ref>::value);
static_assert(std::is_convertible<quern::app_entity_ref, quern::entity_ref>::value);
static_assert(!std::is_convertible<quern::entity_ref, quern::app_entity_ref>::value);

quern_relation many(quern::world &world, const char *name)
{
    quern_relation_def def{};
    def.name = name;
    def.on_target_destroyed = QUERN_TARGET_UNRELATES;
    def.many = true;
    return world.relation(def);
}

void components_are_set_and_read()
{
    quern::app app;
    const auto entity = app.create(Position{1}, Velocity{2});
    static_assert(std::is_same<decltype(entity), const quern::app_entity_ref>::value);
    EXPECT(entity && entity.is_alive() && entity.get<Position>().x == 1);
    EXPECT(entity.has<Position>() && entity.has<Position, Velocity>() && !entity.has<Position, Number>());
    EXPECT(entity.try_get<Number>() == nullptr && entity.get<const Velocity>().x == 2);
    entity.set(Number{3});
    entity.set<Position>({4});
    entity.add<Title>();
    entity.add<Frozen>();
    EXPECT(entity.get<Number>().value == 3 && entity.get<Position>().x == 4);
    EXPECT(entity.get<Title>().text == "none" && entity.has<Frozen>());
    entity.set(Owner{std::make_unique<int>(5)});
    entity.set(Token(6));
    EXPECT(*entity.get<Owner>().value == 5 && entity.get<Token>().number == 6);
    Owner owner{std::make_unique<int>(7)};
    entity.set(std::move(owner));
    EXPECT(*entity.get<Owner>().value == 7 && owner.value == nullptr);
    const Title title{"constant"};
    entity.set(title);
    EXPECT(entity.get<Title>().text == "constant" && title.text == "constant");
    entity.remove<Frozen>();
    EXPECT(!entity.has<Frozen>());
    entity.set_enabled(false);
    EXPECT(!entity.is_enabled() && entity.is_alive());
    entity.set_enabled(true);
    EXPECT(entity.is_enabled() && entity.is_enabled<Number>());
    entity.mark_changed<Number>();
    EXPECT(entity.use_count() == 1 && entity.seed() != 0 && entity.key() != 0);
    entity.destroy();
    EXPECT(!entity && !entity.is_alive() && !app.entity(quern::null) && !quern::entity_ref());
}

void results_of_worlds_are_read()
{
    quern::world world;
    const quern::entity_ref entity = world.create(Position{1});
    EXPECT(entity.set(Number{2}) == QUERN_OK && entity.add<Frozen>() == QUERN_OK);
    const quern_result result = entity.remove<Frozen>();
    EXPECT(result == QUERN_OK && entity.destroy() == QUERN_OK);
    quern::must(world.create().set(Position{3}));
    EXPECT(result_of([&] { return entity.set(Number{2}); }) == QUERN_ERROR_STALE_ENTITY);
    EXPECT(result_of([&] { return world.entity(quern::null).add<Frozen>(); }) == QUERN_ERROR_NULL_ENTITY);
    quern::app app(quern::returns_failures);
    const auto other = app.create();
    other.destroy();
    EXPECT(result_of([&] { return other.set(Number{2}); }) == QUERN_ERROR_STALE_ENTITY);
}

void entities_have_names_and_parents()
{
    quern::app app;
    const auto fleet = app.create(), ship = app.create(), gun = app.create(), shield = app.create();
    fleet.set_name("fleet");
    ship.set_name("ship");
    gun.set_name("gun");
    ship.set_parent(fleet);
    gun.set_parent(ship);
    shield.set_parent(ship);
    EXPECT(app.find("fleet/ship/gun") == gun && fleet.find("ship/gun") == gun && ship.find("gun") == gun);
    EXPECT(!app.find("fleet/boat") && std::strcmp(gun.name(), "gun") == 0 && shield.name() == nullptr);
    EXPECT(gun.parent() == ship && !fleet.parent() && ship.parent() == fleet.handle());
    std::vector<quern_entity> children;
    for (auto child : ship.children()) {
        static_assert(std::is_same<decltype(child), quern::app_entity_ref>::value);
        children.push_back(child);
    }
    EXPECT(children.size() == 2 && children[0] == gun && children[1] == shield);
    EXPECT(gun.next_sibling(app.parent()) == shield && shield.previous_sibling(app.parent()) == gun);
    EXPECT(shield.sibling_index(app.parent()) == 1);
    shield.move_before(app.parent(), gun);
    EXPECT(shield.sibling_index(app.parent()) == 0 && !shield.previous_sibling(app.parent()));
    char text[64] = "";
    quern_text_buffer path{text, sizeof text, 0};
    gun.path(quern_sink_text(&path));
    EXPECT(std::strcmp(text, "fleet/ship/gun") == 0);
    shield.set_parent(quern::null);
    shield.set_parent(quern::null);
    EXPECT(!shield.parent() && ship.source_count(app.parent()) == 1);
}

void entities_have_targets()
{
    quern::world world;
    const quern_relation likes = many(world, "likes");
    const auto bee = world.create(), plum = world.create(), pear = world.create();
    EXPECT(bee.relate(likes, plum) == QUERN_OK && bee.relate(likes, pear) == QUERN_OK);
    EXPECT(bee.has_target(likes, pear) && bee.target_count(likes) == 2 && plum.source_count(likes) == 1);
    EXPECT(bee.target(likes) == plum && world.target(bee, likes) == plum);
    uint32_t count = 0;
    for (auto fruit : bee.targets(likes)) {
        for (auto insect : fruit.sources(likes))
            count += insect == bee;
        EXPECT(bee.unrelate(likes, fruit) == QUERN_OK);
    }
    EXPECT(count == 2 && bee.target_count(likes) == 0);
    EXPECT(bee.relate(likes, plum) == QUERN_OK && bee.unrelate(likes) == QUERN_OK);
    for (auto fruit : bee.targets(likes))
        EXPECT(fruit == quern::null);
}

void edges_have_values()
{
    quern::app app;
    const quern_component title = app.component<Title>();
    const quern_relation calls = app.relation("calls", quern::edges_hold{title});
    static quern_relation called;
    static quern_entity bee_handle;
    called = calls;
    const auto bee = app.create(), queen = app.create(), drone = app.create();
    bee_handle = bee;
    bee.relate(calls, queen, Title{"majesty"});
    EXPECT(bee.edge_value<Title>(calls, queen)->text == "majesty" && bee.get<Title>().text == "majesty");
    EXPECT(bee.edge_value<Title>(calls, drone) == nullptr &&
           app.edge_value<Title>(bee, calls, queen) != nullptr);
    bee.set_edge_value(calls, queen, Title{"highness"});
    app.add("praise", [](Title &each) { each.text += "!"; });
    app.add_once(
        "name",
        [](quern::context context) {
            EXPECT(context.edge_value<Title>(bee_handle, called, context.target(bee_handle, called)) !=
                   nullptr);
            const quern_entity target = context.target(bee_handle, called);
            (void)context.commands().set_edge_value(bee_handle, called, target, Title{"ma'am"});
            context.commands().create().relate(called, target, Title{"sire"}).set_name("page");
        },
        quern::reads_relation{calls}, quern::lookup<Title>{});
    app.run(1);
    EXPECT(bee.get<Title>().text == "ma'am" &&
           app.find("page").edge_value<Title>(calls, queen)->text == "sire");
    bee.relate(calls, drone);
    EXPECT(bee.get<Title>().text == "none");
    EXPECT(app.relate(bee, calls, queen, Title{"queen"}) == QUERN_OK &&
           app.set_edge_value(bee, calls, queen, Title{"my queen"}) == QUERN_OK);
    bee.unrelate(calls);
    EXPECT(!bee.has<Title>());
}

/* A value of another size would be read beyond its end. */
void edges_refuse_values_of_other_types()
{
    quern::world world;
    quern::schedule schedule(world);
    const quern_relation calls = world.relation("calls", quern::edges_hold{world.component<Title>()});
    const auto bee = world.create(), queen = world.create(), drone = world.create();
    EXPECT(bee.relate(calls, queen, Title{"majesty"}) == QUERN_OK);
    const auto refuses = [](auto call) { return result_of(call) == QUERN_ERROR_LAYOUT_MISMATCH; };
    EXPECT(refuses([&] { return bee.relate(calls, drone, 1.5f); }));
    EXPECT(refuses([&] { return bee.set_edge_value(calls, queen, 1.5f); }));
    EXPECT(refuses([&] { return world.relate(bee, calls, drone, 1.5f); }));
    EXPECT(refuses([&] { return world.set_edge_value(bee, calls, queen, 1.5f); }));
    EXPECT(bee.edge_value<float>(calls, queen) == nullptr &&
           world.edge_value<float>(bee, calls, queen) == nullptr);
    EXPECT(schedule.add_once(
               "mistake",
               [&](quern::context context) {
                   EXPECT(context.edge_value<float>(bee, calls, queen) == nullptr);
                   EXPECT(refuses([&] { return context.commands().relate(bee, calls, drone, 1.5f); }));
                   EXPECT(
                       refuses([&] { return context.commands().set_edge_value(bee, calls, queen, 1.5f); }));
               },
               quern::reads_relation{calls}, quern::lookup<Title>{}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK);
    EXPECT(bee.target(calls) == queen && bee.edge_value<Title>(calls, queen)->text == "majesty");
}

/* The body of a loop over sources may take the current one away. */
void loops_go_on_without_the_current_entity()
{
    quern::world world;
    const quern_relation serves =
        world.relation("serves", quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    const auto likes = many(world, "likes");
    const auto fill = [&](const quern::entity_ref &of, quern_relation relation) {
        for (int i = 0; i < 5; i++)
            EXPECT(world.create().relate(relation, of) == QUERN_OK);
    };
    const auto first = world.create(), second = world.create();
    for (const quern_relation relation : {world.parent(), serves, likes}) {
        int count = 0;
        fill(first, relation);
        for (auto source : first.sources(relation)) {
            if (count++ % 2 == 0)
                EXPECT(source.destroy() == QUERN_OK);
            else
                EXPECT(source.unrelate(relation) == QUERN_OK &&
                       source.relate(relation, second) == QUERN_OK);
        }
        EXPECT(count == 5 && first.source_count(relation) == 0 && second.source_count(relation) == 2);
        fill(first, relation);
        world.each_source(first, relation, [&](quern_entity source) {
            count++;
            EXPECT(world.destroy(source) == QUERN_OK);
        });
        EXPECT(count == 10 && first.source_count(relation) == 0);
    }
    const auto servant = world.create();
    int count = 0;
    EXPECT(servant.relate(serves, first) == QUERN_OK);
    for (auto target : servant.targets(serves)) {
        EXPECT(target.destroy() == QUERN_OK);
        count++;
    }
    EXPECT(count == 1 && servant.target_count(serves) == 0);
    quern::schedule schedule(world);
    fill(second, serves);
    count = 0;
    EXPECT(schedule.add_once(
               "end",
               [&](quern::context context) {
                   context.each_source(second, serves, [&](quern_entity source) {
                       count++;
                       EXPECT(world.destroy(source) == QUERN_OK);
                   });
               },
               quern::reads_relation{serves}, quern::flags{QUERN_SYSTEM_EXCLUSIVE}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK && count == 7);
}

void entities_are_compared_and_hashed()
{
    quern::app app;
    const auto first = app.create(), second = app.create();
    const quern::entity_ref same = first;
    const quern_entity handle = first;
    EXPECT(first == same && same == first && first == handle && handle == first && first != second);
    EXPECT(handle != second && second != handle && !(first != same) && handle != quern::null);
    EXPECT(handle == same.handle() && !(handle != same.handle()));
    EXPECT((first < second) != (second < first) && (handle < second.handle()) == (first < second));
    std::unordered_map<quern_entity, int> counts;
    counts[first]++;
    counts[handle]++;
    std::unordered_set<quern::app_entity_ref> set{first, second, first};
    std::map<quern_entity, int> sorted{{first, 1}, {second, 2}};
    EXPECT(counts[first] == 2 && counts.size() == 1 && set.size() == 2 && sorted[second] == 2);
    EXPECT(std::hash<quern::entity_ref>()(same) == std::hash<quern_entity>()(handle));
}

void commands_are_chained()
{
    quern::app app;
    const quern_relation likes = many(app, "likes");
    app.component<Position>();
    app.component<Number>();
    app.component<Title>();
    app.component<Frozen>();
    EXPECT(app.disabled_tag().bits != 0);
    static quern_relation related;
    static quern_entity plum, pear;
    related = likes;
    plum = app.create();
    pear = app.create(Frozen{}, Number{1});
    app.add_once("spawn", [](quern::context context) {
        quern::commands commands = context.commands();
        const quern_entity bee = commands.create(Position{1})
                                     .set(Number{2})
                                     .set<Title>({"queen"})
                                     .add<Frozen>()
                                     .relate(related, plum)
                                     .relate(related, pear)
                                     .set_name("bee");
        commands.entity(pear).remove<Frozen>().set(Number{3}).set_enabled(false);
        commands.entity(bee).unrelate(related, pear);
        commands.create().set_name("shadow");
        commands.create().unrelate(related).destroy();
    });
    app.run(1);
    const auto bee = app.find("bee");
    EXPECT(bee.has<Position, Frozen>() && bee.get<Number>().value == 2 && bee.get<Title>().text == "queen");
    EXPECT(bee.target(likes) == plum && bee.target_count(likes) == 1 && app.find("shadow"));
    const auto fruit = app.entity(pear);
    EXPECT(!fruit.has<Frozen>() && fruit.get<Number>().value == 3 && !fruit.is_enabled());
}

void instances_are_objects()
{
    quern::app app;
    const auto tower = app.create(Position{5}), gun = app.create(Number{1});
    gun.set_name("gun");
    gun.set_parent(tower);
    const quern_prefab prefab = app.prefab(tower);
    const auto instance = app.spawn(prefab);
    EXPECT(instance.get<Position>().x == 5 && instance.find("gun").get<Number>().value == 1);
    quern::world world;
    const quern::entity_ref root = world.create(Position{6});
    EXPECT(world.spawn(world.prefab(root)).get<Position>().x == 6);
}

void failed_allocations_change_nothing()
{
    for (uint64_t left = 0;; left++) {
        quern::world world(failing_allocator::world());
        const quern_entity entity = world.create(Position{1});
        world.component<Number>();
        failing_allocator::left = left;
        const quern_result result = result_of([&] { return world.entity(entity).set(Number{2}); });
        failing_allocator::left = UINT64_MAX;
        const auto after = world.entity(entity);
        EXPECT(result == QUERN_OK || (result == QUERN_ERROR_OUT_OF_MEMORY && !after.has<Number>()));
        EXPECT(after.get<Position>().x == 1 && world.validate() == QUERN_OK);
        if (result != QUERN_OK) continue;
        EXPECT(after.get<Number>().value == 2);
        return;
    }
}

/* Objects, handles and a model agree after random changes. */
void objects_agree_with_a_model()
{
    struct modelled {
        quern_entity handle;
        int number; /* -1: none */
        std::size_t parent;
    };
    quern::app app;
    std::vector<modelled> model;
    uint32_t seed = 7;
    const auto draw = [&seed](std::size_t below) {
        seed = seed * 1664525u + 1013904223u;
        return static_cast<std::size_t>(seed >> 8) % below;
    };
    for (int step = 0; step < 3000; step++) {
        const std::size_t index = model.empty() ? 0 : draw(model.size());
        switch (model.size() < 5 ? 0 : draw(5)) {
        case 0:
            model.push_back({app.create(), -1, SIZE_MAX});
            break;
        case 1:
            model[index].number = static_cast<int>(draw(1000));
            app.entity(model[index].handle).set(Number{model[index].number});
            break;
        case 2:
            if (model[index].number >= 0) app.entity(model[index].handle).remove<Number>();
            model[index].number = -1;
            break;
        case 3:
            if (index > 0) {
                model[index].parent = draw(index);
                app.entity(model[index].handle).set_parent(model[model[index].parent].handle);
            }
            break;
        default:
            model[index].parent = SIZE_MAX;
            app.entity(model[index].handle).set_parent(quern::null);
            break;
        }
    }
    std::size_t child_count = 0, expected_count = 0;
    for (std::size_t i = 0; i < model.size(); i++) {
        const auto entity = app.entity(model[i].handle);
        const Number *number = entity.try_get<Number>();
        EXPECT(number != nullptr ? number->value == model[i].number : model[i].number < 0);
        EXPECT(entity.parent() == (model[i].parent < i ? model[model[i].parent].handle : quern::null));
        expected_count += model[i].parent < i;
        for (auto child : entity.children()) {
            EXPECT(child.parent() == entity);
            child_count++;
        }
    }
    EXPECT(child_count == expected_count && app.validate() == QUERN_OK);
}

struct Padded {
    char letter;
    int number;
};

void values_are_ensured_compared_and_copied()
{
    quern::app app;
    app.component<Padded>();
    quern::query<const Number> query(app);
    const auto parent = app.create();
    parent.set_name("arena");
    const auto entity = app.create(Position{1});
    entity.set_parent(parent);
    EXPECT(!query.matches(entity));
    EXPECT(entity.ensure<Number>().value == Number{}.value);
    EXPECT(query.matches(entity));
    entity.ensure<Number>().value = 7;
    EXPECT(entity.ensure<Number>().value == 7);
    EXPECT(entity.set_if_different(Padded{'a', 1}));
    EXPECT(!entity.set_if_different(Padded{entity.get<Padded>()}));
    EXPECT(entity.set_if_different(Padded{'a', 2}));
    EXPECT(entity.set_if_different(std::string("one")));
    EXPECT(!entity.set_if_different(std::string("one")));
    EXPECT(entity.set_if_different(std::string("two")));
    const auto child = app.create(std::string("child"));
    child.set_parent(entity);
    const auto copy = entity.clone();
    EXPECT(copy != entity && copy.parent() == parent && copy.get<std::string>() == "two");
    uint32_t child_count = 0;
    for (auto below : copy.children()) {
        EXPECT(below != child && below.get<std::string>() == "child");
        child_count++;
    }
    EXPECT(child_count == 1);
    quern_spawn_def def{};
    def.parent = child;
    const auto moved = entity.clone(def);
    EXPECT(moved.parent() == child && moved.get<Number>().value == 7);
    static quern_entity original, under;
    original = entity;
    under = child;
    app.add_once("divide", [](quern::context context) {
        quern::commands commands = context.commands();
        quern_spawn_def below{};
        below.parent = under;
        commands.clone(original).set(Number{8}).set_name("recorded");
        commands.clone(under, below).set_name("below");
    });
    app.run(1);
    const auto recorded = app.find("arena/recorded");
    EXPECT(recorded.get<Number>().value == 8 && recorded.get<std::string>() == "two");
    EXPECT(child.parent() == entity && app.find("arena/recorded").parent() == parent);
    uint32_t below_count = 0;
    for (auto below : child.children())
        below_count += below.get<std::string>() == "child";
    EXPECT(below_count == 1);
    entity.clear();
    EXPECT(!entity.has<Number>() && !entity.has<std::string>() && entity.parent() == parent);
    EXPECT(app.validate() == QUERN_OK);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1) {
        end_on_abort();
        if (std::strcmp(argv[1], "none") == 0) return quern::app_entity_ref().destroy();
        quern::app app;
        const auto entity = app.create(Position{1});
        if (std::strcmp(argv[1], "get") == 0) return entity.get<Number>().value;
        if (std::strcmp(argv[1], "next") == 0) {
            for (int i = 0; i < 3; i++)
                app.create().set_parent(entity);
            for (auto child : entity.children())
                child.next_sibling(app.parent()).destroy();
        }
        if (std::strcmp(argv[1], "moved") == 0) {
            for (int i = 0; i < 3; i++)
                app.create().set_parent(entity);
            for (auto child : entity.children())
                child.next_sibling(app.parent()).set_parent(quern::null);
        }
        if (std::strcmp(argv[1], "liked") == 0) {
            const auto likes = many(app, "likes");
            for (int i = 0; i < 3; i++)
                app.create().relate(likes, entity);
            for (auto source : entity.sources(likes)) {
                (void)source;
                entity.destroy();
            }
        }
        entity.destroy();
        if (std::strcmp(argv[1], "set") == 0) entity.set(Number{1});
        return entity.get<Number>().value;
    }
    components_are_set_and_read();
    results_of_worlds_are_read();
    entities_have_names_and_parents();
    entities_have_targets();
    edges_have_values();
    edges_refuse_values_of_other_types();
    loops_go_on_without_the_current_entity();
    entities_are_compared_and_hashed();
    commands_are_chained();
    instances_are_objects();
    failed_allocations_change_nothing();
    objects_agree_with_a_model();
    values_are_ensured_compared_and_copied();
    std::puts("all entities work");
}
