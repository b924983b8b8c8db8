/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/base/containers.h"
#include "core/platform/platform.h"
#include "core/query/query_internal.h"
#include "sched/schedule/compile.h"

#include <quern/loader.h>
#include <quern/shorthand.h>

#include <float.h>

/* The public functions of a schedule: its creation, its systems, its statistics and lists, and dropped commands. */

/* -------------------------------------------------------------------------------------- life cycle */

static quern_result check_phases(const char *const *names, uint32_t count)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = quern__check_name(names[i], "phase");
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (strcmp(names[k], names[i]) == 0)
                result = quern__fail(QUERN_ERROR_DUPLICATE_NAME,
                                     "phases %u and %u are both called '%s': rename one of them", k, i,
                                     names[i]);
    }
    return result;
}

static quern__phase make_phase(quern__plan *plan, const char *name, void *user_data)
{
    quern__phase phase = {.id = ++plan->last_phase_id,
                          .user_data = user_data != NULL ? user_data : plan->user_data};
    memcpy(phase.name, name, strlen(name) + 1);
    return phase;
}

/* Returns the size of the allocation of a schedule, its phases and its name. */
static size_t schedule_bytes(const char *name)
{
    return sizeof(quern_schedule) + QUERN_MAX_PHASES * sizeof(quern__phase) +
           (name != NULL ? strlen(name) + 1 : 0);
}

quern_result quern__schedule_create(quern_world *world, const quern_schedule_def *def,
                                    quern__frame_observer_create *create_observer,
                                    quern_schedule **out_schedule)
{
    static const quern_schedule_def zero;
    static const char *const default_phases[] = {"update"};
    if (def == NULL) def = &zero;
    if (world == NULL) return quern__fail_null("quern_schedule_create", "world");
    if (out_schedule == NULL) return quern__fail_null("quern_schedule_create", "out_schedule");
    uint32_t phase_count = 0;
    quern_result result = quern__list_count(def->phases, QUERN_MAX_PHASES, quern__is_end_of_names, "phase",
                                            NULL, &phase_count);
    if (result == QUERN_OK) result = check_phases(def->phases, phase_count);
    if (result == QUERN_OK && def->name != NULL) result = quern__check_name(def->name, "schedule");
    if (result == QUERN_OK && (unsigned)def->prefetch > QUERN_PREFETCH_CHUNKS)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "prefetch is %u, which is no quern_prefetch",
                             (unsigned)def->prefetch);
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, "quern_schedule_create");
    if (result != QUERN_OK) return quern__in_call(result, "quern_schedule_create");
    const char *const *phases = phase_count > 0 ? def->phases : default_phases;
    if (phase_count == 0) phase_count = 1;

    const quern_allocator *allocator = &world->storage.allocator;
    const size_t bytes = schedule_bytes(def->name);
    const quern_cache_sizes caches = quern_processor_caches();
    quern_schedule *schedule = quern__allocate(allocator, bytes, _Alignof(quern_schedule));
    if (schedule == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_schedule_create: no memory for a schedule");
    *schedule = (quern_schedule){.plan = {.schedule = schedule,
                                          .functions = &quern__frame_pass_functions,
                                          .world = world,
                                          .user_data = def->user_data,
                                          .phases = (void *)(schedule + 1),
                                          .phase_count = phase_count,
                                          .fuses_systems = !def->disable_fusing,
                                          .shuffle_seed = def->shuffle_seed,
                                          .prefetch = def->prefetch,
                                          .max_reaction_rounds = def->max_reaction_rounds > 0
                                                                     ? def->max_reaction_rounds
                                                                     : QUERN_DEFAULT_REACTION_ROUNDS,
                                          .own_cache_bytes = caches.own_bytes,
                                          .shared_cache_bytes = caches.shared_bytes},
                                 .measures_times = def->timing};
    result = create_observer(&schedule->plan, def, &schedule->observer);
    if (result != QUERN_OK) {
        quern__release(allocator, schedule, bytes, _Alignof(quern_schedule));
        return quern__in_call(result, "quern_schedule_create");
    }
    for (uint32_t i = 0; i < phase_count; i++) {
        schedule->plan.phases[i] = make_phase(&schedule->plan, phases[i], def->phase_user_data[i]);
        schedule->plan.phases[i].syncs_between = def->syncs_between[i];
    }
    if (def->name != NULL)
        schedule->name = memcpy(schedule->plan.phases + QUERN_MAX_PHASES, def->name, strlen(def->name) + 1);
    quern__playback_init(&schedule->playback, &world->storage);
    world->user_count++;
    quern_schedule **link = &world->first_schedule;
    while (*link != NULL)
        link = &(*link)->next_schedule;
    *link = schedule;
    *out_schedule = schedule;
    return QUERN_OK;
}

void quern_schedule_destroy(quern_schedule *schedule)
{
    if (schedule == NULL) return;
    if (schedule->is_running || schedule->plan.world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_schedule_destroy: " QUERN__WORLD_LOCKERS
                                " is running on its world; destroy the schedule afterwards");
        return;
    }
    if (schedule->has_history) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_destroy: a history still saves the schedule; destroy that first");
        return;
    }
    for (const quern_world_user *user = schedule->plan.world->first_user; user != NULL; user = user->next) {
        if (user->schedule != schedule) continue;
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_destroy: %s still refers to the schedule; destroy it first, or remove it "
            "(quern_world_remove_user)",
            user->name);
        return;
    }
    const quern_allocator *allocator = &schedule->plan.world->storage.allocator;
    if (schedule->command_listener != NULL) schedule->command_listener->detach(schedule->command_listener);
    schedule->plan.world->user_count--;
    quern__schedule_set_failed(schedule, false);
    quern_schedule **link = &schedule->plan.world->first_schedule;
    while (*link != schedule)
        link = &(*link)->next_schedule;
    *link = schedule->next_schedule;
    schedule->observer->calls->destroy(schedule->observer);
    quern__compile_release(&schedule->plan);
    quern__workers_release(schedule);
    quern__emitters_release(schedule);
    quern__playback_release(&schedule->playback);
    quern__guards_release(&schedule->guards, allocator);
    quern__plan_release_systems(&schedule->plan);
    quern__release(allocator, schedule, schedule_bytes(schedule->name), _Alignof(quern_schedule));
}

/* ------------------------------------------------------------------------------------------ systems */

quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function)
{
    if (!schedule->is_running) return QUERN_OK;
    return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                       "%s: the schedule is running a frame; call it between frames", function);
}

static quern_system handle_of(const quern__system *system)
{
    return (quern_system){.bits = system->handle_bits};
}

static const quern__registry registry = QUERN__REGISTRY_OF_POINTERS("system", "schedule", QUERN_MAX_SYSTEMS,
                                                                    QUERN_OK, quern__system_slot, name);

/* Checks the name of a new system, of which the map of names knows whether it is in use. */
static quern_result check_name(const quern__plan *plan, const char *name)
{
    quern__system_slot *const *none = NULL;
    quern_result result = quern__registry_check_new(&registry, none, 0, name);
    if (result != QUERN_OK) return result;
    const quern__system *other = quern__plan_find_system(plan, name);
    if (other == NULL && quern__plan_find_set(plan, name) != NULL)
        return quern__fail(
            QUERN_ERROR_DUPLICATE_NAME,
            "'%s' is the name of a set of the schedule, and before and after could mean both: "
            "choose another name for the system",
            name);
    if (other == NULL) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_DUPLICATE_NAME,
        "the schedule already has a system '%s': choose another name, or replace that system "
        "(quern_schedule_replace_system)",
        name);
}

static quern_result check_add(quern_schedule *schedule, const quern_system_def *def)
{
    quern__plan *plan = &schedule->plan;
    quern_result result = quern__world_check_unlocked(schedule->plan.world, "quern_schedule_add_system");
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, "quern_schedule_add_system");
    if (result == QUERN_OK) result = check_name(plan, def->name);
    if (result == QUERN_OK && plan->systems.count == QUERN_MAX_SYSTEMS)
        result = quern__registry_fail_full(&registry, def->name);
    return result == QUERN_OK ? quern__plan_reserve_system(plan, def->name) : result;
}

/* Completes a new system by what its phase gives it, and the plan by what frames need for the system. */
static void note_declarations(quern__plan *plan, quern__system *system)
{
    if (system->user_data == NULL) system->user_data = plan->phases[system->phase].user_data;
    if (system->query.up_count > plan->up_count) plan->up_count = system->query.up_count;
    for (uint32_t i = 0; i < system->events.emits.count; i++)
        if (system->events.emits.items[i]->index >= plan->emitted_channel_count)
            plan->emitted_channel_count = system->events.emits.items[i]->index + 1;
}

quern_result quern_schedule_add_system(quern_schedule *schedule, const quern_system_def *def,
                                       quern_system *out_system)
{
    QUERN__NEED(schedule);
    QUERN__NEED(def);
    const quern_loader *loader = schedule->plan.world->loader;
    if (loader != NULL) {
        quern_system ignored;
        return loader->add_system(loader->user_data, schedule, def,
                                  out_system != NULL ? out_system : &ignored);
    }
    quern_result result = check_add(schedule, def);
    if (result != QUERN_OK) return quern__message_add_call(result, __func__, NULL);
    quern__system *system = NULL;
    result = quern__system_create(schedule->plan.world, def, schedule->plan.phase_count, NULL, &system);
    if (result != QUERN_OK) return quern__message_add_call(result, __func__, def->name);
    quern__plan_add_system(&schedule->plan, system);
    note_declarations(&schedule->plan, system);
    quern__system_set_enabled(system, quern__plan_allows(&schedule->plan, system));
    schedule->plan.reaction_count += system->reaction != NULL;
    schedule->plan.is_compiled = false;
    if (out_system != NULL) *out_system = handle_of(system);
    return QUERN_OK;
}

quern_result quern__schedule_add_typed(quern_schedule *schedule, const quern_system_def *def,
                                       const char *name, quern_view_callback *run,
                                       const quern_value *columns, size_t column_count)
{
    if (schedule == NULL) return quern__fail_null("QUERN_ADD_SYSTEM", "schedule");
    quern_system_def whole = *def;
    whole.name = name;
    whole.run = run;
    memset(whole.terms, 0, sizeof whole.terms);
    if (def->terms[QUERN_MAX_TERMS - column_count].component.bits != 0)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "QUERN_ADD_SYSTEM: system '%s' has %zu columns and more terms than the rest of %d "
            "(QUERN_MAX_TERMS): use fewer",
            name, column_count, QUERN_MAX_TERMS);
    memcpy(whole.terms + column_count, def->terms, (QUERN_MAX_TERMS - column_count) * sizeof *def->terms);
    for (size_t i = 0; i < column_count; i++) {
        quern_component component;
        const quern_result result =
            quern__world_get_type(schedule->plan.world, &columns[i], "QUERN_ADD_SYSTEM", &component);
        if (result != QUERN_OK) return result;
        whole.terms[i] = columns[i].is_const ? quern_term_read(component) : quern_term_write(component);
    }
    return quern_schedule_add_system(schedule, &whole, NULL);
}

quern_result(quern__schedule_fail_system)(const quern_schedule *schedule, quern_system handle,
                                          const char *function)
{
    const uint32_t number = handle.bits & ((1u << QUERN__SYSTEM_INDEX_BITS) - 1);
    const quern__system_slot *slot =
        number > 0 && number <= schedule->plan.slots.count ? schedule->plan.slots.items[number - 1] : NULL;
    if (slot != NULL && handle.bits >> QUERN__SYSTEM_INDEX_BITS < slot->generation)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the system '%s' of the handle was removed: if it was added again, use its new "
            "handle (quern_schedule_find_system)",
            function, slot->name);
    if (handle.bits == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the system handle is null: add the system first, and check its name "
                           "(quern_schedule_find_system returns null for an unknown one)",
                           function);
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: no system of this schedule has the handle %u: pass one that adding a system to it "
        "or quern_schedule_find_system returned",
        function, handle.bits);
}

static quern_result find_system(const quern_schedule *schedule, quern_system handle, const char *function,
                                quern__system **out_system)
{
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    *out_system = quern__schedule_system(schedule, handle);
    return *out_system != NULL ? QUERN_OK : quern__schedule_fail_system(schedule, handle, function);
}

/* Enables or disables a system after it or a set was enabled or disabled. A reaction that is disabled is told neither what
 * is pending then nor what happens until it is enabled. While it is disabled, only restoring a frame in which it was
 * enabled can make something pending. Precondition: the world is claimed. */
static void enable_as_allowed(const quern_schedule *schedule, quern__system *system)
{
    const bool is_enabled = quern__plan_allows(&schedule->plan, system);
    if (system->is_enabled == is_enabled) return;
    if (system->reaction != NULL) quern__reaction_drop(&schedule->plan.world->storage, system->reaction);
    quern__system_set_enabled(system, is_enabled);
}

/* Makes contexts forget a system: code that has kept a context must not find a freed one. */
static void forget_system(quern_schedule *schedule, const quern__system *system)
{
    for (uint32_t i = 0; i < schedule->worker_count && system != NULL; i++) {
        quern_context *context = schedule->contexts.items[i];
        if (context->system == system) {
            context->system = NULL;
            context->scope.accessor = NULL;
        }
    }
}

/* Ends all that refers to a system before its successor replaces it or, if that is NULL, the system is removed. */
static void replace_system(quern_schedule *schedule, quern__system *system, quern__system *successor)
{
    forget_system(schedule, system);
    quern__guards_forget(schedule);
    if (successor == NULL)
        schedule->observer->calls->forget_system(schedule->observer, system);
    else
        quern__system_take_over(successor, system);
    quern__plan_replace_system(&schedule->plan, system, successor);
    if (successor == NULL) return;
    note_declarations(&schedule->plan, successor);
    enable_as_allowed(schedule, successor);
}

/* Claims the world, and checks that neither the world nor the schedule runs a frame. */
static quern_result begin_change(const quern_schedule *schedule, const char *function)
{
    quern_world *world = schedule->plan.world;
    if (!quern__world_claim(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, function);
    if (result != QUERN_OK) quern__world_unclaim(world);
    return result;
}

quern_result quern_schedule_remove_system(quern_schedule *schedule, quern_system handle)
{
    quern__system *system;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result == QUERN_OK) result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    replace_system(schedule, system, NULL);
    quern__world_unclaim(schedule->plan.world);
    return QUERN_OK;
}

static quern_result create_successor(const quern_schedule *schedule, const quern__system *system,
                                     const quern_system_def *def, quern__system **out_successor)
{
    quern_system_def named = *def;
    if (def->name != NULL && strcmp(def->name, system->name) != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the definition is called '%s': leave its name out, or remove the system and add another one",
            def->name);
    named.name = system->name;
    return quern__system_create(schedule->plan.world, &named, schedule->plan.phase_count, system,
                                out_successor);
}

quern_result quern_schedule_replace_system(quern_schedule *schedule, quern_system handle,
                                           const quern_system_def *def)
{
    quern__system *system, *successor = NULL;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result != QUERN_OK) return result;
    QUERN__NEED(def);
    result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = create_successor(schedule, system, def, &successor);
    if (result == QUERN_OK)
        replace_system(schedule, system, successor);
    else
        quern__message_add_call(result, __func__, system->name);
    quern__world_unclaim(schedule->plan.world);
    return result;
}

quern_result quern_schedule_move_system(quern_schedule *schedule, quern_system handle,
                                        quern_system previous)
{
    quern__system *system, *other = NULL;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result == QUERN_OK && previous.bits != 0)
        result = find_system(schedule, previous, __func__, &other);
    if (result == QUERN_OK && system == other)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the system '%s' cannot stand behind itself: give another one, or null for the beginning",
            __func__, system->name);
    if (result == QUERN_OK) result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    quern__guards_forget(schedule);
    quern__plan_move_system(&schedule->plan, system, other);
    quern__world_unclaim(schedule->plan.world);
    return QUERN_OK;
}

quern_system quern_schedule_previous_system(const quern_schedule *schedule, quern_system handle)
{
    quern__system *system;
    if (find_system(schedule, handle, __func__, &system) != QUERN_OK || system->index == 0)
        return (quern_system){0};
    return handle_of(schedule->plan.systems.items[system->index - 1]);
}

/* Finds the place of a phase in the new list; the count if the list lacks it. */
static uint32_t find_name(const char *const *names, uint32_t count, const char *name)
{
    uint32_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

static quern_result check_new_phases(const quern__plan *plan, const char *const *names, uint32_t count)
{
    if (count == 0 || count > QUERN_MAX_PHASES)
        return quern__fail(QUERN_ERROR_LIMIT, "%u phases; give 1 to %d (QUERN_MAX_PHASES)", count,
                           QUERN_MAX_PHASES);
    const quern_result result = check_phases(names, count);
    for (uint32_t i = 0; i < plan->systems.count && result == QUERN_OK; i++) {
        const quern__system *system = plan->systems.items[i];
        const char *phase = plan->phases[system->phase].name;
        if (find_name(names, count, phase) == count)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the new list lacks phase '%s', which has the system '%s': keep the phase, or remove or "
                "replace its systems first",
                phase, system->name);
    }
    return result;
}

quern_result quern_schedule_set_phases(quern_schedule *schedule, const char *const *names, uint32_t count)
{
    QUERN__NEED(schedule);
    QUERN__NEED(names);
    quern__plan *plan = &schedule->plan;
    quern_result result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = check_new_phases(plan, names, count);
    if (result == QUERN_OK) {
        quern__phase phases[QUERN_MAX_PHASES];
        uint32_t places[QUERN_MAX_PHASES]; /* of the old phases in the new list */
        bool is_known[QUERN_MAX_PHASES] = {false};
        for (uint32_t i = 0; i < plan->phase_count; i++) {
            places[i] = find_name(names, count, plan->phases[i].name);
            if (places[i] == count) continue;
            phases[places[i]] = plan->phases[i];
            is_known[places[i]] = true;
        }
        for (uint32_t i = 0; i < count; i++)
            if (!is_known[i]) phases[i] = make_phase(plan, names[i], NULL);
        for (uint32_t i = 0; i < plan->systems.count; i++)
            plan->systems.items[i]->phase = places[plan->systems.items[i]->phase];
        memcpy(plan->phases, phases, count * sizeof *phases);
        plan->phase_count = count;
        quern__compile_forget(plan, NULL);
    }
    quern__world_unclaim(plan->world);
    return quern__in_call(result, __func__);
}

/* Only a reaction needs the world for itself: what is pending for it is discarded. */
quern_result quern_schedule_set_system_enabled(quern_schedule *schedule, quern_system handle, bool enabled)
{
    quern__system *system;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, __func__);
    if (result != QUERN_OK) return result;
    const bool changes_reaction = system->reaction != NULL && system->wants_enabled != enabled;
    if (changes_reaction) result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    system->wants_enabled = enabled;
    enable_as_allowed(schedule, system);
    if (changes_reaction) quern__world_unclaim(schedule->plan.world);
    quern__plan_invalidate_segments(&schedule->plan);
    return QUERN_OK;
}

bool quern_schedule_is_system_enabled(const quern_schedule *schedule, quern_system handle)
{
    quern__system *system;
    return find_system(schedule, handle, __func__, &system) == QUERN_OK && system->wants_enabled;
}

/* ---------------------------------------------------------------------------------------------- sets */

static quern_result find_set(const quern_schedule *schedule, const char *name, quern__set **out_set)
{
    *out_set = quern__plan_find_set(&schedule->plan, name);
    if (*out_set != NULL) return QUERN_OK;
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < schedule->plan.sets.count; i++)
        quern_suggestion_offer(&suggestion, name, strlen(name), schedule->plan.sets.items[i]->name);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "the schedule has no set '%s': add it first (quern_schedule_add_set)%s", name,
                       suggestion.text);
}

/* Ends a call that begin_change began. If sets have changed, enables and disables their systems, and makes the next frame
 * order them again. */
static void finish_set_change(quern_schedule *schedule, quern_result result)
{
    if (result == QUERN_OK) quern__compile_forget(&schedule->plan, NULL);
    for (uint32_t i = 0; i < schedule->plan.systems.count && result == QUERN_OK; i++)
        enable_as_allowed(schedule, schedule->plan.systems.items[i]);
    quern__world_unclaim(schedule->plan.world);
}

static quern_result create_set(quern_schedule *schedule, const quern_set_def *def, quern__set **out_set)
{
    const quern_result result = quern__set_create(schedule->plan.world, def, out_set);
    if (result != QUERN_OK || (*out_set)->asker == NULL) return result;
    quern__system *asker = (*out_set)->asker;
    asker->plan = &schedule->plan;
    asker->name = asker->accessor.name = (*out_set)->name;
    if (asker->user_data == NULL) asker->user_data = schedule->plan.user_data;
    return QUERN_OK;
}

static quern_result add_set(quern_schedule *schedule, const quern_set_def *def)
{
    quern__plan *plan = &schedule->plan;
    quern__set *set;
    quern_result result = quern__check_name(def->name, "set");
    if (result != QUERN_OK) return result;
    const bool is_system = quern__plan_find_system(plan, def->name) != NULL;
    if (is_system || quern__plan_find_set(plan, def->name) != NULL)
        return quern__fail(QUERN_ERROR_DUPLICATE_NAME,
                           "the schedule has a %s '%s': choose another name for the set",
                           is_system ? "system" : "set", def->name);
    if (plan->sets.count == QUERN_MAX_SCHEDULE_SETS)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "the schedule has %d sets, the maximum (QUERN_MAX_SCHEDULE_SETS): use fewer than that",
            QUERN_MAX_SCHEDULE_SETS);
    if (!quern__array_reserve(quern__plan_allocator(plan), &plan->sets, plan->sets.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for set '%s'", def->name);
    result = create_set(schedule, def, &set);
    if (result != QUERN_OK) return result;
    set->id = ++plan->last_set_id;
    plan->sets.items[plan->sets.count++] = set;
    return QUERN_OK;
}

quern_result quern_schedule_add_set(quern_schedule *schedule, const quern_set_def *def)
{
    QUERN__NEED(schedule);
    QUERN__NEED(def);
    quern_result result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = add_set(schedule, def);
    finish_set_change(schedule, result);
    return quern__in_call(result, __func__);
}

quern_result quern_schedule_replace_set(quern_schedule *schedule, const quern_set_def *def)
{
    QUERN__NEED(schedule);
    QUERN__NEED(def);
    quern__set *set, *successor;
    quern_result result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = quern__check_name(def->name, "set");
    if (result == QUERN_OK) result = find_set(schedule, def->name, &set);
    if (result == QUERN_OK) result = create_set(schedule, def, &successor);
    if (result == QUERN_OK) {
        uint32_t i = 0;
        while (schedule->plan.sets.items[i] != set)
            i++;
        successor->id = set->id;
        successor->is_enabled = set->is_enabled;
        schedule->plan.sets.items[i] = successor;
        forget_system(schedule, set->asker);
        quern__set_destroy(set, quern__plan_allocator(&schedule->plan));
    }
    finish_set_change(schedule, result);
    return quern__in_call(result, __func__);
}

quern_result quern_schedule_remove_set(quern_schedule *schedule, const char *name)
{
    QUERN__NEED(schedule);
    QUERN__NEED(name);
    quern__set *set;
    quern__plan *plan = &schedule->plan;
    quern_result result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = find_set(schedule, name, &set);
    if (result == QUERN_OK) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < plan->sets.count; i++)
            if (plan->sets.items[i] != set) plan->sets.items[count++] = plan->sets.items[i];
        plan->sets.count = count;
        forget_system(schedule, set->asker);
        quern__set_destroy(set, quern__plan_allocator(plan));
    }
    finish_set_change(schedule, result);
    return quern__in_call(result, __func__);
}

quern_result quern_schedule_enable_set(quern_schedule *schedule, const char *name, bool enabled)
{
    QUERN__NEED(schedule);
    QUERN__NEED(name);
    quern__set *set;
    quern_result result = begin_change(schedule, __func__);
    if (result != QUERN_OK) return result;
    result = find_set(schedule, name, &set);
    if (result == QUERN_OK) {
        set->is_enabled = enabled;
        for (uint32_t i = 0; i < schedule->plan.systems.count; i++)
            enable_as_allowed(schedule, schedule->plan.systems.items[i]);
        quern__plan_invalidate_segments(&schedule->plan);
    }
    quern__world_unclaim(schedule->plan.world);
    return quern__in_call(result, __func__);
}

bool quern_schedule_is_set_enabled(const quern_schedule *schedule, const char *name)
{
    QUERN__NEED_OR(schedule, false);
    QUERN__NEED_OR(name, false);
    quern__set *set;
    const quern_result result = find_set(schedule, name, &set);
    return quern__in_call(result, __func__) == QUERN_OK && set->is_enabled;
}

uint32_t quern_schedule_list_sets(const quern_schedule *schedule, const char **out_names, uint32_t capacity)
{
    QUERN__NEED_OR(schedule, 0);
    if (capacity > 0) QUERN__NEED_OR(out_names, 0);
    const uint32_t count = (uint32_t)schedule->plan.sets.count;
    for (uint32_t i = 0; i < count && i < capacity; i++)
        out_names[i] = schedule->plan.sets.items[i]->name;
    return count;
}

/* ------------------------------------------------------------------------------ targets, steps, lookups */

quern_result quern_schedule_set_target(quern_schedule *schedule, quern_system handle, quern_entity target)
{
    quern__system *system;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, __func__);
    if (result != QUERN_OK) return result;
    const quern__query *aimed = quern__system_target_query(system);
    result = quern__target_set(aimed != NULL ? aimed : &system->query, target);
    return result != QUERN_OK ? quern__message_add_call(result, __func__, system->name) : QUERN_OK;
}

quern_result quern_schedule_set_fixed_step(quern_schedule *schedule, uint32_t phase, double step_seconds,
                                           uint32_t max_step_count)
{
    QUERN__NEED(schedule);
    if (phase >= schedule->plan.phase_count)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_set_fixed_step: the schedule has no phase %u: give a number from 0 ('%s') to "
            "%u ('%s')",
            phase, schedule->plan.phases[0].name, schedule->plan.phase_count - 1,
            schedule->plan.phases[schedule->plan.phase_count - 1].name);
    const bool is_finite = step_seconds >= 0 && step_seconds <= DBL_MAX; /* also rejects NaN */
    if (!is_finite || (step_seconds > 0 && max_step_count == 0))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_set_fixed_step: phase '%s': %u steps of %g seconds; give 1 step or "
            "more of a finite number of seconds, 0 (once per frame) or more",
            schedule->plan.phases[phase].name, max_step_count, step_seconds);
    quern_result result = quern__schedule_check_idle(schedule, __func__);
    if (result != QUERN_OK) return result;
    schedule->plan.phases[phase].step_seconds = step_seconds;
    schedule->plan.phases[phase].max_step_count = max_step_count;
    if (step_seconds == 0) schedule->plan.phases[phase].elapsed_seconds = 0;
    return QUERN_OK;
}

quern_system quern_schedule_find_system(const quern_schedule *schedule, const char *name)
{
    QUERN__NEED_OR(schedule, (quern_system){0});
    QUERN__NEED_OR(name, (quern_system){0});
    const quern__system *system = quern__plan_find_system(&schedule->plan, name);
    return system != NULL ? handle_of(system) : (quern_system){0};
}

quern_result quern__schedule_compile(quern_schedule *schedule, const char *function)
{
    quern_result result = quern__world_check_unlocked(schedule->plan.world, function);
    /* An exclusive system may call this in a frame: compiling could destroy the pass that runs it. */
    if (result == QUERN_OK) result = quern__schedule_check_idle(schedule, function);
    return result != QUERN_OK ? result : quern__in_call(quern__compile(&schedule->plan), function);
}

quern_result quern_schedule_compile(quern_schedule *schedule)
{
    QUERN__NEED(schedule);
    return quern__schedule_compile(schedule, __func__);
}

/* --------------------------------------------------------------------------- statistics and order */

quern_result quern_schedule_get_frame_stats(const quern_schedule *schedule, quern_frame_stats *out_stats)
{
    QUERN__NEED(schedule);
    QUERN__NEED(out_stats);
    *out_stats = schedule->stats;
    return QUERN_OK;
}

quern_result quern_schedule_get_system_query(const quern_schedule *schedule, quern_system handle,
                                             quern_query_def *out_def)
{
    quern__system *system;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result != QUERN_OK) return result;
    QUERN__NEED(out_def);
    (void)quern_query_get_def(&system->query, out_def);
    out_def->name = system->name;
    /* reactions get rows in which a component is disabled, too */
    for (uint32_t i = 0; i < system->query.term_count && system->reaction != NULL; i++)
        if (out_def->terms[i].match != QUERN_MATCH_NONE) out_def->terms[i].enabled = QUERN_TERM_EITHER;
    return QUERN_OK;
}

quern_result quern_schedule_get_system_stats(const quern_schedule *schedule, quern_system handle,
                                             quern_system_stats *out_stats)
{
    quern__system *system;
    quern_result result = find_system(schedule, handle, __func__, &system);
    if (result != QUERN_OK) return result;
    QUERN__NEED(out_stats);
    bool has_steps = system->reaction != NULL || schedule->plan.phases[system->phase].step_seconds > 0;
    *out_stats = (quern_system_stats){
        .name = system->name,
        .phase = system->phase,
        .view_count = has_steps           ? system->step_view_count
                      : system->is_active ? system->view_count
                                          : 0,
        .entity_count = has_steps           ? system->step_entity_count
                        : system->is_active ? system->entity_count
                                            : 0,
        .time_ns = schedule->observer->calls->system_time_ns(schedule->observer, system),
        .command_count = system->command_count,
    };
    return QUERN_OK;
}

uint32_t quern_schedule_system_count(const quern_schedule *schedule)
{
    return schedule ? schedule->plan.systems.count : 0;
}

quern_system quern_schedule_system_at(const quern_schedule *schedule, uint32_t i)
{
    if (schedule == NULL || !schedule->plan.is_compiled || i >= schedule->plan.order.count)
        return (quern_system){0};
    return handle_of(schedule->plan.order.items[i]);
}

bool quern_schedule_has_edge(const quern_schedule *schedule, quern_system before, quern_system after)
{
    quern__system *earlier, *later;
    if (find_system(schedule, before, __func__, &earlier) != QUERN_OK ||
        find_system(schedule, after, __func__, &later) != QUERN_OK)
        return false;
    if (!schedule->plan.is_compiled || earlier->position >= later->position) return false;
    return quern__conflicts_have(&schedule->plan, earlier->position, later->position);
}

bool quern_schedule_are_fused(const quern_schedule *schedule, quern_system a, quern_system b)
{
    quern__system *one, *other;
    if (find_system(schedule, a, __func__, &one) != QUERN_OK ||
        find_system(schedule, b, __func__, &other) != QUERN_OK)
        return false;
    return schedule->plan.is_compiled && one->pass == other->pass;
}

/* ------------------------------------------------------------------------------------------- lists */

quern_result quern_schedule_get_info(const quern_schedule *schedule, quern_schedule_info *out_info)
{
    QUERN__NEED(schedule);
    QUERN__NEED(out_info);
    *out_info = (quern_schedule_info){.name = schedule->name,
                                      .phase_count = schedule->plan.phase_count,
                                      .system_count = schedule->plan.systems.count,
                                      .frame_index = schedule->frame_index};
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        out_info->phases[i] = schedule->plan.phases[i].name;
        out_info->phase_steps_seconds[i] = schedule->plan.phases[i].step_seconds;
    }
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++)
        out_info->phase_system_counts[schedule->plan.systems.items[i]->phase]++;
    return QUERN_OK;
}

uint32_t quern_world_list_schedules(const quern_world *world, quern_schedule **out_schedules,
                                    uint32_t capacity)
{
    QUERN__NEED_OR(world, 0);
    QUERN__NEED_LIST_OR(out_schedules, capacity, 0);
    uint32_t count = 0;
    for (quern_schedule *schedule = world->first_schedule; schedule != NULL;
         schedule = schedule->next_schedule, count++)
        if (count < capacity) out_schedules[count] = schedule;
    return count;
}

/* ----------------------------------------------------------------------------- dropped and kept commands */

uint32_t quern_schedule_dropped_command_count(const quern_schedule *schedule)
{
    QUERN__NEED_OR(schedule, 0);
    return schedule->playback.drops.count;
}

quern_result quern_schedule_get_dropped_command(const quern_schedule *schedule, uint32_t i,
                                                quern_dropped_command *out_drop)
{
    QUERN__NEED(schedule);
    QUERN__NEED(out_drop);
    if (i >= schedule->playback.drops.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_get_dropped_command: entry %u; there are %u", i,
                           schedule->playback.drops.count);
    const quern__drop *drop = &schedule->playback.drops.items[i];
    /* A system that was removed since has left its name. */
    const uint32_t number = drop->system_number & ((1u << QUERN__SYSTEM_INDEX_BITS) - 1);
    const quern__system *system = quern__schedule_system(schedule, (quern_system){drop->system_number});
    *out_drop = (quern_dropped_command){.system = {.bits = system != NULL ? system->handle_bits : 0},
                                        .system_name = schedule->plan.slots.items[number - 1]->name,
                                        .reason = drop->reason,
                                        .count = drop->count,
                                        .first = drop->first_entity};
    return QUERN_OK;
}

uint64_t quern_schedule_kept_command_count(const quern_schedule *schedule)
{
    QUERN__NEED_OR(schedule, 0);
    uint64_t count = 0;
    for (uint32_t i = 0; i < schedule->worker_count && !schedule->is_running; i++)
        count += quern__commands_count(schedule->recorders.items[i]);
    return count;
}

void quern__schedule_discard_kept(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        quern__commands_reset(schedule->recorders.items[i]);
}

quern_result quern_schedule_discard_commands(quern_schedule *schedule)
{
    QUERN__NEED(schedule);
    quern_result result = quern__schedule_check_idle(schedule, __func__);
    if (result != QUERN_OK) return result;
    quern__schedule_discard_kept(schedule);
    quern__events_clear_handles(schedule);
    return QUERN_OK;
}
