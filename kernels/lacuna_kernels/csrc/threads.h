/* Threads, and memory, of POSIX and Windows; the threads of a call, which share out the tasks of its loops. */

#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What differs between operating systems: threads, sleeping until something changes, time, aligned memory. */

#if defined _WIN32

#include <malloc.h>
#include <windows.h>

#define EXPORT __declspec(dllexport)

/* Where threads sleep until they are woken. */
typedef struct {
    SRWLOCK lock;
    CONDITION_VARIABLE woken;
} Bed;

static void make_bed(Bed *bed) {
    InitializeSRWLock(&bed->lock);
    InitializeConditionVariable(&bed->woken);
}
static void lock(Bed *bed) { AcquireSRWLockExclusive(&bed->lock); }
static void unlock(Bed *bed) { ReleaseSRWLockExclusive(&bed->lock); }
static void sleep_in(Bed *bed) { SleepConditionVariableSRW(&bed->woken, &bed->lock, INFINITE, 0); }
static void wake_all(Bed *bed) { WakeAllConditionVariable(&bed->woken); }

#define THREAD(name, argument) static DWORD WINAPI name(void *argument)

/* Returns 0, or another number where the system has no thread left. */
static int start_thread(DWORD(WINAPI *function)(void *), void *argument) {
    HANDLE thread = CreateThread(NULL, 0, function, argument, 0, NULL);
    return thread ? !CloseHandle(thread) : 1;
}

static void after_fork(void (*function)(void)) { (void)function; }

static int64_t nanoseconds(void) {
    static int64_t frequency;
    LARGE_INTEGER count;
    if (!frequency) {
        QueryPerformanceFrequency(&count);
        frequency = count.QuadPart;
    }
    QueryPerformanceCounter(&count);
    return (int64_t)((double)count.QuadPart * 1e9 / (double)frequency);
}

static void *allocate(int64_t bytes) { return _aligned_malloc((size_t)bytes, 64); }
static void release(void *memory) { _aligned_free(memory); }

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t woken;
} Bed;

static void make_bed(Bed *bed) {
    pthread_mutex_init(&bed->lock, NULL);
    pthread_cond_init(&bed->woken, NULL);
}
static void lock(Bed *bed) { pthread_mutex_lock(&bed->lock); }
static void unlock(Bed *bed) { pthread_mutex_unlock(&bed->lock); }
static void sleep_in(Bed *bed) { pthread_cond_wait(&bed->woken, &bed->lock); }
static void wake_all(Bed *bed) { pthread_cond_broadcast(&bed->woken); }

#define THREAD(name, argument) static void *name(void *argument)

/* Signals are for the program's own threads. */
static int start_thread(void *(*function)(void *), void *argument) {
    sigset_t every, before;
    pthread_t thread;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int failed = pthread_create(&thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? failed : pthread_detach(thread);
}

static void after_fork(void (*function)(void)) { pthread_atfork(NULL, NULL, function); }

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void *allocate(int64_t bytes) { return aligned_alloc(64, (size_t)bytes); }
static void release(void *memory) { free(memory); }

#endif

/* The core that the thread runs on; -1 where the system does not say. */
static int core(void) {
#if defined __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Moves the thread away from the `count` cores `taken`, if it may use another one. It can be moved back later. */
static void leave(const _Atomic int *taken, int count) {
#if defined __linux__
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return;
    others = allowed;
    for (int one = 0; one < count; one++)
        if (taken[one] >= 0)
            CPU_CLR(taken[one], &others);
    if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
        sched_setaffinity(0, sizeof allowed, &allowed);
#else
    (void)taken, (void)count;
#endif
}

/* Tells the CPU that the thread spins. */
static inline void relax(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* The threads of a call: the caller and helpers, which are kept from call to call. The caller runs loops over tasks; a
 * helper that has a core takes part of the tasks, and the caller waits for nothing but tasks that were taken. A helper
 * without a core therefore takes nothing and holds up nobody. A library serves one call at a time.
 *
 * A thread that waits spins first, because most waits are shorter than waking a thread takes. It sleeps when that takes
 * too long, or when a turn of the spin does: then the core has been another program's meanwhile, which needs it. */

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
