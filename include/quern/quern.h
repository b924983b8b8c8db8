/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

/** @file
 * Quern, a multithreaded, job-scheduled ECS runtime: all headers but bench.h. Table of contents:
 *
 *   base.h       results and their messages, log and assert handlers, allocator
 *   id.h         entity, component, resource and system handles
 *   component.h  registering component types and resources
 *   type.h       C types: their names, sizes and fields
 *   world.h      the world: entities, and the calls that change them immediately
 *   active.h     entities that queries and systems leave out
 *   relation.h   entities that belong to other entities: hierarchies
 *   bulk.h       the same for many entities in one call
 *   getter.h     values of entities by handle, again and again
 *   query.h      finding entities, and views of their components
 *   context.h    what kernels can reach besides their view
 *   commands.h   structural changes from inside systems, applied at sync points
 *   schedule.h   systems, phases, frames
 *   event.h      values that systems emit and others read
 *   prefab.h     trees of entities, captured and spawned again and again
 *   name.h       names of entities, and finding them by path
 *   parallel.h   a query on the threads of a pool, outside of frames
 *   reflect.h    what a world has, by name and as text, for tools
 *   jobs.h       the job pool, usable on its own
 *   graph.h      graphs of loops on a job pool
 *   profile.h    profiles, traces, and forecasts for more threads
 *   archive.h    worlds and entities as bytes, for files and other processes
 *   sink.h       where the library writes
 *   source.h     where the library reads from
 *   replay.h     frames recorded, and run again
 *   hardware.h   what processors count
 *
 * Not included here: bench.h, a harness for benchmarks, which is a library by itself. */

#include <quern/active.h>    /* IWYU pragma: export */
#include <quern/archive.h>   /* IWYU pragma: export */
#include <quern/base.h>      /* IWYU pragma: export */
#include <quern/bulk.h>      /* IWYU pragma: export */
#include <quern/commands.h>  /* IWYU pragma: export */
#include <quern/component.h> /* IWYU pragma: export */
#include <quern/context.h>   /* IWYU pragma: export */
#include <quern/event.h>     /* IWYU pragma: export */
#include <quern/getter.h>    /* IWYU pragma: export */
#include <quern/graph.h>     /* IWYU pragma: export */
#include <quern/hardware.h>  /* IWYU pragma: export */
#include <quern/history.h>   /* IWYU pragma: export */
#include <quern/id.h>        /* IWYU pragma: export */
#include <quern/jobs.h>      /* IWYU pragma: export */
#include <quern/name.h>      /* IWYU pragma: export */
#include <quern/parallel.h>  /* IWYU pragma: export */
#include <quern/prefab.h>    /* IWYU pragma: export */
#include <quern/profile.h>   /* IWYU pragma: export */
#include <quern/query.h>     /* IWYU pragma: export */
#include <quern/reflect.h>   /* IWYU pragma: export */
#include <quern/relation.h>  /* IWYU pragma: export */
#include <quern/replay.h>    /* IWYU pragma: export */
#include <quern/schedule.h>  /* IWYU pragma: export */
#include <quern/sink.h>      /* IWYU pragma: export */
#include <quern/source.h>    /* IWYU pragma: export */
#include <quern/type.h>      /* IWYU pragma: export */
#include <quern/world.h>     /* IWYU pragma: export */

#endif
