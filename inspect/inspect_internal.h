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
#include <quern/getter.h>
#include <quern/reflect.h>
#include <quern/relation.h>
#include <quern/replay.h>

/* ---------------------------------------------------------------------------------------------- text */

/* JSON text that grows. After a failed allocation, or beyond QUERN_INSPECT_MAX_ANSWER_BYTES, further text is dropped.
 * */
typedef struct quern__inspect_text {
    quern_byte_buffer bytes;
    bool is_out_of_memory;
    bool is_too_long;
    bool is_binary; /* no JSON, and up to QUERN_INSPECT_MAX_ARCHIVE_BYTES */
} quern__inspect_text;

/* The functions below write one value, with its key if it is a member of an object; key is NULL in an array. They add
 * the comma before it. */
void quern__inspect_open(quern__inspect_text *text, const char *key, char bracket);
void quern__inspect_close(quern__inspect_text *text, char bracket);
void quern__inspect_put_text(quern__inspect_text *text, const char *key,
                             const char *value); /* NULL: null */
void quern__inspect_put_count(quern__inspect_text *text, const char *key, uint64_t value);
void quern__inspect_put_integer(quern__inspect_text *text, const char *key, int64_t value);
void quern__inspect_put_real(quern__inspect_text *text, const char *key,
                             double value); /* not finite: null */
void quern__inspect_put_flag(quern__inspect_text *text, const char *key, bool value);
void quern__inspect_put_hash(quern__inspect_text *text, const char *key, uint64_t value);
/* Writes the key, and returns a sink for the JSON of the value, which must not be empty. */
quern_sink quern__inspect_put_json(quern__inspect_text *text, const char *key);
/* Makes the text from an offset on UTF-8, in place: a character that was cut is left out, any other wrong byte becomes '?'. */
void quern__inspect_mend_text(quern__inspect_text *text, size_t begin_bytes);
/* Returns a sink for bytes that are no JSON. */
quern_sink quern__inspect_put_bytes(quern__inspect_text *text);
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

/* -------------------------------------------------------------------------------------------- values */

enum { QUERN__INSPECT_CONDITIONS = 8, QUERN__INSPECT_CONDITION_TEXT = 64, QUERN__INSPECT_COLUMNS = 32 };

/* A described field, or an element of one, of a component. What is below the getter is valid until a type is registered or
 * gets another layout, so it is renewed before it is used in another step. */
typedef struct quern__inspect_field {
    const char *path; /* of the argument, without a zero */
    size_t path_bytes;
    quern_component component;
    quern_getter *getter;  /* NULL: closed */
    quern_field_type type; /* 0: the type does not have the field any more */
    uint32_t offset_bytes;
    uint32_t text_bytes; /* capacity of a text; 0 for other types */
    const quern_named_value *values;
} quern__inspect_field;

/* From EQUAL on, operators also apply to texts. */
typedef enum quern__inspect_operator {
    QUERN__INSPECT_LESS,
    QUERN__INSPECT_AT_MOST,
    QUERN__INSPECT_MORE,
    QUERN__INSPECT_AT_LEAST,
    QUERN__INSPECT_EQUAL,
    QUERN__INSPECT_DIFFERENT,
    QUERN__INSPECT_CONTAINS /* texts only */
} quern__inspect_operator;

typedef struct quern__inspect_condition {
    quern__inspect_field field;
    quern__inspect_operator op;
    double number; /* value on the right, of a field that is no text */
    char text[QUERN__INSPECT_CONDITION_TEXT];
} quern__inspect_condition;

typedef struct quern__inspect_conditions {
    uint32_t count;
    quern__inspect_condition items[QUERN__INSPECT_CONDITIONS];
} quern__inspect_conditions;

/* ------------------------------------------------------------------------------------------- answers */

typedef struct quern__inspect_answer quern__inspect_answer;

enum { QUERN__INSPECT_SEARCHED_PER_STEP = 128 };

/* A search of entities by the beginning of their names, which takes several steps. */
typedef struct quern__inspect_search {
    const char *prefix;  /* beginning of the name; part of the arguments */
    bool is_anywhere;    /* `prefix` may be anywhere in the name */
    bool has_parent;     /* only children of `parent` match */
    quern_entity parent; /* null: entities without a parent */
    uint32_t cursor;     /* slot that is visited next, or QUERN_LIST_END */
    uint32_t match_count;
} quern__inspect_search;

/* Which commands of a frame an answer lists. */
typedef struct quern__inspect_commands {
    bool is_reading; /* the log is read, so that frames do not change it */
    bool is_dropped_only, has_entity;
    quern_system system; /* null: of all systems */
    quern_entity entity;
    uint32_t sync;   /* number of the sync point; UINT32_MAX: all */
    uint32_t offset; /* number of chosen commands before the page */
    uint32_t end;    /* number in the log of the first command that is not visited */
    uint32_t found_count;
} quern__inspect_commands;

/* An end point. */
typedef struct quern__inspect_route {
    const char *path;
    bool has_changes;                             /* needs POST, and an inspector that is not read-only */
    bool is_edit;                                 /* changes the world, so that it can be undone */
    void (*begin)(quern__inspect_answer *answer); /* writes the first part, or fails */
    bool (*step)(
        quern__inspect_answer *answer); /* writes a part; returns whether it was the last. NULL: no parts */
    const char *arguments; /* their names, separated by spaces; another one fails the request */
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
    quern__inspect_answer *next_delta;    /* next answer in the list `deltas` of the inspector */
    quern__inspect_commands commands;     /* of the end point "commands" */
    struct quern__inspect_table *table;   /* of the end point "table" */
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

/* Returns whether the program has given the inspector a part of its definition, and fails the answer if it is NULL. */
bool quern__inspect_has(quern__inspect_answer *answer, const void *part, const char *name);
bool quern__inspect_has_schedule(quern__inspect_answer *answer);

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
extern const quern__inspect_route quern__inspect_system_routes[];
extern const quern__inspect_route quern__inspect_table_routes[];
extern const quern__inspect_route quern__inspect_probe_routes[];
extern const quern__inspect_route quern__inspect_case_routes[];
extern const quern__inspect_route quern__inspect_command_routes[];

/* Opens the field of a path, such as "Position.x"; fails the answer if there is none. The path must outlive the field. */
bool quern__inspect_field_open(quern__inspect_answer *answer, const char *path, size_t path_bytes,
                               quern__inspect_field *field);
void quern__inspect_field_close(quern__inspect_field *field);
void quern__inspect_field_renew(const quern_world *world, quern__inspect_field *field);
/* Returns false if the entity lacks the component. An entity is the number of its slot, or -1 for null; a text the number
 * of its first six bytes. */
bool quern__inspect_field_number(const quern__inspect_field *field, quern_entity entity,
                                 double *out_number);
/* Returns the text of a field, which may lack a zero at its end, or NULL. */
const char *quern__inspect_field_text(const quern__inspect_field *field, quern_entity entity);
/* Opens conditions that are separated by commas, such as "Energy.value < 0.5, Position.x >= 3"; fails the answer if one is
 * wrong, and none is open then. */
bool quern__inspect_conditions_open(quern__inspect_answer *answer, const char *text,
                                    quern__inspect_conditions *conditions);
void quern__inspect_conditions_close(quern__inspect_conditions *conditions);
void quern__inspect_conditions_renew(const quern_world *world, quern__inspect_conditions *conditions);
/* An entity that lacks a field fulfils no condition on it. */
bool quern__inspect_conditions_hold(const quern__inspect_conditions *conditions, quern_entity entity);
/* Creates a query from text, whose terms access nothing; disabled entities match, unless the text names their tag. */
quern_result quern__inspect_query_create(quern_world *world, const char *text, quern_query **out_query);

/* Writes one entry of a list of entities. */
void quern__inspect_write_entry(quern__inspect_answer *answer, quern_entity entity, bool has_values);

void quern__inspect_table_destroy(quern__inspect_answer *answer);

/* -------------------------------------------------------------------------------------------- frames */

enum {
    QUERN__INSPECT_SAMPLES = 256,
    QUERN__INSPECT_MARKS = 64,
    QUERN__INSPECT_DROPS = 64,        /* reports of dropped commands that are kept */
    QUERN__INSPECT_EVENTS = 256,      /* events that are kept to be shown */
    QUERN__INSPECT_EVENT_BYTES = 448, /* size of the JSON of one of them */
    QUERN__INSPECT_EVENTS_PER_FRAME = 32,
    QUERN__INSPECT_COMMAND_FRAMES = 300, /* that are listed after a request for commands */
    QUERN__INSPECT_PROBES = 16,
    QUERN__INSPECT_PROBE_TEXT = 256,
    QUERN__INSPECT_SECONDS = 600, /* aggregates of seconds that are kept */
    QUERN__INSPECT_FAULT_BYTES = 256
};

/* The figures of one frame. */
typedef struct quern__inspect_sample {
    uint64_t frame; /* number under which the program ran it */
    quern_frame_stats stats;
} quern__inspect_sample;

/* The frames of one second, summed up. */
typedef struct quern__inspect_second {
    uint64_t second;                   /* since the inspector was created */
    uint64_t first_frame, worst_frame; /* worst: with the longest duration */
    uint64_t frame_count;
    uint64_t time_ns, worst_ns, sync_ns; /* sums, but for the longest duration */
    uint64_t command_count, dropped_count, created_count, destroyed_count, event_count;
} quern__inspect_second;

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

/* A field of an entity whose values are kept for a curve; or conditions that stop the program when they become true, for an
 * entity or for any entity of a query; or an entity or a field that stops the program when it changes. */
typedef struct quern__inspect_probe {
    uint32_t id; /* 0: free */
    bool is_break;
    bool is_for_change;                   /* no conditions: `text` is "", or the path of a field */
    uint64_t state;                       /* hash of what is watched for a change, after the last frame */
    bool held;                            /* whether the conditions held after the last frame */
    bool has_hit;                         /* whether they have stopped the program */
    quern_entity entity;                  /* null: those of the query */
    quern_query *query;                   /* NULL without one */
    char text[QUERN__INSPECT_PROBE_TEXT]; /* the path, or the conditions */
    char query_text[QUERN__INSPECT_PROBE_TEXT]; /* "" without one */
    quern__inspect_field field;
    quern__inspect_conditions conditions;
    uint64_t hit_frame; /* the frame during which they became true */
    quern_entity hit;
    double values[QUERN__INSPECT_SAMPLES]; /* beside the samples; NaN: none */
} quern__inspect_probe;

/* A test case: the world as an archive, and the frames that followed as a recording. */
typedef struct quern__inspect_case {
    quern_byte_buffer archive, replay;
    quern_replay_recorder *recorder; /* NULL: the recording has ended */
    uint64_t first_frame, restore_count;
    uint32_t frame_count, recorded_count;   /* frames that were asked for, and recorded so far */
    char fault[QUERN__INSPECT_FAULT_BYTES]; /* why the recording ended early; "" if it did not */
} quern__inspect_case;

/* Runs a frame and records it. Precondition: a recorder exists. */
quern_result quern__inspect_case_run(quern_inspector *inspector, double delta_seconds);
/* Ends a recording, since the world has changed between two frames. cause: the call that changed it. */
void quern__inspect_case_spoil(quern_inspector *inspector, const char *cause);
void quern__inspect_case_release(quern_inspector *inspector);

/* Reads the values of all probes into the place of the newest sample, and pauses the program if conditions have become
 * true. */
void quern__inspect_pass_probes(quern_inspector *inspector, uint64_t frame);
/* Finds out anew which conditions hold, after the world went back. */
void quern__inspect_judge_probes(quern_inspector *inspector);
/* Writes the member "probes", with the values from sample `first` on. */
void quern__inspect_write_probes(const quern_inspector *inspector, quern__inspect_text *text,
                                 uint64_t first);
void quern__inspect_release_probes(quern_inspector *inspector);

/* Counts a frame that was listed. frame: its number for the program. */
void quern__inspect_pass_commands(quern_inspector *inspector, uint64_t frame);
void quern__inspect_release_commands(quern_inspector *inspector);
/* Lets frames be listed again, if the answer kept them from it. */
void quern__inspect_leave_commands(quern__inspect_answer *answer);

void quern__inspect_set_paused(quern_inspector *inspector, bool is_paused);
/* Destroys all deltas. Their answers fail in their next step. */
void quern__inspect_release_deltas(quern_world_user *user);
void quern__inspect_delta_destroy(quern__inspect_answer *answer);
/* Keeps the state before an edit of a paused program, if the history has room for it. */
void quern__inspect_begin_edit(quern_inspector *inspector);
/* name: of the end point that made the edit. */
void quern__inspect_end_edit(quern_inspector *inspector, const char *name);

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
    quern__inspect_answer *deltas;  /* answers that have a delta */
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
    uint64_t created_ns; /* clock when the inspector was created */
    uint64_t second_count;
    quern__inspect_second seconds[QUERN__INSPECT_SECONDS];
    uint64_t mark_count;
    quern__inspect_mark marks[QUERN__INSPECT_MARKS];
    uint64_t drop_count; /* reports so far */
    quern__inspect_drop drops[QUERN__INSPECT_DROPS];

    quern_command_log *command_log; /* NULL: commands are not listed */
    uint64_t command_frame;         /* the frame in the log */
    uint32_t command_frames_left;   /* until the log ends without another request */
    uint32_t command_reader_count;  /* answers that read the log */

    uint32_t edit_count; /* edits since the frame edit_frame was reached; 0: none to undo */
    uint64_t edit_frame;
    bool is_edit_saved; /* the history has the state before them as edit_frame */
    quern__inspect_case kept_case;
    uint32_t case_count; /* cases that were begun */
    uint32_t probe_count, last_probe;
    quern__inspect_probe probes[QUERN__INSPECT_PROBES];

    quern_event_reader **readers; /* one for each event type, NULL while nothing listens */
    uint32_t reader_count;
    quern__inspect_event *events;      /* ring */
    uint64_t event_count, first_event; /* counted from the first event of the inspector */
};

#endif
