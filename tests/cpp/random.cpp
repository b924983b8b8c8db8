/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* A random program whose types own memory: systems, commands, accumulated values, relations, prefabs, clones, lists, events,
 * reactions, entity hooks, histories and redefinitions, on 1, 2, 3 and 8 threads. After each frame the world must be what a
 * model in a std::map says, and at the end each value that was constructed must have been destroyed, once. */

#include "expect.h"

#include <quern/prefabs.hpp>
#include <quern/saves.hpp>

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

std::atomic<int64_t> live_count{0}, broken_count{0};

/* Counts the values that contain it, and knows where it is. */
class counted {
  public:
    counted() : self_(this) { live_count++; }
    counted(const counted &other) : self_(this)
    {
        other.check();
        live_count++;
    }
    counted(counted &&other) noexcept : self_(this)
    {
        other.check();
        live_count++;
    }
    counted &operator=(const counted &other)
    {
        check();
        other.check();
        return *this;
    }
    counted &operator=(counted &&other) noexcept
    {
        check();
        other.check();
        return *this;
    }
    ~counted()
    {
        check();
        self_ = nullptr;
        live_count--;
    }
    void check() const
    {
        if (self_ != this) broken_count++;
    }

  private:
    const counted *self_;
};

struct Id {
    uint64_t value = 0;
};
struct Title {
    std::string text = "none";
    counted count{};
};
struct Bag {
    std::vector<int> items;
    counted count{};
};
struct Scores { /* lists that Quern knows */
    quern::list<int32_t> numbers;
    quern::string text;
};
struct Sum {
    int64_t value = 3;
};
struct Marked {};
struct Note {
    uint64_t id = 0;
    std::string text;
    counted count{};
};
struct Log {
    std::vector<uint64_t> seen;
    std::string last = "nothing yet, and more text than a small string holds";
    counted count{};
};

/* Objects outside of the world. */
std::map<uint64_t, int> outside;

struct Body {
    std::vector<int> limbs{1, 2, 3};
    counted count{};

    static void on_add(quern_world *, quern_entity entity, Body &) { outside[entity.bits]++; }
    static void on_remove(quern_world *, quern_entity entity, Body &) { outside[entity.bits]--; }
};

} // namespace

QUERN_DESCRIBE(Id, value);
QUERN_DESCRIBE(Scores, numbers, text);
QUERN_DESCRIBE(Sum, value);

namespace {

uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* ------------------------------------------------------------------------------------------ the model */

struct modelled {
    std::optional<std::string> title;
    std::optional<std::vector<int>> bag, body;
    std::optional<int> scores;
    std::optional<int64_t> sum;
    bool is_marked = false;
    uint64_t parent = 0;
};

using model = std::map<uint64_t, modelled>;

std::string text_of(uint64_t h)
{
    return std::string(h % 40, static_cast<char>('a' + h % 26)) + std::to_string(h % 1000);
}

std::vector<int> items_of(uint64_t h)
{
    return std::vector<int>(h % 9, static_cast<int>(h % 100));
}

Scores scores_of(int n)
{
    Scores made;
    for (int32_t i = 0; i < n % 6; i++)
        quern::must(made.numbers.push_back(i * n));
    quern::must(made.text.assign(std::to_string(n)));
    return made;
}

bool is_above(const model &in, uint64_t above, uint64_t below)
{
    while (below != 0 && below != above)
        below = in.at(below).parent;
    return below == above;
}

void destroy(model &in, uint64_t id)
{
    if (in.erase(id) == 0) return;
    for (bool grows = true; grows;) {
        grows = false;
        for (auto at = in.begin(); at != in.end();) {
            const bool is_orphan = at->second.parent != 0 && in.count(at->second.parent) == 0;
            grows |= is_orphan;
            at = is_orphan ? in.erase(at) : std::next(at);
        }
    }
}

/* ---------------------------------------------------------------------------------------- what happens */

/* The changes that an entity makes to itself. */
enum kind {
    SET_TITLE,
    DROP_TITLE,
    SET_BAG,
    DROP_BAG,
    SET_SCORES,
    DROP_SCORES,
    SET_SUM,
    MARK,
    UNMARK,
    SET_BODY,
    DROP_BODY,
    MAKE,
    SPAWN,
    LEAVE,
    KINDS
};

struct decision {
    uint64_t h;
    bool acts;
    kind what;
};

uint64_t seed, frame;

decision decide(uint64_t id, uint64_t salt, unsigned percent)
{
    const uint64_t h = mix(id ^ mix(seed * 1000 + frame * 10 + salt));
    return {mix(h), h % 100 < percent, static_cast<kind>(mix(h + 1) % KINDS)};
}

/* LEAVE is rare. */
bool leaves(const decision &d)
{
    return d.what == LEAVE && d.h % 4 == 0;
}

void model_change(model &all, std::vector<std::pair<uint64_t, modelled>> &made, std::vector<uint64_t> &gone,
                  uint64_t id, const decision &d)
{
    modelled &at = all[id];
    modelled fresh;
    switch (d.what) {
    case SET_TITLE:
        at.title = text_of(d.h);
        break;
    case DROP_TITLE:
        at.title.reset();
        break;
    case SET_BAG:
        at.bag = items_of(d.h);
        break;
    case DROP_BAG:
        at.bag.reset();
        break;
    case SET_SCORES:
        at.scores = static_cast<int>(d.h % 1000);
        break;
    case DROP_SCORES:
        at.scores.reset();
        break;
    case SET_SUM:
        at.sum = static_cast<int64_t>(d.h % 50);
        break;
    case MARK:
        at.is_marked = true;
        break;
    case UNMARK:
        at.is_marked = false;
        break;
    case SET_BODY:
        at.body = items_of(d.h);
        break;
    case DROP_BODY:
        at.body.reset();
        break;
    case MAKE:
        fresh.title = text_of(d.h);
        fresh.body = items_of(d.h);
        made.push_back({d.h | 1, fresh});
        break;
    case SPAWN:
        fresh.title = "a prefab's title, which is long enough for the heap";
        fresh.bag = std::vector<int>{7, 8};
        fresh.scores = 5;
        fresh.body = std::vector<int>{1, 2, 3};
        made.push_back({d.h | 1, fresh});
        break;
    default:
        if (leaves(d)) gone.push_back(id);
        break;
    }
}

void command(quern::commands commands, quern_prefab prefab, quern_entity entity, const decision &d)
{
    switch (d.what) {
    case SET_TITLE:
        quern::must(commands.set(entity, Title{text_of(d.h)}));
        break;
    case DROP_TITLE:
        quern::must(commands.remove<Title>(entity));
        break;
    case SET_BAG:
        quern::must(commands.set(entity, Bag{items_of(d.h)}));
        break;
    case DROP_BAG:
        quern::must(commands.remove<Bag>(entity));
        break;
    case SET_SCORES:
        quern::must(commands.set(entity, scores_of(static_cast<int>(d.h % 1000))));
        break;
    case DROP_SCORES:
        quern::must(commands.remove<Scores>(entity));
        break;
    case SET_SUM:
        quern::must(commands.set(entity, Sum{static_cast<int64_t>(d.h % 50)}));
        break;
    case MARK:
        quern::must(commands.set(entity, Marked{}));
        break;
    case UNMARK:
        quern::must(commands.remove<Marked>(entity));
        break;
    case SET_BODY:
        quern::must(commands.set(entity, Body{items_of(d.h)}));
        break;
    case DROP_BODY:
        quern::must(commands.remove<Body>(entity));
        break;
    case MAKE:
        commands.create(Id{d.h | 1}, Title{text_of(d.h)}, Body{items_of(d.h)});
        break;
    case SPAWN:
        commands.spawn(prefab).set(Id{d.h | 1});
        break;
    default:
        if (leaves(d)) quern::must(commands.destroy(entity));
        break;
    }
}

/* -------------------------------------------------------------------------------------------- the world */

struct scene {
    quern::app app;
    quern_prefab prefab{};
    std::vector<quern_entity> known; /* by id, before the frame */
    std::vector<uint64_t> known_ids;
    std::atomic<int64_t> added{0}, removed{0}, set{0};

    explicit scene(const quern_jobs_def &jobs) : app({}, {}, jobs) {}
};

std::map<uint64_t, quern_entity> handles_of(scene &in)
{
    std::map<uint64_t, quern_entity> found;
    for (auto [entity, id] : quern::query<const Id>(in.app))
        EXPECT(found.emplace(id.value, entity).second);
    return found;
}

void open(scene &in)
{
    quern::app &app = in.app;
    app.resource<Log>();
    app.component<Id>();
    app.component<Title>();
    app.component<Bag>();
    app.component<Scores>();
    app.component<Sum>();
    app.component<Marked>();
    app.component<Body>();
    quern::blueprint described(app);
    described.root()
        .set(Id{0})
        .set(Title{"a prefab's title, which is long enough for the heap"})
        .set(Bag{{7, 8}})
        .set(scores_of(5))
        .add<Body>();
    in.prefab = described.create();
    app.add("lengthen", [](const Id &id, Title &title) {
        if (decide(id.value, 1, 30).acts) title.text += static_cast<char>('A' + id.value % 26);
    });
    app.add("fill", [](const Id &id, Bag &bag) {
        const decision d = decide(id.value, 2, 30);
        if (d.acts) bag.items.push_back(static_cast<int>(d.h % 100));
    });
    for (const uint64_t salt : {uint64_t{3}, uint64_t{4}})
        app.add(salt == 3 ? "act" : "act again",
                [&in, salt](const Id &id, quern_entity entity, quern::commands commands) {
                    const decision d = decide(id.value, salt, 25);
                    if (d.acts) command(commands, in.prefab, entity, d);
                });
    app.add("give", [&in](const Id &id, quern::commands commands) {
        const decision d = decide(id.value, 5, 40);
        if (d.acts)
            commands.accumulate(in.known[d.h % in.known.size()], Sum{static_cast<int64_t>(d.h % 7)});
    });
    app.add(
        "tell",
        [](const Id &id, quern::context context) {
            const decision d = decide(id.value, 6, 20);
            if (d.acts) EXPECT(context.emit(Note{id.value, text_of(d.h)}));
        },
        quern::emits<Note>{});
    app.add_once(
        "listen",
        [](quern::context context) {
            Log &log = context.resource<Log>();
            context.each_event<Note>([&](const Note &note) {
                note.count.check();
                log.seen.push_back(note.id ^ mix(note.text.size()));
                log.last = note.text;
            });
        },
        quern::reads_events<Note>{}, quern::writes_resource<Log>{});
    app.add(
        "react",
        [&in](const Title &title, quern::context context) {
            title.count.check();
            if (context.reaction() == QUERN_REACT_ADDED) in.added++;
            if (context.reaction() == QUERN_REACT_REMOVED) in.removed++;
            if (context.reaction() == QUERN_REACT_SET) in.set++;
        },
        quern::reacts_to{QUERN_REACT_ADDED | QUERN_REACT_REMOVED | QUERN_REACT_SET});
}

void compare(scene &in, const model &expected)
{
    const std::map<uint64_t, quern_entity> handles = handles_of(in);
    EXPECT(handles.size() == expected.size());
    std::size_t body_count = 0, outside_count = 0;
    for (const auto &[id, at] : expected) {
        const auto found = handles.find(id);
        EXPECT(found != handles.end());
        const auto entity = in.app.entity(found->second);
        const Title *title = entity.try_get<Title>();
        const Bag *bag = entity.try_get<Bag>();
        const Scores *scores = entity.try_get<Scores>();
        const Sum *sum = entity.try_get<Sum>();
        const Body *body = entity.try_get<Body>();
        EXPECT((title != nullptr) == at.title.has_value() && (bag != nullptr) == at.bag.has_value());
        EXPECT((scores != nullptr) == at.scores.has_value() && (sum != nullptr) == at.sum.has_value());
        EXPECT((body != nullptr) == at.body.has_value() && entity.has<Marked>() == at.is_marked);
        if (title != nullptr) EXPECT(title->text == *at.title);
        if (bag != nullptr) EXPECT(bag->items == *at.bag);
        if (sum != nullptr) EXPECT(sum->value == *at.sum);
        if (body != nullptr) EXPECT(body->limbs == *at.body);
        if (scores != nullptr) {
            EXPECT(scores->text == std::to_string(*at.scores).c_str());
            EXPECT(scores->numbers.size() == static_cast<uint32_t>(*at.scores % 6));
            for (uint32_t i = 0; i < scores->numbers.size(); i++)
                EXPECT(scores->numbers[i] == static_cast<int32_t>(i) * *at.scores);
        }
        EXPECT(entity.parent() == (at.parent == 0 ? quern::null : handles.at(at.parent)));
        body_count += body != nullptr;
        if (body != nullptr) EXPECT(outside[found->second.bits] == 1);
    }
    for (const auto &[handle, count] : outside)
        outside_count += static_cast<std::size_t>(count);
    EXPECT(outside_count == body_count && broken_count == 0 && in.app.validate() == QUERN_OK);
}

/* --------------------------------------------------------------------------------------- the program */

/* Calls between frames. */
void change_between(scene &in, model &all)
{
    std::map<uint64_t, quern_entity> handles = handles_of(in);
    uint64_t random = mix(seed * 77 + frame);
    const auto draw = [&random](uint64_t below) { return (random = mix(random + 1)) % below; };
    for (int step = 0; step < 30; step++) {
        const uint64_t fresh = mix(seed + frame * 100 + static_cast<uint64_t>(step)) | 1;
        auto at = all.begin();
        if (!all.empty()) std::advance(at, static_cast<std::ptrdiff_t>(draw(all.size())));
        const uint64_t chosen = all.size() < 40 ? 0 : draw(6);
        if (chosen == 0 && all.size() < 300) {
            handles[fresh] =
                in.app.create(Id{fresh}, Title{text_of(fresh)}, Bag{items_of(fresh)}, Sum{}).handle();
            all[fresh] = {text_of(fresh), items_of(fresh), {}, {}, int64_t{3}, false, 0};
        } else if (chosen == 1) {
            auto above = all.begin();
            std::advance(above, static_cast<std::ptrdiff_t>(draw(all.size())));
            if (is_above(all, at->first, above->first)) continue;
            in.app.entity(handles[at->first]).set_parent(handles[above->first]);
            at->second.parent = above->first;
        } else if (chosen == 2) {
            in.app.entity(handles[at->first]).set_parent(quern::null);
            at->second.parent = 0;
        } else if (chosen == 3) {
            bool has_children = false;
            for (const auto &[id, other] : all)
                has_children |= other.parent == at->first;
            if (has_children) continue;
            const auto copy = in.app.entity(handles[at->first]).clone();
            copy.set(Id{fresh});
            all[fresh] = at->second;
            handles[fresh] = copy.handle();
        } else if (chosen == 4 && all.size() > 150) {
            in.app.entity(handles[at->first]).destroy();
            destroy(all, at->first);
        } else if (chosen == 5) {
            Title given{text_of(fresh)};
            in.app.entity(handles[at->first]).set(std::move(given));
            at->second.title = text_of(fresh);
        }
    }
    in.known.clear();
    in.known_ids.clear();
    for (const auto &[id, at] : all) {
        in.known.push_back(handles.at(id));
        in.known_ids.push_back(id);
    }
}

void play(scene &in, model &all)
{
    change_between(in, all);
    quern::must(in.app.run(1));
    const model before = all;
    std::vector<std::pair<uint64_t, modelled>> made;
    std::vector<uint64_t> gone;
    for (auto &[id, at] : all) {
        if (at.title && decide(id, 1, 30).acts) *at.title += static_cast<char>('A' + id % 26);
        const decision fills = decide(id, 2, 30);
        if (at.bag && fills.acts) at.bag->push_back(static_cast<int>(fills.h % 100));
    }
    for (const auto &[id, at] : before) {
        const decision first = decide(id, 3, 25), second = decide(id, 4, 25);
        if (first.acts) model_change(all, made, gone, id, first);
        const bool is_gone = first.acts && leaves(first);
        if (second.acts && (!is_gone || second.what == MAKE || second.what == SPAWN))
            model_change(all, made, gone, id, second);
    }
    for (const uint64_t id : gone)
        destroy(all, id);
    for (const auto &[id, at] : made)
        all[id] = at;
    for (const auto &[id, at] : before) {
        const decision gives = decide(id, 5, 40);
        if (!gives.acts) continue;
        const auto target = all.find(in.known_ids[gives.h % in.known_ids.size()]);
        if (target != all.end() && target->second.sum)
            *target->second.sum += static_cast<int64_t>(gives.h % 7);
    }
    compare(in, all);
}

/* Gives types of the program the definition that they have, as code that is loaded again does. */
void redefine(scene &in)
{
    quern_redefine_report report;
    EXPECT(in.app.redefine_component<Title>(nullptr, &report).bits != 0 && !report.is_converted);
    EXPECT(in.app.redefine_component<Body>().bits != 0 && in.app.redefine_component<Scores>().bits != 0);
    EXPECT(in.app.redefine_event<Note>().bits != 0 && in.app.redefine_resource<Log>() != nullptr);
}

uint64_t play_seed(uint32_t thread_count)
{
    quern_jobs_def jobs{};
    jobs.thread_count = thread_count;
    uint64_t outcome = 0;
    {
        scene in(jobs);
        model all;
        open(in);
        quern_history_def def{};
        def.schedules[0] = in.app.schedule();
        quern::history history(in.app, def);
        for (frame = 1; frame <= 12; frame++) {
            if (frame % 4 == 2) {
                const model kept = all;
                const std::map<uint64_t, int> kept_outside = outside;
                const uint64_t first = frame;
                quern::must(history.save(first));
                for (; frame < first + 2; frame++)
                    play(in, all);
                frame = first;
                quern::must(history.restore(first));
                all = kept;
                compare(in, all);
            }
            if (frame % 3 == 0) redefine(in);
            play(in, all);
        }
        const Log &log = *in.app.resource<Log>();
        for (const uint64_t seen : log.seen)
            outcome = mix(outcome ^ seen);
        outcome ^= mix(log.last.size());
        EXPECT(!log.seen.empty());
        for (const auto &[id, at] : all)
            outcome += mix(id ^ at.title.value_or("").size());
        in.app.react();
        outcome ^= mix(static_cast<uint64_t>(in.added.load()) * 3 +
                       static_cast<uint64_t>(in.removed.load()) * 5 + static_cast<uint64_t>(in.set.load()));
    }
    for (const auto &[handle, count] : outside)
        EXPECT(count == 0);
    outside.clear();
    EXPECT(broken_count == 0);
    if (live_count != 0) std::fprintf(stderr, "%lld values are left\n", static_cast<long long>(live_count));
    EXPECT(live_count == 0);
    return outcome;
}

} // namespace

int main()
{
    for (seed = 1; seed <= 12; seed++) {
        const uint64_t expected = play_seed(1);
        for (const uint32_t thread_count : {2u, 3u, 8u})
            EXPECT(play_seed(thread_count) == expected);
    }
    std::puts("all random work");
}
