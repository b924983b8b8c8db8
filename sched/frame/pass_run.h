/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_PASS_RUN_H
#define QUERN_SCHED_FRAME_PASS_RUN_H

/* What pass_run.c, where jobs begin and end, and react_run.c, which goes over what has happened, have of
 * each other. */

#include "sched/frame/schedule_internal.h"
#include "sched/schedule/pass.h"

/* What compiled passes call. */
extern const quern__pass_functions quern__frame_pass_functions;

/* Three of quern__frame_pass_functions, which a frame on one thread calls itself. */
void quern__pass_begin(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_run(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_end(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* The context is the system's from here on, its stream that of the part. */
void quern__pass_enter_call(quern_context *context, const quern__system *system, uint32_t part);

/* Calls on a view of what is no chunk. is_told: the observer is. */
void quern__pass_call_view(quern_context *context, quern_view_callback *run, const quern_view *view,
                           bool is_told);

/* Calls on a view of rows of a chunk. */
void quern__pass_call_rows(quern_context *context, const quern__archetype *archetype,
                           quern_view_callback *run, const quern_view *view, bool is_told);

/* Before the first of some calls that are told. */
void quern__pass_begin_calls(const quern_context *context);

/* Items of a pass of reactions; of the one item of a serial pass, what it goes over. */
void quern__pass_react(const quern__stage *stage, uint32_t begin, uint32_t end, quern_context *context,
                       bool is_told);

#endif
