/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Results as JSON: written, read, and in the page of the report. */
#include "bench/harness/json.h"

#include "bench/harness/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* Checksums are text, because numbers in JSON lose bits of 64-bit integers. */
enum { CHECKSUM_TEXT_BYTES = 17, NUMBER_TEXT_BYTES = 32 };

/* ------------------------------------------------------------------------------------------- writing */

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
    required(cJSON_AddNumberToObject(object, key, number));
}

/* Rounds to seven digits, to keep files short; the measurement is less accurate than that. */
static double rounded(double number)
{
    char text[NUMBER_TEXT_BYTES];
    snprintf(text, sizeof text, "%.7g", number);
    return strtod(text, NULL);
}

static void put_figure(cJSON *object, const char *key, double number)
{
    put_number(object, key, rounded(number));
}

static void put_figures(cJSON *object, const char *key, const double *numbers, size_t count)
{
    cJSON *array = required(cJSON_AddArrayToObject(object, key));
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, required(cJSON_CreateNumber(rounded(numbers[i]))));
}

static cJSON *new_object(const char *type)
{
    cJSON *object = required(cJSON_CreateObject());
    put_text(object, "type", type);
    return object;
}

static cJSON *make_machine(const quern__bench_machine *machine)
{
    cJSON *object = new_object("machine");
    put_text(object, "processor", machine->processor);
    put_number(object, "processors", machine->processor_count);
    cJSON *caches = required(cJSON_AddArrayToObject(object, "caches"));
    for (uint32_t i = 0; i < machine->cache_count; i++) {
        cJSON *cache = required(cJSON_CreateObject());
        put_text(cache, "name", machine->caches[i].name);
        put_number(cache, "bytes", (double)machine->caches[i].bytes);
        put_text(cache, "source", machine->caches[i].source);
        cJSON_AddItemToArray(caches, cache);
    }
    put_number(object, "memory_bytes", (double)machine->memory_bytes);
    put_text(object, "system", machine->system);
    put_text(object, "compiler", machine->compiler);
    put_text(object, "flags", machine->flags);
    put_text(object, "quern", machine->version);
    put_text(object, "commit", machine->commit);
    put_text(object, "date", machine->date);
    required(cJSON_AddBoolToObject(object, "checks", machine->checks));
    return object;
}

static void put_counters(cJSON *object, const quern__bench_record *record)
{
    if (!quern__bench_record_has_counters(record)) return;
    cJSON *counters = required(cJSON_AddObjectToObject(object, "counters"));
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        if (!isnan(record->counters[i]))
            put_figure(counters, quern__bench_counter_keys[i], record->counters[i]);
}

static void put_case(cJSON *object, const quern__bench_record *record)
{
    put_text(object, "workload", record->workload);
    put_text(object, "subject", record->subject);
    if (record->control != NULL) put_text(object, "control", record->control);
    put_number(object, "entities", record->entity_count);
    put_number(object, "threads", record->thread_count);
    put_text(object, "unit", record->unit);
    if (record->bytes_per_entity > 0) put_number(object, "bytes_per_entity", record->bytes_per_entity);
}

/* Leaves the interval out if there are too few samples for one. */
static void put_trust(cJSON *object, const quern__bench_record *record, const quern__bench_record *control)
{
    const quern__bench_trust trust = quern__bench_judge(record, control);
    if (!isfinite(trust.ratio)) return;
    put_figure(object, "ratio", trust.ratio);
    if (isfinite(trust.high)) {
        put_figure(object, "ratio_low", trust.low);
        put_figure(object, "ratio_high", trust.high);
    }
    required(cJSON_AddBoolToObject(object, "is_unclear", trust.is_unclear));
}

static cJSON *make_record(const quern__bench_record *record, const quern__bench_record *control)
{
    cJSON *object = new_object("result");
    put_case(object, record);
    put_number(object, "repeat", (double)record->sample_count);
    put_figure(object, record->is_bytes ? "bytes_per_op" : "ns_per_op", record->summary.median);
    put_figure(object, "mad", record->summary.mad);
    put_figure(object, "min", record->summary.min);
    put_figure(object, "max", record->summary.max);
    put_trust(object, record, control);
    put_figures(object, "samples", record->samples, record->sample_count);
    if (record->frame_count > 0) put_figures(object, "frames_ns", record->frames, record->frame_count);
    put_counters(object, record);
    char checksum[CHECKSUM_TEXT_BYTES];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, record->checksum);
    put_text(object, "checksum", checksum);
    if (control != NULL)
        required(cJSON_AddBoolToObject(object, "agrees", quern__bench_record_agrees(record, control)));
    return object;
}

static cJSON *make_trust(const quern__bench_results *results)
{
    char text[QUERN__BENCH_STEADINESS_TEXT_BYTES];
    const quern__bench_steadiness steadiness = quern__bench_assess_controls(results);
    cJSON *object = new_object("trust");
    put_number(object, "confidence", QUERN__BENCH_CONFIDENCE);
    put_number(object, "spread_limit", QUERN__BENCH_SPREAD_LIMIT);
    put_number(object, "controls", (double)steadiness.control_count);
    put_number(object, "unsteady_controls", (double)steadiness.unsteady_count);
    quern__bench_format_steadiness(text, &steadiness);
    if (text[0] != '\0') put_text(object, "warning", text);
    return object;
}

static void write_line(FILE *file, cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);
    if (text == NULL) quern_bench_die("out of memory");
    fprintf(file, "%s\n", text);
    fflush(file);
    cJSON_free(text);
    cJSON_Delete(object);
}

void quern__bench_json_write_machine(FILE *file, const quern__bench_machine *machine)
{
    write_line(file, make_machine(machine));
}

void quern__bench_json_write_record(FILE *file, const quern__bench_record *record,
                                    const quern__bench_record *control)
{
    write_line(file, make_record(record, control));
}

void quern__bench_json_write_trust(FILE *file, const quern__bench_results *results)
{
    write_line(file, make_trust(results));
}

/* ------------------------------------------------------------------------------------------- reading */

typedef struct json_reader {
    char *message;
    unsigned line;
} json_reader;

static bool refuse(const json_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the message, with the number of the current line unless it is 0. Returns false, so that callers can
 * return its result. */
static bool refuse(const json_reader *reader, const char *format, ...)
{
    const int length = reader->line > 0 ? snprintf(reader->message, QUERN__BENCH_JSON_MESSAGE_BYTES,
                                                   "line %u: ", reader->line)
                                        : 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->message + length, QUERN__BENCH_JSON_MESSAGE_BYTES - (size_t)length, format,
              arguments);
    va_end(arguments);
    return false;
}

/* Returns a copy of a field's text, to be released with free(); NULL if the field has no text. */
static char *get_text(const cJSON *object, const char *key)
{
    return quern__bench_copy_text(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key)));
}

static char *get_text_or_unknown(const cJSON *object, const char *key)
{
    char *text = get_text(object, key);
    return text != NULL ? text : quern__bench_copy_text("unknown");
}

/* Returns the number in a field; NAN if the field has no number. */
static double get_number(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* Returns the integer in a field; 0 if the field has no number or one outside of the range of uint32_t. */
static uint32_t get_count(const cJSON *object, const char *key)
{
    const double number = get_number(object, key);
    return number >= 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static uint64_t get_bytes(const cJSON *object, const char *key)
{
    const double number = get_number(object, key);
    return number >= 0 && number < 0x1p63 ? (uint64_t)number : 0;
}

/* Older versions wrote the level of each cache. */
static quern__bench_cache read_cache(const cJSON *object)
{
    quern__bench_cache cache = {.bytes = get_bytes(object, "bytes")};
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "name")),
               *source = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "source"));
    if (name != NULL)
        snprintf(cache.name, sizeof cache.name, "%s", name);
    else
        snprintf(cache.name, sizeof cache.name, "L%u", (unsigned)get_count(object, "level"));
    snprintf(cache.source, sizeof cache.source, "%s", source != NULL ? source : "");
    return cache;
}

static void read_machine(const cJSON *object, quern__bench_machine *machine)
{
    quern__bench_machine_close(machine);
    *machine = (quern__bench_machine){
        .processor = get_text_or_unknown(object, "processor"),
        .processor_count = get_count(object, "processors"),
        .memory_bytes = get_bytes(object, "memory_bytes"),
        .system = get_text_or_unknown(object, "system"),
        .compiler = get_text_or_unknown(object, "compiler"),
        .flags = get_text_or_unknown(object, "flags"),
        .version = get_text_or_unknown(object, "quern"),
        .commit = get_text_or_unknown(object, "commit"),
        .date = get_text_or_unknown(object, "date"),
        .checks = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "checks")),
    };
    const cJSON *cache = NULL;
    cJSON_ArrayForEach(cache, cJSON_GetObjectItemCaseSensitive(object, "caches"))
    {
        if (machine->cache_count == QUERN__BENCH_MAX_CACHES) break;
        machine->caches[machine->cache_count++] = read_cache(cache);
    }
}

/* Returns the numbers of an array, to be released with free(). Returns NULL, with a count of 0, if the
 * field is no array, or if an element is no number or is below `least`. */
static double *get_numbers(const cJSON *object, const char *key, double least, size_t *count)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, key);
    const int size = cJSON_GetArraySize(array);
    *count = 0;
    if (size == 0) return NULL;
    double *numbers = quern_bench_allocate((size_t)size, sizeof *numbers);
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        const double number = cJSON_GetNumberValue(item);
        if (!(number >= least && number < INFINITY)) {
            free(numbers);
            *count = 0;
            return NULL;
        }
        numbers[(*count)++] = number;
    }
    return numbers;
}

static void read_counters(const cJSON *object, quern__bench_record *record)
{
    const cJSON *counters = cJSON_GetObjectItemCaseSensitive(object, "counters");
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        record->counters[i] = get_number(counters, quern__bench_counter_keys[i]);
}

static uint64_t get_checksum(const cJSON *object)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "checksum"));
    return text != NULL ? strtoull(text, NULL, 16) : 0;
}

static quern__bench_record read_record(const cJSON *object)
{
    quern__bench_record record = {
        .workload = get_text(object, "workload"),
        .subject = get_text(object, "subject"),
        .control = get_text(object, "control"),
        .unit = get_text_or_unknown(object, "unit"),
        .entity_count = get_count(object, "entities"),
        .thread_count = get_count(object, "threads"),
        .bytes_per_entity = get_count(object, "bytes_per_entity"),
        .is_bytes = cJSON_HasObjectItem(object, "bytes_per_op"),
        .checksum = get_checksum(object),
    };
    /* Times must be above 0, since comparisons use their logarithms. Bytes may be 0. */
    record.samples = get_numbers(object, "samples", record.is_bytes ? 0 : 1e-12, &record.sample_count);
    record.frames = get_numbers(object, "frames_ns", 0, &record.frame_count);
    read_counters(object, &record);
    return record;
}

/* An odd factor, so that multiplying an earlier run's checksum loses no bit of it. */
#define CHECKSUM_FACTOR 0x9E3779B97F4A7C15u

static double *joined(double *first, size_t first_count, double *second, size_t second_count)
{
    if (second_count == 0) return first;
    double *all = realloc(first, (first_count + second_count) * sizeof *all);
    if (all == NULL) quern_bench_die("out of memory");
    memcpy(all + first_count, second, second_count * sizeof *all);
    free(second);
    return all;
}

/* Appends the samples of a later run to the record of the same case and subject. The record of the control
 * is joined in the same way, so that equal indices still mean samples of about the same time. */
static void join_records(quern__bench_record *record, quern__bench_record *later)
{
    record->samples = joined(record->samples, record->sample_count, later->samples, later->sample_count);
    record->sample_count += later->sample_count;
    record->frames = joined(record->frames, record->frame_count, later->frames, later->frame_count);
    record->frame_count += later->frame_count;
    record->checksum = record->checksum * CHECKSUM_FACTOR + later->checksum;
    later->samples = NULL;
    if (later->frame_count > 0) later->frames = NULL;
    quern__bench_record_close(later);
}

static bool add_record(const json_reader *reader, quern__bench_results *results, const cJSON *object)
{
    quern__bench_record record = read_record(object);
    const char *missing = record.workload == NULL  ? "workload"
                          : record.subject == NULL ? "subject"
                          : record.samples == NULL ? "samples"
                                                   : NULL;
    if (missing != NULL) {
        quern__bench_record_close(&record);
        return refuse(reader, "the field '%s' of a result is missing or wrong", missing);
    }
    const quern__bench_record *found = quern__bench_results_find(results, &record);
    quern__bench_record *kept = found != NULL ? &results->records[found - results->records]
                                              : quern__bench_results_add(results, &record);
    if (found != NULL) join_records(kept, &record);
    kept->summary = quern__bench_summarise(kept->samples, kept->sample_count);
    return true;
}

/* Returns the first property in which two machines differ, such as "compiler"; NULL if there is none.
 * Samples from different machines or builds must not be joined. */
static const char *find_difference(const quern__bench_machine *first, const quern__bench_machine *second)
{
    if (strcmp(first->processor, second->processor) != 0) return "processor";
    if (first->processor_count != second->processor_count) return "number of processors";
    if (strcmp(first->compiler, second->compiler) != 0) return "compiler";
    if (strcmp(first->flags, second->flags) != 0) return "set of flags";
    if (strcmp(first->version, second->version) != 0) return "version of Quern";
    if (strcmp(first->commit, second->commit) != 0) return "commit";
    return first->checks != second->checks ? "setting of QUERN_CHECKS" : NULL;
}

/* Reads the machine of a run. Fails if it differs from the machine of the run before in the same file,
 * because the samples of all runs are joined. */
static bool add_machine(const json_reader *reader, quern__bench_machine *machine, const cJSON *object)
{
    quern__bench_machine next = {0};
    read_machine(object, &next);
    const char *difference = machine->processor != NULL ? find_difference(machine, &next) : NULL;
    quern__bench_machine_close(machine);
    *machine = next;
    if (difference == NULL) return true;
    return refuse(reader,
                  "the %s differs from that in an earlier line, so samples cannot be joined; use one file "
                  "for each",
                  difference);
}

static bool read_object(const json_reader *reader, quern__bench_results *results, const cJSON *object)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "type"));
    if (type == NULL) return refuse(reader, "the field 'type' is missing; use a file that --json wrote");
    if (strcmp(type, "machine") == 0 && !add_machine(reader, &results->machine, object)) return false;
    return strcmp(type, "result") != 0 || add_record(reader, results, object);
}

static bool read_line(const json_reader *reader, quern__bench_results *results, const char *text,
                      size_t length)
{
    if (strspn(text, " \t\r") >= length) return true;
    cJSON *object = cJSON_ParseWithLength(text, length);
    if (object == NULL) return refuse(reader, "not JSON; use a file that --json wrote");
    const bool done = read_object(reader, results, object);
    cJSON_Delete(object);
    return done;
}

bool quern__bench_json_read(const char *text, quern__bench_results *results,
                            char message[QUERN__BENCH_JSON_MESSAGE_BYTES])
{
    *results = (quern__bench_results){0};
    json_reader reader = {.message = message};
    bool done = true;
    while (done && *text != '\0') {
        const size_t length = strcspn(text, "\n");
        reader.line++;
        done = read_line(&reader, results, text, length);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    reader.line = 0;
    if (done && results->record_count == 0) done = refuse(&reader, "the file has no results");
    if (done && results->machine.processor == NULL)
        done = refuse(&reader, "the line that describes the machine is missing; --json writes it first");
    if (!done) quern__bench_results_close(results);
    return done;
}

/* --------------------------------------------------------------------------------------------- page */

/* Numbers that are not finite are left out. */
static void put_finite(cJSON *object, const char *key, double number)
{
    if (isfinite(number)) put_number(object, key, number);
}

static cJSON *make_row(const quern__bench_comparison *comparison, bool is_control)
{
    const quern__bench_record *now = comparison->now;
    cJSON *row = required(cJSON_CreateObject());
    put_text(row, "workload", now->workload);
    put_finite(row, "entities", now->entity_count);
    put_finite(row, "threads", now->thread_count);
    put_text(row, "subject", now->subject);
    put_text(row, "figure", comparison->by_ratio ? "ratio" : quern__bench_record_measure(now));
    put_text(row, "unit", now->unit);
    required(cJSON_AddBoolToObject(row, "is_control", is_control));
    put_text(row, "verdict", quern__bench_verdict_text(comparison->verdict, now->is_bytes));
    if (comparison->reason != NULL) put_text(row, "reason", comparison->reason);
    if (comparison->before_figure > 0) {
        put_finite(row, "before", comparison->before_figure);
        put_finite(row, "now", comparison->now_figure);
    }
    if (comparison->is_tested) {
        put_finite(row, "change", comparison->difference.ratio);
        put_finite(row, "low", comparison->difference.low);
        put_finite(row, "high", comparison->difference.high);
        put_finite(row, "p", comparison->difference.p);
    } else if (comparison->before_figure > 0) {
        put_finite(row, "change", comparison->now_figure / comparison->before_figure);
    }
    return row;
}

static cJSON *make_comparison(const quern__bench_page *page)
{
    cJSON *object = required(cJSON_CreateObject());
    put_text(object, "path", page->before_path);
    put_text(object, "date", page->before->machine.date);
    put_text(object, "commit", page->before->machine.commit);
    put_finite(object, "alpha", QUERN__BENCH_ALPHA);
    put_finite(object, "noise", page->noise);
    const quern__bench_drift drift = quern__bench_find_drift(page->comparisons, page->results, 0);
    if (drift.control_count > 0) {
        put_finite(object, "drift", drift.median);
        put_finite(object, "drift_least", drift.least);
        put_finite(object, "drift_greatest", drift.greatest);
    }
    cJSON *rows = required(cJSON_AddArrayToObject(object, "rows"));
    for (size_t i = 0; i < page->results->record_count; i++) {
        const bool is_control = quern__bench_results_is_control(page->results, page->comparisons[i].now);
        cJSON_AddItemToArray(rows, make_row(&page->comparisons[i], is_control));
    }
    return object;
}

static cJSON *make_forecast(const quern__bench_captured *captured)
{
    cJSON *object = required(cJSON_CreateObject());
    put_text(object, "workload", captured->workload);
    put_text(object, "subject", captured->subject);
    put_finite(object, "entities", captured->entity_count);
    cJSON *points = required(cJSON_AddArrayToObject(object, "points"));
    for (uint32_t i = 0; i < captured->forecast_count; i++) {
        const quern_forecast *forecast = &captured->forecasts[i];
        cJSON *point = required(cJSON_CreateObject());
        put_finite(point, "threads", forecast->thread_count);
        put_finite(point, "speedup", forecast->speedup);
        if (forecast->bottleneck != QUERN_FORECAST_NONE)
            put_text(point, "limit", quern_forecast_bottleneck_string(forecast->bottleneck));
        if (forecast->bottleneck_system != NULL) put_text(point, "system", forecast->bottleneck_system);
        cJSON_AddItemToArray(points, point);
    }
    return object;
}

void quern__bench_page_write(FILE *file, const quern__bench_page *page)
{
    const quern__bench_results *results = page->results;
    cJSON *data = required(cJSON_CreateObject());
    put_text(data, "program", page->program);
    cJSON_AddItemToObject(data, "machine", make_machine(&results->machine));
    cJSON *array = required(cJSON_AddArrayToObject(data, "results"));
    for (size_t i = 0; i < results->record_count; i++) {
        const quern__bench_record *record = &results->records[i];
        cJSON_AddItemToArray(array, make_record(record, quern__bench_results_control(results, record)));
    }
    cJSON_AddItemToObject(data, "trust", make_trust(results));
    cJSON *forecasts = required(cJSON_AddArrayToObject(data, "forecasts"));
    for (size_t i = 0; i < page->forecasts->count; i++)
        cJSON_AddItemToArray(forecasts, make_forecast(&page->forecasts->items[i]));
    if (page->comparisons != NULL) cJSON_AddItemToObject(data, "comparison", make_comparison(page));
    char *json = cJSON_PrintUnformatted(data);
    if (json == NULL) quern_bench_die("out of memory");
    fwrite(quern__bench_page_head, 1, quern__bench_page_head_bytes, file);
    /* Angle brackets are escaped, since "</script>" in a text would end the element of the script. */
    for (const char *at = json; *at != '\0'; at++)
        if (*at == '<')
            fputs("\\u003c", file);
        else
            fputc(*at, file);
    fwrite(quern__bench_page_tail, 1, quern__bench_page_tail_bytes, file);
    cJSON_free(json);
    cJSON_Delete(data);
}
