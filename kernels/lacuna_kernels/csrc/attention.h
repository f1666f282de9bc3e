/* Attention of a few rows over the bfloat16 keys and values of a context. */

#pragma once

#include "simd.h"
#include "tiles.h"

/* Lines are bfloat16 keys or values, which are multiplied with factors: LINES lines at a time, and SPAN numbers of each.
 * Products are added to a sum one line after another, in the order of the lines, so that lines whose factor is zero do
 * not change a bit of it, wherever they are. */
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

/* Keys are laid out by column, so that one load reads neighbouring keys; strides count elements. */
typedef struct {
    const uint16_t *keys, *values;
    int64_t key_group, key_column, value_group, value_row;
    int64_t count;
} Cache;

/* The addend of the scores [rows, keys], 0 or -inf in bfloat16; NULL where every row attends to every key. Every row
 * attends to all keys before `start`. */
typedef struct {
    const uint16_t *added;
    int64_t start;
} Mask;

/* A run of keys up to `end` whose tokens have moved as far since they were read; `turned` is the query for that. */
typedef struct {
    int64_t end, turned;
} Run;

/* The `count` runs of a part's keys, in order. The queries for different distances are `stride` apart. */
typedef struct {
    const Run *runs;
    int64_t count, stride;
} Runs;

/* Adds to the sums of every row its factors times lines. Rows of factors are `stride` apart. */
static inline __attribute__((always_inline)) void add_rows(const int rows, Floats sums[ROWS][2], Lines lines,
                                                           const Factor *factors, int64_t stride) {
    EACH_ROW(r, rows)
        for (int half = 0; half < 2; half++)
            sums[r][half] = add_products(sums[r][half], lines, half, factors + r * stride);
}

/* scores [rows, stride] = q K^T, scaled, of the keys from `first` to `end`; some columns behind are overwritten. */
static inline __attribute__((always_inline)) void score(const int rows, const Factor *query, int64_t width,
                                                        const uint16_t *keys, const Cache *cache, int64_t first,
                                                        int64_t end, float *scores, int64_t stride) {
    float scale = 1.0f / __builtin_sqrtf((float)width);
    int64_t count = cache->count;
    uint16_t rest[width * SPAN];
    for (int64_t j = first; j < end; j += SPAN) {
        const uint16_t *column = keys + j;
        int64_t pitch = cache->key_column;
        if (count - j < SPAN) { /* nothing may be read after the last key */
            for (int64_t d = 0; d < width; d++) __builtin_memcpy(rest + d * SPAN, column + d * pitch, (count - j) * 2);
            column = rest, pitch = SPAN;
        }
        Floats sums[ROWS][2];
        EACH_ROW(r, rows) sums[r][0] = sums[r][1] = all(0.0f);
        for (int64_t d = 0; d < width; d += LINES, column += LINES * pitch) {
            for (int line = 0; line < LINES; line++) __builtin_prefetch(column + line * pitch + SPAN);
            add_rows(rows, sums, read_lines(column, pitch, LINES), query + d, width);
        }
        EACH_ROW(r, rows)
            for (int half = 0; half < 2; half++) store(scores + r * stride + j + half * LANES, sums[r][half] * scale);
    }
}

static void add_mask(float *scores, const Mask *mask, int64_t row, int64_t count) {
    const uint16_t *added = mask->added + row * count;
    for (int64_t j = mask->start; j < count; j++) {
        union {
            uint32_t bits;
            float value;
        } wide = {(uint32_t)added[j] << 16};
        scores[j] += wide.value;
    }
}

/* Replaces scores by shares (softmax weights before division), e^(score - highest), in place; returns one over their
 * sum. The sum is in doubles, so that it does not depend on which lane a share is in. */
static float exponentiate(float *scores, int64_t stride) {
    Floats peak = all(-__builtin_inff());
    for (int64_t j = 0; j < stride; j += LANES) peak = larger(peak, load(scores + j));
    float highest = largest(peak);
    Doubles sums = {0};
    for (int64_t j = 0; j < stride; j += LANES)
        sums += doubles(store_factors((Factor *)scores + j, exponential(load(scores + j) - highest)));
    double sum = 0.0;
    for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
    return (float)(1.0 / sum);
}

/* to [rows, stride of rows] = shares V, each row divided by its sum. `stride` counts shares. */
static inline __attribute__((always_inline)) void mix(const int rows, const Factor *shares, int64_t stride,
                                                      const float *over, const uint16_t *values, int64_t width,
                                                      const Cache *cache, float *to, int64_t to_stride) {
    for (int64_t d = 0; d < width; d += SPAN) {
        Floats sums[ROWS][2];
        EACH_ROW(r, rows) sums[r][0] = sums[r][1] = all(0.0f);
        for (int64_t j = 0; j < cache->count; j += LINES) {
            Lines lines = read_lines(values + j * cache->value_row + d, cache->value_row, cache->count - j);
            add_rows(rows, sums, lines, shares + j, stride);
        }
        EACH_ROW(r, rows)
            for (int half = 0; half < 2; half++) store(to + r * to_stride + d + half * LANES, sums[r][half] * over[r]);
    }
}

/* Attention of `rows` rows of one head from row `first`. Columns of scores after the last key get -inf. */
static inline __attribute__((always_inline)) void attend_tile(const int rows, const float *query, int64_t width,
                                                              const uint16_t *keys, const uint16_t *values,
                                                              const Cache *cache, const Runs *runs, const Mask *mask,
                                                              int64_t first, float *scores, int64_t stride, float *to,
                                                              int64_t to_stride) {
    float over[ROWS];
    Factor factors[rows * width];
    int64_t begun = 0;
    for (const Run *run = runs->runs; run < runs->runs + runs->count; begun = run++->end) {
        const float *turned = query + run->turned * runs->stride;
        for (int64_t i = 0; i < rows * width; i++) factors[factor_place(i)] = factor(turned[i]);
        score(rows, factors, width, keys, cache, begun, run->end, scores, stride);
    }
    for (int r = 0; r < rows; r++) {
        for (int64_t j = cache->count; j < stride; j++) scores[r * stride + j] = -__builtin_inff();
        if (mask->added)
            add_mask(scores + r * stride, mask, first + r, cache->count);
        over[r] = exponentiate(scores + r * stride, stride);
    }
    int64_t shares_stride = stride * sizeof(float) / sizeof(Factor);
    mix(rows, (Factor *)scores, shares_stride, over, values, width, cache, to, to_stride);
}

/* Room for the columns of a block that begins at the last key. */
static int64_t scores_stride(const Cache *cache) { return (cache->count + 2 * (SPAN - 1)) / SPAN * SPAN; }

/* Attention of `rows` rows of one head, from row `first` of the mask, to the keys and values of its group. Scratch for
 * scores has ROWS times `scores_stride` numbers. */
static void attend_rows(int64_t rows, const float *query, int64_t width, int64_t group, const Cache *cache,
                        const Runs *runs, const Mask *mask, int64_t first, float *scores, float *to,
                        int64_t to_stride) {
    int64_t stride = scores_stride(cache);
    const uint16_t *keys = cache->keys + group * cache->key_group,
                   *values = cache->values + group * cache->value_group;
#define ATTEND(n) attend_tile(n, query, width, keys, values, cache, runs, mask, first, scores, stride, to, to_stride)
    BY_ROWS(rows, ATTEND)
#undef ATTEND
}
