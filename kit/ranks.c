/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <float.h>

/* Definition, and the stages of frames. A frame:
 *
 *   1. emits the events that wait, and runs the schedule;
 *   2. with messages: counts those to all ranks (a sum), exchanges, sorts and applies them;
 *   3. combines globals, times, and the number of far moves over all ranks;
 *   4. sometimes computes a new division (a sum for the extent, and one for each level), which moves entities between any ranks;
 *   5. exchanges the entities that have left, with neighbours, or with all ranks if one moves far;
 *   6. sometimes saves a checkpoint;
 *   7. exchanges changes of ghosts with neighbours. */

/* -------------------------------------------------------------------------------------- definition */

static quern_result refuse(const char *call, const char *what)
{
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT, "%s: %s", call, what);
}

static bool has_hooks(const quern_type_info *info)
{
    return info->hooks.copy != NULL || info->hooks.move != NULL || info->hooks.destroy != NULL ||
           info->hooks.construct != NULL;
}

static quern_result check_components(quern_ranks *ranks)
{
    const quern_ranks_def *def = &ranks->def;
    quern_type_info info;
    char what[QUERN_MAX_NAME_BYTES + 128];
    quern_result result = quern_component_get_info(ranks->world, def->id, &info);
    if (result != QUERN_OK) return result;
    if (info.size_bytes != sizeof(uint64_t) || has_hooks(&info))
        return refuse("quern_ranks_create", "'id' is not a component of 8 plain bytes: use a uint64_t");
    result = quern_component_get_info(ranks->world, def->position, &info);
    if (result != QUERN_OK) return result;
    if (info.size_bytes < ranks->dimensions * sizeof(float))
        return refuse("quern_ranks_create",
                      "'position' is too small for its coordinates: use floats, or set 'planar'");
    ranks->ghost_list[ranks->ghost_count++] = def->position;
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_COMPONENTS && def->ghost[i].bits != 0; i++)
        ranks->ghost_list[ranks->ghost_count++] = def->ghost[i];
    for (uint32_t i = 0; i < ranks->ghost_count; i++) {
        result = quern_component_get_info(ranks->world, ranks->ghost_list[i], &info);
        if (result != QUERN_OK) return result;
        bool is_plain =
            !has_hooks(&info) && !info.is_managed && !quern_component_equal(ranks->ghost_list[i], def->id);
        for (uint32_t k = 0; k < info.field_count; k++)
            is_plain = is_plain && info.fields[k].type != QUERN_FIELD_ENTITY;
        if (!is_plain) {
            snprintf(what, sizeof what,
                     "ghosts cannot have '%s', which is the id, can be disabled, or has hooks, lists or "
                     "handles: give them a "
                     "component of "
                     "plain values",
                     info.name);
            return refuse("quern_ranks_create", what);
        }
        ranks->ghost_sizes[i] = info.size_bytes;
        ranks->ghost_offsets[i] = ranks->ghost_bytes;
        ranks->ghost_bytes += (info.size_bytes + 7) & ~7u;
    }
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS && def->globals[i].kind != 0; i++) {
        result = quern_component_get_info(ranks->world, def->globals[i].component, &info);
        if (result != QUERN_OK) return result;
        if (def->globals[i].kind > QUERN_RANKS_MAXIMUM)
            return refuse("quern_ranks_create", "a global has no kind: use a quern_ranks_global_kind");
    }
    return QUERN_OK;
}

static quern_result register_types(quern_ranks *ranks)
{
    quern_world *world = ranks->world;
    const quern_component_def ghost = {.name = "ranks ghost",
                                       .size_bytes = sizeof(quern_ranks_ghost_info),
                                       .alignment_bytes = 8,
                                       .type_name = "quern_ranks_ghost_info"};
    const quern_resource_def state = {.name = "ranks",
                                      .size_bytes = sizeof(quern_ranks_state),
                                      .alignment_bytes = 8,
                                      .type_name = "quern_ranks_state"};
    const quern_event_def letter = {.name = "ranks message",
                                    .size_bytes = sizeof(ranks_letter),
                                    .alignment_bytes = 8,
                                    .limit_bytes = UINT64_MAX,
                                    .is_hidden = true};
    quern_result result = quern_component_register(world, &ghost, &ranks->ghost);
    if (result == QUERN_OK) result = quern_resource_register(world, &state, &ranks->state_resource);
    if (result == QUERN_OK) result = quern_event_register(world, &letter, &ranks->letter_event);
    return result;
}

static quern_result create_queries(quern_ranks *ranks)
{
    quern_world *world = ranks->world;
    const quern_ranks_def *def = &ranks->def;
    const quern_component disabled = quern_world_disabled_tag(world);
    if (quern_component_is_null(disabled)) return QUERN_ERROR_DUPLICATE_NAME;
    const quern_term any = quern_term_optional(disabled, QUERN_ACCESS_NONE);
    quern_query_def roots = {.terms = {quern_term_read(def->id), quern_term_read(def->position), any}};
    quern_query_def shown = {.terms = {quern_term_read(def->id), quern_term_read(def->position)}};
    const quern_query_def nameless = {.terms = {quern_term_with(def->position), quern_term_without(def->id),
                                                quern_term_without(ranks->ghost), any}};
    const quern_term id = quern_term_read(def->id), ghost = quern_term_read(ranks->ghost);
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_HOLDS && def->holds[i].bits != 0; i++)
        roots.terms[3 + i] = quern_term_without(quern_relation_component(def->holds[i]));
    for (uint32_t i = 1; i < ranks->ghost_count; i++)
        shown.terms[1 + i] = quern_term_optional(
            ranks->ghost_list[i], ranks->ghost_sizes[i] > 0 ? QUERN_ACCESS_READ : QUERN_ACCESS_NONE);
    quern_result result = quern_query_create(world, &roots, &ranks->roots);
    if (result == QUERN_OK) result = quern_query_create(world, &shown, &ranks->shown);
    if (result == QUERN_OK) result = quern_query_create(world, &nameless, &ranks->nameless);
    const struct {
        quern_query_def def;
        quern_query **query;
    } lists[] = {{{.terms = {id, any}}, &ranks->all_owned},
                 {{.terms = {ghost, any}}, &ranks->all_ghosts},
                 {{.terms = {quern_term_changed(id), any}}, &ranks->changed_owned},
                 {{.terms = {quern_term_changed(ghost), any}}, &ranks->changed_ghosts}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && result == QUERN_OK; i++)
        result = quern_query_create(world, &lists[i].def, lists[i].query);
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS && def->globals[i].kind != 0 && result == QUERN_OK;
         i++) {
        quern_type_info info;
        (void)quern_component_get_info(world, def->globals[i].component, &info);
        quern_query_def global = {
            .terms = {quern_term_make(def->globals[i].component, QUERN_MATCH_ALL,
                                      info.size_bytes > 0 ? QUERN_ACCESS_READ : QUERN_ACCESS_NONE),
                      any}};
        if (!quern_component_equal(def->globals[i].component, def->id))
            global.terms[2] = quern_term_with(def->id);
        result = quern_query_create(world, &global, &ranks->globals[i]);
    }
    return result;
}

static quern_result check_transport(const quern_ranks_transport *transport)
{
    const uint32_t count = transport->rank_count == 0 ? 1 : transport->rank_count;
    if (count > QUERN_RANKS_MAX || transport->rank >= count ||
        (count > 1 && (transport->send == NULL || transport->receive == NULL)))
        return refuse("quern_ranks_create",
                      "'transport' has a wrong rank or lacks functions: pass that of MPI, or of "
                      "quern_ranks_alone_transport");
    return QUERN_OK;
}

/* The buffers of an object, to give each the allocator and to release it. */
static void for_each_buffer(quern_ranks *ranks,
                            void (*act)(quern_byte_buffer *buffer, const quern_ranks *ranks))
{
    quern_byte_buffer *const list[] = {&ranks->nodes,   &ranks->neighbours,  &ranks->packet,
                                       &ranks->arrived, &ranks->numbers,     &ranks->table,
                                       &ranks->letters, &ranks->far,         &ranks->pending,
                                       &ranks->list,    &ranks->list_numbers};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        act(list[i], ranks);
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        ranks_peer *peer = &ranks->peers[i];
        quern_byte_buffer *const of_peer[] = {
            &peer->in,          &peer->out,        &peer->leaving, &peer->added,  &peer->shown,
            &peer->shown_table, &peer->free_slots, &peer->values,  &peer->ghosts, &peer->ghost_values};
        for (size_t k = 0; k < sizeof of_peer / sizeof of_peer[0]; k++)
            act(of_peer[k], ranks);
    }
}

static void set_allocator(quern_byte_buffer *buffer, const quern_ranks *ranks)
{
    buffer->allocator = ranks->allocator;
}

static void release(quern_byte_buffer *buffer, const quern_ranks *ranks)
{
    (void)ranks;
    quern_byte_buffer_release(buffer);
}

static quern_result open_ranks(quern_ranks *ranks)
{
    const quern_ranks_def *def = &ranks->def;
    quern_result result = check_components(ranks);
    if (result == QUERN_OK) result = register_types(ranks);
    if (result == QUERN_OK) result = create_queries(ranks);
    if (result == QUERN_OK) result = quern_archive_create(ranks->world, &ranks->archive);
    ranks->user.name = "quern_ranks";
    if (result == QUERN_OK) result = quern_world_add_user(ranks->world, &ranks->user);
    if (result == QUERN_OK && def->trace != NULL)
        result = quern_trace_add_name(def->trace, "exchange", &ranks->zone_name);
    if (result == QUERN_OK && def->folder != NULL && def->checkpoint_every > 0)
        result = quern__ranks_try_folder(ranks);
    return result;
}

quern_result quern_ranks_create(const quern_ranks_def *def, quern_ranks **out_ranks)
{
    if (out_ranks != NULL) *out_ranks = NULL;
    if (def == NULL || out_ranks == NULL || def->world == NULL)
        return quern__ranks_fail_null("quern_ranks_create", def == NULL         ? "def"
                                                            : out_ranks == NULL ? "out_ranks"
                                                                                : "def->world");
    quern_result result = check_transport(&def->transport);
    if (result != QUERN_OK) return result;
    if (!(def->radius > 0 && def->radius <= FLT_MAX && def->reach >= 0 && def->reach <= FLT_MAX))
        return refuse("quern_ranks_create",
                      "'radius' is not above 0, 'reach' is below 0, or one of them is no "
                      "number: pass how far entities see");
    if ((def->checkpoint_every > 0 || def->restart) && def->folder == NULL)
        return refuse("quern_ranks_create", "checkpoints need a 'folder'");
    if (def->folder != NULL && strlen(def->folder) >= RANKS_PATH_BYTES)
        return refuse("quern_ranks_create", "'folder' is too long");
    const quern_allocator allocator =
        def->allocator.allocate != NULL ? def->allocator : quern_allocator_default();
    const uint32_t rank_count = def->transport.rank_count == 0 ? 1 : def->transport.rank_count;
    quern_ranks *ranks = allocator.allocate(allocator.user_data, sizeof *ranks, 16);
    ranks_peer *peers = allocator.allocate(allocator.user_data, rank_count * sizeof *peers, 16);
    if (ranks == NULL || peers == NULL) {
        if (ranks != NULL) allocator.release(allocator.user_data, ranks, sizeof *ranks, 16);
        if (peers != NULL) allocator.release(allocator.user_data, peers, rank_count * sizeof *peers, 16);
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "quern_ranks_create: out of memory for %u ranks",
                               (unsigned)rank_count);
    }
    *ranks = (quern_ranks){.def = *def,
                           .allocator = allocator,
                           .world = def->world,
                           .rank = def->transport.rank,
                           .rank_count = rank_count};
    memset(peers, 0, rank_count * sizeof *peers);
    ranks->peers = peers;
    ranks->dimensions = def->planar ? 2 : 3;
    ranks->units_per_length = RANKS_UNITS / (double)def->radius;
    /* A coordinate is rounded by up to a unit on each side, that of a root by another one. What is larger than space sees
     * all of it. */
    ranks->sight_units = ((double)def->radius + (double)def->reach) * ranks->units_per_length;
    ranks->margin_units = ranks->sight_units < RANKS_LIMIT_UNITS
                              ? (int64_t)ranks->sight_units + 3 + (def->reach > 0)
                              : 4 * (int64_t)RANKS_LIMIT_UNITS;
    ranks->tag_bits = def->id.bits & 0xFF000000u;
    ranks->checks_ghosts = def->check_ghosts || quern_has_checks();
    ranks->own.checkpoint_frame = UINT64_MAX;
    if (!(ranks->def.timeout_seconds > 0)) ranks->def.timeout_seconds = 10;
    if (ranks->def.balance_every == 0) ranks->def.balance_every = 16;
    if (def->folder != NULL) snprintf(ranks->folder, sizeof ranks->folder, "%s", def->folder);
    for_each_buffer(ranks, set_allocator);
    ranks->stage = RANKS_DONE;
    result = open_ranks(ranks);
    if (result != QUERN_OK) {
        quern_ranks_destroy(ranks);
        return result;
    }
    *out_ranks = ranks;
    return QUERN_OK;
}

void quern_ranks_destroy(quern_ranks *ranks)
{
    if (ranks == NULL) return;
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        quern_save_session_destroy(ranks->peers[i].save);
        quern_load_session_destroy(ranks->peers[i].load);
    }
    quern__ranks_close_wire(ranks);
    if (ranks->user.world != NULL) quern_world_remove_user(ranks->world, &ranks->user);
    quern_event_reader_destroy(ranks->letter_reader);
    quern_archive_destroy(ranks->archive);
    quern_query_destroy(ranks->roots);
    quern_query_destroy(ranks->shown);
    quern_query_destroy(ranks->nameless);
    quern_query_destroy(ranks->all_owned);
    quern_query_destroy(ranks->all_ghosts);
    quern_query_destroy(ranks->changed_owned);
    quern_query_destroy(ranks->changed_ghosts);
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS; i++)
        quern_query_destroy(ranks->globals[i]);
    for_each_buffer(ranks, release);
    const quern_allocator allocator = ranks->allocator;
    allocator.release(allocator.user_data, ranks->peers, ranks->rank_count * sizeof *ranks->peers, 16);
    allocator.release(allocator.user_data, ranks, sizeof *ranks, 16);
}

/* -------------------------------------------------------------------------------------------- start */

static bool is_of_ghosts(const quern_ranks *ranks, quern_component component)
{
    for (uint32_t i = 0; i < ranks->ghost_count; i++)
        if (quern_component_equal(ranks->ghost_list[i], component)) return true;
    return quern_component_equal(component, ranks->ghost);
}

/* Returns whether a query can have rows of ghosts: a term for a component that they lack rules them out. */
static bool matches_ghosts(const quern_ranks *ranks, const quern_query_def *query)
{
    for (uint32_t i = 0; i < QUERN_MAX_TERMS && query->terms[i].component.bits != 0; i++) {
        const quern_term *term = &query->terms[i];
        const bool is_always_there = quern_component_equal(term->component, ranks->def.position) ||
                                     quern_component_equal(term->component, ranks->ghost);
        if (term->path == QUERN_PATH_ROW &&
            ((term->match == QUERN_MATCH_ALL && !is_of_ghosts(ranks, term->component)) ||
             (term->match == QUERN_MATCH_NONE && is_always_there)))
            return false;
    }
    return true;
}

/* Returns the component of ghosts that a query writes; null if it writes none. */
static quern_component find_write(const quern_ranks *ranks, const quern_query_def *query)
{
    for (uint32_t i = 0; i < QUERN_MAX_TERMS && query->terms[i].component.bits != 0; i++)
        if (query->terms[i].access == QUERN_ACCESS_WRITE && is_of_ghosts(ranks, query->terms[i].component))
            return query->terms[i].component;
    return (quern_component){0};
}

static quern_result check_inner_systems(const quern_ranks *ranks, const quern_schedule *schedule)
{
    for (uint32_t i = 0;; i++) {
        quern_query_def query;
        quern_system_stats stats;
        const quern_system system = quern_schedule_system_at(schedule, i);
        if (system.bits == 0) return QUERN_OK;
        if (quern_schedule_get_system_query(schedule, system, &query) != QUERN_OK) continue;
        const bool matches = query.terms[0].component.bits != 0 && matches_ghosts(ranks, &query);
        if (!matches && find_write(ranks, &query).bits == 0) continue;
        (void)quern_schedule_get_system_stats(schedule, system, &stats);
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_ranks_overlap: system '%s' %s: add it to the schedule of quern_ranks_start%s",
            stats.name,
            matches ? "matches ghosts, which arrive while it runs"
                    : "writes a component of ghosts, which are sent before it runs",
            matches ? ", or add a term of the id" : "");
    }
}

static bool is_of_world(const quern_ranks *ranks, const quern_schedule *schedule)
{
    quern_schedule *list[QUERN_MAX_ARCHIVE_SCHEDULES];
    const uint32_t count = quern_world_list_schedules(ranks->world, list, QUERN_MAX_ARCHIVE_SCHEDULES);
    for (uint32_t i = 0; i < count && i < QUERN_MAX_ARCHIVE_SCHEDULES; i++)
        if (list[i] == schedule) return true;
    return count > QUERN_MAX_ARCHIVE_SCHEDULES;
}

quern_result quern_ranks_overlap(quern_ranks *ranks, quern_schedule *schedule)
{
    if (ranks == NULL || schedule == NULL)
        return quern__ranks_fail_null("quern_ranks_overlap", ranks == NULL ? "ranks" : "schedule");
    if (ranks->was_started || ranks->inner != NULL)
        return refuse("quern_ranks_overlap", ranks->inner != NULL
                                                 ? "it was called before: call it once"
                                                 : "quern_ranks_start was called: call it before that");
    if (!is_of_world(ranks, schedule))
        return refuse("quern_ranks_overlap", "'schedule' is of another world: pass one of the world");
    quern_result result = quern_schedule_compile(schedule);
    if (result == QUERN_OK) result = check_inner_systems(ranks, schedule);
    if (result == QUERN_OK) ranks->inner = schedule;
    return result;
}

static quern_result check_systems(const quern_ranks *ranks)
{
    for (uint32_t i = 0;; i++) {
        quern_query_def query;
        quern_system_stats stats;
        const quern_system system = quern_schedule_system_at(ranks->schedule, i);
        if (system.bits == 0) return QUERN_OK;
        if (quern_schedule_get_system_query(ranks->schedule, system, &query) != QUERN_OK) continue;
        const quern_component written = find_write(ranks, &query);
        if (written.bits == 0 || !matches_ghosts(ranks, &query)) continue;
        (void)quern_schedule_get_system_stats(ranks->schedule, system, &stats);
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_ranks_start: system '%s' writes '%s' of ghosts: add quern_term_with of '%s' to its "
            "terms, which ghosts lack",
            stats.name, quern_component_name(ranks->world, written),
            quern_component_name(ranks->world, ranks->def.id));
    }
}

quern_result quern_ranks_start(quern_ranks *ranks, quern_schedule *schedule, quern_jobs *jobs,
                               double delta_seconds)
{
    if (ranks == NULL || schedule == NULL)
        return quern__ranks_fail_null("quern_ranks_start", ranks == NULL ? "ranks" : "schedule");
    if (ranks->was_started) return refuse("quern_ranks_start", "it was called before: call it once");
    if (!is_of_world(ranks, schedule))
        return refuse("quern_ranks_start", "'schedule' is of another world: pass one of the world");
    if (schedule == ranks->inner)
        return refuse("quern_ranks_start", "'schedule' is that of quern_ranks_overlap: pass another one");
    ranks->schedule = schedule;
    ranks->jobs = jobs;
    ranks->delta_seconds = delta_seconds;
    quern_result result = quern_schedule_compile(schedule);
    if (result == QUERN_OK) result = check_systems(ranks);
    /* systems may have been added to it since quern_ranks_overlap */
    if (result == QUERN_OK && ranks->inner != NULL) result = quern_schedule_compile(ranks->inner);
    if (result == QUERN_OK && ranks->inner != NULL) result = check_inner_systems(ranks, ranks->inner);
    if (result == QUERN_OK) result = quern_entity_destroy_matching(ranks->all_ghosts, NULL);
    if (result == QUERN_OK && ranks->def.restart)
        result = quern__ranks_load(ranks);
    else if (result == QUERN_OK && ranks->def.checkpoint_every > 0 && ranks->rank == 0)
        quern__ranks_spare_checkpoint(ranks);
    ranks->was_started = true;
    return result != QUERN_OK ? quern__ranks_fail(ranks, result) : QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ numbers */

static int64_t *begin_numbers(quern_ranks *ranks, uint32_t count)
{
    ranks->numbers.size_bytes = 0;
    return quern__ranks_append(&ranks->numbers, NULL, count * sizeof(int64_t));
}

static uint64_t mix_name(uint64_t hash, const char *name, uint32_t size_bytes)
{
    return quern_random(hash ^ quern__ranks_checksum(name, strlen(name)), size_bytes);
}

/* Returns a number that is different for programs that cannot work together. */
static int64_t describe_program(const quern_ranks *ranks)
{
    uint64_t hash = 1;
    quern_type_info info;
    const uint32_t count = quern_type_count(ranks->world, QUERN_TYPE_COMPONENT);
    for (uint32_t i = 0;
         i < count && quern_type_at(ranks->world, QUERN_TYPE_COMPONENT, i, &info) == QUERN_OK; i++)
        hash = mix_name(hash, info.name, info.size_bytes);
    for (uint32_t i = 0; i < ranks->ghost_count; i++)
        hash = mix_name(hash, quern_component_name(ranks->world, ranks->ghost_list[i]), i);
    hash = quern_random(hash, (uint64_t)ranks->margin_units ^ (uint64_t)ranks->def.balance_every << 32);
    hash = quern_random(hash, ranks->def.checkpoint_every * 16 + (ranks->def.list_ranks ? 8u : 0) +
                                  (ranks->inner != NULL ? 4u : 0) + ranks->wants_hash * 2 +
                                  (ranks->letter_reader != NULL));
    return (int64_t)(hash >> 1);
}

static quern_result compare_programs(quern_ranks *ranks)
{
    int64_t *numbers = begin_numbers(ranks, 8);
    if (numbers == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    numbers[0] = numbers[3] = describe_program(ranks);
    numbers[1] = numbers[4] = (int64_t)ranks->frame;
    numbers[2] = numbers[5] = (int64_t)ranks->end_frame;
    numbers[6] = (int64_t)(quern_clock_ns() >> 1);
    numbers[7] = ranks->slot; /* rank 0 alone may have looked into the folder */
    return quern__ranks_begin_reduce(ranks, 0, 3);
}

static quern_result check_programs(quern_ranks *ranks)
{
    const int64_t *numbers = ranks->numbers.bytes;
    const char *const what[] = {"types or definitions", "a frame to begin with", "a number of frames"};
    for (uint32_t i = 0; i < 3; i++)
        if (numbers[i] != numbers[3 + i])
            return quern_error_set(
                QUERN_ERROR_BAD_ARCHIVE,
                "quern_ranks_run: the ranks do not have the same %s: start all with the same program "
                "and options",
                what[i]);
    if (ranks->run_number == 0) ranks->run_number = (uint64_t)numbers[6];
    ranks->slot = (uint32_t)numbers[7];
    return QUERN_OK;
}

static uint32_t count_globals(const quern_ranks *ranks, quern_ranks_global_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS && ranks->def.globals[i].kind != 0; i++)
        count += ranks->def.globals[i].kind == kind;
    return count;
}

static int64_t combine_own(quern_ranks *ranks, uint32_t index)
{
    const quern_ranks_global *global = &ranks->def.globals[index];
    uint64_t result = global->kind == QUERN_RANKS_SUM       ? 0
                      : global->kind == QUERN_RANKS_MINIMUM ? INT64_MAX
                                                            : (uint64_t)INT64_MIN;
    uint32_t stride;
    quern_component_get_size(ranks->world, global->component, &stride);
    quern_query_iterator it = quern_query_iterate(ranks->globals[index]);
    while (quern_query_next(&it)) {
        const char *values = stride > 0 ? quern_view_read(&it.view, 0) : NULL;
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            const int64_t value = global->value != NULL
                                      ? global->value(values != NULL ? values + (size_t)i * stride : NULL)
                                      : 1;
            if (global->kind == QUERN_RANKS_SUM)
                result += (uint64_t)value;
            else if (global->kind == QUERN_RANKS_MINIMUM ? value < (int64_t)result
                                                         : value > (int64_t)result)
                result = (uint64_t)value;
        }
    }
    return (int64_t)result;
}

/* Begins to combine what all ranks need to know of a frame: far moves, times, globals. */
static quern_result count_frame(quern_ranks *ranks)
{
    int64_t far_count;
    const quern_result result = quern__ranks_list_leaving(ranks, &far_count);
    if (result != QUERN_OK) return result;
    const uint32_t sums = count_globals(ranks, QUERN_RANKS_SUM),
                   minima = count_globals(ranks, QUERN_RANKS_MINIMUM),
                   maxima = count_globals(ranks, QUERN_RANKS_MAXIMUM);
    int64_t *numbers = begin_numbers(ranks, 3 + sums + minima + maxima);
    if (numbers == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    numbers[0] = far_count;
    numbers[1] = (int64_t)ranks->frame_ns;
    uint32_t at = 2;
    for (quern_ranks_global_kind kind = QUERN_RANKS_SUM; kind <= QUERN_RANKS_MAXIMUM; kind++)
        for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS && ranks->def.globals[i].kind != 0; i++)
            if (ranks->def.globals[i].kind == kind) numbers[at++] = combine_own(ranks, i);
    numbers[at] = (int64_t)ranks->frame_ns; /* the last maximum */
    return quern__ranks_begin_reduce(ranks, 2 + sums, minima);
}

/* ------------------------------------------------------------------------------------------- stages */

static quern_ranks_state *state_of(quern_ranks *ranks)
{
    return quern_resource_get(ranks->world, ranks->state_resource);
}

/* Runs a schedule, and adds its time to that of the frame. */
static quern_result run_schedule(quern_ranks *ranks, quern_schedule *schedule)
{
    state_of(ranks)->frame = ranks->frame;
    const uint64_t begin_ns = quern__ranks_processor_ns();
    const quern_result result = quern_schedule_run(schedule, ranks->jobs, ranks->delta_seconds);
    const uint64_t run_ns = quern__ranks_processor_ns() - begin_ns;
    ranks->frame_ns += run_ns;
    ranks->own.run_ns += run_ns;
    return result;
}

/* Returns a hash of all that other ranks may see, in any order. */
static uint64_t hash_shown(const quern_ranks *ranks)
{
    uint64_t hash = 0;
    quern_query_iterator it = quern_query_iterate(ranks->shown);
    while (quern_query_next(&it))
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            uint64_t own = it.view.entities[i].bits;
            for (uint32_t k = 0; k < ranks->ghost_count; k++) {
                const char *column = ranks->ghost_sizes[k] > 0 ? quern_view_read(&it.view, 1 + k) : NULL;
                const bool is_there = column != NULL || quern_view_has(&it.view, 1 + k);
                own = quern_random(own, is_there);
                if (column != NULL)
                    own ^= quern__ranks_checksum(column + (size_t)i * ranks->ghost_sizes[k],
                                                 ranks->ghost_sizes[k]);
            }
            hash += quern_random_mix(own);
        }
    return hash;
}

/* Begins the next frame with the inner schedule, unless that was done. */
static quern_result run_inner(quern_ranks *ranks)
{
    if (ranks->inner_has_run) return QUERN_OK;
    ranks->frame_ns = 0;
    if (ranks->inner == NULL) return QUERN_OK;
    const uint64_t before = ranks->checks_ghosts ? hash_shown(ranks) : 0;
    ranks->inner_has_run = true;
    const quern_result result = run_schedule(ranks, ranks->inner);
    if (result != QUERN_OK || !ranks->checks_ghosts || hash_shown(ranks) == before) return result;
    return refuse("quern_ranks_run", "the schedule of quern_ranks_overlap has changed positions or "
                                     "components of ghosts, which were sent "
                                     "before it ran: let the other schedule do that");
}

static quern_result run_frame(quern_ranks *ranks)
{
    quern_result result = run_inner(ranks);
    if (result == QUERN_OK) result = quern__ranks_emit_pending(ranks);
    if (result == QUERN_OK) result = run_schedule(ranks, ranks->schedule);
    ranks->inner_has_run = false;
    ranks->table_is_current = false;
    if (result == QUERN_OK && ranks->checks_ghosts) result = quern__ranks_check_ghosts(ranks);
    if (result != QUERN_OK) return result;
    if (quern_query_count(ranks->nameless) > 0)
        return refuse("quern_ranks_run",
                      "an entity has a position and no id: create it with an id, such as that of "
                      "quern_ranks_child_id");
    if (ranks->letter_reader == NULL) {
        ranks->stage = RANKS_COUNTED;
        return count_frame(ranks);
    }
    result = quern__ranks_sort_letters(ranks);
    int64_t *numbers = result == QUERN_OK ? begin_numbers(ranks, 1) : NULL;
    if (numbers == NULL) return result != QUERN_OK ? result : QUERN_ERROR_OUT_OF_MEMORY;
    numbers[0] = RANKS_COUNT(ranks->far, ranks_letter);
    ranks->stage = RANKS_LETTERS_COUNTED;
    return quern__ranks_begin_reduce(ranks, 1, 0);
}

static quern_result begin_division(quern_ranks *ranks)
{
    ranks->stage = RANKS_EXTENT_KNOWN;
    return quern__ranks_measure_extent(ranks);
}

static quern_result send_leaving(quern_ranks *ranks, bool to_all)
{
    ranks->stage = RANKS_ARRIVED;
    return quern__ranks_send_leaving(ranks, to_all);
}

/* Divides the next level, or moves all entities to the parts of the new division. */
static quern_result measure_level(quern_ranks *ranks)
{
    bool is_complete;
    int64_t far_count;
    const uint64_t roots = quern_query_count(ranks->roots);
    const uint64_t weight = roots > 0 ? ranks->frame_ns / roots : 0;
    quern_result result = quern__ranks_measure_level(ranks, weight > 0 ? weight : 1, &is_complete);
    ranks->stage = RANKS_LEVEL_KNOWN;
    if (result != QUERN_OK || !is_complete) return result;
    result = quern__ranks_end_division(ranks);
    if (result == QUERN_OK) result = quern__ranks_forget_ghosts(ranks);
    if (result == QUERN_OK) result = quern__ranks_list_leaving(ranks, &far_count);
    return result == QUERN_OK ? send_leaving(ranks, true) : result;
}

/* Stores what the ranks know in common after a frame, and begins to move entities. */
static quern_result end_frame(quern_ranks *ranks)
{
    const int64_t *numbers = ranks->numbers.bytes;
    quern_ranks_state *state = state_of(ranks);
    uint32_t at = 2;
    for (quern_ranks_global_kind kind = QUERN_RANKS_SUM; kind <= QUERN_RANKS_MAXIMUM; kind++)
        for (uint32_t i = 0; i < QUERN_RANKS_MAX_GLOBALS && ranks->def.globals[i].kind != 0; i++)
            if (ranks->def.globals[i].kind == kind) state->globals[i] = numbers[at++];
    const double average = (double)numbers[1] / ranks->rank_count, slowest = (double)numbers[at];
    ranks->own.slowest_ns += (uint64_t)numbers[at];
    state->frame = ++ranks->frame;
    ranks->is_after_frame = true;
    if (ranks->rank_count == 1) {
        ranks->stage = RANKS_ARRIVED;
        return QUERN_OK;
    }
    if (!ranks->def.disable_balance && ranks->frame % ranks->def.balance_every == 0 &&
        slowest > 1.1 * average)
        return begin_division(ranks);
    return send_leaving(ranks, numbers[0] > 0);
}

static quern_result send_ghosts(quern_ranks *ranks)
{
    ranks->stage = ranks->rank_count > 1 ? RANKS_GHOSTS_ARRIVED : RANKS_FRAME;
    if (ranks->rank_count == 1) return QUERN_OK;
    const quern_result result = quern__ranks_send_ghosts(ranks);
    return result == QUERN_OK && ranks->frame < ranks->end_frame ? run_inner(ranks) : result;
}

/* Begins to add up how many ranks could not do their part of a checkpoint. */
static quern_result count_failures(quern_ranks *ranks, quern_result result, ranks_stage next)
{
    int64_t *numbers = begin_numbers(ranks, 1);
    if (result != QUERN_OK) snprintf(ranks->problem, sizeof ranks->problem, "%s", quern_error_message());
    if (numbers == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    numbers[0] = result != QUERN_OK;
    ranks->stage = next;
    return quern__ranks_begin_reduce(ranks, 1, 0);
}

static quern_result end_moves(quern_ranks *ranks)
{
    quern_result result = quern__ranks_take_arriving(ranks);
    const uint32_t every = ranks->def.checkpoint_every;
    const bool saves = every > 0 && ranks->is_after_frame && ranks->frame % every == 0;
    ranks->is_after_frame = false;
    if (result != QUERN_OK) return result;
    if (!saves) return send_ghosts(ranks);
    result = quern__ranks_forget_ghosts(ranks);
    if (result != QUERN_OK) return result;
    return count_failures(ranks, quern__ranks_save(ranks), RANKS_SAVED);
}

/* Ends a checkpoint that is complete, or the call if a rank could not do its part. */
static quern_result end_checkpoint(quern_ranks *ranks)
{
    if (((const int64_t *)ranks->numbers.bytes)[0] == 0) {
        ranks->own.checkpoint_frame = ranks->frame;
        ranks->slot = !ranks->slot;
    } else {
        ranks->end_frame = ranks->frame;
        ranks->has_lost_checkpoint = true;
        if (ranks->problem[0] == '\0')
            snprintf(
                ranks->problem, sizeof ranks->problem,
                "quern_ranks_run: another rank could not write its part of the checkpoint of frame %llu",
                (unsigned long long)ranks->frame);
    }
    return send_ghosts(ranks);
}

/* Begins to add up statistics and hashes. */
static quern_result count_totals(quern_ranks *ranks)
{
    const uint32_t listed_count = ranks->def.list_ranks ? ranks->rank_count * RANKS_LISTED : 0;
    int64_t *numbers = begin_numbers(ranks, 12 + listed_count);
    if (numbers == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    const quern_ranks_stats *own = &ranks->own;
    ranks->own.owned_count = quern_query_count(ranks->roots);
    const uint64_t values[] = {
        own->owned_count, own->ghost_count,
        own->moved_count, own->message_count,
        own->far_count,   ranks->letter_count - own->message_count + own->dropped_count,
        own->sent_bytes,  own->packet_count,
        own->run_ns,      own->own_ns,
        own->wait_ns,     ranks->wants_hash ? quern_world_hash_by(ranks->world, ranks->def.id) : 0};
    memcpy(numbers, values, sizeof values);
    if (listed_count > 0) quern__ranks_put_own(ranks, numbers + 12);
    ranks->stage = RANKS_TOTALS_KNOWN;
    return quern__ranks_begin_reduce(ranks, 12 + listed_count, 0);
}

static quern_result store_totals(quern_ranks *ranks)
{
    uint64_t values[12];
    memcpy(values, ranks->numbers.bytes, sizeof values);
    ranks->all = (quern_ranks_stats){.owned_count = values[0],
                                     .ghost_count = values[1],
                                     .moved_count = values[2],
                                     .message_count = values[3],
                                     .far_count = values[4],
                                     .dropped_count = values[5],
                                     .sent_bytes = values[6],
                                     .packet_count = values[7],
                                     .run_ns = values[8],
                                     .own_ns = values[9],
                                     .wait_ns = values[10],
                                     .slowest_ns = ranks->own.slowest_ns,
                                     .bisection_count = ranks->own.bisection_count,
                                     .checkpoint_frame = ranks->own.checkpoint_frame,
                                     .neighbour_count = ranks->own.neighbour_count};
    ranks->hash = values[11];
    ranks->stage = RANKS_DONE;
    if (!ranks->def.list_ranks) return QUERN_OK;
    return quern__ranks_take_list(ranks, (const int64_t *)ranks->numbers.bytes + 12);
}

static quern_result step(quern_ranks *ranks)
{
    quern_result result = QUERN_OK;
    switch (ranks->stage) {
    case RANKS_BEGIN:
        ranks->stage = RANKS_SAME_PROGRAM;
        return compare_programs(ranks);
    case RANKS_SAME_PROGRAM:
        result = check_programs(ranks);
        if (result == QUERN_OK && !ranks->is_divided && ranks->rank_count > 1) return begin_division(ranks);
        ranks->stage = RANKS_FRAME;
        return result;
    case RANKS_FRAME:
        return ranks->frame >= ranks->end_frame ? count_totals(ranks) : run_frame(ranks);
    case RANKS_LETTERS_COUNTED:
        ranks->stage = RANKS_LETTERS_ARRIVED;
        return quern__ranks_send_letters(ranks, ((const int64_t *)ranks->numbers.bytes)[0] > 0);
    case RANKS_LETTERS_ARRIVED:
        result = quern__ranks_apply_letters(ranks);
        ranks->stage = RANKS_COUNTED;
        return result == QUERN_OK ? count_frame(ranks) : result;
    case RANKS_COUNTED:
        return end_frame(ranks);
    case RANKS_EXTENT_KNOWN:
        result = quern__ranks_begin_division(ranks);
        return result == QUERN_OK ? measure_level(ranks) : result;
    case RANKS_LEVEL_KNOWN:
        result = quern__ranks_divide_level(ranks);
        return result == QUERN_OK ? measure_level(ranks) : result;
    case RANKS_ARRIVED:
        return end_moves(ranks);
    case RANKS_SAVED:
        if (((const int64_t *)ranks->numbers.bytes)[0] > 0) return end_checkpoint(ranks);
        return count_failures(ranks, quern__ranks_commit(ranks), RANKS_COMMITTED);
    case RANKS_COMMITTED:
        return end_checkpoint(ranks);
    case RANKS_GHOSTS_ARRIVED:
        ranks->stage = RANKS_FRAME;
        return quern__ranks_take_ghosts(ranks);
    default:
        return store_totals(ranks);
    }
}

/* Goes on until the rank waits for others or is done. Stores whether it got on. */
static quern_result advance(quern_ranks *ranks, bool *out_has_advanced)
{
    quern_result result = QUERN_OK;
    *out_has_advanced = false;
    while (result == QUERN_OK && ranks->stage != RANKS_DONE) {
        bool is_complete = true;
        if (ranks->is_exchanging) result = quern__ranks_receive(ranks, &is_complete);
        if (result != QUERN_OK || !is_complete) break;
        *out_has_advanced = true;
        if (ranks->reduce_state != 0) result = quern__ranks_reduce(ranks, &is_complete);
        if (result != QUERN_OK || !is_complete) continue;
        const uint64_t begin_ns = quern__ranks_processor_ns(), run_ns = ranks->own.run_ns;
        result = step(ranks);
        const uint64_t spent_ns = quern__ranks_processor_ns() - begin_ns,
                       frame_ns = ranks->own.run_ns - run_ns;
        ranks->own.own_ns += spent_ns > frame_ns ? spent_ns - frame_ns : 0;
    }
    return result != QUERN_OK ? quern__ranks_fail(ranks, result) : QUERN_OK;
}

/* --------------------------------------------------------------------------------------------- runs */

static quern_result begin_run(quern_ranks *ranks, uint64_t frame_count, bool wants_hash)
{
    if (ranks == NULL) return quern__ranks_fail_null("quern_ranks_run", "ranks");
    if (!ranks->was_started)
        return refuse("quern_ranks_run", "quern_ranks_start was not called: call it first");
    if (ranks->is_ended)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE, "quern_ranks_run: an earlier call has failed: %s",
                               ranks->ending);
    ranks->end_frame = frame_count < UINT64_MAX - ranks->frame ? ranks->frame + frame_count : UINT64_MAX;
    ranks->wants_hash = wants_hash;
    ranks->problem[0] = '\0';
    ranks->has_lost_checkpoint = false;
    ranks->stage = RANKS_BEGIN;
    quern__ranks_skip_time(&ranks->def.transport);
    return QUERN_OK;
}

quern_result quern_ranks_run_all(quern_ranks *const *list, uint32_t count, uint64_t frame_count,
                                 uint64_t *out_hash)
{
    quern_result first_result = QUERN_OK;
    char message[512] = "";
    if (list == NULL || count == 0)
        return quern_error_set(
            QUERN_ERROR_NULL_ARGUMENT,
            "quern_ranks_run_all: 'list' is NULL or empty: pass the ranks of this process");
    for (uint32_t i = 0; i < count; i++) {
        const quern_result result = begin_run(list[i], frame_count, out_hash != NULL);
        if (result != QUERN_OK) return result;
    }
    for (bool is_done = false; !is_done;) {
        bool has_advanced = false;
        is_done = true;
        for (uint32_t i = 0; i < count; i++) {
            bool has_this;
            if (list[i]->stage == RANKS_DONE || list[i]->is_ended) continue;
            const quern_result result = advance(list[i], &has_this);
            if (result != QUERN_OK && first_result == QUERN_OK) {
                first_result = result;
                snprintf(message, sizeof message, "%s", quern_error_message());
            }
            has_advanced = has_advanced || has_this;
            is_done = is_done && (list[i]->stage == RANKS_DONE || list[i]->is_ended);
        }
        const quern_ranks_transport *transport = &list[0]->def.transport;
        if (!is_done && !has_advanced && transport->wait != NULL) transport->wait(transport->user_data);
    }
    if (first_result != QUERN_OK) return quern_error_set(first_result, "%s", message);
    if (list[0]->has_lost_checkpoint) return quern_error_set(QUERN_ERROR_IO, "%s", list[0]->problem);
    if (out_hash != NULL) *out_hash = list[0]->hash;
    return QUERN_OK;
}

quern_result quern_ranks_run(quern_ranks *ranks, uint64_t frame_count, uint64_t *out_hash)
{
    return quern_ranks_run_all(&ranks, 1, frame_count, out_hash);
}

/* ------------------------------------------------------------------------------------------- answers */

uint64_t quern_ranks_frame(const quern_ranks *ranks)
{
    return ranks != NULL ? ranks->frame : 0;
}

uint32_t quern_ranks_index(const quern_ranks *ranks)
{
    return ranks != NULL ? ranks->rank : 0;
}

uint32_t quern_ranks_count(const quern_ranks *ranks)
{
    return ranks != NULL ? ranks->rank_count : 0;
}

quern_resource quern_ranks_resource(const quern_ranks *ranks)
{
    return ranks != NULL ? ranks->state_resource : (quern_resource){0};
}

const quern_ranks_state *quern_ranks_get_state(const quern_ranks *ranks)
{
    return ranks != NULL ? quern_resource_get(ranks->world, ranks->state_resource) : NULL;
}

quern_component quern_ranks_ghost(const quern_ranks *ranks)
{
    return ranks != NULL ? ranks->ghost : (quern_component){0};
}

quern_result quern_ranks_get_stats(const quern_ranks *ranks, quern_ranks_stats *out_own,
                                   quern_ranks_stats *out_all)
{
    if (ranks == NULL) return quern__ranks_fail_null("quern_ranks_get_stats", "ranks");
    if (out_own != NULL) {
        *out_own = ranks->own;
        out_own->owned_count = quern_query_count(ranks->roots);
    }
    if (out_all != NULL) *out_all = ranks->all;
    return QUERN_OK;
}
