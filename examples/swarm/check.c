/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "swarm: %s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

void *check_memory(void *memory)
{
    if (memory != NULL) return memory;
    fprintf(stderr, "swarm: out of memory\n");
    exit(EXIT_FAILURE);
}
