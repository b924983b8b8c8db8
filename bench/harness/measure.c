/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* All subjects of a case are open at the same time and alternate, round by round. Rounds are, in order:
 * some that find the number of passes of a sample (if the workload does not set it), warm-up, batches of
 * single frames, rounds with hardware counters, and samples. Each subject makes the same passes in each of
 * them, so that checksums can be compared at the end.
 *
 * The addresses of data may make a difference of some percent, which remains as long as a subject is
 * open. So a case is opened several times (its placements), and each of them gives a share of the
 * samples. */
#include "bench/harness/measure.h"

#include "bench/harness/observe.h"
#include "bench/harness/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* ----------------------------------------------------------------------------------------- progress */

static const char clear_line[] = "\r\033[K";

void quern__bench_progress_begin(quern__bench_progress *progress, uint32_t case_count)
{
    *progress = (quern__bench_progress){.is_shown = isatty(STDERR_FILENO) != 0,
                                        .started_ns = quern_bench_now_ns(),
                                        .case_count = case_count};
}

void quern__bench_format_left(char text[QUERN__BENCH_LEFT_TEXT_BYTES], double done_fraction,
                              double elapsed_s)
{
    text[0] = '\0';
    if (done_fraction <= 0.01) return;
    const double left_s = elapsed_s / done_fraction * (1 - done_fraction);
    if (left_s < 90)
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.0f s left", left_s);
    else if (left_s < 90.0 * 60)
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.0f min left", left_s / 60);
    else
        snprintf(text, QUERN__BENCH_LEFT_TEXT_BYTES, "about %.1f h left", left_s / 3600);
}

void quern__bench_progress_show(const quern__bench_progress *progress, const char *workload,
                                const quern_bench_case *scene, double fraction)
{
    if (!progress->is_shown) return;
    const double done_fraction = (progress->done_count + fraction) / progress->case_count;
    const double elapsed_s = (double)(quern_bench_now_ns() - progress->started_ns) * 1e-9;
    char left[QUERN__BENCH_LEFT_TEXT_BYTES];
    quern__bench_format_left(left, done_fraction, elapsed_s);
    fprintf(stderr, "%s%u of %u: %s, %u entities, %u thread%s, %.0f %%%s%s", clear_line,
            progress->done_count + 1, progress->case_count, workload, scene->entity_count,
            scene->thread_count, scene->thread_count == 1 ? "" : "s", 100 * fraction,
            left[0] != '\0' ? "; " : "", left);
    fflush(stderr);
}

void quern__bench_progress_step(quern__bench_progress *progress)
{
    progress->done_count++;
    if (progress->is_shown) fputs(clear_line, stderr);
}

/* ------------------------------------------------------------------------------------------- memory */

uint64_t quern__bench_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    uint64_t page_count;
    const bool found = fscanf(file, "%*u %" SCNu64, &page_count) == 1;
    fclose(file);
    return found ? page_count * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* The memory of a subject: the growth of the resident set of a forked process. */
typedef struct footprint {
    double growth_bytes; /* growth of the resident set during the pass */
    uint64_t checksum;
} footprint;

static footprint measure_here(const quern_bench_subject *subject, const quern_bench_case *scene)
{
    /* Returns the free memory of the heap to the system. Workloads before may have left much of it, and what a subject
     * takes of it would not make the process grow. */
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    void *state = subject->open != NULL ? subject->open(scene) : NULL;
    if (subject->enter != NULL) subject->enter(state);
    const uint64_t before_bytes = quern__bench_resident_bytes();
    subject->run(state, 1);
    const uint64_t after_bytes = quern__bench_resident_bytes();
    return (footprint){
        .growth_bytes = after_bytes > before_bytes ? (double)(after_bytes - before_bytes) : 0,
        .checksum = subject->checksum != NULL ? subject->checksum(state) : 0,
    };
}

/* Reads all bytes from the forked process. Ends the program if the forked process ended early; unless a
 * signal ended it, it has printed the cause. */
static void read_all(int file, void *target, size_t size_bytes)
{
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t count = read(file, (char *)target + done, size_bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) quern_bench_die("the process that measures memory ended before its pass was done");
        done += (size_t)count;
    }
}

/* Runs one pass of the subject in a forked process and returns its memory and its checksum. Each subject has a process
 * of its own, so that it cannot reuse memory that another subject has freed. */
static footprint measure_in_fork(const quern_bench_subject *subject, const quern_bench_case *scene)
{
    int ends[2];
    fflush(NULL); /* otherwise both processes would write the buffered output */
    if (pipe(ends) != 0) quern_bench_die("cannot create a pipe to measure memory: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0) quern_bench_die("cannot fork a process to measure memory: %s", strerror(errno));
    if (child == 0) {
        const footprint measured = measure_here(subject, scene);
        _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[1]);
    footprint measured;
    read_all(ends[0], &measured, sizeof measured);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return measured;
}

/* -------------------------------------------------------------------------------------------- times */

/* All subjects of a case are open at the same time and alternate, round by round. Rounds are, in order:
 * some that find the number of passes of a sample (if the workload does not set it), warm-up, batches of
 * single frames, rounds with hardware counters, and samples. Each subject makes the same passes in each of
 * them, so that checksums can be compared at the end.
 *
 * The addresses of data may make a difference of some percent, which remains as long as a subject is
 * open. So a case is opened several times (its placements), and each of them gives a share of the
 * samples. */

/* Pause before each sample. It is longer than the time for which idle workers of the previous subject spin,
 * so that the next subject has all processors to itself. */
enum { PAUSE_NS = 1000000 };

enum {
    ENOUGH_NS = 5000000, /* duration of a sample if the workload does not set the number of passes */
    FRAME_BATCHES = 5,
    FRAMES_NS = 300000000, /* intended duration of all single frames of one subject */
    MIN_BATCH_FRAMES = 4,
    MAX_BATCH_FRAMES = 100,
    PROFILED_ROUNDS = 4,
    TOO_SHORT_NS = 1000, /* duration of some tens of clock reads */
    COUNTED_ROUNDS = 3,
    TRACED_PASSES = 20,
};

/* An odd factor, so that multiplying an earlier placement's checksum loses no bit of it. */
#define CHECKSUM_FACTOR 0x9E3779B97F4A7C15u

typedef struct subject_run {
    const quern_bench_subject *subject;
    void *state;                     /* state that `open` returned for the current placement */
    struct quern_schedule *schedule; /* schedule that the subject has set, or NULL */
    uint32_t round_count;            /* rounds of a sample */
    uint32_t pass_count;             /* passes of each round */
    double *samples;
    size_t sample_count;
    size_t sample_capacity;
    double *frames;
    size_t frame_count;
    size_t frame_capacity; /* used for fresh workloads only; others allocate all frames at once */
    uint64_t checksum;     /* checksums of all placements, combined */
    double counters[QUERN_HARDWARE_EVENT_COUNT];
} subject_run;

/* The case that is measured. */
typedef struct bench_session {
    const quern__bench_settings *settings;
    const quern_bench_workload *workload;
    const char *name;
    quern_bench_case scene;
    subject_run runs[QUERN_BENCH_MAX_SUBJECTS];
    uint32_t run_count;
    uint32_t placement_count;
    uint32_t placement;
    quern__bench_counters counters;
} bench_session;

static const char *subject_name(const bench_session *session, uint32_t index)
{
    return quern__bench_subject_name(session->settings->suite, session->workload, index);
}

static double operations_of_pass(const bench_session *session)
{
    const quern_bench_workload *workload = session->workload;
    const uint64_t count =
        workload->operation_count != NULL ? workload->operation_count(session->scene.entity_count) : 1;
    return count > 0 ? (double)count : 1;
}

static void pause_between_subjects(const bench_session *session)
{
    if (session->scene.thread_count > 1) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* -------------------------------------------------------------------------------------------- rounds */

typedef struct round_options {
    bool take_checksum;              /* whether to compute the checksum after the last round */
    bool keep_frames;                /* whether to record the time of each round as a frame */
    quern__bench_counters *counters; /* NULL: no events are counted */
} round_options;

static void enter(const subject_run *run)
{
    if (run->subject->enter != NULL) run->subject->enter(run->state);
}

static void leave(const subject_run *run)
{
    if (run->subject->leave != NULL) run->subject->leave(run->state);
}

static uint64_t round_ns(subject_run *run, quern__bench_counters *counters, bool take_checksum)
{
    enter(run);
    if (counters != NULL) quern__bench_counters_start(counters);
    const uint64_t start_ns = quern_bench_now_ns();
    run->subject->run(run->state, run->pass_count);
    const uint64_t time_ns = quern_bench_now_ns() - start_ns;
    if (counters != NULL) quern__bench_counters_stop(counters);
    if (take_checksum && run->subject->checksum != NULL)
        run->checksum = run->checksum * CHECKSUM_FACTOR + run->subject->checksum(run->state);
    leave(run);
    return time_ns;
}

/* Runs all rounds of a sample and returns the sum of their times. */
static uint64_t sample_ns(subject_run *run, round_options options)
{
    uint64_t time_ns = 0;
    for (uint32_t round = 0; round < run->round_count; round++) {
        const bool is_final = round == run->round_count - 1;
        const uint64_t one_ns = round_ns(run, options.counters, options.take_checksum && is_final);
        time_ns += one_ns;
        if (!options.keep_frames) continue;
        run->frames =
            quern__bench_grow(run->frames, run->frame_count, &run->frame_capacity, sizeof *run->frames);
        run->frames[run->frame_count++] = (double)one_ns;
    }
    return time_ns;
}

/* -------------------------------------------------------------------------------------- open and close */

static void set_passes(bench_session *session, uint32_t wanted_count)
{
    const bool fresh = session->workload->fresh;
    const uint32_t most = session->settings->max_passes;
    const uint32_t pass_count = wanted_count < most ? wanted_count : most;
    for (uint32_t i = 0; i < session->run_count; i++) {
        session->runs[i].round_count = fresh ? pass_count : 1;
        session->runs[i].pass_count = fresh ? 1 : pass_count;
    }
}

/* Doubles the number of passes until a sample of the control takes ENOUGH_NS. */
static void find_pass_count(bench_session *session)
{
    for (uint32_t pass_count = 1;; pass_count *= 2) {
        set_passes(session, pass_count);
        const uint64_t time_ns = sample_ns(&session->runs[0], (round_options){0});
        for (uint32_t i = 1; i < session->run_count; i++)
            sample_ns(&session->runs[i], (round_options){0});
        if (time_ns >= ENOUGH_NS || pass_count >= session->settings->max_passes) return;
    }
}

static void begin_runs(bench_session *session)
{
    const quern_bench_workload *workload = session->workload;
    const quern__bench_settings *settings = session->settings;
    const uint32_t most = settings->repeat_count;
    session->placement_count = settings->placement_count < most ? settings->placement_count : most;
    session->run_count = quern__bench_subject_count(workload);
    for (uint32_t i = 0; i < session->run_count; i++) {
        subject_run *run = &session->runs[i];
        *run = (subject_run){.subject = &workload->subjects[i], .round_count = 1, .pass_count = 1};
        for (int k = 0; k < QUERN_HARDWARE_EVENT_COUNT; k++)
            run->counters[k] = NAN;
    }
    if (workload->pass_count != NULL)
        set_passes(session, workload->pass_count(session->scene.entity_count));
}

static void open_subjects(bench_session *session)
{
    if (session->settings->counter_source != NULL)
        quern__bench_counters_open(&session->counters, session->settings->counter_source);
    for (uint32_t i = 0; i < session->run_count; i++) {
        subject_run *run = &session->runs[i];
        (void)quern__bench_take_schedule();
        run->state = run->subject->open != NULL ? run->subject->open(&session->scene) : NULL;
        run->schedule = quern__bench_take_schedule();
    }
    if (session->workload->pass_count == NULL && session->placement == 0) find_pass_count(session);
}

static void close_subjects(bench_session *session)
{
    for (uint32_t i = 0; i < session->run_count; i++)
        if (session->runs[i].subject->close != NULL)
            session->runs[i].subject->close(session->runs[i].state);
    if (session->settings->counter_source != NULL) quern__bench_counters_close(&session->counters);
}

/* -------------------------------------------------------------------------------------------- stages */

/* Returns the time of the slowest subject's last pass. */
static double warm_up(bench_session *session)
{
    double slowest_ns = 0;
    for (uint32_t round = 0; round < session->settings->warm_up_count; round++) {
        slowest_ns = 0;
        for (uint32_t i = 0; i < session->run_count; i++) {
            subject_run *run = &session->runs[i];
            pause_between_subjects(session);
            const double passes = (double)run->pass_count * run->round_count;
            slowest_ns = fmax(slowest_ns, (double)sample_ns(run, (round_options){0}) / passes);
        }
    }
    return slowest_ns;
}

static void time_frames(subject_run *run, uint32_t count)
{
    enter(run);
    uint64_t before_ns = quern_bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        run->subject->run(run->state, 1);
        const uint64_t now_ns = quern_bench_now_ns();
        run->frames[run->frame_count++] = (double)(now_ns - before_ns);
        before_ns = now_ns;
    }
    leave(run);
}

static void take_frames(bench_session *session, double pass_ns)
{
    if (!session->settings->frames || !session->workload->frames || session->workload->fresh) return;
    const double wanted = FRAMES_NS / (fmax(pass_ns, 1) * FRAME_BATCHES);
    const uint32_t count = (uint32_t)fmin(fmax(wanted, MIN_BATCH_FRAMES), MAX_BATCH_FRAMES);
    for (uint32_t i = 0; i < session->run_count; i++)
        session->runs[i].frames = quern_bench_allocate((size_t)count * FRAME_BATCHES, sizeof(double));
    for (uint32_t batch = 0; batch < FRAME_BATCHES; batch++) {
        for (uint32_t i = 0; i < session->run_count; i++) {
            pause_between_subjects(session);
            time_frames(&session->runs[i], count);
        }
    }
}

/* Counts hardware events in rounds that are not samples, because starting and stopping counters is slow. */
static void count_events(bench_session *session)
{
    if (session->settings->counter_source == NULL) return;
    for (uint32_t i = 0; i < session->run_count; i++) {
        subject_run *run = &session->runs[i];
        quern__bench_counters_reset(&session->counters);
        for (uint32_t round = 0; round < COUNTED_ROUNDS; round++) {
            pause_between_subjects(session);
            sample_ns(run, (round_options){.counters = &session->counters});
        }
        const double passes = (double)run->pass_count * run->round_count * COUNTED_ROUNDS;
        for (int c = 0; c < QUERN_HARDWARE_EVENT_COUNT; c++)
            run->counters[c] = session->counters.totals[c] / (passes * operations_of_pass(session));
    }
}

static void take_sample(const bench_session *session, subject_run *run, bool last)
{
    const double operations = operations_of_pass(session) * run->pass_count * run->round_count;
    pause_between_subjects(session);
    const quern_bench_workload *workload = session->workload;
    const bool keep_frames = session->settings->frames && workload->frames && workload->fresh;
    const uint64_t time_ns =
        sample_ns(run, (round_options){.take_checksum = last, .keep_frames = keep_frames});
    run->samples =
        quern__bench_grow(run->samples, run->sample_count, &run->sample_capacity, sizeof *run->samples);
    /* The clock may not advance during a very short sample; logarithms need a positive number. */
    run->samples[run->sample_count++] = fmax((double)time_ns, 1) / operations;
}

static double elapsed_s(uint64_t start_ns)
{
    return (double)(quern_bench_now_ns() - start_ns) * 1e-9;
}

/* The samples of the current placement. */
typedef struct sample_share {
    uint32_t first; /* index of the first sample of the placement */
    uint32_t end;   /* minimum number of samples of all placements up to this one */
    uint32_t limit; /* maximum number of samples of all placements up to this one */
    double time_s;  /* minimum duration of the placement's samples in seconds */
} sample_share;

/* Returns whether the sample with this index is the last one of the placement. This is decided before the
 * sample, because the checksum is computed with the last sample. */
static bool is_last(const sample_share *share, uint32_t index, uint64_t start_ns)
{
    if (index + 1 < share->end) return false;
    if (index + 1 >= share->limit) return true;
    const double done_s = elapsed_s(start_ns);
    const double sample_s = index > share->first ? done_s / (index - share->first) : 0;
    return done_s + sample_s >= share->time_s;
}

static void show_progress(const bench_session *session, const sample_share *share, uint32_t index,
                          uint64_t start_ns)
{
    const double by_count =
        index < share->end ? (double)(index - share->first) / (share->end - share->first) : 1;
    const double by_time = share->time_s > 0 ? elapsed_s(start_ns) / share->time_s : 1;
    const double part = fmin(fmin(by_count, by_time), 1);
    quern__bench_progress_show(session->settings->progress, session->name, &session->scene,
                               (session->placement + part) / session->placement_count);
}

static void take_samples(bench_session *session)
{
    const uint64_t start_ns = quern_bench_now_ns();
    const quern__bench_settings *settings = session->settings;
    const uint32_t count = session->placement_count, next = session->placement + 1;
    const sample_share share = {
        .first = (uint32_t)session->runs[0].sample_count,
        .end = settings->repeat_count * next / count,
        .limit = QUERN__BENCH_MAX_SAMPLES * next / count,
        .time_s = settings->time_s / count,
    };
    bool last = false;
    for (uint32_t index = share.first; !last; index++) {
        show_progress(session, &share, index, start_ns);
        last = is_last(&share, index, start_ns);
        for (uint32_t i = 0; i < session->run_count; i++)
            take_sample(session, &session->runs[i], last);
    }
}

/* ------------------------------------------------------------------------------------------- records */

static quern__bench_record make_record(const bench_session *session, uint32_t index)
{
    const quern_bench_workload *workload = session->workload;
    quern__bench_record record = {
        .workload = quern__bench_copy_text(session->name),
        .subject = quern__bench_copy_text(subject_name(session, index)),
        .control = index > 0 ? quern__bench_copy_text(subject_name(session, 0)) : NULL,
        .unit = quern__bench_copy_text(workload->unit != NULL ? workload->unit : "pass"),
        .entity_count = session->scene.entity_count,
        .thread_count = session->scene.thread_count,
        .bytes_per_entity = workload->bytes_per_entity,
        .is_bytes = workload->footprint,
    };
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        record.counters[i] = NAN;
    return record;
}

bool quern__bench_is_too_short(double sample_ns, uint32_t round_count)
{
    return sample_ns < (double)TOO_SHORT_NS * round_count;
}

static void note_too_short(const bench_session *session, const subject_run *run,
                           const quern__bench_record *record)
{
    const double operations = operations_of_pass(session) * run->pass_count * run->round_count;
    const double sample_ns = record->summary.median * operations;
    if (!quern__bench_is_too_short(sample_ns, run->round_count)) return;
    char text[QUERN__BENCH_CASE_TEXT_BYTES];
    quern__bench_format_case(text, record);
    quern__bench_note(
        "%s: a sample of %.0f ns is too short to measure; run more passes, and pass results to "
        "quern_bench_keep so that the compiler cannot remove the work",
        text, sample_ns);
}

/* Adds a record of the subject's samples. The record becomes the owner of the arrays. */
static void add_run(quern__bench_results *results, const bench_session *session, uint32_t index)
{
    const subject_run *run = &session->runs[index];
    quern__bench_record record = make_record(session, index);
    record.samples = run->samples;
    record.sample_count = run->sample_count;
    record.frames = run->frames;
    record.frame_count = run->frame_count;
    record.checksum = run->checksum;
    memcpy(record.counters, run->counters, sizeof record.counters);
    record.summary = quern__bench_summarise(record.samples, record.sample_count);
    note_too_short(session, run, &record);
    quern__bench_results_add(results, &record);
}

/* Traces some passes in the last placement. The checksum was computed with the last sample, so that
 * traced, captured and profiled passes do not affect it. */
static void trace_passes(const bench_session *session)
{
    const subject_run *run = &session->runs[session->run_count > 1 ? 1 : 0];
    if (quern_bench_trace() == NULL || session->placement + 1 < session->placement_count) return;
    enter(run);
    quern__bench_tracing_start();
    run->subject->run(run->state, session->workload->fresh ? 1 : TRACED_PASSES);
    quern__bench_tracing_stop();
    leave(run);
}

/* Captures one frame, after an ordinary pass unless the workload's rounds have only one pass. */
static void record_frame(const bench_session *session, uint32_t index)
{
    const subject_run *run = &session->runs[index];
    const quern__bench_captured like = {.workload = session->name,
                                        .subject = subject_name(session, index),
                                        .entity_count = session->scene.entity_count,
                                        .thread_count = session->scene.thread_count,
                                        .operations = operations_of_pass(session)};
    pause_between_subjects(session);
    enter(run);
    if (run->subject->capture == NULL || run->pass_count > 1) run->subject->run(run->state, 1);
    if (run->subject->capture != NULL)
        quern__bench_forecasts_capture(session->settings->forecasts, &like, run->subject, run->state);
    leave(run);
}

/* Captures frames of all subjects in the last placement. Subjects alternate, as they do for samples, so that
 * each finds the cache in the state in which the other subjects have left it. */
static void record_frames(const bench_session *session)
{
    if (session->settings->forecasts == NULL || session->placement + 1 < session->placement_count) return;
    for (uint32_t turn = 0; turn < QUERN__BENCH_CAPTURES; turn++)
        for (uint32_t i = 0; i < session->run_count; i++)
            record_frame(session, i);
}

/* Profiles frames in the last placement. This must follow all other measurements, because it switches
 * profiling off at the end, even for a subject that has switched it on itself. */
static void profile_passes(const bench_session *session)
{
    const quern__bench_profiles *profiles = session->settings->profiles;
    if (profiles == NULL || session->placement + 1 < session->placement_count) return;
    for (uint32_t i = 0; i < session->run_count; i++) {
        const subject_run *run = &session->runs[i];
        if (run->schedule == NULL) continue;
        quern__bench_profiles_start(profiles, run->schedule);
        for (uint32_t round = 0; round < PROFILED_ROUNDS; round++) {
            pause_between_subjects(session);
            enter(run);
            run->subject->run(run->state, run->pass_count);
            leave(run);
        }
        quern__bench_profiles_finish(profiles, run->schedule, session->workload->name,
                                     subject_name(session, i), &session->scene);
    }
}

static void measure_placement(bench_session *session)
{
    open_subjects(session);
    const double pass_ns = warm_up(session);
    if (session->placement == 0) {
        take_frames(session, pass_ns);
        count_events(session);
    }
    take_samples(session);
    trace_passes(session);
    record_frames(session);
    profile_passes(session);
    close_subjects(session);
}

static void measure_time(quern__bench_results *results, bench_session *session)
{
    begin_runs(session);
    for (; session->placement < session->placement_count; session->placement++)
        measure_placement(session);
    for (uint32_t i = 0; i < session->run_count; i++)
        add_run(results, session, i);
}

static void measure_footprint(quern__bench_results *results, const bench_session *session)
{
    const uint32_t count = quern__bench_subject_count(session->workload);
    for (uint32_t i = 0; i < count; i++) {
        const footprint measured = measure_in_fork(&session->workload->subjects[i], &session->scene);
        quern__bench_record record = make_record(session, i);
        record.samples = quern_bench_allocate(1, sizeof *record.samples);
        record.samples[0] = measured.growth_bytes / operations_of_pass(session);
        record.sample_count = 1;
        record.checksum = measured.checksum;
        record.summary = quern__bench_summarise(record.samples, 1);
        quern__bench_results_add(results, &record);
    }
}

void quern__bench_measure(quern__bench_results *results, const quern__bench_settings *settings,
                          const quern_bench_workload *workload, const quern_bench_case *scene)
{
    bench_session session = {
        .settings = settings, .workload = workload, .name = workload->name, .scene = *scene};
    if (workload->footprint)
        measure_footprint(results, &session);
    else
        measure_time(results, &session);
}
