/* Linears in 8 bit: weights with a scale per output, activations with one per row. */

#pragma once

#include "tiles.h"

/* Bytes that weights are fetched ahead: two cores then read them at 30 GB/s instead of 15. */
enum { AHEAD = 4096 };

/* x W^T + b. `weight` has the codes plus 128, [out / 32, in / 4, 32, 4]: what one instruction multiplies lies side by
 * side, and a tile of 32 outputs reads one stretch of memory. */
typedef struct {
    const uint8_t *weight;
    const float *scale;
    const float *bias; /* or NULL */
    int64_t in, out;
} Linear;

/* Rows in 8 bit: codes [rows, in], and per row the scale and the sum of the codes. */
typedef struct {
    int8_t *codes;
    float *scale;
    int32_t *sum;
} Codes;

static Codes take_codes(char **free_from, int64_t rows, int64_t width) {
    Codes codes;
    codes.codes = (int8_t *)take(free_from, rows * width);
    codes.scale = (float *)take(free_from, rows * 4);
    codes.sum = (int32_t *)take(free_from, rows * 4);
    return codes;
}

static int64_t codes_bytes(int64_t rows, int64_t width) { return padded(rows * width) + 2 * padded(rows * 4); }

static void quantize(const float *x, int64_t width, Codes to, int64_t row) {
    __m512 peak = _mm512_set1_ps(1e-8f);
    for (int64_t i = 0; i < width; i += 16) peak = _mm512_max_ps(peak, _mm512_abs_ps(_mm512_loadu_ps(x + i)));
    float scale = _mm512_reduce_max_ps(peak) / 127.0f;
    __m512 inverse = _mm512_set1_ps(1.0f / scale);
    __m512i sum = _mm512_setzero_si512();
    int8_t *codes = to.codes + row * width;
    for (int64_t i = 0; i < width; i += 16) {
        __m512i code = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + i), inverse));
        sum = _mm512_add_epi32(sum, code);
        _mm_storeu_si128((__m128i *)(codes + i), _mm512_cvtsepi32_epi8(code));
    }
    to.scale[row] = scale;
    to.sum[row] = _mm512_reduce_add_epi32(sum);
}

/* Codes of x / sqrt(mean(x^2) + eps) * weight. */
static void quantize_norm(const float *x, const float *weight, float eps, int64_t width, Codes to, int64_t row) {
    __m512 squares = _mm512_setzero_ps();
    for (int64_t i = 0; i < width; i += 16) {
        __m512 part = _mm512_loadu_ps(x + i);
        squares = _mm512_fmadd_ps(part, part, squares);
    }
    float mean = _mm512_reduce_add_ps(squares) / (float)width + eps;
    __m512 factor = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean));
    float normed[width] __attribute__((aligned(64)));
    for (int64_t i = 0; i < width; i += 16)
        _mm512_store_ps(normed + i,
                        _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor), _mm512_loadu_ps(weight + i)));
    quantize(normed, width, to, row);
}

/* `rows` rows times 32 columns. */
static inline __attribute__((always_inline)) void tile(const int rows, Codes from, int64_t first, const Linear *linear,
                                                       int64_t column, const float *residual, float *y) {
    const int64_t in = linear->in, out = linear->out;
    const uint8_t *weight = linear->weight + column * in;
    const int8_t *codes = from.codes + first * in;
    __m512i sums[ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
    for (int64_t i = 0; i < in; i += 4, weight += 4 * COLUMNS) {
        _mm_prefetch((const char *)weight + AHEAD, _MM_HINT_T0);
        _mm_prefetch((const char *)weight + AHEAD + 64, _MM_HINT_T0);
        __m512i left = _mm512_loadu_si512(weight), right = _mm512_loadu_si512(weight + 64);
        for (int r = 0; r < rows; r++) {
            __m512i code = repeated(codes + r * in + i);
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], left, code);
            sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], right, code);
        }
    }
    for (int r = 0; r < rows; r++) {
        __m512i raised = _mm512_set1_epi32(128 * from.sum[first + r]); /* the weights' codes are raised by 128 */
        __m512 scale = _mm512_set1_ps(from.scale[first + r]);
        for (int half = 0; half < 2; half++) {
            int64_t at = column + 16 * half;
            __m512 value = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[r][half], raised));
            value = _mm512_mul_ps(value, _mm512_mul_ps(scale, _mm512_loadu_ps(linear->scale + at)));
            if (linear->bias)
                value = _mm512_add_ps(value, _mm512_loadu_ps(linear->bias + at));
            if (residual)
                value = _mm512_add_ps(value, _mm512_loadu_ps(residual + (first + r) * out + at));
            _mm512_storeu_ps(y + (first + r) * out + at, value);
        }
    }
}

/* y = x W^T + b (+ residual) by the threads of the region that calls it; they meet at its end. */
static void multiply(Codes from, int64_t rows, const Linear *linear, const float *residual, float *y) {
#pragma omp for schedule(static)
    for (int64_t column = 0; column < linear->out; column += COLUMNS)
        for (int64_t t = 0; t < tiles_of(rows); t++) {
            int64_t first = tile_start(rows, t);
#define MULTIPLY(n) tile(n, from, first, linear, column, residual, y)
            BY_ROWS(tile_start(rows, t + 1) - first, MULTIPLY)
#undef MULTIPLY
        }
}
