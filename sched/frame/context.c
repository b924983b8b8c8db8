/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"

#include <quern/shorthand.h>

#include <stdio.h>
#include <string.h>

/* The public functions of a callback's context. A call that was not declared, or that comes from elsewhere, is
 * refused: it is reported, and gets scratch memory or nothing. */

static QUERN__SLOW_PATH bool report_foreign(const char *function)
{
    (void)quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: the context was used outside of the callback that it was given to, or on another thread, such "
        "as in the jobs of a parallel loop: use it in the callback itself",
        function);
    return true;
}

/* Returns the context of a callback that does not belong to a system, such as a query function. Returns
 * NULL if it belongs to a system. */
static inline const quern__plain_context *plain_of(const quern_context *context)
{
    const quern__plain_context *plain = (const quern__plain_context *)context;
    return QUERN__LIKELY(plain->scope.caller == QUERN__CALLER_SYSTEM) ? NULL : plain;
}

/* Refuses an access that must be declared, because only systems can declare it. Reports one message per
 * callback, as for systems. */
static QUERN__SLOW_PATH void refuse_plain(const quern__plain_context *plain, const char *function,
                                          const char *what)
{
    quern__scope *scope = (quern__scope *)(uintptr_t)plain;
    char caller[32] = "";
    if (quern__scope_count_repeated(scope)) return;
    quern__scope_describe(scope, caller, sizeof caller);
    quern__refuse(scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: %s asked for %s, which only systems can declare: make it a system, or pass what it "
                  "needs in user_data",
                  function, caller, what);
}

/* Returns scratch memory for one value, which a refused call returns. Returns NULL if no callback runs,
 * because then nothing would free the memory. size_bytes must not be 0. */
static QUERN__SLOW_PATH void *scratch_value(quern_context *context, size_t size_bytes)
{
    const quern__plain_context *plain = plain_of(context);
    const bool is_running = plain != NULL ? plain->thread != NULL : context->is_busy;
    return is_running ? quern__scratch_value(&context->scope, size_bytes) : NULL;
}

/* Returns scratch memory for a value of the component. For a tag or an invalid handle, it has room for any
 * component. */
static QUERN__SLOW_PATH void *scratch_component(quern_context *context, quern_component component)
{
    const quern__components *components = &context->scope.storage->components;
    const uint32_t index = quern__components_unchecked_index(components, component);
    uint32_t size_bytes = 0;
    if (index < components->list.count) size_bytes = quern__components_type(components, index)->size_bytes;
    return scratch_value(context, size_bytes > 0 ? size_bytes : QUERN_MAX_COMPONENT_BYTES);
}

/* Returns the size of the resource. For an invalid handle, returns the size of the largest resource, but at
 * least QUERN_MAX_COMPONENT_BYTES. */
static size_t size_of_resource(const quern__resources *resources, quern_resource resource)
{
    size_t size_bytes = QUERN_MAX_COMPONENT_BYTES;
    if (quern__handle_is_valid(resource.bits, resources->world_tag, resources->list.count))
        return resources->list.items[quern__resource_index(resource)].type.size_bytes;
    for (uint32_t i = 0; i < resources->list.count; i++)
        if (size_bytes < resources->list.items[i].type.size_bytes)
            size_bytes = resources->list.items[i].type.size_bytes;
    return size_bytes;
}

/* Returns scratch memory for a value of the resource. */
static QUERN__SLOW_PATH void *scratch_resource(quern_context *context, quern_resource resource)
{
    const quern__plain_context *plain = plain_of(context);
    const quern_world *world = plain != NULL ? plain->world : context->schedule->plan.world;
    return scratch_value(context, size_of_resource(&world->resources, resource));
}

/* Returns whether the call comes from outside of the callback to which the context belongs, and reports it.
 * Without QUERN_CHECKS, only calls while no callback runs are detected; with QUERN_CHECKS, also calls from
 * another thread. The members of the context are not valid for such a call, so it must return nothing. */
static inline bool is_foreign(const quern_context *context, const char *function)
{
    const quern__plain_context *plain = plain_of(context);
    bool is_right;
    if (plain != NULL)
        is_right = QUERN_CHECKS ? plain->thread == quern__this_thread() : plain->thread != NULL;
    else
        is_right = QUERN_CHECKS ? context->thread == quern__this_thread() : context->is_busy;
    return QUERN__UNLIKELY(!is_right) && report_foreign(function);
}

/* Lets failed calls of the running callback be logged until the flag is set. Call it after quern__commands_begin. */
static inline void commands_log_failures(quern_commands *commands, _Atomic bool *has_logged)
{
    commands->has_logged_failure = has_logged;
}

static quern_commands *commands_of_plain(quern__plain_context *plain)
{
    static const char function[] = "quern_context_commands";
    if (is_foreign((const quern_context *)plain, function))
        return plain->commands; /* it refuses commands, too */
    if (plain->commands == NULL) {
        refuse_plain(plain, function, "a recorder of commands");
        return NULL;
    }
    if (plain->has_stream) return plain->commands;
    const quern__origin origin = {.key = plain->ordinal,
                                  .serial = quern__serial_of(plain->first_serial + plain->ordinal)};
    quern__playback_begin(plain->commands, &origin);
    commands_log_failures(plain->commands, &plain->world->commands->has_logged_failed_command);
    plain->has_stream = true;
    return plain->commands;
}

/* Begins the callback's stream at the first call: most callbacks record nothing. */
quern_commands *quern_context_commands(quern_context *context)
{
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) return commands_of_plain((quern__plain_context *)(uintptr_t)plain);
    if (is_foreign(context, __func__) || context->has_stream) return context->commands;
    uint64_t number = context->schedule->serial_base + context->system->serial_offset + context->call_index;
    quern__origin origin = {.key = (uint64_t)context->system->position << 32 | context->call_index,
                            .serial = quern__serial_of(number),
                            .system_number = context->system->handle_bits,
                            .name = context->system->name};
    quern__playback_begin(context->commands, &origin);
    commands_log_failures(context->commands,
                          &((quern__system *)(uintptr_t)context->system)->has_logged_failed_command);
    context->has_stream = true;
    context->has_output = true;
    return context->commands;
}

static const char lookup_write_name[] = "quern_context_lookup_write";

/* Reports a lookup that the system has not declared, with its declared ones. One message per callback: what
 * is wrong for one row is wrong for all. */
static void refuse_lookup(quern_context *context, const char *component, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    const bool writes = function == lookup_write_name;
    char declared[256];
    quern__lookups_list(&context->system->access.lookups, context->schedule->plan.world, writes, declared,
                        sizeof declared);
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: system '%s' looked up '%s' without declaring it (its %slookups: %s); declare it in "
                  "%slookups",
                  function, context->system->name, component, writes ? "write " : "", declared,
                  writes ? "write_" : "");
}

static void refuse_resource(quern_context *context, const char *resource, bool writes)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    char declared[256];
    quern__access_list_resources(&context->system->access, context->schedule->plan.world, declared,
                                 sizeof declared);
    quern__refuse(
        &context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
        "%s: system '%s' asked to %s resource '%s' without declaring it (its resources: %s); declare "
        "it in resources with %s",
        writes ? "quern_context_resource_write" : "quern_context_resource", context->system->name,
        writes ? "write" : "read", resource, declared, writes ? "QUERN_ACCESS_WRITE" : "QUERN_ACCESS_READ");
}

void quern__context_refuse_handle(quern_context *context, const char *what, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    char reason[128];
    snprintf(reason, sizeof reason, "%.127s", quern_error_message());
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: system '%s' asked for %s %s with an invalid handle: %s", function,
                  context->system->name, what[0] == 'e' ? "an" : "a", what, reason);
}

bool quern__context_is_system(quern_context *context, const char *function, const char *what)
{
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, function, what);
        return false;
    }
    return !is_foreign(context, function);
}

/* Returns whether the system may look up the component, with the component's index and the limit of the
 * lookup. out_limit: NULL if any entity may be looked up. */
static inline bool may_look_up(quern_context *context, quern_component component, const char *function,
                               uint32_t *out_index, const quern__archetype_filter **out_limit)
{
    const quern__components *components = &context->schedule->plan.world->storage.components;
    const quern__lookups *lookups = &context->system->access.lookups;
    *out_limit = NULL;
    if (quern__components_check(components, component) != QUERN_OK) {
        quern__context_refuse_handle(context, "component", function);
        return false;
    }
    *out_index = quern__component_index(component);
    if (QUERN__LIKELY(quern__bitset_has(lookups->unlimited, *out_index))) return true;
    const quern__lookup *lookup = quern__lookups_find(lookups, *out_index);
    if (lookup != NULL) {
        *out_limit = &lookup->limit;
        return true;
    }
    refuse_lookup(context, quern__components_type(components, *out_index)->name, function);
    return false;
}

/* Returns the record of an entity that is alive and within the limit; otherwise NULL. limit may be NULL. */
static inline const quern__record *find_within(const quern__storage *storage, quern_entity entity,
                                               const quern__archetype_filter *limit)
{
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    if (QUERN__LIKELY(limit == NULL) || record == NULL) return record;
    return quern__archetype_filter_passes(*limit, quern__storage_archetype_of(storage, record)) ? record
                                                                                                : NULL;
}

/* Returns whether the component is a tag, and reports it: a tag has no value to look up. Called if a lookup
 * found nothing. */
static QUERN__SLOW_PATH bool refuse_tag(quern_context *context, uint32_t index, const char *function)
{
    const quern__type *type =
        quern__components_type(&context->schedule->plan.world->storage.components, index);
    if (type->size_bytes > 0) return false;
    if (!quern__scope_count_repeated(&context->scope))
        quern__refuse(&context->scope, QUERN_ERROR_INVALID_ARGUMENT,
                      "%s: system '%s' looked up '%s', a tag, which has no value: ask quern_context_has "
                      "whether an entity has it",
                      function, context->system->name, type->name);
    return true;
}

/* The lookups that quern_context_lookup does not finish itself: within limits, of tags, and those with checks. */
static QUERN__NO_INLINE const void *look_up(quern_context *context, quern_entity entity,
                                            quern_component component)
{
    static const char function[] = "quern_context_lookup";
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, function, "the component of any entity");
        return scratch_component(context, component);
    }
    const quern__storage *storage = &context->schedule->plan.world->storage;
    uint32_t index;
    const quern__archetype_filter *limit;
    if (QUERN_CHECKS && is_foreign(context, function)) return NULL;
    if (!may_look_up(context, component, function, &index, &limit))
        return scratch_component(context, component);
    const quern__record *record = find_within(storage, entity, limit);
    const void *value = NULL;
    if (QUERN__LIKELY(record != NULL))
        value = quern__storage_value(quern__storage_archetype_of(storage, record), record->location, index);
    if (QUERN__LIKELY(value != NULL)) return value;
    return refuse_tag(context, index, function) ? scratch_component(context, component) : NULL;
}

/* The common path is apart, so that it needs no stack. */
const void *quern_context_lookup(quern_context *context, quern_entity entity, quern_component component)
{
    if (QUERN_CHECKS || plain_of(context) != NULL) return look_up(context, entity, component);
    const quern__storage *storage = &context->schedule->plan.world->storage;
    const quern__components *components = &storage->components;
    const uint32_t index = quern__component_index(component);
    if (quern__components_unchecked_index(components, component) >= components->list.count ||
        !quern__bitset_has(context->system->access.lookups.unlimited, index))
        return look_up(context, entity, component);
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    const void *value = NULL;
    if (QUERN__LIKELY(record != NULL))
        value = quern__storage_value(quern__storage_archetype_of(storage, record), record->location, index);
    if (QUERN__LIKELY(value != NULL) || quern__components_type(components, index)->size_bytes > 0)
        return value;
    return look_up(context, entity, component);
}

/* Refuses an iteration of a further query that the system does not have. */
static QUERN__SLOW_PATH void refuse_query(quern_context *context, uint32_t number, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: system '%s' iterates query %u, and declares %u: list it in `queries` of its "
                  "definition, and count from 0",
                  function, context->system->name, number, context->system->query_count);
}

/* Builds with checks: a callback may write all that its query writes, from now until it returns. */
static void open_query_guards(quern_context *context, const quern__query *query)
{
    for (uint32_t i = 0; i < query->term_count; i++) {
        if (query->terms[i].access != QUERN_ACCESS_WRITE) continue;
        for (uint32_t k = 0; k < query->matches.count; k++) {
            const quern__query_match *match = &query->matches.items[k];
            if (match->columns[i].offset_bytes == 0) continue;
            for (uint32_t slot = 0; slot < match->archetype->chunk_count; slot++)
                quern__guards_open(context, match->archetype, slot, match->columns[i].version_index - 1u);
        }
    }
}

quern_query_iterator quern_context_query(quern_context *context, uint32_t query)
{
    quern_query_iterator it;
    const quern__plain_context *plain = plain_of(context);
    const bool is_foreign_call = plain != NULL || is_foreign(context, __func__);
    if (QUERN__UNLIKELY(is_foreign_call || query >= context->system->query_count)) {
        if (plain != NULL) refuse_plain(plain, __func__, "a further query");
        if (!is_foreign_call) refuse_query(context, query, __func__);
        memset(&it, 0, offsetof(quern_query_iterator, next_row));
        it.next_row = UINT32_MAX;
        it.result = QUERN_ERROR_UNDECLARED_ACCESS;
        return it;
    }
    const quern__system *system = context->system;
    const quern__inside inside = {.context = context,
                                  .worker_index = context->worker_index,
                                  .seen_version = system->query.seen_version,
                                  .write_version = context->schedule->version_base + system->position};
    quern__query_iterate_inside(&system->queries[query], &inside, &it);
    if (QUERN_CHECKS) open_query_guards(context, &system->queries[query]);
    return it;
}

/* Refuses an index that the system has not declared. */
static QUERN__SLOW_PATH void refuse_index(quern_context *context, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: system '%s' asks an index without declaring it (it declares %u indexes): list it in "
                  "`indexes` of its definition",
                  function, context->system->name, context->system->index_count);
}

uint32_t quern_context_find(quern_context *context, const quern_index *index, uint64_t value,
                            const quern_entity **out_entities)
{
    const quern__plain_context *plain = plain_of(context);
    const quern_entity *ignored;
    if (out_entities == NULL) out_entities = &ignored;
    *out_entities = NULL;
    if (plain != NULL) {
        refuse_plain(plain, __func__, "an index");
        return 0;
    }
    if (is_foreign(context, __func__)) return 0;
    for (uint32_t i = 0; i < context->system->index_count; i++)
        if (context->system->indexes[i] == index) return quern__index_find(index, value, out_entities);
    refuse_index(context, __func__);
    return 0;
}

/* Marks the looked-up value as written as soon as the system gets the pointer, like the columns of a view.
 * Conflicts ensure that no other system uses these versions at the same time (sched/schedule/access.h). */
static void note_lookup_write(quern_context *context, const quern__archetype *archetype, uintptr_t location,
                              uint32_t index)
{
    const quern_schedule *schedule = context->schedule;
    const uint32_t slot = quern__chunk_index_at(&archetype->shape, location);
    const uint32_t column = quern__archetype_column(archetype, index);
    const bool is_exclusive = quern__system_has_flag(context->system, QUERN_SYSTEM_EXCLUSIVE);
    uint64_t *versions = quern__versions_of(&archetype->versions, slot);
    if (versions != NULL) {
        const uint64_t version =
            is_exclusive ? *archetype->versions.clock : schedule->version_base + context->system->position;
        versions[1 + column] = version;
        if (archetype->row_versions != NULL)
            quern__row_versions_note(archetype->row_versions, 1 + column, location, 1, version);
    }
    if (!QUERN_CHECKS) return;
    if (is_exclusive)
        quern__storage_note_written(&schedule->plan.world->storage, index);
    else
        quern__guards_open(context, archetype, slot, column);
}

void *quern_context_lookup_write(quern_context *context, quern_entity entity, quern_component component)
{
    const char *const function = lookup_write_name;
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, function, "the component of any entity");
        return scratch_component(context, component);
    }
    const quern__storage *storage = &context->schedule->plan.world->storage;
    if (QUERN_CHECKS && is_foreign(context, function)) return NULL;
    if (quern__components_check(&storage->components, component) != QUERN_OK) {
        quern__context_refuse_handle(context, "component", lookup_write_name);
        return scratch_component(context, component);
    }
    const uint32_t index = quern__component_index(component);
    if (!quern__bitset_has(context->system->access.lookups.written, index)) {
        refuse_lookup(context, quern__components_type(&storage->components, index)->name,
                      lookup_write_name);
        return scratch_component(context, component);
    }
    const quern__lookups *lookups = &context->system->access.lookups;
    const bool is_unlimited = quern__bitset_has(lookups->unlimited, index);
    const quern__record *record =
        find_within(storage, entity, is_unlimited ? NULL : &quern__lookups_find(lookups, index)->limit);
    if (record == NULL) return NULL;
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    void *value = quern__storage_value(archetype, record->location, index);
    if (value != NULL) note_lookup_write(context, archetype, record->location, index);
    return value;
}

/* Returns whether a list of `count` elements is NULL, and reports it. An empty list may be NULL. */
static inline bool refuse_null_list(quern_context *context, const void *list, uint32_t count,
                                    const char *name, const char *function)
{
    if (QUERN__LIKELY(list != NULL || count == 0)) return false;
    if (!quern__scope_count_repeated(&context->scope))
        quern__refuse(&context->scope, QUERN_ERROR_NULL_ARGUMENT,
                      "%s: system '%s' looked up %u entities; '%s' is NULL", function,
                      context->system->name, count, name);
    return true;
}

/* Sets all pointers of the list to `value`. The list may be NULL. */
static void set_all(const void **out_values, uint32_t count, const void *value)
{
    for (uint32_t i = 0; i < count && out_values != NULL; i++)
        out_values[i] = value;
}

uint32_t quern_context_lookup_many(quern_context *context, const quern_entity *entities, uint32_t count,
                                   quern_component component, const void **out_values)
{
    const quern__plain_context *plain = plain_of(context);
    uint32_t index;
    const quern__archetype_filter *limit;
    if (plain != NULL)
        refuse_plain(plain, __func__, "the component of any entity");
    else if (QUERN_CHECKS && is_foreign(context, __func__)) {
        set_all(out_values, count, NULL);
        return 0;
    } else if (may_look_up(context, component, __func__, &index, &limit) &&
               !refuse_tag(context, index, __func__) &&
               !refuse_null_list(context, entities, count, "entities", __func__) &&
               !refuse_null_list(context, out_values, count, "out_values", __func__)) {
        const quern__storage *storage = &context->schedule->plan.world->storage;
        if (limit != NULL)
            return quern__find_many(storage, NULL, index, limit, entities, count, out_values);
        return quern__find_many(storage, NULL, index, NULL, entities, count, out_values);
    }
    set_all(out_values, count, scratch_component(context, component));
    return 0;
}

/* Returns the record of a living entity on which the system may look up the component, and the component's
 * index. Returns NULL if there is none, or if the call is refused. */
static const quern__record *find_declared(quern_context *context, quern_entity entity,
                                          quern_component component, const char *function,
                                          uint32_t *out_index)
{
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, function, "the component of any entity");
        return NULL;
    }
    const quern__archetype_filter *limit;
    if (QUERN_CHECKS && is_foreign(context, function)) return NULL;
    if (!may_look_up(context, component, function, out_index, &limit)) return NULL;
    return find_within(&context->schedule->plan.world->storage, entity, limit);
}

bool quern_context_has(quern_context *context, quern_entity entity, quern_component component)
{
    uint32_t index;
    const quern__record *record = find_declared(context, entity, component, __func__, &index);
    if (record == NULL) return false;
    const quern__storage *storage = &context->schedule->plan.world->storage;
    return quern__archetype_has(quern__storage_archetype_of(storage, record), index);
}

bool quern_context_is_component_enabled(quern_context *context, quern_entity entity,
                                        quern_component component)
{
    uint32_t index;
    const quern__record *record = find_declared(context, entity, component, __func__, &index);
    if (record == NULL) return false;
    const quern__storage *storage = &context->schedule->plan.world->storage;
    return quern__row_is_enabled(quern__storage_archetype_of(storage, record), record->location, index);
}

static void refuse_relation(quern_context *context, const char *relation, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    char declared[256];
    quern__access_list_relations(&context->system->access, context->schedule->plan.world, declared,
                                 sizeof declared);
    quern__refuse(
        &context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
        "%s: system '%s' asked about relation '%s' without declaring it (its relations: %s); declare "
        "it in relations",
        function, context->system->name, relation, declared);
}

/* What a callback may read of an entity's targets and sources: those in the relations that its system has declared.
 * Reports what is refused. */
static quern__related inside(quern_context *context, quern_entity entity, quern_relation relation,
                             const char *function)
{
    const quern__related nothing = {.relation = NULL};
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, function, "the relations of any entity");
        return nothing;
    }
    if (is_foreign(context, function)) return nothing;
    const quern__storage *storage = &context->schedule->plan.world->storage;
    quern__relation *known;
    if (quern__relation_check(storage, relation, &known) != QUERN_OK) {
        quern__context_refuse_handle(context, "relation", function);
        return nothing;
    }
    if (!quern__bitset_has(context->system->access.relations, known->component_index)) {
        refuse_relation(context, quern__relation_name(storage, known), function);
        return nothing;
    }
    if (quern__entities_find(&storage->entities, entity) == NULL) return nothing;
    return (quern__related){storage, known, quern_entity_index(entity)};
}

quern_entity quern_context_target(quern_context *context, quern_entity source, quern_relation relation)
{
    return quern__read_target(inside(context, source, relation, __func__));
}

quern_entity quern_context_nearest(quern_context *context, quern_entity entity, quern_relation relation,
                                   quern_component component)
{
    uint32_t index;
    const quern__archetype_filter *limit;
    const quern__related of = inside(context, entity, relation, __func__);
    if (of.relation == NULL) return (quern_entity){0};
    if (!of.relation->has_levels) {
        if (!quern__scope_count_repeated(&context->scope))
            quern__refuse(
                &context->scope, QUERN_ERROR_INVALID_ARGUMENT,
                "%s: system '%s' climbs relation '%s', which has no levels, so a way up could have no "
                "end: use a relation with levels",
                __func__, context->system->name, quern__relation_name(of.storage, of.relation));
        return (quern_entity){0};
    }
    if (!may_look_up(context, component, __func__, &index, &limit)) return (quern_entity){0};
    return quern__read_nearest(of, index, limit);
}

quern_entity quern_context_first_source(quern_context *context, quern_entity target,
                                        quern_relation relation)
{
    return quern__read_first_source(inside(context, target, relation, __func__));
}

static void refuse_siblings(quern_context *context, const quern__relation *relation, const char *function)
{
    if (quern__scope_count_repeated(&context->scope)) return;
    quern__refuse(&context->scope, QUERN_ERROR_INVALID_ARGUMENT,
                  "%s: system '%s' asked for a sibling in relation '%s', which is .many, so a source has "
                  "siblings for each of its targets: use quern_context_list_sources",
                  function, context->system->name,
                  quern__relation_name(&context->schedule->plan.world->storage, relation));
}

quern_entity quern_context_next_sibling(quern_context *context, quern_entity source,
                                        quern_relation relation)
{
    const quern__related of = inside(context, source, relation, __func__);
    if (of.relation != NULL && of.relation->is_many) refuse_siblings(context, of.relation, __func__);
    return quern__read_next_sibling(of);
}

uint32_t quern_context_source_count(quern_context *context, quern_entity target, quern_relation relation)
{
    return quern__read_source_count(inside(context, target, relation, __func__));
}

bool quern_context_has_target(quern_context *context, quern_entity source, quern_relation relation,
                              quern_entity target)
{
    return quern__read_has_target(inside(context, source, relation, __func__), target);
}

uint32_t quern_context_target_count(quern_context *context, quern_entity source, quern_relation relation)
{
    return quern__read_target_count(inside(context, source, relation, __func__));
}

uint32_t quern_context_list_targets(quern_context *context, quern_entity source, quern_relation relation,
                                    quern_entity *out_targets, uint32_t capacity)
{
    return quern__read_targets(inside(context, source, relation, __func__), out_targets, capacity,
                               __func__);
}

uint32_t quern_context_list_sources(quern_context *context, quern_entity target, quern_relation relation,
                                    quern_entity *out_sources, uint32_t capacity)
{
    return quern__read_sources(inside(context, target, relation, __func__), out_sources, capacity,
                               __func__);
}

const void *quern_context_edge_value(quern_context *context, quern_entity source, quern_relation relation,
                                     quern_entity target)
{
    const quern__related of = inside(context, source, relation, __func__);
    if (of.relation == NULL) return NULL;
    if (!quern__relation_has_values(of.relation)) {
        if (!quern__scope_count_repeated(&context->scope))
            quern__refuse(&context->scope, QUERN_ERROR_INVALID_ARGUMENT,
                          "%s: system '%s' asked for the value of an edge of relation '%s': its edges have "
                          "none: register it with a component as 'value'",
                          __func__, context->system->name, quern__relation_name(of.storage, of.relation));
        return NULL;
    }
    uint32_t index;
    const quern_component values =
        quern__component_handle(&of.storage->components, of.relation->value_index);
    if (find_declared(context, source, values, __func__, &index) == NULL) return NULL;
    return quern__read_edge_value(of, target, __func__);
}

bool quern_context_is_alive(const quern_context *context, quern_entity entity)
{
    if (is_foreign(context, __func__)) return false;
    const quern__plain_context *plain = plain_of(context);
    const quern_world *world = plain != NULL ? plain->world : context->schedule->plan.world;
    return quern__entities_find(&world->storage.entities, entity) != NULL;
}

/* Returns the resource if the system declared at least this access to it. Otherwise reports the error and
 * returns scratch memory. */
static void *find_resource(quern_context *context, quern_resource resource, bool writes)
{
    const quern__resources *resources = &context->schedule->plan.world->resources;
    if (quern__resources_check(resources, resource) != QUERN_OK) {
        quern__context_refuse_handle(context, "resource",
                                     writes ? "quern_context_resource_write" : "quern_context_resource");
        return scratch_resource(context, resource);
    }
    uint32_t index = quern__resource_index(resource);
    quern_access access = quern__access_to_resource(&context->system->access, index);
    if (access >= (writes ? QUERN_ACCESS_WRITE : QUERN_ACCESS_READ))
        return resources->list.items[index].value;
    refuse_resource(context, resources->list.items[index].type.name, writes);
    return scratch_resource(context, resource);
}

const void *quern_context_resource(quern_context *context, quern_resource resource)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, __func__, "a resource");
        return scratch_resource(context, resource);
    }
    return find_resource(context, resource, false);
}

void *quern_context_resource_write(quern_context *context, quern_resource resource)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, __func__, "a resource");
        return scratch_resource(context, resource);
    }
    return find_resource(context, resource, true);
}

/* Finds a resource by the name of its C type. Errors: UNKNOWN_RESOURCE, LAYOUT_MISMATCH (another size). */
static quern_result find_typed_resource(const quern__resources *resources, const char *name,
                                        size_t size_bytes, quern_resource *out_resource)
{
    *out_resource = quern__resources_find(resources, name);
    if (out_resource->bits == 0)
        return quern__fail(QUERN_ERROR_UNKNOWN_RESOURCE,
                           "the world has no resource '%s': register it before%s", name,
                           quern__resources_suggest(resources, name, strlen(name)).text);
    const size_t known_bytes = size_of_resource(resources, *out_resource);
    if (known_bytes == size_bytes) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "resource '%s' has %zu bytes in this world, and the C type has %zu: use the type that was "
        "registered",
        name, known_bytes, size_bytes);
}

const quern_world *quern__context_world(const quern_context *context)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    return plain != NULL ? plain->world : context->schedule->plan.world;
}

quern_component quern__context_find_type(const quern_context *context, uint64_t type_id)
{
    const quern__plain_context *plain = plain_of(context);
    const quern_world *world = plain != NULL ? plain->world : context->schedule->plan.world;
    return (quern_component){quern__type_ids_find(&world->storage.components.type_ids, type_id)};
}

void *quern__context_resource_typed(quern_context *context, const quern_value *type)
{
    if (is_foreign(context, "QUERN_RESOURCE")) return NULL;
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, "QUERN_RESOURCE", "a resource");
        return scratch_value(context, type->size_bytes);
    }
    const char *name = type->type_name + (strncmp(type->type_name, "const ", 6) == 0 ? 6 : 0);
    quern_resource resource;
    if (find_typed_resource(&context->schedule->plan.world->resources, name, type->size_bytes, &resource) ==
        QUERN_OK)
        return find_resource(context, resource, !type->is_const);
    quern__context_refuse_handle(context, "resource", "QUERN_RESOURCE");
    return scratch_value(context, type->size_bytes);
}

static inline void *system_partial(const quern__system *system, uint32_t ordinal)
{
    return system->partial_bytes > 0 && ordinal < system->view_count
               ? system->partials + ordinal * system->partial_stride_bytes
               : NULL;
}

void *quern_context_partial(quern_context *context)
{
    if (is_foreign(context, __func__)) return NULL;
    if (plain_of(context) != NULL || context->callback != QUERN__CALLBACK_RUN) return NULL;
    return system_partial(context->system, context->call_index - QUERN__CALL_FIRST_VIEW);
}

uint32_t quern_context_partial_count(const quern_context *context)
{
    if (is_foreign(context, __func__)) return 0;
    if (plain_of(context) != NULL) return 0;
    return context->system->partial_bytes > 0 ? context->system->view_count : 0;
}

const void *quern_context_partial_at(const quern_context *context, uint32_t ordinal)
{
    if (is_foreign(context, __func__)) return NULL;
    if (plain_of(context) != NULL || context->callback != QUERN__CALLBACK_END) return NULL;
    return system_partial(context->system, ordinal);
}

uint32_t quern_context_reaction(const quern_context *context)
{
    if (is_foreign(context, __func__)) return 0;
    return plain_of(context) != NULL ? 0 : context->reaction;
}

void *quern_context_user_data(const quern_context *context)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    return plain != NULL ? plain->user_data : context->system->user_data;
}

double quern_context_delta_seconds(const quern_context *context)
{
    if (is_foreign(context, __func__)) return 0;
    if (plain_of(context) != NULL) return 0;
    const quern__system *system = context->system;
    return quern__system_has_own_time(system) ? system->delta_seconds : context->schedule->delta_seconds;
}

uint64_t quern_context_frame_index(const quern_context *context)
{
    if (is_foreign(context, __func__)) return 0;
    return plain_of(context) != NULL ? 0 : context->schedule->frame_index;
}

uint32_t quern_context_worker_index(const quern_context *context)
{
    if (is_foreign(context, __func__)) return 0;
    const quern__plain_context *plain = plain_of(context);
    return plain != NULL ? plain->worker_index : context->worker_index;
}

quern_jobs *quern_context_jobs(const quern_context *context)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    return plain != NULL ? plain->jobs : context->schedule->jobs;
}

quern_world *quern_context_world(quern_context *context)
{
    if (is_foreign(context, __func__)) return NULL;
    const quern__plain_context *plain = plain_of(context);
    if (plain != NULL) {
        refuse_plain(plain, __func__, "the world");
        return NULL;
    }
    if (quern__system_has_flag(context->system, QUERN_SYSTEM_EXCLUSIVE))
        return context->schedule->plan.world;
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "quern_context_world: system '%s' asked for the world and is not QUERN_SYSTEM_EXCLUSIVE: "
                  "set this flag",
                  context->system->name);
    return NULL;
}
