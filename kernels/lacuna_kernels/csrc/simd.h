/* Vectors of the CPU at hand. Most operations are C's own vector arithmetic; the rest is defined here per
 * instruction set, and all other code uses these definitions. */

#pragma once

#include <stdint.h>

/* Each set defines LANES, the floats or 32-bit integers of a vector; ROWS, the rows of a tile that stay in registers
 * with two vectors of sums each; RAISED, the offset that packed weights add to their codes. */
#if defined __AVX512VNNI__

#include <immintrin.h>

enum { LANES = 16, ROWS = 8, RAISED = 128 };
typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));

static inline Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }

static inline Floats fused(Floats a, Floats b, Floats sum) { return _mm512_fmadd_ps(a, b, sum); }

/* Loads LANES bfloat16 as floats. */
static inline Floats widened(const uint16_t *from) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
    return (Floats)_mm512_slli_epi32(wide, 16);
}

/* Stores integers from -128 to 127 in 8 bit. */
static inline void store_codes(int8_t *to, Ints codes) {
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)codes));
}

/* Adds to each lane the dot product of four packed weights of its output with four codes. */
static inline Ints add_dots(Ints sums, Ints weights, Ints codes) {
    return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)codes);
}

/* Loads LANES factors. */
static inline Ints load_factors(const uint8_t *from) {
    return (Ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}

/* Adds to each lane the dot product of a pair of bytes with a pair of 16-bit integers. */
static inline Ints add_pairs(Ints sums, const uint8_t *from, Ints pair) {
    __m512i wide = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)from));
    return (Ints)_mm512_dpwssd_epi32((__m512i)sums, wide, (__m512i)pair);
}

#elif defined __AVX2__

#include <immintrin.h>

enum { LANES = 8 };
typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

static inline Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }

static inline Floats fused(Floats a, Floats b, Floats sum) { return _mm256_fmadd_ps(a, b, sum); }

static inline Floats widened(const uint16_t *from) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return (Floats)_mm256_slli_epi32(wide, 16);
}

static inline void store_codes(int8_t *to, Ints codes) {
    __m128i low = _mm256_castsi256_si128((__m256i)codes), high = _mm256_extracti128_si256((__m256i)codes, 1);
    __m128i words = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi16(words, words));
}

static inline Ints add_pairs(Ints sums, const uint8_t *from, Ints pair) {
    __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)from));
    return sums + (Ints)_mm256_madd_epi16(wide, (__m256i)pair);
}

static inline Ints load_factors(const uint8_t *from) {
    __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
#ifdef __AVXVNNI__
    return (Ints)wide;
#else /* the factor in both halves of a lane */
    return (Ints)_mm256_or_si256(wide, _mm256_slli_epi32(wide, 16));
#endif
}

#ifdef __AVXVNNI__

enum { ROWS = 6, RAISED = 128 };

static inline Ints add_dots(Ints sums, Ints weights, Ints codes) {
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)weights, (__m256i)codes);
}

#else

enum { ROWS = 4, RAISED = 0 };

/* The only byte product needs an unsigned left operand and saturates at 16 bit. The weight's sign is therefore moved
 * to the code: two products of at most 128 * 127 do not saturate. */
static inline Ints add_dots(Ints sums, Ints weights, Ints codes) {
    __m256i products =
        _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)weights), _mm256_sign_epi8((__m256i)codes, (__m256i)weights));
    return sums + (Ints)_mm256_madd_epi16(products, _mm256_set1_epi16(1));
}

/* Weights from 0 to 15 are unsigned, and a group's sum of products fits in 16 bit: a lane holds two sums. */
#define SUMS_IN_16_BIT

static inline Ints add_small_dots(Ints sums, Ints weights, Ints codes) {
    return (Ints)_mm256_add_epi16((__m256i)sums, _mm256_maddubs_epi16((__m256i)weights, (__m256i)codes));
}

static inline Ints times(Ints sums, Ints factors) { return (Ints)_mm256_madd_epi16((__m256i)sums, (__m256i)factors); }

/* Forces the sum so far into its register. Otherwise GCC computes the products of all steps first and runs out of
 * registers. */
#define SETTLE(sums) __asm__("" : "+x"(sums))

#endif

#elif defined __ARM_FEATURE_DOTPROD

#include <arm_neon.h>

enum { LANES = 4, ROWS = 8, RAISED = 0 };
typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));

static inline Floats larger(Floats a, Floats b) { return vmaxq_f32(a, b); }

static inline Floats fused(Floats a, Floats b, Floats sum) { return vfmaq_f32(sum, a, b); }

static inline Floats widened(const uint16_t *from) { return (Floats)vshll_n_u16(vld1_u16(from), 16); }

static inline void store_codes(int8_t *to, Ints codes) {
    int16x4_t words = vmovn_s32(codes);
    int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    __builtin_memcpy(to, &bytes, 4);
}

static inline Ints add_dots(Ints sums, Ints weights, Ints codes) {
    return vdotq_s32(sums, (int8x16_t)weights, (int8x16_t)codes);
}

static inline Ints load_factors(const uint8_t *from) {
    return (Ints){from[0], from[1], from[2], from[3]};
}

static inline Ints add_pairs(Ints sums, const uint8_t *from, Ints pair) {
    int16x8_t wide = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from))), numbers = (int16x8_t)pair;
    int32x4_t low = vmull_s16(vget_low_s16(wide), vget_low_s16(numbers));
    return sums + vpaddq_s32(low, vmull_high_s16(wide, numbers));
}

#endif

#ifndef SUMS_IN_16_BIT

/* Adds to each lane the dot product of four weights from 0 to 15 of its output with four codes, for at most one
 * group. */
static inline Ints add_small_dots(Ints sums, Ints weights, Ints codes) { return add_dots(sums, weights, codes); }

/* Such sums times factors. */
static inline Ints times(Ints sums, Ints factors) { return sums * factors; }

#define SETTLE(sums)

#endif

/* Adding it rounds a float to the nearest integer, which is then in the lowest bits of the sum. */
#define ROUNDING 12582912.0f

static inline Floats load(const float *from) {
    Floats x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}

static inline void store(float *to, Floats x) { __builtin_memcpy(to, &x, sizeof x); }

static inline Ints load_weights(const uint8_t *from) {
    Ints weights;
    __builtin_memcpy(&weights, from, sizeof weights);
    return weights;
}

static inline Floats all(float x) { return x - (Floats){0}; }

/* The same four bytes in every lane. */
static inline Ints repeated(const void *from) {
    int32_t bytes;
    __builtin_memcpy(&bytes, from, 4);
    return bytes - (Ints){0};
}

static inline Floats magnitude(Floats x) { return (Floats)((Ints)x & 0x7fffffff); }

static inline Floats rounded(Floats x) { return (x + ROUNDING) - ROUNDING; }

static inline float total(Floats x) {
    float lanes[LANES];
    __builtin_memcpy(lanes, &x, sizeof x);
#pragma GCC unroll 4 /* otherwise they go through memory */
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) lanes[i] += lanes[i + n];
    return lanes[0];
}

/* Doubles for the lanes of a vector of floats. */
typedef double Doubles __attribute__((vector_size(2 * sizeof(Floats))));

static inline Doubles doubles(Floats x) { return __builtin_convertvector(x, Doubles); }

static inline float largest(Floats x) {
    float most = x[0];
    for (int i = 1; i < LANES; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* e^x for x <= 0: 2^n times a polynomial of the remainder. Relative error 5e-7 above e^-20; 0 below e^-88. */
static inline Floats exponential(Floats x) {
    const Floats to_powers = all(1.44269504f), rounding = all(ROUNDING + 127.0f);
    x = larger(x, all(-88.03f)); /* where n is -127 */
    Floats whole = fused(x, to_powers, rounding), rest = fused(x, to_powers, rounding - whole);
    Floats sum = all(1.5403530e-4f);
    sum = fused(sum, rest, all(1.3333558e-3f));
    sum = fused(sum, rest, all(9.6181291e-3f));
    sum = fused(sum, rest, all(5.5504109e-2f));
    sum = fused(sum, rest, all(2.4022651e-1f));
    sum = fused(sum, rest, all(6.9314718e-1f));
    sum = fused(sum, rest, all(1.0f));
    return sum * (Floats)((Ints)whole << 23); /* n + 127 moves to the exponent bits of a float */
}
