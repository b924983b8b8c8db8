/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* A market town without a call of C. Farmers work at farms, carry grain to the nearest stalls, and sell it for gold; bakers
 * bake; children are born, people age, and a save in the middle of the run goes on to the same end. The hash of the world is
 * the same for 1, 2 and 3 threads. All numbers are integers, so it does not depend on the compiler either.
 *
 * market [FRAMES] */

#include <cstdlib>
#include <iostream>
#include <quern/prefabs.hpp>
#include <quern/saves.hpp>

struct Place {
    int x, y;
};
struct Purse {
    int gold;
};
struct Grain {
    int sacks;
};
struct Bread {
    int loaves;
};
struct Age {
    int days;
};
struct Hunger {
    int level;
};
struct Field {
    int fertility;
};
struct Farmer {};
struct Baker {};
struct Stall {
    quern_entity guard; /* a part of the prefab */
    int sold;
};

struct Sale {
    quern_entity seller;
    int gold;
};
struct Death {
    int age;
};

struct Calendar {
    int day = 0;
    int price = 3;
    int newcomers = 0, deaths = 0, taxes = 0;
    int64_t gold = 0;
    int people = 0;
};
struct Wealth {
    int64_t gold;
    int people;
};

QUERN_DESCRIBE(Place, x, y);
QUERN_DESCRIBE(Purse, gold);
QUERN_DESCRIBE(Grain, sacks);
QUERN_DESCRIBE(Bread, loaves);
QUERN_DESCRIBE(Age, days);
QUERN_DESCRIBE(Hunger, level);
QUERN_DESCRIBE(Field, fertility);
QUERN_DESCRIBE(Stall, guard, sold);
QUERN_DESCRIBE(Sale, seller, gold);
QUERN_DESCRIBE(Death, age);
QUERN_DESCRIBE(Calendar, day, price, newcomers, deaths, taxes, gold, people);

namespace {

/* An app with the types, systems and prefab of a town. All towns register them in one order, so a save fits another town. */
struct Town {
    quern::app app;
    quern_relation works_at = app.relation("works at", quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    quern_prefab stall;

    explicit Town(uint32_t thread_count) : app(thread_count)
    {
        app.resource<Calendar>();
        quern::blueprint plan(app);
        const auto root = plan.root();
        const auto guard = root.child("guard").set(Age{7000}).set(Hunger{0}).set(Purse{5}).set(Bread{9});
        root.set(Place{0, 0}).set(Stall{guard.handle(), 0}).set(Grain{0});
        stall = plan.create();
        add_systems();
    }

    void found()
    {
        quern_entity farms[8];
        Place places[4];
        for (int i = 0; i < 4; i++)
            places[i] = Place{i * 30, i * 20};
        app.spawn_many(stall, 4, quern::instances(app).override(places));
        for (int i = 0; i < 8; i++)
            farms[i] = app.create(Place{i * 17 % 100, i * 29 % 100}, Field{2 + i % 3});
        for (int i = 0; i < 2000; i++) {
            const auto person = app.create(Place{i % 100, i / 20}, Purse{10}, Bread{5}, Age{i * 13 % 20000},
                                           Hunger{0}, Grain{0});
            if (i % 3 == 0)
                person.add<Baker>();
            else
                person.add<Farmer>();
            if (i % 3 != 0) person.relate(works_at, farms[i % 8]);
        }
    }

    void add_systems();
};

void Town::add_systems()
{
    /* 1: the day begins, and the price follows the harvest. */
    app.add_once(
        "day",
        [](quern::context context) {
            Calendar &calendar = context.resource<Calendar>();
            calendar.day++;
            calendar.price = 2 + calendar.day % 5;
        },
        quern::writes_resource<Calendar>{});
    /* 2: farmers harvest what the field of their farm gives. */
    app.add(
        "harvest",
        [](Grain &grain, const Farmer &, quern::up<Field> field) { grain.sacks += field->fertility; },
        quern::along{works_at}, quern::after{"day"});
    /* 3: they walk towards the market. */
    app.add(
        "walk",
        [](Place &place, const Farmer &) {
            place.x += place.x > 50 ? -1 : 1;
            place.y += place.y > 50 ? -1 : 1;
        },
        quern::after{"harvest"});
    /* 4: on market days, farmers sell. */
    app.add(
        "sell",
        [](quern_entity entity, Grain &grain, const Farmer &, quern::context context,
           quern::emitter<Sale> sales) {
            const int price = context.resource<const Calendar>().price;
            if (grain.sacks < 5) return;
            sales.emit({entity, grain.sacks * price});
            grain.sacks = 0;
        },
        quern::reads_resource<Calendar>{}, quern::after{"walk"}, quern::run_if{[](quern::context context) {
            return context.resource<const Calendar>().day % 3 == 0;
        }});
    /* 5: the town takes a tax of each sale; the seller gets the rest, added up at the sync point. */
    app.add_events(
        "pay",
        [](const Sale &sale, quern::context context) {
            context.commands().accumulate(sale.seller, Purse{sale.gold - sale.gold / 10});
        },
        quern::after{"sell"});
    /* 6: and counts it. */
    app.add_events(
        "tax",
        [](const Sale &sale, quern::context context) {
            context.resource<Calendar>().taxes += sale.gold / 10;
        },
        quern::writes_resource<Calendar>{}, quern::after{"sell"});
    /* 7: bakers bake for gold. */
    app.add("bake", [](Bread &bread, Purse &purse, const Baker &) {
        if (purse.gold < 2) return;
        purse.gold -= 2;
        bread.loaves += 3;
    });
    /* 8: hunger grows. */
    app.add(
        "hunger", [](Hunger &hunger) { hunger.level++; }, quern::after{"bake"});
    /* 9: who has bread eats, who has gold buys. */
    app.add(
        "eat",
        [](Hunger &hunger, Bread &bread, Purse &purse) {
            if (bread.loaves == 0 && purse.gold > 0) {
                purse.gold--;
                bread.loaves++;
            }
            if (bread.loaves == 0) return;
            bread.loaves--;
            hunger.level = 0;
        },
        quern::after{"hunger"});
    /* 10: people age, and die of it or of hunger. */
    app.add(
        "age",
        [](quern_entity entity, Age &age, const Hunger &hunger, quern::commands commands,
           quern::emitter<Death> deaths) {
            age.days += 30;
            if (age.days < 25000 && hunger.level < 20) return;
            deaths.emit({age.days});
            commands.destroy(entity);
        },
        quern::after{"eat"});
    /* 11: rich farmers of some age have children. The children work at the same farm. */
    app.add(
        "births",
        [at = works_at](quern_entity entity, Purse &purse, const Place &place, const Age &age,
                        const Farmer &, quern::commands commands, quern::context context) {
            if (purse.gold < 150 || age.days < 6000 || age.days > 15000) return;
            purse.gold -= 140;
            commands.create(place, Purse{10}, Bread{5}, Age{0}, Hunger{0}, Grain{0})
                .add<Farmer>()
                .relate(at, context.target(entity, at));
        },
        quern::reads_relation{works_at}, quern::after{"age"});
    /* 12: a reaction counts new people. */
    app.add(
        "note newcomers",
        [](const Age &, quern::context context) { context.resource<Calendar>().newcomers++; },
        quern::reacts_to{QUERN_REACT_ADDED}, quern::writes_resource<Calendar>{});
    /* 13: partial results, which do not depend on the number of threads, and the deaths of the day. */
    app.add(
        "count",
        [](const Purse &purse, quern::reduce<Wealth> wealth) {
            wealth->gold += purse.gold;
            wealth->people++;
        },
        quern::at_end{[](quern::context context) {
            Calendar &calendar = context.resource<Calendar>();
            calendar.gold = 0;
            calendar.people = 0;
            context.each_partial<Wealth>([&](const Wealth &wealth) {
                calendar.gold += wealth.gold;
                calendar.people += wealth.people;
            });
            context.each_event<Death>([&](const Death &) { calendar.deaths++; });
        }},
        quern::reads_events<Death>{}, quern::writes_resource<Calendar>{}, quern::after{"births"});
}

/* Runs a town; with a save, in another town from the middle on. Returns the hash at the end. */
uint64_t run(uint32_t thread_count, uint64_t frame_count, bool saves, bool prints = false)
{
    Town first(thread_count), second(thread_count);
    Town *town = &first;
    town->found();
    town->app.run(1, frame_count / 2);
    if (saves) {
        quern::byte_buffer bytes;
        quern_save_def save{};
        quern_load_def load{};
        save.schedules[0] = first.app.schedule();
        load.schedules[0] = second.app.schedule();
        first.app.flush();
        first.app.save(bytes.sink(), save);
        second.app.load(bytes.source(), load);
        town = &second;
    }
    town->app.run(1, frame_count - frame_count / 2);
    const Calendar &calendar = *town->app.resource<Calendar>();
    if (prints)
        std::cout << "day " << calendar.day << ": " << calendar.people << " people with " << calendar.gold
                  << " gold, " << calendar.newcomers << " newcomers, " << calendar.deaths << " deaths, "
                  << calendar.taxes << " taxes\n";
    uint64_t guards = 0;
    for (auto [entity, stall] : quern::query<const Stall>(town->app))
        guards +=
            town->app.entity(stall.guard).is_alive() && town->app.entity(stall.guard).parent() == entity;
    return town->app.hash() + guards;
}

} // namespace

int main(int argc, char **argv)
{
    const uint64_t frame_count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
    const uint64_t hash = run(1, frame_count, false, true);
    for (uint32_t thread_count = 1; thread_count <= 3; thread_count++)
        for (bool saves : {false, true})
            if (run(thread_count, frame_count, saves) != hash) {
                std::cout << thread_count << " threads" << (saves ? " and a save" : "")
                          << ": another hash\n";
                return EXIT_FAILURE;
            }
    std::cout << "1, 2 and 3 threads, with and without a save: hash " << std::hex << hash << "\n";
}
