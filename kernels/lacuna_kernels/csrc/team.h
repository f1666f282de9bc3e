/* The threads of a call: the caller and helpers, which are kept from call to call. The caller runs loops over tasks; a
 * helper that has a core takes part of the tasks, and the caller waits for nothing but tasks that were taken. A helper
 * without a core therefore takes nothing and holds up nobody. A library serves one call at a time.
 *
 * A thread that waits spins first, because most waits are shorter than waking a thread takes. It sleeps when that takes
 * too long, or when a turn of the spin does: then the core has been another program's meanwhile, which needs it. */

#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "system.h"

/* SPIN_NS is the longest spin, in nanoseconds. One turn of it takes less than TURN_NS unless another program has run
 * meanwhile. */
enum { MAX_THREADS = 255, SPIN_NS = 100000, TURN_NS = 20000 };

/* The tasks from `first` to before `last` of a loop. */
typedef void Tasks(const void *with, int64_t first, int64_t last);

/* A thread that waits for a change. */
typedef struct {
    _Alignas(64) atomic_int asleep;
    Bed bed;
} Sleeper;

static struct {
    /* The loop's number (24 bits), the threads that may take its tasks (8), and how many of them are not taken (32).
     * The fields below it are the loop's as long as one of its tasks is not finished. */
    _Alignas(64) _Atomic uint64_t open;
    Tasks *run;
    const void *with;
    _Alignas(64) _Atomic int64_t unfinished;
    int count, helpers; /* threads of this call, the caller's included; threads that exist beside the caller */
    int ready, registered;
    atomic_int cores[MAX_THREADS]; /* those that the threads began on */
    Sleeper sleepers[MAX_THREADS];
} team;

/* The thread's number in the team; the caller is 0. */
static _Thread_local int own;

static int64_t not_taken(uint64_t open) { return (int64_t)(open & 0xffffffff); }
static int may_take(uint64_t open) { return own < (int)(open >> 32 & 0xff) && not_taken(open); }

static int has_tasks(void) { return may_take(atomic_load(&team.open)); }
static int all_finished(void) { return !atomic_load(&team.unfinished); }

/* Waits until there is what the thread waits for; returns whether it slept. */
static int wait_for(int (*there)(void)) {
    int64_t began = nanoseconds(), last = began;
    for (int64_t now = began; now - began < SPIN_NS && now - last < TURN_NS; now = nanoseconds()) {
        if (there())
            return 0;
        relax();
        last = now;
    }
    Sleeper *sleeper = &team.sleepers[own];
    lock(&sleeper->bed);
    atomic_store(&sleeper->asleep, 1);
    while (!there()) {
        sleep_in(&sleeper->bed);
        atomic_store(&sleeper->asleep, 1);
    }
    atomic_store(&sleeper->asleep, 0);
    unlock(&sleeper->bed);
    return 1;
}

/* Wakes the thread of a number where it sleeps. It sees the change before it sleeps, or its sleep is seen here. */
static void wake(int number) {
    Sleeper *sleeper = &team.sleepers[number];
    if (!atomic_load(&sleeper->asleep) || !atomic_exchange(&sleeper->asleep, 0))
        return;
    lock(&sleeper->bed);
    wake_all(&sleeper->bed);
    unlock(&sleeper->bed);
}

/* Runs tasks of the open loop until none is left to take. Shares get smaller towards its end, where a long one would
 * keep the other threads waiting. */
static void take_tasks(void) {
    uint64_t open = atomic_load(&team.open);
    while (may_take(open)) {
        int64_t left = not_taken(open), parts = 2 * (int64_t)(open >> 32 & 0xff), share = (left + parts - 1) / parts;
        if (!atomic_compare_exchange_weak(&team.open, &open, open - (uint64_t)share))
            continue;
        team.run(team.with, left - share, left);
        if (atomic_fetch_sub(&team.unfinished, share) == share && own)
            wake(0);
        open = atomic_load(&team.open);
    }
}

/* Runs a loop of so many tasks, which may run at the same time; returns when all have ended. */
static void each(int64_t tasks, Tasks *run, const void *with) {
    if (tasks <= 1 || team.count == 1) {
        run(with, 0, tasks);
        return;
    }
    team.run = run, team.with = with;
    atomic_store(&team.unfinished, tasks);
    uint64_t number = (atomic_load(&team.open) >> 40) + 1;
    atomic_store(&team.open, number << 40 | (uint64_t)team.count << 32 | (uint64_t)tasks);
    for (int helper = 1; helper < team.count; helper++) wake(helper);
    take_tasks();
    wait_for(all_finished);
}

/* Notes the thread's core, which is to be another one than those of the threads before it. Systems that see nothing shared
 * between cores (some virtual machines) wake a thread where its waker runs, and then both share that core for long. */
static void settle(void) {
    team.cores[own] = core();
    for (int other = 0; other < own && team.cores[own] >= 0; other++)
        if (team.cores[other] == team.cores[own]) {
            leave(team.cores, own);
            team.cores[own] = core();
            return;
        }
}

THREAD(help, number) {
    own = (int)(intptr_t)number;
    for (;;) {
        if (wait_for(has_tasks))
            settle();
        take_tasks();
    }
    return 0;
}

/* A forked process has none of the threads. */
static void forget(void) { team.helpers = team.ready = 0; }

static void make_sleeper(int number) {
    atomic_store(&team.sleepers[number].asleep, 0);
    make_bed(&team.sleepers[number].bed);
}

/* Begins a call, whose loops run on so many threads, or on as many as the system has. */
static void gather(int threads) {
    if (!team.ready) {
        if (!team.registered)
            after_fork(forget);
        make_sleeper(0);
        atomic_store(&team.open, 0);
        team.ready = team.registered = 1;
    }
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    while (team.helpers + 1 < threads) {
        make_sleeper(team.helpers + 1);
        if (start_thread(help, (void *)(intptr_t)(team.helpers + 1)))
            break;
        team.helpers++;
    }
    team.count = threads <= team.helpers ? threads : team.helpers + 1;
    settle();
}
