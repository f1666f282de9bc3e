/* The halves of a transformer layer on a CPU with AVX-512 VNNI: linears in 8 bit, attention over bfloat16 keys.
 *
 * A denoising pass has 1 to 40 rows. At that size the time goes into reading weights, and into everything that stands
 * between two products; so each half is one call, whose threads meet at barriers. What a row becomes does not depend
 * on the rows beside it: a row alone and a row in a batch come out bit for bit the same.
 *
 * Matrices are row-major and contiguous unless a stride is given. Widths are multiples of 32.
 */

#include <immintrin.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

/* Rows and columns that a tile keeps in registers. */
enum { ROWS = 8, COLUMNS = 32 };

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

/* Room that a thread keeps from call to call. */
static _Thread_local struct {
    char *memory;
    int64_t size;
} room;

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static char *reserve(int64_t bytes) {
    if (room.size < bytes) {
        free(room.memory);
        room.memory = aligned_alloc(64, padded(bytes));
        room.size = room.memory ? bytes : 0;
    }
    return room.memory;
}

static char *take(char **free_from, int64_t bytes) {
    char *taken = *free_from;
    *free_from += padded(bytes);
    return taken;
}

static Codes take_codes(char **free_from, int64_t rows, int64_t width) {
    Codes codes;
    codes.codes = (int8_t *)take(free_from, rows * width);
    codes.scale = (float *)take(free_from, rows * 4);
    codes.sum = (int32_t *)take(free_from, rows * 4);
    return codes;
}

static int64_t codes_bytes(int64_t rows, int64_t width) { return padded(rows * width) + 2 * padded(rows * 4); }

/* Rows are dealt out evenly: nine are five and four, not eight and one. */
static int64_t tiles_of(int64_t rows) { return (rows + ROWS - 1) / ROWS; }
static int64_t tile_start(int64_t rows, int64_t tile) { return rows * tile / tiles_of(rows); }

/* Four bytes, in every lane. */
static inline __m512i repeated(const void *from) {
    int32_t bytes;
    __builtin_memcpy(&bytes, from, 4);
    return _mm512_set1_epi32(bytes);
}

/* ---- 8-bit linears ------------------------------------------------------------------------------------------- */

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
        _mm512_store_ps(normed + i, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), factor), _mm512_loadu_ps(weight + i)));
    quantize(normed, width, to, row);
}

/* `rows` rows times 32 columns. */
static inline __attribute__((always_inline)) void tile(
    const int rows, Codes from, int64_t first, const Linear *linear, int64_t column, const float *residual, float *y) {
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
            if (linear->bias) value = _mm512_add_ps(value, _mm512_loadu_ps(linear->bias + at));
            if (residual) value = _mm512_add_ps(value, _mm512_loadu_ps(residual + (first + r) * out + at));
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
            switch (tile_start(rows, t + 1) - first) {
                case 1: tile(1, from, first, linear, column, residual, y); break;
                case 2: tile(2, from, first, linear, column, residual, y); break;
                case 3: tile(3, from, first, linear, column, residual, y); break;
                case 4: tile(4, from, first, linear, column, residual, y); break;
                case 5: tile(5, from, first, linear, column, residual, y); break;
                case 6: tile(6, from, first, linear, column, residual, y); break;
                case 7: tile(7, from, first, linear, column, residual, y); break;
                default: tile(8, from, first, linear, column, residual, y);
            }
        }
}

/* ---- attention ----------------------------------------------------------------------------------------------- */

/* e^x for x <= 0: 2^n times a polynomial of the rest, right to 2e-7. */
static __m512 exponential(__m512 x) {
    __m512 scaled = _mm512_mul_ps(_mm512_max_ps(x, _mm512_set1_ps(-100.0f)), _mm512_set1_ps(1.44269504f));
    __m512 whole = _mm512_roundscale_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 rest = _mm512_sub_ps(scaled, whole);
    __m512 power = _mm512_set1_ps(1.5403530e-4f);
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(1.3333558e-3f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(9.6181291e-3f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(5.5504109e-2f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(2.4022651e-1f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(6.9314718e-1f));
    power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(power, whole);
}

static inline uint16_t narrow(float x) {
    union { float value; uint32_t bits; } wide = {x};
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
    const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5,
                                           36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    return _mm512_permutex2var_epi16(line, _mm512_add_epi16(order, _mm512_set1_epi16((short)(16 * half))), next);
}

/* scores [rows, stride] = q K^T, scaled; keys that are none get -inf. */
static inline __attribute__((always_inline)) void score(
    const int rows, const uint16_t *query, int64_t width, const uint16_t *keys, const Cache *cache, float *scores,
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
            __m512i low = pairs(line, beside, 0), high = pairs(line, beside, 1);
            for (int r = 0; r < rows; r++) {
                __m512i factors = repeated(query + r * width + d);
                sums[r][0] = dot(sums[r][0], low, factors);
                sums[r][1] = dot(sums[r][1], high, factors);
            }
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
        union { uint32_t bits; float value; } wide = { (uint32_t)added[j] << 16 };
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
static inline __attribute__((always_inline)) void mix(
    const int rows, const uint16_t *shares, int64_t stride, const float *factor, const uint16_t *values, int64_t width,
    const Cache *cache, float *to, int64_t to_stride) {
    for (int64_t d = 0; d < width; d += 32) {
        __m512 sums[ROWS][2];
        for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
        for (int64_t j = 0; j < cache->count; j += 2) {
            const uint16_t *value = values + j * cache->value_row + d;
            __m512i line = _mm512_loadu_si512(value), beside = _mm512_setzero_si512();
            if (j + 1 < cache->count) beside = _mm512_loadu_si512(value + cache->value_row);
            __m512i low = pairs(line, beside, 0), high = pairs(line, beside, 1);
            for (int r = 0; r < rows; r++) {
                __m512i factors = repeated(shares + r * stride + j);
                sums[r][0] = dot(sums[r][0], low, factors);
                sums[r][1] = dot(sums[r][1], high, factors);
            }
        }
        for (int r = 0; r < rows; r++)
            for (int half = 0; half < 2; half++)
                _mm512_storeu_ps(to + r * to_stride + d + 16 * half, _mm512_mul_ps(sums[r][half], _mm512_set1_ps(factor[r])));
    }
}

/* `rows` rows of one head from row `first`. */
static inline __attribute__((always_inline)) void attend_tile(
    const int rows, const float *query, int64_t width, const uint16_t *keys, const uint16_t *values, const Cache *cache,
    const Mask *mask, int64_t first, float *scores, int64_t stride, float *to, int64_t to_stride) {
    float factor[ROWS];
    uint16_t narrowed[rows * width];
    for (int64_t i = 0; i < rows * width; i++) narrowed[i] = narrow(query[i]);
    score(rows, narrowed, width, keys, cache, scores, stride);
    for (int r = 0; r < rows; r++) {
        if (mask->added) add_mask(scores + r * stride, mask, first + r, cache->count);
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
        const uint16_t *keys = cache->keys + group * cache->key_group, *values = cache->values + group * cache->value_group;
        float *to = mixed + first * heads * width + head * width;
        switch (tile_start(rows, task % tiles + 1) - first) {
#define CASE(n) attend_tile(n, from, width, keys, values, cache, mask, first, scores, stride, to, heads * width)
            case 1: CASE(1); break;
            case 2: CASE(2); break;
            case 3: CASE(3); break;
            case 4: CASE(4); break;
            case 5: CASE(5); break;
            case 6: CASE(6); break;
            case 7: CASE(7); break;
            default: CASE(8);
#undef CASE
        }
    }
}

/* ---- what Python calls --------------------------------------------------------------------------------------- */

/* Codes [out, in] as `Linear.weight` has them. */
void lacuna_pack(const int8_t *codes, int64_t out, int64_t in, uint8_t *packed) {
#pragma omp parallel for
    for (int64_t column = 0; column < out; column++) {
        uint8_t *to = packed + column / COLUMNS * COLUMNS * in + column % COLUMNS * 4;
        for (int64_t i = 0; i < in; i++) to[i / 4 * 4 * COLUMNS + i % 4] = (uint8_t)(codes[column * in + i] + 128);
    }
}

/* y [rows, out] = x W^T + b. Every function below returns 0, or 1 where there is no memory. */
int lacuna_linear(const float *x, int64_t rows, const Linear *linear, float *y, int threads) {
    char *memory = reserve(codes_bytes(rows, linear->in));
    if (!memory) return 1;
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
                   const float *sin, int64_t heads, int64_t groups, int64_t width, float *turned, float *value, int threads) {
    char *memory = reserve(codes_bytes(rows, qkv->in) + padded(rows * qkv->out * 4));
    if (!memory) return 1;
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

/* The second half: y [rows, hidden] = the layer's output, from its input x and the query [heads, rows, width]. */
int lacuna_finish(const float *x, int64_t rows, const float *query, int64_t heads, int64_t groups, int64_t width,
                  const Cache *cache, const Mask *mask, const Linear *output, const float *norm, float eps,
                  const Linear *gate_up, const Linear *down, float *y, int threads) {
    int64_t hidden = output->out, inner = down->in;
    char *memory = reserve(codes_bytes(rows, output->in) + codes_bytes(rows, hidden) + codes_bytes(rows, inner) +
                           padded(rows * output->in * 4) + padded(rows * hidden * 4) + padded(rows * inner * 8) +
                           threads * ROWS * scores_stride(cache) * 4);
    if (!memory) return 1;
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
            for (int64_t i = 0; i < inner; i += 16) {
                __m512 g = _mm512_loadu_ps(gate + i), one = _mm512_set1_ps(1.0f);
                /* silu(g) = g / (1 + e^-g), by the exponential of what is not positive */
                __m512 power = exponential(_mm512_sub_ps(_mm512_setzero_ps(), _mm512_abs_ps(g)));
                __mmask16 positive = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_GE_OQ);
                __m512 top = _mm512_mask_mov_ps(power, positive, one);
                g = _mm512_mul_ps(g, _mm512_div_ps(top, _mm512_add_ps(one, power)));
                _mm512_storeu_ps(gate + i, _mm512_mul_ps(g, _mm512_loadu_ps(up + i)));
            }
            quantize(gate, inner, gated, r);
        }
        multiply(gated, rows, down, middle, y);
    }
    return 0;
}
