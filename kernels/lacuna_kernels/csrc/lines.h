/* Products of bfloat16 lines, keys or values, with factors: LINES lines at a time, and SPAN numbers of each.
 *
 * Products are added to a sum one line after another, in the order of the lines, so that lines whose factor is zero do
 * not change a bit of it, wherever they are. */

#pragma once

#include "simd.h"

enum { SPAN = 2 * LANES };

/* Rounds to nearest, ties to even. */
static inline uint16_t to_bfloat16(float x) {
    union {
        float value;
        uint32_t bits;
    } wide = {x};
    return (uint16_t)((wide.bits + 0x7fff + (wide.bits >> 16 & 1)) >> 16);
}

#ifdef __AVX512BF16__

enum { LINES = 2 };
typedef uint16_t Factor;
typedef struct {
    Ints half[2]; /* pairs: one number of each line, the second line's first */
} Lines;

static inline Factor factor(float x) { return to_bfloat16(x); }

/* Where the factor of a line is stored: as in `Lines`, that of the second line of a pair comes first. */
static inline int64_t factor_place(int64_t line) { return line ^ 1; }

/* Stores non-negative factors, rounded, each at its place; returns the rounded factors. */
static inline Floats store_factors(Factor *to, Floats x) {
    Ints bits = ((Ints)x + 0x8000) >> 16;
    _mm256_storeu_si256((__m256i *)to, _mm256_rol_epi32(_mm512_cvtepi32_epi16((__m512i)bits), 16));
    return (Floats)(bits << 16);
}

/* Reads the first LINES of `lines`; where only one is left, the second is zeros. */
static inline Lines read_lines(const uint16_t *from, int64_t stride, int64_t lines) {
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    __m512i line = _mm512_loadu_si512(from), next = _mm512_setzero_si512();
    if (lines > 1)
        next = _mm512_loadu_si512(from + stride);
    Lines pairs;
    for (int half = 0; half < 2; half++) {
        __m512i places = _mm512_add_epi16(order, _mm512_set1_epi16((short)(LANES * half)));
        pairs.half[half] = (Ints)_mm512_permutex2var_epi16(next, places, line);
    }
    return pairs;
}

/* Adds to each sum its numbers, one of each line, times the factors. The instruction adds the second product of a pair
 * first, each with a rounding of its own. */
static inline Floats add_products(Floats sums, Lines lines, int half, const Factor *factors) {
    return _mm512_dpbf16_ps(sums, (__m512bh)lines.half[half], (__m512bh)repeated(factors));
}

#else

enum { LINES = 1 };
typedef float Factor;
typedef struct {
    Floats half[2];
} Lines;

static inline Factor factor(float x) { return x; }

static inline int64_t factor_place(int64_t line) { return line; }

static inline Floats store_factors(Factor *to, Floats x) {
    store(to, x);
    return x;
}

static inline Lines read_lines(const uint16_t *from, int64_t stride, int64_t lines) {
    return (Lines){{widened(from), widened(from + LANES)}};
}

static inline Floats add_products(Floats sums, Lines lines, int half, const Factor *factors) {
    return fused(lines.half[half], all(*factors), sums);
}

#endif
