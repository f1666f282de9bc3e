/* A hash table of strings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 64

typedef struct node {
    char *key;
    int value;
    struct node *next;
} node;

static node *buckets[BUCKETS];

static unsigned hash(const char *key) {
    unsigned h = 5381;
    while (*key != '\0') {
        h = (h << 5) + h + (unsigned char)*key++;
    }
    return h % BUCKETS;
}

int table_put(const char *key, int value) {
    unsigned place = hash(key);
    for (node *n = buckets[place]; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            n->value = value;
            return 0;
        }
    }
    node *fresh = malloc(sizeof(*fresh));
    if (fresh == NULL) {
        fprintf(stderr, "out of memory: \"%s\"\n", key);
        return -1;
    }
    fresh->key = strdup(key);
    fresh->value = value;
    fresh->next = buckets[place];
    buckets[place] = fresh;
    return 1;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        int code = table_put(argv[i], i * 2);
        switch (code) {
        case -1:
            return EXIT_FAILURE;
        default:
            printf("%s -> %d\n", argv[i], code ? i : -i);
            break;
        }
    }
    return 0;
}
