/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift in the terminal: WASD or arrows steer, space fires, R rewinds a second, Q quits. */
#include "game.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_FRAMES = 150, REWIND_FRAMES = 30, HELD_FRAMES = 6 };

static struct termios saved;

/* Keys arrive one by one, without waiting for a line, and are not shown. */
static bool open_terminal(void)
{
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved) != 0) return false;
    struct termios raw = saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    fputs("\033[2J\033[?25l", stdout);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void close_terminal(void)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    puts("\033[?25h");
}

/* A terminal reports no release of keys: a press counts for HELD_FRAMES frames. */
typedef struct Held {
    Keys keys;
    int left_frames;
    bool rewinds, quits;
} Held;

static void press(Held *held, char key)
{
    static const Keys none;
    held->keys = none;
    held->left_frames = HELD_FRAMES;
    switch (key) {
    case 'a':
    case 'D':
        held->keys.left = 1;
        break; /* an arrow is ESC [ and a capital letter */
    case 'd':
    case 'C':
        held->keys.right = 1;
        break;
    case 'w':
    case 'A':
        held->keys.up = 1;
        break;
    case 's':
    case 'B':
        held->keys.down = 1;
        break;
    case ' ':
        held->keys.fire = 1;
        break;
    case 'r':
        held->rewinds = true;
        break;
    case 'q':
        held->quits = true;
        break;
    default:
        held->left_frames = 0;
        break;
    }
}

static void read_keys(Held *held)
{
    char typed[32];
    const ssize_t count = read(STDIN_FILENO, typed, sizeof typed);
    held->rewinds = false;
    if (held->left_frames > 0 && --held->left_frames == 0) held->keys = (Keys){0};
    for (ssize_t i = 0; i < count; i++)
        press(held, typed[i]);
}

static void rewind_game(quern_history *history, uint64_t *frame)
{
    uint64_t oldest, newest;
    if (!quern_history_get_frames(history, &oldest, &newest)) return;
    const uint64_t wanted = *frame > REWIND_FRAMES ? *frame - REWIND_FRAMES : 0;
    *frame = wanted > oldest ? wanted : oldest;
    QUERN_MUST(quern_history_restore(history, *frame, NULL));
}

static void play(Game *game, quern_history *history, quern_jobs *jobs)
{
    Held held = {.quits = false};
    for (uint64_t frame = 0; !held.quits && game_rock_count(game) > 0; frame++) {
        read_keys(&held);
        if (held.rewinds) rewind_game(history, &frame);
        QUERN_MUST(quern_history_save(history, frame, NULL));
        *game_keys(game) = held.keys;
        QUERN_MUST(quern_schedule_run(game->schedule, jobs, 1.0 / 30));
        fputs("\033[H", stdout);
        game_print(game);
        puts(game_is_on(game) ? "WASD: steer, space: fire, R: rewind, Q: quit "
                              : "the ship has crashed: R rewinds, Q quits       ");
        (void)fflush(stdout);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000000 / 30}, NULL);
    }
}

int main(void)
{
    Game game;
    quern_history *history;
    quern_jobs *jobs;
    if (!open_terminal()) {
        (void)fprintf(stderr, "drift: this game needs a terminal: %s\n", strerror(errno));
        return 1;
    }
    QUERN_MUST(quern_jobs_create(NULL, &jobs));
    game_open(&game, 0);
    game_populate(&game, 30);
    const quern_history_def def = {.schedules = {game.schedule}, .frame_count = KEPT_FRAMES};
    QUERN_MUST(quern_history_create(game.world, &def, &history));
    play(&game, history, jobs);
    close_terminal();
    quern_history_destroy(history);
    game_close(&game);
    quern_jobs_destroy(jobs);
}
