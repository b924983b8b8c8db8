/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Entity hooks as static members, unusual types, requirements, functions as lambdas, events that climb, and shared
 * values. */

#include "expect.h"

#include <quern/prefabs.hpp>

#include <atomic>
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
struct Pooled { // has its own memory
    std::string text;

    static void *operator new(std::size_t size_bytes) { return std::malloc(size_bytes); }
    static void operator delete(void *pooled) { std::free(pooled); }
};
struct Addressed { // has no address, as CComPtr
    std::string text;

    std::string *operator&() { return nullptr; }
    const std::string *operator&() const { return nullptr; }
};
struct Sealed { // a tag without a default constructor
    explicit Sealed(int) {}
};
struct Hen {
    int age;
};
struct Egg {
    int size;
};

} // namespace

QUERN_REQUIRE(Hen, Egg);
QUERN_REQUIRE(Egg, Hen);

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

/* Values of types that a header could use in a wrong way: with operators of their own, or without constructors. */
static void unusual_types_are_values()
{
    quern::world world;
    const auto thing = world.create(Pooled{"one"}, Addressed{"two"}, Sealed(3));
    EXPECT(thing.get<Pooled>().text == "one" && thing.get<Addressed>().text == "two");
    EXPECT(thing.set(Pooled{"three"}) == QUERN_OK && thing.set(Addressed{"four"}) == QUERN_OK);
    quern::blueprint copies(world);
    copies.root().set(thing.get<Pooled>()).set(thing.get<Addressed>());
    const auto copy = world.spawn(copies.create());
    EXPECT(copy.get<Pooled>().text == "three" && copy.get<Addressed>().text == "four");
    uint32_t count = 0;
    quern::query<const Pooled, const Sealed> query(world);
    EXPECT(query.each([&](const Pooled &pooled, const Sealed &) { count += pooled.text == "three"; }) ==
           QUERN_OK);
    EXPECT(count == 1);
}

/* Required types that require the first one are a mistake, which would otherwise not end. */
static void circles_of_requirements_are_refused()
{
    quern::world world;
    EXPECT(result_of([&] { return world.set(quern_entity{}, Hen{}); }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(std::strstr(quern_error_message(), "QUERN_REQUIRE") != nullptr);
    EXPECT(quern_type_count(world, QUERN_TYPE_COMPONENT) == 0);
}

static void double_number(Plain &plain)
{
    plain.number *= 2;
}
static void fill_number(Plain &plain)
{
    plain.number = 3;
}
static std::atomic<uint32_t> item_count;
static void count_items(uint32_t begin, uint32_t end)
{
    item_count += end - begin;
}
static void count_one()
{
    item_count++;
}

static void functions_serve_as_lambdas()
{
    quern::world world;
    quern::jobs jobs(2u);
    quern::schedule schedule(world);
    EXPECT(world.create_many(2, fill_number) == QUERN_OK);
    quern::query<Plain> query(world);
    EXPECT(query.each(double_number) == QUERN_OK && query.each(jobs, double_number) == QUERN_OK);
    EXPECT(schedule.add("double", double_number) == QUERN_OK && schedule.run(jobs, 1) == QUERN_OK);
    EXPECT(query.each([](const Plain &plain) { EXPECT(plain.number == 24); }) == QUERN_OK);
    EXPECT(jobs.parallel_for(100, 10, count_items) == QUERN_OK && jobs.run(count_one) == QUERN_OK);
    EXPECT(item_count == 101);
}

int main()
{
    members_are_hooks();
    unusual_types_are_values();
    circles_of_requirements_are_refused();
    functions_serve_as_lambdas();
    events_climb();
    instances_share_values();
    std::puts("all hooks work");
}
