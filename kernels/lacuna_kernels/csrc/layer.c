/* Transformer layers on a CPU: linears in 8 and 4 bit, attention over bfloat16 keys.
 *
 * A denoising pass has 1 to 40 rows. At that size the time goes into reading weights and into the work between two
 * products. So one call runs several layers, whose threads meet at barriers. The result of a row does not depend on
 * the rows beside it: alone and in a batch it is the same bit for bit.
 *
 * Matrices are row-major and contiguous unless a stride is given. Widths are multiples of 32.
 */

#define _GNU_SOURCE /* the cores of threads, in sched.h */

#include "attention.h"
#include "linear.h"

typedef struct {
    const int8_t *codes;
    int64_t out, in;
    uint8_t *packed;
} Packing;

static void pack(void *with) {
    const Packing *of = with;
    int64_t in = of->in;
    EACH_OWN(column, of->out) {
        uint8_t *to = of->packed + column / COLUMNS * COLUMNS * in + column % COLUMNS * 4;
        for (int64_t i = 0; i < in; i++)
            to[i / 4 * 4 * COLUMNS + i % 4] = (uint8_t)(of->codes[column * in + i] + RAISED);
    }
}

/* Packs codes [out, in] into the order of `Linear.weight`. Returns 0. */
EXPORT int lacuna_pack(const int8_t *codes, int64_t out, int64_t in, uint8_t *packed, int threads) {
    together(threads, pack, &(Packing){codes, out, in, packed});
    return 0;
}

typedef struct {
    const uint8_t *codes, *scale, *minimum;
    const float *step, *lift;
    int64_t out, in;
    Block *packed;
} BlockPacking;

static void pack_blocks(void *with) {
    const BlockPacking *from = with;
    int64_t in = from->in, blocks = blocks_of(in);
    EACH_OWN(of, from->out / COLUMNS * blocks) {
        int64_t first = of % blocks * BLOCK, inputs = in - first < BLOCK ? in - first : BLOCK;
        Block *to = from->packed + of;
        memset(to, 0, sizeof *to);
        for (int64_t column = 0; column < COLUMNS; column++) {
            int64_t output = of / blocks * COLUMNS + column, at = (output * in + first) / GROUP;
            to->step[column] = from->step[output * blocks + of % blocks];
            to->lift[column] = from->lift[output * blocks + of % blocks];
            for (int64_t g = 0; g < inputs / GROUP; g++) {
                to->scale[g][column] = from->scale[at + g];
                to->minimum[g / 2][column][g % 2] = from->minimum[at + g];
            }
        }
        for (int64_t i = 0; i < inputs; i++)
            for (int64_t lane = 0; lane < LANES; lane++) {
                const uint8_t *low = from->codes + (of / blocks * COLUMNS + lane) * in + first + i;
                to->codes[i / 4][lane][i % 4] = (uint8_t)(low[0] | low[LANES * in] << 4);
            }
    }
}

/* Packs codes [out, in] from 0 to 15, scales and minima [out, in / GROUP], steps and lifts [out, blocks_of(in)] into
 * the order of `Linear.blocks`. What the last block has no inputs for is 0. Returns 0. */
EXPORT int lacuna_pack_blocks(const uint8_t *codes, const uint8_t *scale, const uint8_t *minimum, const float *step,
                              const float *lift, int64_t out, int64_t in, Block *packed, int threads) {
    together(threads, pack_blocks, &(BlockPacking){codes, scale, minimum, step, lift, out, in, packed});
    return 0;
}

/* The value of a 4-bit weight. */
static float small_weight(const Linear *linear, int64_t output, int64_t i) {
    const Block *block = linear->blocks + output / COLUMNS * blocks_of(linear->in) + i / BLOCK;
    int64_t column = output % COLUMNS, group = i % BLOCK / GROUP;
    uint8_t both = block->codes[i % BLOCK / 4][column % LANES][i % 4], code = column < LANES ? both & 15 : both >> 4;
    return __builtin_fmaf(block->step[column] * block->scale[group][column], code,
                          block->lift[column] * block->minimum[group / 2][column][group % 2]);
}

/* The rows `ids` of a packed weight in float32: rows [count, in], as for an embedding. Returns 0, or 1 at an id that is
 * no row. */
EXPORT int lacuna_lookup(const Linear *linear, const int64_t *ids, int64_t count, float *rows) {
    for (int64_t r = 0; r < count; r++) {
        if (ids[r] < 0 || ids[r] >= linear->out)
            return 1;
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
    return 0;
}

typedef struct {
    const float *x;
    int64_t rows;
    const Linear *linear;
    Codes codes;
    float *y;
} Product;

static void multiply_rows(void *with) {
    const Product *of = with;
    int64_t in = of->linear->in;
    EACH_OWN(r, of->rows) quantize(of->x + r * in, in, of->codes, r);
    meet();
    multiply_apart(of->codes, of->rows, of->linear, NULL, of->y);
}

/* y [rows, out] = x W^T + b. Returns 0, or 1 if memory runs out. */
EXPORT int lacuna_linear(const float *x, int64_t rows, const Linear *linear, float *y, int threads) {
    char *memory = reserve(codes_bytes(rows, linear->in));
    if (!memory)
        return 1;
    together(threads, multiply_rows, &(Product){x, rows, linear, take_codes(&memory, rows, linear->in), y});
    return 0;
}

/* The rows of a pass: cos and sin are [turns, count, width], the first turn for keys, and for queries of keys whose
 * tokens were not moved; the others are for queries of keys that were. The last `gated` rows have the additions of the
 * layers' pairs. */
typedef struct {
    int64_t count, turns, gated, heads, groups, width;
    const float *cos, *sin;
    float eps;
} Rows;

/* An addition to a linear of few inputs in between: high(low(x)). */
typedef struct {
    const Linear *low, *high;
} Pair;

/* The pairs have NULL where no row is gated. */
typedef struct {
    const float *attn_norm, *mlp_norm;
    const Linear *qkv, *output, *gate_up, *down;
    Pair added_qkv, added_output, added_gate_up, added_down;
} Layer;

/* Keys and values of all layers; a pass writes its rows at `tail` and attends from `head` to their end. */
typedef struct {
    uint16_t *keys, *values;
    int64_t key_layer, key_group, key_column, value_layer, value_group, value_row;
    int64_t head, tail;
} Arena;

/* `count` rows of a pass from row `first`: they write to and attend to one arena. */
typedef struct {
    int64_t first, count;
    Arena arena;
    Mask mask;
    const Run *runs; /* none where no token has moved */
    int64_t num_runs;
} Part;

/* Intermediate results between the products of a layer. */
typedef struct {
    Codes normed, attended, gated;
    float *states, *query, *mixed, *both, *lowered, *scores;
    char *narrow;
    int64_t rank, scores_stride;
} Between;

/* y = x W^T + b (+ residual) of all rows, and in the gated ones the addition. Every thread has codes of its own for the
 * few inputs in between, so that no barrier is needed after them. */
static void product(Codes from, const Rows *rows, const Linear *linear, const Pair *pair, const Between *between,
                    const float *residual, float *y) {
    int64_t gated = rows->gated, first = rows->count - gated, rank = between->rank;
    if (!gated) {
        multiply(from, rows->count, linear, residual, y);
        return;
    }
    multiply_apart(from, rows->count, linear, residual, y);
    multiply(codes_from(from, first, linear->in), gated, pair->low, NULL, between->lowered);
    char *room = between->narrow + own * codes_bytes(gated, rank);
    Codes narrow = take_codes(&room, gated, rank);
    for (int64_t r = 0; r < gated; r++) quantize(between->lowered + r * rank, rank, narrow, r);
    multiply(narrow, gated, pair->high, y + first * linear->out, y + first * linear->out);
}

static Cache seen(const Part *part, int64_t layer) {
    const Arena *arena = &part->arena;
    return (Cache){arena->keys + layer * arena->key_layer + arena->head,
                   arena->values + layer * arena->value_layer + arena->head * arena->value_row,
                   arena->key_group,
                   arena->key_column,
                   arena->value_group,
                   arena->value_row,
                   arena->tail + part->count - arena->head};
}

/* Rotary embedding of one row of one head. */
static void turn(const float *from, const float *cos, const float *sin, int64_t width, float *to) {
    int64_t half = width / 2;
    for (int64_t d = 0; d < half; d++) to[d] = __builtin_fmaf(from[d], cos[d], -(from[d + half] * sin[d]));
    for (int64_t d = half; d < width; d++) to[d] = __builtin_fmaf(from[d], cos[d], from[d - half] * sin[d]);
}

/* Where a row's key of layer `index` is written, in the first group. */
static uint16_t *key_place(const Part *part, int64_t row, int64_t index) {
    return part->arena.keys + index * part->arena.key_layer + part->arena.tail + row - part->first;
}

static uint16_t *value_place(const Part *part, int64_t row, int64_t index) {
    const Arena *arena = &part->arena;
    return arena->values + index * arena->value_layer + (arena->tail + row - part->first) * arena->value_row;
}

/* The first half of a layer: computes queries [turns, heads, rows, width], and the rows' keys and values in their
 * arenas. */
static void project(const float *x, const Rows *rows, const Layer *layer, const Part *parts, int64_t index,
                    const Between *between) {
    int64_t count = rows->count, width = rows->width, turning = rows->heads + rows->groups;
    EACH_OWN(r, count)
        quantize_norm(x + r * layer->qkv->in, layer->attn_norm, rows->eps, layer->qkv->in, between->normed, r);
    meet();
    product(between->normed, rows, layer->qkv, &layer->added_qkv, between, NULL, between->states);
    EACH_OWN(task, (turning + rows->groups) * count) {
        int64_t h = task / count, r = task % count;
        const float *from = between->states + r * layer->qkv->out + h * width;
        const float *cos = rows->cos + r * width, *sin = rows->sin + r * width;
        const Part *part = parts;
        while (r >= part->first + part->count) part++;
        if (h < rows->heads) {
            for (int64_t t = 0; t < rows->turns; t++) {
                int64_t by = t * count * width;
                turn(from, cos + by, sin + by, width, between->query + rows->heads * by + (h * count + r) * width);
            }
        } else if (h < turning) {
            float turned[width];
            turn(from, cos, sin, width, turned);
            uint16_t *key = key_place(part, r, index) + (h - rows->heads) * part->arena.key_group;
            for (int64_t d = 0; d < width; d++) key[d * part->arena.key_column] = to_bfloat16(turned[d]);
        } else {
            uint16_t *value = value_place(part, r, index) + (h - turning) * part->arena.value_group;
            for (int64_t d = 0; d < width; d++) value[d] = to_bfloat16(from[d]);
        }
    }
    meet();
}

/* x / (1 + e^-x), by an exponential of a non-positive number. */
static Floats silu(Floats x) {
    Floats power = exponential(-magnitude(x)), one = all(1.0f), one_or_zero = (Floats)((Ints)one & (x >= 0.0f));
    return x * (larger(power, one_or_zero) / (one + power));
}

/* mixed [rows, heads * width] of query [turns, heads, rows, width]: every part attends to its arena. Heads and tiles of
 * rows are the tasks of the threads. */
static void attend(const Rows *rows, const Part *parts, int64_t num_parts, int64_t layer, const Between *between) {
    int64_t width = rows->width, mixed = rows->heads * width, tiles = 0;
    for (int64_t p = 0; p < num_parts; p++) tiles += tiles_of(parts[p].count);
    float *scores = between->scores + own * ROWS * between->scores_stride;
    for (int64_t task = next_task(); task < rows->heads * tiles; task = next_task()) {
        int64_t head = task / tiles, tile = task % tiles;
        const Part *part = parts;
        for (; tile >= tiles_of(part->count); part++) tile -= tiles_of(part->count);
        Cache cache = seen(part, layer);
        Run whole = {cache.count, 0};
        Runs runs = {part->num_runs ? part->runs : &whole, part->num_runs ? part->num_runs : 1,
                     rows->heads * rows->count * width};
        int64_t first = tile_start(part->count, tile), last = tile_start(part->count, tile + 1);
        int64_t row = part->first + first;
        attend_rows(last - first, between->query + (head * rows->count + row) * width, width,
                    head * rows->groups / rows->heads, &cache, &runs, &part->mask, first, scores,
                    between->mixed + row * mixed + head * width, mixed);
    }
    meet();
}

/* The second half: adds the output of attention to x [rows, hidden], and then that of the gated MLP. */
static void finish(float *x, const Rows *rows, const Layer *layer, const Between *between) {
    int64_t count = rows->count, hidden = layer->output->out, inner = layer->down->in;
    EACH_OWN(r, count) quantize(between->mixed + r * layer->output->in, layer->output->in, between->attended, r);
    meet();
    product(between->attended, rows, layer->output, &layer->added_output, between, x, x);
    EACH_OWN(r, count) quantize_norm(x + r * hidden, layer->mlp_norm, rows->eps, hidden, between->normed, r);
    meet();
    product(between->normed, rows, layer->gate_up, &layer->added_gate_up, between, NULL, between->both);
    EACH_OWN(r, count) {
        float *gate = between->both + r * 2 * inner, *up = gate + inner;
        for (int64_t i = 0; i < inner; i += LANES) store(gate + i, silu(load(gate + i)) * load(up + i));
        quantize(gate, inner, between->gated, r);
    }
    meet();
    product(between->gated, rows, layer->down, &layer->added_down, between, x, x);
}

typedef struct {
    float *x;
    const Rows *rows;
    const Layer *layers;
    int64_t num_layers;
    const Part *parts;
    int64_t num_parts;
    Between between;
} Pass;

static void run_layers(void *with) {
    const Pass *pass = with;
    for (int64_t index = 0; index < pass->num_layers; index++) {
        const Layer *layer = pass->layers + index;
        project(pass->x, pass->rows, layer, pass->parts, index, &pass->between);
        attend(pass->rows, pass->parts, pass->num_parts, index, &pass->between);
        finish(pass->x, pass->rows, layer, &pass->between);
    }
}

/* Runs x [rows, hidden] in place through `num_layers` layers of the same shape; the arenas begin with the first of
 * them. The parts hold all rows, in order. All pairs have the same `low->out`. Returns 0, or 1 if memory runs out. */
EXPORT int lacuna_layers(float *x, const Rows *rows, const Layer *layers, int64_t num_layers, const Part *parts,
                         int64_t num_parts, int threads) {
    int64_t count = rows->count, hidden = layers->output->out, inner = layers->down->in;
    int64_t qkv = count * layers->qkv->out * 4, mixed = count * layers->output->in * 4, both = count * inner * 8;
    int64_t rank = rows->gated ? layers->added_qkv.low->out : 0, lowered = rows->gated * rank * 4;
    Between between = {.rank = rank, .scores_stride = 0};
    for (int64_t p = 0; p < num_parts; p++) {
        Cache cache = seen(parts + p, 0);
        if (between.scores_stride < scores_stride(&cache))
            between.scores_stride = scores_stride(&cache);
    }
    char *memory =
        reserve(codes_bytes(count, hidden) + codes_bytes(count, layers->output->in) + codes_bytes(count, inner) +
                padded(qkv) + padded(rows->turns * mixed) + padded(mixed) + padded(both) + padded(lowered) +
                threads * (codes_bytes(rows->gated, rank) + ROWS * between.scores_stride * 4));
    if (!memory)
        return 1;
    between.normed = take_codes(&memory, count, hidden);
    between.attended = take_codes(&memory, count, layers->output->in);
    between.gated = take_codes(&memory, count, inner);
    between.narrow = take(&memory, threads * codes_bytes(rows->gated, rank));
    between.states = (float *)take(&memory, qkv);
    between.query = (float *)take(&memory, rows->turns * mixed);
    between.mixed = (float *)take(&memory, mixed);
    between.both = (float *)take(&memory, both);
    between.lowered = (float *)take(&memory, lowered);
    between.scores = (float *)memory;
    together(threads, run_layers, &(Pass){x, rows, layers, num_layers, parts, num_parts, between});
    return 0;
}
