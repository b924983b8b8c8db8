/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_EVENT_H
#define QUERN_EVENT_H

/** @file
 * Events are values that some systems emit and other systems read, in an order that does not depend on the
 * number of threads. docs/events.md explains them.
 *
 *     quern_event hit;
 *     check(QUERN_EVENT_REGISTER(world, &hit, Hit));
 *     ... {.name = "shoot", .run = shoot, .terms = {...}, .emits = {hit}}
 *     ... {.name = "bleed", .run = bleed, .items = hit}
 *
 * A system that declares an event in `emits` emits values of it while it runs. The next sync point
 * publishes these values, ordered by system, view and emission. Within one system, events of the condition
 * precede those of begin, those of the views, and those of end.
 *
 * From then on each *reader* sees each event once. Readers are the systems that declare the event in
 * `reads_events` or in `items`, and each quern_event_reader of code between frames. A reader sees the
 * events that are published after its creation. An event is freed when all readers have seen it; without
 * readers, it is freed immediately.
 *
 * Emitted values are never copied again: readers access them in *blocks* of some hundred, in the memory to
 * which the emitting system wrote them. The limits of blocks depend on the emitted events only, not on
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

#define QUERN_MAX_EVENTS        1024 /**< Maximum number of event types per world. */
/** Default limit for the events that wait for readers: 64 MiB. */
#define QUERN_EVENT_LIMIT_BYTES ((uint64_t)64 << 20)

/* ----------------------------------------------------------------------------------------- types */

/** Definition of an event type. */
typedef struct quern_event_def {
    /** Name of 1 to QUERN_MAX_NAME_BYTES bytes, unique among the world's events. */
    const char *name QUERN__ZERO;
    /** Size of a value, 0 to QUERN_MAX_COMPONENT_BYTES, a multiple of the alignment. Events of size 0 are
     * only counted. */
    uint32_t size_bytes QUERN__ZERO;
    uint32_t alignment_bytes QUERN__ZERO; /**< A power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1. */
    const char *type_name QUERN__ZERO; /**< Name of the C type, checked by QUERN_EVENTS; NULL if unknown. */
    /** Described fields. Publishing replaces provisional handles in fields of type QUERN_FIELD_ENTITY by
     * final handles. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO;
    /** Hooks; none for plain bytes. An emitted value is copied by the copy hook; with a move or destroy hook
     * but no copy hook, it is moved, and then belongs to the event. It is destroyed when the event is freed.
     * construct is not used. */
    quern_hooks hooks QUERN__ZERO;
    /** Limit for the events that wait for readers; 0 means QUERN_EVENT_LIMIT_BYTES. A waiting block costs
     * the bytes of its values (1 for an event of 0 bytes) and 32 bytes; see quern_event_block for its
     * length. When a publication exceeds the limit, the oldest blocks are dropped until the rest is within
     * the limit, even if some readers have not seen them. Events of the last publication, and events that a
     * running system reads, are never dropped. */
    uint64_t limit_bytes QUERN__ZERO;
    uint64_t type_id QUERN__ZERO; /**< Identity of the type; see quern_component_def. */
    bool is_hidden QUERN__ZERO;   /**< Whether tools should hide the event. Not part of the layout. */
} quern_event_def;

/** Registers an event type. Registering the same name with the same layout and limit again returns the same
 * event. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, COMPONENT_TOO_LARGE, LAYOUT_MISMATCH (the
 * name has another layout or limit), LIMIT (QUERN_MAX_EVENTS), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main,
 * between frames. */
QUERN_API quern_result quern_event_register(quern_world *world, const quern_event_def *def,
                                            quern_event *out_event);

/** Returns the event with the given name, or null if there is none. Threads: any, while no thread
 * registers. */
QUERN_API quern_event quern_event_find(const quern_world *world, const char *name);

/** Returns the name of an event, valid as long as the world. NULL, with a message, if the event is not of
 * this world. Threads: any, while no thread registers. */
QUERN_API const char *quern_event_name(const quern_world *world, quern_event event);

/** Registers a C type as an event of plain bytes, named after the type; see QUERN_COMPONENT_REGISTER. */
#ifdef __cplusplus
#define QUERN_EVENT_REGISTER(world, out_event, ...) \
    quern__event_register<__VA_ARGS__>((world), (out_event), #__VA_ARGS__, {})
#else
#define QUERN_EVENT_REGISTER(world, out_event, ...) \
    quern_event_register((world), &(quern_event_def){QUERN_TYPE(__VA_ARGS__)}, (out_event))
#endif

/** Registers a C type with described fields as an event; see QUERN_COMPONENT_REGISTER_FIELDS. */
#ifdef __cplusplus
#define QUERN_EVENT_REGISTER_FIELDS(world, out_event, type, ...) \
    quern__event_register<type>((world), (out_event), #type, QUERN__FIELD_LIST(type, __VA_ARGS__))
#else
#define QUERN_EVENT_REGISTER_FIELDS(world, out_event, type, ...)                                          \
    quern_event_register((world),                                                                         \
                         &(quern_event_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
                         (out_event))
#endif

/** Current statistics of an event. */
typedef struct quern_event_stats {
    uint64_t waiting_count; /**< Number of events published and not freed. */
    uint64_t waiting_bytes; /**< Cost of these events towards limit_bytes of quern_event_def. */
    /** Number of readers: systems of all schedules, and readers of code between frames. */
    uint32_t reader_count;
    /** Number of events dropped before a reader had seen them. An event counts once per such reader. */
    uint64_t lost_count;
} quern_event_stats;

/** Returns the statistics of an event. Errors: NULL_ARGUMENT, UNKNOWN_EVENT. Threads: main, between frames.
 */
QUERN_API quern_result quern_event_get_stats(const quern_world *world, quern_event event,
                                             quern_event_stats *out_stats);

/* ------------------------------------------------------------------------------------- in systems */

/** The destination for a callback's events of one type. Valid until the callback returns. */
typedef struct quern_emitter {
    char *next; /**< Internal: address of the next value. */
    /** Internal: end of the room for values; if equal to `next`, the next value needs quern__emit_place. */
    char *end;
    uint32_t size_bytes; /**< Internal: size of a value. */
} quern_emitter;

/** Returns this callback's emitter for an event that the system declares in `emits`. For any other event,
 * the call is refused and returns NULL. Events that a condition emits are published whatever the condition
 * returns. */
QUERN_API quern_emitter *quern_context_emitter(quern_context *context, quern_event event);

/* Internal: the uncommon cases of emitting a value. type_name: NULL if the caller copies a value. */
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

/* Internal: implements quern_emit. The address of the value does not escape, so the compiler may keep the
 * value in registers. */
static inline bool quern__emit_value(quern_emitter *emitter, const void *value, size_t size_bytes)
{
    void *place = quern__emit_sized(emitter, size_bytes, NULL);
    if (place == NULL) return false;
    memcpy(place, value, size_bytes);
    return true;
}

/** Emits one event: copies the bytes of a value of the event's C type.
 *
 *     quern_emit(emitter, &(Hit){.target = target, .damage = 3});
 *
 * Returns true if the event was emitted. Returns false if the emitter is NULL, if the emitter's callback
 * has returned (with a message), or if memory is exhausted; the frame then returns OUT_OF_MEMORY at its
 * end. The call is refused, and returns false, if the value's size differs from the event's, or if the
 * event has a copy hook; use quern_context_emit for such events. */
#define quern_emit(emitter, ...) (quern__emit_value((emitter), (__VA_ARGS__), sizeof *(__VA_ARGS__)))

/** Emits one event and returns its address. The caller must write the whole value. Returns NULL where
 * quern_emit returns false. If the event has hooks, the caller constructs the value, and the event owns it.
 * Lists are empty there (<quern/list.h>) if the event has no hooks of its own.
 *
 *     Hit *hit = QUERN_EMIT(emitter, Hit);
 *     if (hit != NULL) hit->damage = 3, hit->target = target; */
#ifdef __cplusplus
#define QUERN_EMIT(emitter, ...) (quern__emit_as<__VA_ARGS__>((emitter), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_EMIT(emitter, ...) \
    ((__VA_ARGS__ *)quern__emit_sized((emitter), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/* Internal: implements QUERN_EMIT_SOME. */
QUERN_API void *quern__emit_some(quern_emitter *emitter, uint32_t most, uint32_t *out_count,
                                 size_t size_bytes, const char *type_name);

/** Emits several events and returns the address of the first; the others follow it as in an array. The
 * caller must write all values. *out_count is set to their number, from 1 to `most`; it is less than `most`
 * if a block ends. Use this to emit many events from one callback: it reserves space for several at a time,
 * where single emits wait for each other. Returns NULL and sets *out_count to 0 where quern_emit returns
 * false, and if `most` is 0.
 *
 *     for (uint32_t row = 0, some; row < count; row += some) {
 *         Hit *hits = QUERN_EMIT_SOME(emitter, count - row, &some, Hit);
 *         if (hits == NULL) break;
 *         for (uint32_t i = 0; i < some; i++) hits[i] = ...
 *     } */
#ifdef __cplusplus
#define QUERN_EMIT_SOME(emitter, most, out_count, ...) \
    (quern__emit_some_as<__VA_ARGS__>((emitter), (most), (out_count), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_EMIT_SOME(emitter, most, out_count, ...) \
    ((__VA_ARGS__ *)quern__emit_some((emitter), (most), (out_count), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Emits count events of any type from an array, or none if it fails: copies of the values, made by the copy
 * hook if there is one. The event must be declared in `emits`, as for quern_context_emitter; returns the same
 * as quern_emit. values may be NULL for an event of 0 bytes. */
QUERN_API bool quern_context_emit(quern_context *context, quern_event event, const void *values,
                                  uint32_t count);

/** A block of consecutive events that one callback, or calls of quern_world_emit, have emitted. A block has as
 * many values as fit 16,368 bytes, or fewer if it is the last one of the callback or call. A call of
 * quern_world_emit extends the last waiting block instead, if its events fit there and in the limit of the
 * event, there are readers of which none has seen the block or holds one, and the type owns no resources. A block
 * is freed, and stops counting towards the limit, at the first publication of the event after all readers have
 * seen it or were destroyed. */
typedef struct quern_event_block {
    const void *values; /**< The values, `count` of them in an array of the event's type. Not NULL. */
    uint32_t count;     /**< Number of events, at least 1. */
} quern_event_block;

/** Iterates over blocks of events. */
typedef struct quern_event_iterator {
    quern_event_block block; /**< The current block. */
    const void *channel;     /**< Internal. */
    uint64_t number;         /**< Internal. */
    uint64_t end;            /**< Internal. */
} quern_event_iterator;

/** Starts iterating the events published since the system last ran, in order. The system must declare the
 * event in `reads_events` or `items`; otherwise the call is refused, returns false, and the iteration is
 * empty. All callbacks of one run see the same events. The events stay valid until the run has ended:
 *
 *     quern_event_iterator it;
 *     quern_context_events(context, hit, &it);
 *     while (quern_event_next(&it)) {
 *         const Hit *hits = it.block.values;
 *         for (uint32_t i = 0; i < it.block.count; i++) ...
 *     }
 *
 * QUERN_EACH_EVENT is this loop in one line.
 * The condition sees the events that the run would see. A system that is skipped because of its condition
 * or interval has seen none of them. */
QUERN_API bool quern_context_events(quern_context *context, quern_event event,
                                    quern_event_iterator *out_iterator);

/** Advances to the next block. Returns false after the last. The values are valid until the callback
 * returns. */
QUERN_API bool quern_event_next(quern_event_iterator *iterator);

/** Returns the number of events that quern_context_events would iterate. Refused under the same conditions.
 */
QUERN_API uint64_t quern_context_event_count(quern_context *context, quern_event event);

/* Internal: the state of QUERN_EACH_EVENT. */
typedef struct quern__event_loop {
    quern_event_iterator blocks;
    const char *next;
    uint32_t left; /* number of events of the block from `next` on */
    uint32_t size_bytes;
    bool is_running;
} quern__event_loop;

/* Internal: implements QUERN_EACH_EVENT. */
QUERN_API quern__event_loop quern__events_start(quern_context *context, quern_event event,
                                                size_t size_bytes, const char *type_name);

/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type */
#ifdef __cplusplus
#define QUERN__EVENT_NAME(...)    QUERN__SPELLED(__VA_ARGS__)
#define QUERN__EVENT_BYTES(...)   quern__type_of<__VA_ARGS__>::size_bytes
#define QUERN__EVENT_POINTER(...) static_cast<const __VA_ARGS__ *>
#else
#define QUERN__EVENT_NAME(...)    #__VA_ARGS__
#define QUERN__EVENT_BYTES(...)   sizeof(__VA_ARGS__)
#define QUERN__EVENT_POINTER(...) (const __VA_ARGS__ *)
#endif
/* NOLINTEND(bugprone-macro-parentheses) */

static inline const void *quern__events_step(quern__event_loop *loop)
{
    if (loop->left == 0) {
        if (!quern_event_next(&loop->blocks)) return NULL;
        loop->next = QUERN__EVENT_POINTER(char)(loop->blocks.block.values);
        loop->left = loop->blocks.block.count;
    }
    const void *event = loop->next;
    loop->next += loop->size_bytes;
    loop->left--;
    return event;
}

/** A loop over the events that quern_context_events iterates, one by one; `name` points to each, and the last argument
 * is its C type:
 *
 *     QUERN_EACH_EVENT(context, hit, it, Hit) health -= it->damage;
 *
 * Refused like QUERN_COLUMN if the type is not that of the event; the loop is then empty. break and continue work as in
 * any loop. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are a declarator and a type */
#define QUERN_EACH_EVENT(context, event, name, ...)                                                \
    for (quern__event_loop quern__loop_##name = quern__events_start(                               \
             (context), (event), QUERN__EVENT_BYTES(__VA_ARGS__), QUERN__EVENT_NAME(__VA_ARGS__)); \
         quern__loop_##name.is_running; quern__loop_##name.is_running = false)                     \
        for (const __VA_ARGS__ *name;                                                              \
             (name = QUERN__EVENT_POINTER(__VA_ARGS__)(quern__events_step(&quern__loop_##name))) != NULL;)
/* NOLINTEND(bugprone-macro-parentheses) */

/** Returns the view.count events of a view in a system with `items`. Refused in any other callback. */
QUERN_API const void *quern_view_events(const quern_view *view);

/* Internal: implements QUERN_EVENTS. */
QUERN_API const void *quern__view_events_typed(const quern_view *view, size_t size_bytes,
                                               const char *type_name);

/** Returns the events of a view as an array of a C type, to read. Refused like QUERN_COLUMN if the type is
 * not that of the event.
 *
 *     const Hit *hits = QUERN_EVENTS(view, Hit); */
#ifdef __cplusplus
#define QUERN_EVENTS(view, ...) (quern__events_as<__VA_ARGS__>((view), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_EVENTS(view, ...) \
    ((const __VA_ARGS__ *)quern__view_events_typed((view), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/* --------------------------------------------------------------------------------- between frames */

/** Emits count events and publishes them immediately, from code between frames and in exclusive systems.
 * Emits all or none. Systems see them from the next segment of a frame on. values may be NULL for an event
 * of 0 bytes. Errors, with nothing emitted: NULL_ARGUMENT, UNKNOWN_EVENT, PROVISIONAL_ENTITY (in a
 * described field: only frames replace provisional handles), WORLD_LOCKED, OUT_OF_MEMORY. After the events
 * were emitted: LIMIT (a reader has lost events; see quern_event_def). Threads: main, between frames and in
 * exclusive systems. */
QUERN_API quern_result quern_world_emit(quern_world *world, quern_event event, const void *values,
                                        uint32_t count);

/** Reads events in code between frames. */
typedef struct quern_event_reader quern_event_reader;

/** Definition of a reader. */
typedef struct quern_event_reader_def {
    quern_event event QUERN__ZERO; /**< The event to read. Required. */
    /** Name for messages, 1 to QUERN_MAX_NAME_BYTES bytes. NULL means "a reader". */
    const char *name QUERN__ZERO;
} quern_event_reader_def;

/** Creates a reader, which sees the events that are published from now on. Events wait for it, up to their
 * limit, until it is destroyed, so an unused reader costs memory. Destroy it before its world. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_EVENT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_event_reader_create(quern_world *world, const quern_event_reader_def *def,
                                                 quern_event_reader **out_reader);

/** Returns the next block of events that the reader has not seen. Returns false, and an empty block, if the
 * reader has seen all events, or with a message while the world is locked. The values are valid until the
 * next call on the reader, quern_world_emit, or frame. From then on the reader has seen the block. Threads:
 * main, between frames and in exclusive systems. */
QUERN_API bool quern_event_reader_next(quern_event_reader *reader, quern_event_block *out_block);

/** Returns the number of events that were dropped before this reader had seen them. Events of blocks that
 * quern_event_reader_next returned are never among them. */
QUERN_API uint64_t quern_event_reader_lost_count(const quern_event_reader *reader);

/** Destroys a reader. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_event_reader_destroy(quern_event_reader *reader);

#ifdef __cplusplus
}

template <typename T>
inline quern_result quern__event_register(quern_world *world, quern_event *out_event, const char *name,
                                          const quern__field_list &fields)
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
