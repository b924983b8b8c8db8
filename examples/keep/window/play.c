/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "play.h"

#include "../game/check.h"
#include "../game/kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512, SPEED_MAX = 4, STEPS_AT_ONCE = 8 };

static _Noreturn void stop(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

/* --------------------------------------------------------------------------------------- begin and end */

void play_begin(Play *play)
{
    char message[MESSAGE_BYTES];
    if (!game_create(&play->game, &play->level, message, sizeof message)) stop(message);
    if (!scene_create(&play->scene, &play->game, &play->canvas)) stop(SDL_GetError());
    sound_follow(&play->sound, &play->game);
    rewind_create(&play->rewind, &play->game);
    overlay_switch(&play->overlay, &play->game, play->overlay.is_on);
    inputs_free(&play->played);
    play->next_input = 0;
    play->owed_steps = 0;
    play->hud.is_paused = play->hud.is_rewinding = false;
    play->hud.speed = 1;
}

void play_end(Play *play)
{
    rewind_destroy(&play->rewind);
    scene_destroy(&play->scene);
    game_destroy(&play->game);
}

/* ----------------------------------------------------------------------------------------------- steps */

void play_step(Play *play)
{
    char message[MESSAGE_BYTES];
    if (!inputs_replay(&play->recorded, &play->next_input, &play->game, message, sizeof message))
        stop(message);
    game_step(&play->game, play->jobs);
    rewind_note(&play->rewind, &play->game, play->jobs);
    overlay_note(&play->overlay, &play->game, play->jobs);
    play->played.end = game_state(&play->game)->step;
}

/* Time runs back three times as fast as forth. What was done since belongs to what never was. */
static void go_back(Play *play, float seconds)
{
    play->owed_steps = fminf(play->owed_steps + seconds * STEPS_PER_SECOND * 3, STEPS_AT_ONCE * 3);
    for (; play->owed_steps >= REWIND_STRIDE; play->owed_steps -= REWIND_STRIDE) {
        if (!rewind_back(&play->rewind, &play->game, play->jobs)) {
            play->owed_steps = 0;
            return;
        }
        const uint64_t step = game_state(&play->game)->step;
        inputs_rewind(&play->played, step);
        play->next_input = inputs_before(&play->recorded, step);
    }
}

void play_advance(Play *play, float seconds)
{
    play->hud.notice_seconds -= seconds;
    if (play->hud.page == PAGE_GAME && play->hud.is_rewinding) {
        go_back(play, seconds);
        return;
    }
    if (play->hud.page != PAGE_GAME || play->hud.is_paused) return;
    play->owed_steps += seconds * STEPS_PER_SECOND * (float)play->hud.speed;
    play->owed_steps = fminf(play->owed_steps, STEPS_AT_ONCE); /* who is late stays late */
    for (; play->owed_steps >= 1; play->owed_steps--)
        play_step(play);
}

void play_draw(Play *play, float seconds)
{
    SDL_SetRenderDrawColor(play->canvas.renderer, 6, 10, 16, 255);
    SDL_RenderClear(play->canvas.renderer);
    play->canvas.drawn_count = 0;
    scene_draw(&play->scene, seconds);
    hud_draw(&play->hud, &play->scene);
    if (play->hud.page == PAGE_GAME) overlay_draw(&play->overlay, &play->scene, seconds * 1000);
    canvas_flush(&play->canvas);
    sound_play(&play->sound, &play->game);
}

/* --------------------------------------------------------------------------------------------- actions */

/* Does what the player wants and writes it down, or shows why not. */
static void act(Play *play, Action action)
{
    if (play->recorded.count > 0) return; /* who watches does not play */
    const uint64_t step = game_state(&play->game)->step;
    play->hud.notice = game_act(&play->game, &action);
    play->hud.notice_seconds = 1.5f;
    if (play->hud.notice == NULL) inputs_add(&play->played, step, &action);
}

static void act_at_mouse(Play *play, bool sells)
{
    const Point at = game_plot(scene_to_field(&play->scene, play->hud.mouse_x, play->hud.mouse_y));
    if (sells || play->hud.chosen == TOWER_KINDS)
        act(play, (Action){.kind = ACTION_SELL, .at = at});
    else
        act(play, (Action){.kind = ACTION_BUILD, .tower = (TowerKind)play->hud.chosen, .at = at});
}

static void choose(Play *play, HudButton button)
{
    switch (button) {
    case HUD_NOTHING:
        break;
    case HUD_WAVE:
        act(play, (Action){.kind = ACTION_WAVE});
        break;
    case HUD_SPEED:
        play->hud.speed = play->hud.speed % SPEED_MAX + 1;
        break;
    case HUD_PAUSE:
        play->hud.is_paused = !play->hud.is_paused;
        break;
    case HUD_REWIND:
        play->hud.is_rewinding = true;
        break;
    default:
        play->hud.chosen = (int)button - HUD_TOWER;
    }
}

static void begin_again(Play *play)
{
    play_end(play);
    play_begin(play);
    play->hud.page = PAGE_GAME;
}

/* ------------------------------------------------------------------------------------------- the mouse */

static void handle_click(Play *play, const SDL_MouseButtonEvent *click)
{
    play->hud.mouse_x = (float)click->x;
    play->hud.mouse_y = (float)click->y;
    if (play->hud.page != PAGE_GAME) {
        play->hud.page = PAGE_GAME;
        return;
    }
    if (play->hud.mouse_y >= FIELD_HEIGHT)
        choose(play, hud_button_at(play->hud.mouse_x, play->hud.mouse_y));
    else
        act_at_mouse(play, click->button == SDL_BUTTON_RIGHT);
}

/* -------------------------------------------------------------------------------------------- the keys */

static void handle_page_key(Play *play, SDL_Keycode key)
{
    if (key == SDLK_q || (key == SDLK_ESCAPE && play->hud.page == PAGE_TITLE))
        play->has_ended = true;
    else if (key == SDLK_n)
        begin_again(play);
    else if (key == SDLK_SPACE || key == SDLK_RETURN || key == SDLK_ESCAPE)
        play->hud.page = PAGE_GAME;
}

static void handle_game_key(Play *play, SDL_Keycode key)
{
    const bool is_over = game_state(&play->game)->state != KEEP_PLAYING;
    if (key >= SDLK_1 && key < SDLK_1 + TOWER_KINDS)
        play->hud.chosen = (int)(key - SDLK_1);
    else if (key == SDLK_x)
        play->hud.chosen = TOWER_KINDS;
    else if (key == SDLK_SPACE || key == SDLK_RETURN)
        choose(play, HUD_WAVE);
    else if (key == SDLK_f)
        choose(play, HUD_SPEED);
    else if (key == SDLK_p)
        choose(play, HUD_PAUSE);
    else if (key == SDLK_s && play->hud.is_paused)
        play_step(play);
    else if (key == SDLK_r || key == SDLK_BACKSPACE)
        choose(play, HUD_REWIND);
    else if (key == SDLK_ESCAPE)
        play->hud.page = PAGE_MENU;
    else if (is_over && (key == SDLK_n || key == SDLK_q))
        handle_page_key(play, key);
}

static void handle_key(Play *play, SDL_Window *window, SDL_Keycode key)
{
    const bool is_full = (SDL_GetWindowFlags(window) & SDL_WINDOW_FULLSCREEN_DESKTOP) != 0;
    if (key == SDLK_F1)
        overlay_switch(&play->overlay, &play->game, !play->overlay.is_on);
    else if (key == SDLK_F11)
        SDL_SetWindowFullscreen(window, is_full ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP);
    else if (play->hud.page == PAGE_GAME)
        handle_game_key(play, key);
    else
        handle_page_key(play, key);
}

void play_handle(Play *play, const SDL_Event *event)
{
    if (event->type == SDL_QUIT) play->has_ended = true;
    if (event->type == SDL_KEYDOWN)
        handle_key(play, SDL_GetWindowFromID(event->key.windowID), event->key.keysym.sym);
    if (event->type == SDL_MOUSEBUTTONDOWN) handle_click(play, &event->button);
    if (event->type == SDL_MOUSEMOTION) {
        play->hud.mouse_x = (float)event->motion.x;
        play->hud.mouse_y = (float)event->motion.y;
    }
    const bool lets_go = event->type == SDL_KEYUP &&
                         (event->key.keysym.sym == SDLK_r || event->key.keysym.sym == SDLK_BACKSPACE);
    if (lets_go || event->type == SDL_MOUSEBUTTONUP) play->hud.is_rewinding = false;
}
