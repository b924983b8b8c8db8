/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_EVENT_H
#define QUERN_EVENT_H

/** @file
 * Events: values that some systems emit and others read, in an order that does not depend on the number
 * of threads. docs/events.md explains them.
 *
 *     quern_event hit;
 *     check(QUERN_EVENT_REGISTER(world, &hit, Hit));
 *     ... {.name = "shoot", .run = shoot, .terms = {...}, .emits = {hit}}
 *     ... {.name = "bleed", .run = bleed, .items = hit}
 *
 * A system that declares an event in `emits` appends to it while it runs. The next sync point publishes
 * what was emitted, in the order (system, view, emission); of one system, what its condition emits comes first,
 * then begin, the views, and end. From then on each *reader* sees each event
 * once: a system that declares the event in `reads_events`, or in `items`, or a quern_event_reader of
 * code between frames. An event is freed when all readers have seen it; where there are none, at once. A
 * reader sees what is published after it was made.
 *
 * Emitted values are never copied again: readers get them in *blocks* of some hundred, where the
 * emitting system put them. Where blocks begin and end follows from what was emitted, and not from the
 * threads. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/type.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_EVENTS        1024 /**< Event types per world. */
/** What may wait for a reader by default: 64 MiB. */
#define QUERN_EVENT_LIMIT_BYTES ((uint64_t)64 << 20)

/* ----------------------------------------------------------------------------------------- types */

/** Describes an event type. */
typedef struct quern_event_def {
    const char *name QUERN__ZERO; /**< 1 to QUERN_MAX_NAME_BYTES bytes, unique among the world's events. */
    /** 0 (it is only counted) to QUERN_MAX_COMPONENT_BYTES; a multiple of the alignment. */
    uint32_t size_bytes QUERN__ZERO;
    uint32_t alignment_bytes QUERN__ZERO; /**< A power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1. */
    const char *type_name QUERN__ZERO;    /**< Name of the C type, for QUERN_EVENTS; NULL: not known. */
    /** Described fields. Provisional handles in fields described as QUERN_FIELD_ENTITY become real when the
     * event is published. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO;
    /** None: plain bytes. A value is copied when it is emitted (with destroy and without copy: handed over)
     * and destroyed when it is freed; construct and move are not used. */
    quern_hooks hooks QUERN__ZERO;
    /** Limit for the events that wait for readers; 0 means QUERN_EVENT_LIMIT_BYTES. A waiting block costs the
     * bytes of its values (1 for each event of 0 bytes) and 32 bytes; see quern_event_block for its length.
     * When a publication exceeds the limit, the oldest blocks are dropped, also for readers that have not seen
     * them, until the rest is within the limit. The events of the last publication and those that a running
     * system reads are never dropped. */
    uint64_t limit_bytes QUERN__ZERO;
    bool is_hidden QUERN__ZERO; /**< Tools should not show it. Not part of the layout. */
} quern_event_def;

/** Registers an event type. The same name with the same layout and limit gives the same event again.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, COMPONENT_TOO_LARGE, LAYOUT_MISMATCH, LIMIT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_event_register(quern_world *world, const quern_event_def *def,
                                            quern_event *out_event);

/** Returns the event of that name, or null. Threads: any, while nobody registers. */
QUERN_API quern_event quern_event_find(const quern_world *world, const char *name);

/** Returns the name of an event, valid as long as the world. NULL, with a message, if the world does not
 * have it. Threads: any, while nobody registers. */
QUERN_API const char *quern_event_name(const quern_world *world, quern_event event);

/** Registers a C type as an event of plain bytes, under its own name; as QUERN_COMPONENT_REGISTER. */
#ifdef __cplusplus
#define QUERN_EVENT_REGISTER(world, out_event, ...) \
    quern__event_register<__VA_ARGS__>((world), (out_event), #__VA_ARGS__, {})
#else
#define QUERN_EVENT_REGISTER(world, out_event, ...) \
    quern_event_register((world), &(quern_event_def){QUERN_TYPE(__VA_ARGS__)}, (out_event))
#endif

/** Registers a C type with described fields as an event; as QUERN_COMPONENT_REGISTER_FIELDS. */
#ifdef __cplusplus
#define QUERN_EVENT_REGISTER_FIELDS(world, out_event, type, ...) \
    quern__event_register<type>((world), (out_event), #type, QUERN_FIELDS(type, __VA_ARGS__))
#else
#define QUERN_EVENT_REGISTER_FIELDS(world, out_event, type, ...)                                          \
    quern_event_register((world),                                                                         \
                         &(quern_event_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
                         (out_event))
#endif

/** What is known of an event now. */
typedef struct quern_event_stats {
    uint64_t waiting_count; /**< Events published and not freed. */
    uint64_t waiting_bytes; /**< Their cost towards quern_event_def.limit_bytes. */
    uint32_t reader_count;  /**< Systems, of all schedules, and readers of code between frames. */
    /** Events dropped before a reader had seen them; an event counts once for each such reader. */
    uint64_t lost_count;
} quern_event_stats;

/** Tells what waits of an event. Errors: NULL_ARGUMENT, UNKNOWN_EVENT. Threads: main, between frames. */
QUERN_API quern_result quern_event_get_stats(const quern_world *world, quern_event event,
                                             quern_event_stats *out_stats);

/* ------------------------------------------------------------------------------------- in systems */

/** Where a callback puts the events of one type. Valid until the callback returns. */
typedef struct quern_emitter {
    char *next;          /**< Internal: the place of the next value, */
    char *end;           /**< Internal: unless it is this. */
    uint32_t size_bytes; /**< Internal: of a value. */
} quern_emitter;

/** Returns the emitter of this callback for an event that the system declares in `emits`; NULL, refused,
 * for another. What the condition of a system emits is published in either case. */
QUERN_API quern_emitter *quern_context_emitter(quern_context *context, quern_event event);

/* Internal: the long way to a place. type_name: NULL for a value to be copied there. */
QUERN_API void *quern__emit_place(quern_emitter *emitter, size_t size_bytes, const char *type_name);

static inline void *quern__emit_sized(quern_emitter *emitter, size_t size_bytes, const char *type_name)
{
    char *place;
    if (emitter == NULL || emitter->next == emitter->end || emitter->size_bytes != size_bytes)
        return quern__emit_place(emitter, size_bytes, type_name);
    place = emitter->next;
    emitter->next = place + size_bytes;
    return place;
}

/* For quern_emit. Nobody else gets the address of the value, so the compiler may keep it in registers. */
static inline bool quern__emit_value(quern_emitter *emitter, const void *value, size_t size_bytes)
{
    void *place = quern__emit_sized(emitter, size_bytes, NULL);
    if (place == NULL) return false;
    memcpy(place, value, size_bytes);
    return true;
}

/** Emits one event: the bytes of a value of its C type.
 *
 *     quern_emit(emitter, &(Hit){.target = target, .damage = 3});
 *
 * Returns false when the emitter is NULL, is used after its callback (with a message), or there is no
 * memory; then nothing is emitted, and in the last case the frame returns OUT_OF_MEMORY in the end.
 * Refused, and false, when the event has another size, or a copy hook: quern_emit_copy calls it. */
#define quern_emit(emitter, ...) (quern__emit_value((emitter), (__VA_ARGS__), sizeof *(__VA_ARGS__)))

/** Emits one event and returns where it is, to be written by the caller, all of it; NULL where quern_emit
 * returns false. An event with hooks is made there by the caller, as if it were handed over.
 *
 *     Hit *hit = QUERN_EMIT(emitter, Hit);
 *     if (hit != NULL) hit->damage = 3, hit->target = target; */
#ifdef __cplusplus
#define QUERN_EMIT(emitter, ...) (quern__emit_as<__VA_ARGS__>((emitter), #__VA_ARGS__))
#else
#define QUERN_EMIT(emitter, ...) \
    ((__VA_ARGS__ *)quern__emit_sized((emitter), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/* For QUERN_EMIT_SOME. */
QUERN_API void *quern__emit_some(quern_emitter *emitter, uint32_t most, uint32_t *out_count,
                                 size_t size_bytes, const char *type_name);

/** Emits several events and returns where they are, next to each other: an array to be written by the
 * caller, all of it, as with QUERN_EMIT. *out_count tells how many: at least 1, and at most `most`, for
 * blocks end. For kernels with many events: where each is emitted by itself, it waits for the one before
 * to be counted. NULL, and 0, where quern_emit returns false, and where most is 0.
 *
 *     for (uint32_t row = 0, some; row < count; row += some) {
 *         Hit *hits = QUERN_EMIT_SOME(emitter, count - row, &some, Hit);
 *         if (hits == NULL) break;
 *         for (uint32_t i = 0; i < some; i++) hits[i] = ...
 *     } */
#ifdef __cplusplus
#define QUERN_EMIT_SOME(emitter, most, out_count, ...) \
    (quern__emit_some_as<__VA_ARGS__>((emitter), (most), (out_count), #__VA_ARGS__))
#else
#define QUERN_EMIT_SOME(emitter, most, out_count, ...) \
    ((__VA_ARGS__ *)quern__emit_some((emitter), (most), (out_count), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Emits one event of any type: a copy of the value, by the copy hook if there is one. value may be NULL
 * for an event of 0 bytes. Returns as quern_emit. */
QUERN_API bool quern_emit_copy(quern_emitter *emitter, const void *value);

/** Emits count events from an array; all or none. As quern_context_emitter and quern_emit. values may be
 * NULL for an event of 0 bytes. */
QUERN_API bool quern_context_emit(quern_context *context, quern_event event, const void *values,
                                  uint32_t count);

/** A block of events: what one callback, or one call of quern_world_emit, emitted in a row. It ends after as
 * many values as fit 16,368 bytes, and where that callback or call ends. A block is freed, and costs nothing
 * any more, in the first publication of the event after all readers have seen it. */
typedef struct quern_event_block {
    const void *values; /**< Not NULL; count values of the event's type next to each other. */
    uint32_t count;     /**< At least 1. */
} quern_event_block;

/** Walks over events. */
typedef struct quern_event_iterator {
    quern_event_block block; /**< The current one. */
    const void *channel;     /**< Internal. */
    uint64_t number;         /**< Internal. */
    uint64_t end;            /**< Internal. */
} quern_event_iterator;

/** Begins a walk over the events that this run of the system is the first one of the system to see, in
 * order. The system declares the event in `reads_events` or `items`; the walk of one that does not is
 * refused, and empty, and false is returned. All callbacks of one run see the same events, which are the
 * system's until the run is over:
 *
 *     quern_event_iterator it;
 *     quern_context_events(context, hit, &it);
 *     while (quern_event_next(&it)) {
 *         const Hit *hits = it.block.values;
 *         for (uint32_t i = 0; i < it.block.count; i++) ...
 *     }
 *
 * A run that is held back by its condition or interval has seen nothing; the condition sees what the run
 * would see. */
QUERN_API bool quern_context_events(quern_context *context, quern_event event,
                                    quern_event_iterator *out_iterator);

/** Moves on to the next block; false after the last. Values are valid until the callback returns. */
QUERN_API bool quern_event_next(quern_event_iterator *iterator);

/** Returns how many events quern_context_events would walk over; refused as that. */
QUERN_API uint64_t quern_context_event_count(quern_context *context, quern_event event);

/** Returns the view.count events of a view, in a system with `items`. Refused elsewhere. */
QUERN_API const void *quern_view_events(const quern_view *view);

/* For QUERN_EVENTS. */
QUERN_API const void *quern__view_events_typed(const quern_view *view, size_t size_bytes,
                                               const char *type_name);

/** Returns the events of a view as an array of a C type, to read. Refused as in QUERN_COLUMN when the type
 * is another one.
 *
 *     const Hit *hits = QUERN_EVENTS(view, Hit); */
#ifdef __cplusplus
#define QUERN_EVENTS(view, ...) (quern__events_as<__VA_ARGS__>((view), #__VA_ARGS__))
#else
#define QUERN_EVENTS(view, ...) \
    ((const __VA_ARGS__ *)quern__view_events_typed((view), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/* --------------------------------------------------------------------------------- between frames */

/** Emits count events and publishes them at once, from code between frames and in exclusive systems; all
 * or none. Readers among systems see them from the next segment of a frame on. values may be NULL for an
 * event of 0 bytes. Errors, with nothing emitted: NULL_ARGUMENT, UNKNOWN_EVENT, PROVISIONAL_ENTITY (in a
 * described field: only frames make them real), WORLD_LOCKED, OUT_OF_MEMORY. After the events were
 * emitted: LIMIT (a reader has lost events; see quern_event_def). Threads: main, between frames. */
QUERN_API quern_result quern_world_emit(quern_world *world, quern_event event, const void *values,
                                        uint32_t count);

/** Reads events in code between frames. */
typedef struct quern_event_reader quern_event_reader;

/** Describes a reader. */
typedef struct quern_event_reader_def {
    quern_event event QUERN__ZERO; /**< What it reads. */
    const char *name QUERN__ZERO;  /**< For messages: 1 to QUERN_MAX_NAME_BYTES bytes. NULL: "a reader". */
} quern_event_reader_def;

/** Creates a reader, which sees what is published from now on. Events wait for it, up to the limit, until
 * it is destroyed, so one that is never asked costs memory. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * UNKNOWN_EVENT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_event_reader_create(quern_world *world, const quern_event_reader_def *def,
                                                 quern_event_reader **out_reader);

/** Gets the next block of events that the reader has not seen, and returns true; false, with a block of no
 * events, when it has seen all, and, with a message, while the world is locked. Values are valid until the
 * next call on the reader, quern_world_emit or frame; from then on the reader has seen the block. Threads: main,
 * between frames and in exclusive systems. */
QUERN_API bool quern_event_reader_next(quern_event_reader *reader, quern_event_block *out_block);

/** Returns how many events were dropped before this reader had seen them. Events of a block that
 * quern_event_reader_next returned are never among them. */
QUERN_API uint64_t quern_event_reader_lost_count(const quern_event_reader *reader);

/** Destroys a reader. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_event_reader_destroy(quern_event_reader *reader);

#ifdef __cplusplus
}

template <typename T>
inline quern_result quern__event_register(quern_world *world, quern_event *out_event, const char *name,
                                          std::initializer_list<quern_field> fields)
{
    const auto def = quern__def_of<T, quern_event_def>(name, fields);
    return quern_event_register(world, &def, out_event);
}

template <typename T> inline T *quern__emit_as(quern_emitter *emitter, const char *type_name)
{
    return static_cast<T *>(quern__emit_sized(emitter, quern__type_of<T>::size_bytes, type_name));
}

template <typename T>
inline T *quern__emit_some_as(quern_emitter *emitter, uint32_t most, uint32_t *out_count,
                              const char *type_name)
{
    return static_cast<T *>(
        quern__emit_some(emitter, most, out_count, quern__type_of<T>::size_bytes, type_name));
}

template <typename T> inline const T *quern__events_as(const quern_view *view, const char *type_name)
{
    return static_cast<const T *>(quern__view_events_typed(view, quern__type_of<T>::size_bytes, type_name));
}
#endif

#endif
