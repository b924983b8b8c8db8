/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

/* The schedule as a Graphviz graph: phases and passes are boxes around their systems, s<position>. What a
 * step begins after is a *gate*: the start, a sync point, g<step>, or an exclusive system. */

typedef struct gate {
    char letter;
    uint32_t number;
} gate;

static void write_node(quern__writer *writer, const quern__system *system)
{
    quern__write(writer, "      s%u [label=\"", system->position);
    quern__write_name(writer, system->name);
    quern__write(writer, "\"%s];\n", system->enabled ? "" : ", style=dashed");
}

static void write_pass(quern__writer *writer, const quern__facts *facts, uint32_t number)
{
    const quern__pass_facts *facts_of_pass = &facts->passes.items[number];
    const quern__pass *pass = facts_of_pass->pass;
    quern__write(writer, "    subgraph cluster_pass_%u {\n      label=\"pass %u", number + 1, number + 1);
    if (pass->kind != QUERN__PASS_ONCE)
        quern__write(writer, "\\n%u chunk%s, %s", facts_of_pass->chunk_count,
                     facts_of_pass->chunk_count == 1 ? "" : "s",
                     pass->kind == QUERN__PASS_SERIAL ? "serial" : "parallel");
    quern__write(writer, "\";\n");
    for (uint32_t i = 0; i < pass->systems.count; i++)
        write_node(writer, pass->systems.items[i]);
    quern__write(writer, "    }\n");
}

/* ------------------------------------------------------------------------------------------- edges */

static void write_edge(quern__writer *writer, const quern__facts *facts, const quern__step_facts *step,
                       const quern__system *earlier, const quern__system *later)
{
    static const char *const styles[] = {[QUERN__ROUTE_PASS] = "style=dashed",
                                         [QUERN__ROUTE_GRAPH] = "style=solid",
                                         [QUERN__ROUTE_IMPLIED] = "style=dotted, constraint=false"};
    quern__causes causes;
    quern__facts_causes(earlier, later, &causes);
    if (causes.count == 0) return;
    quern__write(writer, "  s%u -> s%u [label=\"", earlier->position, later->position);
    for (uint32_t i = 0; i < causes.count; i++) {
        if (i > 0) quern__write(writer, "\\n");
        quern__write_cause(writer, earlier, later, causes.items[i]);
    }
    quern__write(writer, "\", %s%s];\n", styles[quern__facts_route(facts, step, earlier, later)],
                 quern__facts_is_accidental(facts, earlier, later) ? ", color=orangered" : "");
}

static void write_gates(quern__writer *writer, const quern__facts *facts, const quern__step_facts *step,
                        gate before, gate after)
{
    for (uint32_t i = step->first_pass; i < step->end_pass; i++) {
        const quern__pass *pass = facts->passes.items[i].pass;
        bool waits = false;
        for (uint32_t k = step->first_pass; k < i; k++)
            waits |= quern__facts_waits(facts, i, k);
        if (!waits)
            quern__write(writer, "  %c%u -> s%u [color=gray];\n", before.letter, before.number,
                         pass->systems.items[0]->position);
        if (!quern__facts_is_awaited(facts, step, i))
            quern__write(writer, "  s%u -> %c%u [color=gray];\n",
                         pass->systems.items[pass->systems.count - 1]->position, after.letter,
                         after.number);
    }
}

static void write_step_edges(quern__writer *writer, const quern__facts *facts, uint32_t step_index,
                             gate *last)
{
    const quern__step *step = &facts->schedule->plan.steps.items[step_index];
    const quern__step_facts *step_facts = &facts->steps.items[step_index];
    if (step->kind == QUERN__STEP_RUN) {
        for (uint32_t later = step->first; later < step->end; later++)
            for (uint32_t earlier = step->first; earlier < later; earlier++)
                write_edge(writer, facts, step_facts, facts->schedule->plan.order.items[earlier],
                           facts->schedule->plan.order.items[later]);
        write_gates(writer, facts, step_facts, *last, (gate){'g', step_index + 1});
        return; /* a sync point comes next, and shows where it comes from */
    }
    bool follows_run =
        step_index > 0 && facts->schedule->plan.steps.items[step_index - 1].kind == QUERN__STEP_RUN;
    gate here = step->kind == QUERN__STEP_SYNC ? (gate){'g', step_index} : (gate){'s', step->first};
    if (!follows_run)
        quern__write(writer, "  %c%u -> %c%u [color=gray];\n", last->letter, last->number, here.letter,
                     here.number);
    *last = here;
}

/* --------------------------------------------------------------------------------------------- all */

static void write_phase(quern__writer *writer, const quern__facts *facts, uint32_t index)
{
    const quern__phase *phase = &facts->schedule->plan.phases[index];
    quern__write(writer, "  subgraph cluster_phase_%u {\n    label=\"phase '", index);
    quern__write_name(writer, phase->name);
    quern__write(writer, "'");
    if (phase->step_seconds > 0) {
        quern__write(writer, "\\nin steps of ");
        quern__write_seconds(writer, phase->step_seconds);
        quern__write(writer, " s");
    }
    quern__write(writer, "\";\n");
    for (uint32_t i = phase->first_step; i < phase->end_step; i++) {
        const quern__step_facts *step = &facts->steps.items[i];
        for (uint32_t number = step->first_pass; number < step->end_pass; number++)
            write_pass(writer, facts, number);
        if (facts->schedule->plan.steps.items[i].kind == QUERN__STEP_SYNC)
            quern__write(writer, "    g%u [label=\"sync\", shape=ellipse];\n", i);
    }
    quern__write(writer, "  }\n");
}

void quern__describe_dot(quern__writer *writer, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    quern__write(writer,
                 "digraph schedule {\n  node [shape=box];\n  f0 [label=\"frame\", shape=ellipse];\n");
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++)
        write_phase(writer, facts, i);
    gate last = {'f', 0};
    for (uint32_t i = 0; i < schedule->plan.steps.count; i++)
        write_step_edges(writer, facts, i, &last);
    quern__write(writer, "}\n");
}
