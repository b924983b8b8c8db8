/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* How idle workers sleep and are woken (sched/search.c), for the model checker Spin:
 *
 *     spin -a sleep.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
 *
 * One pusher that submits JOBS jobs and never helps, and WORKERS workers. Spin's memory is sequentially
 * consistent, so what the fences are about is modelled. A push goes into the pusher's store buffer
 * (`buffered`) and reaches memory (`visible`) at any later time, or at a fence of the pusher, or at the
 * fence that a sleeper makes every thread go through (membarrier). A searcher's subtraction from
 * searching_count is an atomic operation, which others see in order; but a plain read may return the older
 * value (`late`) until the searcher's next fence.
 * Where the source has only an order for the compiler, so has the model.
 *
 * Checked: there is no state in which nobody can go on and jobs are left, even when one of the jobs ends
 * only after all others have: then its worker is no help, and the other one has to be awake. Spin reports
 * such a state as an invalid end state: workers may end only where they sleep, and the monitor ends only
 * when all jobs have run. With the sleeper's fence left out (NO_SLEEPER_FENCE), fence C of the pusher
 * (NO_PUSHER_FENCE), or the second look of the last searcher (NO_SECOND_LOOK), Spin has to find such a
 * state: else the model would show nothing. tests/models/check_sleep.sh runs all of them. */

#define WORKERS 2
#ifndef JOBS
#define JOBS 2
#endif

byte buffered = 0;  /* pushed, not yet visible to others */
byte visible = 0;   /* jobs that anybody can take */
byte done = 0;
byte sleepers = 0;  /* sleeper_count */
byte searching = 0; /* searching_count */
bool late[WORKERS]; /* this worker's subtraction from it may still be missed by a plain read */
bool after[WORKERS]; /* this worker's came after the other's, which was late: its fence is good for both */
bool idle[WORKERS];
bool permit[WORKERS];
bool has_long = false;

inline drain_pusher()
{
    visible = visible + buffered;
    buffered = 0
}

/* A plain read of searching_count may see the subtraction of this worker not yet. */
#define SOMEBODY_LATE (late[0] || late[1])

inline fence_worker()
{
    atomic {
        late[me] = false;
        if
        :: after[me] -> late[1 - me] = false; after[me] = false
        :: else
        fi
    }
}

/* wake_idle: of several wakers the one that clears the bit gives the permit. */
inline wake_one()
{
    w = 0;
    do
    :: w < WORKERS && idle[w] -> atomic { if :: idle[w] -> idle[w] = false; permit[w] = true; break :: else fi }
    :: w < WORKERS && !idle[w] -> w++
    :: w >= WORKERS -> break
    od
}

/* quern__jobs_notify_sleepers, by the pusher. */
inline notify()
{
    if
    :: sleepers != 0 ->
#ifndef NO_PUSHER_FENCE
        atomic { drain_pusher() }
#endif
        if
        :: searching == 0 -> wake_one()
        :: searching != 0 || SOMEBODY_LATE
        fi
    :: else
    fi
}

active proctype pusher()
{
    byte pushed = 0, w;
    do
    :: pushed < JOBS ->
        atomic { buffered++; pushed++ }
        /* fence A is only an order for the compiler */
        notify()
    :: pushed == JOBS -> break
    od
}

/* Stores become visible some time. */
active proctype store_buffers()
{
end:
    do
    :: atomic { buffered > 0 -> drain_pusher() }
    :: atomic { late[0] -> late[0] = false }
    :: atomic { late[1] -> late[1] = false }
    od
}

proctype worker(byte me)
{
    bool found;
    bool last;
    byte w;
search:
    atomic { late[me] = false; after[1 - me] = false; searching++ }
    /* spins for as long as it likes */
    do
    :: atomic { visible > 0 -> visible--; found = true; break }
    :: found = false; break
    od;
    atomic {
        last = (searching == 1);
        searching--;
        late[me] = true;
        after[me] = late[1 - me]
    }
    if
    :: found && last ->
        fence_worker(); /* of search() */
#ifndef NO_SECOND_LOOK
        if
        :: sleepers != 0 && visible > 0 ->
            if
            :: searching == 0 -> wake_one()
            :: searching != 0 || SOMEBODY_LATE
            fi
        :: else
        fi
#endif
    :: else
    fi;
    if
    :: found ->
        if
        :: atomic { !has_long -> has_long = true }
            done == JOBS - 1 /* a job that ends when all others have */
        :: true
        fi;
        done++;
        goto search
    :: else
    fi;
    /* quern__worker_sleep */
    idle[me] = true;
    sleepers++;
#ifndef NO_SLEEPER_FENCE
    fence_worker();
    atomic { drain_pusher() } /* membarrier: every thread's buffer */
#endif
    if
    :: visible > 0
    :: else ->
end_sleep:
        atomic { permit[me] -> permit[me] = false }
    fi;
    idle[me] = false;
    sleepers--;
    goto search
}

/* The end of the run is valid only when every job has run. */
active proctype monitor()
{
    done == JOBS
}

init
{
    atomic {
        run worker(0);
        run worker(1)
    }
}
