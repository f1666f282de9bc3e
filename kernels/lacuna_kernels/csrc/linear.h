/* Linears in 8 bit: weights with a scale per output, activations with one per row. */

#pragma once

#include "tiles.h"

/* Bytes that weights are fetched ahead: two cores then read them at 30 GB/s instead of 15. */
enum { AHEAD = 4096 };

/* A tile's outputs: two vectors of sums to a row. */
enum { COLUMNS = 2 * LANES };

/* x W^T + b. `weight` has the codes plus RAISED, [out / COLUMNS, in / 4, COLUMNS, 4]: what one instruction multiplies
 * lies side by side, and a tile reads one stretch of memory. */
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
    Floats peak = all(1e-8f), sum = all(0.0f);
    for (int64_t i = 0; i < width; i += LANES) peak = larger(peak, magnitude(load(x + i)));
    float scale = largest(peak) / 127.0f, inverse = 1.0f / scale;
    for (int64_t i = 0; i < width; i += LANES) {
        Floats code = rounded(load(x + i) * inverse);
        sum += code;
        store_codes(to.codes + row * width + i, __builtin_convertvector(code, Ints));
    }
    to.scale[row] = scale;
    to.sum[row] = (int32_t)total(sum); /* whole numbers below 2^24: exact */
}

/* Codes of x / sqrt(mean(x^2) + eps) * weight. */
static void quantize_norm(const float *x, const float *weight, float eps, int64_t width, Codes to, int64_t row) {
    Floats squares = all(0.0f);
    for (int64_t i = 0; i < width; i += LANES) squares = fused(load(x + i), load(x + i), squares);
    float mean = total(squares) / (float)width + eps, factor = 1.0f / __builtin_sqrtf(mean);
    float normed[width] __attribute__((aligned(64)));
    for (int64_t i = 0; i < width; i += LANES) store(normed + i, load(x + i) * factor * load(weight + i));
    quantize(normed, width, to, row);
}

/* `rows` rows times COLUMNS outputs. */
static inline __attribute__((always_inline)) void tile(const int rows, Codes from, int64_t first, const Linear *linear,
                                                       int64_t column, const float *residual, float *y) {
    const int64_t in = linear->in, out = linear->out;
    const uint8_t *weight = linear->weight + column * in;
    const int8_t *codes = from.codes + first * in;
    Ints sums[ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (Ints){0};
    for (int64_t i = 0; i < in; i += 4, weight += 4 * COLUMNS) {
        for (int line = 0; line < 4 * COLUMNS; line += 64) __builtin_prefetch(weight + AHEAD + line);
        Ints left = load_weights(weight), right = load_weights(weight + 4 * LANES);
        for (int r = 0; r < rows; r++) {
            Ints code = repeated(codes + r * in + i);
            sums[r][0] = add_dots(sums[r][0], left, code);
            sums[r][1] = add_dots(sums[r][1], right, code);
        }
    }
    for (int r = 0; r < rows; r++) {
        int32_t raised = RAISED * from.sum[first + r];
        float scale = from.scale[first + r];
        for (int half = 0; half < 2; half++) {
            int64_t at = column + LANES * half;
            Floats value = __builtin_convertvector(sums[r][half] - raised, Floats);
            value = value * (scale * load(linear->scale + at));
            if (linear->bias)
                value = value + load(linear->bias + at);
            if (residual)
                value = value + load(residual + (first + r) * out + at);
            store(y + (first + r) * out + at, value);
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
