/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

#include <stdio.h>

/* The threads that a pool starts: their stack size, processors and names. */

/* ------------------------------------------------------------------------------------------ processors */

quern_result quern_processors_add(quern_processors *processors, uint32_t index)
{
    if (processors == NULL) return quern__fail_null("quern_processors_add", "processors");
    if (index >= QUERN_MAX_PROCESSORS)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_processors_add: processor %u is not in 0 to %d (QUERN_MAX_PROCESSORS - "
                           "1): pass an index in this range",
                           (unsigned)index, QUERN_MAX_PROCESSORS - 1);
    processors->words[index / 64] |= (uint64_t)1 << index % 64;
    return QUERN_OK;
}

static bool has_any(const quern_processors *processors)
{
    uint64_t all = 0;
    for (uint32_t word = 0; word < QUERN__COUNT_OF(processors->words); word++)
        all |= processors->words[word];
    return all != 0;
}

typedef struct trial {
    const quern_processors *processors;
    uint32_t refused; /* first processor that may not be used; valid if may_use is false */
    bool may_use;
} trial;

static void *try_processors(void *argument)
{
    trial *of = argument;
    of->may_use = quern__thread_set_processors(of->processors, &of->refused);
    return NULL;
}

/* Fails if the process may not use one of the processors. Only the system knows, so a temporary thread
 * tries them; the calling thread must not move. */
static quern_result check_processors(const quern_jobs_def *def)
{
    quern__thread thread;
    trial of = {.processors = &def->processors};
    if (!has_any(&def->processors)) return QUERN_OK;
    if (!quern__thread_start(&thread, 0, try_processors, &of))
        return quern__fail(QUERN_ERROR_THREAD_UNAVAILABLE,
                           "quern_jobs_create: the system refused the thread that tries the processors of "
                           "job pool '%s'",
                           def->name);
    quern__thread_join(&thread);
    if (of.may_use) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_create: processor %u is in the set of job pool '%s', and this process may "
        "not use it; leave it out",
        (unsigned)of.refused, def->name);
}

/* ------------------------------------------------------------------------------------------ definition */

static quern_result check_host_threads(const quern_jobs_def *def)
{
    if (def->stack_bytes == 0 && !has_any(&def->processors)) return QUERN_OK;
    const char *member = def->stack_bytes != 0 ? "stack_bytes" : "processors";
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_create: job pool '%s' sets host_threads and %s; leave out %s or host_threads",
        def->name, member, member);
}

static quern_result check_stack(const quern_jobs_def *def)
{
    const size_t least_bytes = quern__thread_min_stack_bytes();
    if (def->stack_bytes == 0 || def->stack_bytes >= least_bytes) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_jobs_create: stack_bytes of job pool '%s' is %zu; the system's minimum is %zu, "
        "and 0 means its default",
        def->name, def->stack_bytes, least_bytes);
}

quern_result quern__jobs_check_own_threads(const quern_jobs_def *def)
{
    if (def->host_threads.submit != NULL) return check_host_threads(def);
    const quern_result result = check_stack(def);
    return result == QUERN_OK ? check_processors(def) : result;
}

/* ----------------------------------------------------------------------------------- beginning and end */

static void name_thread(const quern__worker *worker)
{
    char number[QUERN__THREAD_NAME_BYTES];
    /* larger than needed, for compilers that check the maximum length */
    char name[2 * QUERN__THREAD_NAME_BYTES];
    int number_length = snprintf(number, sizeof number, "/%u", (unsigned)worker->index);
    int room = QUERN__THREAD_NAME_BYTES - 1 - number_length;
    snprintf(name, sizeof name, "%.*s%s", room, worker->jobs->name, number);
    quern__thread_set_name(name);
}

/* Ignores processors that were taken from the process after the pool was created. */
void quern__worker_set_up_thread(const quern__worker *worker)
{
    const quern_jobs *jobs = worker->jobs;
    uint32_t refused;
    name_thread(worker);
    if (has_any(&jobs->processors)) (void)quern__thread_set_processors(&jobs->processors, &refused);
    if (jobs->pin_threads) quern__thread_pin(worker->index);
    quern__worker_call_start(worker);
}
