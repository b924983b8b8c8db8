/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "modules.h"

namespace {

/* As large as a string, and without hooks. */
struct State {
    const void *words[sizeof(std::string) / sizeof(void *)];
};
/* As modules_main.cpp, except what it means. */
struct Plain {
    int count;
};

} // namespace

quern_component other_component(quern::world &world)
{
    return world.component<Label>();
}

const void *other_hook()
{
    return reinterpret_cast<const void *>(
        quern::detail::define<Label, quern_component_def>().hooks.destroy);
}

std::string other_read(quern::world &world, quern_entity entity)
{
    quern::must(world.emit(Label{"event"}));
    world.resource<Label>()->text += "+other";
    world.commands().set(entity, Label{world.get<Label>(entity)->text + ", and a text of the other file"});
    quern::must(world.flush());
    return world.get<Label>(entity)->text;
}

other_types other_register(quern::world &world)
{
    other_types types;
    quern_component component;
    quern_resource resource;
    quern_event event;
    types.plain = quern::detail::find_component<Plain>(world, &component);
    types.resource = quern::detail::find_resource<State>(world, &resource);
    types.event = quern::detail::find_event<State>(world, &event);
    types.component = quern::detail::find_component<State>(world, &component);
    types.message = quern_error_message();
    return types;
}
