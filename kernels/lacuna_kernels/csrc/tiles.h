/* What linears and attention share: rows in tiles, and room for what lies between two products. */

#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>

/* Rows and columns that a tile keeps in registers. */
enum { ROWS = 8, COLUMNS = 32 };

/* Rows are dealt out evenly: nine are five and four, not eight and one. */
static int64_t tiles_of(int64_t rows) { return (rows + ROWS - 1) / ROWS; }
static int64_t tile_start(int64_t rows, int64_t tile) { return rows * tile / tiles_of(rows); }

/* CALL(count), with a number that the compiler knows: so a tile's rows stay in registers. */
#define BY_ROWS(count, CALL)                                                                                           \
    switch (count) {                                                                                                   \
    case 1: CALL(1); break;                                                                                            \
    case 2: CALL(2); break;                                                                                            \
    case 3: CALL(3); break;                                                                                            \
    case 4: CALL(4); break;                                                                                            \
    case 5: CALL(5); break;                                                                                            \
    case 6: CALL(6); break;                                                                                            \
    case 7: CALL(7); break;                                                                                            \
    default: CALL(8);                                                                                                  \
    }

/* Four bytes, in every lane. */
static inline __m512i repeated(const void *from) {
    int32_t bytes;
    __builtin_memcpy(&bytes, from, 4);
    return _mm512_set1_epi32(bytes);
}

/* e^x for x <= 0: 2^n times a polynomial of the rest, right to 2e-7. */
static __m512 exponential(__m512 x) {
    __m512 scaled = _mm512_mul_ps(_mm512_max_ps(x, _mm512_set1_ps(-100.0f)), _mm512_set1_ps(1.44269504f));
    __m512 whole = _mm512_roundscale_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 rest = _mm512_sub_ps(scaled, whole);
    __m512 power = _mm512_set1_ps(1.5403530e-4f);
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(1.3333558e-3f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(9.6181291e-3f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(5.5504109e-2f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(2.4022651e-1f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(6.9314718e-1f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(power, whole);
}

/* Room that a thread keeps from call to call. */
static _Thread_local struct {
    char *memory;
    int64_t size;
} room;

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static char *reserve(int64_t bytes) {
    if (room.size < bytes) {
        free(room.memory);
        room.memory = aligned_alloc(64, padded(bytes));
        room.size = room.memory ? bytes : 0;
    }
    return room.memory;
}

static char *take(char **free_from, int64_t bytes) {
    char *taken = *free_from;
    *free_from += padded(bytes);
    return taken;
}
