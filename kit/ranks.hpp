/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANKS_HPP
#define QUERN_KIT_RANKS_HPP

/** @file
 * One world on several ranks, in C++17; see <quern/kit/ranks.h>. Link quern::quern_ranks, and after it quern::quern.
 *
 *     quern_ranks_def def{};
 *     def.transport = transport;
 *     def.id = app.component<Number>();
 *     def.position = app.component<Place>();
 *     def.planar = true;
 *     def.radius = 1;
 *     quern::ranks ranks{app, def};
 *     app.add("warn", [&ranks](quern::context context, const Number &number, const Friend &to) {
 *         quern_ranks_message message{};
 *         message.verb = QUERN_RANKS_DESTROY;
 *         message.from = number.value;
 *         message.to = to.id;
 *         ranks.send(context, message);
 *     }, quern::sends_messages{ranks});
 *     ranks.start(app, 1.0 / 60);
 *     if (ranks.frame() == 0) ...; // each rank creates a share
 *     uint64_t hash;
 *     ranks.run(1000, &hash);
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/kit/ranks.h>
#include <quern/quern.hpp>

#include <vector>

namespace quern {

/** The part of one rank. Declare it after its world. */
class ranks {
  public:
    /** Creates the part of this rank; `world` of the definition is set. See quern_ranks_create. */
    ranks(quern::world &world, quern_ranks_def def) : ends_(world.ends_on_failure())
    {
        quern_ranks *raw = nullptr;
        def.world = world;
        const quern_result result = quern_ranks_create(&def, &raw);
        raw_.reset(raw);
        (void)check(result);
    }
    /** The object of the C interface; nullptr if the constructor failed. */
    operator quern_ranks *() const { return raw_.get(); }

    /** A schedule that runs first in each frame, while ghosts are on their way; see quern_ranks_overlap. */
    quern_result overlap(quern::schedule &schedule)
    {
        return check(quern_ranks_overlap(raw_.get(), schedule));
    }
    /** Frames are those of an app, on its threads; see quern_ranks_start. */
    quern_result start(quern::app &app, double delta_seconds)
    {
        return check(quern_ranks_start(raw_.get(), app.schedule(), app.jobs(), delta_seconds));
    }
    /** Frames are those of a schedule; see quern_ranks_start. */
    QUERN__CPP_NODISCARD quern_result start(quern::schedule &schedule, quern_jobs *jobs,
                                            double delta_seconds)
    {
        return check(quern_ranks_start(raw_.get(), schedule, jobs, delta_seconds));
    }
    /** Runs frames on all ranks; see quern_ranks_run. Also an app returns what went wrong: a lost rank is no mistake. */
    QUERN__CPP_NODISCARD quern_result run(uint64_t frame_count, uint64_t *out_hash = nullptr)
    {
        return quern_ranks_run(raw_.get(), frame_count, out_hash);
    }
    /** The number of frames that were run. */
    uint64_t frame() const { return quern_ranks_frame(raw_.get()); }
    /** The index of this rank. */
    uint32_t index() const { return quern_ranks_index(raw_.get()); }
    /** The number of ranks. */
    uint32_t count() const { return quern_ranks_count(raw_.get()); }
    /** Whether this rank is to create the entity with an index at the beginning. */
    bool creates(uint64_t entity_index) const { return quern_ranks_creates(raw_.get(), entity_index); }
    /** Frame and globals. */
    const quern_ranks_state &state() const { return *quern_ranks_get_state(raw_.get()); }
    /** The resource with frame and globals, for quern::uses_resource. */
    quern_resource resource() const { return quern_ranks_resource(raw_.get()); }
    /** The component that only ghosts have. */
    quern_component ghost() const { return quern_ranks_ghost(raw_.get()); }
    /** The event of messages, for quern::sends_messages. */
    quern_event messages() const { return quern_ranks_messages(raw_.get()); }
    /** Statistics of this rank, and of all. */
    quern_result stats(quern_ranks_stats *own, quern_ranks_stats *all) const
    {
        return check(quern_ranks_get_stats(raw_.get(), own, all));
    }

    /** The list of all ranks, with `list_ranks` of the definition; see quern_ranks_list. */
    std::vector<quern_ranks_place> list() const
    {
        std::vector<quern_ranks_place> places(quern_ranks_list(raw_.get(), nullptr, 0));
        (void)quern_ranks_list(raw_.get(), places.data(), static_cast<uint32_t>(places.size()));
        return places;
    }

    /** In a system with quern::sends_messages: sends a message; see quern_ranks_send. */
    bool send(const quern::context &context, const quern_ranks_message &message) const
    {
        return quern_ranks_send(context, raw_.get(), &message);
    }

  private:
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    struct destroy {
        void operator()(quern_ranks *raw) const { quern_ranks_destroy(raw); }
    };

    std::unique_ptr<quern_ranks, destroy> raw_;
    bool ends_;
};

/** Declares that a system sends messages: an option. */
struct sends_messages : emits_event {
    /** The ranks. */
    explicit sends_messages(const ranks &all) : emits_event{all.messages()} {}
};

} // namespace quern

#endif
