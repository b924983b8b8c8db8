/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Random programs that relate with values, by calls and by commands of systems, compared with a naive model: one table of
 * edges, changed call by call and command by command in the order of rows. Frames run with each number of threads;
 * worlds go back and forth by a history, and are followed by deltas and archives. */

#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"

#include <quern/archive.h>
#include <quern/commands.h>
#include <quern/history.h>
#include <quern/list.h>
#include <quern/relation.h>

#include <stdlib.h>
#include <string.h>

enum { MOST = 120, FIRST = 24, RELATIONS = 3, OWES = 0, BOSS = 1, LIKES = 2, STEPS = 60, NONE = MOST };

typedef struct debt {
    int32_t amount;
    quern_string note;
} debt;

typedef struct like {
    quern_entity target;
    quern_entity witness;
    uint32_t since;
    uint32_t unused;
} like;

typedef struct likings {
    QUERN_LIST(like) edges;
} likings;

/* ------------------------------------------------------------------------------------------ the model */

typedef struct edge {
    bool exists;
    uint32_t value, witness; /* witness: of LIKES; NONE: the null handle */
} edge;

/* Entities by number. */
typedef struct model {
    bool is_alive[MOST];
    edge edges[RELATIONS][MOST][MOST]; /* by source and target */
    uint32_t count;                    /* numbers in use, dead ones included */
} model;

static const uint32_t initial_value[RELATIONS] = {77, 5, 0};

static bool is_below(const model *it, uint32_t below, uint32_t above)
{
    if (below == above) return true;
    for (uint32_t t = 0; t < it->count; t++)
        if (it->edges[BOSS][below][t].exists) return is_below(it, t, above);
    return false;
}

/* Relates, with a value unless it is NULL. Returns false if the call or command is refused. */
static bool model_relate(model *it, uint32_t r, uint32_t source, uint32_t target, const edge *value)
{
    if (!it->is_alive[source] || !it->is_alive[target]) return false;
    if (r == BOSS && is_below(it, target, source)) return false;
    edge *at = &it->edges[r][source][target];
    if (!at->exists) {
        if (r != LIKES) memset(it->edges[r][source], 0, sizeof it->edges[r][source]);
        *at = (edge){true, initial_value[r], NONE};
    }
    if (value != NULL) *at = *value;
    return true;
}

static bool model_set(model *it, uint32_t r, uint32_t source, uint32_t target, const edge *value)
{
    if (!it->is_alive[source] || !it->is_alive[target] || !it->edges[r][source][target].exists)
        return false;
    it->edges[r][source][target] = *value;
    return true;
}

static bool model_unrelate(model *it, uint32_t r, uint32_t source)
{
    bool had = false;
    for (uint32_t t = 0; t < it->count; t++)
        had |= it->edges[r][source][t].exists;
    memset(it->edges[r][source], 0, sizeof it->edges[r][source]);
    return had;
}

static bool model_unrelate_from(model *it, uint32_t r, uint32_t source, uint32_t target)
{
    const bool had = it->edges[r][source][target].exists;
    it->edges[r][source][target] = (edge){0};
    return had;
}

static void model_destroy(model *it, uint32_t number)
{
    if (!it->is_alive[number]) return;
    it->is_alive[number] = false;
    for (uint32_t i = 0; i < it->count; i++)
        if (it->edges[BOSS][i][number].exists) model_destroy(it, i);
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < it->count; i++)
            it->edges[r][i][number] = it->edges[r][number][i] = (edge){0};
}

/* ------------------------------------------------------------------------------------------- worlds */

typedef struct side {
    quern_world *world;
    quern_component number, debts, ranks, likings, seen;
    quern_relation relations[RELATIONS];
} side;

static side main_side, follower, limited; /* limited: has the entities with the tag "seen" */
static model now;
static quern_entity handles[MOST]; /* of the main world, also of dead entities */

static void open_side(side *it)
{
    const debt initial = {.amount = 77};
    const uint32_t rank = 5;
    it->world = setup_world();
    it->number = setup_component(it->world, "number", 8, 8);
    it->seen = setup_tag(it->world, "seen");
    it->debts = make_component(it->world, QUERN_TYPE(debt), .default_value = &initial,
                               .fields = QUERN_FIELDS(debt, amount, note));
    it->ranks = make_component(it->world, .name = "rank", .size_bytes = 4, .alignment_bytes = 4,
                               .default_value = &rank);
    it->likings =
        make_component(it->world, QUERN_TYPE(likings),
                       .fields = {QUERN_LIST_FIELD(likings, edges, like, target, witness, since)});
    const quern_relation_def defs[RELATIONS] = {
        {.name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .value = it->debts},
        {.name = "boss", .levels = true, .ordered = true, .value = it->ranks},
        {.name = "likes",
         .on_target_destroyed = QUERN_TARGET_UNRELATES,
         .many = true,
         .value = it->likings}};
    for (uint32_t i = 0; i < RELATIONS; i++)
        must(quern_relation_register(it->world, &defs[i], &it->relations[i]));
}

/* The value of an edge as calls take it. */
typedef union any_value {
    debt debt;
    uint32_t rank;
    like like;
} any_value;

static void make_value(uint32_t r, const edge *from, quern_entity witness, any_value *out)
{
    memset(out, 0, sizeof *out);
    if (r == OWES) {
        out->debt.amount = (int32_t)from->value;
        must(quern_string_print(&out->debt.note, "%u is a long text, in a block of its own", from->value));
    } else if (r == BOSS) {
        out->rank = from->value;
    } else {
        out->like = (like){.witness = witness, .since = from->value};
    }
}

static void free_value(uint32_t r, any_value *value)
{
    if (r == OWES) quern_string_free(&value->debt.note);
}

/* Which handles in values a world has: those of edges alone, those of living entities, or also those of dead ones. */
typedef enum witnesses { NO_WITNESSES, LIVING_WITNESSES, ALL_WITNESSES } witnesses;

/* Checks the value of an edge that exists. by_number: the entities of its world. */
static void check_value(uint32_t r, const void *found, const edge *wanted, const quern_entity *by_number,
                        const model *expected, witnesses has)
{
    const uint32_t value = r == OWES   ? (uint32_t)((const debt *)found)->amount
                           : r == BOSS ? *(const uint32_t *)found
                                       : ((const like *)found)->since;
    cr_assert_eq(value, wanted->value, "relation %u: %u, not %u", r, value, wanted->value);
    if (r == OWES && value != 77)
        cr_assert_eq(strtoul(quern_string_text(&((const debt *)found)->note), NULL, 10), value);
    const bool is_dead = wanted->witness != NONE && !expected->is_alive[wanted->witness];
    if (r != LIKES || has == NO_WITNESSES || (has == LIVING_WITNESSES && is_dead)) return;
    const quern_entity witness = wanted->witness != NONE ? by_number[wanted->witness] : quern_entity_null();
    cr_assert_eq(((const like *)found)->witness.bits, witness.bits);
}

/* Checks the edges of a source in a relation against the model. */
static void check_source(const side *it, const quern_entity *by_number, const model *expected,
                         witnesses has, uint32_t r, uint32_t s)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < expected->count; t++) {
        if (!expected->is_alive[t]) continue;
        const edge *wanted = &expected->edges[r][s][t];
        const void *found =
            quern_entity_edge_value(it->world, by_number[s], it->relations[r], by_number[t]);
        cr_assert_eq(found != NULL, wanted->exists, "relation %u from %u to %u", r, s, t);
        if (found == NULL) continue;
        count++;
        check_value(r, found, wanted, by_number, expected, has);
    }
    cr_assert_eq(quern_entity_target_count(it->world, by_number[s], it->relations[r]), count);
}

/* Checks all edges of a world against the model. */
static void check_world(const side *it, const quern_entity *by_number, const model *expected, witnesses has)
{
    assert_valid(it->world);
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t s = 0; s < expected->count; s++)
            if (expected->is_alive[s]) check_source(it, by_number, expected, has, r, s);
}

/* Finds the entities of a world by their numbers. */
static void find_all(const side *it, quern_entity *out_by_number)
{
    const quern_term term = quern_term_read(it->number);
    quern_query *query = setup_query(it->world, &term, 1);
    quern_query_iterator walk = quern_query_iterate(query);
    while (quern_query_next(&walk)) {
        const uint64_t *numbers = QUERN_COLUMN(&walk.view, 0, const uint64_t);
        for (uint32_t i = 0; i < walk.view.count; i++)
            out_by_number[numbers[i]] = walk.view.entities[i];
    }
    quern_query_destroy(query);
}

/* --------------------------------------------------------------------------------------------- steps */

typedef enum act_kind { RELATE, RELATE_WITH, SET, UNRELATE, UNRELATE_FROM, DESTROY, CREATE, ACTS } act_kind;

/* A call or a command. */
typedef struct act {
    act_kind kind;
    uint32_t r, source, target; /* CREATE: source is the number of the new entity */
    edge value;
} act;

static uint32_t next_value;

static act pick(random_source *random, uint32_t source)
{
    cr_assert_gt(now.count, 0);
    const uint32_t chance = random_below(random, 100);
    act it = {.r = random_below(random, RELATIONS), .source = source};
    it.kind = chance < 20   ? RELATE
              : chance < 50 ? RELATE_WITH
              : chance < 75 ? SET
              : chance < 82 ? UNRELATE
              : chance < 90 ? UNRELATE_FROM
              : chance < 93 ? DESTROY
                            : CREATE;
    it.target = random_below(random, now.count);
    for (uint32_t t = 0; t < now.count && random_chance(random, 60); t++)
        if (now.edges[it.r][source][t].exists) it.target = t;
    if (it.target == source) it.target = (source + 1) % now.count;
    it.value = (edge){true, 100 + ++next_value,
                      random_chance(random, 50) ? random_below(random, now.count) : NONE};
    if (it.r != LIKES || (it.value.witness != NONE && !now.is_alive[it.value.witness]))
        it.value.witness = NONE;
    if (it.kind == CREATE && now.count == MOST) it.kind = SET;
    return it;
}

/* Applies an act to the model. Returns false if it is refused. */
static bool model_act(const act *it)
{
    switch (it->kind) {
    case RELATE:
        return model_relate(&now, it->r, it->source, it->target, NULL);
    case RELATE_WITH:
        return model_relate(&now, it->r, it->source, it->target, &it->value);
    case SET:
        return model_set(&now, it->r, it->source, it->target, &it->value);
    case UNRELATE:
        return model_unrelate(&now, it->r, it->source);
    case UNRELATE_FROM:
        return now.is_alive[it->target] && model_unrelate_from(&now, it->r, it->source, it->target);
    case DESTROY:
        model_destroy(&now, it->target);
        return true;
    default:
        now.is_alive[it->source] = true;
        if (now.is_alive[it->target]) {
            const edge of_new = {true, it->value.value, it->r == LIKES ? it->source : NONE};
            model_relate(&now, it->r, it->source, it->target, &of_new);
        }
        return true;
    }
}

static void call(act it)
{
    quern_world *world = main_side.world;
    if (!now.is_alive[it.source] && it.kind != CREATE) return;
    if (!now.is_alive[it.target]) return;
    if (it.kind == CREATE) it.source = now.count++;
    const bool is_done = model_act(&it);
    const quern_relation relation = main_side.relations[it.r];
    const quern_entity source = handles[it.source], target = handles[it.target];
    any_value value;
    quern_result result = QUERN_OK;
    make_value(it.r, &it.value, it.value.witness != NONE ? handles[it.value.witness] : quern_entity_null(),
               &value);
    switch (it.kind) {
    case RELATE:
        result = quern_entity_relate(world, source, relation, target);
        break;
    case RELATE_WITH:
        result = quern_entity_relate_with(world, source, relation, target, &value);
        break;
    case SET:
        result = quern_entity_set_edge_value(world, source, relation, target, &value);
        break;
    case UNRELATE:
        result = quern_entity_unrelate(world, source, relation);
        break;
    case UNRELATE_FROM:
        result = quern_entity_unrelate_from(world, source, relation, target);
        break;
    case DESTROY:
        result = quern_entity_destroy(world, target);
        break;
    default: {
        const uint64_t number = it.source;
        must(quern_entity_create_with(world, &main_side.number, (const void *[]){&number}, 1,
                                      &handles[number]));
        if (it.r == LIKES) value.like.witness = handles[number];
        must(quern_entity_relate_with(world, handles[number], relation, target, &value));
        break;
    }
    }
    free_value(it.r, &value);
    cr_assert_eq(result == QUERN_OK, is_done, "%s", quern_error_message());
}

/* Relates a list of pairs in one relation. */
static void call_many(random_source *random)
{
    quern_entity sources[12], targets[12];
    const uint32_t r = random_below(random, 2) * 2; /* OWES or LIKES */
    uint32_t count = 0;
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t s = random_below(random, now.count), t = random_below(random, now.count);
        if (s == t || !model_relate(&now, r, s, t, NULL)) continue;
        sources[count] = handles[s];
        targets[count++] = handles[t];
    }
    must(quern_entity_relate_many(main_side.world, sources, main_side.relations[r], targets, count));
}

/* --------------------------------------------------------------------------------------------- frames */

static act plans[2][MOST]; /* by system and number of the entity */

static void record(quern_context *context, const quern_view *view, const act *plan)
{
    const uint64_t *numbers = QUERN_COLUMN(view, 0, const uint64_t);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const act *it = &plan[numbers[i]];
        const quern_relation relation = main_side.relations[it->r];
        const quern_entity source = handles[it->source], target = handles[it->target];
        any_value value;
        make_value(it->r, &it->value,
                   it->value.witness != NONE ? handles[it->value.witness] : quern_entity_null(), &value);
        switch (it->kind) {
        case RELATE:
            must(quern_commands_relate(commands, source, relation, target));
            break;
        case RELATE_WITH:
            must(quern_commands_relate_with(commands, source, relation, target, &value));
            break;
        case SET:
            must(quern_commands_set_edge_value(commands, source, relation, target, &value));
            break;
        case UNRELATE:
            must(quern_commands_unrelate(commands, source, relation));
            break;
        case UNRELATE_FROM:
            must(quern_commands_unrelate_from(commands, source, relation, target));
            break;
        case DESTROY:
            must(quern_commands_destroy(commands, target));
            break;
        default: {
            const uint64_t number = it->source;
            quern_entity made;
            must(quern_commands_create_with(commands, &main_side.number, (const void *[]){&number}, 1,
                                            &made));
            if (it->r == LIKES) value.like.witness = made;
            must(quern_commands_relate_with(commands, made, relation, target, &value));
            break;
        }
        }
        free_value(it->r, &value);
    }
}

static void run_first(quern_context *context, const quern_view *view)
{
    record(context, view, plans[0]);
}

static void run_second(quern_context *context, const quern_view *view)
{
    record(context, view, plans[1]);
}

/* A system reads the value of each row's debt by a term, and that of likes by a call. */
static uint64_t read_sum;

static void run_reader(quern_context *context, const quern_view *view)
{
    const debt *debts = QUERN_COLUMN(view, 0, const debt);
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity target =
            quern_context_target(context, view->entities[i], main_side.relations[OWES]);
        const debt *same =
            quern_context_edge_value(context, view->entities[i], main_side.relations[OWES], target);
        cr_assert_not_null(same);
        cr_assert_eq(same->amount, debts[i].amount);
        read_sum += (uint64_t)debts[i].amount;
    }
}

static void make_plans(random_source *random)
{
    const quern_term term = quern_term_read(main_side.number);
    quern_query *query = setup_query(main_side.world, &term, 1);
    act in_order[2][MOST];
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(query);
    uint32_t new_count = now.count;
    while (quern_query_next(&walk)) {
        const uint64_t *numbers = QUERN_COLUMN(&walk.view, 0, const uint64_t);
        for (uint32_t i = 0; i < walk.view.count; i++, count++)
            for (uint32_t k = 0; k < 2; k++) {
                act it = pick(random, (uint32_t)numbers[i]);
                /* handles of dead entities are refused when they are recorded */
                if (!now.is_alive[it.target]) it.target = (uint32_t)numbers[(i + 1) % walk.view.count];
                if (it.target == it.source) it = (act){.kind = UNRELATE, .source = it.source};
                if (it.kind == CREATE && new_count == MOST) it.kind = SET;
                if (it.kind == CREATE) it.source = new_count++;
                plans[k][numbers[i]] = in_order[k][count] = it;
            }
    }
    quern_query_destroy(query);
    now.count = new_count;
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < count; i++)
            (void)model_act(&in_order[k][i]);
}

static quern_schedule *open_schedule(void)
{
    quern_schedule *schedule = setup_schedule(main_side.world);
    make_system(schedule, "first", run_first, .terms = {quern_term_read(main_side.number)});
    make_system(schedule, "second", run_second, .terms = {quern_term_read(main_side.number)});
    make_system(schedule, "reader", run_reader, .terms = {quern_term_read(main_side.debts)},
                .relations = {main_side.relations[OWES]}, .lookups = {{.component = main_side.debts}},
                .flags = QUERN_SYSTEM_SERIAL);
    return schedule;
}

/* ---------------------------------------------------------------------------- copies of the world */

static void check_archive(void)
{
    side loaded;
    quern_byte_buffer bytes = {0};
    quern_entity found[MOST] = {{0}};
    open_side(&loaded);
    must(quern_world_save(main_side.world, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(loaded.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    find_all(&loaded, found);
    check_world(&loaded, found, &now, LIVING_WITNESSES);
    cr_assert_eq(quern_world_hash_by(loaded.world, loaded.number),
                 quern_world_hash_by(main_side.world, main_side.number));
    /* once more, to other slots */
    must(quern_world_load(loaded.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    assert_valid(loaded.world);
    quern_byte_buffer_release(&bytes);
    quern_world_destroy(loaded.world);
}

static void follow(quern_history *history, quern_delta_applier *applier, uint64_t from, uint64_t to)
{
    quern_delta *delta;
    quern_byte_buffer bytes = {0};
    must(quern_delta_create(history, from, to, &delta));
    must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    quern_delta_destroy(delta);
    must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
    quern_byte_buffer_release(&bytes);
    assert_valid(follower.world);
}

/* Lets random entities become members of the limited world, or cease to be. */
static void change_members(random_source *random)
{
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t number = random_below(random, now.count);
        if (!now.is_alive[number]) continue;
        if (quern_entity_has(main_side.world, handles[number], main_side.seen))
            must(quern_entity_remove(main_side.world, handles[number], main_side.seen));
        else
            must(quern_entity_add(main_side.world, handles[number], main_side.seen, NULL));
    }
}

static void follow_limited(quern_history *history, quern_delta_applier *applier, quern_query *members,
                           uint64_t to)
{
    static model visible;
    quern_delta *delta;
    quern_byte_buffer bytes = {0};
    quern_entity found[MOST] = {{0}};
    must(quern_delta_create_limited(history, to - 1, to, &(quern_delta_def){.query = members}, &delta));
    must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    quern_delta_destroy(delta);
    must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
    quern_byte_buffer_release(&bytes);
    visible = now;
    for (uint32_t i = 0; i < now.count; i++)
        visible.is_alive[i] =
            now.is_alive[i] && quern_entity_has(main_side.world, handles[i], main_side.seen);
    find_all(&limited, found);
    check_world(&limited, found, &visible, NO_WITNESSES);
}

static void play(uint64_t seed, uint32_t thread_count, uint64_t *out_hashes)
{
    random_source random = {seed};
    quern_jobs *jobs = setup_jobs(thread_count);
    memset(&now, 0, sizeof now);
    next_value = 0;
    open_side(&main_side);
    open_side(&follower);
    open_side(&limited);
    static model saved;
    static quern_entity saved_handles[MOST];
    quern_schedule *schedule = open_schedule();
    quern_history *history;
    quern_delta_applier *applier, *limited_applier;
    const quern_term seen[] = {quern_term_read(main_side.number), quern_term_with(main_side.seen)};
    quern_query *members = setup_query(main_side.world, seen, 2);
    must(quern_delta_applier_create(limited.world, &limited_applier));
    must(quern_history_create(main_side.world, &(quern_history_def){.frame_count = 4}, &history));
    must(quern_delta_applier_create(follower.world, &applier));
    must(quern_history_save(history, 1, jobs));
    uint64_t frame = 1, saved_frame = 0;
    for (uint64_t i = 0; i < FIRST; i++, now.count++) {
        must(quern_entity_create_with(main_side.world, &main_side.number, (const void *[]){&i}, 1,
                                      &handles[i]));
        now.is_alive[i] = true;
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < 6; i++)
            call(pick(&random, random_below(&random, now.count)));
        call_many(&random);
        change_members(&random);
        if (step % 3 == 0) {
            make_plans(&random);
            must_run(schedule, jobs);
            find_all(&main_side, handles);
        }
        check_world(&main_side, handles, &now, ALL_WITNESSES);
        out_hashes[step] = quern_world_hash(main_side.world);
        must(quern_history_save(history, ++frame, jobs));
        follow(history, applier, frame - 1, frame);
        follow_limited(history, limited_applier, members, frame);
        cr_assert_eq(quern_world_hash_by(follower.world, follower.number),
                     quern_world_hash_by(main_side.world, main_side.number), "step %u", step);
        if (step % 7 == 3) {
            saved = now;
            memcpy(saved_handles, handles, sizeof handles);
            saved_frame = frame;
        } else if (step % 7 == 5) {
            must(quern_history_restore(history, saved_frame, jobs));
            check_world(&main_side, saved_handles, &saved, ALL_WITNESSES);
            must(quern_history_restore(history, frame, jobs));
            check_world(&main_side, handles, &now, ALL_WITNESSES);
        }
        if (step % 10 == 9) check_archive();
    }
    quern_query_destroy(members);
    quern_delta_applier_destroy(limited_applier);
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(limited.world);
    quern_world_destroy(follower.world);
    quern_world_destroy(main_side.world);
}

Test(random_edge_values, programs_agree_with_the_model_at_each_number_of_threads)
{
    static uint64_t hashes[POOL_COUNT][STEPS];
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            play(seed, pool_threads[i], hashes[i]);
            for (uint32_t step = 0; step < STEPS; step++)
                cr_assert_eq(hashes[i][step], hashes[0][step], "seed %u, %u threads, step %u",
                             (unsigned)seed, pool_threads[i], step);
        }
}
