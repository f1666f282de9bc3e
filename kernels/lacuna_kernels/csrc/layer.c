/* Transformer layers on a CPU: linears in 8 and 4 bit, attention over bfloat16 keys.
 *
 * A denoising pass has 1 to 40 rows. At that size the time goes into reading weights and into the work between two
 * products. So one call runs several layers, whose threads meet at barriers. The result of a row does not depend on
 * the rows beside it: alone and in a batch it is the same bit for bit.
 *
 * Matrices are row-major and contiguous unless a stride is given. Widths are multiples of 32.
 */

#include "attention.h"
#include "linear.h"

/* Packs codes [out, in] into the order of `Linear.weight`. */
void lacuna_pack(const int8_t *codes, int64_t out, int64_t in, uint8_t *packed) {
#pragma omp parallel for
    for (int64_t column = 0; column < out; column++) {
        uint8_t *to = packed + column / COLUMNS * COLUMNS * in + column % COLUMNS * 4;
        for (int64_t i = 0; i < in; i++) to[i / 4 * 4 * COLUMNS + i % 4] = (uint8_t)(codes[column * in + i] + RAISED);
    }
}

/* Packs codes [out, in] from 0 to 15, scales and minima [out, in / GROUP], steps and lifts [out, in / BLOCK] into
 * the order of `Linear.blocks`. */
void lacuna_pack_blocks(const uint8_t *codes, const uint8_t *scale, const uint8_t *minimum, const float *step,
                        const float *lift, int64_t out, int64_t in, Block *packed) {
    int64_t blocks = in / BLOCK, groups = BLOCK / GROUP;
#pragma omp parallel for
    for (int64_t of = 0; of < out / COLUMNS * blocks; of++) {
        Block *to = packed + of;
        for (int64_t column = 0; column < COLUMNS; column++) {
            int64_t at = (of / blocks * COLUMNS + column) * blocks + of % blocks;
            to->step[column] = step[at];
            to->lift[column] = lift[at];
            for (int64_t g = 0; g < groups; g++) {
                to->scale[g][column] = scale[at * groups + g];
                to->minimum[g / 2][column][g % 2] = minimum[at * groups + g];
            }
        }
        for (int64_t i = 0; i < BLOCK; i++)
            for (int64_t lane = 0; lane < LANES; lane++) {
                const uint8_t *low = codes + (of / blocks * COLUMNS + lane) * in + of % blocks * BLOCK + i;
                to->codes[i / 4][lane][i % 4] = (uint8_t)(low[0] | low[LANES * in] << 4);
            }
    }
}

/* The value of a 4-bit weight. */
static float small_weight(const Linear *linear, int64_t output, int64_t i) {
    const Block *block = linear->blocks + output / COLUMNS * (linear->in / BLOCK) + i / BLOCK;
    int64_t column = output % COLUMNS, group = i % BLOCK / GROUP;
    uint8_t both = block->codes[i % BLOCK / 4][column % LANES][i % 4], code = column < LANES ? both & 15 : both >> 4;
    return block->step[column] * block->scale[group][column] * code +
           block->lift[column] * block->minimum[group / 2][column][group % 2];
}

/* The rows `ids` of a packed weight in float32: rows [count, in], as for an embedding. */
void lacuna_lookup(const Linear *linear, const int64_t *ids, int64_t count, float *rows) {
    for (int64_t r = 0; r < count; r++) {
        float *to = rows + r * linear->in;
        int64_t large = ids[r] - linear->small;
        if (large < 0) {
            for (int64_t i = 0; i < linear->in; i++) to[i] = small_weight(linear, ids[r], i);
            continue;
        }
        const uint8_t *from = linear->weight + large / COLUMNS * COLUMNS * linear->in + large % COLUMNS * 4;
        for (int64_t i = 0; i < linear->in; i++)
            to[i] = linear->scale[large] * (int8_t)(from[i / 4 * 4 * COLUMNS + i % 4] - RAISED);
    }
}

/* y [rows, out] = x W^T + b. Returns 0, or 1 if memory runs out. */
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

/* The rows of a pass: cos and sin are [count, width]. */
typedef struct {
    int64_t count, heads, groups, width;
    const float *cos, *sin;
    float eps;
} Rows;

typedef struct {
    const float *attn_norm, *mlp_norm;
    const Linear *qkv, *output, *gate_up, *down;
} Layer;

/* Keys and values of all layers; a pass writes its rows at `tail` and attends from `head` to their end. */
typedef struct {
    uint16_t *keys, *values;
    int64_t key_layer, key_group, key_column, value_layer, value_group, value_row;
    int64_t head, tail;
} Arena;

/* Intermediate results between the products of a layer. */
typedef struct {
    Codes normed, attended, gated;
    float *states, *query, *mixed, *both, *scores;
} Between;

static Cache seen(const Arena *arena, int64_t rows, int64_t layer) {
    return (Cache){arena->keys + layer * arena->key_layer + arena->head,
                   arena->values + layer * arena->value_layer + arena->head * arena->value_row,
                   arena->key_group,
                   arena->key_column,
                   arena->value_group,
                   arena->value_row,
                   arena->tail + rows - arena->head};
}

/* Rotary embedding of one row of one head. */
static void turn(const float *from, const float *cos, const float *sin, int64_t width, float *to) {
    int64_t half = width / 2;
    for (int64_t d = 0; d < half; d++) to[d] = from[d] * cos[d] - from[d + half] * sin[d];
    for (int64_t d = half; d < width; d++) to[d] = from[d] * cos[d] + from[d - half] * sin[d];
}

/* The first half of a layer: computes queries [heads, rows, width], and the rows' keys and values in the arena. */
static void project(const float *x, const Rows *rows, const Layer *layer, const Arena *arena, int64_t index,
                    const Between *between) {
    int64_t count = rows->count, width = rows->width, turning = rows->heads + rows->groups;
    uint16_t *keys = arena->keys + index * arena->key_layer + arena->tail;
    uint16_t *values = arena->values + index * arena->value_layer + arena->tail * arena->value_row;
#pragma omp for schedule(static)
    for (int64_t r = 0; r < count; r++)
        quantize_norm(x + r * layer->qkv->in, layer->attn_norm, rows->eps, layer->qkv->in, between->normed, r);
    multiply(between->normed, count, layer->qkv, NULL, between->states);
#pragma omp for schedule(static) collapse(2)
    for (int64_t h = 0; h < turning + rows->groups; h++)
        for (int64_t r = 0; r < count; r++) {
            const float *from = between->states + r * layer->qkv->out + h * width;
            const float *cos = rows->cos + r * width, *sin = rows->sin + r * width;
            if (h < rows->heads) {
                turn(from, cos, sin, width, between->query + (h * count + r) * width);
            } else if (h < turning) {
                float turned[width];
                turn(from, cos, sin, width, turned);
                uint16_t *key = keys + (h - rows->heads) * arena->key_group + r;
                for (int64_t d = 0; d < width; d++) key[d * arena->key_column] = to_bfloat16(turned[d]);
            } else {
                uint16_t *value = values + (h - turning) * arena->value_group + r * arena->value_row;
                for (int64_t d = 0; d < width; d++) value[d] = to_bfloat16(from[d]);
            }
        }
}

/* x / (1 + e^-x), by an exponential of a non-positive number. */
static Floats silu(Floats x) {
    Floats power = exponential(-magnitude(x)), one = all(1.0f), one_or_zero = (Floats)((Ints)one & (x >= 0.0f));
    return x * (larger(power, one_or_zero) / (one + power));
}

/* The second half: adds the output of attention to x [rows, hidden], and then that of the gated MLP. */
static void finish(float *x, const Rows *rows, const Layer *layer, const Cache *cache, const Mask *mask,
                   const Between *between) {
    int64_t count = rows->count, hidden = layer->output->out, inner = layer->down->in;
    attend(between->query, count, rows->heads, rows->groups, rows->width, cache, mask, between->scores, between->mixed);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < count; r++)
        quantize(between->mixed + r * layer->output->in, layer->output->in, between->attended, r);
    multiply(between->attended, count, layer->output, x, x);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < count; r++)
        quantize_norm(x + r * hidden, layer->mlp_norm, rows->eps, hidden, between->normed, r);
    multiply(between->normed, count, layer->gate_up, NULL, between->both);
#pragma omp for schedule(static)
    for (int64_t r = 0; r < count; r++) {
        float *gate = between->both + r * 2 * inner, *up = gate + inner;
        for (int64_t i = 0; i < inner; i += LANES) store(gate + i, silu(load(gate + i)) * load(up + i));
        quantize(gate, inner, between->gated, r);
    }
    multiply(between->gated, count, layer->down, x, x);
}

/* Runs x [rows, hidden] in place through `num_layers` layers of the same shape; `arena` begins with the first of
 * them. Returns 0, or 1 if memory runs out. */
int lacuna_layers(float *x, const Rows *rows, const Layer *layers, int64_t num_layers, const Arena *arena,
                  const Mask *mask, int threads) {
    int64_t count = rows->count, hidden = layers->output->out, inner = layers->down->in;
    int64_t qkv = count * layers->qkv->out * 4, mixed = count * layers->output->in * 4, both = count * inner * 8;
    Cache first = seen(arena, count, 0);
    char *memory =
        reserve(codes_bytes(count, hidden) + codes_bytes(count, layers->output->in) + codes_bytes(count, inner) +
                padded(qkv) + 2 * padded(mixed) + padded(both) + threads * ROWS * scores_stride(&first) * 4);
    if (!memory)
        return 1;
    Between between;
    between.normed = take_codes(&memory, count, hidden);
    between.attended = take_codes(&memory, count, layers->output->in);
    between.gated = take_codes(&memory, count, inner);
    between.states = (float *)take(&memory, qkv);
    between.query = (float *)take(&memory, mixed);
    between.mixed = (float *)take(&memory, mixed);
    between.both = (float *)take(&memory, both);
    between.scores = (float *)memory;
#pragma omp parallel num_threads(threads)
    for (int64_t layer = 0; layer < num_layers; layer++) {
        Cache cache = seen(arena, count, layer);
        project(x, rows, layers + layer, arena, layer, &between);
        finish(x, rows, layers + layer, &cache, mask, &between);
    }
    return 0;
}
