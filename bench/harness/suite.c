/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

quern_bench_suite quern__bench_suite_fill(const quern_bench_suite *suite)
{
    static const char *const subject_names[] = {"control",  "subject",  "subject2",
                                                "subject3", "subject4", "subject5"};
    quern_bench_suite filled = *suite;
    if (filled.program == NULL) filled.program = "bench";
    for (uint32_t i = 0; i < QUERN_BENCH_MAX_SUBJECTS; i++)
        if (filled.subject_names[i] == NULL) filled.subject_names[i] = subject_names[i];
    return filled;
}

const char *quern__bench_subject_name(const quern_bench_suite *suite, const quern_bench_workload *workload,
                                      uint32_t index)
{
    const char *own = workload->subject_names[index];
    return own != NULL ? own : suite->subject_names[index];
}

uint32_t quern__bench_subject_count(const quern_bench_workload *workload)
{
    uint32_t count = 0;
    while (count < QUERN_BENCH_MAX_SUBJECTS && workload->subjects[count].run != NULL)
        count++;
    return count;
}

/* ------------------------------------------------------------------------------------------ checking */

/* Returns the fault of the suite itself; NULL if there is none. */
static const char *find_fault(const quern_bench_suite *suite)
{
    if (suite->workloads == NULL || suite->workload_count == 0) return "the suite has no workloads";
    for (uint32_t i = 0; i < suite->workload_count; i++) {
        const quern_bench_workload *workload = suite->workloads[i];
        if (workload == NULL || workload->name == NULL || workload->summary == NULL)
            return "a workload has no name or no summary";
    }
    return NULL;
}

static bool has_equal_subjects(const quern_bench_suite *suite, const quern_bench_workload *workload)
{
    const uint32_t count = quern__bench_subject_count(workload);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++)
            if (strcmp(quern__bench_subject_name(suite, workload, i),
                       quern__bench_subject_name(suite, workload, k)) == 0)
                return true;
    return false;
}

/* Returns the fault of a workload, such as a duplicate name; NULL if there is none. */
static const char *find_fault_of_workload(const quern_bench_suite *suite, uint32_t index)
{
    const quern_bench_workload *workload = suite->workloads[index];
    if (workload->subjects[0].run == NULL) return "has no subject with a run callback";
    if (has_equal_subjects(suite, workload)) return "has two subjects with the same name";
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(suite->workloads[i]->name, workload->name) == 0)
            return "has the same name as an earlier workload";
    return NULL;
}

bool quern__bench_suite_check(const quern_bench_suite *suite, char message[QUERN__BENCH_MESSAGE_BYTES])
{
    const char *fault = find_fault(suite);
    if (fault != NULL) {
        snprintf(message, QUERN__BENCH_MESSAGE_BYTES, "%s", fault);
        return false;
    }
    for (uint32_t i = 0; i < suite->workload_count; i++) {
        fault = find_fault_of_workload(suite, i);
        if (fault == NULL) continue;
        snprintf(message, QUERN__BENCH_MESSAGE_BYTES, "workload '%s' %s", suite->workloads[i]->name, fault);
        return false;
    }
    return true;
}

void quern__bench_suite_list(const quern_bench_suite *suite)
{
    for (uint32_t i = 0; i < suite->workload_count; i++) {
        const quern_bench_workload *workload = suite->workloads[i];
        printf("%-18s %s", workload->name, workload->summary);
        if (workload->alias != NULL) printf(" (also: %s)", workload->alias);
        putchar('\n');
    }
}

/* ------------------------------------------------------------------------------------------- results */

/* Returns the workload with this name; NULL if there is none. */
static const quern_bench_workload *find_workload(const quern_bench_suite *suite, const char *name)
{
    for (uint32_t i = 0; i < suite->workload_count; i++)
        if (strcmp(suite->workloads[i]->name, name) == 0) return suite->workloads[i];
    return NULL;
}

static const quern_bench_workload *find_alias(const quern_bench_suite *suite, const char *name)
{
    for (uint32_t i = 0; i < suite->workload_count; i++) {
        const char *alias = suite->workloads[i]->alias;
        if (alias != NULL && strcmp(alias, name) == 0) return suite->workloads[i];
    }
    return NULL;
}

void quern__bench_suite_rename(const quern_bench_suite *suite, quern__bench_results *results)
{
    for (size_t i = 0; i < results->record_count; i++) {
        quern__bench_record *record = &results->records[i];
        const quern_bench_workload *workload =
            find_workload(suite, record->workload) == NULL ? find_alias(suite, record->workload) : NULL;
        if (workload == NULL) continue;
        free(record->workload);
        record->workload = quern__bench_copy_text(workload->name);
    }
}

static bool has_number(const quern__bench_numbers *numbers, uint32_t number)
{
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->values[i] == number) return true;
    return false;
}

static bool is_selected(const quern_bench_suite *suite, const quern__bench_options *options,
                        const quern__bench_record *record)
{
    const quern_bench_workload *workload = find_workload(suite, record->workload);
    const bool any_size = options->entity_counts.count == 0 || (workload != NULL && workload->fixed_size);
    return quern__bench_options_select(options, record->workload,
                                       workload != NULL ? workload->alias : NULL) &&
           (!options->threads_chosen || has_number(&options->thread_counts, record->thread_count)) &&
           (any_size || has_number(&options->entity_counts, record->entity_count));
}

void quern__bench_suite_filter(const quern_bench_suite *suite, const quern__bench_options *options,
                               quern__bench_results *results)
{
    size_t kept_count = 0;
    for (size_t i = 0; i < results->record_count; i++) {
        if (is_selected(suite, options, &results->records[i]))
            results->records[kept_count++] = results->records[i];
        else
            quern__bench_record_close(&results->records[i]);
    }
    results->record_count = kept_count;
}
