/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INSPECT_H
#define QUERN_INSPECT_H

/** @file
 * Shows a running world in a browser: entities, values, archetypes, systems, events and kept frames. See
 * docs/inspector.md.
 *
 *     quern_inspector *inspector;
 *     quern_inspector_def def = {.world = world, .schedule = schedule, .history = history, .jobs = jobs};
 *     quern_inspector_create(&def, &inspector);
 *     quern_inspector_serve(inspector, NULL);
 *     printf("%s\n", quern_inspector_url(inspector));
 *     for (uint64_t frame = 0; is_running;) {
 *         if (!quern_inspector_update(inspector, &frame)) continue;    // paused from the browser
 *         quern_history_save(history, frame, jobs);
 *         quern_inspector_run(inspector, seconds);
 *         frame++;
 *         quern_inspector_wait(inspector, &frame, spare_ns);    // instead of sleeping
 *     }
 *     quern_inspector_destroy(inspector);
 *
 * The program answers requests between two of its frames, in quern_inspector_update, within a time budget. Long
 * answers are continued after the next frame. Without requests and open pages, an update costs one load.
 *
 * quern_inspect_request answers a request without server and browser, for tests and for other transports. All answers are
 * JSON, but those of the end points for archives and recordings.
 *
 * Threads: main, between frames, for all calls. The server has a thread of its own, which never touches the world. */

#include <quern/history.h>
#include <quern/jobs.h>
#include <quern/profile.h>
#include <quern/schedule.h>
#include <quern/sink.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_INSPECT_MAX_LIST         1000 /**< Maximum number of entries of one page of a list. */
/** Maximum size of an answer in bytes; a longer answer fails with the status 507. */
#define QUERN_INSPECT_MAX_ANSWER_BYTES ((size_t)16 << 20)
#define QUERN_INSPECT_MAX_ARCHIVE_BYTES \
    ((size_t)256 << 20)                    /**< Maximum size of an archive or a recording. */
#define QUERN_INSPECT_MAX_BODY_BYTES 65536 /**< Maximum size of the body of a request in bytes. */
#define QUERN_INSPECT_MAX_WAITING    32    /**< Maximum number of requests that wait for an update. */
#define QUERN_INSPECT_MAX_CLIENTS    4     /**< Maximum number of open WebSockets. */
#define QUERN_INSPECT_MAX_PANELS     8     /**< Maximum number of panels of an inspector. */

/** Answers requests about a world; see quern_inspector_create. */
typedef struct quern_inspector quern_inspector;

/** A panel: what the program or a library knows besides the world, for a view of the page. */
typedef struct quern_inspect_panel {
    const char *title QUERN__ZERO; /**< Name of the view, unique among the panels. */
    /** Writes one JSON value to the sink. The page shows a list of objects as a table whose columns are their members, an
     * object as a list of its members, and a list of names of systems with links. Called while a page shows the panel,
     * between frames, on the thread that calls quern_inspector_update; one call is one step of an answer. An error is
     * shown with its message. */
    quern_result (*write)(void *user_data, quern_sink sink) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to write. */
} quern_inspect_panel;

/** Definition of an inspector. */
typedef struct quern_inspector_def {
    quern_world *world; /**< The world to show. Required. */
    quern_schedule *schedule
        QUERN__ZERO; /**< The schedule of the program's frames. NULL: no views of systems. */
    /** The history to scrub in. It must save the schedule. NULL: frames cannot be taken back. */
    quern_history *history QUERN__ZERO;
    quern_jobs *jobs
        QUERN__ZERO; /**< The pool for frames, saves and restores. NULL: the calling thread alone. */
    /** A trace of the schedule and the pool, for the flame chart. The inspector starts and stops it. NULL: no chart. */
    quern_trace *trace QUERN__ZERO;
    const char *title QUERN__ZERO; /**< Name of the program, for the page. NULL means "Quern". */
    /** Time that quern_inspector_update may spend on answers between two frames; 0 means 200,000. One step of an
     * answer is always finished, so an update may take longer; docs/inspector.md lists the long steps. */
    uint64_t budget_ns QUERN__ZERO;
    /** Panels. The list ends at its first element without a title. Titles are not copied. */
    quern_inspect_panel panels[QUERN_INSPECT_MAX_PANELS] QUERN__ZERO;
    bool is_read_only QUERN__ZERO;         /**< Whether requests that change something are refused. */
    quern_allocator allocator QUERN__ZERO; /**< Allocator. All zero means quern_allocator_default(). */
} quern_inspector_def;

/** Creates an inspector. Destroy it before its history, schedule, world, pool and trace; destroying the world, the
 * schedule or the history before it is refused. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (only one function of the
 * allocator is set, a panel has no function), WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_result quern_inspector_create(const quern_inspector_def *def,
                                              quern_inspector **out_inspector);

/** Stops the server, closes all connections without waiting for their clients, and destroys the inspector. NULL is
 * allowed. */
QUERN_API void quern_inspector_destroy(quern_inspector *inspector);

/** Answers waiting requests, within the budget, and returns whether the program should run a frame now.
 *
 * *frame is the number under which the program saves and runs the next frame. A request that restores a kept frame
 * changes it. While a page has paused the program, the call returns false after answering and waiting for ten
 * milliseconds at most, and one step of an answer; call it again then. Returns true if inspector is NULL. frame may be NULL for programs without history.
 * Allocates only to answer requests. */
QUERN_API bool quern_inspector_update(quern_inspector *inspector, uint64_t *frame);

/** Waits for a time, and answers requests meanwhile: what a program with spare time calls instead of sleeping until its next
 * frame. Answers then arrive sooner than with the budget alone, and the frames pay nothing for them. frame: as for
 * quern_inspector_update, with the number of the next frame; requests are what they are there. One step of an answer is
 * always finished, so the call may take longer. Only waits if inspector is NULL. Allocates only to answer requests. */
QUERN_API void quern_inspector_wait(quern_inspector *inspector, uint64_t *frame, uint64_t nanoseconds);

/** Runs a frame like quern_schedule_run, with the schedule and the pool of the definition. If a page has asked for a
 * forecast, the frame is captured: it runs on the calling thread alone, with the same result. If a page records a test
 * case, the frame is recorded (quern_replay_record). Errors: NULL_ARGUMENT
 * (also if the definition has no schedule), those of quern_schedule_run. */
QUERN_API quern_result quern_inspector_run(quern_inspector *inspector, double delta_seconds);

/** A request: what an HTTP request for the path would contain. */
typedef struct quern_inspect_call {
    const char *method; /**< "GET", or "POST" for requests that change something. Required. */
    const char *path;   /**< Name of the end point, such as "entities". Required. */
    /** Arguments, such as "query=with%20Hunter&limit=20": names and percent-encoded values. NULL: none. */
    const char *arguments QUERN__ZERO;
    const char *body QUERN__ZERO;  /**< Body, for end points with a body. NULL: none. */
    size_t body_bytes QUERN__ZERO; /**< Size of the body. */
} quern_inspect_call;

/** Answers a request at once, regardless of the budget, as JSON or the bytes of an archive to a sink. A wrong request gets an answer as well:
 * an object with the member `error`. *out_status, which may be NULL, is set to the status of HTTP: 200, or 400 for
 * wrong arguments, 403 for a change through a read-only inspector, 404 for things that do not exist, 405 for a wrong
 * method, 409 if the world is locked, 503 if memory is exhausted, 507 if the answer is too long. Errors: NULL_ARGUMENT,
 * OUT_OF_MEMORY, IO (the sink failed). */
QUERN_API quern_result quern_inspect_request(quern_inspector *inspector, const quern_inspect_call *call,
                                             quern_sink sink, uint32_t *out_status);

/* -------------------------------------------------------------------------------------------- server */

/** Definition of a server. All zero is a good definition. */
typedef struct quern_inspect_server_def {
    /** Port, on the loopback interface only; 0: a free one. */
    uint16_t port QUERN__ZERO;
    /** Secret in the URL, 16 to 64 letters and digits. NULL: a random one. */
    const char *token QUERN__ZERO;
} quern_inspect_server_def;

/** Starts the server, on 127.0.0.1. def may be NULL. Every request must have the token in its path, one of the
 * server's own addresses as Host, and as Origin if the browser sends one. Errors, with nothing started: NULL_ARGUMENT,
 * INVALID_ARGUMENT (token, or the inspector has a server already), UNAVAILABLE (the port is in use, or the system
 * refuses threads or random numbers), OUT_OF_MEMORY. */
QUERN_API quern_result quern_inspector_serve(quern_inspector *inspector,
                                             const quern_inspect_server_def *def);

/** Returns the address of the page, such as "http://127.0.0.1:4711/0123456789abcdef/", or NULL without a server. Valid
 * until the inspector is destroyed. */
QUERN_API const char *quern_inspector_url(const quern_inspector *inspector);

#ifdef __cplusplus
}
#endif

#endif
