/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "play.h"

#include "../game/check.h"
#include "../game/kinds.h"
#include "pages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512, SPEED_MAX = 4, STEPS_AT_ONCE = 8 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

/* --------------------------------------------------------------------------------------- begin and end */

/* Begins a new game, or a saved one. */
static void begin(Play *play, const Save *save)
{
    char message[MESSAGE_BYTES];
    const Level *level = play->is_lesson ? &play->lesson : &play->level;
    const bool is_good =
        play->net != NULL ||
        (save != NULL ? game_create_saved(&play->game, level, save, message, sizeof message)
                      : game_create(&play->game, level, message, sizeof message));
    if (!is_good) fail(message);
    while (play->net != NULL && !net_begin(play->net, &play->game, &play->level))
        if (play->net->message[0] != '\0') fail(play->net->message);
    if (!scene_create(&play->scene, &play->game, &play->canvas)) fail(SDL_GetError());
    sound_attach(&play->sound, &play->game);
    if (play->net == NULL) {
        inspection_create_history(&play->inspection, &play->rewind, &play->game);
        inspection_open(&play->inspection, &play->game, &play->rewind, play->jobs);
    }
    overlay_switch(&play->overlay, &play->game, play->overlay.is_on);
    inputs_free(&play->played);
    play->next_input = 0;
    play->owed_steps = 0;
    play->hud.is_paused = play->hud.is_rewinding = false;
    play->hud.speed = 1;
}

void play_begin(Play *play)
{
    begin(play, NULL);
}

void play_end(Play *play)
{
    inspection_close(&play->inspection);
    if (play->net == NULL)
        rewind_destroy(&play->rewind);
    else
        net_end(play->net);
    scene_destroy(&play->scene);
    game_destroy(&play->game);
}

/* ----------------------------------------------------------------------------------------------- steps */

/* Runs a step of a game over the network, if the other players are not too far behind. */
static void step_together(Play *play)
{
    uint32_t count;
    if (play->seed != 0 && !play->net->status.is_joining) net_act_at_random(play->net, play->seed);
    if (net_step(play->net, play->jobs, &count)) return;
    if (play->net->message[0] != '\0') fail(play->net->message);
    play->has_ended = true;
}

void play_step(Play *play)
{
    if (play->net != NULL) {
        step_together(play);
        return;
    }
    char message[MESSAGE_BYTES];
    if (!inputs_replay(&play->recorded, &play->next_input, &play->game, message, sizeof message))
        fail(message);
    inspection_step(&play->inspection, &play->game, play->jobs);
    rewind_save(&play->rewind, &play->game, play->jobs);
    overlay_add_step(&play->overlay, &play->game, play->jobs);
    play->played.end = game_state(&play->game)->step;
}

/* After the game went back to an earlier step: drops the inputs of the player from that step on, and continues the
 * recorded ones there. */
static void forget_inputs(Play *play)
{
    const uint64_t step = game_state(&play->game)->step;
    inputs_rewind(&play->played, step);
    play->next_input = inputs_before(&play->recorded, step);
}

/* Returns whether the next step should run: a page of the inspector may have paused the game, or taken it back. */
static bool inspect(Play *play)
{
    const uint64_t restore_count = quern_world_restore_count(play->game.world);
    const bool is_next = inspection_update(&play->inspection, &play->game);
    if (quern_world_restore_count(play->game.world) != restore_count) forget_inputs(play);
    return is_next;
}

void play_wait(Play *play, uint32_t milliseconds)
{
    if (play->inspection.inspector == NULL) {
        SDL_Delay(milliseconds);
        return;
    }
    const uint64_t restore_count = quern_world_restore_count(play->game.world);
    inspection_wait(&play->inspection, &play->game, milliseconds * (uint64_t)1000000);
    if (quern_world_restore_count(play->game.world) != restore_count) forget_inputs(play);
}

/* Rewinds three times as fast as the game runs. Later inputs are dropped. */
static void rewind_steps(Play *play, float seconds)
{
    play->owed_steps = fminf(play->owed_steps + seconds * STEPS_PER_SECOND * 3, STEPS_AT_ONCE * 3);
    const float stride = (float)play->rewind.stride;
    while (play->owed_steps >= stride) {
        play->owed_steps -= stride;
        if (!rewind_restore(&play->rewind, &play->game, play->jobs)) {
            play->owed_steps = 0;
            return;
        }
        forget_inputs(play);
    }
}

void play_advance(Play *play, float seconds)
{
    play->hud.notice_seconds -= seconds;
    if (play->net == NULL && play->hud.page == PAGE_GAME && play->hud.is_rewinding) {
        rewind_steps(play, seconds);
        return;
    }
    /* The others do not wait for this player's menu. A page of the inspector is answered meanwhile. */
    if (play->net == NULL && (play->hud.page != PAGE_GAME || play->hud.is_paused)) {
        inspect(play);
        return;
    }
    const float speed = play->net == NULL ? (float)play->hud.speed : 1;
    play->owed_steps += seconds * STEPS_PER_SECOND * speed;
    play->owed_steps = fminf(play->owed_steps, STEPS_AT_ONCE); /* drops steps that are too late */
    for (; play->owed_steps >= 1; play->owed_steps--) {
        if (!inspect(play))
            play->owed_steps = 1; /* paused: nothing is owed */
        else
            play_step(play);
    }
}

void play_draw(Play *play, float seconds)
{
    Canvas *canvas = &play->canvas;
    play->drawing_since = SDL_GetPerformanceCounter();
    canvas_clear(canvas, 0x060A10FF);
    const bool is_title = play->hud.page == PAGE_TITLE;
    scene_draw(&play->scene, layout_of(play->window, canvas->renderer, is_title), seconds);
    if (pages_are_up(&play->hud, game_state(&play->game))) {
        if (!is_title) hud_draw_bar(&play->hud, &play->scene);
        pages_draw(&play->hud, &play->scene);
    } else {
        hud_draw(&play->hud, &play->scene);
        overlay_draw(&play->overlay, &play->scene);
    }
    canvas_flush(canvas);
}

void play_show(Play *play)
{
    canvas_show(&play->canvas);
    const uint64_t ticks = SDL_GetPerformanceCounter() - play->drawing_since;
    overlay_add_picture(&play->overlay, &play->canvas,
                        (float)((double)ticks * 1000 / (double)SDL_GetPerformanceFrequency()));
    sound_play(&play->sound, &play->game);
}

/* --------------------------------------------------------------------------------------------- actions */

static void show_notice(Play *play, const char *text)
{
    play->hud.notice = text;
    play->hud.notice_seconds = 2;
    play->hud.is_good_news = false;
}

/* Shows play->message, for longer, since it has a path and more. */
static void show_message(Play *play, bool is_good_news)
{
    show_notice(play, play->message);
    play->hud.notice_seconds = is_good_news ? 3 : 9;
    play->hud.is_good_news = is_good_news;
}

/* --------------------------------------------------------------------------------------- saved games */

/* Returns why the game has no saves; NULL if it has. */
static const char *save_error(const Play *play)
{
    if (play->net != NULL) return "not in a game with others";
    if (play->recorded.count > 0) return "this game was recorded: you are watching";
    if (play->save_path[0] == '\0') return "there is no folder for saved games: name a file by --save";
    return NULL;
}

static void save_game(Play *play)
{
    const char *error = save_error(play);
    if (error != NULL) {
        show_notice(play, error);
        return;
    }
    /* the effects of an action wait for the next step, and a save has no waiting events */
    const Inputs *played = &play->played;
    if (played->count > 0 && played->list[played->count - 1].step == game_state(&play->game)->step)
        play_step(play);
    const bool is_saved =
        save_write(&play->game, played, play->save_path, play->message, sizeof play->message);
    if (is_saved) snprintf(play->message, sizeof play->message, "saved as %s", play->save_path);
    show_message(play, is_saved);
}

/* Loads the saved game into a game of its own first, so that the present one goes on if the file is bad. */
bool play_load(Play *play)
{
    const char *error = save_error(play);
    Save save;
    if (error != NULL) {
        show_notice(play, error);
        return false;
    }
    if (!save_read(&save, play->save_path, play->message, sizeof play->message)) {
        show_message(play, false);
        return false;
    }
    const bool is_lesson = save.level == play->lesson.hash;
    Game *trial = check_memory(calloc(1, sizeof *trial));
    const bool is_good = game_create_saved(trial, is_lesson ? &play->lesson : &play->level, &save,
                                           play->message, sizeof play->message);
    if (is_good) {
        game_destroy(trial);
        play_end(play);
        play->is_lesson = is_lesson;
        begin(play, &save);
        play->played = save.inputs;
        save.inputs = (Inputs){.list = NULL};
        play->hud.page = PAGE_GAME;
        snprintf(play->message, sizeof play->message, "the saved game goes on");
    }
    free(trial);
    save_free(&save);
    show_message(play, is_good);
    return is_good;
}

/* Gives an order to all machines. It is carried out some steps later, if it is still possible then. */
static void act_together(Play *play, const Action *action)
{
    const char *error =
        action->kind == ACTION_BUILD ? game_build_error(&play->game, action->tower, action->at) : NULL;
    if (error == NULL && !net_act(play->net, action)) error = "that is too fast";
    show_notice(play, error);
}

/* Performs an action and records it, or shows why it failed. */
static void act(Play *play, Action action)
{
    if (play->recorded.count > 0) {
        show_notice(play, "this game was recorded: you are watching");
        return;
    }
    if (play->net != NULL) {
        act_together(play, &action);
        return;
    }
    const uint64_t step = game_state(&play->game)->step;
    const char *error = game_act(&play->game, &action);
    show_notice(play, error);
    if (error == NULL) inputs_add(&play->played, step, &action);
}

static void act_at_mouse(Play *play, bool sells)
{
    const Point at = game_plot(scene_to_game(&play->scene, play->hud.mouse));
    if (sells || play->hud.chosen == TOWER_KINDS)
        act(play, (Action){.kind = ACTION_SELL, .at = at});
    else
        act(play, (Action){.kind = ACTION_BUILD, .tower = (TowerKind)play->hud.chosen, .at = at});
}

static void press(Play *play, HudButton button)
{
    if (play->net != NULL && (button == HUD_SPEED || button == HUD_PAUSE || button == HUD_REWIND)) {
        show_notice(play, "not in a game with others");
        return;
    }
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

static void switch_sound(Play *play)
{
    play->hud.is_mute = !play->hud.is_mute;
    if (!sound_mute(&play->sound, play->hud.is_mute))
        show_notice(play, "no sound: there is no audio device");
    else
        show_notice(play, play->hud.is_mute ? "sound is off" : "sound is on");
}

static void choose(Play *play, Choice choice)
{
    const bool begins = choice == CHOICE_NEW_GAME || choice == CHOICE_LESSON;
    if (play->net != NULL && (begins || choice == CHOICE_TURN_BACK)) {
        show_notice(play, "not in a game with others");
        return;
    }
    switch (choice) {
    case CHOICE_NONE:
        break;
    case CHOICE_GO_ON:
        play->hud.page = PAGE_GAME;
        break;
    case CHOICE_SAVE:
        save_game(play);
        break;
    case CHOICE_LOAD:
        play_load(play);
        break;
    case CHOICE_LESSON:
        if (play->recorded.count > 0) return; /* a game of another level is watched */
        /* fall through */
    case CHOICE_NEW_GAME:
        play_end(play);
        play->is_lesson = choice == CHOICE_LESSON;
        play_begin(play);
        play->hud.page = PAGE_GAME;
        break;
    case CHOICE_TURN_BACK:
        play->hud.is_rewinding = true;
        break;
    case CHOICE_SOUND:
        switch_sound(play);
        break;
    case CHOICE_LEAVE:
        play->has_ended = true;
    }
}

/* ------------------------------------------------------------------------------------------- the mouse */

/* Stores the position of the mouse. SDL reports points of the screen, which are several pixels on some
 * screens. */
static void update_mouse(Play *play, int x, int y)
{
    int points, pixels;
    SDL_GetWindowSize(play->window, &points, NULL);
    SDL_GetRendererOutputSize(play->canvas.renderer, &pixels, NULL);
    const float ratio = (float)pixels / (float)points;
    play->hud.mouse = (SDL_FPoint){(float)x * ratio, (float)y * ratio};
    play->hud.is_mouse_away = false;
}

/* Handles a click: the left button uses the thing under the mouse, the right one sells. */
static void handle_click(Play *play, const SDL_MouseButtonEvent *click)
{
    const bool is_left = click->button == SDL_BUTTON_LEFT;
    update_mouse(play, click->x, click->y);
    if (!is_left && click->button != SDL_BUTTON_RIGHT) return;
    if (pages_are_up(&play->hud, game_state(&play->game))) {
        if (is_left) choose(play, pages_choice_at_mouse(&play->hud, &play->scene));
    } else if (hud_is_on_field(&play->hud, &play->scene.layout))
        act_at_mouse(play, !is_left);
    else if (is_left)
        press(play, hud_button_at(&play->hud, &play->scene.layout));
}

static void handle_wheel(Play *play, const SDL_MouseWheelEvent *wheel)
{
    const int step = wheel->y < 0 ? 1 : wheel->y > 0 ? TOWER_KINDS : 0;
    play->hud.chosen = (play->hud.chosen + step) % (TOWER_KINDS + 1);
}

/* -------------------------------------------------------------------------------------------- the keys */

static void handle_game_key(Play *play, SDL_Keycode key)
{
    if (key >= SDLK_1 && key < SDLK_1 + (int)TOWER_KINDS)
        play->hud.chosen = (int)(key - SDLK_1);
    else if (key >= SDLK_KP_1 && key < SDLK_KP_1 + (int)TOWER_KINDS)
        play->hud.chosen = (int)(key - SDLK_KP_1);
    else if (key == SDLK_x)
        play->hud.chosen = TOWER_KINDS;
    else if (key == SDLK_SPACE || key == SDLK_RETURN)
        press(play, HUD_WAVE);
    else if (key == SDLK_f)
        press(play, HUD_SPEED);
    else if (key == SDLK_p)
        press(play, HUD_PAUSE);
    else if (key == SDLK_s && play->hud.is_paused && !play->hud.is_rewinding)
        play_step(play);
    else if (key == SDLK_r || key == SDLK_BACKSPACE)
        press(play, HUD_REWIND);
    else if (key == SDLK_F5)
        save_game(play);
    else if (key == SDLK_F9)
        play_load(play);
    else if (key == SDLK_ESCAPE)
        play->hud.page = PAGE_MENU;
}

static void switch_full_screen(SDL_Window *window)
{
    const bool is_full = (SDL_GetWindowFlags(window) & SDL_WINDOW_FULLSCREEN_DESKTOP) != 0;
    SDL_SetWindowFullscreen(window, is_full ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP);
}

/* Handles a key. Repeats of a held key are ignored, except for single steps. */
static void handle_key(Play *play, const SDL_KeyboardEvent *event)
{
    const SDL_Keycode key = event->keysym.sym;
    const bool is_page_up = pages_are_up(&play->hud, game_state(&play->game));
    if (event->repeat != 0 && key != SDLK_s) return;
    if (key == SDLK_F1)
        overlay_switch(&play->overlay, &play->game, !play->overlay.is_on);
    else if (key == SDLK_F11)
        switch_full_screen(play->window);
    else if (is_page_up && pages_choice_of_key(&play->hud, game_state(&play->game), key) != CHOICE_NONE)
        choose(play, pages_choice_of_key(&play->hud, game_state(&play->game), key));
    else if (key == SDLK_m)
        switch_sound(play);
    else if (!is_page_up || key == SDLK_ESCAPE)
        handle_game_key(play, key);
}

static void handle_release(Play *play, SDL_Keycode key)
{
    if (key == SDLK_r || key == SDLK_BACKSPACE) play->hud.is_rewinding = false;
}

void play_handle(Play *play, const SDL_Event *event)
{
    switch (event->type) {
    case SDL_QUIT:
        play->has_ended = true;
        break;
    case SDL_KEYDOWN:
        handle_key(play, &event->key);
        break;
    case SDL_KEYUP:
        handle_release(play, event->key.keysym.sym);
        break;
    case SDL_MOUSEBUTTONDOWN:
        handle_click(play, &event->button);
        break;
    case SDL_MOUSEBUTTONUP:
        if (event->button.button == SDL_BUTTON_LEFT) play->hud.is_rewinding = false;
        break;
    case SDL_MOUSEMOTION:
        update_mouse(play, event->motion.x, event->motion.y);
        break;
    case SDL_MOUSEWHEEL:
        handle_wheel(play, &event->wheel);
        break;
    case SDL_WINDOWEVENT:
        if (event->window.event == SDL_WINDOWEVENT_LEAVE) play->hud.is_mouse_away = true;
        break;
    default:
        break;
    }
}
