/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/sched/describe/describe_scene.h"

#include <stdlib.h>

/* Schedules described as graphs for Graphviz, and the script that draws them. */

TestSuite(describe_dot, .init = open_world, .fini = close_world);

/* Runs scripts/schedule_dot.py on the JSON and returns its output. */
static const char *drawn(void)
{
    static char text[TEXT_BYTES];
    if (system("python3 --version >/dev/null 2>&1") != 0) cr_skip_test("Python 3 is not installed");
    char path[] = "/tmp/test_describe_XXXXXX", command[512];
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    FILE *file = fdopen(descriptor, "w");
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_file(file)));
    fclose(file);
    snprintf(command, sizeof command, "python3 '" QUERN_SCRIPTS "/schedule_dot.py' %s", path);
    FILE *script = popen(command, "r");
    cr_assert_not_null(script);
    text[fread(text, 1, sizeof text - 1, script)] = '\0';
    remove(path);
    cr_assert_eq(pclose(script), 0, "%s", command);
    return text;
}

static void assert_in(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "no '%s' in:\n%s", part, text);
}

Test(describe_dot, the_drawing_has_systems_passes_and_edges)
{
    setup_zoo();
    const char *text = drawn();
    assert_in(text, "digraph schedule {\n");
    assert_in(text, "label=\"phase 'p0'\"");
    assert_in(text, "label=\"pass 1\\n1 chunk, parallel\"");
    assert_in(text, "s0 [label=\"a \\\"quoted\\\" \\\\ &amp; name\\\\x0A\"]");
    assert_in(text, "s2 -> s3 [label=\"resource 'score'\", style=solid, color=orangered]");
    assert_in(text,
              "s2 -> s4 [label=\"resource 'score'\", style=dotted, constraint=false, color=orangered]");
    assert_in(text, "s6 [label=\"y\", style=dashed]");
    assert_in(text, "frame -> s0 [color=gray]");
    assert_in(text, "g1 -> s5 [color=gray]");
    assert_in(text, "s7 -> g6 [color=gray]");
    cr_assert_null(strstr(text, "frame -> g1"), "passes stand in between");
}

Test(describe_dot, graphviz_accepts_it)
{
    if (system("dot -V 2>/dev/null") != 0) cr_skip_test("Graphviz is not installed");
    setup_zoo();
    const char *text = drawn();
    FILE *dot = popen("dot -Tsvg 2>&1 >/dev/null | grep . && exit 1 || exit 0", "w");
    cr_assert_not_null(dot);
    fputs(text, dot);
    cr_assert_eq(pclose(dot), 0, "dot has something to say about:\n%s", text);
}

/* The script draws nothing if its input is not a schedule or is truncated. */
Test(describe_dot, other_input_is_refused)
{
    if (system("python3 --version >/dev/null 2>&1") != 0) cr_skip_test("Python 3 is not installed");
    static const char *const texts[] = {"", "[1, 2]", "{\"version\": 2}",
                                        "{\"version\": 1, \"phases\": [{\"steps\": []}]}"};
    for (uint32_t i = 0; i < COUNT_OF(texts); i++) {
        char command[1024], output[512];
        snprintf(command, sizeof command, "echo '%s' | python3 '" QUERN_SCRIPTS "/schedule_dot.py' 2>&1",
                 texts[i]);
        FILE *script = popen(command, "r");
        cr_assert_not_null(script);
        output[fread(output, 1, sizeof output - 1, script)] = '\0';
        cr_assert_neq(pclose(script), 0, "%s", command);
        const char *message = "schedule_dot.py: standard input is not the JSON of quern_schedule_describe";
        cr_assert_eq(strncmp(output, message, strlen(message)), 0, "%s", output);
    }
}
