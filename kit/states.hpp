/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_STATES_HPP
#define QUERN_KIT_STATES_HPP

/** @file
 * States of a program in C++17; see <quern/kit/states.h>. Link quern::quern_states, and after it quern::quern.
 *
 *     enum class Screen { menu, playing };
 *     quern::states<Screen> screen{app, "screen", {"menu", "playing"}};
 *     screen.add_systems(app);
 *     app.add_once("build level", [](quern::context context) { ... }, quern::in_set{"enter playing"});
 *     app.add_once("keys", [&screen](quern::context context) { screen.set(context, Screen::playing); }, quern::sets_state{screen});
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/kit/states.h>
#include <quern/quern.hpp>

#include <initializer_list>

namespace quern {

/** States of a program. `E` is an enum, or an integer type, whose values from 0 on are the states.
 *
 * Declare it after its world. If a quern::schedule has its systems, declare the schedule after the states; states whose systems
 * are in an app take them and the sets out of the app when they end. They stay where they are: their systems refer to them. */
template <typename E> class states {
    static_assert(std::is_enum<E>::value || std::is_integral<E>::value,
                  "quern: the states of quern::states are the values of an enum or integer type");

  public:
    /** Creates states and their resource; see quern_states_create. */
    states(quern::world &world, const char *name, std::initializer_list<const char *> names, E first = E{})
        : ends_(world.ends_on_failure())
    {
        quern_states_def def{};
        def.name = name;
        def.first = static_cast<uint32_t>(first);
        quern_result result = names.size() > QUERN_MAX_STATES
                                  ? quern__option_fail("quern::states", QUERN_MAX_STATES)
                                  : QUERN_OK;
        uint32_t count = 0;
        for (const char *each : names)
            if (count < QUERN_MAX_STATES) def.states[count++] = each;
        quern_states *raw = nullptr;
        if (result == QUERN_OK) result = quern_states_create(world, &def, &raw);
        raw_.reset(raw);
        (void)check(result);
    }
    ~states()
    {
        if (app_schedule_ != nullptr) (void)quern_states_remove_systems(raw_.get(), app_schedule_);
    }
    states(const states &) = delete;
    states &operator=(const states &) = delete;
    /** The states of the C interface; nullptr if the constructor failed. */
    operator quern_states *() const { return raw_.get(); }

    /** Adds the sets and systems to an app; see quern_states_add_systems. Once per object. */
    quern_result add_systems(quern::app &app, uint32_t phase = 0)
    {
        const quern_result result = quern_states_add_systems(raw_.get(), app.schedule(), phase);
        if (result == QUERN_OK) app_schedule_ = app.schedule();
        return check(result);
    }
    /** Adds them to a schedule, which must be destroyed before the states. */
    QUERN__CPP_NODISCARD quern_result add_systems(quern::schedule &schedule, uint32_t phase = 0)
    {
        return check(quern_states_add_systems(raw_.get(), schedule, phase));
    }
    /** Makes the next frame the first one of a state; see quern_states_set. */
    quern_result set(E next) { return check(quern_states_set(raw_.get(), static_cast<uint32_t>(next))); }
    /** In a system that has declared quern::sets_state: makes the next frame one of a state; see quern_context_set_state. */
    quern_result set(const quern::context &context, E next, bool restarts = false) const
    {
        return detail::check_for(
            quern_context_set_state(context, raw_.get(), static_cast<uint32_t>(next), restarts), ends_);
    }
    /** Returns the state of the next frame; see quern_states_get. */
    E get() const { return static_cast<E>(quern_states_get(raw_.get())); }
    /** The tag of entities that live as long as a state; see quern_states_tag. */
    quern_component tag(E state) const
    {
        return quern_states_tag(raw_.get(), static_cast<uint32_t>(state));
    }
    /** The resource with the state. */
    quern_resource resource() const { return quern_states_resource(raw_.get()); }

  private:
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    struct destroy {
        void operator()(quern_states *raw) const { quern_states_destroy(raw); }
    };

    std::unique_ptr<quern_states, destroy> raw_;
    bool ends_;
    quern_schedule *app_schedule_ = nullptr;
};

/** Declares that a system sets the state: an option. */
struct sets_state : uses_resource {
    /** The states. */
    template <typename E>
    explicit sets_state(const states<E> &set) : uses_resource{set.resource(), QUERN_ACCESS_WRITE}
    {
    }
};

} // namespace quern

#endif
