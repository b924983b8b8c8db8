/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A module that unload_main.cpp loads, in several versions (VERSION). Each defines the same types again: by the C++ header,
 * with strings, and by definitions of C, with hooks, texts and values in static memory. The third version has another
 * layout. */
#include <quern/quern.hpp>

#include <cstdio>
#include <string>

namespace game {

struct Name {
#if VERSION == 3
    int rank;
#endif
    std::string text;
};
struct Said {
    std::string text;
};
struct Score {
    std::string best;
    int points;
};

} // namespace game

namespace {

#if VERSION == 3
struct Hull {
    double points;
    uint16_t kind;
};
#else
struct Hull {
    int32_t kind;
    float points;
};
#endif

char unit_text[8] = "hp";
char field_texts[2][8] = {"kind", "points"};
char value_text[8] = "ship";
const quern_named_value kinds[] = {{value_text, 1}, {nullptr, 0}};
const Hull hull_default = {};
int user_data = VERSION;

void construct(void *values, uint32_t count, void *data)
{
    for (uint32_t i = 0; i < count; i++) {
        Hull hull{};
        hull.points = static_cast<decltype(hull.points)>(*static_cast<int *>(data));
        static_cast<Hull *>(values)[i] = hull;
    }
}

template <typename Def> Def define_hull(const char *name)
{
    Def def{};
    def.name = name;
    def.type_name = "Hull";
    def.size_bytes = sizeof(Hull);
    def.alignment_bytes = alignof(Hull);
    def.fields[0].name = field_texts[0];
    def.fields[0].type = VERSION == 3 ? QUERN_FIELD_U16 : QUERN_FIELD_I32;
    def.fields[0].offset_bytes = static_cast<uint32_t>(offsetof(Hull, kind));
    def.fields[0].values = kinds;
    def.fields[1].name = field_texts[1];
    def.fields[1].type = VERSION == 3 ? QUERN_FIELD_F64 : QUERN_FIELD_F32;
    def.fields[1].offset_bytes = static_cast<uint32_t>(offsetof(Hull, points));
    def.fields[1].unit = unit_text;
    def.hooks.construct = construct;
    def.hooks.user_data = &user_data;
    return def;
}

#if VERSION == 3
struct old_name {
    std::string text;
};

void migrate_name(void *, void *targets, const void *sources, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        new (static_cast<game::Name *>(targets) + i)
            game::Name{static_cast<int>(i), static_cast<const old_name *>(sources)[i].text};
}
#endif

void combine(void *value, const void *accumulated, void *data)
{
    static_cast<Hull *>(value)->points += static_cast<const Hull *>(accumulated)->points;
    *static_cast<int *>(data) += 0;
}

bool is_ok(quern_result result)
{
    if (result != QUERN_OK) std::printf("version %d: %s\n", VERSION, quern_error_message());
    return result == QUERN_OK;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int module_enter(quern_world *world)
{
    using namespace quern::detail;
    quern_component name, hull = quern_component_find(world, "Hull");
    quern_event said, hit = quern_event_find(world, "Hit");
    quern_resource score, flag = quern_resource_find(world, "Flag");
    quern_combine add;
    quern_redefine_def how{};
#if VERSION == 3
    how.migrate = migrate_name;
#endif
    auto hull_def = define_hull<quern_component_def>("Hull");
    hull_def.default_value = &hull_default;
    const auto hit_def = define_hull<quern_event_def>("Hit");
    const auto flag_def = define_hull<quern_resource_def>("Flag");
    const quern_combine_def add_def = {"add", combine, &user_data};
    bool good = is_ok(redefine_component<game::Name>(world, &how, nullptr, &name)) &&
                is_ok(redefine_event<game::Said>(world, nullptr, nullptr, &said)) &&
                is_ok(redefine_resource<game::Score>(world, nullptr, nullptr, &score));
    if (VERSION == 1)
        good = good && is_ok(quern_component_register(world, &hull_def, &hull)) &&
               is_ok(quern_event_register(world, &hit_def, &hit)) &&
               is_ok(quern_resource_register(world, &flag_def, &flag)) &&
               is_ok(quern_combine_register(world, &add_def, &add));
    else
        good = good && is_ok(quern_component_redefine(world, hull, &hull_def, nullptr, nullptr)) &&
               is_ok(quern_event_redefine(world, hit, &hit_def, nullptr, nullptr)) &&
               is_ok(quern_resource_redefine(world, flag, &flag_def, nullptr, nullptr)) &&
               is_ok(quern_combine_redefine(world, &add_def, &add));
    return good ? 0 : 1;
}

/* Makes values of all types: entities, waiting commands if there may be some, accumulated values, events. */
extern "C" __attribute__((visibility("default"))) int module_fill(quern_world *world, int leaves_commands)
{
    const quern_component list[] = {quern_component_find(world, "game::Name"),
                                    quern_component_find(world, "Hull")};
    const quern_event said = quern_event_find(world, "game::Said"), hit = quern_event_find(world, "Hit");
    game::Name name{};
    name.text = "a name that is longer than a string without memory";
    const game::Said words{name.text};
    Hull hull = {};
    hull.kind = 1;
    const void *const values[] = {&name, &hull};
    bool good = true;
    for (int i = 0; i < 300 && good; i++) {
        quern_entity entity;
        good = is_ok(quern_entity_create_with(world, list, values, 1 + i % 2, &entity));
        if (!good || !leaves_commands) continue;
        quern_commands *commands = quern_world_commands(world);
        good = is_ok(quern_commands_set(commands, entity, list[0], &name)) &&
               (i % 2 == 0 || is_ok(quern_commands_set(commands, entity, list[1], &hull)));
        quern_combine add;
        const quern_combine_def add_def = {"add", combine, &user_data};
        if (good && i % 2 == 1)
            good = is_ok(quern_combine_redefine(world, &add_def, &add)) &&
                   is_ok(quern_commands_accumulate(commands, entity, list[1], &hull, add));
    }
    quern_resource score;
    good = good && is_ok(quern::detail::find_resource<game::Score>(world, &score));
    if (good) static_cast<game::Score *>(quern_resource_get(world, score))->best = name.text;
    return good && is_ok(quern_world_emit(world, said, &words, 1)) &&
                   is_ok(quern_world_emit(world, hit, &hull, 1))
               ? 0
               : 1;
}
