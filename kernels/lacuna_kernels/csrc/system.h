/* What differs between operating systems: threads, sleeping until something changes, time, aligned memory. */

#pragma once

#include <stdint.h>
#include <stdlib.h>

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
