/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLATFORM_SYSTEMS_H
#define QUERN_CORE_PLATFORM_SYSTEMS_H

/* The operating system, and which of its services the library uses. Only this room may ask for the system
 * (tests/layering/check_systems.sh); other rooms call platform.h. For each service that a system lacks,
 * platform_portable.c has a fallback. A build with QUERN__PORTABLE (CMake's QUERN_PORTABLE) uses all fallbacks, so any
 * system can test them. */

#include "core/platform/compiler.h"

#ifndef QUERN__PORTABLE
#define QUERN__PORTABLE 0
#endif

#if defined(_WIN32)
#define QUERN__ON_WINDOWS 1
#else
#define QUERN__ON_WINDOWS 0 /* everything else is POSIX */
#endif

#if defined(__linux__)
#define QUERN__ON_LINUX 1
#else
#define QUERN__ON_LINUX 0
#endif

#if defined(__APPLE__)
#define QUERN__ON_APPLE 1
#else
#define QUERN__ON_APPLE 0
#endif

/* WebAssembly without -pthread has the calls for threads, and all of them fail. */
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
#define QUERN__HAS_THREADS 0
#else
#define QUERN__HAS_THREADS 1
#endif

/* Waiting on an address, without a mutex and a condition. */
#if QUERN__ON_LINUX && !QUERN__PORTABLE
#define QUERN__HAS_FUTEX 1
#else
#define QUERN__HAS_FUTEX 0
#endif

/* Binding threads to processors. */
#if (QUERN__ON_LINUX || QUERN__ON_WINDOWS) && !QUERN__PORTABLE
#define QUERN__HAS_AFFINITY 1
#else
#define QUERN__HAS_AFFINITY 0
#endif

/* A fence on all threads of the process. ThreadSanitizer does not model it. */
#if QUERN__ON_LINUX && !QUERN__PORTABLE && !QUERN__IS_THREAD_SANITIZED
#if __has_include(<linux/membarrier.h>)
#define QUERN__HAS_MEMBARRIER 1
#endif
#endif
#ifndef QUERN__HAS_MEMBARRIER
#define QUERN__HAS_MEMBARRIER 0
#endif

/* Hardware counters. */
#if QUERN__ON_LINUX && !QUERN__PORTABLE
#if __has_include(<linux/perf_event.h>)
#define QUERN__HAS_PERF_EVENT 1
#endif
#endif
#ifndef QUERN__HAS_PERF_EVENT
#define QUERN__HAS_PERF_EVENT 0
#endif

/* Memory mapped from the system. Off under the address sanitizer, which detects leaks only in memory of its own
 * allocator. WebAssembly cannot return parts of a mapping. */
#if QUERN__IS_ADDRESS_SANITIZED || QUERN__PORTABLE || defined(__EMSCRIPTEN__)
#define QUERN__HAS_PAGES 0
#else
#define QUERN__HAS_PAGES 1
#endif

#endif
