/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/inspect.h>

#include <stdio.h>
#include <string.h>

/* One request, and a server that starts and stops. */
int main(void)
{
    quern_world *world = NULL;
    quern_inspector *inspector = NULL;
    char text[4096] = "";
    quern_text_buffer answer = {text, sizeof text, 0};
    bool passed = quern_world_create(NULL, &world) == QUERN_OK;
    passed = passed &&
             quern_inspector_create(&(quern_inspector_def){.world = world}, &inspector) == QUERN_OK &&
             quern_inspect_request(inspector, &(quern_inspect_call){.method = "GET", .path = "world"},
                                   quern_sink_text(&answer), NULL) == QUERN_OK &&
             strstr(text, "\"entity_count\":0") != NULL;
    passed = passed && quern_inspector_serve(inspector, NULL) == QUERN_OK &&
             strncmp(quern_inspector_url(inspector), "http://127.0.0.1:", 17) == 0 &&
             quern_inspector_update(inspector, NULL);
    if (!passed) fprintf(stderr, "consumer_inspect: %s\n%s\n", quern_error_message(), text);
    quern_inspector_destroy(inspector);
    quern_world_destroy(world);
    return passed ? 0 : 1;
}
