/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Entity hooks as static members, events that climb, and shared values. */

#include "expect.h"

#include <quern/prefabs.hpp>

#include <memory>
#include <string>

namespace {

std::string calls;

struct Body {
    int number;

    static void on_add(quern_world *world, quern_entity entity, Body &body)
    {
        EXPECT(quern_entity_is_alive(world, entity));
        calls += "add " + std::to_string(body.number) + " ";
    }
    static void on_set(quern_world *, quern_entity, Body &body)
    {
        calls += "set " + std::to_string(body.number) + " ";
    }
    static void on_remove(quern_world *, quern_entity, const Body &body)
    {
        calls += "remove " + std::to_string(body.number) + " ";
    }
};
struct Marked { // a tag
    static void on_add(quern_world *, quern_entity, Marked) { calls += "mark "; }
};
struct Owner { // a value that owns
    std::unique_ptr<int> value = std::make_unique<int>(7);

    static void on_remove(quern_world *, quern_entity, Owner &owner)
    {
        calls += "lose " + std::to_string(*owner.value) + " ";
    }
};
struct Plain {
    int number;
};
struct Button {
    int limit;
};
struct Click {
    quern_entity target;
    int strength;
};
struct Mesh {
    int number;
};
struct Place {
    int x;
};

} // namespace

static void expect_calls(const char *expected)
{
    if (calls != expected) std::fprintf(stderr, "calls: %s\n", calls.c_str());
    EXPECT(calls == expected);
    calls.clear();
}

static void members_are_hooks()
{
    quern::world world;
    const quern_entity entity = world.create(Body{1}, Plain{2});
    expect_calls("add 1 set 1 ");
    EXPECT(world.set(entity, Body{3}) == QUERN_OK);
    EXPECT(world.set(entity, Plain{3}) == QUERN_OK);
    EXPECT(world.add<Marked>(entity) == QUERN_OK);
    EXPECT(world.add<Owner>(entity) == QUERN_OK);
    expect_calls("set 3 mark ");
    EXPECT(world.remove<Owner>(entity) == QUERN_OK);
    EXPECT(world.destroy(entity) == QUERN_OK);
    expect_calls("lose 7 remove 3 ");
    EXPECT(!quern_entity_is_null(world.create(Body{4})));
    calls.clear();
    world = quern::world();
    expect_calls("remove 4 ");
}

static void events_climb()
{
    quern::world world;
    quern::schedule schedule(world);
    const quern_relation parent = world.parent();
    const quern_entity window = world.create(Button{10}), panel = world.create(Button{2}),
                       label = world.create();
    EXPECT(world.relate(panel, parent, window) == QUERN_OK);
    EXPECT(world.relate(label, parent, panel) == QUERN_OK);
    EXPECT(world.nearest<Button>(label, parent) == panel);
    std::string handled;
    const auto press = [&](const Click &click, quern::context context) {
        const quern_entity by = context.climb<Button>(click.target, parent, [&](quern_entity at) {
            return click.strength < context.lookup<Button>(at)->limit;
        });
        handled += by == window               ? "window "
                   : by == panel              ? "panel "
                   : quern_entity_is_null(by) ? "none "
                                              : "? ";
    };
    EXPECT(schedule.add_events("press", press, quern::lookup<Button>{}, quern::reads_relation{parent}) ==
           QUERN_OK);
    for (int strength : {1, 5, 50})
        EXPECT(world.emit(Click{label, strength}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    if (handled != "panel window none ") std::fprintf(stderr, "handled by %s\n", handled.c_str());
    EXPECT(handled == "panel window none ");
}

static void instances_share_values()
{
    quern::world world;
    const quern_entity shared = world.create_shared(Mesh{7}, Plain{1});
    quern::blueprint orc(world);
    orc.root().set(Place{1}).share(shared);
    const quern_prefab prefab = orc.create();
    const quern_entity a = world.spawn(prefab), b = world.spawn(prefab);
    EXPECT(!world.has<Mesh>(a) && world.get_shared<Mesh>(a)->number == 7);
    EXPECT(world.override_shared(a, Mesh{8}) == QUERN_OK);
    EXPECT(world.set(shared, Mesh{9}) == QUERN_OK);
    EXPECT(world.get_shared<Mesh>(a)->number == 8 && world.get_shared<Mesh>(b)->number == 9);
    int sum = 0;
    quern::schedule schedule(world);
    const auto read = [&](const Place &, quern::up<Mesh> mesh) { sum += mesh->number; };
    EXPECT(schedule.add("read", read, quern::along{world.shared()}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(sum == 17);
}

int main()
{
    members_are_hooks();
    events_climb();
    instances_share_values();
    std::puts("all hooks work");
}
