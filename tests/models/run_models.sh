#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# run_models.sh [quick] [SCENARIO ...]: explores the models in this folder with the model checker GenMC and
# prints a line for each: scenario, memory model, executions, seconds, verdict, bounds. 'quick' omits long scenarios
# and the weaker memory model. Fails if a scenario fails. Does nothing if genmc is not on the path.
set -eu

# Prints the scenarios: when each runs (quick or long), its memory models, its name (a function; the name begins with
# the name of the file that has it), its bounds.
list()
{
    cat <<'TEXT'
quick rc11,imm deque_alone                    no thief; 4 jobs
quick rc11,imm deque_last                     1 thief, 2 steals; 2 jobs
quick rc11,imm deque_full                     1 thief, 2 steals; 4 jobs, room for 2
quick rc11,imm deque_one_thief                1 thief, 2 steals; 3 jobs
quick rc11,imm deque_closed_scopes            1 thief, 2 steals for a scope; 3 jobs
quick rc11,imm deque_taken_at                 1 thief, 2 steals; 2 jobs, each taken by its index
quick rc11,imm deque_taken_middle             1 thief, 2 steals; 4 jobs, 1 taken from between 2 others
quick rc11,imm deque_taken_two_thieves        2 thieves, 2 steals and 1; 3 jobs, 1 taken from between 2 others
quick rc11,imm deque_two_thieves              2 thieves, 1 steal each; 3 jobs
long  rc11,imm deque_last_two_thieves         2 thieves, 2 steals each; 2 jobs
quick rc11,imm sleep_one                      1 pusher, 1 worker; 1 job; 2 rounds
quick rc11,imm sleep_one_fences               1 pusher, 1 worker; 1 job; 2 rounds
quick rc11,imm sleep_queue                    1 outside pusher, 1 worker; 1 job; 2 rounds
quick rc11     sleep_two_jobs                 1 pusher, 1 worker, 1 asleep; 2 jobs; 2 rounds
quick rc11     sleep_two_jobs_fences          1 pusher, 1 worker, 1 asleep; 2 jobs; 2 rounds
quick rc11     sleep_two_searchers_fences     1 pusher, 2 workers; 1 job; 1 round
long  rc11     sleep_two_searchers            1 pusher, 2 workers; 1 job; 1 round
quick rc11,imm counter_continuation           1 hold, 1 continuation
quick rc11,imm counter_continuation_and_sleeper 1 hold, 1 continuation, 1 sleeper
quick rc11,imm counter_freed_after_look       2 holds, 1 polling thread
quick rc11,imm counter_freed_after_wait       2 holds, 1 sleeper
quick rc11,imm counter_freed_with_continuation 1 hold, 1 continuation, 1 polling thread
quick rc11,imm counter_outside                1 hold, 1 outside sleeper
quick rc11,imm counter_fork                   1 fork, 1 thief
long  rc11     counter_two_continuations      1 hold, 2 continuations
long  rc11     counter_two_sleepers           1 hold, 2 sleepers
quick rc11,imm after_two                      2 holds, 1 thread that adds both links
quick rc11,imm after_two_freed                2 holds, 1 thread that runs the job
long  rc11,imm after_three                    3 holds
quick rc11,imm limit_one                      1 hold, 1 sleeper with limit
long  rc11,imm limit_any                      2 holds, 1 sleeper for any
quick rc11,imm limit_any_of_which_one         1 hold of 2, 1 sleeper for any with limit
long  rc11     limit_with_continuation        1 hold, 1 sleeper with limit, 1 continuation before
long  rc11     limit_with_late_continuation   1 hold, 1 sleeper with limit, 1 continuation
quick rc11,imm limit_inside                   1 hold of 2, 1 waiting worker with limit
quick rc11,imm limit_outside                  1 hold, 1 outside sleeper with limit
quick rc11,imm wait_foreign_job               1 waiting worker, 1 outside pusher
quick rc11     wait_leave                     1 waiting worker, 1 caller that leaves
quick rc11,imm wait_leave_fences              1 waiting worker, 1 caller that leaves
quick rc11,imm wait_outside_leave             1 outside sleeper, 1 caller that leaves
quick rc11,imm wait_outside_fences            1 outside sleeper, 1 caller that leaves
quick rc11,imm wait_part                      1 waiting worker, 1 pusher of a job that the wait needs
quick rc11,imm wait_part_fences               1 waiting worker, 1 pusher of a job that the wait needs
quick rc11     wait_all_blocked               2 waiting workers, 1 unrelated job
quick rc11     external_slots_race            3 threads, 2 external slots
quick rc11     external_exclusive             2 external threads, 1 of them exclusive
quick rc11     external_one_leaves            1 waiting external thread, 1 that leaves
quick rc11     external_one_leaves_fences     1 waiting external thread, 1 that leaves
long  rc11     external_two_leave             1 waiting external thread, 2 that leave
quick rc11     external_all_blocked           2 waiting external threads, 1 unrelated job
quick rc11,imm external_notified_of_end       1 outside sleeper that has entered, 1 hold
quick rc11,imm external_notified_of_job       1 waiting external thread, 1 job for the caller
quick rc11     external_registered_waits      1 waiting registered thread, 1 outside pusher; 1 job for it
quick rc11     external_registered_notified_of_job 1 waiting registered thread, 1 job for the caller
quick rc11,imm host_one_job                   1 pusher, 1 worker on a host thread; 1 job
quick rc11,imm host_two_jobs_fences           1 pusher, 1 worker on a host thread; 2 jobs
quick rc11     host_two_pushers               2 pushers, 1 worker on a host thread; 2 jobs
long  rc11     host_two_jobs                  1 pusher, 1 worker on a host thread; 2 jobs
quick rc11,imm assigned_idle                  1 pusher, 1 worker; 1 job
quick rc11     assigned_two_jobs              1 pusher, 1 worker, 1 asleep; 1 job for it, 1 for all
quick rc11,imm assigned_wait                  1 waiting worker, 1 outside pusher
quick rc11     assigned_host                  1 pusher, 1 worker on a host thread; 1 job
quick rc11     assigned_host_two_jobs         1 pusher, 1 worker on a host thread; 2 jobs
quick rc11,imm assigned_end                   1 resting thread, 1 caller that assigns a job to it
quick rc11,imm assigned_register              1 registered thread, 1 other; 1 external slot
long  rc11     assigned_register_two          2 registered threads; 2 external slots
quick rc11,imm assigned_unregister            1 thread that unregisters, 1 outside pusher
long  rc11     end_last_blocks                1 resting thread, 1 caller; 2 jobs
quick rc11     end_last_pushes                1 resting thread, 1 caller; 1 job
long  rc11     end_last_is_assigned           1 resting thread, 1 caller; 2 jobs
long  rc11     end_last_is_for_caller         1 resting thread, 1 caller; 2 jobs
long  rc11     end_submitted_outside          1 resting thread, 1 caller, 1 outside pusher; 1 job
long  rc11     end_assigned_outside           1 resting thread, 1 caller, 1 outside pusher; 1 job
long  rc11     end_stopped                    1 resting thread, 1 caller, 1 outside pusher that wakes no worker; 1 job
long  rc11     end_replaced                   1 caller that replaces 2 workers, 1 outside pusher; 1 job
long  rc11     end_dropped                    1 caller that drops a job, 1 hold
quick rc11     end_caller_goes_on             1 resting thread, 1 caller; 2 jobs afterwards
quick rc11     resize_without_threads         1 caller that replaces 1 worker by 1, 1 outside submitter; 1 job
quick rc11     resize_to_more                 1 caller that replaces 1 worker by 2, 1 new thread, 1 outside submitter; 1 job
quick rc11     loop_two_items                 1 thief; 2 items, grain 1
long  rc11     loop_help                      1 thief; 3 items, grain 1
long  rc11     loop_three_items               1 thief; 3 items, grain 1
long  rc11     loop_automatic_grain           1 thief; 4 items, automatic grain
long  rc11     loop_two_thieves               2 thieves; 2 items, grain 1
quick rc11     submitted_two_items            1 thief; a submitted loop of 2 items, grain 1
long  rc11     submitted_three_items          1 thief; a submitted loop of 3 items, grain 1
quick rc11     submitted_again                1 thief; 2 submitted loops of 2 items in one stored object
long  rc11     submitted_cancelled            1 thief, 1 cancelling thread; a submitted loop of 2 items
long  rc11     submitted_cancelled_wait       1 thief, 1 cancelling thread; a loop of 2 items with a waiting caller
quick rc11     graph_two_nodes                1 caller, 1 thief; 2 nodes
quick rc11     graph_join                     1 caller, 1 thief; 2 nodes, 1 after both
long  rc11     graph_diamond                  1 caller, 1 thief; 4 nodes
quick rc11     graph_ranked                   1 caller, 1 thief; 2 nodes with priorities
quick rc11     graph_for_caller               1 caller, 1 thief; 2 nodes, 1 for the caller after both
long  rc11     graph_chosen_twice             1 caller, 1 thief; 2 choices of 1 node
long  rc11     graph_choice_loops             1 caller, 1 thief; 1 choice that loops once, 3 nodes
quick rc11     graph_freed                    1 worker, 1 thread that polls the counter; 1 node
quick rc11     graph_submitted_for_caller     1 worker, 1 waiting external thread; 2 nodes, the second one for the caller
quick rc11     graph_submitted_all_for_caller 1 worker, 1 waiting external thread; 2 nodes for the caller
quick rc11     graph_freed_with_thief         1 worker, 1 thief, 1 thread that polls the counter; 2 nodes
TEXT
}

# explore MEMORY_MODEL SCENARIO: runs GenMC, here version 0.11, with these options:
#   QUERN__DEQUE_CAPACITY:       the deque is as small as possible, so that slots are used again; jobs can be taken
#                                from between others only if it has room for three
#   disable-instruction-caching: with caching, GenMC assigns an address twice if threads call functions in several
#                                orders
#   disable-spin-assume:         GenMC takes a loop that repeats a failed compare-and-swap for waiting; the models
#                                mark loops that wait (AWAIT)
#   disable-sr:                  GenMC aborts when it looks for symmetric threads and a thread starts another one
explore()
{
    set -- "$@" "${2%%_*}"
    case $3 in after | counter | end | external | graph | limit | loop | resize | submitted | wait) set -- "$@" --disable-spin-assume ;; esac
    case $3 in resize) set -- "$@" --disable-sr ;; esac
    case $2 in deque_taken_*) capacity=4 ;; *) capacity=2 ;; esac
    memory_model=$1
    scenario=$2
    file=$3
    shift 3
    genmc "--$memory_model" --check-liveness --disable-estimation --disable-warn-on-unfreed-memory \
        --disable-instruction-caching "$@" "--program-entry-function=$scenario" -- \
        -std=c11 -D_GNU_SOURCE "-DQUERN__DEQUE_CAPACITY=$capacity" -I"$root" -I"$root/include" "$root/tests/models/$file.c"
}

# check MEMORY_MODEL SCENARIO BOUNDS
check()
{
    verdict=ok
    explore "$1" "$2" >"$log" 2>&1 || verdict=FAILED
    grep -q '^No errors were detected' "$log" || verdict=FAILED
    executions=$(sed -n 's/^Number of complete executions explored: //p' "$log" | tail -n 1)
    seconds=$(sed -n 's/^Total wall-clock time: \(.*\)s$/\1/p' "$log" | tail -n 1)
    # A scenario without explored executions proves nothing.
    [ "${executions:-0}" -gt 0 ] || verdict=FAILED
    printf '%-32s %-4s %7s executions %7s s  %-6s  %s\n' "$2" "$1" "${executions:-0}" "${seconds:--}" "$verdict" "$3"
    [ "$verdict" = ok ] || {
        cat "$log"
        return 1
    }
}

is_wanted()
{
    if [ "$which" = quick ] && [ "$1" != quick ]; then return 1; fi
    case " $names " in "  " | *" $2 "*) return 0 ;; esac
    return 1
}

run_all()
{
    failed_count=0
    while read -r when memory_models scenario bounds; do
        is_wanted "$when" "$scenario" || continue
        check rc11 "$scenario" "$bounds" </dev/null || failed_count=$((failed_count + 1))
        case $which$memory_models in
        all*imm) check imm "$scenario" "$bounds" </dev/null || failed_count=$((failed_count + 1)) ;;
        esac
    done <"$scenarios"
    [ "$failed_count" -eq 0 ]
}

if ! command -v genmc >/dev/null 2>&1; then
    echo "models: skipped: genmc is not on the path"
    exit 0
fi
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
which=all
if [ "${1-}" = quick ]; then
    which=quick
    shift
fi
names=$*
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
scenarios=$folder/scenarios
list >"$scenarios"
run_all
