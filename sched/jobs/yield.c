/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Two workers on one processor.
 *
 * A pool with at most as many threads as processors spins, which is useful only if each worker has a
 * processor to itself. The system may place a woken worker on the processor of its waker, although another
 * processor is idle, and leave it there for milliseconds. This is frequent in virtual machines, where an
 * idle processor looks as if another machine used it. Then a spinning worker takes time from the worker
 * that has a job, and a loop shared by two workers takes as long as on one.
 *
 * So each worker publishes the processor on which it begins work. A spinning worker compares from time to
 * time:
 *
 *     a worker with a job is on its processor        the spinning worker moves away, or else sleeps
 *     a worker was woken and does not run yet        the spinning worker yields: it may block that worker
 *
 * A woken worker compares as soon as it runs. If it shares the processor, it has two choices:
 *
 *     move away   costs the woken worker the time in which an idle processor wakes up, 40 to 60 us in a virtual
 *                 machine, and milliseconds if that processor has other work. The waker continues at once.
 *     stay        the job begins at once, and the waker does not run until the job ends: the system notices
 *                 the idle processor only after milliseconds.
 *
 * So the worker stays for a job that is probably shorter than a move, and then sleeps again without
 * spinning; it moves away for all other work. Both times are measured. `longest_ns` of a function rises at
 * once and falls slowly; an unknown function counts as short, once. `move_ns` is kept between MIN_MOVE_NS
 * and MAX_MOVE_NS, and falls with each stay, so that a move is tried and measured again. Only workers of a
 * pool that spins measure, and only from one sleep to the next, so jobs of a worker that is awake cost
 * nothing.
 *
 * The waker may keep the woken worker from running. After a worker has found itself on a shared processor,
 * threads that wake it yield if it does not run yet, for the next CHECKED_WAKEUPS wake-ups
 * (checked_wakeup_count). A worker that did all of a long loop alone, although others were awake or woken,
 * yields as well: they may wait for its processor.
 *
 * A yield gives the processor to any thread that waits for it. If that is one of another program, the worker runs
 * again only after every such thread has used its time slice: tens of milliseconds on a crowded machine, where
 * woken workers do not run at once, so that each wake-up seems to be a reason to yield. So yields are timed. One that
 * lasted longer than a worker would need, LOST_YIELD_NS, ends all yields of the pool for YIELD_SHARE times as
 * long.
 *
 * External threads can make more workers than there are processors. While more are awake, no worker spins
 * (a worker that waits yields a few times, then sleeps), and a worker does not share work that it can do
 * alone: another worker would only compete for a processor, and the first would wait for it at the end.
 *
 * The pool moves only its own threads, unless they are pinned, and restores the set of processors that
 * each may use. Published processors may be outdated, because the system moves threads at any time. Then a
 * worker moves, sleeps or yields needlessly, or spins to the end: a matter of time, not of correctness. So
 * relaxed order is enough in this file. */

enum {
    CHECKED_WAKEUPS = 64,
    MIN_MOVE_NS = 50000,   /* typical duration of a move to an idle processor */
    MAX_MOVE_NS = 1000000, /* longest time for which a stay may block the waker */
    UNKNOWN_NS = 400000,   /* assumed duration of a function that replaces another one in the table */
    FALL_SHIFT = 3,        /* measured times fall by 1/8 of the difference */
    LOST_YIELD_NS = 2 * MAX_MOVE_NS,
    MOST_LOST_NS = 1000 * 1000 * 1000, /* longer yields count as that */
    YIELD_SHARE = 128 /* reciprocal of the part of the time that yields to other programs may cost */
};

/* Stores only changes, because spinning workers read the member. */
void quern__worker_publish_processor(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0) return;
    const uint32_t here = quern__thread_processor();
    if (atomic_load_explicit(&worker->cpu_slot.processor, memory_order_relaxed) != here)
        atomic_store_explicit(&worker->cpu_slot.processor, here, memory_order_relaxed);
}

static bool has_no_job(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->times.idle_since_ns, memory_order_relaxed) != 0;
}

static bool is_asleep(const quern__worker *worker)
{
    return atomic_load_explicit(&worker->times.asleep_since_ns, memory_order_relaxed) != 0;
}

/* Returns whether the worker was woken and does not run yet. */
static bool is_being_woken(const quern__worker *worker)
{
    return is_asleep(worker) && quern__parker_has_permit(&worker->parker);
}

bool quern__jobs_yield(quern_jobs *jobs)
{
    const uint64_t start_ns = quern__clock_ns();
    if (start_ns < atomic_load_explicit(&jobs->no_yield_until_ns, memory_order_relaxed)) return false;
    quern__thread_yield();
    const uint64_t end_ns = quern__clock_ns(), took_ns = end_ns - start_ns;
    /* A stop of the whole process, as in a debugger, is no sign of other programs: it counts as a second. */
    const uint64_t lost_ns = took_ns < MOST_LOST_NS ? took_ns : MOST_LOST_NS;
    if (took_ns > LOST_YIELD_NS)
        atomic_store_explicit(&jobs->no_yield_until_ns, end_ns + YIELD_SHARE * lost_ns,
                              memory_order_relaxed);
    return true;
}

/* Lists the processors of all other workers that have a job. A thread that has left its external slot
 * counts, too: it continues with other work. */
static uint32_t list_busy_processors(const quern__worker *worker, uint32_t *processors)
{
    const quern_jobs *jobs = worker->jobs;
    uint32_t count = 0;
    for (uint32_t index = 0; index < jobs->worker_count; index++) {
        const quern__worker *other = &jobs->workers[index];
        if (other == worker || has_no_job(other)) continue;
        const uint32_t processor = atomic_load_explicit(&other->cpu_slot.processor, memory_order_relaxed);
        if (processor != 0) processors[count++] = processor;
    }
    return count;
}

static void count_yield(quern__worker *worker)
{
    atomic_fetch_add_explicit(&worker->cpu_slot.yield_count, 1, memory_order_relaxed);
}

static bool shares_processor(const quern__worker *worker, uint32_t *processors, uint32_t *out_count)
{
    *out_count = list_busy_processors(worker, processors);
    const uint32_t wanted = quern__thread_processor();
    for (uint32_t i = 0; i < *out_count; i++)
        if (processors[i] == wanted) return true;
    return false;
}

typedef enum processor_state { PROCESSOR_OWN, PROCESSOR_LEFT, PROCESSOR_SHARED } processor_state;

static uint64_t clamp_move_ns(uint64_t ns)
{
    return ns < MIN_MOVE_NS ? MIN_MOVE_NS : ns > MAX_MOVE_NS ? MAX_MOVE_NS : ns;
}

static processor_state move_off(quern__worker *worker, const uint32_t *processors, uint32_t count)
{
    if (quern__worker_is_external(worker) || worker->jobs->host_threads.submit != NULL ||
        worker->jobs->pin_threads)
        return PROCESSOR_SHARED;
    const uint64_t start_ns = quern__clock_ns();
    if (!quern__thread_move_off(processors, count)) return PROCESSOR_SHARED;
    worker->cpu_slot.move_ns = clamp_move_ns((worker->cpu_slot.move_ns + quern__clock_ns() - start_ns) / 2);
    return PROCESSOR_LEFT;
}

/* Moves away from a processor on which another worker has a job. */
static processor_state leave_shared(quern__worker *worker)
{
    uint32_t processors[QUERN_MAX_THREADS], count;
    if (!shares_processor(worker, processors, &count)) return PROCESSOR_OWN;
    count_yield(worker);
    return worker->cpu_slot.stays_on_shared_processor ? PROCESSOR_SHARED
                                                      : move_off(worker, processors, count);
}

/* ----------------------------------------------------------------------------------------- brief jobs */

/* Finds the job that the worker was probably woken for, and returns the measured duration of its function.
 * Returns NULL if that job is part of a loop, graph or fork. */
static quern__job_time *find_job_time(quern__worker *worker)
{
    quern__job job;
    quern_job_function *function = quern__worker_peek_job(worker, &job) ? quern__job_function(&job) : NULL;
    if (function == NULL) return NULL;
    const uint64_t hash = (uint64_t)(uintptr_t)function * 0x9E3779B97F4A7C15u;
    quern__job_time *job_time = &worker->cpu_slot.job_times[hash >> 32 & (QUERN__JOB_TIME_COUNT - 1)];
    if (job_time->function != function) {
        job_time->longest_ns = job_time->function == NULL ? 0 : UNKNOWN_NS;
        job_time->function = function;
    }
    return job_time;
}

/* Ends the measurement after the work for which the worker was woken. If the worker has run several jobs,
 * the result is only longer. */
static void end_timing(quern__worker *worker)
{
    quern__cpu_slot *cpu_slot = &worker->cpu_slot;
    quern__job_time *job_time = cpu_slot->timed;
    cpu_slot->timed = NULL;
    if (worker->executed_job_count == cpu_slot->timed_executed_job_count) return;
    const uint64_t took_ns = quern__thread_time_ns() - cpu_slot->timed_from_ns;
    if (took_ns >= job_time->longest_ns)
        job_time->longest_ns = took_ns;
    else
        job_time->longest_ns -= (job_time->longest_ns - took_ns) >> FALL_SHIFT;
}

/* Decides whether the worker stays on the shared processor, for the job for which it was probably woken. */
static bool decide_to_stay(quern__worker *worker)
{
    quern__cpu_slot *cpu_slot = &worker->cpu_slot;
    cpu_slot->timed = find_job_time(worker);
    const uint64_t move_ns = clamp_move_ns(cpu_slot->move_ns);
    cpu_slot->stays_on_shared_processor = cpu_slot->timed != NULL && cpu_slot->timed->longest_ns < move_ns;
    if (cpu_slot->stays_on_shared_processor)
        cpu_slot->move_ns = move_ns - ((move_ns - MIN_MOVE_NS) >> FALL_SHIFT);
    return cpu_slot->stays_on_shared_processor;
}

static processor_state leave_shared_after_waking(quern__worker *worker)
{
    uint32_t processors[QUERN_MAX_THREADS], count;
    if (!shares_processor(worker, processors, &count)) return PROCESSOR_OWN;
    count_yield(worker);
    return decide_to_stay(worker) ? PROCESSOR_SHARED : move_off(worker, processors, count);
}

static bool any_other_worker(const quern__worker *worker, bool (*matches)(const quern__worker *other))
{
    const quern_jobs *jobs = worker->jobs;
    for (uint32_t index = 0; index < jobs->worker_count; index++)
        if (index != worker->index && matches(&jobs->workers[index])) return true;
    return false;
}

/* Relaxed: the result is a hint. It may be wrong for a moment, because the counts are read one after another. */
int64_t quern__jobs_count_awake(const quern_jobs *jobs)
{
    uint32_t inside = (uint32_t)atomic_load_explicit(&jobs->external_slots, memory_order_relaxed);
    uint32_t sleeper_count = atomic_load_explicit(&jobs->sleeper_count, memory_order_relaxed);
    return (int64_t)jobs->thread_count - 1 + quern__count_bits_32(inside) - sleeper_count;
}

bool quern__worker_should_stop_spinning(quern__worker *worker)
{
    if (worker->cpu_slot.timed != NULL) end_timing(worker);
    if (quern__jobs_is_oversubscribed(worker->jobs)) return true;
    if (leave_shared(worker) == PROCESSOR_SHARED) return true;
    if (any_other_worker(worker, is_being_woken)) {
        count_yield(worker);
        (void)quern__jobs_yield(worker->jobs);
    }
    return false;
}

/* Publishes the waker's processor, because a worker with a long job may have been moved since the job
 * began. */
void quern__worker_begin_waking(const quern__worker *sleeper)
{
    quern__worker *waker = quern__jobs_current_worker(sleeper->jobs);
    if (waker != NULL) quern__worker_publish_processor(waker);
}

void quern__worker_end_waking(const quern__worker *sleeper)
{
    if (atomic_load_explicit(&sleeper->cpu_slot.checked_wakeup_count, memory_order_relaxed) != 0 &&
        is_being_woken(sleeper))
        (void)quern__jobs_yield(sleeper->jobs);
}

/* Reads the thread's processor time before the sleep, where nothing waits for the worker; the time does not
 * advance during sleep. */
void quern__worker_prepare_sleep(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0) return;
    worker->cpu_slot.timed = NULL;
    worker->cpu_slot.stays_on_shared_processor = false;
    worker->cpu_slot.timed_executed_job_count = worker->executed_job_count;
    worker->cpu_slot.timed_from_ns = quern__thread_time_ns();
}

void quern__worker_leave_shared_processor(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0) return;
    uint32_t watched = atomic_load_explicit(&worker->cpu_slot.checked_wakeup_count, memory_order_relaxed);
    if (leave_shared_after_waking(worker) != PROCESSOR_OWN)
        watched = CHECKED_WAKEUPS;
    else if (watched != 0)
        watched--;
    else
        return;
    atomic_store_explicit(&worker->cpu_slot.checked_wakeup_count, watched, memory_order_relaxed);
}

/* Returns whether the worker has no job and is awake or woken, so that it would have helped if it had
 * run. */
static bool could_have_helped(const quern__worker *worker)
{
    return has_no_job(worker) && (!is_asleep(worker) || is_being_woken(worker));
}

void quern__worker_yield_after_long_work(quern__worker *worker)
{
    if (worker->jobs->spin_ns == 0 || !any_other_worker(worker, could_have_helped)) return;
    count_yield(worker);
    (void)quern__jobs_yield(worker->jobs);
}
