/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_OBSERVE_HARDWARE_INTERNAL_H
#define QUERN_SCHED_OBSERVE_HARDWARE_INTERNAL_H

/* Hardware counters of the operating system. */

#include "core/platform/platform.h"

#include <quern/hardware.h>

/* Opens counters like the default source, but for other events: `codes` has QUERN_HARDWARE_EVENT_COUNT
 * elements. Tests use it to count events that every machine has. */
quern_result quern__hardware_open(const quern__hardware_code *codes, quern_hardware_scope scope,
                                  void **out_counters);

#endif
