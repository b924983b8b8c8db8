/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The C++ headers of the kit: grids, transforms, states, background work and ranks, against loops over all entities and against the C interface. */

#include "expect.h"

#include <quern/kit/background.hpp>
#include <quern/kit/grid.hpp>
#include <quern/kit/random.h>
#include <quern/kit/ranks.hpp>
#include <quern/kit/states.hpp>
#include <quern/kit/transform.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

struct Place {
    int floor; /* so that the coordinates are not at the beginning */
    float x, y;
};
struct Body {
    float at[3];
};
struct Sheep {};
struct Wolf {};
struct Wool {
    int colour;
};
struct Seen {
    int count;
};

float random_number(uint64_t i, uint64_t k)
{
    return 20 * quern_random_unit(quern_random(i, k));
}

float square_of(const Place &a, float x, float y)
{
    return (a.x - x) * (a.x - x) + (a.y - y) * (a.y - y);
}

void fill(quern::app &app, int count)
{
    for (int i = 0; i < count; i++) {
        const auto number = static_cast<uint64_t>(i);
        const auto entity =
            app.create(Place{i, random_number(number, 1), random_number(number, 2)}, Wool{i});
        if (i % 3 != 0) entity.add<Sheep>();
        if (i % 5 == 0) entity.add<Wolf>();
    }
}

/* Searches of a grid find what loops over all entities find. */
void searches_find_what_loops_find()
{
    quern::app app;
    fill(app, 700);
    quern::grid<&Place::x, &Place::y> flock(app, quern::grid_name{"flock"}, quern::cell_size{1.5f},
                                            quern::with<Sheep>{}, quern::marks<Seen, Wolf>{},
                                            quern::payload<Wool>{});
    EXPECT(flock.build(app.jobs()) == QUERN_OK);
    quern::query<const Place> sheep(app, quern::with<Sheep>{});
    EXPECT(flock.stats().item_count == sheep.count());
    for (uint64_t i = 0; i < 50; i++) {
        const float x = random_number(i, 3), y = random_number(i, 4), radius = random_number(i, 5) / 5;
        std::vector<quern_entity> expected, found;
        float nearest_square = INFINITY;
        for (auto [entity, place] : sheep) {
            if (square_of(place, x, y) <= radius * radius) expected.push_back(entity);
            nearest_square = std::min(nearest_square, square_of(place, x, y));
        }
        for (auto item : flock.radius({x, y}, radius)) {
            found.push_back(item.entity);
            const Place &place = app.entity(item.entity).get<Place>();
            EXPECT(item.key == square_of(place, x, y) && item.item->position[0] == place.x);
            EXPECT(item.item->marks == (place.floor % 5 == 0 ? 2u : 0u));
            EXPECT(flock.payload<Wool>(item).colour == place.floor);
        }
        std::sort(expected.begin(), expected.end());
        std::sort(found.begin(), found.end());
        EXPECT(found == expected);
        const auto nearest = flock.nearest(Place{0, x, y}, INFINITY);
        EXPECT(nearest && nearest.key == nearest_square);
        std::size_t in_box = 0, expected_in_box = 0;
        for (auto item : flock.box({x - 2, y - 1}, {x + 2, y + 1})) {
            EXPECT(item.key == 0);
            in_box++;
        }
        for (auto [entity, place] : sheep)
            expected_in_box += place.x >= x - 2 && place.x <= x + 2 && place.y >= y - 1 && place.y <= y + 1;
        EXPECT(in_box == expected_in_box);
    }
    EXPECT(!flock.nearest({-100, -100}, 1));
    quern_grid_hit hits[3];
    EXPECT(flock.nearest({5, 5}, INFINITY, hits, 3) == 3 && hits[0].key <= hits[1].key &&
           hits[1].key <= hits[2].key);
}

int pair_count;
void count_pair(const quern_grid_pair &)
{
    pair_count++;
}

void pairs_and_rays_are_found()
{
    quern::app app;
    for (int i = 0; i < 40; i++)
        app.create(Body{{static_cast<float>(i), 0, 0}});
    quern::grid<&Body::at> bodies(app);
    EXPECT(bodies.build() == QUERN_OK);
    std::vector<int> counts(bodies.part_count());
    EXPECT(bodies.pairs(app.jobs(), 1, [&counts](uint32_t part, const quern_grid_pair &pair) {
        counts[part] += pair.square == 1;
    }) == QUERN_OK);
    int count = 0, all = 0;
    for (int part : counts)
        count += part;
    EXPECT(count == 39);
    EXPECT(bodies.pairs(nullptr, 2, [&all](const quern_grid_pair &) { all++; }) == QUERN_OK);
    EXPECT(all == 39 + 38);
    EXPECT(bodies.pairs(nullptr, 2, count_pair) == QUERN_OK && pair_count == all);
    EXPECT(result_of([&] { return bodies.pairs(nullptr, -1, [](const quern_grid_pair &) {}); }) ==
           QUERN_ERROR_INVALID_ARGUMENT);
    const auto first = bodies.ray({4.6, 3, 0}, {0, -1, 0}, 10, 0.5f);
    EXPECT(first && app.entity(first.entity).get<Body>().at[0] == 5 && first.key == 3);
    EXPECT(!bodies.ray({4.6, 3, 0}, {0, 1, 0}, 10, 0.5f));
    quern_grid_hit hits[8];
    EXPECT(bodies.ray({-1, 0, 0}, {2, 0, 0}, 5, 0.25f, hits, 8) == 5 && hits[4].key == 5);
    EXPECT(bodies.cells().cell_count > 0 && bodies.cells().starts[bodies.cells().cell_count] == 40);
}

/* Systems see the positions that earlier systems of the frame wrote, at each number of threads, and the app goes on when
 * the grid has ended. */
void systems_search_and_the_app_outlives_the_grid()
{
    uint64_t hashes[3];
    for (uint32_t thread_count = 1; thread_count <= 3; thread_count++) {
        quern_jobs_def threads{};
        threads.thread_count = thread_count;
        quern::app app(quern_world_def{}, quern_schedule_def{}, threads);
        fill(app, 900);
        app.add("walk", [](Place &place) { place.x += 0.25f; });
        {
            quern::grid<&Place::x, &Place::y> flock(app, quern::with<Sheep>{});
            app.create(Place{0, 0, 0}, Wolf{}, Seen{0});
            flock.add_systems(app);
            app.add(
                "look",
                [&flock](const Place &place, Seen &seen, const Wolf &, quern::context context) {
                    for (auto sheep : flock.in(context).radius(place, 4))
                        seen.count += sheep.entity != quern::null;
                },
                quern::searches{flock});
            app.run(0.5, 3);
            int count = 0;
            for (auto [entity, place, seen] : quern::query<const Place, const Seen>(app))
                count += seen.count;
            EXPECT(flock.stats().build_count == 3);
            EXPECT(count > 0);
            quern::must(app.schedule().remove_system(app.schedule().find("look")));
            EXPECT(quern_schedule_system_count(app.schedule()) == 3);
        }
        EXPECT(quern_schedule_system_count(app.schedule()) == 1);
        app.run(0.5, 2);
        hashes[thread_count - 1] = app.hash();
    }
    EXPECT(hashes[0] == hashes[1] && hashes[0] == hashes[2]);
}

void failures_are_returned()
{
    quern::world world;
    quern::grid<&Place::x, &Place::y> first(world);
    EXPECT(first != nullptr);
    EXPECT(result_of([&] {
               quern::grid<&Place::x, &Place::y> wrong(world, quern::cell_size{-1});
               EXPECT(static_cast<quern_grid *>(wrong) == nullptr);
               return QUERN_ERROR_INVALID_ARGUMENT;
           }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(std::strstr(quern_error_message(), "cell size") != nullptr);
    EXPECT(result_of([&] {
               quern::grid<&Place::x, &Place::y> second(world); /* of the same name */
               EXPECT(static_cast<quern_grid *>(second) == nullptr);
               return QUERN_ERROR_DUPLICATE_NAME;
           }) == QUERN_ERROR_DUPLICATE_NAME);
    quern::schedule schedule(world);
    EXPECT(result_of([&] { return first.add_systems(schedule, 7); }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(first.add_systems(schedule) == QUERN_OK);
    quern::must(schedule.run(nullptr, 1));
}

/* A search without a declaration ends the program with a message that names the option. */
int search_undeclared()
{
    end_on_abort();
    quern::app app;
    quern::grid<&Place::x, &Place::y> flock(app, quern::grid_name{"flock"});
    app.create(Place{0, 0, 0});
    flock.add_systems(app);
    app.add("look", [&flock](const Place &place, quern::context context) {
        for (auto item : flock.in(context).radius(place, 1))
            (void)item;
    });
    app.run(1);
    return EXIT_FAILURE;
}

void transforms_place_children()
{
    quern::app app;
    {
        quern::transforms transforms(app);
        transforms.add_systems(app);
        const auto ship = app.create(quern_local3_at(10, 0, 0), quern_world3{});
        const auto mast = app.create(quern_local3_at(1, 5, 0), quern_world3{});
        EXPECT(transforms.set_parent(mast, ship) == QUERN_OK);
        EXPECT(mast.parent() == ship);
        app.run(1);
        EXPECT(mast.get<quern_world3>().m[0][3] == 11 && mast.get<quern_world3>().m[1][3] == 5);
        ship.get<quern_local3>().translation[0] = 20;
        EXPECT(transforms.mark(ship) == QUERN_OK);
        quern_world3 now;
        EXPECT(transforms.compute(mast, now) == QUERN_OK && now.m[0][3] == 21);
        app.run(1);
        EXPECT(mast.get<quern_world3>().m[0][3] == 21 && transforms.stats().node_count == 2);
        EXPECT(transforms.set_parent(mast, quern::null, true) == QUERN_OK);
        EXPECT(mast.get<quern_local3>().translation[0] == 21);
        EXPECT(transforms.record_parent(app.commands(), mast, ship, mast.get<quern_world3>(),
                                        &ship.get<const quern_world3>()) == QUERN_OK);
        app.flush();
        EXPECT(mast.get<quern_local3>().translation[0] == 1);
        EXPECT(transforms.record_parent(app.commands(), mast, quern::null) == QUERN_OK);
        app.flush();
        transforms.mark_all();
        app.run(1);
        EXPECT(mast.get<quern_world3>().m[0][3] == 1);
        EXPECT(app.component<quern_local3>().bits == transforms.local().bits &&
               app.component<quern_world3>().bits == transforms.world().bits);
    }
    EXPECT(quern_schedule_system_count(app.schedule()) == 0);
    app.run(1);
    quern::world world;
    quern_transform_def planar{};
    planar.planar = true;
    quern::transforms flat(world, planar);
    quern::schedule schedule(world);
    EXPECT(flat.add_systems(schedule) == QUERN_OK);
    const auto card = world.create(quern_local2_at(3, 4), quern_world2{});
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK);
    quern_world2 now;
    EXPECT(flat.compute(card, now) == QUERN_OK && now.m[1][2] == 4);
    EXPECT(card.get<quern_world2>().m[0][2] == 3);
}

enum class Screen { menu, playing };

void systems_run_in_their_states()
{
    quern::app app;
    static std::string log;
    log.clear();
    {
        quern::states<Screen> screen(app, "screen", {"menu", "playing"}, Screen::playing);
        EXPECT(screen.add_systems(app) == QUERN_OK);
        bool leaves = false;
        app.add_once(
            "in menu", [](quern::context) { log += 'm'; }, quern::in_set{"menu"});
        app.add_once(
            "in game", [](quern::context) { log += 'p'; }, quern::in_set{"playing"});
        app.add_once(
            "enter menu systems", [](quern::context) { log += 'e'; }, quern::in_set{"enter menu"});
        app.add_once(
            "leave game", [](quern::context) { log += 'l'; }, quern::in_set{"leave playing"});
        app.add_once(
            "keys",
            [&](quern::context context) {
                if (leaves) EXPECT(screen.set(context, Screen::menu) == QUERN_OK);
            },
            quern::sets_state{screen});
        const auto level = app.create();
        EXPECT(quern_entity_add(app, level, screen.tag(Screen::playing), nullptr) == QUERN_OK);
        app.run(1);
        leaves = true;
        app.run(1);
        leaves = false;
        EXPECT(log == "pp" && screen.get() == Screen::menu);
        app.run(1);
        EXPECT(log == "pplem" && !app.is_alive(level));
        EXPECT(screen.set(Screen::playing) == QUERN_OK);
        for (const char *name : {"in menu", "in game", "enter menu systems", "leave game", "keys"})
            EXPECT(quern_schedule_remove_system(
                       app.schedule(), quern_schedule_find_system(app.schedule(), name)) == QUERN_OK);
    }
    EXPECT(quern_schedule_list_sets(app.schedule(), nullptr, 0) == 0);
    app.run(1);
    quern::world world;
    quern::states<int> numbers(world, "numbers", {"a", "b"});
    quern::schedule schedule(world);
    EXPECT(numbers.add_systems(schedule) == QUERN_OK && schedule.run(nullptr, 1) == QUERN_OK);
    EXPECT(numbers.get() == 0 && numbers.resource().bits != 0);
}

struct Sum {
    uint32_t up_to;
    bool operator==(const Sum &other) const { return up_to == other.up_to; }
};
struct Total {
    uint64_t value;
    std::vector<uint32_t> parts; /* so that the type has hooks */
};
struct Progress {
    static int alive;
    uint32_t next = 1;
    Progress() { alive++; }
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;
    ~Progress() { alive--; }
};
int Progress::alive;

void work_goes_on_in_the_background()
{
    quern::jobs pool(2);
    {
        quern::app app;
        quern::background<Sum, Total, Progress> sums(
            app, "sums",
            [](const Sum &wanted, Total &total, Progress &progress) {
                total.value += progress.next;
                total.parts.push_back(progress.next);
                return progress.next++ == wanted.up_to;
            },
            quern::result_after{3}, quern::budget{1000}, quern::keep_results{2});
        EXPECT(sums.add_systems(app) == QUERN_OK);
        const auto entity = app.create(Sum{100});
        for (int i = 0; i < 3; i++) {
            app.run(1);
            EXPECT(!entity.has<Total>());
        }
        app.run(1);
        EXPECT(entity.has<Total>() && !entity.has<Sum>());
        EXPECT(entity.get<Total>().value == 5050 && entity.get<Total>().parts.size() == 100);
        EXPECT(sums.stats().applied_count == 1 && sums.due().bits != 0);
    }
    EXPECT(Progress::alive == 0);
    quern::world world;
    quern::background<Sum, Total> soon(
        world, "soon", [](const Sum &wanted, Total &total) { total.value = wanted.up_to; },
        quern::on_pool{pool});
    quern::schedule schedule(world);
    EXPECT(soon.add_systems(schedule) == QUERN_OK);
    const auto entity = world.create(Sum{7});
    for (int i = 0; i < 100000 && !entity.has<Total>(); i++) {
        EXPECT(soon.poll() == QUERN_OK);
        EXPECT(schedule.run(nullptr, 1) == QUERN_OK);
    }
    EXPECT(entity.get<Total>().value == 7 && soon.resource().bits != 0);
}

} // namespace

struct Number {
    uint64_t value;
};
struct At {
    float x, y;
};
struct Hits {
    uint32_t count;
};

void ranks_send_messages()
{
    quern::app app(2);
    quern_ranks_def def{};
    def.id = app.component<Number>();
    def.position = app.component<At>();
    def.planar = true;
    def.radius = 1;
    def.list_ranks = true;
    def.globals[0].kind = QUERN_RANKS_SUM;
    def.globals[0].component = app.component<Hits>();
    def.globals[0].value = [](const void *hits) -> int64_t {
        return static_cast<const Hits *>(hits)->count;
    };
    quern::ranks ranks(app, def);
    const quern_component hits_of_entity = app.component<Hits>();
    app.add(
        "hit",
        [&ranks, hits_of_entity](quern::context context, const Number &number, const Hits &hits) {
            const Hits more{hits.count + 2};
            quern_ranks_message message{};
            message.verb = QUERN_RANKS_SET;
            message.from = number.value;
            message.to = 3 - number.value;
            message.component = hits_of_entity;
            message.value = &more;
            EXPECT(ranks.send(context, message));
        },
        quern::sends_messages{ranks});
    quern::schedule inner{app};
    EXPECT(ranks.overlap(inner) == QUERN_OK);
    EXPECT(ranks.start(app, 1) == QUERN_OK);
    for (uint64_t i = 1; i <= 2; i++)
        if (ranks.creates(i)) app.create(Number{i}, At{0, 0}, Hits{0});
    uint64_t hash = 0;
    EXPECT(ranks.run(3, &hash) == QUERN_OK && ranks.frame() == 3 && ranks.state().globals[0] == 12);
    EXPECT(hash == quern_world_hash_by(app, def.id) && ranks.count() == 1 && ranks.index() == 0);
    quern_ranks_stats own{};
    EXPECT(ranks.stats(&own, nullptr) == QUERN_OK && own.message_count == 6);
    EXPECT(ranks.list().size() == 1 && ranks.list()[0].owned_count == 2);
    EXPECT(ranks.ghost().bits != 0 && ranks.resource().bits != 0);
}

int main(int argc, [[maybe_unused]] char **argv)
{
    if (argc > 1) return search_undeclared();
    searches_find_what_loops_find();
    pairs_and_rays_are_found();
    systems_search_and_the_app_outlives_the_grid();
    failures_are_returned();
    transforms_place_children();
    systems_run_in_their_states();
    work_goes_on_in_the_background();
    ranks_send_messages();
    std::puts("all kit work");
}
