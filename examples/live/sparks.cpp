// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
// The fountain of sparks.c in C++: the same types, systems and hash.
#include <quern/kit/live.hpp>
#include <quern/kit/random.h>

static const float gravity = 9.81F; // metres per second per second
static const uint32_t sparks_per_frame = 4;

struct Position {
    float x, y; // metres; the fountain is at 0, 0
};
QUERN_DESCRIBE(Position, x, y);

struct Velocity {
    float x, y; // metres per second
};
QUERN_DESCRIBE(Velocity, x, y);

struct Spark {
    float seconds; // until it goes out
};
QUERN_DESCRIBE(Spark, seconds);

// A global variable would start anew in each version.
struct Fountain {
    uint64_t count; // of all sparks so far
};
QUERN_DESCRIBE(Fountain, count);

static quern_result load(quern_live_module *raw)
{
    quern::live_module module(raw);
    module.component<Position>();
    module.component<Velocity>();
    module.component<Spark>();
    module.resource<Fountain>();
    module.add_once(
        "launch",
        [](quern::context context) {
            auto &fountain = context.resource<Fountain>();
            for (uint32_t i = 0; i < sparks_per_frame; i++) {
                const uint64_t random = quern_random(1, fountain.count++);
                const float side = 3 * quern_random_signed(random),
                            up = 9 + 3 * quern_random_unit(quern_random(random, 1));
                context.commands().create(Position{0, 0}, Velocity{side, up}, Spark{2.5F});
            }
        },
        quern::writes_resource<Fountain>{});
    module.add("fall", [](Velocity &velocity, quern::seconds seconds) { velocity.y -= gravity * seconds; });
    module.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
        position.x += velocity.x * seconds;
        position.y += velocity.y * seconds;
    });
    module.add("burn",
               [](Spark &spark, quern_entity entity, quern::commands commands, quern::seconds seconds) {
                   spark.seconds -= seconds;
                   if (spark.seconds <= 0) commands.destroy(entity);
               });
    return module.result();
}

QUERN_LIVE_MODULE(load, nullptr)
