/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

/** @file
 * Quern, a multithreaded, job-scheduled ECS runtime: all headers except bench.h. Table of contents:
 *
 *     base.h       results and their messages, log and assert handlers, allocator
 *     id.h         entity, component, resource and system handles
 *     component.h  registration of component types and resources
 *     type.h       descriptions of C types: their names, sizes and fields
 *     list.h       lists and strings of any length, as members of components
 *     world.h      the world: entities, and functions that change them immediately
 *     enabled.h    disabled entities, which queries and systems leave out
 *     relation.h   relations between entities: hierarchies
 *     bulk.h       functions on many entities in one call
 *     getter.h     repeated random access to values of entities
 *     query.h      queries: terms, and iterations over what matches them
 *     view.h       the rows and columns that callbacks and iterations get
 *     context.h    what callbacks can access in addition to their view
 *     commands.h   structural changes from inside systems, applied at sync points
 *     schedule.h   systems, phases, frames
 *     shorthand.h  systems with columns as parameters, calls by C type: shorter ways to write the above
 *     event.h      values that systems emit and others read
 *     prefab.h     trees of entities, captured once and spawned any number of times
 *     index.h      entities by the value of a field
 *     name.h       names of entities, and searching by path
 *     parallel.h   parallel queries, outside of frames
 *     reflect.h    inspection of a world by name and as text, for tools
 *     jobs.h       the job pool, usable on its own
 *     graph.h      graphs of loops on a job pool
 *     profile.h    profiles, traces, and forecasts for more threads
 *     archive.h    worlds and entities as bytes, for files and other processes
 *     sink.h       destinations to which the library writes
 *     source.h     origins from which the library reads
 *     history.h    saving and restoring the last frames of a world
 *     replay.h     recording frames and running them again
 *     loader.h     for libraries that load code: answers what set-up code registers and adds
 *     redefine.h   other definitions for registered types while their world lives
 *     hardware.h   hardware counters
 *
 * bench.h is not included here: it is a harness for benchmarks, in a library of its own. */

#include <quern/archive.h>   /* IWYU pragma: export */
#include <quern/base.h>      /* IWYU pragma: export */
#include <quern/bulk.h>      /* IWYU pragma: export */
#include <quern/commands.h>  /* IWYU pragma: export */
#include <quern/component.h> /* IWYU pragma: export */
#include <quern/context.h>   /* IWYU pragma: export */
#include <quern/enabled.h>   /* IWYU pragma: export */
#include <quern/event.h>     /* IWYU pragma: export */
#include <quern/getter.h>    /* IWYU pragma: export */
#include <quern/graph.h>     /* IWYU pragma: export */
#include <quern/hardware.h>  /* IWYU pragma: export */
#include <quern/history.h>   /* IWYU pragma: export */
#include <quern/id.h>        /* IWYU pragma: export */
#include <quern/index.h>     /* IWYU pragma: export */
#include <quern/jobs.h>      /* IWYU pragma: export */
#include <quern/list.h>      /* IWYU pragma: export */
#include <quern/loader.h>    /* IWYU pragma: export */
#include <quern/name.h>      /* IWYU pragma: export */
#include <quern/parallel.h>  /* IWYU pragma: export */
#include <quern/prefab.h>    /* IWYU pragma: export */
#include <quern/profile.h>   /* IWYU pragma: export */
#include <quern/query.h>     /* IWYU pragma: export */
#include <quern/redefine.h>  /* IWYU pragma: export */
#include <quern/reflect.h>   /* IWYU pragma: export */
#include <quern/relation.h>  /* IWYU pragma: export */
#include <quern/replay.h>    /* IWYU pragma: export */
#include <quern/schedule.h>  /* IWYU pragma: export */
#include <quern/shorthand.h> /* IWYU pragma: export */
#include <quern/sink.h>      /* IWYU pragma: export */
#include <quern/source.h>    /* IWYU pragma: export */
#include <quern/type.h>      /* IWYU pragma: export */
#include <quern/view.h>      /* IWYU pragma: export */
#include <quern/world.h>     /* IWYU pragma: export */

#endif
