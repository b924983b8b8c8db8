/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SAVES_HPP
#define QUERN_SAVES_HPP

/** @file
 * Bytes in memory, sessions of archives (<quern/archive.h>), deltas (<quern/history.h>) and replays (<quern/replay.h>). */

#include <quern/quern.hpp>

namespace quern {

/** Bytes in memory that calls write to and read from: `world.save(bytes.sink())`, `other.load(bytes.source())`. It must not
 * move while a sink or source is used. */
class byte_buffer {
  public:
    /** Makes an empty buffer. */
    byte_buffer() = default;
    byte_buffer(const byte_buffer &) = delete;
    byte_buffer &operator=(const byte_buffer &) = delete;
    /** Frees the bytes. */
    ~byte_buffer() { quern_byte_buffer_release(&raw_); }
    /** Returns a sink that appends; see quern_sink_bytes. */
    quern_sink sink() { return quern_sink_bytes(&raw_); }
    /** Returns a source of all bytes; see quern_source_bytes. */
    quern_source source() const { return quern_source_bytes(raw_.bytes, raw_.size_bytes); }
    /** Returns the address of the bytes; nullptr if there are none. */
    const unsigned char *data() const { return static_cast<const unsigned char *>(raw_.bytes); }
    /** Returns the number of bytes. */
    std::size_t size() const { return raw_.size_bytes; }
    /** Removes the bytes, and keeps the memory. */
    void clear() { raw_.size_bytes = 0; }

  private:
    quern_byte_buffer raw_{};
};

/** Writes many lists of entities for one reader; destroyed with the object. Declare it after its world. */
class save_session : public detail::owner<quern_save_session, quern_save_session_destroy> {
  public:
    /** Creates a session; see quern_save_session_create. */
    explicit save_session(quern::world &world, const quern_save_def &def = {})
        : owner(world.ends_on_failure())
    {
        (void)check(quern_save_session_create(world, &def, &raw_));
    }
    /** Writes the entities of a list as the next message; see quern_save_session_write. */
    QUERN__CPP_NODISCARD quern_result write(const quern_archive *archive, const quern_sink &sink)
    {
        return check(quern_save_session_write(raw_, archive, sink));
    }
};

/** Reads the messages of a save_session into a world; destroyed with the object. Declare it after its world. */
class load_session : public detail::owner<quern_load_session, quern_load_session_destroy> {
  public:
    /** Creates a session; see quern_load_session_create. */
    explicit load_session(quern::world &world, const quern_load_def &def = {})
        : owner(world.ends_on_failure())
    {
        (void)check(quern_load_session_create(world, &def, &raw_));
    }
    /** Reads the next message; see quern_load_session_read. out_report may be nullptr. */
    QUERN__CPP_NODISCARD quern_result read(const quern_source &source,
                                           quern_load_report *out_report = nullptr)
    {
        return read(source, nullptr, 0, out_report);
    }
    /** The same; entities receives the loaded ones, up to capacity. */
    QUERN__CPP_NODISCARD quern_result read(const quern_source &source, quern_entity *entities,
                                           uint32_t capacity, quern_load_report *out_report = nullptr)
    {
        return check(quern_load_session_read(raw_, source, entities, capacity, out_report));
    }
};

/** The differences between two frames of a history; destroyed with the object. Declare it after its history. A loop goes
 * through its batches: `for (const quern_delta_batch &batch : delta)`. */
class delta : public detail::owner<quern_delta, quern_delta_destroy> {
  public:
    /** Computes the differences; see quern_delta_create. */
    delta(quern::history &history, uint64_t from, uint64_t to) : owner(history.ends_on_failure())
    {
        (void)check(quern_delta_create(history, from, to, &raw_));
    }
    /** Computes the differences that the definition selects; see quern_delta_create_limited. */
    delta(quern::history &history, uint64_t from, uint64_t to, const quern_delta_def &def)
        : owner(history.ends_on_failure())
    {
        (void)check(quern_delta_create_limited(history, from, to, &def, &raw_));
    }
    /** Returns the number of batches. */
    uint32_t size() const
    {
        uint32_t count = 0;
        if (raw_ != nullptr) (void)quern_delta_batches(raw_, &count);
        return count;
    }
    /** Returns the first batch. */
    const quern_delta_batch *begin() const
    {
        uint32_t count = 0;
        return raw_ != nullptr ? quern_delta_batches(raw_, &count) : nullptr;
    }
    /** Returns the end of the batches. */
    const quern_delta_batch *end() const { return begin() + size(); }
    /** Returns the cost of the delta; see quern_delta_get_stats. */
    quern_delta_stats stats() const
    {
        quern_delta_stats stats{};
        (void)check(quern_delta_get_stats(raw_, &stats));
        return stats;
    }
    /** Writes the delta as bytes; see quern_delta_write. */
    QUERN__CPP_NODISCARD quern_result write(const quern_sink &sink,
                                            const quern_delta_write_def &def = {}) const
    {
        return check(quern_delta_write(raw_, &def, sink));
    }
};

/** Applies the deltas of another world; destroyed with the object. Declare it after its world. */
class delta_applier : public detail::owner<quern_delta_applier, quern_delta_applier_destroy> {
  public:
    /** Creates an applier; see quern_delta_applier_create. */
    explicit delta_applier(quern::world &world) : owner(world.ends_on_failure())
    {
        (void)check(quern_delta_applier_create(world, &raw_));
    }
    /** Enters which entity stands for a key of the other world; see quern_delta_applier_map. */
    QUERN__CPP_NODISCARD quern_result map(uint64_t key, quern_entity entity)
    {
        return check(quern_delta_applier_map(raw_, key, entity));
    }
    /** Returns the entity that stands for a key of the other world; null if there is none. */
    quern_entity find(uint64_t key) const { return quern_delta_applier_find(raw_, key); }
    /** Applies the bytes of a delta; see quern_delta_apply. */
    QUERN__CPP_NODISCARD quern_result apply(const quern_source &source)
    {
        return check(quern_delta_apply(raw_, source));
    }
};

/** Records frames of a schedule, until it is finished or destroyed. Declare it after its schedule, and after what its sink
 * writes to. */
class replay_recorder {
  public:
    /** Creates a recorder; see quern_replay_recorder_create. */
    replay_recorder(quern::schedule &schedule, const quern_sink &sink,
                    const quern_replay_recorder_def &def = {})
        : ends_(schedule.ends_on_failure())
    {
        (void)check(quern_replay_recorder_create(schedule, sink, &def, &raw_));
    }
    replay_recorder(const replay_recorder &) = delete;
    replay_recorder &operator=(const replay_recorder &) = delete;
    /** Ends the recording. */
    ~replay_recorder() { (void)quern_replay_finish(raw_); }
    /** Returns the recorder of the C interface; nullptr if it could not be created, or is finished. */
    operator quern_replay_recorder *() const { return raw_; }
    /** Runs and records frames, up to the first that fails; see quern_replay_record. jobs may be nullptr. */
    QUERN__CPP_NODISCARD quern_result run(quern_jobs *jobs, double delta_seconds, uint64_t frame_count = 1)
    {
        quern_result result = QUERN_OK;
        for (uint64_t frame = 0; frame < frame_count && result == QUERN_OK; frame++)
            result = quern_replay_record(raw_, jobs, delta_seconds);
        return check(result);
    }
    /** Ends the recording, and returns whether all of it was written; see quern_replay_finish. */
    QUERN__CPP_NODISCARD quern_result finish()
    {
        return check(quern_replay_finish(std::exchange(raw_, nullptr)));
    }

  private:
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    quern_replay_recorder *raw_ = nullptr;
    bool ends_;
};

/** Returns the definition of a recording with these resources as inputs. A recorder refuses the definition if a resource
 * could not be found or registered. */
template <typename... T>
quern_replay_recorder_def replay_inputs(quern::world &world,
                                        quern_replay_detail detail = QUERN_REPLAY_PARTS)
{
    static_assert(sizeof...(T) <= QUERN_MAX_REPLAY_INPUTS, "quern: too many inputs of one recording");
    quern_replay_recorder_def def{};
    quern_result result = QUERN_OK;
    [[maybe_unused]] quern_resource *next = def.inputs;
    (void)((result = detail::find_resource<T>(world, next++), result == QUERN_OK) && ...);
    if (result != QUERN_OK) def.inputs[0].bits = UINT32_MAX; /* no handle */
    (void)detail::check_for(result, world.ends_on_failure());
    def.detail = detail;
    return def;
}

/** Runs recorded frames, and compares the world after each; see quern_replay_run. jobs and out_report may be nullptr. */
QUERN__CPP_NODISCARD inline quern_result replay(quern::schedule &schedule, quern_jobs *jobs,
                                                const quern_source &source,
                                                quern_replay_report *out_report = nullptr)
{
    return detail::check_for(quern_replay_run(schedule, jobs, source, nullptr, out_report),
                             schedule.ends_on_failure());
}
/** The same with lambdas: `before(frame)` repeats what the recorded program did between frames, and `bool after(frame)`
 * returns whether the replay goes on. */
template <typename Before, typename After>
QUERN__CPP_NODISCARD quern_result replay(quern::schedule &schedule, quern_jobs *jobs,
                                         const quern_source &source, quern_replay_report *out_report,
                                         Before &&before, After &&after)
{
    static_assert(std::is_invocable<Before &, uint64_t>::value,
                  "quern: before is a function with (uint64_t frame)");
    static_assert(
        std::is_invocable_r<bool, After &, uint64_t>::value,
        "quern: after is a function with (uint64_t frame) that returns whether the replay goes on");
    using both = std::pair<std::remove_reference_t<Before> *, std::remove_reference_t<After> *>;
    both calls(&before, &after);
    quern_replay_run_def def{};
    def.before_frame = [](void *own, uint64_t frame) noexcept {
        (*static_cast<both *>(own)->first)(frame);
    };
    def.after_frame = [](void *own, uint64_t frame) noexcept -> bool {
        return (*static_cast<both *>(own)->second)(frame);
    };
    def.user_data = &calls;
    return detail::check_for(quern_replay_run(schedule, jobs, source, &def, out_report),
                             schedule.ends_on_failure());
}

} // namespace quern

#endif
