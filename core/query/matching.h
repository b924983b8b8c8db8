/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_MATCHING_H
#define QUERN_CORE_QUERY_MATCHING_H

/* Common checks of the calls that change all entities matching a query. */

#include "core/query/query_internal.h"
#include "core/query/up.h"
#include "core/world/world_internal.h"

/* Refreshes the query, and checks that its world is not locked and that no term can leave out single rows of
 * a match. Fails with NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT or OUT_OF_MEMORY; messages begin with the
 * name of the call, `function`. */
static inline quern_result quern__query_prepare(quern_query *query, const char *function)
{
    if (query == NULL) return quern__fail_null(function, "query");
    quern_result result = quern__world_check_unlocked(query->world, function);
    if (result == QUERN_OK && (query->target != NULL || (query->ups != NULL && query->ups->has_required)))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query has a target term or up-terms, which leave single rows out: collect the "
            "entities in a loop over it, or use a query without them",
            function);
    if (result == QUERN_OK && query->row_term_count > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: term %u leaves out single rows, those with '%s' %sabled: collect the "
                           "entities in a loop over the query, or use quern_term_either",
                           function, query->row_terms[0],
                           quern_component_name(query->world, query->terms[query->row_terms[0]].component),
                           query->terms[query->row_terms[0]].enabled == QUERN_TERM_DISABLED ? "en" : "dis");
    return result != QUERN_OK ? result : quern__in_call(quern__query_refresh(query), function);
}

#endif
