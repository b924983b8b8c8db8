/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_GRAPH_H
#define QUERN_SCHED_JOBS_GRAPH_H

#include <quern/jobs.h>

/* quern_graph_run for a caller that has entered the pool already (quern__jobs_enter) and keeps it
 * afterwards; graph is not NULL. */
quern_result quern__graph_run(quern_graph *graph, quern_jobs *jobs);

#endif
