/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift, the game of the tutorial, in C++: a ship in a field of rocks. */
#ifndef DRIFT_GAME_HPP
#define DRIFT_GAME_HPP

#include <array>
#include <iostream>
#include <quern/kit/grid.hpp>
#include <quern/kit/random.h>
#include <quern/prefabs.hpp>
#include <string>

constexpr int width = 48, height = 12;

struct Position {
    float x, y;
};
struct Velocity {
    float x, y; /* cells per second */
};
struct Offset {
    float x, y; /* from the parent */
};
struct Glyph {
    int32_t symbol;
};
struct Lifetime {
    float seconds;
};
struct Health {
    int32_t points;
};
struct Gun {
    float wait_seconds; /* until the next shot */
};
struct Rock {};
struct Bullet {};

/* Resources: what the player presses, and the score. */
struct Keys {
    int32_t left = 0, right = 0, up = 0, down = 0, fire = 0;
};
struct Score {
    int32_t rocks = 0;
};

/* An event: a rock has broken. */
struct Broken {
    quern_entity rock;
};

QUERN_DESCRIBE(Position, x, y);
QUERN_DESCRIBE(Velocity, x, y);
QUERN_DESCRIBE(Offset, x, y);
QUERN_DESCRIBE(Glyph, symbol);
QUERN_DESCRIBE(Lifetime, seconds);
QUERN_DESCRIBE(Health, points);
QUERN_DESCRIBE(Gun, wait_seconds);
QUERN_DESCRIBE(Keys, left, right, up, down, fire);
QUERN_DESCRIBE(Score, rocks);
QUERN_DESCRIBE(Broken, rock);

class Game {
  public:
    /* Creates world and systems without entities. */
    explicit Game(uint32_t thread_count = 0, uint64_t shuffle_seed = 0)
        : app({}, schedule_def(shuffle_seed), jobs_def(thread_count))
    {
        app.resource<Keys>();
        app.resource<Score>();
        rocks_.add_systems(app);
        add_ship_systems();
        add_movement();
        add_damage();
        quern::must(app.schedule().set_fixed_step(0, 1.0 / 64, 8));
    }

    quern::app app;

    /* Creates a ship and rocks. */
    void populate(int rock_count)
    {
        const quern_prefab rock = make_rock();
        for (int i = 0; i < rock_count; i++) {
            const uint64_t bits = quern_random(1, static_cast<uint64_t>(i));
            const Position position{width * quern_random_unit(bits),
                                    (height - 4) * quern_random_unit(quern_random(bits, 1))};
            const Velocity velocity{4 * quern_random_signed(quern_random(bits, 2)), 0.25f};
            app.spawn(rock, quern::instances(app).override(&position).override(&velocity));
        }
        app.destroy_prefab(rock);
        app.create(Position{width / 2.0f, height - 1}, Velocity{0, 0}, Glyph{'A'}, Health{3}, Gun{0})
            .set_name("ship");
    }

    Keys &keys() { return *app.resource<Keys>(); } /* the next frame reads them */
    int score() { return app.resource<Score>()->rocks; }
    uint64_t rock_count() const { return living_rocks_.count(); }
    const quern::query<const Position> &rocks() const { return living_rocks_; }
    bool is_on() const { return app.find("ship").is_alive(); }

    /* Prints the field and the score. */
    void print()
    {
        std::array<std::string, height> field;
        field.fill(std::string(width, ' '));
        for (auto [entity, position, glyph] : glyphs_) {
            const int x = static_cast<int>(position.x), y = static_cast<int>(position.y);
            if (x >= 0 && x < width && y >= 0 && y < height)
                field[static_cast<size_t>(y)][static_cast<size_t>(x)] = static_cast<char>(glyph.symbol);
        }
        for (const std::string &line : field)
            std::cout << '|' << line << "|\n";
        std::cout << "score " << score() << ", " << rock_count() << " rocks left\n";
    }

  private:
    /* Declared after the app, so that they end before it. */
    quern::grid<&Position::x, &Position::y> rocks_{app, quern::grid_name{"rocks"}, quern::cell_size{2},
                                                   quern::with<Rock>{}};
    quern::query<const Position, const Glyph> glyphs_{app};
    quern::query<const Position> living_rocks_{app, quern::with<Rock>{}};

    static quern_schedule_def schedule_def(uint64_t shuffle_seed)
    {
        quern_schedule_def def{};
        def.phases[0] = "simulation";
        def.shuffle_seed = shuffle_seed;
        return def;
    }
    static quern_jobs_def jobs_def(uint32_t thread_count)
    {
        quern_jobs_def def{};
        def.thread_count = thread_count;
        return def;
    }

    void add_ship_systems()
    {
        /* The ship obeys the keys. The resource is declared, so frames depend on nothing hidden. */
        app.add(
            "steer",
            [](Velocity &velocity, quern::context context) {
                const Keys &keys = context.resource<const Keys>();
                velocity.x = 16 * static_cast<float>(keys.right - keys.left);
                velocity.y = 8 * static_cast<float>(keys.down - keys.up);
            },
            quern::with<Gun>{}, quern::reads_resource<Keys>{});
        app.add(
            "fire",
            [](Gun &gun, const Position &position, quern::seconds seconds, quern::context context) {
                gun.wait_seconds -= seconds;
                if (!context.resource<const Keys>().fire || gun.wait_seconds > 0) return;
                gun.wait_seconds = 0.25f;
                context.commands()
                    .create(Position{position.x, position.y - 1}, Velocity{0, -16}, Glyph{'|'},
                            Lifetime{0.7f})
                    .add<Bullet>();
            },
            quern::reads_resource<Keys>{});
    }

    void add_movement()
    {
        app.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
            position.x += velocity.x * seconds;
            position.y += velocity.y * seconds;
            if (position.x < 0) position.x += width;
            if (position.x >= width) position.x -= width;
            if (position.y < 0) position.y += height;
            if (position.y >= height) position.y -= height;
        });
        app.add(
            "follow",
            [](Position &position, const Offset &offset, quern::up<Position> parent) {
                position = {parent->x + offset.x, parent->y + offset.y};
            },
            quern::levels{app.parent()});
    }

    void add_damage()
    {
        /* Bullets break rocks. Several may hit one rock in one step: the sync point adds up the losses. */
        app.add(
            "hit",
            [this](quern_entity bullet, const Position &position, quern::context context,
                   quern::commands commands) {
                const auto rock = rocks_.in(context).nearest(position, 1);
                if (!rock) return;
                commands.accumulate(rock.entity, Health{-1});
                commands.destroy(bullet);
            },
            quern::with<Bullet>{}, quern::searches{rocks_});
        /* Rocks break the ship, and themselves. */
        app.add(
            "crash",
            [this](quern_entity ship, const Position &position, quern::context context,
                   quern::commands commands) {
                for (auto rock : rocks_.in(context).radius(position, 1)) {
                    commands.accumulate(ship, Health{-1});
                    commands.accumulate(rock.entity, Health{-1});
                }
            },
            quern::with<Gun>{}, quern::searches{rocks_});
        app.add("expire", [](quern_entity entity, Lifetime &lifetime, quern::seconds seconds,
                             quern::commands commands) {
            lifetime.seconds -= seconds;
            if (lifetime.seconds <= 0) commands.destroy(entity);
        });
        /* A reaction to health that was set. A rock takes its ore with it. */
        app.add(
            "bury",
            [](quern_entity entity, const Health &health, quern::commands commands,
               quern::emitter<Broken> broken) {
                if (health.points > 0) return;
                commands.destroy(entity);
                broken.emit({entity});
            },
            quern::reacts_to{QUERN_REACT_SET});
        app.add_events(
            "count_broken",
            [](const Broken &, quern::context context) { context.resource<Score>().rocks++; },
            quern::writes_resource<Score>{}, quern::flags{QUERN_SYSTEM_SERIAL});
    }

    quern_prefab make_rock()
    {
        quern::blueprint plan(app);
        const auto rock = plan.root();
        rock.set(Position{0, 0}).set(Velocity{0, 1}).set(Glyph{'O'}).set(Health{1}).add<Rock>();
        rock.child().set(Position{0, 0}).set(Offset{1, 0}).set(Glyph{'*'});
        return plan.create();
    }
};

#endif
