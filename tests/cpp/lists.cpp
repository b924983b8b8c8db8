/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Lists and strings as members of components. */

#include "expect.h"

#include <quern/saves.hpp>

#include <string>
#include <utility>

namespace game {
struct Item {
    uint32_t kind, count;
    quern_entity owner;
};
struct Bag {
    quern::list<Item> items;
    quern::string label;
    quern::list<float> scores;
    quern::list<quern::string> names;
    quern::list<quern_entity> friends;
    uint32_t gold = 5;
};
struct Secret {
    quern::string label;
    std::string owned; /* not described */
};
struct Door {
    quern::string label;
    uint32_t number = 0;
    int descriptor = -1; /* not described, as small as padding */
};
struct Gate {
    uint16_t number = 0;
    uint16_t hidden[2] = {1, 1}; /* not described, but no padding */
    uint16_t width = 0;
    quern::string label;
};
} // namespace game

QUERN_DESCRIBE(game::Item, kind, count, owner);
QUERN_DESCRIBE(game::Bag, items, label, scores, names, friends, gold);
QUERN_DESCRIBE(game::Secret, label);
QUERN_DESCRIBE(game::Door, label, number);
QUERN_DESCRIBE(game::Gate, number, width, label);

using game::Bag;
using game::Item;

static Bag filled()
{
    Bag bag;
    quern::must(bag.items.push_back({3, 4, {}}));
    quern::must(bag.items.append({{5, 6, {}}, {7, 8, {}}}));
    quern::must(bag.label.assign("hello"));
    quern::must(bag.label.append(", world"));
    quern::must(bag.names.push_back(quern::string("Ann")));
    quern::must(bag.names.push_back(quern::string("Bob")));
    quern::must(bag.scores.resize(3));
    return bag;
}

static void check_lists()
{
    Bag bag = filled();
    const Bag copy = bag;
    EXPECT(copy.items.data() == bag.items.data());
    for (Item &item : bag.items.write())
        item.kind += 100;
    EXPECT(copy.items[0].kind == 3 && bag.items[0].kind == 103 && bag.items.back().kind == 107);
    quern::must(bag.items.remove(0));
    quern::must(bag.items.insert(1, {1, 1, {}}));
    quern::must(bag.items.remove_swap(0));
    EXPECT(bag.items.size() == 2 && bag.items[0].kind == 107 && bag.items[1].kind == 1);
    quern::must(bag.items.set(1, {2, 2, {}}));
    quern::must(bag.items.pop_back());
    EXPECT(result_of([&] { return bag.items.set(1, {2, 2, {}}); }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(result_of([&] { return bag.items.remove(1, 1); }) == QUERN_ERROR_INVALID_ARGUMENT);
    uint32_t sum = 0;
    for (const Item &item : copy.items)
        sum += item.count;
    EXPECT(sum == 18 && !copy.items.empty() && copy.items.front().count == 4);
    EXPECT(copy.label == "hello, world" && copy.label.view().substr(7) == "world");
    EXPECT(copy.label != "other" && copy.label.size() == 12);
    EXPECT(copy.names[1] == "Bob");
    quern::must(bag.names.write()[1].assign("Eve"));
    EXPECT(copy.names[1] == "Bob" && bag.names[1] == "Eve");
    bag.label.clear();
    EXPECT(bag.label.empty() && std::string(bag.label.c_str()).empty());
    Bag moved = std::move(bag);
    bag = moved;
    moved = copy;
    EXPECT(moved.items.size() == 3 && bag.items.size() == 1);
    bag.items.clear();
    quern::must(bag.items.reserve(10));
    EXPECT(bag.items.empty());
}

static void check_strings()
{
    quern::string text("text"), same("text");
    EXPECT(text == same && !(text != same) && text == "text" && text != quern::string("other"));
    quern::must(text.append(std::string_view()));
    quern::must(text.append(""));
    EXPECT(text == "text");
    /* sizes of which the lower 32 bits are small */
    const std::string_view huge("text", (size_t{1} << 32) + 1);
    EXPECT(result_of([&] { return text.append(huge); }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(result_of([&] { return text.assign(huge); }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(text == "text");
    quern::must(text.assign(std::string_view()));
    EXPECT(text.empty());
    text = same;
    quern::must(same.append("s"));
    EXPECT(text == "text" && same == "texts");
    text = std::move(same);
    EXPECT(text == "texts");
}

/* An element that is set may be one of a list that shares its block, which the call gives up. */
static void check_own_elements()
{
    quern::list<quern::string> names;
    quern::must(names.push_back(quern::string("Ann")));
    quern::must(names.push_back(quern::string("Bob")));
    {
        quern::list<quern::string> other = names;
        const quern::string &first = names[0];
        quern::must(names.set(1, first));
        EXPECT(other[1] == "Bob" && names[1] == "Ann");
    }
    quern::must(names.set(0, names[0]));
    EXPECT(names[0] == "Ann");
}

static void check_worlds()
{
    quern::world world, other;
    EXPECT(world && other);
    quern_entity entity{}, second{};
    quern::must(quern_entity_create(world, &second));
    quern::must(quern_entity_create(world, &entity));
    Bag bag = filled();
    quern::must(bag.friends.push_back(second));
    quern::must(world.set(entity, bag));
    quern::must(bag.label.assign("changed"));
    EXPECT(world.get<Bag>(entity)->label == "hello, world");
    /* fields cover the type, so its hooks are no obstacle for archives */
    quern_byte_buffer bytes = {};
    quern_entity loaded[2] = {};
    quern_load_def def = {};
    def.entities = loaded;
    def.entity_capacity = 2;
    quern::must(quern_world_save(world, quern_sink_bytes(&bytes), nullptr));
    quern::must(other.component<Bag>().bits != 0 ? QUERN_OK : QUERN_ERROR_UNKNOWN_COMPONENT);
    quern::must(quern_world_load(other, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, nullptr));
    const Bag *found = other.get<Bag>(loaded[1]);
    EXPECT(found != nullptr && found->label == "hello, world" && found->items.size() == 3);
    EXPECT(found->names[1] == "Bob" && found->gold == 5 && found->friends[0].bits == loaded[0].bits);
    EXPECT(quern_world_hash(other) == quern_world_hash(world));
    quern::must(quern_entity_set_text(world, entity, "game::Bag.items[1].kind", "77"));
    EXPECT(world.get<Bag>(entity)->items[1].kind == 77 && bag.items[1].kind == 5);
    quern_byte_buffer_release(&bytes);
    quern::must(world.set(entity, game::Secret{}));
    EXPECT(quern_world_save(world, quern_sink_bytes(&bytes), nullptr) == QUERN_ERROR_INVALID_ARGUMENT);
    quern_byte_buffer_release(&bytes);
}

/* Only described fields come from an archive. */
static void check_undescribed_members()
{
    quern::world world, other, third;
    quern_entity entity{}, loaded{};
    quern_byte_buffer bytes = {};
    quern_load_def def = {};
    def.entities = &loaded;
    def.entity_capacity = 1;
    game::Door door;
    quern::must(door.label.assign("front"));
    door.number = 3;
    door.descriptor = 77;
    quern::must(quern_entity_create(world, &entity));
    quern::must(world.set(entity, door));
    quern::must(quern_world_save(world, quern_sink_bytes(&bytes), nullptr));
    quern::must(other.component<game::Door>().bits != 0 ? QUERN_OK : QUERN_ERROR_UNKNOWN_COMPONENT);
    quern::must(quern_world_load(other, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, nullptr));
    const game::Door *found = other.get<game::Door>(loaded);
    EXPECT(found != nullptr && found->label == "front" && found->number == 3 && found->descriptor == -1);
    EXPECT(world.get<game::Door>(entity)->descriptor == 77);
    bytes.size_bytes = 0;
    quern::must(quern_entity_create(third, &entity));
    quern::must(third.set(entity, game::Gate()));
    EXPECT(quern_world_save(third, quern_sink_bytes(&bytes), nullptr) == QUERN_ERROR_INVALID_ARGUMENT);
    quern_byte_buffer_release(&bytes);
}

int main()
{
    check_lists();
    check_strings();
    check_own_elements();
    check_undescribed_members();
    check_worlds();
    std::puts("all lists work");
    return 0;
}
