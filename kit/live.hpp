/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_LIVE_HPP
#define QUERN_KIT_LIVE_HPP

/** @file
 * Modules of living code in C++17; see <quern/kit/live.h>.
 *
 *     static quern_result load(quern_live_module *raw)
 *     {
 *         quern::live_module module(raw);
 *         module.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
 *         return module.result();
 *     }
 *     QUERN_LIVE_MODULE(load, nullptr)
 *
 * Describe the fields of types (QUERN_DESCRIBE), so that their values can be converted when fields change. */

#include <quern/kit/live.h>
#include <quern/quern.hpp>

namespace quern {

/** A module in its load function: the world and the schedule, and the first failure. */
class live_module {
  public:
    /** Makes the object for the parameter of a load function. */
    explicit live_module(quern_live_module *raw)
        : world_(raw->world), systems_(new systems{{raw->world, raw->schedule}})
    {
        note(quern_live_own(raw, systems_, [](void *object) { delete static_cast<systems *>(object); }));
        if (result_ != QUERN_OK) systems_ = nullptr; /* was released */
    }
    live_module(const live_module &) = delete;
    live_module &operator=(const live_module &) = delete;
    ~live_module() { world_.leave(); }

    /** The result of the first call that failed; QUERN_OK if none did. */
    QUERN__CPP_NODISCARD quern_result result() const { return result_; }
    /** The world. Objects made for it, such as queries, must be gone when the module is unloaded: give them to
     * quern_live_own. */
    quern::world &world() { return world_; }

    /** Registers the component of a type. Types of systems are registered by `add`. */
    template <typename T> quern_component component()
    {
        quern_component found{};
        note(detail::find_component<T>(world_, &found));
        return found;
    }
    /** Registers the event of a type. */
    template <typename T> quern_event event()
    {
        quern_event found{};
        note(detail::find_event<T>(world_, &found));
        return found;
    }
    /** Registers the resource of a type; if the world lacks it, its value is default constructed. */
    template <typename T> quern_resource resource()
    {
        quern_resource found{};
        note(detail::find_resource<T>(world_, &found));
        return found;
    }
    /** Adds a system from a lambda; see quern::schedule::add. */
    template <typename F, typename... Options> void add(const char *name, F &&f, const Options &...options)
    {
        if (result_ == QUERN_OK) note(systems_->schedule.add(name, std::forward<F>(f), options...));
    }
    /** Adds a system without components; see quern::schedule::add_once. */
    template <typename F, typename... Options>
    void add_once(const char *name, F &&f, const Options &...options)
    {
        if (result_ == QUERN_OK) note(systems_->schedule.add_once(name, std::forward<F>(f), options...));
    }
    /** Adds a system that processes events; see quern::schedule::add_events. */
    template <typename F, typename... Options>
    void add_events(const char *name, F &&f, const Options &...options)
    {
        if (result_ == QUERN_OK) note(systems_->schedule.add_events(name, std::forward<F>(f), options...));
    }

  private:
    /* Keeps the lambdas until the module is unloaded; the schedule is the program's. */
    struct systems {
        quern::schedule schedule;
        ~systems() { (void)schedule.release(); }
    };
    /* The world is the program's. */
    struct borrowed_world : quern::world {
        explicit borrowed_world(quern_world *raw) : quern::world(raw) {}
        void leave() { raw_ = nullptr; }
    };

    void note(quern_result result)
    {
        if (result_ == QUERN_OK) result_ = result;
    }

    borrowed_world world_;
    systems *systems_;
    quern_result result_ = QUERN_OK;
};

} // namespace quern

#endif
