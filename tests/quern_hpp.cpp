/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The C++ interface, in C++17 and C++20, without exceptions and RTTI, and with exceptions. */

#include <quern/quern.hpp>

/* Functions of a program that the header must not call, although they are found for arguments of these types. */
template <typename... A> quern_result check(A &&...);
template <typename... A> bool append(A &&...);
template <typename... A> void run_view(A &&...);
template <typename T, typename... A> T &captured(A &&...);
template <typename... T, typename... A> quern_result find_component(A &&...);
template <typename... T, typename... A> quern_result find_resource(A &&...);
template <typename... T, typename... A> quern_result find_event(A &&...);
template <typename... T, typename... A> quern_result add_lookup(A &&...);
template <typename... T, typename... A> quern_result add_resource(A &&...);
template <typename... T, typename... A> quern_result add_event(A &&...);
template <typename... T, typename... A> quern_result list_components(A &&...);

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>

namespace game {

struct Position {
    float x, y;
};
struct Velocity {
    float x, y;
};
struct Target {
    quern_entity entity;
};
struct Frozen {};
struct Hit {
    quern_entity victim;
    int damage;
};
struct Score {
    int points = 7;
};

/* Counts its objects, so that a missing constructor or destructor shows. */
struct Name {
    static inline int living = 0;
    std::string text;
    Name(const char *from = "none") : text(from) { living++; }
    Name(const Name &other) : text(other.text) { living++; }
    Name(Name &&other) noexcept : text(std::move(other.text)) { living++; }
    Name &operator=(const Name &) = default;
    ~Name() { living--; }
};

struct Hull {
    int strength = 100;
};
struct Ship {
    int crew;
};

/* Cannot be copied. */
struct Handle {
    std::unique_ptr<int> value;
};

/* Cannot be copied, and has no value without an argument. It refers to itself, as short strings do, so that one that was
 * moved as bytes shows when it is destroyed. */
struct Token {
    static inline int living = 0, misplaced = 0;
    int number;
    const Token *self = this;
    explicit Token(int given) : number(given) { living++; }
    Token(Token &&other) noexcept : number(std::exchange(other.number, 0)) { living++; }
    ~Token()
    {
        living--;
        misplaced += self != this;
    }
};

/* Has a name of its own; Impostor claims the same. */
struct Renamed {
    std::string text;
};
struct Impostor {
    std::string text;
};

/* Notes the addresses of its objects: each is constructed before it is used or destroyed, and destroyed once. */
template <bool can_copy> struct Tracked {
    static inline std::set<const void *> living;
    static inline int mistakes = 0;
    int number;
    explicit Tracked(int given) : number(given) { begin(); }
    Tracked(const Tracked &other) : number(other.number)
    {
        other.use();
        begin();
    }
    Tracked(Tracked &&other) noexcept : number(std::exchange(other.number, -1))
    {
        other.use();
        begin();
    }
    Tracked &operator=(const Tracked &) = delete;
    ~Tracked() { mistakes += living.erase(this) != 1; }
    void begin() const { mistakes += !living.insert(this).second; }
    void use() const { mistakes += living.count(this) != 1; }
};
template <> inline Tracked<false>::Tracked(const Tracked<false> &) = delete;

/* Components that C registers, and their names in C++. */
struct quern_local3 {
    float x, y, z;
};
using Local = quern_local3;
struct Fields {
    int first, second;
};
struct Table {
    float cells[2][3];
    struct {
        bool is_open;
        quern_entity owner;
    } slots[2];
};

} // namespace game

template <> inline constexpr auto quern::name<game::Renamed> = "a name of its own";
template <> inline constexpr auto quern::name<game::Impostor> = "a name of its own";

QUERN_DESCRIBE(game::Fields, first, second);
QUERN_DESCRIBE(game::Target, entity);
QUERN_DESCRIBE(game::Table, cells[0], cells[1], slots[1].is_open, slots[1].owner);
QUERN_REQUIRE(game::Ship, game::Position, game::Hull);

using namespace game;

static int check_count;

static void expect_at(bool is_right, const char *what, int line)
{
    check_count++;
    if (is_right) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, what, quern_error_message());
    std::exit(EXIT_FAILURE);
}

#define EXPECT(...) expect_at((__VA_ARGS__), #__VA_ARGS__, __LINE__)

static bool begins(const char *text, const char *beginning)
{
    return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

/* ---------------------------------------------------------------------------------------- entities */

static void values_are_stored_by_type()
{
    quern::world world;
    const quern_entity entity = world.create(Position{1, 2}, Velocity{3, 4}, Frozen{});
    EXPECT(!quern_entity_is_null(entity) && world.is_alive(entity));
    EXPECT(world.get<Position>(entity)->y == 2 && world.get<const Velocity>(entity)->x == 3);
    EXPECT(world.has<Frozen>(entity) && !world.has<Score>(entity));
    EXPECT(world.set(entity, Position{5, 6}) == QUERN_OK && world.get<Position>(entity)->x == 5);
    EXPECT(world.add<Score>(entity) == QUERN_OK && world.get<Score>(entity)->points == 7);
    EXPECT(world.set(entity, Score{9}) == QUERN_OK && world.get<Score>(entity)->points == 9);
    EXPECT(world.remove<Score>(entity) == QUERN_OK && world.get<Score>(entity) == nullptr);
    EXPECT(world.set(world.create(), Frozen{}) == QUERN_OK);
    EXPECT(world.destroy(entity) == QUERN_OK && !world.is_alive(entity));
}

static void types_have_their_cpp_names()
{
    quern::world world;
    EXPECT(world.component<Position>().bits == quern_component_find(world, "game::Position").bits);
    EXPECT(world.component<int>().bits == quern_component_find(world, "int").bits);
    EXPECT(world.component<Position>().bits == world.component<Position>().bits);
    EXPECT(quern_type_count(world, QUERN_TYPE_COMPONENT) == 2);
}

/* Returns the result of a call, also if the call throws. */
template <typename F> static quern_result result_of(F &&call)
{
#ifdef QUERN_CPP_EXCEPTIONS
    try {
        return call();
    } catch (const quern::error &error) {
        return error.code();
    }
#else
    return call();
#endif
}

static bool message_has(const char *text)
{
    return std::strstr(quern_error_message(), text) != nullptr;
}

static void types_have_names_of_their_own()
{
    quern::world world;
    const quern_entity entity = world.create(Renamed{"mine"});
    EXPECT(world.component<Renamed>().bits == quern_component_find(world, "a name of its own").bits);
    std::string text;
    quern::must(quern::query<Renamed>(world).each([&](const Renamed &value) { text = value.text; }));
    EXPECT(text == "mine");
    EXPECT(result_of([&] { return world.set(entity, Impostor{"not mine"}); }) ==
           QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(message_has("'a name of its own'") && message_has("'game::Renamed'") &&
           message_has("'game::Impostor'"));
    EXPECT(result_of([&] { return world.commands().set(entity, Impostor{"not mine"}); }) ==
           QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(message_has("commands.set") && message_has("'game::Impostor'"));
    EXPECT(world.flush() == QUERN_OK && world.get<Renamed>(entity)->text == "mine");
    world.resource<Renamed>()->text = "resource";
    EXPECT(result_of([&] {
               return world.resource<Impostor>() != nullptr ? QUERN_OK : QUERN_ERROR_LAYOUT_MISMATCH;
           }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(message_has("resource") && message_has("'game::Impostor'"));
    quern::schedule schedule(world);
    EXPECT(result_of([&] {
               return schedule.add_once(
                   "watch", [](quern::context) {}, quern::if_changed<Impostor>{});
           }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(world.event<Renamed>().bits != 0);
    EXPECT(result_of([&] { return world.emit(Impostor{"event"}); }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(message_has("event") && message_has("'game::Impostor'"));
}

/* A definition of C counts only if values of the C++ type can be its values. */
static void components_of_c_must_fit()
{
    quern::world world;
    quern_component component;
    quern_component_def def{};
    def.name = "game::Name"; /* has hooks in C++ */
    def.size_bytes = sizeof(Name);
    def.alignment_bytes = alignof(Name);
    EXPECT(quern_component_register(world, &def, &component) == QUERN_OK);
    const quern_entity entity = world.create();
    EXPECT(result_of([&] { return world.set(entity, Name("text")); }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(message_has("without hooks") && message_has("with hooks"));
    EXPECT(result_of([&] { return world.commands().set(entity, Name("text")); }) ==
           QUERN_ERROR_LAYOUT_MISMATCH);
    def.name = "game::Velocity"; /* less aligned than in C++ */
    def.size_bytes = sizeof(Velocity);
    def.alignment_bytes = 1;
    EXPECT(quern_component_register(world, &def, &component) == QUERN_OK);
    EXPECT(result_of([&] { return world.set(entity, Velocity{1, 2}); }) == QUERN_ERROR_LAYOUT_MISMATCH);
    def = {};
    def.name = "game::Fields"; /* with other fields */
    def.size_bytes = sizeof(Fields);
    def.alignment_bytes = alignof(Fields);
    def.fields[0] = {"second", QUERN_FIELD_I32, 0, 1};
    EXPECT(quern_component_register(world, &def, &component) == QUERN_OK);
    EXPECT(result_of([&] { return world.set(entity, Fields{1, 2}); }) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(Name::living == 0);
}

/* In frames, a type that only C registered is found by its name. */
static void types_of_c_are_found_in_frames()
{
    quern::world world;
    quern::schedule schedule(world);
    quern_component component;
    quern_component_def def{};
    def.name = "game::Position";
    def.size_bytes = sizeof(Position);
    def.alignment_bytes = alignof(Position);
    EXPECT(quern_component_register(world, &def, &component) == QUERN_OK);
    const quern_entity entity = world.create();
    const Position start{5, 6};
    EXPECT(quern_entity_set(world, entity, component, &start) == QUERN_OK);
    quern_system_def system{};
    float seen = 0;
    system.name = "look";
    system.lookups[0].component = component;
    system.user_data = &seen;
    static quern_entity looked_at;
    looked_at = entity;
    system.begin = [](quern_context *raw) {
        const quern::context context(raw);
        const Position *position = context.lookup<Position>(looked_at);
        if (position == nullptr || !context.has<Position>(looked_at)) return;
        *static_cast<float *>(quern_context_user_data(raw)) = position->y;
        (void)context.commands().set(looked_at, Position{7, 8});
    };
    EXPECT(quern_schedule_add_system(schedule, &system, nullptr) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK && seen == 6);
    EXPECT(world.get<Position>(entity)->y == 8 && world.component<Position>().bits == component.bits);
    EXPECT(quern__world_find_type(world, QUERN_TYPE_COMPONENT, quern::detail::type_id<Position>()) ==
           component.bits); /* the next search is short */
}

static void columns_are_named_by_aliases()
{
    quern::world world;
    quern_component component;
    EXPECT(QUERN_COMPONENT_REGISTER(world, &component, Local) == QUERN_OK);
    const quern_component other = world.component<quern_local3>(); /* "Local" is the name, not the type */
    const quern_entity entity = world.create();
    const Local start{1, 2, 3};
    EXPECT(quern_entity_set(world, entity, component, &start) == QUERN_OK);
    EXPECT(world.set(entity, Local{4, 5, 6}) == QUERN_OK && other.bits != component.bits);
    quern_query_def def{};
    def.terms[0] = quern_term_read(component);
    def.terms[1] = quern_term_write(other);
    quern_query *query;
    EXPECT(quern_query_create(world, &def, &query) == QUERN_OK);
    quern_query_iterator it = quern_query_iterate(query);
    float sum = 0;
    while (quern_query_next(&it)) {
        const auto *first = QUERN_COLUMN(&it.view, 0, const Local);
        const auto *second = QUERN_COLUMN(&it.view, 0, const game::quern_local3);
        auto *third = QUERN_COLUMN(&it.view, 1, Local);
        auto *fourth = QUERN_COLUMN_ROWS(&it.view, 1, Local);
        sum += first->x + second->y + third->z + fourth->z;
    }
    quern_query_destroy(query);
    EXPECT(sum == 1 + 2 + 6 + 6);
}

static void described_fields_are_registered()
{
    quern::world world;
    quern_type_info info;
    EXPECT(quern_component_get_info(world, world.component<Target>(), &info) == QUERN_OK);
    EXPECT(info.field_count == 1 && info.fields[0].type == QUERN_FIELD_ENTITY);
    EXPECT(quern_component_get_info(world, world.component<Table>(), &info) == QUERN_OK);
    EXPECT(info.field_count == 4 && std::strcmp(info.fields[1].name, "cells[1]") == 0);
    EXPECT(info.fields[1].type == QUERN_FIELD_F32 && info.fields[1].count == 3);
    EXPECT(info.fields[1].offset_bytes == 3 * sizeof(float));
    EXPECT(info.fields[2].type == QUERN_FIELD_BOOL && info.fields[2].count == 1);
    EXPECT(info.fields[3].offset_bytes == offsetof(Table, slots[1].owner));
}

static void objects_are_constructed_and_destroyed()
{
    {
        quern::world world;
        quern_entity first = world.create(Name("first"), Position{1, 1});
        world.create(Name("second"), Position{2, 2});
        EXPECT(world.get<Name>(first)->text == "first");
        EXPECT(world.set(first, Name("a name that is too long for the object itself")) == QUERN_OK);
        EXPECT(world.set(first, Velocity{1, 1}) == QUERN_OK); /* moves the row */
        EXPECT(begins(world.get<Name>(first)->text.c_str(), "a name that is too long"));
        const quern_entity third = world.create();
        EXPECT(world.add<Name>(third) == QUERN_OK && world.get<Name>(third)->text == "none");
        EXPECT(world.add<Handle>(third) == QUERN_OK && world.get<Handle>(third)->value == nullptr);
        world.get<Handle>(third)->value = std::make_unique<int>(3);
        EXPECT(world.set(third, Frozen{}) == QUERN_OK && *world.get<Handle>(third)->value == 3);
        EXPECT(world.destroy(first) == QUERN_OK);
        EXPECT(Name::living == 2);
    }
    EXPECT(Name::living == 0);
}

/* Calls that deduce the type and calls that name it copy objects and constants, and leave them as they are. */
static void values_are_copied_by_deduced_and_named_types()
{
    {
        quern::world world;
        Name name("given");
        const Name constant("constant");
        Position position{1, 2};
        const auto expect = [&](quern_entity entity, const char *text) {
            EXPECT(world.get<Name>(entity) != nullptr && world.get<Name>(entity)->text == text);
            EXPECT(name.text == "given" && constant.text == "constant");
        };
        const quern_entity entity = world.create(name, position),
                           other = world.create<Name, Position>(name, position);
        expect(entity, "given");
        expect(other, "given");
        expect(world.create(constant, Position{1, 2}), "constant");
        expect(world.create<Name>(constant), "constant");
        expect(world.create<Name, Frozen>("made", {}), "made");
        EXPECT(world.set(entity, constant) == QUERN_OK);
        expect(entity, "constant");
        EXPECT(world.set<Name>(entity, name) == QUERN_OK);
        expect(entity, "given");
        EXPECT(world.set<Name>(entity, "made") == QUERN_OK);
        expect(entity, "made");
        EXPECT(world.set<Name>(entity, constant) == QUERN_OK &&
               world.set<Position>(entity, {5, 6}) == QUERN_OK);
        expect(entity, "constant");
        EXPECT(world.get<Position>(entity)->x == 5);

        quern::commands commands = world.commands();
        EXPECT(!quern_entity_is_null(commands.create(name, Frozen{})));
        EXPECT(!quern_entity_is_null(commands.create<Name, Position>(constant, position)));
        EXPECT(commands.set(entity, name) == QUERN_OK && commands.set<Name>(other, constant) == QUERN_OK);
        EXPECT(world.flush() == QUERN_OK);
        expect(entity, "given");
        expect(other, "constant");
        EXPECT(world.commands().set<Name>(other, name) == QUERN_OK && world.flush() == QUERN_OK);
        expect(other, "given");
        EXPECT(quern::query<const Name>(world).count() == 7);

        quern::schedule schedule(world);
        std::string read;
        EXPECT(schedule.add_once(
                   "emit",
                   [&](quern::context context) {
                       EXPECT(context.emit(name) && context.emit<Name>(name) &&
                              context.emit<Name>(constant));
                   },
                   quern::emits<Name>{}) == QUERN_OK);
        EXPECT(schedule.add_events(
                   "read", [&](const Name &event) { read += event.text[0]; },
                   quern::flags{QUERN_SYSTEM_SERIAL}, quern::after{"emit"}) == QUERN_OK);
        EXPECT(world.emit(name) == QUERN_OK && world.emit<Name>(name) == QUERN_OK);
        EXPECT(world.emit<Name>(constant) == QUERN_OK && world.emit<Name>("made") == QUERN_OK);
        EXPECT(schedule.run(nullptr, 0) == QUERN_OK && schedule.run(nullptr, 0) == QUERN_OK);
        EXPECT(read == "ggcmggc" && name.text == "given" && constant.text == "constant");
    }
    EXPECT(Name::living == 0);
}

static bool holds(quern::world &world, quern_entity entity, int number)
{
    const Token *token = world.get<Token>(entity);
    return token != nullptr && token->number == number && token->self == token;
}

static void values_that_cannot_be_copied_are_moved()
{
    {
        quern::world world;
        Token given(1);
        const quern_entity first = world.create(std::move(given)),
                           second = world.create(Position{1, 2}, Token(2));
        EXPECT(given.number == 0 && holds(world, first, 1) && holds(world, second, 2));
        EXPECT(world.set(first, Token(3)) == QUERN_OK && holds(world, first, 3));
        EXPECT(world.set(first, Velocity{1, 1}) == QUERN_OK && holds(world, first, 3)); /* moves the row */
        const quern_entity third = world.create();
        EXPECT(world.set(third, Token(4)) == QUERN_OK && holds(world, third, 4));
        quern::commands commands = world.commands();
        const quern_entity created = commands.create(Token(5), Position{3, 4});
        EXPECT(!quern_entity_is_null(created) && commands.set(second, Token(6)) == QUERN_OK);
        EXPECT(commands.set(world.create(Frozen{}), Token(7)) == QUERN_OK);
        EXPECT(world.flush() == QUERN_OK && holds(world, second, 6));
        int sum = 0;
        quern::must(
            quern::query<const Token>(world).each([&](const Token &token) { sum += token.number; }));
        EXPECT(sum == 3 + 4 + 5 + 6 + 7);
        EXPECT(Token::living == 6); /* five components, and one that was moved from */
        EXPECT(world.commands().set(second, Token(8)) == QUERN_OK && world.destroy(second) == QUERN_OK);
        EXPECT(world.flush() == QUERN_OK && Token::living == 5);
    }
    EXPECT(Token::living == 0 && Token::misplaced == 0);
}

/* Allocates until `left` allocations were made. */
struct limited_memory {
    long left = 1000000;
    quern_world_def def()
    {
        quern_world_def made{};
        made.allocator.user_data = this;
        made.allocator.allocate = [](void *self, size_t bytes, size_t alignment) -> void * {
            if (static_cast<limited_memory *>(self)->left-- <= 0) return nullptr;
            return ::operator new(bytes, static_cast<std::align_val_t>(alignment));
        };
        made.allocator.release = [](void *, void *memory, size_t, size_t alignment) {
            ::operator delete(memory, static_cast<std::align_val_t>(alignment));
        };
        return made;
    }
};

/* One destructor runs for each object, wherever the values are when memory fails or the world ends. */
template <bool can_copy> static void objects_are_destroyed_once()
{
    using value = Tracked<can_copy>;
    for (long allocations = 0; allocations < 60; allocations++) {
        limited_memory memory;
        quern::world world(memory.def());
        quern::schedule schedule(world);
        const quern_event event = world.template event<value>();
        quern_event_reader *reader = nullptr;
        quern_event_reader_def def{};
        def.event = event;
        EXPECT(quern_event_reader_create(world, &def, &reader) == QUERN_OK);
        EXPECT(schedule.add_once(
                   "emit",
                   [](quern::context context) {
                       (void)context.emit(value(8));
                       (void)result_of([&] {
                           (void)context.commands().create(value(9), Position{1, 2});
                           return QUERN_OK;
                       });
                   },
                   quern::emits<value>{}) == QUERN_OK);
        const quern_entity plain = world.create();
        memory.left = allocations;
        value own(1);
        const auto attempt = [&](auto &&call) {
            (void)result_of([&] {
                call();
                return QUERN_OK;
            });
        };
        attempt([&] { (void)world.create(value(2), Position{1, 2}); });
        attempt([&] { (void)world.create(std::move(own)); });
        attempt([&] { (void)world.set(plain, value(3)); });
        attempt([&] { (void)world.set(plain, value(4)); });
        attempt([&] { (void)world.set(quern_entity_null(), value(5)); });
        attempt([&] { (void)world.emit(value(6)); });
        attempt([&] { (void)world.resource(value(7)); });
        attempt([&] { (void)world.resource(value(7)); });
        attempt([&] { (void)schedule.run(nullptr, 0, 2); });
        attempt([&] { (void)world.commands().set(plain, value(10)); });
        attempt([&] { (void)world.commands().create(value(11), Frozen{}); });
        attempt([&] { (void)world.flush(); });
        attempt([&] { (void)world.commands().set(plain, value(12)); }); /* waits while the world ends */
        attempt([&] { (void)world.commands().create(value(13)); });
        own.use();
        quern_event_reader_destroy(reader);
    }
    EXPECT(value::living.empty() && value::mistakes == 0);
}

static void events_that_cannot_be_copied_are_moved()
{
    {
        quern::world world;
        quern::schedule schedule(world);
        int sum = 0;
        EXPECT(schedule.add_once(
                   "emit", [](quern::context context) { (void)context.emit(Token(20)); },
                   quern::emits<Token>{}) == QUERN_OK);
        EXPECT(schedule.add_events(
                   "read", [&](const Token &token) { sum += token.self == &token ? token.number : 1000; },
                   quern::flags{QUERN_SYSTEM_SERIAL}, quern::after{"emit"}) == QUERN_OK);
        EXPECT(world.emit(Token(1)) == QUERN_OK && world.emit(Token(2)) == QUERN_OK);
        EXPECT(schedule.run(nullptr, 0) == QUERN_OK && schedule.run(nullptr, 0) == QUERN_OK);
        EXPECT(sum == 23); /* what a frame emits is read in the next one */
    }
    EXPECT(Token::living == 0 && Token::misplaced == 0);
}

/* Calls that fail leave the value as it was. */
static void refused_values_are_moved_back()
{
    {
        quern::world world;
        Token token(9);
        quern_event_def def{};
        def.name = "game::Token";
        def.size_bytes = 4;
        quern_event other;
        EXPECT(quern_event_register(world, &def, &other) == QUERN_OK);
        quern_component_def small{};
        small.name = "game::Velocity"; /* is no game::Velocity: it has 0 bytes */
        quern_component velocity;
        EXPECT(quern_component_register(world, &small, &velocity) == QUERN_OK);
        const quern_entity dead = world.create();
        EXPECT(world.destroy(dead) == QUERN_OK);
        quern::commands commands = world.commands();
#ifdef QUERN_CPP_EXCEPTIONS
        int caught = 0;
        const auto attempt = [&](auto &&call) {
            try {
                call();
            } catch (const quern::error &) {
                caught++;
            }
        };
        attempt([&] { commands.set(dead, std::move(token)); }); /* the type is not registered yet */
        attempt([&] { commands.create(std::move(token)); });
        attempt([&] { world.set(dead, std::move(token)); });
        attempt([&] { world.create(std::move(token), Velocity{1, 2}); });
        attempt([&] { world.emit(std::move(token)); });
        EXPECT(caught == 5);
#else
        EXPECT(commands.set(dead, std::move(token)) != QUERN_OK); /* the type is not registered yet */
        EXPECT(quern_entity_is_null(commands.create(std::move(token))));
        EXPECT(world.set(dead, std::move(token)) == QUERN_ERROR_STALE_ENTITY);
        EXPECT(quern_entity_is_null(world.create(std::move(token), Velocity{1, 2})));
        EXPECT(world.emit(std::move(token)) == QUERN_ERROR_LAYOUT_MISMATCH);
#endif
        EXPECT(token.number == 9 && token.self == &token && Token::living == 1);
    }
    EXPECT(Token::living == 0 && Token::misplaced == 0);
}

/* An event that makes others exceed the limit is published all the same, and so it is not moved back. */
static void events_beyond_the_limit_are_destroyed_once()
{
    {
        struct Large {
            Token token;
            char rest[16000];
        };
        quern::world world;
        quern_event_reader *reader;
        quern_event_reader_def def{};
        quern_result result = QUERN_OK;
        def.event = world.event<Large>();
        EXPECT(quern_event_reader_create(world, &def, &reader) == QUERN_OK);
        for (int i = 0; i < 5000 && result == QUERN_OK; i++) {
            Large large{Token(7), {}};
#ifdef QUERN_CPP_EXCEPTIONS
            try {
                world.emit(std::move(large));
            } catch (const quern::error &error) {
                result = error.code();
            }
#else
            result = world.emit(std::move(large));
#endif
            EXPECT(large.token.number == 0);
        }
        EXPECT(result == QUERN_ERROR_LIMIT);
        quern_event_reader_destroy(reader);
    }
    EXPECT(Token::living == 0 && Token::misplaced == 0);
}

static void required_types_are_added()
{
    quern::world world;
    const quern_entity entity = world.create(Ship{3}), other = world.create(Position{1, 2});
    EXPECT(world.get<Hull>(entity)->strength == 100 && world.has<Position>(entity));
    EXPECT(world.add<Ship>(other) == QUERN_OK && world.get<Position>(other)->y == 2);
    EXPECT(world.has<Hull>(other));
    EXPECT(quern_entity_remove(world, other, world.component<Hull>()) == QUERN_ERROR_COMPONENT_REQUIRED);
}

static void many_entities_are_filled()
{
    quern::world world;
    float next = 0;
    EXPECT(world.create_many(3000, [&next](Position &position, Score &score) {
        position = {next, -next};
        score.points = static_cast<int>(next++);
    }) == QUERN_OK);
    quern::query<const Position, const Score> query(world);
    EXPECT(query.count() == 3000);
    float sum = 0;
    quern::must(query.each([&sum](const Position &position, const Score &score) {
        sum += position.x - static_cast<float>(score.points) + (position.y + position.x);
    }));
    EXPECT(sum == 0 && next == 3000);
}

static void each_parameter_is_the_component_of_its_type()
{
    quern::world world;
    quern::schedule schedule(world);
    const quern_entity entity = world.create(Position{1, 2}, Velocity{3, 4}, Score{5}, Target{}, Frozen{});
    EXPECT(schedule.add("sum", [](Position &position, quern::seconds, Target &target, quern_entity self,
                                  const Score &score, const Velocity &velocity) {
        position.x += velocity.y + static_cast<float>(score.points);
        target.entity = self;
    }) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(world.get<Position>(entity)->x == 10);
    EXPECT(quern_entity_equal(world.get<Target>(entity)->entity, entity));
}

static void loops_report_a_change_of_structure()
{
    quern::world world;
    EXPECT(world.create_many(3000, [](Position &position) { position = {1, 2}; }) == QUERN_OK);
    quern::query<Position> query(world);
    int visited = 0;
    EXPECT(query.each([&](Position &) { visited++; }) == QUERN_OK && visited == 3000);
    const auto add = [&](quern_entity entity, Position &) {
        if (visited++ == 3000) quern::must(world.add<Frozen>(entity));
    };
#ifdef QUERN_CPP_EXCEPTIONS
    quern_result code = QUERN_OK;
    try {
        query.each(add);
    } catch (const quern::error &error) {
        code = error.code();
    }
    EXPECT(code == QUERN_ERROR_STRUCTURE_CHANGED);
#else
    EXPECT(query.each(add) == QUERN_ERROR_STRUCTURE_CHANGED);
#endif
    EXPECT(visited < 6000);
}

/* ----------------------------------------------------------------------------------------- systems */

static void systems_access_what_their_parameters_say()
{
    quern::world world;
    quern::schedule schedule(world);
    quern::jobs jobs(2);
    const quern_entity moving = world.create(Position{1, 2}, Velocity{2, 4});
    const quern_entity frozen = world.create(Position{1, 2}, Velocity{2, 4}, Frozen{});
    EXPECT(schedule.add(
               "move",
               [](Position &position, const Velocity &velocity, quern::seconds dt) {
                   position.x += velocity.x * dt;
                   position.y += velocity.y * dt;
               },
               quern::without<Frozen>{}) == QUERN_OK);
    EXPECT(schedule.run(jobs, 0.5) == QUERN_OK);
    EXPECT(world.get<Position>(moving)->x == 2 && world.get<Position>(moving)->y == 4);
    EXPECT(world.get<Position>(frozen)->x == 1);
}

static void pointers_are_optional_and_tags_have_no_values()
{
    quern::world world;
    quern::schedule schedule(world);
    int with = 0, without = 0, tagged = 0;
    world.create(Position{1, 2}, Velocity{3, 4});
    world.create(Position{5, 6});
    world.create(Position{7, 8}, Frozen{});
    EXPECT(schedule.add(
               "count",
               [&](const Position &position, const Velocity *velocity) {
                   if (velocity != nullptr)
                       with += static_cast<int>(position.x + velocity->y);
                   else
                       without++;
               },
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.add(
               "tags", [&](Frozen &, quern_entity entity) { tagged += !quern_entity_is_null(entity); },
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(with == 5 && without == 2 && tagged == 1);
}

static void whole_columns_are_passed_once_per_view()
{
    quern::world world;
    quern::schedule schedule(world);
    uint32_t calls = 0, rows = 0;
    for (int i = 0; i < 10; i++)
        world.create(Position{static_cast<float>(i), 0}, Velocity{1, 1});
    EXPECT(schedule.add(
               "columns",
               [&](quern::column<Position> positions, quern::column<const Velocity> velocities,
                   const quern_view &view, quern::seconds dt) {
                   calls++;
                   rows += view.count;
                   for (uint32_t i = 0; i < positions.size(); i++)
                       positions[i].x += velocities[i].x * dt;
               },
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 2) == QUERN_OK && calls == 1 && rows == 10);
    float sum = 0;
    quern::must(quern::query<Position>(world).each([&](quern::column<const Position> positions) {
        for (const Position &position : positions)
            sum += position.x;
    }));
    EXPECT(sum == 65);
}

static void commands_events_and_resources_are_declared_by_options()
{
    quern::world world;
    quern::schedule schedule(world);
    int damage = 0;
    world.component<Frozen>();
    Score *const total = world.resource(Score{1});
    EXPECT(total != nullptr && total == world.resource<Score>() && total->points == 1);
    EXPECT(world.resource(Score{2}) == total && total->points == 1); /* keeps its value */
    const quern_entity victim = world.create(Score{3});
    const quern_entity hunter = world.create(Target{victim}, Position{});
    EXPECT(
        schedule.add(
            "shoot",
            [](const Target &target, quern_entity self, quern::context context, quern::commands commands) {
                const Score *score = context.lookup<Score>(target.entity);
                if (score == nullptr || !context.is_alive(self) || !context.has<Score>(target.entity))
                    return;
                context.emit(Hit{target.entity, score->points + context.resource<const Score>().points});
                commands.add<Frozen>(self);
                commands.set(self, Position{8, 9});
                commands.create(Score{50}, Frozen{});
                commands.remove<Target>(self);
            },
            quern::lookup<Score>{}, quern::emits<Hit>{}, quern::reads_resource<Score>{}) == QUERN_OK);
    EXPECT(schedule.add_events(
               "suffer",
               [&](const Hit &hit, quern::context context) {
                   damage += hit.damage;
                   context.lookup_write<Score>(hit.victim)->points -= hit.damage;
                   context.resource<Score>().points++;
               },
               quern::lookup_write<Score>{}, quern::writes_resource<Score>{}) == QUERN_OK);
    EXPECT(schedule.add_once(
               "end", [&](quern::context context) { damage += context.frame_index() == 1; },
               quern::after{"suffer"}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK && schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(damage == 5 && world.get<Score>(victim)->points == -1 && world.resource<Score>()->points == 2);
    EXPECT(world.has<Frozen>(hunter) && !world.has<Target>(hunter) && world.get<Position>(hunter)->y == 9);
    EXPECT(quern::query<Score>(world, quern::with<Frozen>{}).count() == 1);
    EXPECT(world.emit(Hit{victim, 10}) == QUERN_OK && schedule.run(nullptr, 0) == QUERN_OK && damage == 15);
}

static void targets_and_ancestors_are_parameters()
{
    quern::world world;
    const quern_relation parent = quern_world_parent(world);
    quern_relation_def def{};
    def.name = "owner";
    quern_relation owner;
    EXPECT(quern_relation_register(world, &def, &owner) == QUERN_OK);
    const quern_entity root = world.create(Position{10, 0}), child = world.create(Velocity{1, 0}),
                       grandchild = world.create(Velocity{2, 0}), stray = world.create(Velocity{4, 0});
    EXPECT(quern_entity_relate(world, child, parent, root) == QUERN_OK);
    EXPECT(quern_entity_relate(world, grandchild, parent, child) == QUERN_OK);
    EXPECT(quern_entity_relate(world, stray, owner, root) == QUERN_OK);
    quern::schedule schedule(world);
    EXPECT(schedule.add("near", [](Velocity &v, quern::up<Position> above) { v.y += above->x; }) ==
           QUERN_OK);
    EXPECT(schedule.add("far", [](Velocity &v, quern::up_nearest<Position> above) {
        v.y += 2 * (*above).x;
    }) == QUERN_OK);
    EXPECT(schedule.add(
               "owned",
               [](Velocity &v, quern::up<Position *> above) { v.y += above ? 100 * above->x : 0.5f; },
               quern::along{owner}) == QUERN_OK);
    EXPECT(schedule.add(
               "below root", [](Velocity &v) { v.x += 1000; }, quern::target{parent, root}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(world.get<Velocity>(child)->y == 30.5f && world.get<Velocity>(grandchild)->y == 20.5f);
    EXPECT(world.get<Velocity>(stray)->y == 1000);
    EXPECT(world.get<Velocity>(child)->x == 1001 && world.get<Velocity>(grandchild)->x == 2);
    EXPECT(quern::query<Velocity>(world, quern::target{owner, root}).count() == 1);
    float sum = 0;
    quern::must(quern::query<const Velocity, quern::up<Position>>(world).each(
        [&](const Velocity &v, quern::up<Position> above) { sum += v.x + above->x; }));
    EXPECT(sum == 1011);
    sum = 0;
    quern::must(quern::query<quern::up<Position *>>(world, quern::with<Velocity>{}, quern::along{owner})
                    .each([&](quern::up<Position *> above) { sum += above ? 1.0f : 10.0f; }));
    EXPECT(sum == 21);
}

static void levels_run_from_parents_to_children()
{
    quern::world world;
    const quern_relation parent = quern_world_parent(world);
    const quern_entity leaf = world.create(Position{1, 0}), middle = world.create(Position{1, 0}),
                       root = world.create(Position{1, 0});
    EXPECT(quern_entity_relate(world, leaf, parent, middle) == QUERN_OK);
    EXPECT(quern_entity_relate(world, middle, parent, root) == QUERN_OK);
    quern::schedule schedule(world);
    EXPECT(schedule.add(
               "sum", [](Position &p, quern::up<Position *> above) { p.y = p.x + (above ? above->y : 0); },
               quern::levels{parent}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK && world.get<Position>(leaf)->y == 3);
}

static void change_filters_are_options()
{
    quern::world world;
    const quern_entity first = world.create(Position{1, 0});
    quern::schedule schedule(world);
    int seen = 0;
    EXPECT(schedule.add(
               "read", [&](const Position &, quern_entity) { seen++; }, quern::changed<Position>{},
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.add(
               "condition", [&](quern_entity) { seen += 100; }, quern::changed<Position>{},
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK && seen == 101);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK && seen == 101);
    EXPECT(world.set(first, Position{2, 0}) == QUERN_OK && schedule.run(nullptr, 0) == QUERN_OK);
    EXPECT(seen == 202);
    quern::query<Position> query(world, quern::changed<Position>{});
    int chunks = 0;
    quern::must(query.each([&](Position &) { chunks++; }));
    quern::must(query.each([&](Position &) { chunks++; }));
    EXPECT(chunks == 1);
}

static void commands_take_whole_views()
{
    quern::world world;
    quern::schedule schedule(world);
    world.component<Frozen>();
    world.component<Score>();
    for (int i = 0; i < 4; i++)
        world.create(Position{static_cast<float>(i), 0}, Velocity{1, 1});
    EXPECT(schedule.add("freeze", [](const quern_view &view, quern::column<const Velocity>,
                                     quern::commands commands) {
        const uint64_t even = 0x5;
        const uint32_t last[] = {3};
        quern_view_rows rows{};
        commands.add<Frozen>(view);
        commands.remove<Velocity>(view);
        commands.set(view, Score{9});
        rows.mask = &even;
        commands.set(view, Score{5}, &rows);
        rows = {};
        rows.list = last;
        rows.list_count = 1;
        commands.destroy(view, &rows);
    }) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 0) == QUERN_OK);
    int sum = 0, count = 0;
    quern::must(quern::query<Score>(world, quern::with<Frozen>{}, quern::without<Velocity>{})
                    .each([&](const Score &score) {
                        sum += score.points;
                        count++;
                    }));
    EXPECT(count == 3 && sum == 19);
}

static void reactions_and_order_are_options()
{
    quern::world world;
    quern_schedule_def def{};
    def.phases[0] = "first";
    def.phases[1] = "second";
    quern::schedule schedule(world, def);
    std::string order;
    const auto note = [&order](char what) { return [&order, what](quern::context) { order += what; }; };
    EXPECT(schedule.add_once("c", note('c'), quern::phase{1}, quern::interval{2}) == QUERN_OK);
    EXPECT(schedule.add_once("a", note('a'), quern::before{"b"}) == QUERN_OK);
    EXPECT(schedule.add_once("b", note('b')) == QUERN_OK);
    EXPECT(schedule.add(
               "added", [&order](const Position &) { order += 'r'; }, quern::reacts_to{QUERN_REACT_ADDED},
               quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1) == QUERN_OK);
    quern::commands(world.commands()).create(Position{1, 1});
    EXPECT(world.flush() == QUERN_OK && schedule.run(nullptr, 1) == QUERN_OK);
    EXPECT(order.find("ab") == 0 && order.find('c') != std::string::npos &&
           order.find('r') != std::string::npos);
}

static void flags_and_intervals_are_options()
{
    quern::world world;
    quern::schedule schedule(world);
    quern_result locked = QUERN_OK, exclusive = QUERN_ERROR_WORLD_LOCKED;
    int every_frame = 0, every_second_frame = 0;
    quern_entity created;
    EXPECT(schedule.add_once("locked", [&](quern::context) {
        locked = quern_entity_create(world, &created);
    }) == QUERN_OK);
    EXPECT(schedule.add_once(
               "exclusive", [&](quern::context) { exclusive = quern_entity_create(world, &created); },
               quern::flags{QUERN_SYSTEM_EXCLUSIVE}) == QUERN_OK);
    EXPECT(schedule.add_once("often", [&](quern::context) { every_frame++; }) == QUERN_OK);
    EXPECT(schedule.add_once(
               "seldom", [&](quern::context) { every_second_frame++; }, quern::interval{2}) == QUERN_OK);
    EXPECT(schedule.run(nullptr, 1, 8) == QUERN_OK);
    EXPECT(locked == QUERN_ERROR_WORLD_LOCKED && exclusive == QUERN_OK);
    EXPECT(every_frame == 8 && every_second_frame == 4);
}

static void wrong_options_are_reported()
{
    quern::world world;
    quern::schedule schedule(world);
    const auto nothing = [](const Position &) {};
    const auto add = [&](auto... options) {
        return result_of([&] { return schedule.add("system", nothing, options...); });
    };
    EXPECT(add(quern::phase{1}) == QUERN_ERROR_INVALID_ARGUMENT && message_has("phase 1"));
    EXPECT(add(quern::after{nullptr}) == QUERN_ERROR_INVALID_ARGUMENT && message_has("after"));
    EXPECT(add(quern::before{""}) == QUERN_ERROR_INVALID_ARGUMENT && message_has("before"));
    EXPECT(add(quern::with<Position>{}) == QUERN_ERROR_DUPLICATE_COMPONENT && message_has("term 1"));
    EXPECT(add(quern::emits<Hit, Hit>{}) == QUERN_ERROR_INVALID_ARGUMENT && message_has("twice"));
    const quern::after a{"a"};
    EXPECT(add(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a,
               a, a) == QUERN_ERROR_LIMIT);
    EXPECT(message_has("quern::after") && message_has("32"));
    EXPECT(add(quern::after{"typo"}) == QUERN_OK);
    EXPECT(result_of([&] { return schedule.run(nullptr, 0); }) != QUERN_OK && message_has("'typo'"));
    const quern::target none{quern_relation{}, quern_entity_null()};
    EXPECT(result_of([&] {
               quern::query<Position> query(world, none, none, none, none, none, none, none, none, none,
                                            none, none, none, none, none, none, none, none);
               return static_cast<quern_query *>(query) != nullptr ? QUERN_OK : QUERN_ERROR_LIMIT;
           }) != QUERN_OK);
}

static void reactions_see_old_values()
{
    quern::world world;
    quern::schedule schedule(world);
    float moved = 0;
    uint32_t added = 0;
    const auto measure = [&](const Position &now, quern::old<Position> before) {
        if (before)
            moved += now.x - before->x + now.y - (*before).y;
        else
            added++;
    };
    EXPECT(schedule.add("measure", measure, quern::reacts_to{QUERN_REACT_ADDED | QUERN_REACT_SET},
                        quern::flags{QUERN_SYSTEM_SERIAL}) == QUERN_OK);
    quern_entity entity = world.create(Position{1, 2});
    EXPECT(quern_world_react(world, nullptr) == QUERN_OK);
    EXPECT(world.set(entity, Position{3, 3}) == QUERN_OK &&
           world.set(entity, Position{11, 12}) == QUERN_OK);
    EXPECT(quern_world_react(world, nullptr) == QUERN_OK);
    EXPECT(added == 1 && moved == 20);
}

static void parallel_queries_pass_the_lambda()
{
    quern::world world;
    quern::jobs jobs(2);
    const float factor = 3;
    EXPECT(world.create_many(5000, [](Position &position) { position = {1, 2}; }) == QUERN_OK);
    quern::query<Position> query(world);
    EXPECT(query.each(jobs, [factor](Position &position) { position.x *= factor; }) == QUERN_OK);
    float sum = 0;
    quern::must(query.each([&sum](const Position &position) { sum += position.x; }));
    EXPECT(sum == 15000);
}

static void relations_have_several_targets()
{
    quern::world world;
    quern_relation_def def{};
    def.name = "likes";
    def.on_target_destroyed = QUERN_TARGET_UNRELATES;
    def.many = true;
    const quern_relation likes = world.relation(def);
    const quern_entity bee = world.create(Position{1, 2}), plum = world.create(), pear = world.create();
    EXPECT(world.relate(bee, likes, pear) == QUERN_OK && world.relate(bee, likes, plum) == QUERN_OK);
    EXPECT(world.has_target(bee, likes, pear) && !world.has_target(pear, likes, bee));
    std::string order;
    world.each_target(bee, likes, [&](quern_entity fruit) {
        order += quern_entity_equal(fruit, plum) ? 'p' : 'q';
        EXPECT(world.unrelate(bee, likes, fruit) == QUERN_OK);
    });
    EXPECT(order == "pq" && quern_entity_target_count(world, bee, likes) == 0);
    quern::commands commands = world.commands();
    EXPECT(commands.relate(bee, likes, plum) == QUERN_OK && commands.relate(pear, likes, plum) == QUERN_OK);
    EXPECT(commands.relate(bee, likes, pear) == QUERN_OK &&
           commands.unrelate(bee, likes, pear) == QUERN_OK);
    EXPECT(world.flush() == QUERN_OK);
    uint32_t fan_count = 0;
    world.each_source(plum, likes, [&](quern_entity fan) {
        EXPECT(quern_entity_equal(fan, bee) || quern_entity_equal(fan, pear));
        fan_count++;
    });
    EXPECT(fan_count == 2 && quern_entity_target_count(world, bee, likes) == 1);
    EXPECT(world.commands().unrelate(bee, likes) == QUERN_OK);
    EXPECT(world.unrelate(pear, likes) == QUERN_OK);
    EXPECT(world.flush() == QUERN_OK && quern_entity_source_count(world, plum, likes) == 0);
}

static void histories_go_back()
{
    quern::world world;
    quern::history history(world);
    const quern_entity entity = world.create(Position{1, 2});
    EXPECT(history.save(0) == QUERN_OK);
    world.get<Position>(entity)->x = 5;
    EXPECT(quern_entity_mark_changed(world, entity, world.component<Position>()) == QUERN_OK);
    EXPECT(history.restore(0) == QUERN_OK && world.get<Position>(entity)->x == 1);
}

static void objects_can_be_moved()
{
    quern::world first;
    quern_world *const raw = first;
    quern::world second(std::move(first));
    EXPECT(static_cast<quern_world *>(first) == nullptr && static_cast<quern_world *>(second) == raw);
    quern::world third;
    third = std::move(second);
    EXPECT(static_cast<quern_world *>(third) == raw && static_cast<quern_world *>(second) == nullptr);
}

/* --------------------------------------------------------------------------------------------- app */

/* An app is a world, whose systems are added to it. */
static void apps_run_systems()
{
    quern::app app;
    int frame_count = 0, damage = 0;
    EXPECT(app.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; }) ==
           QUERN_OK);
    EXPECT(app.add_once(
               "count", [&](quern::context) { frame_count++; }, quern::flags{QUERN_SYSTEM_SERIAL}) ==
           QUERN_OK);
    EXPECT(app.add_events(
               "hurt", [&](const Hit &hit) { damage += hit.damage; }, quern::flags{QUERN_SYSTEM_SERIAL}) ==
           QUERN_OK);
    const quern_entity entity = app.create(Position{1, 2}, Velocity{2, 0});
    EXPECT(app.add<Score>(entity) == QUERN_OK && app.get<Score>(entity)->points == 7);
    EXPECT(app.emit(Hit{entity, 3}) == QUERN_OK);
    EXPECT(app.run(0.5) == QUERN_OK && frame_count == 1 && app.get<Position>(entity)->x == 2);
    EXPECT(app.run(0.25, 8) == QUERN_OK && frame_count == 9 && app.get<Position>(entity)->x == 6);
    EXPECT(damage == 3);
    EXPECT(app.run(0.25, 0) == QUERN_OK && frame_count == 9);
    EXPECT(app.schedule().run(nullptr, 0.25, 2) == QUERN_OK && frame_count == 11);
    EXPECT(quern_jobs_thread_count(app.jobs()) > 0);
}

static void apps_are_made_by_definitions_and_moved()
{
    quern_schedule_def schedule_def{};
    quern_jobs_def jobs_def{};
    schedule_def.phases[0] = "first";
    schedule_def.phases[1] = "second";
    jobs_def.thread_count = 2;
    quern::app first(quern_world_def{}, schedule_def, jobs_def);
    std::string order;
    EXPECT(first.add_once(
               "b", [&](quern::context) { order += 'b'; }, quern::phase{1}) == QUERN_OK);
    EXPECT(first.add_once(
               "a", [&](quern::context) { order += 'a'; }, quern::phase{0}) == QUERN_OK);
    EXPECT(quern_jobs_thread_count(first.jobs()) == 2);
    const quern_entity entity = first.create(Name("moved"));
    quern::app second(std::move(first));
    EXPECT(static_cast<quern_world *>(first) == nullptr && second.run(1) == QUERN_OK && order == "ab");
    quern::app third;
    third.create(Name("destroyed"));
    EXPECT(Name::living == 2);
    third = std::move(second);
    EXPECT(Name::living == 1 && third.get<Name>(entity)->text == "moved");
    EXPECT(third.run(1, 2) == QUERN_OK && order == "ababab");
}

/* An app without a world has no schedule, and the message is that of the world. */
static void apps_report_why_they_have_no_world()
{
    quern_world_def def{};
    def.allocator.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
    def.allocator.release = [](void *, void *, size_t, size_t) {};
#ifdef QUERN_CPP_EXCEPTIONS
    quern_result code = QUERN_OK;
    try {
        quern::app app(def);
    } catch (const quern::error &error) {
        code = error.code();
    }
    EXPECT(code == QUERN_ERROR_OUT_OF_MEMORY);
#else
    quern::app app(quern::returns_failures, def);
    EXPECT(static_cast<quern_world *>(app) == nullptr);
    EXPECT(std::strstr(quern_error_message(), "quern_world_create: no memory") != nullptr);
    EXPECT(static_cast<quern_schedule *>(app.schedule()) == nullptr);
    EXPECT(app.add("move", [](Position &) {}) != QUERN_OK && app.run(1) != QUERN_OK);
    app = quern::app(quern::returns_failures);
    EXPECT(app.run(1) == QUERN_OK && app.run(-1, 3) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(app.add("", [](Velocity &) {}) == QUERN_ERROR_INVALID_ARGUMENT);
#endif
}

/* ------------------------------------------------------------------------------------------ errors */

/* The definition of C counts: C++ names the component, and does not register it again. */
static void components_of_c_are_found()
{
    quern::world world;
    quern_component position;
    quern_type_info info;
    const Position start{3, 4};
    quern_component_def def{};
    def.name = "game::Position";
    def.size_bytes = sizeof(Position);
    def.alignment_bytes = 8;
    def.can_disable = true;
    def.default_value = &start;
    EXPECT(quern_component_register(world, &def, &position) == QUERN_OK);
    EXPECT(world.component<Position>().bits == position.bits &&
           quern_type_count(world, QUERN_TYPE_COMPONENT) == 1);
    const quern_entity entity = world.create(Velocity{1, 2});
    EXPECT(world.add<Position>(entity) == QUERN_OK && world.get<Position>(entity)->y == 4);
    EXPECT(quern_component_get_info(world, world.component<Position>(), &info) == QUERN_OK);
    EXPECT(info.alignment_bytes == 8);
}

static void failures_are_reported()
{
    quern::world world;
    quern_component position;
    quern_component_def def{};
    def.name = "game::Position";
    def.size_bytes = 4;
    EXPECT(quern_component_register(world, &def, &position) == QUERN_OK);
#ifdef QUERN_CPP_EXCEPTIONS
    quern_result code = QUERN_OK;
    try {
        world.create(Position{1, 2});
    } catch (const quern::error &error) {
        code = error.code();
        EXPECT(std::strstr(error.what(), "game::Position") != nullptr);
    }
    EXPECT(code == QUERN_ERROR_LAYOUT_MISMATCH);
#else
    EXPECT(quern_entity_is_null(world.create(Position{1, 2})));
    EXPECT(quern_component_is_null(world.component<Position>()));
    quern::schedule schedule(world);
    EXPECT(schedule.add("move", [](Position &) {}) == QUERN_ERROR_LAYOUT_MISMATCH);
    EXPECT(schedule.add("", [](Velocity &) {}) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(static_cast<quern_query *>(quern::query<Position>(world)) == nullptr);
    EXPECT(world.destroy(quern_entity_null()) == QUERN_ERROR_NULL_ENTITY);
#endif
}

/* A binding that keeps a pointer to a world is not left with a world that the object has destroyed. */
static void users_of_a_world_keep_it()
{
    static std::string logged;
    quern_log_set_handler([](void *, quern_log_level, const char *message) { logged = message; }, nullptr);
    quern_assert_set_handler([](void *, const char *) {}, nullptr);
    quern_world_user binding{"a binding"};
    quern_world *kept = nullptr;
    {
        quern::world world, other;
        auto schedule = std::make_unique<quern::schedule>(world);
        kept = world;
        binding.schedule = *schedule;
        EXPECT(quern_world_add_user(world, &binding) == QUERN_OK);
        EXPECT(quern_world_add_user(other, &binding) == QUERN_ERROR_INVALID_ARGUMENT);
        EXPECT(std::strstr(quern_error_message(), "'a binding' is registered already, in another world") !=
               nullptr);
        schedule.reset();
        EXPECT(logged.find("quern_schedule_destroy: a binding still refers to the schedule") == 0);
    }
    EXPECT(logged.find("quern_world_destroy: a binding still refers to the world") == 0);
    const quern_schedule *schedule = binding.schedule;
    quern_world_remove_user(kept, &binding);
    quern_schedule_destroy(const_cast<quern_schedule *>(schedule));
    quern_world_destroy(kept);
    quern_log_set_handler(nullptr, nullptr);
    quern_assert_set_handler(nullptr, nullptr);
}

/* Ends by SIGABRT, which a test cannot expect on all systems. */
static void fail(bool in_app)
{
    std::signal(SIGABRT, [](int) {
        std::puts("ended");
        std::fflush(stdout);
        std::_Exit(0);
    });
    if (!in_app) {
        quern_entity entity;
        quern::must(QUERN_OK);
        quern::must(quern_entity_create(nullptr, &entity));
        return;
    }
    quern::app app;
    app.add(
        "move", [](Position &) {}, quern::phase{1});
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 1) fail(std::strcmp(arguments[1], "fail") == 0);
    values_are_stored_by_type();
    types_have_their_cpp_names();
    types_have_names_of_their_own();
    components_of_c_must_fit();
    types_of_c_are_found_in_frames();
    columns_are_named_by_aliases();
    wrong_options_are_reported();
    described_fields_are_registered();
    objects_are_constructed_and_destroyed();
    values_are_copied_by_deduced_and_named_types();
    values_that_cannot_be_copied_are_moved();
    objects_are_destroyed_once<false>();
    objects_are_destroyed_once<true>();
    events_that_cannot_be_copied_are_moved();
    refused_values_are_moved_back();
    events_beyond_the_limit_are_destroyed_once();
    required_types_are_added();
    many_entities_are_filled();
    each_parameter_is_the_component_of_its_type();
    loops_report_a_change_of_structure();
    systems_access_what_their_parameters_say();
    pointers_are_optional_and_tags_have_no_values();
    whole_columns_are_passed_once_per_view();
    commands_events_and_resources_are_declared_by_options();
    targets_and_ancestors_are_parameters();
    levels_run_from_parents_to_children();
    change_filters_are_options();
    commands_take_whole_views();
    reactions_and_order_are_options();
    flags_and_intervals_are_options();
    reactions_see_old_values();
    parallel_queries_pass_the_lambda();
    relations_have_several_targets();
    histories_go_back();
    objects_can_be_moved();
    apps_run_systems();
    apps_are_made_by_definitions_and_moved();
    apps_report_why_they_have_no_world();
    components_of_c_are_found();
    failures_are_reported();
    users_of_a_world_keep_it();
    std::printf("%d checks passed\n", check_count);
}
