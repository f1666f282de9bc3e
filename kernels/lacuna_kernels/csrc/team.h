/* The threads of a call: the caller and helpers, which are kept from call to call. They share out tasks and meet at
 * barriers. A library serves one call at a time.
 *
 * A thread that waits spins first, because most waits are shorter than waking a thread takes. It sleeps when that takes
 * too long, or when a turn of the spin does: then the core has been another program's meanwhile, which needs it. */

#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "system.h"

/* SPIN_NS is the longest spin, in nanoseconds. One turn of it takes less than TURN_NS unless another program has run
 * meanwhile. */
enum { MAX_THREADS = 256, SPIN_NS = 100000, TURN_NS = 20000 };

/* A number that grows, and threads that wait until it does. */
typedef struct {
    _Alignas(64) atomic_uint number;
    atomic_int sleepers;
    Bed bed;
} Gate;

static struct {
    void (*work)(void *);
    void *with;
    int count, helpers; /* threads of this call, the caller's included; threads that exist beside the caller */
    int ready, registered;
    int cores[MAX_THREADS]; /* those that the threads of this call began on */
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_llong next;
    Gate met, called[MAX_THREADS];
} team;

/* The thread's number in the team; the caller is 0. */
static _Thread_local int own;

static void make_gate(Gate *gate) {
    atomic_store(&gate->number, 0);
    atomic_store(&gate->sleepers, 0);
    make_bed(&gate->bed);
}

/* Waits until the number is no longer `seen`. */
static void wait_at(Gate *gate, unsigned seen) {
    int64_t began = nanoseconds(), last = began;
    for (int64_t now = began; now - began < SPIN_NS && now - last < TURN_NS; now = nanoseconds()) {
        if (atomic_load_explicit(&gate->number, memory_order_acquire) != seen)
            return;
        relax();
        last = now;
    }
    lock(&gate->bed);
    atomic_fetch_add(&gate->sleepers, 1);
    while (atomic_load(&gate->number) == seen) sleep_in(&gate->bed);
    atomic_fetch_sub(&gate->sleepers, 1);
    unlock(&gate->bed);
}

/* Lets the waiting threads go on. Either they see the new number before they sleep, or their sleep is seen here. */
static void open_gate(Gate *gate) {
    atomic_fetch_add(&gate->number, 1);
    if (!atomic_load(&gate->sleepers))
        return;
    lock(&gate->bed);
    wake_all(&gate->bed);
    unlock(&gate->bed);
}

/* A barrier: no thread of the call goes on before all have come. */
static void meet(void) {
    if (team.count == 1) {
        atomic_store_explicit(&team.next, 0, memory_order_relaxed);
        return;
    }
    int count = team.count; /* read before the others can go on, and the next call set it */
    unsigned seen = atomic_load(&team.met.number);
    if (atomic_fetch_add(&team.arrived, 1) + 1 < count) {
        wait_at(&team.met, seen);
        return;
    }
    atomic_store_explicit(&team.arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&team.next, 0, memory_order_relaxed);
    open_gate(&team.met);
}

/* The first of `tasks` that is the thread's number `of`. */
static int64_t share(int64_t tasks, int of) { return (tasks * of + team.count - 1) / team.count; }

/* A loop over the thread's own share of `tasks`. */
#define EACH_OWN(task, tasks)                                                                                          \
    for (int64_t task = share(tasks, own), task##_end = share(tasks, own + 1); task < task##_end; task++)

/* The next task that no thread has taken since the last barrier, in a loop whose tasks take unequal time. */
static int64_t next_task(void) { return atomic_fetch_add_explicit(&team.next, 1, memory_order_relaxed); }

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
    Gate *called = &team.called[own];
    for (unsigned seen = 0;; seen++) {
        wait_at(called, seen);
        settle();
        team.work(team.with);
        meet();
    }
    return 0;
}

/* A forked process has none of the threads. */
static void forget(void) { team.helpers = team.ready = 0; }

static void prepare(void) {
    if (!team.registered)
        after_fork(forget);
    make_gate(&team.met);
    atomic_store(&team.arrived, 0);
    team.ready = team.registered = 1;
}

/* Runs work(with) on so many threads, or on as many as the system has; returns when all have ended. */
static void together(int threads, void (*work)(void *), void *with) {
    if (!team.ready)
        prepare();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    while (team.helpers + 1 < threads) {
        make_gate(&team.called[team.helpers + 1]);
        if (start_thread(help, (void *)(intptr_t)(team.helpers + 1)))
            break;
        team.helpers++;
    }
    team.count = threads <= team.helpers ? threads : team.helpers + 1;
    team.work = work, team.with = with;
    atomic_store(&team.next, 0);
    settle();
    for (int number = 1; number < team.count; number++) open_gate(&team.called[number]);
    work(with);
    meet();
}
