/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "ranks_program.h"

enum { MOST_RANKS = 8, MEMBERS = 3 };

static const float member_reach = 0.75f;

/* ------------------------------------------------------------------------------------------- drawing */

program_draw program_draw_from(uint64_t seed)
{
    const uint64_t bits = quern_random(seed, 77);
    return (program_draw){.seed = seed,
                          .planar = bits & 1,
                          .has_trees = bits >> 1 & 1,
                          .has_births = bits >> 2 & 1,
                          .has_deaths = bits >> 3 & 1,
                          .has_jumps = bits >> 4 & 1,
                          .has_globals = bits >> 5 & 1,
                          .has_near = bits >> 6 & 1,
                          .has_far = bits >> 7 & 1,
                          .disables = bits >> 8 & 1,
                          .has_inner = bits >> 9 & 1,
                          .entity_count = 20 + quern_random_below(quern_random(bits, 1), 120),
                          .frame_count = 12 + quern_random_below(quern_random(bits, 2), 12),
                          .balance_every = 1 + quern_random_below(quern_random(bits, 3), 7),
                          .size = 2 + 8 * quern_random_unit(quern_random(bits, 4)),
                          .speed = 0.02f + 0.4f * quern_random_unit(quern_random(bits, 5))};
}

static uint64_t id_of(const program_draw *draw, uint32_t index)
{
    return quern_random(draw->seed, 1000 + index);
}

static program_place place_of(const program_draw *draw, uint64_t bits)
{
    return (program_place){draw->size * quern_random_unit(bits), draw->size * quern_random_unit(bits << 24),
                           draw->planar ? 0 : draw->size * quern_random_unit(quern_random_mix(bits))};
}

static program_place offset_of(uint64_t id)
{
    const uint64_t bits = quern_random(id, 5);
    return (program_place){0.4f * quern_random_signed(bits), 0.4f * quern_random_signed(bits >> 24), 0};
}

/* ------------------------------------------------------------------------------------------- systems */

static uint64_t frame_of(quern_context *context, const program_rank *rank)
{
    const quern_ranks_state *state = quern_context_resource(context, quern_ranks_resource(rank->ranks));
    return state->frame;
}

static void show(quern_context *context, const quern_view *view)
{
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    const program_charge *charges = QUERN_COLUMN(view, 1, const program_charge);
    program_look *looks = QUERN_COLUMN(view, 2, program_look);
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        looks[i] = (program_look){numbers[i].value, charges[i].value, 0};
}

/* Sees all neighbours: a sum of whole numbers, and the one whose mixed number is the greatest, which it may write to. */
static void look(quern_context *context, const quern_view *view)
{
    const program_rank *rank = quern_context_user_data(context);
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    const program_place *places = QUERN_COLUMN(view, 1, const program_place);
    program_mind *minds = QUERN_COLUMN(view, 2, program_mind);
    const quern_grid *grid = quern_context_grid(context, quern_grid_resource(rank->grid));
    const quern_ranks_state *state = quern_context_resource(context, quern_ranks_resource(rank->ranks));
    const quern_grid_cells *cells = quern_grid_get_cells(grid);
    const program_look *looks = cells->payloads;
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t id = numbers[i].value, bits = quern_random(id, state->frame);
        uint64_t seen = 0, best = 0, other = 0;
        quern_grid_iterator near = quern_grid_radius(grid, &places[i].x, 1.0f);
        while (quern_grid_next(&near)) {
            const program_look *found = &looks[near.item - cells->items];
            const uint64_t mixed = quern_random(found->id, bits);
            seen += quern_random(found->id, (uint64_t)found->charge);
            if (found->id == id || mixed <= best) continue;
            best = mixed;
            other = found->id;
        }
        minds[i].seen = quern_random(minds[i].seen, seen);
        if (rank->draw->has_globals)
            minds[i].seen = quern_random(minds[i].seen, (uint64_t)state->globals[bits % 3]);
        quern_ranks_message message = {.from = id, .to = other, .order = bits >> 60 & 1};
        if (rank->draw->has_far && bits % 5 == 0)
            message.to =
                id_of(rank->draw, quern_random_below(quern_random_mix(bits), rank->draw->entity_count));
        if (message.to == 0 || (message.to == other && !rank->draw->has_near)) continue;
        const program_mark mark = {(uint32_t)(bits >> 20)};
        const program_charge charge = {(int32_t)(bits >> 40 & 7)};
        const program_poke poke = {.strength = bits};
        message.component = rank->mark;
        message.value = &mark;
        message.verb = QUERN_RANKS_SET;
        switch (bits >> 8 & 7) {
        case 0:
            message.verb = QUERN_RANKS_REMOVE;
            break;
        case 1:
            message.verb = QUERN_RANKS_ACCUMULATE;
            message.component = rank->charge;
            message.combine = QUERN_SUM;
            message.value = &charge;
            break;
        case 2:
            message.verb = QUERN_RANKS_EMIT;
            message.event = rank->poke;
            message.value = &poke;
            break;
        case 3:
            if (rank->draw->has_deaths && (bits >> 12) % 4 == 0) message.verb = QUERN_RANKS_DESTROY;
            break;
        default:
            break;
        }
        cr_assert(quern_ranks_send(context, rank->ranks, &message), "%s", quern_error_message());
        message.order = 1; /* a second one, after the first */
        if (message.verb == QUERN_RANKS_EMIT) cr_assert(quern_ranks_send(context, rank->ranks, &message));
    }
}

/* While ghosts are on their way: changes what no other rank sees, and sends messages. */
static void ponder(quern_context *context, const quern_view *view)
{
    const program_rank *rank = quern_context_user_data(context);
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    program_mind *minds = QUERN_COLUMN(view, 1, program_mind);
    program_charge *charges = QUERN_COLUMN(view, 2, program_charge);
    const uint64_t frame = frame_of(context, rank);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t bits = quern_random(numbers[i].value, frame + 1300);
        const program_mark mark = {(uint32_t)bits};
        const quern_ranks_message message = {
            .verb = QUERN_RANKS_SET,
            .order = 2,
            .from = numbers[i].value,
            .to = id_of(rank->draw, quern_random_below(quern_random_mix(bits), rank->draw->entity_count)),
            .component = rank->mark,
            .value = &mark};
        charges[i].value += (int32_t)(bits & 1);
        minds[i].felt = quern_random(minds[i].felt, (uint64_t)charges[i].value);
        if (bits % 11 == 0) cr_assert(quern_ranks_send(context, rank->ranks, &message));
    }
}

_Atomic uint64_t program_felt_count;

/* Events change a mind in their order. */
static void feel(quern_context *context, const quern_view *view)
{
    const program_rank *rank = quern_context_user_data(context);
    const program_poke *pokes = QUERN_EVENTS(view, program_poke);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        program_mind *mind = quern_context_lookup_write(context, pokes[i].entity, rank->mind);
        if (mind == NULL) continue;
        mind->felt = quern_random(mind->felt, pokes[i].strength);
        program_felt_count++;
    }
}

static float bounce(float at, float size)
{
    return at < 0 ? 0 : at > size ? size : at;
}

static void move(quern_context *context, const quern_view *view)
{
    const program_rank *rank = quern_context_user_data(context);
    const program_draw *draw = rank->draw;
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    program_place *places = QUERN_COLUMN(view, 1, program_place);
    const uint64_t frame = frame_of(context, rank);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t bits = quern_random(numbers[i].value, frame + 500);
        places[i].x = bounce(places[i].x + draw->speed * quern_random_signed(bits), draw->size);
        places[i].y = bounce(places[i].y + draw->speed * quern_random_signed(bits >> 24), draw->size);
        if (!draw->planar)
            places[i].z =
                bounce(places[i].z + draw->speed * quern_random_signed(quern_random_mix(bits)), draw->size);
        if (draw->has_jumps && quern_random_below(quern_random(bits, 1), 16) == 0)
            places[i] = place_of(draw, quern_random(bits, 2));
    }
}

static void follow(quern_context *context, const quern_view *view)
{
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    program_place *places = QUERN_COLUMN(view, 1, program_place);
    const program_place *const *roots = QUERN_UP(view, 2, program_place);
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const program_place offset = offset_of(numbers[i].value);
        places[i] = (program_place){roots[i]->x + offset.x, roots[i]->y + offset.y, roots[i]->z + offset.z};
    }
}

static void create(quern_commands *commands, const program_rank *rank, uint64_t id, program_place place,
                   quern_entity *out_entity)
{
    const quern_component components[] = {rank->number, rank->place, rank->look, rank->charge, rank->mind};
    const program_number number = {id};
    const program_look shown = {id, 3, 0};
    const program_charge charge = {3};
    const program_mind mind = {id, 0};
    const void *const values[] = {&number, &place, &shown, &charge, &mind};
    must(quern_commands_create_with(commands, components, values, 5, out_entity));
}

static void live(quern_context *context, const quern_view *view)
{
    const program_rank *rank = quern_context_user_data(context);
    const program_number *numbers = QUERN_COLUMN(view, 0, const program_number);
    const program_place *places = QUERN_COLUMN(view, 1, const program_place);
    quern_commands *commands = quern_context_commands(context);
    const uint64_t frame = frame_of(context, rank);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t id = numbers[i].value, bits = quern_random(id, frame + 900);
        if (rank->draw->has_births && bits % 23 == 0)
            create(commands, rank, quern_ranks_child_id(id, frame, 0), places[i], NULL);
        if (((bits >> 8) & 15) != 0) continue;
        if (rank->draw->has_deaths && (bits >> 16) % 3 == 0)
            must(quern_commands_destroy(commands, view->entities[i]));
        else if (rank->draw->disables && (bits >> 20) % 2 == 0)
            must(quern_commands_set_enabled(commands, view->entities[i], false));
    }
}

/* --------------------------------------------------------------------------------------------- world */

static int64_t charge_value(const void *charge)
{
    return ((const program_charge *)charge)->value;
}

static void add_systems(program_rank *rank, quern_schedule *schedule)
{
    const quern_term number = quern_term_read(rank->number);
    const quern_resource_access state = {quern_ranks_resource(rank->ranks), QUERN_ACCESS_READ};
    const quern_system_def systems[] = {
        {.name = "feel", .run = feel, .items = rank->poke, .write_lookups = {{.component = rank->mind}}},
        {.name = "look",
         .phase = 2,
         .run = look,
         .terms = {number, quern_term_read(rank->place), quern_term_write(rank->mind)},
         .resources = {{quern_grid_resource(rank->grid), QUERN_ACCESS_READ}, state},
         .emits = {quern_ranks_messages(rank->ranks)}},
        {.name = "move",
         .phase = 3,
         .run = move,
         .terms = {number, quern_term_write(rank->place),
                   quern_term_without(quern_relation_component(rank->parent))},
         .resources = {state}},
        {.name = "follow",
         .phase = 4,
         .run = follow,
         .terms = {number, quern_term_write(rank->place), quern_term_up(rank->place, rank->parent)},
         .levels = rank->parent},
        {.name = "show",
         .phase = 4,
         .run = show,
         .terms = {number, quern_term_read(rank->charge), quern_term_write(rank->look)}},
        {.name = "live",
         .phase = 4,
         .run = live,
         .terms = {number, quern_term_read(rank->place)},
         .resources = {state}}};
    must(quern_grid_add_systems(rank->grid, schedule, 1));
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        quern_system_def system = systems[i];
        system.user_data = rank;
        must(quern_schedule_add_system(schedule, &system, NULL));
    }
}

static void add_inner(program_rank *rank)
{
    const quern_system_def ponders = {.name = "ponder",
                                      .run = ponder,
                                      .terms = {quern_term_read(rank->number), quern_term_write(rank->mind),
                                                quern_term_write(rank->charge)},
                                      .resources = {{quern_ranks_resource(rank->ranks), QUERN_ACCESS_READ}},
                                      .emits = {quern_ranks_messages(rank->ranks)},
                                      .user_data = rank};
    must(quern_schedule_create(rank->world, NULL, &rank->inner));
    must(quern_schedule_add_system(rank->inner, &ponders, NULL));
    must(quern_ranks_overlap(rank->ranks, rank->inner));
}

void program_open(program_rank *rank, const program_draw *draw, const quern_ranks_def *base,
                  quern_jobs *jobs)
{
    const quern_schedule_def phases = {.phases = {"feel", "grid", "look", "move", "end"}};
    *rank = (program_rank){.draw = draw};
    must(quern_world_create(NULL, &rank->world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->number, program_number, value));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->place, program_place, x, y, z));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->look, program_look, id, charge, reserved));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->charge, program_charge, value));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->mind, program_mind, seen, felt));
    must(QUERN_COMPONENT_REGISTER_FIELDS(rank->world, &rank->mark, program_mark, value));
    must(QUERN_EVENT_REGISTER_FIELDS(rank->world, &rank->poke, program_poke, entity, strength));
    rank->parent = quern_world_parent(rank->world);
    const quern_grid_def grid = {
        .position = rank->place, .planar = draw->planar, .cell_size = 1, .payload = rank->look};
    must(quern_grid_create(rank->world, &grid, &rank->grid));
    quern_ranks_def def = *base;
    def.world = rank->world;
    def.id = rank->number;
    def.position = rank->place;
    def.planar = draw->planar;
    def.radius = 1;
    def.reach = draw->has_trees ? member_reach : 0;
    def.ghost[0] = rank->look;
    def.ghost[1] = rank->mark;
    if (draw->has_trees) def.holds[0] = rank->parent;
    if (draw->has_globals) {
        def.globals[0] = (quern_ranks_global){QUERN_RANKS_SUM, rank->charge, charge_value};
        def.globals[1] = (quern_ranks_global){QUERN_RANKS_MAXIMUM, rank->charge, charge_value};
        def.globals[2] = (quern_ranks_global){QUERN_RANKS_SUM, rank->mark, NULL};
    }
    def.balance_every = draw->balance_every;
    must(quern_ranks_create(&def, &rank->ranks));
    must(quern_schedule_create(rank->world, &phases, &rank->schedule));
    add_systems(rank, rank->schedule);
    if (draw->has_inner) add_inner(rank);
    must(quern_ranks_start(rank->ranks, rank->schedule, jobs, 0.1));
}

void program_populate(const program_rank *rank)
{
    const program_draw *draw = rank->draw;
    quern_commands *commands = quern_world_commands(rank->world);
    for (uint32_t i = 0; i < draw->entity_count; i++) {
        const uint64_t id = id_of(draw, i);
        const program_place place = place_of(draw, quern_random(id, 3));
        quern_entity root;
        if (!quern_ranks_creates(rank->ranks, i)) continue;
        create(commands, rank, id, place, &root);
        if (!draw->has_trees || i % 4 != 0) continue;
        for (uint32_t k = 0; k < MEMBERS; k++) {
            quern_entity member;
            create(commands, rank, quern_random(id, k + 50), place, &member);
            must(quern_commands_relate(commands, member, rank->parent, root));
            must(quern_commands_set_name(commands, member, k == 0 ? "first" : k == 1 ? "second" : "third"));
        }
    }
    must(quern_world_flush(rank->world));
}

void program_close(program_rank *rank)
{
    quern_ranks_destroy(rank->ranks);
    quern_schedule_destroy(rank->schedule);
    quern_schedule_destroy(rank->inner);
    quern_grid_destroy(rank->grid);
    quern_world_destroy(rank->world);
}

uint64_t program_hash(const program_draw *draw, const program_run *run, quern_ranks_stats *out_stats)
{
    program_rank ranks[MOST_RANKS];
    quern_ranks *list[MOST_RANKS];
    quern_ranks_alone *alone;
    quern_jobs *jobs = NULL;
    uint64_t hash = 0;
    const uint32_t count = run->rank_count > 0 ? run->rank_count : 1;
    if (run->thread_count > 0)
        must(quern_jobs_create(&(quern_jobs_def){.thread_count = run->thread_count}, &jobs));
    must(quern_ranks_alone_create(count, NULL, &alone));
    if (run->network != NULL) must(quern_ranks_alone_set_network(alone, run->network));
    for (uint32_t i = 0; i < count; i++) {
        quern_ranks_def base = {.folder = run->folder,
                                .checkpoint_every = run->folder != NULL ? 5 : 0,
                                .restart = run->restart};
        must(quern_ranks_alone_transport(alone, i, &base.transport));
        program_open(&ranks[i], draw, &base, jobs);
        if (!run->restart) program_populate(&ranks[i]);
        list[i] = ranks[i].ranks;
    }
    const uint64_t until = run->until > 0 ? run->until : draw->frame_count;
    if (run->network != NULL) must(quern_ranks_run_all(list, count, 0, NULL));
    const double begin_seconds = quern_ranks_alone_seconds(alone);
    must(quern_ranks_run_all(list, count, until - quern_ranks_frame(list[0]), &hash));
    if (run->out_seconds != NULL) *run->out_seconds = quern_ranks_alone_seconds(alone) - begin_seconds;
    if (out_stats != NULL) must(quern_ranks_get_stats(list[0], NULL, out_stats));
    for (uint32_t i = 0; i < count; i++)
        program_close(&ranks[i]);
    quern_ranks_alone_destroy(alone);
    quern_jobs_destroy(jobs);
    return hash;
}
