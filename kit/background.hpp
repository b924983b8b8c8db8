/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_BACKGROUND_HPP
#define QUERN_KIT_BACKGROUND_HPP

/** @file
 * Work that takes longer than a frame, in C++17; see <quern/kit/background.h>. Link quern::quern_background, and after it
 * quern::quern.
 *
 *     quern::background<WayRequest, Way, Search> ways{
 *         app, "ways", [](const WayRequest &wanted, Way &way, Search &search) { ...; return search.is_done; },
 *         quern::result_after{6}, quern::on_pool{jobs}};
 *     ways.add_systems(app);
 *     wolf.set(WayRequest{den}); // six frames later the wolf has a Way
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/kit/background.h>
#include <quern/quern.hpp>

#include <cstdio>
#include <new>

namespace quern {

/** The pool that computes in the background: an option. */
struct on_pool {
    quern_jobs *jobs; /**< The pool. */
};
/** Frames from the request to the result: an option. Without it, quern::background::poll decides. */
struct result_after {
    uint32_t frames; /**< Number of frames. */
};
/** Processor time that background work may take per frame: an option. */
struct budget {
    uint32_t microseconds; /**< The time. */
};
/** Frames for which results are kept for a history that goes back: an option. */
struct keep_results {
    uint32_t frames; /**< Number of frames. */
};
/** State of background work that remembers nothing from step to step. */
struct no_state {};

/** @cond internal */
namespace detail {

inline void apply_background(const on_pool &option, quern_background_def &def)
{
    def.jobs = option.jobs;
}
inline void apply_background(const result_after &option, quern_background_def &def)
{
    def.frames = option.frames;
}
inline void apply_background(const budget &option, quern_background_def &def)
{
    def.budget_us = option.microseconds;
}
inline void apply_background(const keep_results &option, quern_background_def &def)
{
    def.keep_frames = option.frames;
}

template <typename T, typename = void> inline constexpr bool has_equality = false;
template <typename T>
inline constexpr bool
    has_equality<T, std::enable_if_t<std::is_convertible<
                        decltype(std::declval<const T &>() == std::declval<const T &>()), bool>::value>> =
        true;

} // namespace detail
/** @endcond */

/** Background work: an entity that gets a `Request` gets a `Result` later. The step function is called with the request, the
 * result and the `State`, which stays from step to step, and returns whether the result is complete. Without a state, it is
 * called with request and result, and may return nothing: then one call is all. It does not throw, and is called on any thread.
 *
 * Declare it after its world and its pool. If a quern::schedule has its systems, declare the schedule after the work; work
 * whose systems are in an app takes them out of the app when it ends. It stays where it is: its systems refer to it. */
template <typename Request, typename Result, typename State = no_state> class background {
    static_assert(std::is_copy_constructible<Request>::value && std::is_copy_constructible<Result>::value,
                  "quern: requests and results of background work are copied: these types cannot be");
    static_assert(std::is_trivially_copyable<Request>::value || detail::has_equality<Request>,
                  "quern: requests of background work are compared: give this type an operator ==");

  public:
    /** Creates background work. Options: quern::on_pool, result_after, budget, keep_results. See quern_background_create. */
    template <typename F, typename... Options>
    background(quern::world &world, const char *name, F step, const Options &...options)
        : ends_(world.ends_on_failure()), step_(new held<F>(std::move(step)))
    {
        quern_background_def def{};
        (detail::apply_background(options, def), ...);
        def.name = name;
        def.step = [](void *user_data, quern_background_step *at) noexcept {
            return call(static_cast<held<F> *>(static_cast<held_base *>(user_data))->step, *at);
        };
        def.user_data = step_.get();
        if constexpr (!std::is_empty<State>::value) {
            static_assert(alignof(State) <= QUERN_MAX_ALIGNMENT_BYTES,
                          "quern: the alignment of this state is above QUERN_MAX_ALIGNMENT_BYTES");
            def.state_bytes = sizeof(State);
            def.end = [](void *, void *state) noexcept { static_cast<State *>(state)->~State(); };
        }
        if constexpr (detail::has_equality<Request>)
            def.is_equal = [](void *, const void *first, const void *second) noexcept -> bool {
                return *static_cast<const Request *>(first) == *static_cast<const Request *>(second);
            };
        quern_result result = detail::find_component<Request>(world, &def.request);
        if (result == QUERN_OK) result = detail::find_component<Result>(world, &def.result);
        quern_background *raw = nullptr;
        if (result == QUERN_OK) result = quern_background_create(world, &def, &raw);
        raw_.reset(raw);
        (void)check(result);
    }
    background(const background &) = delete;
    background &operator=(const background &) = delete;
    /** The work of the C interface; nullptr if the constructor failed. */
    operator quern_background *() const { return raw_.get(); }

    /** Adds the systems to an app; see quern_background_add_systems. Once per object. */
    quern_result add_systems(quern::app &app, uint32_t phase = 0)
    {
        const quern_result result = quern_background_add_systems(raw_.get(), app.schedule(), phase);
        quern_type_info info{};
        if (quern_resource_get_info(app, resource(), &info) == QUERN_OK)
            for (const char *word : {"apply", "begin"}) {
                char name[QUERN_MAX_NAME_BYTES + 1];
                (void)std::snprintf(name, sizeof name, "%s %s", info.name, word);
                in_app_.note(app.schedule(), name);
            }
        return check(result);
    }
    /** Adds them to a schedule, which must be destroyed before the work. */
    QUERN__CPP_NODISCARD quern_result add_systems(quern::schedule &schedule, uint32_t phase = 0)
    {
        return check(quern_background_add_systems(raw_.get(), schedule, phase));
    }
    /** Lists the results that are ready, for the next frame; see quern_background_poll. */
    quern_result poll() { return check(quern_background_poll(raw_.get())); }
    /** The resource with the list of results that are ready, an input of replays. */
    quern_resource resource() const { return quern_background_resource(raw_.get()); }
    /** The component of entities with pending work. */
    quern_component due() const { return quern_background_due(raw_.get()); }
    /** Returns the statistics; see quern_background_get_stats. */
    quern_background_stats stats() const
    {
        quern_background_stats numbers{};
        (void)check(quern_background_get_stats(raw_.get(), &numbers));
        return numbers;
    }

  private:
    struct held_base {
        virtual ~held_base() = default;
    };
    template <typename F> struct held final : held_base {
        explicit held(F &&function) : step(std::move(function)) {}
        F step;
    };

    template <typename F> static bool call(F &function, const quern_background_step &at)
    {
        const Request &request = *static_cast<const Request *>(at.request);
        Result &result = *static_cast<Result *>(at.result);
        if constexpr (!std::is_empty<State>::value) {
            State *const state = at.index == 0 ? new (at.state) State() : static_cast<State *>(at.state);
            return function(request, result, *state);
        } else if constexpr (std::is_void<decltype(function(request, result))>::value) {
            function(request, result);
            return true;
        } else {
            return function(request, result);
        }
    }
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    struct destroy {
        void operator()(quern_background *raw) const { quern_background_destroy(raw); }
    };

    bool ends_;
    std::unique_ptr<held_base> step_;
    std::unique_ptr<quern_background, destroy> raw_; /* destroyed before the function */
    detail::app_systems in_app_;                     /* destroyed first */
};

} // namespace quern

#endif
