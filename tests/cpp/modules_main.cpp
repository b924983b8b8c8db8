/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* One type in two source files is one component, also if the files belong to a program and a shared library, in which its
 * hooks are at other addresses. Two types of one name are refused. */

#include "modules.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct State {
    std::string text;
};
struct Plain {
    int number;
};

void expect(bool is_right, const char *what)
{
    if (is_right) return;
    std::fprintf(stderr, "%s: %s\n", what, quern_error_message());
    std::exit(EXIT_FAILURE);
}

void one_type_is_one_component(bool is_shared)
{
    quern::world world;
    const auto own =
        reinterpret_cast<const void *>(quern::detail::define<Label, quern_component_def>().hooks.destroy);
    expect((own != other_hook()) == is_shared, "the hooks of a shared library are its own");
    const quern_entity entity = world.create(Label{"a text that is too long for the object itself"});
    expect(world.component<Label>().bits == other_component(world).bits, "the component is the same");
    world.resource<Label>()->text = "main";
    const quern_event event = world.event<Label>();
    expect(other_read(world, entity) ==
               "a text that is too long for the object itself, and a text of the other file",
           "both files read and write the component");
    expect(world.resource<Label>()->text == "main+other" && world.event<Label>().bits == event.bits,
           "resources and events are the same");
    expect(quern_type_count(world, QUERN_TYPE_COMPONENT) == 1 &&
               quern_type_count(world, QUERN_TYPE_RESOURCE) == 1 &&
               quern_type_count(world, QUERN_TYPE_EVENT) == 1,
           "nothing is registered twice");
    /* the definition of the other file, as C registers it */
    const auto def = quern::detail::define<Label, quern_component_def>();
    quern_component component;
    expect(quern_component_register(world, &def, &component) == QUERN_OK &&
               component.bits == world.component<Label>().bits,
           "a registration is repeated");
}

void other_types_of_a_name_are_refused()
{
    quern::world world;
    const quern_entity entity = world.create(State{"mine"}, Plain{3});
    world.resource<State>()->text = "mine";
    (void)world.event<State>();
    const other_types types = other_register(world);
    expect(types.component == QUERN_ERROR_LAYOUT_MISMATCH &&
               types.resource == QUERN_ERROR_LAYOUT_MISMATCH &&
               types.event == QUERN_ERROR_LAYOUT_MISMATCH && types.plain == QUERN_ERROR_LAYOUT_MISMATCH,
           "the other type is refused");
    expect(types.message.find("'State'") != std::string::npos &&
               types.message.find("with hooks") != std::string::npos &&
               types.message.find("without hooks") != std::string::npos &&
               types.message.find("quern::name") != std::string::npos,
           types.message.c_str());
    expect(world.get<State>(entity)->text == "mine" && world.resource<State>()->text == "mine" &&
               world.get<Plain>(entity)->number == 3,
           "nothing changed");
}

/* Identities are not addresses: a world at the address of another one has its own components. */
void worlds_do_not_share_handles()
{
    for (int i = 0; i < 50; i++) {
        quern::world world, other;
        if (i % 2 == 0) (void)world.component<Plain>();
        const quern_component first = world.component<Label>(), second = world.component<Plain>(),
                              third = other.component<Plain>();
        expect(std::strcmp(quern_component_name(world, first), "Label") == 0 &&
                   std::strcmp(quern_component_name(world, second), "Plain") == 0 &&
                   std::strcmp(quern_component_name(other, third), "Plain") == 0,
               "each world has its handles");
    }
}

} // namespace

int main(int argument_count, char **)
{
    one_type_is_one_component(argument_count > 1);
    other_types_of_a_name_are_refused();
    worlds_do_not_share_handles();
    std::printf("types agree\n");
}
