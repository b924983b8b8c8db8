/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_PASS_RUN_H
#define QUERN_SCHED_FRAME_PASS_RUN_H

/* Functions that pass_run.c, which runs the jobs of passes, and reaction_calls.c, which runs the items of
 * reactions, share. */

#include "sched/frame/schedule_internal.h"
#include "sched/schedule/pass.h"

/* The functions that compiled passes call. */
extern const quern__pass_functions quern__frame_pass_functions;

/* Members of quern__frame_pass_functions. A frame on one thread calls them directly. */
void quern__pass_begin(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_run(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_end(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* Prepares the context for a call of the system. `call_index` identifies the call's command stream (frame.h). */
void quern__pass_enter_call(quern_context *context, const quern__system *system, uint32_t call_index);

/* Calls the function on a view of rows outside of chunks: copies of removed rows, or copied handles.
 * is_reported: the call is reported to the observer. */
void quern__pass_call_view(quern_context *context, quern_view_callback *run, const quern_view *view,
                           bool is_reported);

/* Calls the function on a view of rows of a chunk. is_reported: the call is reported to the observer. */
void quern__pass_call_rows(quern_context *context, const quern__archetype *archetype,
                           quern_view_callback *run, const quern_view *view, bool is_reported);

/* Announces a sequence of reported calls to the observer. */
void quern__pass_begin_calls(const quern_context *context);

/* Runs a job of a stage in the ranges into which the observer divides it. Only observers call this, so that a library
 * without them does not contain it. */
void quern__pass_run_observed(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                              quern_context *context);

/* Runs items of a stage of reactions. In a serial pass, the range counts blocks of copies, or chunks. */
void quern__pass_run_reactions(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                               quern_context *context, bool is_reported);

#endif
