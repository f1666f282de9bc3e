/* Prints what two layers make of made-up numbers, the same on every CPU: for those that are emulated. */

#include "layer.c"

#include <stdio.h>

enum { HEADS = 6, GROUPS = 2, WIDTH = 32, HIDDEN = 256, INNER = 224, COUNT = 70, MAX_ROWS = 11, CAPACITY = 96 };

static uint32_t state = 2;

/* From -1 to 1. */
static float random_number(void) {
    state = state * 1664525 + 1013904223;
    return (float)(int32_t)state / 2147483648.0f;
}

static float *numbers(int64_t count, float from, float scale) {
    float *made = malloc(count * sizeof *made);
    for (int64_t i = 0; i < count; i++) made[i] = from + scale * random_number();
    return made;
}

static uint16_t *halves(int64_t count) {
    uint16_t *made = malloc(count * sizeof *made);
    for (int64_t i = 0; i < count; i++) {
        float x = random_number();
        __builtin_memcpy(made + i, (char *)&x + 2, 2);
    }
    return made;
}

static uint8_t *bytes(int64_t count, int most) {
    uint8_t *made = malloc(count);
    for (int64_t i = 0; i < count; i++) made[i] = (uint8_t)((1 + random_number()) / 2 * (most + 0.99f));
    return made;
}

/* The first `small` outputs in 4 bit, the others in 8. */
static Linear linear(int64_t out, int64_t small, int64_t in) {
    int64_t large = out - small, blocks = small * in / BLOCK, groups = small * in / GROUP;
    int8_t *codes = malloc(large * in);
    uint8_t *packed = malloc(large * in);
    Block *packed_blocks = malloc(blocks * sizeof(Block) / COLUMNS);
    for (int64_t i = 0; i < large * in; i++) codes[i] = (int8_t)(127 * random_number());
    lacuna_pack(codes, large, in, packed, 2);
    uint8_t *small_codes = bytes(small * in, 15), *scale = bytes(groups, 63), *minimum = bytes(groups, 63);
    float *step = numbers(blocks, 4e-4f, 1e-4f), *lift = numbers(blocks, -3e-3f, 1e-3f);
    lacuna_pack_blocks(small_codes, scale, minimum, step, lift, small, in, packed_blocks, 2);
    return (Linear){packed_blocks, packed, numbers(large, 0.001f, 0.0005f), numbers(out, 0, 0.1f), in, out, small};
}

static void print(const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) printf("%.6g\n", x[i]);
}

int main(void) {
    Linear qkv = linear((HEADS + 2 * GROUPS) * WIDTH, (HEADS + GROUPS) * WIDTH, HIDDEN);
    Linear output = linear(HIDDEN, 0, HEADS * WIDTH);
    Linear gate_up = linear(2 * INNER, 2 * INNER, HIDDEN), down = linear(HIDDEN, 0, INNER);
    float *norm = numbers(HIDDEN, 1, 0.1f);
    Layer layer = {norm, norm, &qkv, &output, &gate_up, &down}, layers[] = {layer, layer};
    Mask mask = {halves(MAX_ROWS * (COUNT + MAX_ROWS)), 40};
    for (int64_t rows = 1; rows <= MAX_ROWS; rows += 5) {
        int64_t kept = 2 * GROUPS * WIDTH * CAPACITY;
        float *x = numbers(rows * HIDDEN, 0, 2), *angle = numbers(rows * WIDTH, 0, 1);
        Rows shape = {rows, 1, HEADS, GROUPS, WIDTH, NULL, 0, angle, angle, 1e-5f, 0};
        Arena arena = {
            halves(kept), halves(kept), kept / 2, WIDTH * CAPACITY, CAPACITY, kept / 2, WIDTH * CAPACITY, WIDTH,
            COUNT};
        Part part = {0, rows, arena, mask, NULL, 0};
        lacuna_layers(x, &shape, layers, 2, &part, 1, 2);
        print(x, rows * HIDDEN);
    }
}
