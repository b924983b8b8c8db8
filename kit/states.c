/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/states.h>

#include <stdio.h>
#include <string.h>

/* The resource changes in one system at the end of the frame, in a phase of its own. Conditions of sets are asked before each phase, so a change
 * within a frame would show some phases the old state and others the new one. */

enum { MAX_NAME_BYTES = 24, ALIGNMENT = 16, SET_KINDS = 3 };

static const char *const set_prefixes[SET_KINDS] = {"", "enter ", "leave "};

/* What conditions and systems get as user_data: one state, and when they run. */
typedef struct state_gate {
    struct quern_states *owner;
    uint32_t state;
} state_gate;

typedef char name_buffer[QUERN_MAX_NAME_BYTES + 1];

struct quern_states {
    quern_allocator allocator;
    quern_world *world;
    quern_world_user user;
    quern_resource resource;
    uint32_t count, first;
    char name[MAX_NAME_BYTES + 1];
    char state_names[QUERN_MAX_STATES][MAX_NAME_BYTES + 1];
    quern_component tags[QUERN_MAX_STATES];
    quern_component disabled;
    state_gate gates[QUERN_MAX_STATES];
};

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

/* ------------------------------------------------------------------------------------------- systems */

static const quern_state *state_of(quern_context *context, const state_gate **out_gate)
{
    *out_gate = quern_context_user_data(context);
    return quern_context_resource(context, (*out_gate)->owner->resource);
}

static bool is_in(quern_context *context)
{
    const state_gate *gate;
    const quern_state *state = state_of(context, &gate);
    return state != NULL && state->current == gate->state;
}

static bool is_entered(quern_context *context)
{
    const state_gate *gate;
    const quern_state *state = state_of(context, &gate);
    return state != NULL && state->entered == gate->state;
}

static bool is_left(quern_context *context)
{
    const state_gate *gate;
    const quern_state *state = state_of(context, &gate);
    return state != NULL && state->left == gate->state;
}

static quern_system_condition *const conditions[SET_KINDS] = {is_in, is_entered, is_left};

static void clear(quern_context *context, const quern_view *view)
{
    quern_commands_destroy_view(quern_context_commands(context), view, NULL);
}

static void change(quern_context *context, const quern_view *view)
{
    const quern_states *states = quern_context_user_data(context);
    quern_state *state = quern_context_resource_write(context, states->resource);
    (void)view;
    if (state == NULL) return;
    if (state->next >= states->count) state->next = state->current;
    const bool changes = state->next != state->current || state->is_again;
    state->left = changes ? state->current : QUERN_NO_STATE;
    state->entered = changes ? state->next : QUERN_NO_STATE;
    state->current = state->next;
    state->is_again = false;
}

/* ---------------------------------------------------------------------------------------------- calls */

static quern_result check_index(const quern_states *states, uint32_t index, const char *function)
{
    if (index < states->count) return QUERN_OK;
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT, "%s: '%s' has no state %u; its states are 0 to %u",
                           function, states->name, (unsigned)index, (unsigned)(states->count - 1));
}

quern_result quern_context_set_state(quern_context *context, const quern_states *states, uint32_t next,
                                     bool restarts)
{
    static const char function[] = "quern_context_set_state";
    if (context == NULL) return fail_null(function, "context");
    if (states == NULL) return fail_null(function, "states");
    const quern_result result = check_index(states, next, function);
    if (result != QUERN_OK) return result;
    quern_state *state = quern_context_resource_write(context, states->resource);
    if (state == NULL) return QUERN_ERROR_UNDECLARED_ACCESS;
    state->next = next;
    state->is_again = restarts && next == state->current;
    return QUERN_OK;
}

static quern_result check_name(const char *name, const char *what, const char *function)
{
    const size_t length = strlen(name);
    if (length >= 1 && length <= MAX_NAME_BYTES) return QUERN_OK;
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the name '%.40s' of %s has %zu bytes; it must have 1 to %d", function, name,
                           what, length, MAX_NAME_BYTES);
}

static quern_result check_def(const quern_states_def *def, uint32_t *out_count, const char *function)
{
    if (def->name == NULL) return fail_null(function, "def->name");
    quern_result result = check_name(def->name, "the states", function);
    uint32_t count = 0;
    for (; count < QUERN_MAX_STATES && def->states[count] != NULL && result == QUERN_OK; count++) {
        result = check_name(def->states[count], "a state", function);
        for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
            if (strcmp(def->states[i], def->states[count]) == 0)
                result = quern_error_set(QUERN_ERROR_DUPLICATE_NAME,
                                         "%s: two states of '%s' have the name '%s'; rename one", function,
                                         def->name, def->states[count]);
    }
    *out_count = count;
    if (result != QUERN_OK) return result;
    if (def->first >= count)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: 'first' of '%s' is %u, and there are %u states; list the states, and give the "
            "index of one",
            function, def->name, (unsigned)def->first, (unsigned)count);
    if ((def->allocator.allocate == NULL) != (def->allocator.release == NULL))
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the allocator of '%s' has only one of its functions; set both or none",
                               function, def->name);
    return QUERN_OK;
}

static quern_result register_types(quern_states *states)
{
    quern_named_value names[QUERN_MAX_STATES + 2];
    memset(names, 0, sizeof names);
    for (uint32_t i = 0; i < states->count; i++)
        names[i] = (quern_named_value){.name = states->state_names[i], .value = i};
    quern_named_value names_or_none[QUERN_MAX_STATES + 2];
    memcpy(names_or_none, names, sizeof names);
    names_or_none[states->count] = (quern_named_value){.name = "no state", .value = QUERN_NO_STATE};
    const quern_state first = {
        .current = states->first, .next = states->first, .left = QUERN_NO_STATE, .entered = states->first};
    const quern_resource_def def = {
        .name = states->name,
        .size_bytes = sizeof(quern_state),
        .alignment_bytes = _Alignof(quern_state),
        .value = &first,
        .fields = {QUERN_FIELD_WITH(quern_state, current, .values = names, .is_read_only = true),
                   QUERN_FIELD_WITH(quern_state, next, .values = names, .maximum = states->count - 1),
                   QUERN_FIELD_WITH(quern_state, left, .values = names_or_none, .is_read_only = true),
                   QUERN_FIELD_WITH(quern_state, entered, .values = names_or_none, .is_read_only = true),
                   QUERN_FIELD(quern_state, is_again)}};
    quern_result result = quern_resource_register(states->world, &def, &states->resource);
    name_buffer tag;
    for (uint32_t i = 0; i < states->count && result == QUERN_OK; i++) {
        snprintf(tag, sizeof tag, "only in %s", states->state_names[i]);
        result =
            quern_component_register(states->world, &(quern_component_def){.name = tag}, &states->tags[i]);
    }
    /* The call returns no error code; it fails only if another component has the name, or for lack of memory or a free index. */
    if (result == QUERN_OK) states->disabled = quern_world_disabled_tag(states->world);
    if (result == QUERN_OK && quern_component_is_null(states->disabled))
        return quern_component_is_null(quern_component_find(states->world, "disabled"))
                   ? QUERN_ERROR_OUT_OF_MEMORY
                   : QUERN_ERROR_DUPLICATE_NAME;
    if (result != QUERN_ERROR_LAYOUT_MISMATCH) return result;
    return quern_error_set(QUERN_ERROR_DUPLICATE_NAME,
                           "quern_states_create: the world has another resource '%s', or another component "
                           "'only in ...' of a state; choose other names",
                           states->name);
}

quern_result quern_states_create(quern_world *world, const quern_states_def *def, quern_states **out_states)
{
    static const char function[] = "quern_states_create";
    if (world == NULL) return fail_null(function, "world");
    if (def == NULL) return fail_null(function, "def");
    if (out_states == NULL) return fail_null(function, "out_states");
    *out_states = NULL;
    uint32_t count = 0;
    quern_result result = check_def(def, &count, function);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator =
        def->allocator.allocate == NULL ? quern_allocator_default() : def->allocator;
    quern_states *states = allocator.allocate(allocator.user_data, sizeof *states, ALIGNMENT);
    if (states == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for '%s'; nothing was created",
                               function, def->name);
    memset(states, 0, sizeof *states);
    states->allocator = allocator;
    states->world = world;
    states->count = count;
    states->first = def->first;
    snprintf(states->name, sizeof states->name, "%s", def->name);
    states->user.name = states->name;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(states->state_names[i], sizeof states->state_names[i], "%s", def->states[i]);
        states->gates[i] = (state_gate){.owner = states, .state = i};
    }
    result = register_types(states);
    if (result == QUERN_OK) result = quern_world_add_user(world, &states->user);
    if (result == QUERN_OK)
        *out_states = states;
    else
        allocator.release(allocator.user_data, states, sizeof *states, ALIGNMENT);
    return result;
}

void quern_states_destroy(quern_states *states)
{
    if (states == NULL) return;
    quern_world_remove_user(states->world, &states->user);
    const quern_allocator allocator = states->allocator;
    allocator.release(allocator.user_data, states, sizeof *states, ALIGNMENT);
}

static const char *print_system_name(name_buffer buffer, const quern_states *states, const char *what,
                                     const char *state)
{
    snprintf(buffer, sizeof(name_buffer), "%s %s%s%s", states->name, what, state[0] == 0 ? "" : " ", state);
    return buffer;
}

static const char *print_set_name(name_buffer buffer, const quern_states *states, uint32_t kind,
                                  uint32_t state)
{
    snprintf(buffer, sizeof(name_buffer), "%s%s", set_prefixes[kind], states->state_names[state]);
    return buffer;
}

static bool has_name(const quern_schedule *schedule, const char *name)
{
    const char *names[QUERN_MAX_SCHEDULE_SETS];
    const uint32_t count = quern_schedule_list_sets(schedule, names, QUERN_MAX_SCHEDULE_SETS);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return quern_schedule_find_system(schedule, name).bits != 0;
}

static quern_result refuse_name(const quern_schedule *schedule, const quern_states *states,
                                const char *name)
{
    if (!has_name(schedule, name)) return QUERN_OK;
    return quern_error_set(
        QUERN_ERROR_DUPLICATE_NAME,
        "quern_states_add_systems: the schedule has a set or system '%s' already, which '%s' "
        "adds; rename the state or the other one",
        name, states->name);
}

static void remove_name(quern_schedule *schedule, const char *name)
{
    if (!has_name(schedule, name)) return;
    const quern_system system = quern_schedule_find_system(schedule, name);
    if (system.bits != 0)
        (void)quern_schedule_remove_system(schedule, system);
    else
        (void)quern_schedule_remove_set(schedule, name);
}

static quern_result refuse_names(const quern_states *states, const quern_schedule *schedule,
                                 const quern_schedule_info *info)
{
    name_buffer name;
    quern_result result = refuse_name(schedule, states, print_system_name(name, states, "clear", ""));
    if (result == QUERN_OK)
        result = refuse_name(schedule, states, print_system_name(name, states, "change", ""));
    for (uint32_t i = 0; i < states->count && result == QUERN_OK; i++) {
        result =
            refuse_name(schedule, states, print_system_name(name, states, "clear", states->state_names[i]));
        for (uint32_t kind = 0; kind < SET_KINDS && result == QUERN_OK; kind++)
            result = refuse_name(schedule, states, print_set_name(name, states, kind, i));
    }
    print_system_name(name, states, "change", "");
    for (uint32_t i = 0; i < info->phase_count && result == QUERN_OK; i++)
        if (strcmp(info->phases[i], name) == 0)
            result =
                quern_error_set(QUERN_ERROR_DUPLICATE_NAME,
                                "quern_states_add_systems: the schedule has a phase '%s' already, which "
                                "'%s' adds; rename the phase or the states",
                                name, states->name);
    return result;
}

/* Adds the phase of the system "NAME change" behind all others, or takes it away again. */
static quern_result change_phases(const quern_states *states, quern_schedule *schedule, bool adds)
{
    name_buffer name;
    quern_schedule_info info;
    const char *phases[QUERN_MAX_PHASES + 1];
    uint32_t count = 0;
    quern_result result = quern_schedule_get_info(schedule, &info);
    if (result != QUERN_OK) return result;
    print_system_name(name, states, "change", "");
    for (uint32_t i = 0; i < info.phase_count; i++)
        if (strcmp(info.phases[i], name) != 0) phases[count++] = info.phases[i];
    if (adds) phases[count++] = name;
    if (count <= QUERN_MAX_PHASES) return quern_schedule_set_phases(schedule, phases, count);
    return quern_error_set(
        QUERN_ERROR_LIMIT,
        "quern_states_add_systems: the schedule has %d phases, and '%s' needs one more: use fewer",
        QUERN_MAX_PHASES, states->name);
}

static void remove_names(const quern_states *states, quern_schedule *schedule)
{
    name_buffer name;
    remove_name(schedule, print_system_name(name, states, "change", ""));
    (void)change_phases(states, schedule, false);
    for (uint32_t i = 0; i < states->count; i++) {
        remove_name(schedule, print_system_name(name, states, "clear", states->state_names[i]));
        for (uint32_t kind = 0; kind < SET_KINDS; kind++)
            remove_name(schedule, print_set_name(name, states, kind, i));
    }
    remove_name(schedule, print_system_name(name, states, "clear", ""));
}

static quern_result add_sets(quern_states *states, quern_schedule *schedule)
{
    name_buffer clear_name, enter_name, name, leave_names[QUERN_MAX_STATES];
    quern_set_def clear_set = {.name = print_system_name(clear_name, states, "clear", "")};
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < states->count && result == QUERN_OK; i++) {
        print_set_name(enter_name, states, 1, i);
        for (uint32_t kind = 0; kind < SET_KINDS && result == QUERN_OK; kind++) {
            const quern_set_def set = {.name = print_set_name(name, states, kind, i),
                                       .after_commands_of = {kind == 0   ? enter_name
                                                             : kind == 1 ? clear_name
                                                                         : NULL},
                                       .condition = conditions[kind],
                                       .resources = {{states->resource, QUERN_ACCESS_READ}},
                                       .user_data = &states->gates[i]};
            result = quern_schedule_add_set(schedule, &set);
        }
        clear_set.after_commands_of[i] = print_set_name(leave_names[i], states, 2, i);
    }
    return result == QUERN_OK ? quern_schedule_add_set(schedule, &clear_set) : result;
}

static quern_result add_systems(quern_states *states, quern_schedule *schedule, uint32_t phase,
                                uint32_t last_phase)
{
    name_buffer name, set;
    quern_result result = QUERN_OK;
    print_system_name(set, states, "clear", "");
    for (uint32_t i = 0; i < states->count && result == QUERN_OK; i++) {
        const quern_system_def clearing = {
            .name = print_system_name(name, states, "clear", states->state_names[i]),
            .phase = phase,
            .run = clear,
            .condition = is_left,
            .terms = {quern_term_with(states->tags[i]),
                      quern_term_optional(states->disabled, QUERN_ACCESS_NONE)}, /* disabled ones, too */
            .resources = {{states->resource, QUERN_ACCESS_READ}},
            .sets = {set},
            .user_data = &states->gates[i]};
        result = quern_schedule_add_system(schedule, &clearing, NULL);
    }
    if (result != QUERN_OK) return result;
    const quern_system_def changing = {.name = print_system_name(name, states, "change", ""),
                                       .phase = last_phase,
                                       .run = change,
                                       .resources = {{states->resource, QUERN_ACCESS_WRITE}},
                                       .user_data = states};
    return quern_schedule_add_system(schedule, &changing, NULL);
}

quern_result quern_states_add_systems(quern_states *states, quern_schedule *schedule, uint32_t phase)
{
    static const char function[] = "quern_states_add_systems";
    if (states == NULL) return fail_null(function, "states");
    if (schedule == NULL) return fail_null(function, "schedule");
    quern_schedule_info info;
    quern_result result = quern_schedule_get_info(schedule, &info);
    if (result != QUERN_OK) return result;
    if (phase >= info.phase_count)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the schedule has no phase %u for '%s'; its phases are 0 to %u",
                               function, (unsigned)phase, states->name, (unsigned)(info.phase_count - 1));
    if (info.phase_steps_seconds[phase] > 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: phase '%s' has a fixed step: in a frame without a step, '%s' would miss a "
            "change; pass a phase without one",
            function, info.phases[phase], states->name);
    result = refuse_names(states, schedule, &info);
    if (result != QUERN_OK) return result;
    result = change_phases(states, schedule, true);
    if (result == QUERN_OK) result = add_sets(states, schedule);
    if (result == QUERN_OK) result = add_systems(states, schedule, phase, info.phase_count);
    if (result != QUERN_OK) remove_names(states, schedule);
    return result;
}

quern_result quern_states_remove_systems(quern_states *states, quern_schedule *schedule)
{
    static const char function[] = "quern_states_remove_systems";
    name_buffer name;
    if (states == NULL) return fail_null(function, "states");
    if (schedule == NULL) return fail_null(function, "schedule");
    print_system_name(name, states, "change", "");
    const quern_system change_system = quern_schedule_find_system(schedule, name);
    if (change_system.bits == 0)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the schedule has no system '%s': it has no systems of these states",
                               function, name);
    quern_schedule_info info;
    quern_result result = quern_schedule_get_info(schedule, &info);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < info.phase_count; i++)
        if (strcmp(info.phases[i], name) == 0 && info.phase_system_counts[i] > 1)
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: the phase '%s', which is to be removed, has %u other systems; remove "
                "them first, or put them in another phase",
                function, name, (unsigned)info.phase_system_counts[i] - 1);
    result = quern_schedule_remove_system(schedule, change_system);
    if (result == QUERN_OK) remove_names(states, schedule);
    return result;
}

/* Whether a frame runs, also if an exclusive system of it asks, which may write resources: a redefinition is refused then. */
static bool is_in_frame(const quern_states *states)
{
    const quern_resource_def def = {.size_bytes = sizeof(quern_state),
                                    .alignment_bytes = _Alignof(quern_state),
                                    .fields =
                                        QUERN_FIELDS(quern_state, current, next, left, entered, is_again)};
    const quern_redefine_def how = {.only_checks = true};
    return quern_resource_redefine(states->world, states->resource, &def, &how, NULL) ==
           QUERN_ERROR_WORLD_LOCKED;
}

quern_result quern_states_set(quern_states *states, uint32_t next)
{
    static const char function[] = "quern_states_set";
    if (states == NULL) return fail_null(function, "states");
    const quern_result result = check_index(states, next, function);
    if (result != QUERN_OK) return result;
    if (is_in_frame(states))
        return quern_error_set(QUERN_ERROR_WORLD_LOCKED,
                               "%s: '%s' cannot change while a frame runs: call quern_context_set_state in "
                               "systems, also in exclusive ones",
                               function, states->name);
    quern_state *state = quern_resource_get(states->world, states->resource);
    if (state == NULL) return QUERN_ERROR_WORLD_LOCKED;
    /* If the next frame enters a state already, no system has seen that state: it enters this one instead. */
    if (state->entered == QUERN_NO_STATE) state->left = state->current;
    state->current = state->next = state->entered = next;
    state->is_again = false;
    return QUERN_OK;
}

uint32_t quern_states_get(const quern_states *states)
{
    if (states == NULL) {
        (void)fail_null("quern_states_get", "states");
        return QUERN_NO_STATE;
    }
    const quern_state *state = quern_resource_get(states->world, states->resource);
    return state == NULL ? QUERN_NO_STATE : state->current;
}

quern_resource quern_states_resource(const quern_states *states)
{
    return states == NULL ? (quern_resource){0} : states->resource;
}

quern_component quern_states_tag(const quern_states *states, uint32_t index)
{
    return states == NULL || index >= states->count ? (quern_component){0} : states->tags[index];
}
