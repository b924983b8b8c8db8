/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "sched/schedule/schedule_plan.h"

/* Three orders: of the systems, of the views of a pass with levels, and of the passes of a segment (compile.h). */

/* Working memory for ordering. Indices count systems in order of registration. */
typedef struct order_graph {
    uint32_t count;
    /* Rules, each once, ascending by first system, then second. first_rules[i]: index of the first rule whose first
     * system is not before i; one entry more than systems. */
    quern__order_pair *rules;
    uint32_t rule_count;
    uint32_t *first_rules;
    uint32_t *waiting_counts;  /* per system: its predecessors that are not placed yet */
    uint32_t *members;         /* systems by group, then in order of registration */
    uint64_t *ready;           /* bit set of the systems of the current group without such predecessors */
    uint64_t *placed;          /* bit set */
    uint32_t first_ready_word; /* all words of `ready` before this one are 0 */
    uint32_t group_ends[2 * QUERN_MAX_PHASES];
} order_graph;

/* ------------------------------------------------------------------------------------------- rules */

/* The systems that a rule orders: one, or those of a set. */
typedef struct rule_side {
    quern__system *const *systems;
    uint32_t count;
    const char *set; /* NULL: one system */
} rule_side;

static rule_side side_of_set(const quern__set *set)
{
    return (rule_side){set->members.items, set->members.count, set->name};
}

/* Returns whether a rule orders two systems: those of different phases are in order already, and reactions are not ordered
 * among other systems. Only a rule that names a set may have such pairs. */
static bool is_ordered(const quern__system *system, const quern__system *other)
{
    return system->phase == other->phase && (system->reaction != NULL) == (other->reaction != NULL);
}

static quern_result fail_set_rule(const quern__plan *plan, const quern__system *system, const char *word,
                                  const quern__system *other, const char *name)
{
    if (other == system)
        return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                           "system '%s' is to run %s '%s', to which it belongs: a system is on one side of "
                           "a rule; take it "
                           "out of a set",
                           system->name, word, name);
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                       "system '%s' (phase '%s') is to run %s '%s' (phase '%s') by a rule of a set, "
                       "against the order of the "
                       "phases: change the rule, the set or a phase",
                       system->name, plan->phases[system->phase].name, word, other->name,
                       plan->phases[other->phase].name);
}

/* Fails for a rule whose name neither a system nor a set has. */
static quern_result fail_unknown_name(const quern__plan *plan, const rule_side *side,
                                      const quern__order_rule *rule)
{
    const quern__system *system = side->set == NULL ? side->systems[0] : NULL;
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < plan->systems.count; i++)
        if (plan->systems.items[i] != system)
            quern_suggestion_offer(&suggestion, rule->name, strlen(rule->name),
                                   plan->systems.items[i]->name);
    for (uint32_t i = 0; i < plan->sets.count; i++)
        quern_suggestion_offer(&suggestion, rule->name, strlen(rule->name), plan->sets.items[i]->name);
    return quern__fail(
        QUERN_ERROR_UNKNOWN_SYSTEM,
        "%s '%s' is to run %s '%s', which the schedule does not have: add that system or set, or "
        "remove the rule%s",
        system == NULL ? "set" : "system", system == NULL ? side->set : system->name,
        rule->sees_commands ? "after the commands of"
        : rule->is_before   ? "before"
                            : "after",
        rule->name, suggestion.text);
}

static quern_result check_pair(const quern__plan *plan, const rule_side *side, const quern__system *system,
                               const quern__order_rule *rule, const rule_side *other_side,
                               const quern__system *other)
{
    const char *word = rule->sees_commands ? "after the commands of" : rule->is_before ? "before" : "after";
    const bool is_of_set = side->set != NULL || other_side->set != NULL;
    if (rule->sees_commands && system->reaction != NULL && (other->reaction != NULL || !is_of_set))
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "reaction '%s' is to run after the commands of '%s': reactions of one round all see "
            "the same state; use after",
            system->name, other->name);
    if (is_of_set) {
        const bool is_against =
            rule->is_before ? other->phase < system->phase : other->phase > system->phase;
        const bool is_reaction = system->reaction != NULL || other->reaction != NULL;
        if (other != system && (!is_against || is_reaction)) return QUERN_OK;
        return fail_set_rule(plan, system, word, other, rule->name);
    }
    if (other->phase != system->phase || other == system)
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' (phase '%s') is to run %s '%s' (phase '%s'): before and after order different "
            "systems of one phase",
            system->name, plan->phases[system->phase].name, word, other->name,
            plan->phases[other->phase].name);
    if ((system->reaction != NULL) == (other->reaction != NULL)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_SCHEDULE_CONFLICT,
        "system '%s' is to run %s '%s', and only one of them is a reaction: reactions run at sync "
        "points, and are ordered among themselves",
        system->name, word, other->name);
}

/* What is done with the pairs of systems that rules order: they are counted and, if pairs is not NULL, listed as indices of
 * registration; or, when the systems have their positions, it is noted which commands a system must see. */
typedef struct rule_walk {
    quern__order_pair *pairs;
    uint64_t count; /* a rule between two sets has a pair for each pair of their systems */
    bool notes_syncs;
} rule_walk;

/* Pairs of all rules: a gigabyte of working memory. */
enum { MOST_PAIRS = 1 << 26 };

static void visit_pair(const quern__plan *plan, rule_walk *walk, const quern__order_rule *rule,
                       quern__system *system, quern__system *other)
{
    const quern__system *first = rule->is_before ? system : other;
    quern__system *second = rule->is_before ? other : system;
    if (walk->pairs != NULL) walk->pairs[walk->count] = (quern__order_pair){first->index, second->index};
    walk->count++;
    const bool needs_sync = rule->sees_commands || plan->phases[system->phase].syncs_between;
    if (walk->notes_syncs && needs_sync && system->reaction == NULL &&
        first->position >= second->sync_after)
        second->sync_after = first->position + 1;
}

static quern_result expand_rules(const quern__plan *plan, rule_walk *walk, const rule_side *side,
                                 const quern__order_rules *rules)
{
    for (uint32_t r = 0; r < rules->count; r++) {
        const quern__order_rule *rule = &rules->items[r];
        quern__system *one = quern__plan_find_system(plan, rule->name);
        const quern__set *set = one == NULL ? quern__plan_find_set(plan, rule->name) : NULL;
        if (one == NULL && set == NULL) return fail_unknown_name(plan, side, rule);
        const rule_side other_side = set != NULL ? side_of_set(set) : (rule_side){&one, 1, NULL};
        for (uint32_t i = 0; i < side->count; i++)
            for (uint32_t k = 0; k < other_side.count; k++) {
                quern__system *system = side->systems[i], *other = other_side.systems[k];
                const quern_result result = check_pair(plan, side, system, rule, &other_side, other);
                if (result != QUERN_OK) return result;
                if (is_ordered(system, other)) visit_pair(plan, walk, rule, system, other);
            }
    }
    return QUERN_OK;
}

/* Visits the pairs of all rules: those of systems, then those of sets. */
static quern_result walk_rules(const quern__plan *plan, rule_walk *walk)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < plan->systems.count && result == QUERN_OK; i++) {
        const rule_side side = {&plan->systems.items[i], 1, NULL};
        result = expand_rules(plan, walk, &side, &plan->systems.items[i]->rules);
    }
    for (uint32_t i = 0; i < plan->sets.count && result == QUERN_OK; i++) {
        const rule_side side = side_of_set(plan->sets.items[i]);
        result = expand_rules(plan, walk, &side, &plan->sets.items[i]->rules);
    }
    return result;
}

/* Moves the rules to `sorted`, by first or by second system; rules with the same such system keep their order. ends:
 * scratch memory for one number more than systems; ends[i] becomes the index of the first rule from system i on. */
static void sort_rules(const quern__order_pair *rules, uint32_t rule_count, bool by_first,
                       uint32_t system_count, uint32_t *ends, quern__order_pair *sorted)
{
    memset(ends, 0, (system_count + 1) * sizeof *ends);
    for (uint32_t i = 0; i < rule_count; i++)
        ends[by_first ? rules[i].first : rules[i].second]++;
    uint32_t sum = 0;
    for (uint32_t i = 0; i <= system_count; i++) {
        sum += ends[i];
        ends[i] = sum;
    }
    for (uint32_t i = rule_count; i-- > 0;)
        sorted[--ends[by_first ? rules[i].first : rules[i].second]] = rules[i];
}

/* ------------------------------------------------------------------------------------------- order */

/* Fails with a message that names the systems of a cycle. No system of the group is ready, so each has an unplaced
 * predecessor: following the first of these must reach a cycle. stuck: a system of the group. */
static quern_result fail_cycle(const quern__plan *plan, const order_graph *graph, uint32_t stuck)
{
    uint32_t *predecessors = graph->members; /* no longer needed */
    for (uint32_t i = graph->rule_count; i-- > 0;)
        if (!quern__bitset_has(graph->placed, graph->rules[i].first))
            predecessors[graph->rules[i].second] = graph->rules[i].first;
    for (uint32_t i = 0; i < graph->count; i++) /* after `count` steps, `stuck` is on the cycle */
        stuck = predecessors[stuck];
    char text[384] = "";
    quern__append(text, sizeof text, "'%s'", plan->systems.items[stuck]->name);
    uint32_t i = stuck;
    do {
        i = predecessors[i];
        quern__append(text, sizeof text, " after '%s'", plan->systems.items[i]->name);
    } while (i != stuck);
    return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                       "before and after form a cycle: %s; remove one of these rules", text);
}

static void add_ready(order_graph *graph, uint32_t system)
{
    quern__bitset_add(graph->ready, system);
    if (system / 64 < graph->first_ready_word) graph->first_ready_word = system / 64;
}

/* Removes and returns the ready system that was registered first, or returns UINT32_MAX. */
static uint32_t pop_ready(order_graph *graph)
{
    const uint32_t word_count = QUERN__BITSET_WORDS(graph->count);
    uint32_t word = graph->first_ready_word;
    while (word < word_count && graph->ready[word] == 0)
        word++;
    graph->first_ready_word = word;
    return word < word_count ? 64 * word + quern__bitset_pop_lowest(&graph->ready[word]) : UINT32_MAX;
}

/* Appends the systems of a group to the order: each time, the first by registration whose predecessors are placed. */
static quern_result order_group(quern__plan *plan, order_graph *graph, const uint32_t *members,
                                uint32_t count)
{
    const uint32_t end = plan->order.count + count;
    for (uint32_t i = 0; i < count; i++)
        if (graph->waiting_counts[members[i]] == 0) add_ready(graph, members[i]);
    for (uint32_t next; (next = pop_ready(graph)) != UINT32_MAX;) {
        quern__bitset_add(graph->placed, next);
        quern__system *system = plan->systems.items[next];
        system->position = plan->order.count;
        system->group_first = system->reaction != NULL ? graph->count - plan->reaction_count : end - count;
        plan->order.items[plan->order.count++] = system;
        for (uint32_t i = graph->first_rules[next]; i < graph->first_rules[next + 1]; i++)
            if (--graph->waiting_counts[graph->rules[i].second] == 0)
                add_ready(graph, graph->rules[i].second);
    }
    if (plan->order.count == end) return QUERN_OK;
    uint32_t last = count - 1;
    while (quern__bitset_has(graph->placed, members[last]))
        last--;
    return fail_cycle(plan, graph, members[last]);
}

/* Groups are ordered one after another: the systems of each phase, then the reactions of each phase. */
static uint32_t group_of(const quern__plan *plan, const quern__system *system)
{
    return (system->reaction != NULL ? plan->phase_count : 0) + system->phase;
}

static quern_result order_systems(quern__plan *plan, order_graph *graph, quern__order_pair *scratch)
{
    quern__order_pair *rules = graph->rules;
    rule_walk listing = {.pairs = rules};
    quern_result result = walk_rules(plan, &listing);
    if (result != QUERN_OK) return result;
    assert(listing.count == graph->rule_count);
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    /* Remove the rules that were declared twice: equal rules are adjacent. */
    rules = graph->rules;
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < graph->rule_count; i++) {
        const quern__order_pair *last = &rules[kept_count > 0 ? kept_count - 1 : 0];
        if (kept_count == 0 || last->first != rules[i].first || last->second != rules[i].second)
            rules[kept_count++] = rules[i];
    }
    graph->rule_count = kept_count;
    /* Once more, for first_rules without the repeated rules. */
    memcpy(scratch, graph->rules, graph->rule_count * sizeof *scratch);
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    for (uint32_t i = 0; i < graph->rule_count; i++)
        graph->waiting_counts[graph->rules[i].second]++;
    const uint32_t group_count = 2 * plan->phase_count;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->group_ends[group_of(plan, plan->systems.items[i])]++;
    for (uint32_t group = 1; group < group_count; group++)
        graph->group_ends[group] += graph->group_ends[group - 1];
    uint32_t next[2 * QUERN_MAX_PHASES] = {0};
    memcpy(next + 1, graph->group_ends, (group_count - 1) * sizeof *next);
    for (uint32_t i = 0; i < graph->count; i++)
        graph->members[next[group_of(plan, plan->systems.items[i])]++] = i;
    plan->order.count = 0;
    uint32_t first = 0;
    for (uint32_t group = 0; group < 2 * plan->phase_count && result == QUERN_OK; group++) {
        const uint32_t end = graph->group_ends[group];
        result = order_group(plan, graph, graph->members + first, end - first);
        first = end;
    }
    /* Replaces the registration indices of the listed rules by positions, and sorts the rules by later
     * system, then earlier one. */
    if (result != QUERN_OK) return result;
    quern__system *const *systems = plan->systems.items;
    for (uint32_t i = 0; i < graph->rule_count; i++)
        scratch[i] = (quern__order_pair){systems[graph->rules[i].first]->position,
                                         systems[graph->rules[i].second]->position};
    sort_rules(scratch, graph->rule_count, true, graph->count, graph->first_rules, graph->rules);
    sort_rules(graph->rules, graph->rule_count, false, graph->count, graph->first_rules, plan->rules.items);
    plan->rules.count = graph->rule_count;
    return QUERN_OK;
}

quern_result quern__order_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = plan->systems.count;
    rule_walk counting = {.pairs = NULL}, noting = {.notes_syncs = true};
    const quern_result counted = walk_rules(plan, &counting);
    if (counted != QUERN_OK) return counted;
    if (counting.count > MOST_PAIRS)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "the rules of systems and sets order %llu pairs of systems, more than %d: use phases, or "
            "smaller sets",
            (unsigned long long)counting.count, MOST_PAIRS);
    const uint32_t rule_count = (uint32_t)counting.count;
    /* Working memory: the bit sets, then the rules twice, then the numbers. */
    const size_t bytes = (size_t)2 * QUERN__BITSET_WORDS(count) * sizeof(uint64_t) +
                         2 * (size_t)rule_count * sizeof(quern__order_pair) +
                         (3 * (size_t)count + 1) * sizeof(uint32_t);
    void *memory = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    if (memory == NULL || !quern__array_reserve(allocator, &plan->order, count) ||
        !quern__array_reserve(allocator, &plan->rules, rule_count)) {
        quern__release(allocator, memory, bytes, _Alignof(uint64_t));
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order %u systems", count);
    }
    memset(memory, 0, bytes);
    order_graph graph = {.count = count, .rule_count = rule_count, .ready = memory};
    graph.placed = graph.ready + QUERN__BITSET_WORDS(count);
    graph.rules = (void *)(graph.placed + QUERN__BITSET_WORDS(count));
    quern__order_pair *scratch = graph.rules + rule_count;
    graph.first_rules = (void *)(scratch + rule_count);
    graph.waiting_counts = graph.first_rules + count + 1;
    graph.members = graph.waiting_counts + count;
    const quern_result result = order_systems(plan, &graph, scratch);
    quern__release(allocator, memory, bytes, _Alignof(uint64_t));
    for (uint32_t i = 0; i < count; i++)
        plan->systems.items[i]->sync_after = 0;
    return result == QUERN_OK ? walk_rules(plan, &noting) : result;
}

/* ------------------------------------------------------------------------------------------------ levels */

static quern_result fail_memory(const quern__pass *pass)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order the views of system '%s' by level",
                       pass->systems.items[0]->name);
}

/* ------------------------------------------------------------------------------------ order of tables */

static bool is_level_ordered(const quern__pass_call *call)
{
    return call->system->levels != NULL && call->system->is_enabled;
}

/* Returns the level of the table's stage: 0 if no enabled call is level-ordered. */
static uint32_t level_of(const quern__pass_table *table)
{
    for (const quern__pass_call *call = table->calls; call < table->calls_end; call++)
        if (is_level_ordered(call)) return table->level;
    return 0;
}

/* Makes a stage of the chunks from first_chunk on. */
static void stage_chunks_from(quern__pass *pass, uint32_t first_chunk, bool is_deep)
{
    pass->stages[pass->stage_count++] = (quern__pass_stage){.pass = pass,
                                                            .first_chunk = first_chunk,
                                                            .chunk_count = pass->chunk_count - first_chunk,
                                                            .is_deep = is_deep};
}

/* --------------------------------------------------------------------------------------- the last level */

/* Lists the slots of the entities on the last level that have a target on another level. */
static void list_top_slots(quern__pass *pass, const quern__storage *storage, const quern__component *tag)
{
    const quern__links *links = &pass->levels->links;
    for (uint32_t i = 0; i < tag->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[tag->archetypes.items[i]];
        for (uint32_t chunk = 0; chunk < archetype->chunk_count; chunk++) {
            const quern__chunk_slot *slot = &archetype->slots[chunk];
            const quern_entity *entities = quern__archetype_entities(archetype, quern__slot_chunk(slot));
            for (uint32_t row = 0; row < slot->row_count; row++) {
                const uint32_t index = quern_entity_index(entities[row]);
                if (quern__links_level(links, quern__links_target(links, index)) < QUERN_MAX_RELATION_LEVEL)
                    pass->deep_slots.items[pass->deep_slots.count++] = index;
            }
        }
    }
}

/* Returns the index in tables_by_level of the archetype's table on the last level, or UINT32_MAX. Binary
 * search: the tables of a level are sorted by archetype. */
static uint32_t find_deep_table(const quern__pass *pass, const quern__archetype *archetype)
{
    uint32_t low = pass->ordered_table_count, high = pass->tables_by_level.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (pass->tables_by_level.items[middle]->archetype->index < archetype->index)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_there =
        low < pass->tables_by_level.count && pass->tables_by_level.items[low]->archetype == archetype;
    return is_there ? low : UINT32_MAX;
}

/* Lists the location of the slot's entity as a key: table, chunk, row. Omits an entity if its archetype has
 * no table. */
static void list_row(quern__pass *pass, const quern__storage *storage, uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const uint32_t table = find_deep_table(pass, archetype);
    if (table == UINT32_MAX) return;
    const uint32_t chunk = quern__chunk_index_at(&archetype->shape, record->location);
    const uint32_t row = quern__location_row(&archetype->shape, record->location);
    pass->deep_rows.items[pass->deep_rows.count++].key =
        (uint64_t)table << 48 | (uint64_t)chunk << 16 | row; /* fit: 65,536 archetypes, 16 KiB chunks */
}

/* Converts the listed rows, which have the same depth, to row ranges, and empties the list. */
static void add_ranges(quern__pass *pass)
{
    const quern__sort_item *rows = pass->deep_rows.items;
    quern__sort(pass->deep_rows.items, pass->sort_scratch.items, pass->deep_rows.count);
    for (uint32_t i = 0; i < pass->deep_rows.count; i++)
        if (i > 0 && rows[i].key == rows[i - 1].key + 1)
            pass->deep_ranges.items[pass->deep_ranges.count - 1].count++;
        else {
            const quern__deep_range range = {.table = (uint32_t)(rows[i].key >> 48),
                                             .chunk_index = (uint32_t)(rows[i].key >> 16),
                                             .first_row = (uint16_t)rows[i].key,
                                             .count = 1};
            pass->deep_ranges.items[pass->deep_ranges.count++] = range;
            pass->tables_by_level.items[range.table]->deep_range_count++;
        }
    pass->deep_rows.count = 0;
}

static quern_result arrange_deep(quern__pass *pass)
{
    const quern__storage *storage = &pass->plan->world->storage;
    const uint32_t tag_index = quern__relation_tag(pass->levels, QUERN_MAX_RELATION_LEVEL);
    const quern__component *tag = storage->components.list.items[tag_index];
    /* The entities on the last level of the relation, in all archetypes. */
    uint64_t count = 0;
    for (uint32_t i = 0; i < tag->archetypes.count; i++)
        count += quern__archetype_row_count(storage->archetypes.items[tag->archetypes.items[i]]);
    /* fits 32 bits: a world has fewer than 2^32 slots */
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    if (!quern__array_reserve(allocator, &pass->deep_slots, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->deep_rows, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->sort_scratch, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->deep_ranges, (uint32_t)count))
        return fail_memory(pass);
    pass->deep_slots.count = pass->deep_rows.count = pass->deep_ranges.count = 0;
    list_top_slots(pass, storage, tag);
    /* Build deep_ranges depth by depth: the sources of the entities at one depth are the entities at the next. */
    const quern__links *links = &pass->levels->links;
    for (uint32_t next = 0; next < pass->deep_slots.count;) {
        const uint32_t end = pass->deep_slots.count;
        for (; next < end; next++) {
            const uint32_t slot = pass->deep_slots.items[next];
            list_row(pass, storage, slot);
            for (uint32_t child = quern__links_first(links, slot); child != QUERN__SLOT_NONE;
                 child = quern__links_at(links, child)->next)
                pass->deep_slots.items[pass->deep_slots.count++] = child;
        }
        add_ranges(pass);
    }
    /* Number the views that level-ordered systems have on the last level, after their other views. */
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->first_deep_ordinal = pass->systems.items[i]->view_count;
    for (uint32_t i = pass->ordered_table_count; i < pass->tables_by_level.count; i++) {
        const quern__pass_table *table = pass->tables_by_level.items[i];
        for (const quern__pass_call *call = table->calls; call < table->calls_end; call++)
            if (is_level_ordered(call)) call->system->view_count += table->deep_range_count;
    }
    stage_chunks_from(pass, pass->chunk_count, true);
    pass->links_version = pass->levels->links.version;
    return QUERN_OK;
}

quern_result quern__levels_arrange(quern__pass *pass)
{
    uint32_t ends[QUERN__LEVEL_COUNT];
    if (!quern__array_reserve(quern__plan_allocator(pass->plan), &pass->tables_by_level,
                              pass->filled_tables.count))
        return fail_memory(pass);
    /* Sort the tables that have chunks by level. ends[level]: index after the last table of the level. */
    uint32_t places[QUERN__LEVEL_COUNT + 1] = {0};
    for (uint32_t i = 0; i < pass->filled_tables.count; i++)
        places[level_of(pass->filled_tables.items[i]) + 1]++;
    for (uint32_t level = 0; level < QUERN__LEVEL_COUNT; level++)
        ends[level] = places[level + 1] += places[level];
    for (uint32_t i = 0; i < pass->filled_tables.count; i++) {
        quern__pass_table *table = pass->filled_tables.items[i];
        pass->tables_by_level.items[places[level_of(table)]++] = table;
    }
    pass->tables_by_level.count = ends[QUERN_MAX_RELATION_LEVEL];
    /* Number the chunks in iteration order, and add one stage per level. In a serial pass, one job runs all
     * levels but the last, as one stage. */
    uint32_t table = 0;
    pass->stage_count = 0;
    pass->chunk_count = 0;
    for (uint32_t level = 0; level < QUERN_MAX_RELATION_LEVEL; level++) {
        const uint32_t first_chunk = pass->chunk_count;
        for (; table < ends[level]; table++) {
            pass->tables_by_level.items[table]->first_chunk = pass->chunk_count;
            pass->chunk_count += pass->tables_by_level.items[table]->chunk_count;
        }
        if (pass->kind == QUERN__PASS_CHUNKS && pass->chunk_count > first_chunk)
            stage_chunks_from(pass, first_chunk, false);
    }
    if (pass->stage_count == 0) stage_chunks_from(pass, 0, false);
    pass->ordered_tables = pass->tables_by_level.items;
    pass->ordered_table_count = table;
    return pass->tables_by_level.count > pass->ordered_table_count ? arrange_deep(pass) : QUERN_OK;
}

/* -------------------------------------------------------------------------- grouping systems into passes */

bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system)
{
    return pass->levels == NULL || system->levels == NULL || pass->levels == system->levels;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern__pass *create_pass(quern__plan *plan, const quern__system *first)
{
    quern__pass *pass = quern__allocate(quern__plan_allocator(plan), sizeof *pass, _Alignof(quern__pass));
    if (pass == NULL) return NULL;
    *pass = (quern__pass){.plan = plan, .kind = QUERN__PASS_CHUNKS, .run_node_count = 1};
    if (first->events.items != NULL) pass->kind = QUERN__PASS_EVENTS;
    if (first->query.order != NULL) pass->kind = QUERN__PASS_ORDERED;
    if (quern__system_has_flag(first, QUERN_SYSTEM_SERIAL)) pass->kind = QUERN__PASS_SERIAL;
    if (first->query.term_count == 0 && first->events.items == NULL) pass->kind = QUERN__PASS_ONCE;
    return pass;
}

static bool add_to_pass(quern__pass *pass, quern__system *system)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    if (!quern__array_reserve(allocator, &pass->systems, pass->systems.count + 1)) return false;
    pass->systems.items[pass->systems.count++] = system;
    pass->has_begin |= system->begin != NULL || quern__system_is_gated(system);
    pass->has_end |= system->end != NULL;
    pass->has_partials |= system->partial_bytes > 0;
    pass->has_filters |= system->has_filters;
    pass->runs_reactions |= system->reaction != NULL;
    if (system->levels != NULL) pass->levels = system->levels;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        pass->touched[word] |= system->access.reads[word];
    system->pass = pass;
    system->table_match_count = 0;
    system->table_removed_count = system->query.removed_count;
    return true;
}

/* Returns the index of the first pass that the system may join without violating the order. No bound exceeds the number
 * of passes, nor, if the system has only local conflicts, the index of the last pass. */
static uint32_t first_allowed_pass(const quern__segment *segment, const quern__system *system)
{
    const quern__plan *plan = system->plan;
    const uint32_t pass_count = segment->passes.count;
    uint32_t first = 0, earlier;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.global, system->position);
    while (first < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] >= first) first = plan->pass_indices.items[earlier] + 1;
    walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
    while (first + 1 < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] > first) first = plan->pass_indices.items[earlier];
    return first;
}

/* xorshift64*, Vigna 2014. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static bool may_join(const quern__pass *pass, const quern__system *system)
{
    return pass->kind == QUERN__PASS_CHUNKS && quern__fuse_levels_agree(pass, system);
}

/* Returns the eligible pass that shares the most components with the system, the last of these on a tie, or NULL. */
static quern__pass *choose_best_pass(const quern__segment *segment, const quern__system *system,
                                     uint32_t first)
{
    uint32_t most = 0, best_count = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        if (system->access.reads[word] != 0) most += quern__count_bits_64(system->access.reads[word]);
    quern__pass *best = NULL;
    for (uint32_t i = segment->passes.count; i-- > first && (best == NULL || best_count < most);) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        uint32_t count = 0;
        for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++) {
            const uint64_t shared = pass->touched[word] & system->access.reads[word];
            if (shared != 0) count += quern__count_bits_64(shared);
        }
        if (best != NULL && count <= best_count) continue;
        best = pass;
        best_count = count;
    }
    return best;
}

/* For tests: chooses an eligible pass at random. */
static quern__pass *choose_any_pass(const quern__segment *segment, const quern__system *system,
                                    uint32_t first, uint64_t *random)
{
    quern__pass *best = NULL;
    uint32_t best_number = 0;
    for (uint32_t i = first; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        const uint32_t number = (uint32_t)(next_random(random) >> 40);
        if (best != NULL && number < best_number) continue;
        best = pass;
        best_number = number;
    }
    return best;
}

static quern_result assign_to_pass(quern__plan *plan, quern__segment *segment, quern__system *system,
                                   uint64_t *random)
{
    quern__pass *pass = NULL;
    /* A system may share a pass if it has terms, no order of rows, and is not serial. */
    if (plan->fuses_systems && system->query.term_count > 0 && system->query.order == NULL &&
        !quern__system_has_flag(system, QUERN_SYSTEM_SERIAL)) {
        const uint32_t first = first_allowed_pass(segment, system);
        pass = random != NULL ? choose_any_pass(segment, system, first, random)
                              : choose_best_pass(segment, system, first);
    }
    if (pass == NULL) {
        pass = create_pass(plan, system);
        if (pass == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass");
        pass->index = segment->passes.count;
        segment->passes.items[segment->passes.count++] = pass;
    }
    plan->pass_indices.items[system->position] = pass->index;
    if (add_to_pass(pass, system)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass of %u systems",
                       pass->systems.count + 1);
}

/* -------------------------------------------------------------------------------------------- lanes */

/* Returns the first system of the lane that has the system at index i of the pass. Until lanes are renumbered, the lane of
 * a system is the index of an earlier system of its lane, or of itself. Shortens the path for later calls. */
static uint32_t find_lane(const quern__pass *pass, uint32_t i)
{
    quern__system *const *systems = pass->systems.items;
    while (systems[i]->lane != i) {
        systems[i]->lane = systems[systems[i]->lane]->lane;
        i = systems[i]->lane;
    }
    return i;
}

/* Joins the lanes of systems with a conflict. numbers: scratch memory, by position; the caller has set those of the
 * pass's systems to their index in the pass. The walk over a row ends when all systems up to this one are in one lane. */
static void find_lanes(quern__pass *pass, const uint32_t *numbers)
{
    const quern__plan *plan = pass->plan;
    uint32_t lane_count = 0, earlier;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        const uint32_t first_position = pass->systems.items[0]->position;
        quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
        system->lane = i;
        lane_count++;
        while (lane_count > 1 && quern__pair_walk_next(&walk, &earlier) && earlier >= first_position) {
            if (plan->pass_indices.items[earlier] != pass->index) continue;
            const uint32_t one = find_lane(pass, i), other = find_lane(pass, numbers[earlier]);
            if (one == other) continue;
            pass->systems.items[one < other ? other : one]->lane = one < other ? one : other;
            lane_count--;
        }
    }
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->lane = find_lane(pass, i);
    /* Renumber the lanes from 0 on, without gaps. */
    pass->lane_count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->lane = system->lane < i ? pass->systems.items[system->lane]->lane : pass->lane_count++;
    }
}

/* ------------------------------------------------------------------------------ passes of a segment */

/* Returns whether all passes for which `pass` waits are placed. waits_for has indices of passes. */
static bool is_ready(const quern__pass *pass, const bool *placed)
{
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        if (!placed[pass->waits_for.items[i]]) return false;
    return true;
}

/* For tests: chooses one of the orders that respect the edges, at random. placed: zeroed scratch memory, by index of
 * pass. */
static void shuffle_passes(quern__segment *segment, uint64_t *random, bool *placed)
{
    for (uint32_t placed_count = 0; placed_count < segment->passes.count; placed_count++) {
        uint32_t left = segment->passes.count - placed_count;
        uint32_t chosen = placed_count + (uint32_t)((next_random(random) >> 32) % left);
        while (!is_ready(segment->passes.items[chosen], placed))
            /* the unplaced pass with the smallest index is always ready */
            chosen = placed_count + (chosen - placed_count + 1) % left;
        quern__pass *pass = segment->passes.items[chosen];
        placed[pass->index] = true;
        segment->passes.items[chosen] = segment->passes.items[placed_count];
        segment->passes.items[placed_count] = pass;
    }
}

/* Replaces the indices in waits_for by those in segment->passes, the greatest first. places: scratch memory, by index of
 * pass. */
static void number_waits(const quern__segment *segment, uint32_t *places)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        places[segment->passes.items[i]->index] = i;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const uint32_t place = places[pass->waits_for.items[k]];
            uint32_t to = k;
            for (; to > 0 && pass->waits_for.items[to - 1] < place; to--)
                pass->waits_for.items[to] = pass->waits_for.items[to - 1];
            pass->waits_for.items[to] = place;
        }
    }
}

static quern_result shuffle(const quern__plan *plan, quern__segment *segment, uint64_t *random)
{
    const size_t bytes = segment->passes.count * (sizeof(uint32_t) + sizeof(bool));
    uint32_t *places = quern__allocate(quern__plan_allocator(plan), bytes, _Alignof(uint32_t));
    if (places == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to shuffle passes");
    memset(places, 0, bytes);
    shuffle_passes(segment, random, (bool *)(places + segment->passes.count));
    number_waits(segment, places);
    quern__release(quern__plan_allocator(plan), places, bytes, _Alignof(uint32_t));
    return QUERN_OK;
}

quern_result quern__fuse(quern__plan *plan, quern__segment *segment)
{
    uint32_t system_count = segment->end - segment->first;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_destroy(segment->passes.items[i]);
    segment->passes.count = 0;
    if (!quern__array_reserve(quern__plan_allocator(plan), &segment->passes, system_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the passes of %u systems",
                           system_count);
    uint64_t seed = plan->shuffle_seed;
    uint64_t *random = seed != 0 ? &seed : NULL;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern_result result = assign_to_pass(plan, segment, plan->order.items[i], random);
        if (result != QUERN_OK) return result;
    }
    uint32_t *numbers = plan->pass_indices.items + plan->order.count;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->systems.count; k++)
            numbers[pass->systems.items[k]->position] = k;
        find_lanes(pass, numbers);
    }
    quern_result result = quern__link_passes(plan, segment);
    if (result == QUERN_OK && random != NULL) result = shuffle(plan, segment, random);
    return result;
}
