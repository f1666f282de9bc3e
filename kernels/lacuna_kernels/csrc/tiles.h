/* Shared by linears and attention: rows in tiles, and memory for intermediate results. */

#pragma once

#include "simd.h"
#include "threads.h"

/* Rows are distributed evenly: nine are five and four, not eight and one. */
static int64_t tiles_of(int64_t rows) { return (rows + ROWS - 1) / ROWS; }
static int64_t tile_start(int64_t rows, int64_t tile) { return rows * tile / tiles_of(rows); }

/* CALL(count) with a compile-time constant, so that a tile's rows stay in registers. */
#define BY_ROWS(count, CALL)                                                                                           \
    switch (count) {                                                                                                   \
        AT_ROWS(1, CALL)                                                                                               \
        AT_ROWS(2, CALL)                                                                                               \
        AT_ROWS(3, CALL)                                                                                               \
        AT_ROWS(4, CALL)                                                                                               \
        AT_ROWS(5, CALL)                                                                                               \
        AT_ROWS(6, CALL)                                                                                               \
        AT_ROWS(7, CALL)                                                                                               \
        AT_ROWS(8, CALL)                                                                                               \
    }
#define AT_ROWS(n, CALL)                                                                                               \
    case n:                                                                                                            \
        if (n <= ROWS)                                                                                                 \
            CALL(n);                                                                                                   \
        break;

/* A loop over the rows of a tile. It is unrolled, because a compiler keeps what its variable indexes in memory otherwise. */
#define EACH_ROW(r, rows) _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)

/* Memory that a thread keeps from call to call. */
static _Thread_local struct {
    char *memory;
    int64_t size;
} room;

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static char *reserve(int64_t bytes) {
    if (room.size < bytes) {
        release(room.memory);
        room.memory = allocate(padded(bytes));
        room.size = room.memory ? bytes : 0;
    }
    return room.memory;
}

static char *take(char **free_from, int64_t bytes) {
    char *taken = *free_from;
    *free_from += padded(bytes);
    return taken;
}
