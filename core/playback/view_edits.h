/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_VIEW_EDITS_H
#define QUERN_CORE_PLAYBACK_VIEW_EDITS_H

/* View edits: edits of many rows at once, made by commands for views (view_batch.h). A chunk has view edits as
 * long as all commands on it are commands for views whose rows, compared with those of each earlier one, are
 * either the same or all of them after it. Systems record such commands: each system visits a chunk as a whole,
 * or its ranges of rows in order. The first other command turns the view edits into edits of single rows. Both
 * lead to the same groups in the same order, and so to the same result. */

#include "core/playback/merge.h"

/* What became of a command for a view. */
typedef enum quern__view_outcome {
    QUERN__VIEW_MERGED,
    QUERN__VIEW_DROPPED,  /* an earlier command destroys the entities of the rows */
    QUERN__VIEW_REJECTED, /* must be merged row by row */
    QUERN__VIEW_OUT_OF_MEMORY
} quern__view_outcome;

/* Adds a command to the view edits of its chunk. Precondition: the chunk has no edits of single rows, and the
 * batch is located (quern__view_is_located). */
quern__view_outcome quern__view_edits_add(quern__chunk_edits *edits, quern__command_batch *batch);

/* Turns view edits into edits of single rows. Returns false if out of memory. */
bool quern__view_edits_expand(quern__chunk_edits *edits);

/* Returns the sequence of the row's commands. Precondition: some view edit has the row. */
uint32_t quern__view_edits_sequence(const quern__chunk_edits *edits, uint32_t row);

static inline quern__view_edit *quern__view_edit_at(const quern__chunk_edits *edits, uint32_t index)
{
    return &edits->scratch->view_edits.items[index];
}

#endif
