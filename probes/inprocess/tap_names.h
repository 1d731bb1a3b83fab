/* Texts of the tap's ring: each is sent once, and stands for its address from then on. Included by tap.c alone. */
#ifndef INFLIGHT_TAP_NAMES_H
#define INFLIGHT_TAP_NAMES_H

#include <dlfcn.h>
#include <stdlib.h>

#include "ring.h"

enum { SLOTS = 1 << 16 };

static const char *known[SLOTS];
static int32_t ids[SLOTS], names;

static int32_t send_name(Ring *ring, const char *text) {
    size_t length = strnlen(text, 65536);
    if (names == INT32_MAX || !ring_put(ring, RING_NAMES, names, text, length)) return -1;
    return names++;
}

/* The id of a text that stays where it is; -1 when there is none, or no room for it. */
static int32_t name_of(Ring *ring, const char *text) {
    static char *(*demangle)(const char *, char *, size_t *, int *);
    static int looked;
    if (!text) return -1;
    if (!looked++) *(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    uint32_t slot = (uint32_t)(((uintptr_t)text >> 3) * 11400714819323198485ull >> 48);
    uint32_t tried = 0;
    while (known[slot] && known[slot] != text && tried++ < SLOTS) slot = (slot + 1) % SLOTS;
    if (known[slot] == text) return ids[slot];
    if (names > SLOTS / 2) return -1;
    int failed = 1;
    char *plain = demangle && text[0] == '_' ? demangle(text, NULL, NULL, &failed) : NULL;
    int32_t id = send_name(ring, plain && !failed ? plain : text);
    free(plain);
    if (id >= 0) known[slot] = text, ids[slot] = id;
    return id;
}

static const char *copy_name(uint8_t kind) {
    static const char *const kinds[] = {"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA",
                                        "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
    return kinds[kind < sizeof kinds / sizeof *kinds ? kind : 0];
}

#endif
