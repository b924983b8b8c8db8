/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INSPECT_INTERNAL_H
#define QUERN_INSPECT_INTERNAL_H

/* What the sources of the inspector share.
 *
 * An *answer* is the work on a request, and the text that it writes. Its end point, a row of a table, has a function
 * that begins the answer and one that continues it by a bounded step. So quern_inspect_request can finish an answer at
 * once, and quern_inspector_update can divide it over frames. Answers keep handles between two steps, never pointers
 * into the world. The messages of WebSockets are answers of the end point "watch".
 *
 * All of this belongs to the main thread. What the thread of the server shares with it, bytes alone, is in
 * server/inspect_exchange.h. */

#include "inspect/inspect.h"
#include "inspect/server/inspect_exchange.h"

#include <quern/event.h>
#include <quern/reflect.h>
#include <quern/relation.h>

/* ---------------------------------------------------------------------------------------------- text */

/* JSON text that grows. After a failed allocation, or beyond QUERN_INSPECT_MAX_ANSWER_BYTES, further text is dropped.
 * */
typedef struct quern__inspect_text {
    quern_byte_buffer bytes;
    bool is_out_of_memory;
    bool is_too_long;
} quern__inspect_text;

/* The functions below write one value, with its key if it is a member of an object; key is NULL in an array. They add
 * the comma before it. */
void quern__inspect_open(quern__inspect_text *text, const char *key, char bracket);
void quern__inspect_close(quern__inspect_text *text, char bracket);
void quern__inspect_put_text(quern__inspect_text *text, const char *key,
                             const char *value); /* NULL: null */
void quern__inspect_put_count(quern__inspect_text *text, const char *key, uint64_t value);
void quern__inspect_put_real(quern__inspect_text *text, const char *key,
                             double value); /* not finite: null */
void quern__inspect_put_flag(quern__inspect_text *text, const char *key, bool value);
void quern__inspect_put_hash(quern__inspect_text *text, const char *key, uint64_t value);
/* Writes the key, and returns a sink for the JSON of the value, which must not be empty. */
quern_sink quern__inspect_put_json(quern__inspect_text *text, const char *key);
/* Writes a value, or null without one, or if its type has hooks and no description. */
void quern__inspect_put_value(quern__inspect_text *text, const char *key, const quern_world *world,
                              const quern_type_info *type, const void *value);
/* Writes a handle as index:generation, or null. The form does not depend on names, unlike that of fields. */
void quern__inspect_put_entity(quern__inspect_text *text, const char *key, quern_entity entity);
/* Writes the member "path": the path of an entity, or null if it is dead. A path that is too long for a request is null,
 * with the member "path_error". */
enum { QUERN__INSPECT_PATH_BYTES = 4096 }; /* with a zero */
void quern__inspect_put_path(quern__inspect_text *text, const quern_world *world, quern_entity entity);

/* ----------------------------------------------------------------------------------------- arguments */

enum { QUERN__INSPECT_ARGUMENTS = 16 };

/* Decoded arguments of a request. */
typedef struct quern__inspect_arguments {
    uint32_t count;
    const char *names[QUERN__INSPECT_ARGUMENTS];
    const char *values[QUERN__INSPECT_ARGUMENTS];
    char text[QUERN__INSPECT_ARGUMENT_BYTES];
} quern__inspect_arguments;

/* Returns false if there are too many, or one is not percent-encoded UTF-8 without zero bytes. text may be NULL. */
bool quern__inspect_arguments_read(quern__inspect_arguments *arguments, const char *text);
/* Returns the value of an argument, or NULL if it is missing. */
const char *quern__inspect_argument(const quern__inspect_arguments *arguments, const char *name);

/* ------------------------------------------------------------------------------------------- answers */

typedef struct quern__inspect_answer quern__inspect_answer;

enum { QUERN__INSPECT_SEARCHED_PER_STEP = 128 };

/* A search of entities by the beginning of their names, which takes several steps. */
typedef struct quern__inspect_search {
    const char *prefix;  /* beginning of the name; part of the arguments */
    bool has_parent;     /* only children of `parent` match */
    quern_entity parent; /* null: entities without a parent */
    uint32_t cursor;     /* slot that is visited next, or QUERN_LIST_END */
    uint32_t match_count;
} quern__inspect_search;

/* An end point. */
typedef struct quern__inspect_route {
    const char *path;
    bool has_changes;                             /* needs POST, and an inspector that is not read-only */
    void (*begin)(quern__inspect_answer *answer); /* writes the first part, or fails */
    bool (*step)(
        quern__inspect_answer *answer); /* writes a part; returns whether it was the last. NULL: no parts */
} quern__inspect_route;

struct quern__inspect_answer {
    quern_inspector *inspector;
    const quern__inspect_route *route;
    quern__inspect_arguments arguments;
    const char *body;
    size_t body_bytes;
    quern__inspect_request
        *request; /* that owns the body and gets the text; NULL: a message, or no server */
    uint32_t status;
    bool is_done;
    quern__inspect_text text;

    /* Progress of an answer with parts. */
    quern_entity *entities; /* page of a list, allocated with room for entity_capacity */
    uint32_t entity_capacity, entity_count;
    uint32_t at;    /* index of the next part */
    uint32_t inner; /* index within the part */
    uint32_t left;  /* number of entries that may still be written */
    uint32_t list;  /* number of the list that is being written */
    quern__inspect_search search;
    quern_delta *delta;
    struct quern__inspect_client *client; /* of a message for a WebSocket; otherwise NULL */
};

quern__inspect_answer *quern__inspect_answer_create(quern_inspector *inspector);
void quern__inspect_answer_destroy(quern__inspect_answer *answer);
/* Finds the end point, and reads the arguments; a wrong request makes the answer done. */
void quern__inspect_answer_open(quern__inspect_answer *answer, const char *method, const char *path,
                                const char *arguments);
void quern__inspect_answer_begin(quern__inspect_answer *answer);
/* Writes the next part. Does nothing if the answer is done. */
void quern__inspect_answer_step(quern__inspect_answer *answer);
/* Replaces the text by an error, and ends the answer. */
void quern__inspect_fail(quern__inspect_answer *answer, uint32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, with the message of the library's last error. */
void quern__inspect_fail_result(quern__inspect_answer *answer, quern_result result);
/* Answers a change: {"done": true}, or an error. */
void quern__inspect_finish_change(quern__inspect_answer *answer, quern_result result);

/* These read an argument, and fail the answer and return false if it is missing or wrong. */
bool quern__inspect_read_text(quern__inspect_answer *answer, const char *name, const char **out_text);
bool quern__inspect_read_entity(quern__inspect_answer *answer, const char *name, quern_entity *out_entity);
bool quern__inspect_read_flag(quern__inspect_answer *answer, const char *name, bool *out_flag);
/* A missing argument is `otherwise`. */
bool quern__inspect_read_count(quern__inspect_answer *answer, const char *name, uint64_t otherwise,
                               uint64_t most, uint64_t *out_count);
/* Makes room for a page of handles. */
bool quern__inspect_reserve_page(quern__inspect_answer *answer, uint32_t capacity);

/* The end points, by file. */
extern const quern__inspect_route quern__inspect_world_routes[];
extern const quern__inspect_route quern__inspect_frame_routes[];

/* Writes one entry of a list of entities. */
void quern__inspect_write_entry(quern__inspect_answer *answer, quern_entity entity, bool has_values);

/* -------------------------------------------------------------------------------------------- frames */

enum {
    QUERN__INSPECT_SAMPLES = 256,
    QUERN__INSPECT_MARKS = 64,
    QUERN__INSPECT_DROPS = 64,        /* reports of dropped commands that are kept */
    QUERN__INSPECT_EVENTS = 256,      /* events that are kept to be shown */
    QUERN__INSPECT_EVENT_BYTES = 448, /* size of the JSON of one of them */
    QUERN__INSPECT_EVENTS_PER_FRAME = 32
};

/* The figures of one frame. */
typedef struct quern__inspect_sample {
    uint64_t frame; /* number under which the program ran it */
    quern_frame_stats stats;
} quern__inspect_sample;

/* A mark on the time line: something that a request did at a frame. */
typedef struct quern__inspect_mark {
    uint64_t frame;
    char text[88];
} quern__inspect_mark;

/* What one frame dropped of one system for one reason. */
typedef struct quern__inspect_drop {
    uint64_t frame;
    quern_dropped_command what;
} quern__inspect_drop;

typedef struct quern__inspect_event {
    uint64_t frame;
    quern_event event;
    char json[QUERN__INSPECT_EVENT_BYTES]; /* "" if the value is too long or has no description */
} quern__inspect_event;

void quern__inspect_note(quern_inspector *inspector, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Creates the readers of events, or destroys them. */
quern_result quern__inspect_set_listening(quern_inspector *inspector, bool is_on);
/* For the exchange: appends the trace. Returns false if it is too long, or memory is exhausted. */
bool quern__inspect_write_trace(void *trace, quern_byte_buffer *bytes);
/* Notes whether the next update has to tell the program another frame number. */
void quern__inspect_set_moved(quern_inspector *inspector, bool has_moved);

/* ------------------------------------------------------------------------------------------- clients */

/* The main thread's side of a WebSocket. */
typedef struct quern__inspect_client {
    quern__inspect_answer *answer; /* NULL until the first message */
    bool is_building;
    uint64_t due_ns;
    uint64_t interval_ns;
    uint64_t sample_count; /* samples that were sent, counted from the first one of the inspector */
    uint64_t event_count;  /* the same for events */
    bool wants_events;
} quern__inspect_client;

/* The page, which cmake/QuernEmbed.cmake makes of inspect/page.html. */
extern const unsigned char quern__inspect_page[];
extern const size_t quern__inspect_page_bytes;

struct quern_inspector {
    quern_inspector_def def;
    quern_world_user user;            /* registered, so that the world ends after the inspector */
    quern__inspect_exchange exchange; /* all that the thread of the server knows */
    quern__inspect_server *server;
    quern__inspect_answer *current; /* answer that continues after the next frame */
    quern__inspect_client clients[QUERN_INSPECT_MAX_CLIENTS];
    uint32_t next_client; /* that the next update builds a message for first */

    bool is_paused;
    uint64_t paused_budget_ns; /* of an update while paused, for answers and waiting */
    uint32_t step_count;       /* frames to run before the program pauses again */
    uint64_t frame;            /* number of the next frame */
    bool has_moved;            /* a request has changed `frame`, and the program does not know yet */
    bool is_saved;             /* the history has the present state as `frame` */
    bool has_run;              /* quern_inspector_update has let a frame run since the last sample */
    uint64_t request_count;    /* answered requests */
    uint64_t spent_ns;         /* time spent in updates with something to do */
    uint64_t longest_ns;
    uint64_t skipped_count; /* messages that were due while the client had not read the one before */

    quern_frame_capture *capture;
    bool is_capture_requested, has_capture;
    uint64_t captured_frame;
    uint32_t trace_count; /* frames that the trace still records */
    bool has_trace;

    uint64_t sample_count;
    quern__inspect_sample samples[QUERN__INSPECT_SAMPLES];
    uint64_t mark_count;
    quern__inspect_mark marks[QUERN__INSPECT_MARKS];
    uint64_t drop_count; /* reports so far */
    quern__inspect_drop drops[QUERN__INSPECT_DROPS];

    quern_event_reader **readers; /* one for each event type, NULL while nothing listens */
    uint32_t reader_count;
    quern__inspect_event *events;      /* ring */
    uint64_t event_count, first_event; /* counted from the first event of the inspector */
};

#endif
