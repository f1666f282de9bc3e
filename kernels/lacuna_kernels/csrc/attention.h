/* Attention of a few rows over the bfloat16 keys and values of a context. */

#pragma once

#include <omp.h>

#include "tiles.h"

/* Keys are laid out by column, so that 32 of them are one load; strides count elements. */
typedef struct {
    const uint16_t *keys, *values;
    int64_t key_group, key_column, value_group, value_row;
    int64_t count;
} Cache;

/* What is added to the scores [rows, keys], 0 or -inf in bfloat16; NULL where every row sees every key, and every row
 * sees all keys in front of `start`. */
typedef struct {
    const uint16_t *added;
    int64_t start;
} Mask;

static inline uint16_t narrow(float x) {
    union {
        float value;
        uint32_t bits;
    } wide = {x};
    return (uint16_t)((wide.bits + 0x7fff + (wide.bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
}

/* sum + a . b over pairs of bfloat16. */
static inline __m512 dot(__m512 sum, __m512i a, __m512i b) {
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#else
    __m512i high = _mm512_set1_epi32((int)0xffff0000);
    __m512 product = _mm512_mul_ps(_mm512_castsi512_ps(a & high), _mm512_castsi512_ps(b & high));
    __m512 low_a = _mm512_castsi512_ps(_mm512_slli_epi32(a, 16)), low_b = _mm512_castsi512_ps(_mm512_slli_epi32(b, 16));
    return _mm512_add_ps(sum, _mm512_fmadd_ps(low_a, low_b, product));
#endif
}

/* 32 bfloat16 of one line and 32 of the next as pairs: those of places 0 to 15, or 16 to 31. */
static inline __m512i pairs(__m512i line, __m512i next, int half) {
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    return _mm512_permutex2var_epi16(line, _mm512_add_epi16(order, _mm512_set1_epi16((short)(16 * half))), next);
}

/* To the sums of every row: its two factors times two lines of 32. Rows of factors stand `stride` apart. */
static inline __attribute__((always_inline)) void add_products(const int rows, __m512 sums[ROWS][2], __m512i line,
                                                               __m512i next, const uint16_t *factors, int64_t stride) {
    __m512i low = pairs(line, next, 0), high = pairs(line, next, 1);
    for (int r = 0; r < rows; r++) {
        __m512i own = repeated(factors + r * stride);
        sums[r][0] = dot(sums[r][0], low, own);
        sums[r][1] = dot(sums[r][1], high, own);
    }
}

/* scores [rows, stride] = q K^T, scaled; keys that are none get -inf. */
static inline __attribute__((always_inline)) void score(const int rows, const uint16_t *query, int64_t width,
                                                        const uint16_t *keys, const Cache *cache, float *scores,
                                                        int64_t stride) {
    __m512 scale = _mm512_set1_ps(1.0f / __builtin_sqrtf((float)width)), none = _mm512_set1_ps(-__builtin_inff());
    for (int64_t j = 0; j < cache->count; j += 32) {
        __mmask32 there = cache->count - j < 32 ? (1u << (cache->count - j)) - 1 : ~0u;
        __m512 sums[ROWS][2];
        for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
        for (int64_t d = 0; d < width; d += 2) {
            const uint16_t *column = keys + d * cache->key_column + j, *next = column + cache->key_column;
            _mm_prefetch((const char *)(column + 32), _MM_HINT_T0);
            _mm_prefetch((const char *)(next + 32), _MM_HINT_T0);
            __m512i line = _mm512_maskz_loadu_epi16(there, column), beside = _mm512_maskz_loadu_epi16(there, next);
            add_products(rows, sums, line, beside, query + d, width);
        }
        for (int r = 0; r < rows; r++)
            for (int half = 0; half < 2; half++) {
                __m512 sum = _mm512_mul_ps(sums[r][half], scale);
                sum = _mm512_mask_mov_ps(none, (__mmask16)(there >> (16 * half)), sum);
                _mm512_store_ps(scores + r * stride + j + 16 * half, sum);
            }
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

/* Scores become shares in bfloat16, e^(score - highest), where they stand; what is returned is one over their sum. */
static float exponentiate(float *scores, int64_t stride) {
    uint16_t *shares = (uint16_t *)scores;
    __m512 peak = _mm512_set1_ps(-__builtin_inff()), sum = _mm512_setzero_ps();
    for (int64_t j = 0; j < stride; j += 16) peak = _mm512_max_ps(peak, _mm512_load_ps(scores + j));
    peak = _mm512_set1_ps(_mm512_reduce_max_ps(peak));
    for (int64_t j = 0; j < stride; j += 16) {
        __m512i share = _mm512_castps_si512(exponential(_mm512_sub_ps(_mm512_load_ps(scores + j), peak)));
        share = _mm512_srli_epi32(_mm512_add_epi32(share, _mm512_set1_epi32(0x8000)), 16);
        sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(share, 16)));
        _mm256_store_si256((__m256i *)(shares + j), _mm512_cvtepi32_epi16(share));
    }
    return 1.0f / _mm512_reduce_add_ps(sum);
}

/* to [rows, stride of rows] = shares V, each row times its factor. `stride` counts shares. */
static inline __attribute__((always_inline)) void mix(const int rows, const uint16_t *shares, int64_t stride,
                                                      const float *factor, const uint16_t *values, int64_t width,
                                                      const Cache *cache, float *to, int64_t to_stride) {
    for (int64_t d = 0; d < width; d += 32) {
        __m512 sums[ROWS][2];
        for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
        for (int64_t j = 0; j < cache->count; j += 2) {
            const uint16_t *value = values + j * cache->value_row + d;
            __m512i line = _mm512_loadu_si512(value), beside = _mm512_setzero_si512();
            if (j + 1 < cache->count)
                beside = _mm512_loadu_si512(value + cache->value_row);
            add_products(rows, sums, line, beside, shares + j, stride);
        }
        for (int r = 0; r < rows; r++)
            for (int half = 0; half < 2; half++)
                _mm512_storeu_ps(to + r * to_stride + d + 16 * half,
                                 _mm512_mul_ps(sums[r][half], _mm512_set1_ps(factor[r])));
    }
}

/* `rows` rows of one head from row `first`. */
static inline __attribute__((always_inline)) void attend_tile(const int rows, const float *query, int64_t width,
                                                              const uint16_t *keys, const uint16_t *values,
                                                              const Cache *cache, const Mask *mask, int64_t first,
                                                              float *scores, int64_t stride, float *to,
                                                              int64_t to_stride) {
    float factor[ROWS];
    uint16_t narrowed[rows * width];
    for (int64_t i = 0; i < rows * width; i++) narrowed[i] = narrow(query[i]);
    score(rows, narrowed, width, keys, cache, scores, stride);
    for (int r = 0; r < rows; r++) {
        if (mask->added)
            add_mask(scores + r * stride, mask, first + r, cache->count);
        factor[r] = exponentiate(scores + r * stride, stride);
    }
    mix(rows, (uint16_t *)scores, 2 * stride, factor, values, width, cache, to, to_stride);
}

static int64_t scores_stride(const Cache *cache) { return (cache->count + 31) / 32 * 32; }

/* mixed [rows, heads * width] of query [heads, rows, width], by the threads of the region that calls it. */
static void attend(const float *query, int64_t rows, int64_t heads, int64_t groups, int64_t width, const Cache *cache,
                   const Mask *mask, float *all_scores, float *mixed) {
    int64_t stride = scores_stride(cache), tiles = tiles_of(rows);
    float *scores = all_scores + omp_get_thread_num() * ROWS * stride;
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < heads * tiles; task++) {
        int64_t head = task / tiles, first = tile_start(rows, task % tiles), group = head * groups / heads;
        const float *from = query + (head * rows + first) * width;
        const uint16_t *keys = cache->keys + group * cache->key_group,
                       *values = cache->values + group * cache->value_group;
        float *to = mixed + first * heads * width + head * width;
#define ATTEND(n) attend_tile(n, from, width, keys, values, cache, mask, first, scores, stride, to, heads *width)
        BY_ROWS(tile_start(rows, task % tiles + 1) - first, ATTEND)
#undef ATTEND
    }
}
