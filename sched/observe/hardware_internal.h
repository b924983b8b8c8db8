/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_HARDWARE_INTERNAL_H
#define QUERN_SCHED_OBSERVE_HARDWARE_INTERNAL_H

/* The system's counters. */

#include <quern/hardware.h>

/* What an event is for the system. */
typedef struct quern__hardware_code {
    uint32_t type;
    uint64_t config;
} quern__hardware_code;

/* As the default source's open, but of other events: QUERN_HARDWARE_EVENT_COUNT codes. The tests count what
 * every machine can. */
quern_result quern__hardware_open(const quern__hardware_code *codes, quern_hardware_scope scope,
                                  void **out_counters);

#endif
