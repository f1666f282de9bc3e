/* Transformer layers on a CPU: linears in 8 and 4 bit, attention over bfloat16 keys.
 *
 * A denoising pass has 1 to 40 rows. At that size the time goes into reading weights and into the work between two
 * products. So one call runs several layers, whose loops the threads share. The result of a row does not depend on the
 * rows beside it: alone and in a batch it is the same bit for bit.
 *
 * Matrices are row-major and contiguous unless a stride is given. Widths are multiples of 32.
 */

#define _GNU_SOURCE /* the cores of threads, in sched.h */

#include "attention.h"
#include "linear.h"

typedef struct {
    const int8_t *codes;
    int64_t in;
    uint8_t *packed;
} Packing;

static void pack(const void *with, int64_t first, int64_t last) {
    const Packing *of = with;
    int64_t in = of->in;
    for (int64_t column = first; column < last; column++) {
        uint8_t *to = of->packed + column / COLUMNS * COLUMNS * in + column % COLUMNS * 4;
        for (int64_t i = 0; i < in; i++)
            to[i / 4 * 4 * COLUMNS + i % 4] = (uint8_t)(of->codes[column * in + i] + RAISED);
    }
}

/* Packs codes [out, in] into the order of `Linear.weight`. Returns 0. */
EXPORT int lacuna_pack(const int8_t *codes, int64_t out, int64_t in, uint8_t *packed, int threads) {
    gather(threads);
    each(out, pack, &(Packing){codes, in, packed});
    return 0;
}

typedef struct {
    const uint8_t *codes, *scale, *minimum;
    const float *step, *lift;
    int64_t in;
    Block *packed;
} BlockPacking;

static void pack_blocks(const void *with, int64_t first_block, int64_t last_block) {
    const BlockPacking *from = with;
    int64_t in = from->in, blocks = blocks_of(in);
    for (int64_t of = first_block; of < last_block; of++) {
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
    gather(threads);
    each(out / COLUMNS * blocks_of(in), pack_blocks,
         &(BlockPacking){codes, scale, minimum, step, lift, in, packed});
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

/* y [rows, out] = x W^T + b. Returns 0, or 1 if memory runs out. */
EXPORT int lacuna_linear(const float *x, int64_t rows, const Linear *linear, float *y, int threads) {
    char *memory = reserve(codes_bytes(rows, linear->in));
    if (!memory)
        return 1;
    gather(threads);
    Codes codes = take_codes(&memory, rows, linear->in);
    quantize_rows(x, NULL, 0.0f, rows, linear->in, codes);
    multiply(codes, rows, linear, NULL, y);
    return 0;
}

/* `count` rows from row `first` on have the layers' additions of one `kind`. */
typedef struct {
    int64_t first, count, kind;
} Span;

/* The rows of a pass: cos and sin are [turns, count, width], the first turn for keys, and for queries of keys whose
 * tokens were not moved; the others are for queries of keys that were. The `spans` say which rows have additions. If
 * `kept_alone`, nobody needs the rows themselves: the last layer writes their keys and values, and does nothing else. */
typedef struct {
    int64_t count, turns, heads, groups, width;
    const Span *spans;
    int64_t num_spans;
    const float *cos, *sin;
    float eps;
    int kept_alone;
} Rows;

/* An addition to a linear of few inputs in between: high(low(x)). */
typedef struct {
    const Linear *low, *high;
} Pair;

/* Of each linear the pairs of all kinds. */
typedef struct {
    const float *attn_norm, *mlp_norm;
    const Linear *qkv, *output, *gate_up, *down;
    const Pair *added_qkv, *added_output, *added_gate_up, *added_down;
} Layer;

/* Keys and values of all layers; a pass writes its rows at `tail` and attends to all up to their end. */
typedef struct {
    uint16_t *keys, *values;
    int64_t key_layer, key_group, key_column, value_layer, value_group, value_row;
    int64_t tail;
} Arena;

/* `count` rows of a pass from row `first`: they write to and attend to one arena. */
typedef struct {
    int64_t first, count;
    Arena arena;
    Mask mask;
    const Run *runs; /* none where no token has moved */
    int64_t num_runs;
} Part;

/* Intermediate results between the products of a layer; `narrow` are those between the two of an addition. */
typedef struct {
    Codes normed, attended, gated, narrow;
    float *states, *query, *mixed, *both, *lowered, *scores;
    int64_t scores_stride;
} Between;

/* A layer of a pass, the one of number `index` of its arenas; whether it is the `last`. */
typedef struct {
    float *x;
    const Rows *rows;
    const Layer *layer;
    const Part *parts;
    int64_t num_parts, index;
    const Between *between;
    int last;
} Step;

/* y = x W^T + b (+ residual) of all rows, and in those of each span the addition of its kind. */
static void product(Codes from, const Rows *rows, const Linear *linear, const Pair *pairs, const Between *between,
                    const float *residual, float *y) {
    multiply(from, rows->count, linear, residual, y);
    for (int64_t s = 0; s < rows->num_spans; s++) {
        const Span *span = rows->spans + s;
        const Pair *pair = pairs + span->kind;
        float *added = y + span->first * linear->out;
        multiply(codes_from(from, span->first, linear->in), span->count, pair->low, NULL, between->lowered);
        quantize_rows(between->lowered, NULL, 0.0f, span->count, pair->low->out, between->narrow);
        multiply(between->narrow, span->count, pair->high, added, added);
    }
}

static Cache seen(const Part *part, int64_t layer) {
    const Arena *arena = &part->arena;
    return (Cache){arena->keys + layer * arena->key_layer,
                   arena->values + layer * arena->value_layer,
                   arena->key_group,
                   arena->key_column,
                   arena->value_group,
                   arena->value_row,
                   arena->tail + part->count};
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

/* The queries [turns, heads, rows, width] of the states, and the keys and values in their arenas. A row of a head is a
 * task. */
static void place(const void *with, int64_t first, int64_t last) {
    const Step *step = with;
    const Rows *rows = step->rows;
    int64_t count = rows->count, width = rows->width, turning = rows->heads + rows->groups;
    for (int64_t task = first; task < last; task++) {
        int64_t h = task / count, r = task % count;
        const float *from = step->between->states + r * step->layer->qkv->out + h * width;
        const float *cos = rows->cos + r * width, *sin = rows->sin + r * width;
        const Part *part = step->parts;
        while (r >= part->first + part->count) part++;
        if (h < rows->heads) {
            float *query = step->between->query + (h * count + r) * width;
            for (int64_t t = 0; t < rows->turns; t++) {
                int64_t by = t * count * width;
                turn(from, cos + by, sin + by, width, query + rows->heads * by);
            }
        } else if (h < turning) {
            float turned[width];
            turn(from, cos, sin, width, turned);
            uint16_t *key = key_place(part, r, step->index) + (h - rows->heads) * part->arena.key_group;
            for (int64_t d = 0; d < width; d++) key[d * part->arena.key_column] = to_bfloat16(turned[d]);
        } else {
            uint16_t *value = value_place(part, r, step->index) + (h - turning) * part->arena.value_group;
            for (int64_t d = 0; d < width; d++) value[d] = to_bfloat16(from[d]);
        }
    }
}

/* x / (1 + e^-x), by an exponential of a non-positive number. */
static Floats silu(Floats x) {
    Floats power = exponential(-magnitude(x)), one = all(1.0f), one_or_zero = (Floats)((Ints)one & (x >= 0.0f));
    return x * (larger(power, one_or_zero) / (one + power));
}

/* The tiles of rows; each is of one part. */
static int64_t tiles_of_parts(const Step *step) {
    int64_t tiles = 0;
    for (int64_t p = 0; p < step->num_parts; p++) tiles += tiles_of(step->parts[p].count);
    return tiles;
}

/* mixed [rows, heads * width] of query [turns, heads, rows, width]: every part attends to its arena. A tile of a head is a
 * task. */
static void attend(const void *with, int64_t first_task, int64_t last_task) {
    const Step *step = with;
    const Rows *rows = step->rows;
    int64_t width = rows->width, mixed = rows->heads * width, tiles = tiles_of_parts(step);
    float *scores = step->between->scores + own * ROWS * step->between->scores_stride;
    for (int64_t task = first_task; task < last_task; task++) {
        int64_t head = task / tiles, tile = task % tiles;
        const Part *part = step->parts;
        for (; tile >= tiles_of(part->count); part++) tile -= tiles_of(part->count);
        Cache cache = seen(part, step->index);
        Run whole = {cache.count, 0};
        Runs runs = {part->num_runs ? part->runs : &whole, part->num_runs ? part->num_runs : 1,
                     rows->heads * rows->count * width};
        int64_t first = tile_start(part->count, tile), last = tile_start(part->count, tile + 1);
        int64_t row = part->first + first;
        attend_rows(last - first, step->between->query + (head * rows->count + row) * width, width,
                    head * rows->groups / rows->heads, &cache, &runs, &part->mask, first, scores,
                    step->between->mixed + row * mixed + head * width, mixed);
    }
}

/* Codes of silu(gate) * up. */
static void gate(const void *with, int64_t first, int64_t last) {
    const Step *step = with;
    int64_t inner = step->layer->down->in;
    for (int64_t r = first; r < last; r++) {
        float *gate = step->between->both + r * 2 * inner, *up = gate + inner;
        for (int64_t i = 0; i < inner; i += LANES) store(gate + i, silu(load(gate + i)) * load(up + i));
        quantize(gate, inner, step->between->gated, r);
    }
}

/* Adds the output of attention to x [rows, hidden], and then that of the gated MLP. */
static void run_layer(const Step *step) {
    const Rows *rows = step->rows;
    const Layer *layer = step->layer;
    const Between *between = step->between;
    float *x = step->x, eps = rows->eps;
    int64_t count = rows->count, hidden = layer->output->out, mixed = layer->output->in;
    quantize_rows(x, layer->attn_norm, eps, count, hidden, between->normed);
    product(between->normed, rows, layer->qkv, layer->added_qkv, between, NULL, between->states);
    each((rows->heads + 2 * rows->groups) * count, place, step);
    if (step->last && rows->kept_alone)
        return;
    each(rows->heads * tiles_of_parts(step), attend, step);
    quantize_rows(between->mixed, NULL, eps, count, mixed, between->attended);
    product(between->attended, rows, layer->output, layer->added_output, between, x, x);
    quantize_rows(x, layer->mlp_norm, eps, count, hidden, between->normed);
    product(between->normed, rows, layer->gate_up, layer->added_gate_up, between, NULL, between->both);
    each(count, gate, step);
    product(between->gated, rows, layer->down, layer->added_down, between, x, x);
}

/* Runs x [rows, hidden] in place through `num_layers` layers of the same shape; the arenas begin with the first of
 * them. The parts hold all rows, in order. All pairs have the same `low->out`. Returns 0, or 1 if memory runs out. */
EXPORT int lacuna_layers(float *x, const Rows *rows, const Layer *layers, int64_t num_layers, const Part *parts,
                         int64_t num_parts, int threads) {
    int64_t count = rows->count, hidden = layers->output->out, inner = layers->down->in;
    int64_t qkv = count * layers->qkv->out * 4, mixed = count * layers->output->in * 4, both = count * inner * 8;
    int64_t rank = rows->num_spans ? layers->added_qkv->low->out : 0, lowered = count * rank * 4;
    Between between = {.scores_stride = 0};
    for (int64_t p = 0; p < num_parts; p++) {
        Cache cache = seen(parts + p, 0);
        if (between.scores_stride < scores_stride(&cache))
            between.scores_stride = scores_stride(&cache);
    }
    char *memory =
        reserve(codes_bytes(count, hidden) + codes_bytes(count, layers->output->in) + codes_bytes(count, inner) +
                padded(qkv) + padded(rows->turns * mixed) + padded(mixed) + padded(both) + padded(lowered) +
                codes_bytes(count, rank) + threads * ROWS * between.scores_stride * 4);
    if (!memory)
        return 1;
    between.normed = take_codes(&memory, count, hidden);
    between.attended = take_codes(&memory, count, layers->output->in);
    between.gated = take_codes(&memory, count, inner);
    between.narrow = take_codes(&memory, count, rank);
    between.states = (float *)take(&memory, qkv);
    between.query = (float *)take(&memory, rows->turns * mixed);
    between.mixed = (float *)take(&memory, mixed);
    between.both = (float *)take(&memory, both);
    between.lowered = (float *)take(&memory, lowered);
    between.scores = (float *)memory;
    gather(threads);
    for (int64_t index = 0; index < num_layers; index++)
        run_layer(&(Step){x, rows, layers + index, parts, num_parts, index, &between, index == num_layers - 1});
    return 0;
}
