/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A fountain whose code is compiled and reloaded when its source is saved: live [--c++] [--source FILE] [--threads N]
 * [--inspect]. With --inspect, the inspector shows the module and its systems in a browser.
 * With --check it edits a copy of the source itself; see check.c. With --measure it measures reloads; see measure.c. Where SDL2 is installed, it opens a window; otherwise, or
 * with --terminal, it draws into the terminal. */
#include "host.h"

#ifdef LIVE_INSPECT
#include <quern/inspect.h>
#endif

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef LIVE_WINDOW
#include <SDL2/SDL.h>
#endif

enum { COLUMNS = 79, ROWS = 22, MESSAGE_BYTES = 160 };

static const float width = 12, height = 9; /* metres that are visible */
static const double step_seconds = 1.0 / 60;

static char last_message[MESSAGE_BYTES];
static volatile sig_atomic_t is_interrupted;

/* ------------------------------------------------------------------------------------------ the host */

static void on_message(void *user_data, quern_log_level level, const char *message)
{
    (void)user_data;
    if (level != QUERN_LOG_INFO) fprintf(stderr, "%s\n", message);
    (void)snprintf(last_message, sizeof last_message, "%s", message);
}

void host_open(Host *host, uint32_t thread_count)
{
    QUERN_MUST(quern_world_create(NULL, &host->world));
    QUERN_MUST(quern_schedule_create(host->world, NULL, &host->schedule));
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &host->jobs));
    /* The compiler's output is renamed to the library's path: it is whole from the start. */
    const quern_live_def def = {
        .world = host->world, .schedule = host->schedule, .disable_settling = true, .handler = on_message};
    QUERN_MUST(quern_live_create(&def, &host->live));
}

void host_close(Host *host)
{
    quern_live_destroy(host->live);
    quern_schedule_destroy(host->schedule);
    quern_world_destroy(host->world);
    quern_jobs_destroy(host->jobs);
}

void host_choose_paths(Host *host, const char *source)
{
    const char *const parent = getenv("TMPDIR");
    (void)snprintf(host->folder, sizeof host->folder, "%s/quern-example-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    if (mkdtemp(host->folder) == NULL) {
        perror("live: no folder for the library");
        exit(1);
    }
    const char *const ending = host->is_cpp ? "cpp" : "c";
    if (source != NULL)
        (void)snprintf(host->source, sizeof host->source, "%s", source);
    else
        (void)snprintf(host->source, sizeof host->source, "%.400s/sparks.%s", host->folder, ending);
    (void)snprintf(host->library, sizeof host->library, "%.400s/sparks.so", host->folder);
}

void host_remove_paths(const Host *host)
{
    if (strncmp(host->source, host->folder, strlen(host->folder)) == 0) (void)unlink(host->source);
    (void)unlink(host->library);
    (void)rmdir(host->folder);
}

void host_compile_command(const Host *host, char command[COMMAND_BYTES])
{
    (void)snprintf(command, COMMAND_BYTES, "%s '%s' -o '%s.new' && mv '%s.new' '%s'",
                   host->is_cpp ? LIVE_COMPILE_CPP : LIVE_COMPILE_C, host->source, host->library,
                   host->library, host->library);
}

/* ------------------------------------------------------------------------------------------- drawing */

/* Calls `put` for each spark. The program has no C type of the module's component Position: it reads the fields x and y
 * where the module's description has them, which another version may change. */
static void draw_sparks(const Host *host, void (*put)(void *canvas, float x, float y), void *canvas)
{
    quern_type_info info;
    uint32_t x_offset = 0, y_offset = 0;
    const quern_component position = quern_component_find(host->world, "Position");
    if (position.bits == 0 || quern_component_get_info(host->world, position, &info) != QUERN_OK) return;
    for (uint32_t i = 0; i < info.field_count; i++) {
        if (strcmp(info.fields[i].name, "x") == 0) x_offset = info.fields[i].offset_bytes;
        if (strcmp(info.fields[i].name, "y") == 0) y_offset = info.fields[i].offset_bytes;
    }
    quern_query *sparks;
    QUERN_MUST(
        quern_query_create(host->world, &(quern_query_def){.terms = {quern_term_read(position)}}, &sparks));
    quern_query_iterator it = quern_query_iterate(sparks);
    while (quern_query_next(&it)) {
        const char *const values = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++) {
            float x, y;
            memcpy(&x, values + (size_t)i * info.size_bytes + x_offset, sizeof x);
            memcpy(&y, values + (size_t)i * info.size_bytes + y_offset, sizeof y);
            put(canvas, x, y);
        }
    }
    quern_query_destroy(sparks);
}

static void write_status(const Host *host, char text[MESSAGE_BYTES])
{
    quern_live_info info;
    quern_world_stats stats;
    QUERN_MUST(quern_live_get_info(host->live, 0, &info));
    QUERN_MUST(quern_world_get_stats(host->world, &stats));
    (void)snprintf(text, MESSAGE_BYTES, "version %u, %u systems, %llu entities | edit %.60s", info.version,
                   info.system_count, (unsigned long long)stats.entity_count, host->source);
}

typedef struct TextCanvas {
    char cells[ROWS][COLUMNS + 1];
} TextCanvas;

static void put_character(void *canvas, float x, float y)
{
    TextCanvas *const text = canvas;
    const int column = (int)((x / width + 0.5F) * COLUMNS), row = ROWS - 1 - (int)floorf(y / height * ROWS);
    if (column < 0 || column >= COLUMNS || row < 0 || row >= ROWS) return;
    char *const cell = &text->cells[row][column];
    const char was = *cell;
    *cell = '@';
    if (was == ' ') *cell = '.';
    if (was == '.') *cell = 'o';
}

static void draw_text(const Host *host)
{
    TextCanvas canvas;
    char status[MESSAGE_BYTES];
    memset(&canvas, ' ', sizeof canvas);
    draw_sparks(host, put_character, &canvas);
    fputs("\033[H", stdout);
    for (int row = 0; row < ROWS; row++)
        printf("%.*s\033[K\n", COLUMNS, canvas.cells[row]);
    write_status(host, status);
    printf("%.*s\033[K\n%.*s\033[K", COLUMNS, status, COLUMNS, last_message);
    fflush(stdout);
}

#ifdef LIVE_WINDOW
enum { WINDOW_WIDTH = 960, WINDOW_HEIGHT = 720 };

static void put_point(void *canvas, float x, float y)
{
    const SDL_FRect spark = {(x / width + 0.5F) * WINDOW_WIDTH - 2, (1 - y / height) * WINDOW_HEIGHT - 2, 4,
                             4};
    (void)SDL_RenderFillRectF(canvas, &spark);
}

/* Draws the sparks, with the state in the title. Returns false when the window was closed. */
static bool draw_window(const Host *host, SDL_Window *window, SDL_Renderer *renderer)
{
    char status[MESSAGE_BYTES];
    SDL_Event event;
    while (SDL_PollEvent(&event))
        if (event.type == SDL_QUIT || (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE))
            return false;
    (void)SDL_SetRenderDrawColor(renderer, 12, 14, 28, 255);
    (void)SDL_RenderClear(renderer);
    (void)SDL_SetRenderDrawColor(renderer, 255, 190, 90, 255);
    draw_sparks(host, put_point, renderer);
    SDL_RenderPresent(renderer);
    write_status(host, status);
    SDL_SetWindowTitle(window, status);
    return true;
}
#endif

/* ------------------------------------------------------------------------------------------ compiling */

/* A compiler that runs beside the frames. */
typedef struct Compiler {
    pid_t process;            /* 0: none */
    struct timespec compiled; /* time of the source that it compiles, or compiled last */
} Compiler;

/* Starts the compiler if the source has changed, and notices its end. */
static void follow_source(const Host *host, Compiler *compiler)
{
    struct stat status;
    int ended = 0;
    if (compiler->process != 0) {
        if (waitpid(compiler->process, &ended, WNOHANG) == 0) return;
        compiler->process = 0;
        if (ended != 0) on_message(NULL, QUERN_LOG_INFO, "the compiler failed: the code before goes on");
        return;
    }
    if (stat(host->source, &status) != 0) return; /* an editor is replacing it */
    if (status.st_mtim.tv_sec == compiler->compiled.tv_sec &&
        status.st_mtim.tv_nsec == compiler->compiled.tv_nsec)
        return;
    compiler->compiled = status.st_mtim;
    char command[COMMAND_BYTES];
    host_compile_command(host, command);
    compiler->process = fork();
    if (compiler->process == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (compiler->process < 0) {
        perror("live: the compiler cannot be started");
        compiler->process = 0;
    }
}

static void on_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* ---------------------------------------------------------------------------------------- inspector */

#ifdef LIVE_INSPECT
static quern_inspector *inspector; /* NULL: not asked for */

static quern_result write_modules(void *user_data, quern_sink sink)
{
    return quern_live_write_json(user_data, sink);
}

static void inspect(const Host *host)
{
    const quern_inspector_def def = {.world = host->world,
                                     .schedule = host->schedule,
                                     .jobs = host->jobs,
                                     .panels = {{"Modules", write_modules, host->live}},
                                     .title = "live"};
    QUERN_MUST(quern_inspector_create(&def, &inspector));
    QUERN_MUST(quern_inspector_serve(inspector, NULL));
    (void)snprintf(last_message, sizeof last_message, "inspector: %s", quern_inspector_url(inspector));
    printf("%s\n", last_message);
    fflush(stdout);
}
#endif

/* Runs a frame, unless a page has paused the program. */
static void run_frame(const Host *host)
{
#ifdef LIVE_INSPECT
    if (!quern_inspector_update(inspector, NULL)) return;
#endif
    QUERN_MUST(quern_schedule_run(host->schedule, host->jobs, step_seconds));
}

static int play(Host *host, bool in_terminal)
{
    Compiler compiler = {0};
    bool goes_on = true;
    (void)signal(SIGINT, on_signal);
    follow_source(host, &compiler);
    int ended = 0;
    if (compiler.process == 0 || waitpid(compiler.process, &ended, 0) < 0 || ended != 0) {
        fprintf(stderr, "live: '%s' could not be compiled\n", host->source);
        return 1;
    }
    compiler.process = 0;
    QUERN_MUST(quern_live_add(host->live, host->library, "sparks"));
#ifdef LIVE_WINDOW
    SDL_Window *window = NULL;
    SDL_Renderer *renderer = NULL;
    if (!in_terminal &&
        (SDL_Init(SDL_INIT_VIDEO) != 0 ||
         SDL_CreateWindowAndRenderer(WINDOW_WIDTH, WINDOW_HEIGHT, 0, &window, &renderer) != 0))
        in_terminal = true;
#else
    in_terminal = true;
#endif
    if (in_terminal) fputs("\033[2J", stdout);
    while (goes_on && !is_interrupted) {
        follow_source(host, &compiler);
        (void)quern_live_update(host->live,
                                NULL); /* on failure the code before goes on, and on_message has told it */
        run_frame(host);
        if (in_terminal) draw_text(host);
#ifdef LIVE_WINDOW
        else
            goes_on = draw_window(host, window, renderer);
#endif
        (void)nanosleep(&(struct timespec){.tv_nsec = 16000000}, NULL);
    }
    if (in_terminal) puts("");
#ifdef LIVE_WINDOW
    SDL_DestroyRenderer(renderer);
    SDL_DestroyWindow(window);
    SDL_Quit();
#endif
    return 0;
}

static int refuse(const char *argument)
{
    fprintf(stderr,
            "live: '%s' is not understood\nusage: live [--check] [--measure] [--c++] [--source FILE] "
            "[--threads N] "
            "[--terminal] [--inspect]\n",
            argument);
    return 2;
}

int main(int argument_count, char **arguments)
{
    bool checks = false, measures = false, is_cpp = false, in_terminal = false, is_inspected = false;
    const char *source = NULL;
    unsigned long thread_count = 0;
    for (int i = 1; i < argument_count; i++) {
        const char *const argument = arguments[i], *const value =
                                                       i + 1 < argument_count ? arguments[i + 1] : NULL;
        char *end = NULL;
        if (strcmp(argument, "--check") == 0)
            checks = true;
        else if (strcmp(argument, "--measure") == 0)
            measures = true;
        else if (strcmp(argument, "--c++") == 0)
            is_cpp = true;
        else if (strcmp(argument, "--terminal") == 0)
            in_terminal = true;
        else if (strcmp(argument, "--inspect") == 0)
            is_inspected = true;
        else if (strcmp(argument, "--source") == 0 && value != NULL)
            source = arguments[++i];
        else if (strcmp(argument, "--threads") == 0 && value != NULL &&
                 (thread_count = strtoul(arguments[++i], &end, 10)) <= QUERN_MAX_THREADS && end != value &&
                 *end == 0)
            continue;
        else
            return refuse(argument);
    }
    if (measures) return host_measure(LIVE_SOURCES "/many.c");
    if (source == NULL) source = is_cpp ? LIVE_SOURCES "/sparks.cpp" : LIVE_SOURCES "/sparks.c";
    if (checks) return host_check(source, is_cpp, (uint32_t)thread_count);
    Host host = {.is_cpp = is_cpp};
    host_choose_paths(&host, source);
    host_open(&host, (uint32_t)thread_count);
#ifdef LIVE_INSPECT
    if (is_inspected) inspect(&host);
#else
    if (is_inspected) fputs("live: this program was built without the inspector\n", stderr);
#endif
    const int status = play(&host, in_terminal);
#ifdef LIVE_INSPECT
    quern_inspector_destroy(inspector);
#endif
    host_close(&host);
    host_remove_paths(&host);
    return status;
}
