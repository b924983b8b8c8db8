/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inputs.h"

#include "check.h"
#include "kinds.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 128, WORD_BYTES = 16 };

static const uint64_t step_max = 100000000; /* limit of steps, longer than any game */

static const char *const words[] = {
    [ACTION_WAVE] = "wave", [ACTION_BUILD] = "build", [ACTION_SELL] = "sell"};

/* ------------------------------------------------------------------------------------------- the list */

void inputs_add(Inputs *inputs, uint64_t step, const Action *action)
{
    if (inputs->count == inputs->capacity) {
        inputs->capacity = inputs->capacity * 2 + 64;
        inputs->list = check_memory(realloc(inputs->list, inputs->capacity * sizeof *inputs->list));
    }
    inputs->list[inputs->count++] = (Input){step, *action};
}

void inputs_rewind(Inputs *inputs, uint64_t step)
{
    while (inputs->count > 0 && inputs->list[inputs->count - 1].step >= step)
        inputs->count--;
}

void inputs_continue(Inputs *inputs, const Inputs *earlier, uint64_t step)
{
    Inputs all = {.end = inputs->end};
    const uint32_t earlier_count = inputs_before(earlier, step);
    for (uint32_t i = 0; i < earlier_count; i++)
        inputs_add(&all, earlier->list[i].step, &earlier->list[i].action);
    for (uint32_t i = inputs_before(inputs, step); i < inputs->count; i++)
        inputs_add(&all, inputs->list[i].step, &inputs->list[i].action);
    inputs_free(inputs);
    *inputs = all;
}

uint32_t inputs_before(const Inputs *inputs, uint64_t step)
{
    uint32_t count = 0;
    while (count < inputs->count && inputs->list[count].step < step)
        count++;
    return count;
}

void inputs_free(Inputs *inputs)
{
    free(inputs->list);
    *inputs = (Inputs){.list = NULL};
}

/* --------------------------------------------------------------------------------------------- reading */

/* Parses the rest of a line. Returns whether it has exactly what the action needs. */
static bool parse_action(const char *word, const char *rest, Action *action)
{
    char tower[WORD_BYTES];
    int end = 0;
    if (strcmp(word, words[ACTION_WAVE]) == 0) {
        action->kind = ACTION_WAVE;
    } else if (strcmp(word, words[ACTION_BUILD]) == 0) {
        action->kind = ACTION_BUILD;
        if (sscanf(rest, "%15s %f %f%n", tower, &action->at.x, &action->at.y, &end) != 3) return false;
        action->tower = tower_kind_named(tower);
        if (action->tower == TOWER_KINDS) return false;
    } else if (strcmp(word, words[ACTION_SELL]) == 0) {
        action->kind = ACTION_SELL;
        if (sscanf(rest, "%f %f%n", &action->at.x, &action->at.y, &end) != 2) return false;
    } else {
        return false;
    }
    return isfinite(action->at.x) && isfinite(action->at.y) &&
           strspn(rest + end, " \t\r\n") == strlen(rest + end);
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0' || line[0] == '#';
}

/* Reads a line. Returns its fault, or NULL. */
static const char *read_line(Inputs *inputs, const char *line, bool *has_end)
{
    uint64_t step;
    char word[WORD_BYTES];
    int end = 0;
    Action action = {.kind = ACTION_WAVE};
    if (is_blank(line)) return NULL;
    if (line[0] == '-' || sscanf(line, "%" SCNu64 " %15s%n", &step, word, &end) != 2 || step > step_max)
        return "has no step and word";
    if (step < inputs->end) return "goes back in time";
    inputs->end = step;
    *has_end = strcmp(word, "end") == 0 && line[end + (int)strspn(line + end, " \t\r\n")] == '\0';
    if (*has_end) return NULL;
    if (!parse_action(word, line + end, &action))
        return "is none of 'wave', 'build TOWER X Y', 'sell X Y' and 'end'";
    inputs_add(inputs, step, &action);
    return NULL;
}

const char *inputs_read(Inputs *inputs, FILE *file, uint32_t *out_number)
{
    char line[LINE_BYTES];
    const char *wrong = NULL;
    bool has_end = false;
    *inputs = (Inputs){.list = NULL};
    for (*out_number = 0; wrong == NULL && !has_end && fgets(line, sizeof line, file) != NULL;) {
        ++*out_number;
        const bool is_whole = strchr(line, '\n') != NULL || feof(file);
        wrong = is_whole ? read_line(inputs, line, &has_end) : "is too long";
    }
    if (wrong == NULL && ferror(file)) wrong = "cannot be reached: the file cannot be read";
    if (wrong == NULL && !has_end) wrong = "is the last one, but no 'end': the file is not complete";
    return wrong;
}

/* Returns the fault of the first line after the end that is not blank, or NULL. */
static const char *read_rest(FILE *file, uint32_t *number)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        ++*number;
        if (!is_blank(line)) return "comes after the end";
    }
    return NULL;
}

bool inputs_load(Inputs *inputs, const char *path, char *message, size_t message_bytes)
{
    uint32_t number;
    *inputs = (Inputs){.list = NULL};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        snprintf(message, message_bytes, "%s: cannot be opened: %s", path, strerror(errno));
        return false;
    }
    const char *wrong = inputs_read(inputs, file, &number);
    if (wrong == NULL) wrong = read_rest(file, &number);
    if (wrong != NULL) {
        snprintf(message, message_bytes, "%s: line %" PRIu32 " %s", path, number, wrong);
        inputs_free(inputs);
    }
    fclose(file);
    return wrong == NULL;
}

/* --------------------------------------------------------------------------------------------- writing */

static void write_input(const Input *input, FILE *file)
{
    const Action *action = &input->action;
    fprintf(file, "%" PRIu64 " %s", input->step, words[action->kind]);
    if (action->kind == ACTION_BUILD) fprintf(file, " %s", tower_rules[action->tower].name);
    if (action->kind != ACTION_WAVE) fprintf(file, " %g %g", (double)action->at.x, (double)action->at.y);
    fprintf(file, "\n");
}

void inputs_write(const Inputs *inputs, FILE *file)
{
    for (uint32_t i = 0; i < inputs->count; i++)
        write_input(&inputs->list[i], file);
    fprintf(file, "%" PRIu64 " end\n", inputs->end);
}

bool inputs_save(const Inputs *inputs, const char *path, char *message, size_t message_bytes)
{
    FILE *file = fopen(path, "wb");
    if (file != NULL) {
        inputs_write(inputs, file);
        const bool is_whole = !ferror(file);
        if ((fclose(file) == 0) && is_whole) return true;
    }
    snprintf(message, message_bytes, "%s: cannot be written: %s", path, strerror(errno));
    return false;
}

/* --------------------------------------------------------------------------------------------- playing */

bool inputs_replay(const Inputs *inputs, uint32_t *next, Game *game, char *message, size_t message_bytes)
{
    const uint64_t step = game_state(game)->step;
    for (; *next < inputs->count && inputs->list[*next].step <= step; ++*next) {
        const Input *input = &inputs->list[*next];
        const char *error = game_act(game, &input->action);
        if (error == NULL) continue;
        snprintf(message, message_bytes,
                 "step %" PRIu64 ": cannot %s at %g %g: %s; was it recorded in this level?", input->step,
                 words[input->action.kind], (double)input->action.at.x, (double)input->action.at.y, error);
        return false;
    }
    return true;
}
