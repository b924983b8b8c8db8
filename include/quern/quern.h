/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

/* Quern, a multithreaded, job-scheduled ECS runtime. Table of contents:
 *
 *   base.h       results and their messages, log and assert handlers, allocator
 *   id.h         entity, component, resource and system handles
 *   component.h  registering component types and resources
 *   world.h      the world: entities, and the calls that change them at once
 *   bulk.h       the same for many entities in one call
 *   query.h      finding entities, and views of their components
 *   context.h    what kernels have besides their view
 *   commands.h   structural changes from inside systems, applied at sync points
 *   schedule.h   systems, phases, frames
 *   parallel.h   a query on the threads of a pool, from plain code
 *   jobs.h       the job pool, usable on its own
 *   profile.h    what each thread did when
 *   sink.h       where text goes that the library writes
 *   hardware.h   what processors count meanwhile
 *
 * Not included here: bench.h, a harness for benchmarks, which is a library of its own. */

#include <quern/base.h>      /* IWYU pragma: export */
#include <quern/bulk.h>      /* IWYU pragma: export */
#include <quern/commands.h>  /* IWYU pragma: export */
#include <quern/component.h> /* IWYU pragma: export */
#include <quern/context.h>   /* IWYU pragma: export */
#include <quern/hardware.h>  /* IWYU pragma: export */
#include <quern/id.h>        /* IWYU pragma: export */
#include <quern/jobs.h>      /* IWYU pragma: export */
#include <quern/parallel.h>  /* IWYU pragma: export */
#include <quern/profile.h>   /* IWYU pragma: export */
#include <quern/query.h>     /* IWYU pragma: export */
#include <quern/schedule.h>  /* IWYU pragma: export */
#include <quern/sink.h>      /* IWYU pragma: export */
#include <quern/world.h>     /* IWYU pragma: export */

#endif
