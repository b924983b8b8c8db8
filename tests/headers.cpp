/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The public headers, used from C++. */

#include <quern/quern.h>

#include <cstdio>

struct Position {
    float x, y;
};

static int fail(const char *what)
{
    std::fprintf(stderr, "%s: %s\n", what, quern_error_message());
    return 1;
}

int main()
{
    quern_world *world = nullptr;
    quern_component position;
    quern_entity entity;
    if (quern_world_create(nullptr, &world) != QUERN_OK) return fail("world");
    if (QUERN_COMPONENT_REGISTER(world, Position, &position) != QUERN_OK) return fail("register");
    if (quern_entity_create(world, &entity) != QUERN_OK) return fail("create");
    Position value = {1.0f, 2.0f};
    if (quern_entity_add(world, entity, position, &value) != QUERN_OK) return fail("add");
    auto *stored = static_cast<const Position *>(quern_entity_get(world, entity, position));
    if (stored == nullptr || stored->y < 2.0f) return fail("get");
    quern_world_destroy(world);
    return 0;
}
