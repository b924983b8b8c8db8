/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/page.h"

#include <math.h>

#include <cjson/cJSON.h>

#include "bench/harness/json.h"

/* Ends the program if memory is exhausted, for which cJSON returns NULL. */
static cJSON *required(cJSON *item)
{
    if (item == NULL) quern_bench_die("out of memory");
    return item;
}

static void put_text(cJSON *object, const char *key, const char *text)
{
    required(cJSON_AddStringToObject(object, key, text));
}

static void put_number(cJSON *object, const char *key, double number)
{
    if (isfinite(number)) required(cJSON_AddNumberToObject(object, key, number));
}

static cJSON *make_results(const quern__bench_results *results)
{
    cJSON *array = required(cJSON_CreateArray());
    for (size_t i = 0; i < results->record_count; i++) {
        const quern__bench_record *record = &results->records[i];
        const quern__bench_record *control = quern__bench_results_control(results, record);
        cJSON_AddItemToArray(array, quern__bench_json_record(record, control));
    }
    return array;
}

static cJSON *make_row(const quern__bench_comparison *comparison, bool is_control)
{
    const quern__bench_record *now = comparison->now;
    cJSON *row = required(cJSON_CreateObject());
    put_text(row, "workload", now->workload);
    put_number(row, "entities", now->entity_count);
    put_number(row, "threads", now->thread_count);
    put_text(row, "subject", now->subject);
    put_text(row, "figure", comparison->by_ratio ? "ratio" : quern__bench_record_measure(now));
    put_text(row, "unit", now->unit);
    required(cJSON_AddBoolToObject(row, "is_control", is_control));
    put_text(row, "verdict", quern__bench_verdict_text(comparison->verdict, now->is_bytes));
    if (comparison->reason != NULL) put_text(row, "reason", comparison->reason);
    if (comparison->before_figure > 0) {
        put_number(row, "before", comparison->before_figure);
        put_number(row, "now", comparison->now_figure);
    }
    if (comparison->is_tested) {
        put_number(row, "change", comparison->difference.ratio);
        put_number(row, "low", comparison->difference.low);
        put_number(row, "high", comparison->difference.high);
        put_number(row, "p", comparison->difference.p);
    } else if (comparison->before_figure > 0) {
        put_number(row, "change", comparison->now_figure / comparison->before_figure);
    }
    return row;
}

static cJSON *make_comparison(const quern__bench_page *page)
{
    cJSON *object = required(cJSON_CreateObject());
    put_text(object, "path", page->before_path);
    put_text(object, "date", page->before->machine.date);
    put_text(object, "commit", page->before->machine.commit);
    put_number(object, "alpha", QUERN__BENCH_ALPHA);
    put_number(object, "noise", page->noise);
    const quern__bench_drift drift = quern__bench_find_drift(page->comparisons, page->results, 0);
    if (drift.control_count > 0) {
        put_number(object, "drift", drift.median);
        put_number(object, "drift_least", drift.least);
        put_number(object, "drift_greatest", drift.greatest);
    }
    cJSON *rows = required(cJSON_AddArrayToObject(object, "rows"));
    for (size_t i = 0; i < page->results->record_count; i++) {
        const bool is_control = quern__bench_results_is_control(page->results, page->comparisons[i].now);
        cJSON_AddItemToArray(rows, make_row(&page->comparisons[i], is_control));
    }
    return object;
}

static cJSON *make_data(const quern__bench_page *page)
{
    cJSON *data = required(cJSON_CreateObject());
    put_text(data, "program", page->program);
    cJSON_AddItemToObject(data, "machine", quern__bench_json_machine(&page->results->machine));
    cJSON_AddItemToObject(data, "results", make_results(page->results));
    cJSON_AddItemToObject(data, "trust", quern__bench_json_trust(page->results));
    if (page->comparisons != NULL) cJSON_AddItemToObject(data, "comparison", make_comparison(page));
    return data;
}

/* Writes JSON into a script element. Angle brackets are escaped, since "</script>" in a text would end the
 * element. */
static void write_for_script(FILE *file, const char *json)
{
    for (; *json != '\0'; json++) {
        if (*json == '<')
            fputs("\\u003c", file);
        else
            fputc(*json, file);
    }
}

void quern__bench_page_write(FILE *file, const quern__bench_page *page)
{
    cJSON *data = make_data(page);
    char *json = cJSON_PrintUnformatted(data);
    if (json == NULL) quern_bench_die("out of memory");
    fwrite(quern__bench_page_head, 1, quern__bench_page_head_bytes, file);
    write_for_script(file, json);
    fwrite(quern__bench_page_tail, 1, quern__bench_page_tail_bytes, file);
    cJSON_free(json);
    cJSON_Delete(data);
}
