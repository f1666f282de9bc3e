/* The halves of a transformer layer on a CPU: linears in 8 bit, attention over bfloat16 keys.
 *
 * A denoising pass has 1 to 40 rows. At that size the time goes into reading weights, and into everything that stands
 * between two products; so each half is one call, whose threads meet at barriers. What a row becomes does not depend
 * on the rows beside it: a row alone and a row in a batch come out bit for bit the same.
 *
 * Matrices are row-major and contiguous unless a stride is given. Widths are multiples of 32.
 */

#include "attention.h"
#include "linear.h"

/* Codes [out, in] as `Linear.weight` has them. */
void lacuna_pack(const int8_t *codes, int64_t out, int64_t in, uint8_t *packed) {
#pragma omp parallel for
    for (int64_t column = 0; column < out; column++) {
        uint8_t *to = packed + column / COLUMNS * COLUMNS * in + column % COLUMNS * 4;
        for (int64_t i = 0; i < in; i++) to[i / 4 * 4 * COLUMNS + i % 4] = (uint8_t)(codes[column * in + i] + RAISED);
    }
}

/* y [rows, out] = x W^T + b. Every function below returns 0, or 1 where there is no memory. */
int lacuna_linear(const float *x, int64_t rows, const Linear *linear, float *y, int threads) {
    char *memory = reserve(codes_bytes(rows, linear->in));
    if (!memory)
        return 1;
    Codes codes = take_codes(&memory, rows, linear->in);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) quantize(x + r * linear->in, linear->in, codes, r);
        multiply(codes, rows, linear, NULL, y);
    }
    return 0;
}

/* The first half: turned = [query; key] [heads + groups, rows, width] after rotation, and value [groups, rows, width].
 * cos and sin are [rows, width]. */
int lacuna_project(const float *x, int64_t rows, const float *norm, float eps, const Linear *qkv, const float *cos,
                   const float *sin, int64_t heads, int64_t groups, int64_t width, float *turned, float *value,
                   int threads) {
    char *memory = reserve(codes_bytes(rows, qkv->in) + padded(rows * qkv->out * 4));
    if (!memory)
        return 1;
    Codes codes = take_codes(&memory, rows, qkv->in);
    float *states = (float *)take(&memory, rows * qkv->out * 4);
    int64_t half = width / 2, turning = heads + groups;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) quantize_norm(x + r * qkv->in, norm, eps, qkv->in, codes, r);
        multiply(codes, rows, qkv, NULL, states);
#pragma omp for schedule(static) collapse(2)
        for (int64_t h = 0; h < turning + groups; h++)
            for (int64_t r = 0; r < rows; r++) {
                const float *from = states + r * qkv->out + h * width, *c = cos + r * width, *s = sin + r * width;
                if (h >= turning) {
                    __builtin_memcpy(value + ((h - turning) * rows + r) * width, from, width * 4);
                    continue;
                }
                float *to = turned + (h * rows + r) * width;
                for (int64_t d = 0; d < half; d++) to[d] = from[d] * c[d] - from[d + half] * s[d];
                for (int64_t d = half; d < width; d++) to[d] = from[d] * c[d] + from[d - half] * s[d];
            }
    }
    return 0;
}

/* x / (1 + e^-x), by an exponential of what is not positive. */
static Floats silu(Floats x) {
    Floats power = exponential(-magnitude(x)), one = all(1.0f), one_or_zero = (Floats)((Ints)one & (x >= 0.0f));
    return x * (larger(power, one_or_zero) / (one + power));
}

/* The second half: y [rows, hidden] = the layer's output, from its input x and the query [heads, rows, width]. */
int lacuna_finish(const float *x, int64_t rows, const float *query, int64_t heads, int64_t groups, int64_t width,
                  const Cache *cache, const Mask *mask, const Linear *output, const float *norm, float eps,
                  const Linear *gate_up, const Linear *down, float *y, int threads) {
    int64_t hidden = output->out, inner = down->in;
    char *memory = reserve(codes_bytes(rows, output->in) + codes_bytes(rows, hidden) + codes_bytes(rows, inner) +
                           padded(rows * output->in * 4) + padded(rows * hidden * 4) + padded(rows * inner * 8) +
                           threads * ROWS * scores_stride(cache) * 4);
    if (!memory)
        return 1;
    Codes attended = take_codes(&memory, rows, output->in), normed = take_codes(&memory, rows, hidden);
    Codes gated = take_codes(&memory, rows, inner);
    float *mixed = (float *)take(&memory, rows * output->in * 4), *middle = (float *)take(&memory, rows * hidden * 4);
    float *both = (float *)take(&memory, rows * inner * 8), *scores = (float *)memory;
#pragma omp parallel num_threads(threads)
    {
        attend(query, rows, heads, groups, width, cache, mask, scores, mixed);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) quantize(mixed + r * output->in, output->in, attended, r);
        multiply(attended, rows, output, x, middle);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) quantize_norm(middle + r * hidden, norm, eps, hidden, normed, r);
        multiply(normed, rows, gate_up, NULL, both);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *gate = both + r * 2 * inner, *up = gate + inner;
            for (int64_t i = 0; i < inner; i += LANES) store(gate + i, silu(load(gate + i)) * load(up + i));
            quantize(gate, inner, gated, r);
        }
        multiply(gated, rows, down, middle, y);
    }
    return 0;
}
