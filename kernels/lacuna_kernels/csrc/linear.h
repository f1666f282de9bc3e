/* Linears: weights in 4 bit with a scale and a minimum per group of inputs, or in 8 bit with a scale per output;
 * activations in 8 bit with a scale per block of a row. */

#pragma once

#include <stddef.h>
#include <string.h>

#include "threads.h"
#include "tiles.h"

/* Fetches the `bytes` of weights that lie AHEAD of `from` into the second-level cache, which has room for more misses
 * at a time than the first: weights then arrive as fast as memory can send them. */
enum { AHEAD = 8192 };
static inline __attribute__((always_inline)) void fetch_ahead(const void *from, int64_t bytes) {
    for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch((const char *)from + AHEAD + line, 0, 2);
}

/* The outputs of a tile: two vectors of sums per row. */
enum { COLUMNS = 2 * LANES };

/* Inputs that share the scale of a row's codes and the step of a 4-bit weight (BLOCK), and those that share a
 * weight's scale and minimum (GROUP). */
enum { BLOCK = 256, GROUP = 32 };

/* BLOCK inputs of COLUMNS outputs in 4 bit: weight = step * scale * code + lift * minimum. Codes of four inputs are
 * adjacent. The low halves of the bytes are for the first LANES outputs, the high halves for the others. Minima of
 * two groups are adjacent. The last block of an output may have fewer inputs, an even number of groups. */
typedef struct {
    float step[COLUMNS], lift[COLUMNS];
    uint8_t scale[BLOCK / GROUP][COLUMNS];
    uint8_t minimum[BLOCK / GROUP / 2][COLUMNS][2];
    uint8_t codes[BLOCK / 4][LANES][4];
} Block;

/* x W^T + b. The first `small` outputs are in 4 bit, [small / COLUMNS, blocks_of(in)] blocks. The others have a scale
 * each, and `weight` is their codes plus RAISED, [others / COLUMNS, in / 4, COLUMNS, 4]: the operands of one
 * instruction are adjacent, and a tile reads contiguous memory. */
typedef struct {
    const Block *blocks;
    const uint8_t *weight;
    const float *scale;
    const float *bias; /* of all outputs, or NULL */
    int64_t in, out, small;
} Linear;

/* Rows in 8 bit: codes [rows, in], and per row the scale of every block and the sum of the codes of every group. */
typedef struct {
    int8_t *codes;
    float *scale;
    int16_t *sum;
} Codes;

static int64_t blocks_of(int64_t width) { return (width + BLOCK - 1) / BLOCK; }

static Codes take_codes(char **free_from, int64_t rows, int64_t width) {
    Codes codes;
    codes.codes = (int8_t *)take(free_from, rows * width);
    codes.scale = (float *)take(free_from, rows * blocks_of(width) * 4);
    codes.sum = (int16_t *)take(free_from, rows * width / GROUP * 2);
    return codes;
}

static int64_t codes_bytes(int64_t rows, int64_t width) {
    return padded(rows * width) + padded(rows * blocks_of(width) * 4) + padded(rows * width / GROUP * 2);
}

/* The codes from row `first` on. */
static Codes codes_from(Codes codes, int64_t first, int64_t width) {
    return (Codes){codes.codes + first * width, codes.scale + first * blocks_of(width),
                   codes.sum + first * (width / GROUP)};
}

static void quantize(const float *x, int64_t width, Codes to, int64_t row) {
    int8_t *codes = to.codes + row * width;
    float *scales = to.scale + row * blocks_of(width);
    int16_t *sums = to.sum + row * width / GROUP;
    for (int64_t start = 0; start < width; start += BLOCK) {
        int64_t end = start + BLOCK < width ? start + BLOCK : width;
        Floats peak = all(1e-8f);
        for (int64_t i = start; i < end; i += LANES) peak = larger(peak, magnitude(load(x + i)));
        float scale = largest(peak) / 127.0f, inverse = 1.0f / scale;
        scales[start / BLOCK] = scale;
        for (int64_t group = start; group < end; group += GROUP) {
            Floats sum = all(0.0f);
            for (int64_t i = group; i < group + GROUP; i += LANES) {
                Floats code = rounded(load(x + i) * inverse);
                sum += code;
                store_codes(codes + i, __builtin_convertvector(code, Ints));
            }
            sums[group / GROUP] = (int16_t)total(sum);
        }
    }
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

static inline Floats floats(Ints x) { return __builtin_convertvector(x, Floats); }

/* Adds COLUMNS outputs in 8 bit of `rows` rows, before the outputs' scales. */
static inline __attribute__((always_inline)) void add_bytes(const int rows, Codes from, int64_t first, int64_t in,
                                                            const uint8_t *weight, Floats values[ROWS][2]) {
    const int8_t *codes = from.codes + first * in;
    for (int64_t start = 0; start < in; start += BLOCK) {
        int64_t end = start + BLOCK < in ? start + BLOCK : in;
        Ints sums[ROWS][2];
        EACH_ROW(r, rows) sums[r][0] = sums[r][1] = (Ints){0};
        for (int64_t i = start; i < end; i += 4, weight += 4 * COLUMNS) {
            fetch_ahead(weight, 4 * COLUMNS);
            Ints left = load_weights(weight), right = load_weights(weight + 4 * LANES);
            EACH_ROW(r, rows) {
                Ints code = repeated(codes + r * in + i);
                sums[r][0] = add_dots(sums[r][0], left, code);
                sums[r][1] = add_dots(sums[r][1], right, code);
            }
        }
        EACH_ROW(r, rows) {
            int32_t sum = 0;
            if (RAISED)
                for (int64_t i = start; i < end; i += GROUP) sum += from.sum[((first + r) * in + i) / GROUP];
            Floats scale = all(from.scale[(first + r) * blocks_of(in) + start / BLOCK]);
            for (int half = 0; half < 2; half++)
                values[r][half] = fused(floats(sums[r][half] - RAISED * sum), scale, values[r][half]);
        }
    }
}

/* Adds to the dot products of every row those with one group of 4-bit weights. */
static inline __attribute__((always_inline)) void add_group(const int rows, const int8_t *codes, int64_t in,
                                                            const Block *block, int group, Ints dots[ROWS][2]) {
    const uint8_t *weights = block->codes[group * GROUP / 4][0];
    Ints sums[ROWS][2];
    EACH_ROW(r, rows) sums[r][0] = sums[r][1] = (Ints){0};
#pragma GCC unroll 8
    for (int i = 0; i < GROUP; i += 4) {
        Ints both = load_weights(weights + i * LANES), left = both & 0x0f0f0f0f, right = both >> 4 & 0x0f0f0f0f;
        fetch_ahead(weights + i * LANES, 4 * LANES);
        EACH_ROW(r, rows) {
            Ints code = repeated(codes + r * in + i);
            sums[r][0] = add_small_dots(sums[r][0], left, code);
            sums[r][1] = add_small_dots(sums[r][1], right, code);
            SETTLE(sums[r][0]);
            SETTLE(sums[r][1]);
        }
    }
    for (int half = 0; half < 2; half++) {
        Ints scale = load_factors(block->scale[group] + half * LANES);
        EACH_ROW(r, rows) dots[r][half] += times(sums[r][half], scale);
    }
}

/* Adds the first `groups` groups of block number `b` of COLUMNS outputs in 4 bit of `rows` rows. */
static inline __attribute__((always_inline)) void add_block(const int rows, const int groups, Codes from, int64_t first,
                                                            int64_t in, int64_t b, const Block *block,
                                                            Floats values[ROWS][2]) {
    const int8_t *codes = from.codes + first * in + b * BLOCK;
    const int16_t *sums = from.sum + first * (in / GROUP) + b * (BLOCK / GROUP);
    Ints dots[ROWS][2], minima[ROWS][2];
    fetch_ahead(block, offsetof(Block, codes));
    EACH_ROW(r, rows) dots[r][0] = dots[r][1] = minima[r][0] = minima[r][1] = (Ints){0};
    for (int group = 0; group < groups; group++) add_group(rows, codes + group * GROUP, in, block, group, dots);
    for (int group = 0; group < groups; group += 2)
        for (int half = 0; half < 2; half++)
            EACH_ROW(r, rows)
                minima[r][half] = add_pairs(minima[r][half], block->minimum[group / 2][half * LANES],
                                            repeated(sums + r * (in / GROUP) + group));
    EACH_ROW(r, rows) {
        Floats scale = all(from.scale[(first + r) * blocks_of(in) + b]);
        for (int half = 0; half < 2; half++) {
            Floats lifted = load(block->lift + half * LANES) * floats(minima[r][half]);
            Floats sum = fused(load(block->step + half * LANES), floats(dots[r][half]), lifted);
            values[r][half] = fused(sum, scale, values[r][half]);
        }
    }
}

/* Adds COLUMNS outputs in 4 bit of `rows` rows. */
static inline __attribute__((always_inline)) void add_blocks(const int rows, Codes from, int64_t first, int64_t in,
                                                             const Block *block, Floats values[ROWS][2]) {
    const int64_t whole = in / BLOCK;
    for (int64_t b = 0; b < whole; b++) add_block(rows, BLOCK / GROUP, from, first, in, b, block + b, values);
    if (in % BLOCK)
        add_block(rows, (int)(in % BLOCK / GROUP), from, first, in, whole, block + whole, values);
}

/* `rows` rows times COLUMNS outputs. */
static inline __attribute__((always_inline)) void tile(const int rows, Codes from, int64_t first, const Linear *linear,
                                                       int64_t column, const float *residual, float *y) {
    const int64_t in = linear->in, out = linear->out, large = column - linear->small;
    Floats values[ROWS][2];
    EACH_ROW(r, rows) values[r][0] = values[r][1] = all(0.0f);
    if (large < 0)
        add_blocks(rows, from, first, in, linear->blocks + column / COLUMNS * blocks_of(in), values);
    else
        add_bytes(rows, from, first, in, linear->weight + large * in, values);
    EACH_ROW(r, rows)
        for (int half = 0; half < 2; half++) {
            int64_t at = column + LANES * half;
            Floats value = values[r][half];
            if (large >= 0)
                value = value * load(linear->scale + large + LANES * half);
            if (linear->bias)
                value = value + load(linear->bias + at);
            if (residual)
                value = value + load(residual + (first + r) * out + at);
            store(y + (first + r) * out + at, value);
        }
}

/* y = x W^T + b (+ residual) of codes. */
typedef struct {
    Codes from;
    int64_t rows;
    const Linear *linear;
    const float *residual;
    float *y;
} Product;

static void multiply_columns(const void *with, int64_t first_columns, int64_t last_columns) {
    const Product *of = with;
    for (int64_t columns = first_columns; columns < last_columns; columns++)
        for (int64_t t = 0; t < tiles_of(of->rows); t++) {
            int64_t first = tile_start(of->rows, t);
#define MULTIPLY(n) tile(n, of->from, first, of->linear, columns * COLUMNS, of->residual, of->y)
            BY_ROWS(tile_start(of->rows, t + 1) - first, MULTIPLY)
#undef MULTIPLY
        }
}

static void multiply(Codes from, int64_t rows, const Linear *linear, const float *residual, float *y) {
    each(linear->out / COLUMNS, multiply_columns, &(Product){from, rows, linear, residual, y});
}

/* Codes of rows x [rows, width]; normed by `norm` where it is not NULL. */
typedef struct {
    const float *x, *norm;
    float eps;
    int64_t width;
    Codes to;
} Quantization;

static void quantize_some(const void *with, int64_t first, int64_t last) {
    const Quantization *of = with;
    for (int64_t r = first; r < last; r++) {
        const float *x = of->x + r * of->width;
        if (of->norm)
            quantize_norm(x, of->norm, of->eps, of->width, of->to, r);
        else
            quantize(x, of->width, of->to, r);
    }
}

static void quantize_rows(const float *x, const float *norm, float eps, int64_t rows, int64_t width, Codes to) {
    each(rows, quantize_some, &(Quantization){x, norm, eps, width, to});
}
