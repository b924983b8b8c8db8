/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* quern_schedule_describe: the compiled schedule in words. */

#include "sched/compile.h"

static const char *const step_names[] = {
    [QUERN__STEP_RUN] = "run", [QUERN__STEP_EXCLUSIVE] = "exclusive", [QUERN__STEP_SYNC] = "sync"};

static void print_component_name(const quern_schedule *schedule, uint32_t index, FILE *file)
{
    fprintf(file, "'%s'", quern__components_type(&schedule->world->storage.components, index)->name);
}

static void print_set(const quern_schedule *schedule, const char *verb, const uint64_t *words, FILE *file)
{
    const char *separator = verb;
    for (uint32_t i = 0; i < QUERN_MAX_COMPONENTS; i++) {
        if (!quern__bitset_has(words, i)) continue;
        fprintf(file, "%s ", separator);
        print_component_name(schedule, i, file);
        separator = ",";
    }
}

static void print_resources(const quern_schedule *schedule, const quern__access *access, FILE *file)
{
    static const char *const verbs[] = {"", "reads", "writes", "writes concurrently"};
    for (uint32_t i = 0; i < access->resource_count; i++)
        fprintf(file, "; %s resource '%s'", verbs[access->resources[i].access],
                schedule->world->resources.list.items[access->resources[i].index].type.name);
}

static void print_system(const quern_schedule *schedule, const quern__system *system, FILE *file)
{
    uint64_t only_read[QUERN__COMPONENT_WORDS];
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        only_read[word] = system->access.reads[word] & ~system->access.writes[word];
    fprintf(file, "    %s%s%s:", system->name, system->enabled ? "" : " (disabled)",
            quern__system_is(system, QUERN_SYSTEM_MAIN_THREAD) ? " (main thread)"
            : quern__system_is(system, QUERN_SYSTEM_SERIAL)    ? " (serial)"
                                                               : "");
    print_set(schedule, " reads", only_read, file);
    print_set(schedule, " writes", system->access.writes, file);
    print_set(schedule, " looks up", system->access.lookups, file);
    print_resources(schedule, &system->access, file);
    if (system->query.term_count > 0) fprintf(file, " (%u archetypes)", system->query.matches.count);
    fprintf(file, "\n");
}

static void print_reason(const quern_schedule *schedule, quern__conflict conflict, FILE *file)
{
    switch ((quern__conflict_kind)conflict.kind) {
    case QUERN__CONFLICT_ORDER:
    case QUERN__CONFLICT_DECLARED:
        fprintf(file, "before/after");
        break;
    case QUERN__CONFLICT_RESOURCE:
        fprintf(file, "resource '%s'", schedule->world->resources.list.items[conflict.index].type.name);
        break;
    case QUERN__CONFLICT_LOOKUP:
        fprintf(file, "lookup of ");
        print_component_name(schedule, conflict.index, file);
        break;
    case QUERN__CONFLICT_COMPONENT:
        fprintf(file, "component ");
        print_component_name(schedule, conflict.index, file);
        break;
    case QUERN__NO_CONFLICT:
        break;
    }
}

static void print_edges(const quern_schedule *schedule, const quern__step *step, uint32_t later, FILE *file)
{
    for (uint32_t earlier = step->first; earlier < later; earlier++) {
        quern__conflict conflict = *quern__schedule_conflict(schedule, earlier, later);
        if (conflict.kind == QUERN__NO_CONFLICT) continue;
        fprintf(file, "      after %s: ", schedule->order.items[earlier]->name);
        print_reason(schedule, conflict, file);
        fprintf(file, "\n");
    }
}

quern_result quern_schedule_describe(quern_schedule *schedule, FILE *file)
{
    if (file == NULL) return quern__fail_null("quern_schedule_describe", "file");
    quern_result result = quern_schedule_compile(schedule);
    if (result != QUERN_OK) return result;
    uint32_t phase = UINT32_MAX;
    for (uint32_t i = 0; i < schedule->steps.count; i++) {
        const quern__step *step = &schedule->steps.items[i];
        if (step->phase != phase) fprintf(file, "phase '%s'\n", schedule->phases[step->phase].name);
        phase = step->phase;
        fprintf(file, "  %s\n", step_names[step->kind]);
        for (uint32_t k = step->first; k < step->end; k++) {
            print_system(schedule, schedule->order.items[k], file);
            print_edges(schedule, step, k, file);
        }
    }
    return QUERN_OK;
}
