/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_subject.h"

#include "tests/flow/flow_setup.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------- operations */

/* The rows that a command for a view chooses. */
typedef struct view_choice {
    flow_view_command command;
    uint32_t count;
    uint64_t mask[QUERN_MAX_VIEW_ROWS / 64];
    uint32_t list[QUERN_MAX_VIEW_ROWS];
    uint64_t value[FLOW_MAX_TYPE_WORDS];                        /* of the row that was chosen last */
    uint64_t values[QUERN_MAX_VIEW_ROWS * FLOW_MAX_VIEW_WORDS]; /* by row */
} view_choice;

/* Choices of the view on which the thread acts. */
static _Thread_local view_choice view_choices[FLOW_VIEW_COMMAND_COUNT];

/* The state behind a flow_operations table. */
typedef struct operation_state {
    const flow_subject *subject;
    quern_context *context;   /* NULL between frames */
    quern_commands *commands; /* recorder; NULL: each command asks the world for its own */
    uint32_t row;             /* row of the view on which it acts */
} operation_state;

static quern_commands *commands_of(const operation_state *it)
{
    return it->commands != NULL ? it->commands : quern_world_commands(it->subject->world);
}

typedef struct value_list {
    quern_component components[FLOW_TYPE_COUNT];
    const void *values[FLOW_TYPE_COUNT];
    uint32_t count;
} value_list;

static value_list list_values(const flow_subject *subject, uint32_t set, const uint64_t *words)
{
    value_list list = {.count = 0};
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if ((set >> type & 1) == 0) continue;
        list.components[list.count] = subject->components[type];
        list.values[list.count++] = words + flow_types[type].first_word;
    }
    return list;
}

static quern_entity record_create(void *self, uint32_t set, const uint64_t *words)
{
    operation_state *it = self;
    if (set == 0) return record_entity(commands_of(it));
    value_list list = list_values(it->subject, set, words);
    return record_entity_with(commands_of(it), list.components, list.values, list.count);
}

static void record_destroy(void *self, quern_entity entity)
{
    quern_commands_destroy(commands_of(self), entity);
}

static void record_add(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    operation_state *it = self;
    quern_commands_add(commands_of(it), entity, it->subject->components[type], value);
}

static void record_set(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    operation_state *it = self;
    quern_commands_set(commands_of(it), entity, it->subject->components[type], value);
}

static void record_remove(void *self, quern_entity entity, uint32_t type)
{
    operation_state *it = self;
    quern_commands_remove(commands_of(it), entity, it->subject->components[type]);
}

static void record_enable(void *self, quern_entity entity, uint32_t type, bool enabled)
{
    operation_state *it = self;
    quern_commands_set_component_enabled(commands_of(it), entity, it->subject->components[type], enabled);
}

static bool is_enabled(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    operation_state *it = self;
    return quern_context_is_component_enabled(it->context, entity, it->subject->components[type]);
}

static void record_value(void *self, quern_entity entity, uint32_t type, const uint64_t *value,
                         flow_combine combine)
{
    operation_state *it = self;
    const quern_combine combines[] = {QUERN_SUM, QUERN_MIN, QUERN_MAX, it->subject->mixes[type]};
    quern_commands_accumulate(commands_of(it), entity, it->subject->components[type], value,
                              combines[combine]);
}

/* ------------------------------------------------------------------------------- commands for views */

static void choose_row(void *self, const flow_view_command *command, quern_entity entity,
                       const uint64_t *value)
{
    const uint32_t row = ((operation_state *)self)->row, words = flow_types[command->type].word_count;
    view_choice *choice = &view_choices[command->index];
    choice->command = *command;
    choice->list[choice->count++] = row;
    choice->mask[row / 64] |= UINT64_C(1) << row % 64;
    if (value == NULL) return;
    memcpy(choice->value, value, words * sizeof *value);
    if (words <= FLOW_MAX_VIEW_WORDS)
        memcpy(choice->values + (size_t)row * words, value, words * sizeof *value);
}

static void record_for_rows(const operation_state *it, const view_choice *choice, const quern_view *view,
                            const quern_view_rows *rows)
{
    const flow_view_command *command = &choice->command;
    const quern_component component = it->subject->components[command->type];
    const uint64_t *value = command->has_value ? choice->value : NULL;
    quern_commands *commands = commands_of(it);
    if (command->kind == FLOW_VIEW_ADD) quern_commands_add_view(commands, view, rows, component, value);
    if (command->kind == FLOW_VIEW_SET) quern_commands_set_view(commands, view, rows, component, value);
    if (command->kind == FLOW_VIEW_SET_VALUES)
        quern_commands_set_view_values(commands, view, rows, component, choice->values);
    if (command->kind == FLOW_VIEW_REMOVE) quern_commands_remove_view(commands, view, rows, component);
    if (command->kind == FLOW_VIEW_DESTROY) quern_commands_destroy_view(commands, view, rows);
}

/* Records the commands that were chosen for rows of the view: for all rows, by mask or by list. */
static void record_for_view(const operation_state *it, const quern_view *view, bool whole_chunks)
{
    for (uint32_t i = 0; i < FLOW_VIEW_COMMAND_COUNT; i++) {
        view_choice *choice = &view_choices[i];
        quern_view_rows rows = {0};
        if (choice->count == 0) continue;
        if (choice->count < view->count || whole_chunks) {
            if (choice->count % 2 == 0) rows.mask = choice->mask;
            if (choice->count % 2 != 0) rows.list = choice->list, rows.list_count = choice->count;
        }
        record_for_rows(it, choice, view, &rows);
        choice->count = 0;
        memset(choice->mask, 0, sizeof choice->mask);
    }
}

static const uint64_t *look_up(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    static const uint64_t nothing;
    operation_state *it = self;
    quern_component component = it->subject->components[type];
    const bool has = quern_context_has(it->context, entity, component);
    if (flow_types[type].word_count == 0) return has ? &nothing : NULL;
    const quern_entity list[] = {entity, quern_entity_null(), entity};
    const void *values[3];
    const uint32_t count = quern_context_lookup_many(it->context, list, 3, component, values);
    const void *value = quern_context_lookup(it->context, entity, component);
    const bool agree = count == 2u * has && values[0] == value && values[1] == NULL && values[2] == value;
    if (!agree) abort(); /* not an assertion: the test library loses those of other threads */
    return value;
}

static uint64_t *look_up_to_write(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    operation_state *it = self;
    return quern_context_lookup_write(it->context, entity, it->subject->components[type]);
}

static bool is_alive(void *self, quern_entity entity)
{
    return quern_context_is_alive(((operation_state *)self)->context, entity);
}

static uint64_t *use_resource(void *self, uint32_t index, bool writes)
{
    operation_state *it = self;
    quern_resource resource = it->subject->resources[index];
    if (writes) return quern_context_resource_write(it->context, resource);
    return (uint64_t *)(uintptr_t)quern_context_resource(it->context, resource);
}

static flow_operations recording_operations(operation_state *it)
{
    return (flow_operations){.self = it,
                             .create = record_create,
                             .destroy = record_destroy,
                             .add = record_add,
                             .set = record_set,
                             .remove = record_remove,
                             .enable = record_enable,
                             .is_enabled = is_enabled,
                             .accumulate = record_value,
                             .choose_row = choose_row,
                             .lookup = look_up,
                             .lookup_write = look_up_to_write,
                             .is_alive = is_alive,
                             .resource = use_resource,
                             .first_bits = it->subject->first.bits};
}

/* --------------------------------------------------------------------------------- immediate operations */

static quern_entity create_now(void *self, uint32_t set, const uint64_t *words)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    value_list list = list_values(subject, set, words);
    quern_entity entity = quern_entity_null();
    quern_result result =
        quern_entity_create_with(subject->world, list.components, list.values, list.count, &entity);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    return entity;
}

static void destroy_now(void *self, quern_entity entity)
{
    quern_entity_destroy(((operation_state *)self)->subject->world, entity);
}

/* Asserts that an immediate call rejects a value with a provisional handle in a link. */
static void try_provisional(const flow_subject *subject, quern_entity entity, uint32_t type,
                            const uint64_t *value)
{
    uint64_t words[FLOW_MAX_TYPE_WORDS];
    const quern_component component = subject->components[type];
    if (flow_types[type].link_count == 0 || value == NULL || !quern_entity_is_alive(subject->world, entity))
        return;
    memcpy(words, value, flow_types[type].word_count * sizeof *words);
    words[value[0] % flow_types[type].link_count] = UINT64_C(1) << 32 | value[0] % 5;
    cr_assert_eq(quern_entity_set(subject->world, entity, component, words),
                 QUERN_ERROR_PROVISIONAL_ENTITY);
}

static void add_now(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    try_provisional(subject, entity, type, value);
    quern_entity_add(subject->world, entity, subject->components[type], value);
}

static void set_now(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    try_provisional(subject, entity, type, value);
    quern_entity_set(subject->world, entity, subject->components[type], value);
}

static void remove_now(void *self, quern_entity entity, uint32_t type)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    quern_entity_remove(subject->world, entity, subject->components[type]);
}

static void enable_now(void *self, quern_entity entity, uint32_t type, bool enabled)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    quern_entity_set_component_enabled(subject->world, entity, subject->components[type], enabled);
}

static flow_operations immediate_operations(operation_state *it)
{
    return (flow_operations){.self = it,
                             .create = create_now,
                             .destroy = destroy_now,
                             .add = add_now,
                             .set = set_now,
                             .remove = remove_now,
                             .enable = enable_now,
                             .is_enabled = is_enabled,
                             .lookup = look_up,
                             .lookup_write = look_up_to_write,
                             .is_alive = is_alive,
                             .resource = use_resource,
                             .first_bits = it->subject->first.bits};
}

/* ---------------------------------------------------------------------------- operations between frames */

static bool is_alive_now(void *self, quern_entity entity)
{
    return quern_entity_is_alive(((operation_state *)self)->subject->world, entity);
}

static uint64_t *use_resource_now(void *self, uint32_t index, bool writes)
{
    const flow_subject *subject = ((operation_state *)self)->subject;
    return quern_resource_get(subject->world, subject->resources[index]);
}

/* Flushes. If memory runs out, the commands wait for the next flush; in tests without failing memory the
 * model would detect the difference. */
static void flush_world(void *self)
{
    const quern_result result = quern_world_flush(((operation_state *)self)->subject->world);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
}

/* Replaces the operations that need a context. There are no lookups between frames. */
static flow_operations operations_between_frames(flow_operations operations)
{
    operations.lookup = NULL;
    operations.lookup_write = NULL;
    operations.is_alive = is_alive_now;
    operations.resource = use_resource_now;
    operations.flush = flush_world;
    return operations;
}

/* --------------------------------------------------------------------------------------- callbacks */

static flow_player *player_of(const quern_context *context)
{
    return quern_context_user_data(context);
}

static operation_state operation_state_of(quern_context *context)
{
    return (operation_state){.subject = player_of(context)->subject,
                             .context = context,
                             .commands = quern_context_commands(context)};
}

static uint64_t moment_of(const quern_context *context)
{
    return flow_moment(quern_context_frame_index(context), quern_context_delta_seconds(context));
}

static void fill_columns(const flow_player *player, const quern_view *view, flow_row *row)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &player->system->terms[type];
        if (!term->used) continue;
        uint32_t index = player->term_of_type[type];
        row->has[type] = quern_view_has(view, index);
        if (term->access == QUERN_ACCESS_WRITE)
            row->columns[type] = player->system->marks_rows ? quern_view_write_rows(view, index)
                                                            : quern_view_write(view, index);
        if (term->access == QUERN_ACCESS_READ)
            row->columns[type] = (uint64_t *)(uintptr_t)quern_view_read(view, index);
    }
}

/* Acts on the i-th row of the view. `columns` holds the columns of the view. */
static void act_on_row(const flow_player *player, uint64_t moment, const flow_operations *operations,
                       const quern_view *view, uint32_t i, const flow_row *columns, flow_digest *sum)
{
    flow_row row = *columns;
    ((operation_state *)operations->self)->row = i;
    row.entity = view->entities[i];
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (row.columns[type] != NULL) row.columns[type] += (size_t)i * flow_types[type].word_count;
        if (row.has[type])
            row.is_disabled[type] = !quern_view_is_enabled(view, player->term_of_type[type], i);
    }
    const flow_row before = row;
    const flow_digest part = flow_act_row(player->system, moment, operations, &row);
    if (sum != NULL) flow_digest_add(sum, part);
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &player->system->terms[type];
        const bool is_written = term->used && term->access == QUERN_ACCESS_WRITE && row.is_written;
        if (player->system->marks_rows && is_written && row.has[type])
            quern_view_mark_row(view, player->term_of_type[type], i);
        if (row.is_disabled[type] != before.is_disabled[type])
            quern_view_set_enabled(view, player->term_of_type[type], i, !row.is_disabled[type]);
    }
}

static void act_on_rows(const flow_player *player, uint64_t moment, const flow_operations *operations,
                        const quern_view *view, flow_digest *sum)
{
    flow_row row = {.entity = quern_entity_null()};
    if (!player->has_terms) {
        const flow_digest part = flow_act_row(player->system, moment, operations, &row);
        if (sum != NULL) flow_digest_add(sum, part);
        return;
    }
    fill_columns(player, view, &row);
    if (moment % 2 == 0) {
        QUERN_EACH_ROW(view, i)
        act_on_row(player, moment, operations, view, i, &row, sum);
    } else {
        quern_row_range run = {0};
        while (quern_view_next_range(view, &run))
            for (uint32_t i = run.first; i < run.first + run.count; i++)
                act_on_row(player, moment, operations, view, i, &row, sum);
    }
    record_for_view(operations->self, view, player->system->whole_chunks);
}

static void run_rows(quern_context *context, const quern_view *view)
{
    operation_state it = operation_state_of(context);
    flow_operations operations = recording_operations(&it);
    act_on_rows(player_of(context), moment_of(context), &operations, view, quern_context_partial(context));
}

static void run_parallel(quern_context *context, const quern_view *view)
{
    const flow_player *player = player_of(context);
    operation_state it = operation_state_of(context);
    flow_operations operations = recording_operations(&it);
    act_on_rows(player, player->moment, &operations, view, &player->digests[view->ordinal]);
}

static void run_exclusive(quern_context *context, const quern_view *view)
{
    operation_state it = operation_state_of(context);
    operation_state between = {.subject = it.subject};
    flow_operations operations = recording_operations(&it), now = immediate_operations(&it);
    flow_operations later = operations_between_frames(recording_operations(&between));
    flow_act_exclusive(player_of(context)->system, moment_of(context), &operations, &now, &later);
}

static bool condition(quern_context *context)
{
    operation_state it = operation_state_of(context);
    flow_operations operations = recording_operations(&it);
    player_of(context)->condition_count++;
    return flow_act_condition(player_of(context)->system, moment_of(context), &operations);
}

static void begin(quern_context *context)
{
    operation_state it = operation_state_of(context);
    flow_operations operations = recording_operations(&it);
    flow_act_begin(player_of(context)->system, moment_of(context), &operations);
}

static void end(quern_context *context)
{
    operation_state it = operation_state_of(context);
    flow_operations operations = recording_operations(&it);
    flow_digest sum = {0};
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        flow_digest_add(&sum, *(const flow_digest *)quern_context_partial_at(context, i));
    flow_act_end(player_of(context)->system, moment_of(context), &operations, sum);
}

/* -------------------------------------------------------------------------------------------- opening */

static void register_types(flow_subject *subject)
{
    for (uint32_t i = 0; i < FLOW_TYPE_COUNT; i++) {
        const flow_type *type = &flow_types[i];
        if (subject->plan->has_disabled && i == FLOW_DISABLED_TYPE) {
            subject->components[i] = quern_world_disabled_tag(subject->world);
            continue;
        }
        quern_field fields[] = {
            {"links", QUERN_FIELD_ENTITY, 0, .count = type->link_count},
            {"rest", QUERN_FIELD_U64, 8 * type->link_count, .count = type->word_count - type->link_count}};
        quern_component_def def = {.name = type->name,
                                   .size_bytes = 8 * type->word_count,
                                   .alignment_bytes = type->alignment_bytes,
                                   .can_disable = (subject->plan->can_disable >> i & 1) != 0,
                                   .row_changes = (subject->plan->row_changes >> i & 1) != 0};
        if ((subject->plan->has_default >> i & 1) != 0)
            def.default_value = &subject->plan->defaults[type->first_word];
        for (uint32_t k = 0, count = 0; k < i; k++)
            if ((subject->plan->listed_required[i] >> k & 1) != 0)
                def.required[count++] = subject->components[k];
        if (type->link_count > 0) memcpy(def.fields, fields, sizeof fields);
        if (type->link_count == 0 && type->word_count > 0) def.fields[0] = fields[1];
        must(quern_component_register(subject->world, &def, &subject->components[i]));
    }
}

static void mix_in(void *value, const void *accumulated, void *user_data)
{
    flow_mix_in(user_data, value, accumulated);
}

static void register_mixes(flow_subject *subject)
{
    for (uint32_t i = 0; i < FLOW_TYPE_COUNT; i++) {
        const quern_combine_def def = {flow_types[i].name, mix_in, (void *)(uintptr_t)&flow_types[i]};
        must(quern_combine_register(subject->world, &def, &subject->mixes[i]));
    }
}

static void register_resources(flow_subject *subject)
{
    static const char *const names[FLOW_RESOURCE_COUNT] = {"r0", "r1", "r2"};
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        subject->resources[i] =
            make_resource(subject->world, .name = names[i], .size_bytes = sizeof(flow_resource),
                          .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1},
                                     {"number", QUERN_FIELD_U64, 8, .count = 1}});
    }
}

static void create_entities(flow_subject *subject)
{
    quern_entity first = quern_entity_null(), entity = first;
    for (uint32_t i = 0; i < subject->plan->entity_count; i++) {
        uint64_t words[FLOW_WORD_COUNT];
        uint32_t set = flow_plan_entity(subject->plan, i, first, words);
        value_list list = list_values(subject, set, words);
        quern_result result =
            quern_entity_create_with(subject->world, list.components, list.values, list.count, &entity);
        if (i == 0) first = entity;
        must(result);
    }
    subject->first = first;
}

static void add_lookup(quern_system_def *def, const flow_subject *subject, uint32_t type,
                       const flow_lookup *lookup)
{
    quern_lookup *end = lookup->writes ? def->write_lookups : def->lookups;
    while (!quern_component_is_null(end->component))
        end++;
    end->component = subject->components[type];
    if (lookup->with < FLOW_TYPE_COUNT) end->with = subject->components[lookup->with];
    if (lookup->without < FLOW_TYPE_COUNT) end->without = subject->components[lookup->without];
}

static void add_access(quern_system_def *def, flow_subject *subject, flow_player *player)
{
    const flow_system *system = player->system;
    uint32_t term_count = 0, resource_count = 0;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        if (term->used) {
            player->term_of_type[type] = term_count;
            quern_term made = quern_term_make(subject->components[type], term->match, term->access);
            made.enabled = term->enabled;
            def->terms[term_count++] = term->changed ? quern_term_changed(made) : made;
        }
        if (system->lookups[type].used) add_lookup(def, subject, type, &system->lookups[type]);
    }
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++)
        if (system->resources[i] != QUERN_ACCESS_NONE)
            def->resources[resource_count++] =
                (quern_resource_access){subject->resources[i], system->resources[i]};
}

static void add_rules(quern_system_def *def, const flow_plan *plan, const flow_system *system)
{
    for (uint32_t i = 0; i < system->before_count; i++)
        def->before[i] = plan->systems[system->before[i]].name;
    for (uint32_t i = 0; i < system->after_count; i++)
        def->after[i] = plan->systems[system->after[i]].name;
}

static void add_system(flow_subject *subject, uint32_t index)
{
    const flow_system *system = &subject->plan->systems[index];
    flow_player *player = &subject->players[index];
    *player =
        (flow_player){.subject = subject, .system = system, .has_terms = flow_system_has_terms(system)};
    bool exclusive = (system->flags & QUERN_SYSTEM_EXCLUSIVE) != 0;
    quern_system_def def = system_def(system->name, exclusive ? run_exclusive : run_rows);
    add_access(&def, subject, player);
    add_rules(&def, subject->plan, system);
    def.phase = system->phase;
    def.flags = system->flags | (system->whole_chunks && player->has_terms ? QUERN_SYSTEM_WHOLE_CHUNKS : 0);
    def.begin = system->has_begin ? begin : NULL;
    def.end = system->has_end ? end : NULL;
    def.condition = system->condition_percent > 0 ? condition : NULL;
    def.interval_seconds = flow_seconds(system->interval_ticks);
    def.partial_bytes = system->has_partial ? sizeof(flow_digest) : 0;
    def.user_data = player;
    subject->systems[index] = setup_system(subject->schedule, &def);
}

static void add_call(flow_subject *subject, uint32_t index)
{
    flow_player *player = &subject->callers[index];
    *player =
        (flow_player){.subject = subject, .system = &subject->plan->calls[index].system, .has_terms = true};
    quern_system_def def = {.name = "call"};
    add_access(&def, subject, player);
    quern_query_def query_def = {.whole_chunks = player->system->whole_chunks};
    memcpy((void *)query_def.terms, def.terms, sizeof query_def.terms);
    must(quern_query_create(subject->world, &query_def, &player->query));
}

static void create_refs(flow_subject *subject)
{
    subject->getter_type = (uint32_t)(subject->plan->seed / 2 % FLOW_TYPE_COUNT);
    while (flow_types[subject->getter_type].word_count == 0)
        subject->getter_type = (subject->getter_type + 1) % FLOW_TYPE_COUNT;
    const quern_getter_def def = {.component = subject->components[subject->getter_type], .refs = true};
    must(quern_getter_create(subject->world, &def, &subject->getter));
    subject->refs = calloc(FLOW_REF_COUNT, sizeof *subject->refs);
    cr_assert_not_null(subject->refs);
}

void flow_subject_open(flow_subject *subject, const flow_plan *plan, const quern_world_def *def)
{
    flow_subject_open_as(subject, plan, def, (quern_schedule_def){0});
}

void flow_subject_open_as(flow_subject *subject, const flow_plan *plan, const quern_world_def *def,
                          quern_schedule_def schedule_def)
{
    *subject = (flow_subject){.plan = plan};
    quern_result result = quern_world_create(def, &subject->world);
    must(result);
    register_types(subject);
    register_mixes(subject);
    register_resources(subject);
    create_entities(subject);
    subject->schedule = setup_schedule_as(subject->world, schedule_def, FLOW_PHASE_COUNT);
    for (uint32_t i = 0; i < plan->system_count; i++)
        add_system(subject, i);
    for (uint32_t i = 0; i < plan->call_count; i++)
        add_call(subject, i);
    if (plan->seed % 2 == 0) create_refs(subject);
    for (uint32_t i = 0; i < FLOW_PHASE_COUNT; i++) {
        result = quern_schedule_set_fixed_step(
            subject->schedule, i, flow_seconds(plan->phases[i].step_ticks), plan->phases[i].max_step_count);
        must(result);
    }
}

void flow_subject_close(flow_subject *subject)
{
    quern_schedule_destroy(subject->schedule);
    for (uint32_t i = 0; i < subject->plan->call_count; i++)
        quern_query_destroy(subject->callers[i].query);
    quern_getter_destroy(subject->getter);
    free(subject->refs);
    quern_world_destroy(subject->world);
}

/* --------------------------------------------------------------------------------------------- calls */

static flow_digest call_parallel(flow_player *player, quern_jobs *jobs)
{
    const uint32_t view_count = quern_query_view_count(player->query);
    player->digests = calloc(view_count + 1, sizeof *player->digests);
    cr_assert_not_null(player->digests);
    must(quern_query_parallel_for(player->query, jobs, run_parallel, player));
    flow_digest sum = {0};
    for (uint32_t i = 0; i < view_count; i++)
        flow_digest_add(&sum, player->digests[i]);
    free(player->digests);
    return sum;
}

static flow_digest call_loop(const flow_player *player, const flow_operations *operations,
                             quern_entity *recent)
{
    flow_digest sum = {0};
    quern_query_iterator walk = quern_query_iterate(player->query);
    *recent = flow_act_on_recent(player->system, player->moment, operations, *recent);
    while (quern_query_next(&walk))
        act_on_rows(player, player->moment, operations, &walk.view, &sum);
    must(walk.result);
    return sum;
}

static uint64_t call_once(flow_player *player, flow_call_kind kind, quern_jobs *jobs, quern_entity *recent)
{
    if (kind == FLOW_CALL_PARALLEL) return call_parallel(player, jobs).hash;
    operation_state it = {.subject = player->subject};
    flow_operations operations = operations_between_frames(recording_operations(&it)),
                    now = operations_between_frames(immediate_operations(&it));
    if (kind == FLOW_CALL_LOOP) return call_loop(player, &operations, recent).hash;
    flow_act_exclusive(player->system, player->moment, &operations, &now, &operations);
    /* the actions may have flushed, which makes the provisional handle invalid */
    *recent = quern_entity_null();
    return 0;
}

void flow_subject_call(flow_subject *subject, quern_jobs *jobs)
{
    quern_entity recent = quern_entity_null();
    for (uint32_t i = 0; i < subject->plan->call_count; i++) {
        const flow_call *call = &subject->plan->calls[i];
        flow_player *player = &subject->callers[i];
        if (!flow_call_runs(call, subject->frame_index)) continue;
        player->moment = flow_moment_between(subject->frame_index, subject->seen);
        subject->seen ^= call_once(player, call->kind, jobs, &recent);
        if (!flow_call_flushes(call, subject->frame_index)) continue;
        flush_world(&(operation_state){.subject = subject});
        recent = quern_entity_null();
    }
}

/* --------------------------------------------------------------------------------------------- refs */

quern_query *flow_subject_query_all(const flow_subject *subject)
{
    const quern_term everything[] = {
        quern_term_optional(subject->components[0], QUERN_ACCESS_NONE),
        quern_term_optional(subject->components[FLOW_DISABLED_TYPE], QUERN_ACCESS_NONE)};
    return setup_query(subject->world, everything, COUNT_OF(everything));
}

static void check_refs(const flow_subject *subject)
{
    for (uint32_t i = 0; i < FLOW_REF_COUNT; i++) {
        quern_ref *ref = &subject->refs[i];
        const void *value = NULL;
        if (quern_entity_is_alive(subject->world, ref->entity))
            value =
                quern_entity_get(subject->world, ref->entity, subject->components[subject->getter_type]);
        cr_assert_eq(quern_ref_get(subject->getter, ref), value, "seed %llu: ref to entity %u",
                     (unsigned long long)subject->plan->seed, quern_entity_index(ref->entity));
        cr_assert_eq(quern_getter_get(subject->getter, ref->entity), value, "seed %llu: entity %u",
                     (unsigned long long)subject->plan->seed, quern_entity_index(ref->entity));
    }
}

/* Replaces refs to dead entities by refs to living ones. */
static void renew_refs(const flow_subject *subject)
{
    quern_query *query = flow_subject_query_all(subject);
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++) {
            const quern_entity entity = walk.view.entities[i];
            quern_ref *ref = &subject->refs[quern_entity_index(entity) % FLOW_REF_COUNT];
            if (!quern_entity_is_alive(subject->world, ref->entity)) *ref = (quern_ref){.entity = entity};
        }
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------------- frames */

quern_result flow_subject_run(flow_subject *subject, quern_jobs *jobs)
{
    const flow_plan *plan = subject->plan;
    uint64_t frame = subject->frame_index;
    for (uint32_t i = 0; i < plan->system_count; i++) {
        if (plan->systems[i].disabled_percent == 0) continue;
        quern_result result = quern_schedule_set_system_enabled(subject->schedule, subject->systems[i],
                                                                flow_plan_enables(plan, i, frame));
        must(result);
    }
    quern_result result =
        quern_schedule_run(subject->schedule, jobs, flow_seconds(flow_plan_delta_ticks(plan, frame)));
    if (result != QUERN_ERROR_POOL_BUSY) subject->frame_index++;
    return result;
}

void flow_subject_must_run(flow_subject *subject, quern_jobs *jobs)
{
    quern_result result = flow_subject_run(subject, jobs);
    cr_assert_eq(result, QUERN_OK, "quern_schedule_run: %s", quern_error_message());
    if (subject->getter == NULL) return;
    check_refs(subject);
    renew_refs(subject);
}
