/* A stand-in for CUPTI's activity interface, for tests only: kernels at a given rate through the two callbacks, from a
 * thread that "launches" and a thread that hands buffers back, as the real one does. Set by the environment:
 *   STAND_IN_RATE     kernels per second (200000)      STAND_IN_TOTAL   how many in all (no end)
 *   STAND_IN_VERSION  cuptiGetVersion (130000)         STAND_IN_REFUSES kind=code, e.g. 10=35
 *   STAND_IN_ZERO     every n-th record without times  STAND_IN_HOLD_MS how long buffers are held back
 *   STAND_IN_SKEW_NS  its clock less CLOCK_MONOTONIC   STAND_IN_GRAPHS  kernels per graph launch (0: no graphs) */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*Wanted)(uint8_t **, size_t *, size_t *);
typedef void (*Completed)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef struct { uint8_t *bytes; size_t size, used; int64_t since; } Buffer;

static Wanted wanted;
static Completed completed;
static volatile int enabled[64], running;
static pthread_t launching, handing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Buffer current, queue[4096];
static unsigned first, last;
static int64_t emitted, unserved, reported;
static char names[100][64];

static int64_t setting(const char *name, int64_t otherwise) { const char *v = getenv(name); return v ? atoll(v) : otherwise; }
static int64_t monotonic(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ll + t.tv_nsec; }
static int64_t now(void) { return monotonic() + setting("STAND_IN_SKEW_NS", 5000000000000000); }

static int record_size(void) {
    int64_t version = setting("STAND_IN_VERSION", 130000);
    return version < 100 ? 208 : version == 130000 ? 216 : 248;
}

static void hand_over(void) {
    if (!current.bytes) return;
    current.since = monotonic();
    queue[last++ % 4096] = current;
    current.bytes = NULL;
}

static uint8_t *room(int size) {
    if (current.bytes && current.used + size > current.size) hand_over();
    if (!current.bytes) {
        size_t most = 0;
        current.used = 0;
        wanted(&current.bytes, &current.size, &most);
        if (!current.bytes) { unserved++; return NULL; }
        memset(current.bytes, 0, current.size);
    }
    current.used += size;
    return current.bytes + current.used - size;
}

static void put(uint8_t *r, int at, uint64_t value, int width) { memcpy(r + at, &value, width); }

static void emit(int64_t number, int64_t start) {
    int64_t per_graph = setting("STAND_IN_GRAPHS", 0), zero = setting("STAND_IN_ZERO", 0);
    int whole = per_graph && enabled[51];
    if (whole && number % per_graph) return;
    uint8_t *r = room(record_size());
    if (!r) return;
    int64_t from = zero && number % zero == 0 ? 0 : start, to = from ? start + 2000 : 0;
    if (whole) {
        put(r, 0, 51, 4), put(r, 4, number / per_graph + 1, 4), put(r, 8, from, 8), put(r, 16, to, 8);
        put(r, 24, 0, 4), put(r, 28, 77, 4), put(r, 32, 1, 4), put(r, 36, 7, 4);
    } else if (number % 100 == 99) {
        put(r, 0, 1, 4), put(r, 4, 1, 1), put(r, 8, 4096, 8), put(r, 16, from, 8), put(r, 24, to, 8);
        put(r, 32, 0, 4), put(r, 36, 1, 4), put(r, 40, 9, 4), put(r, 44, number + 1, 4);
    } else {
        put(r, 0, 10, 4), put(r, 16, from, 8), put(r, 24, to, 8), put(r, 40, 0, 4), put(r, 44, 1, 4);
        put(r, 48, 7 + number % 2, 4), put(r, 92, number + 1, 4), put(r, 104, (uintptr_t)names[number % 100], 8);
        put(r, 144, per_graph ? number % per_graph + 1 : 0, 8);
    }
    emitted++;
}

static void *launch(void *nothing) {
    int64_t rate = setting("STAND_IN_RATE", 200000), total = setting("STAND_IN_TOTAL", INT64_MAX), begun = now(), number = 0;
    while (running) {
        int64_t due = (now() - begun) * rate / 1000000000;
        pthread_mutex_lock(&lock);
        for (; number < due && number < total; number++) emit(number, begun + number * 1000000000 / rate);
        pthread_mutex_unlock(&lock);
        struct timespec pause = {0, 500000};
        nanosleep(&pause, NULL);
    }
    return nothing;
}

static void hand_back(int64_t held) {
    while (1) {
        pthread_mutex_lock(&lock);
        int some = first != last && monotonic() - queue[first % 4096].since >= held;
        Buffer buffer = some ? queue[first++ % 4096] : current;
        Completed call = completed;
        pthread_mutex_unlock(&lock);
        if (!some) return;
        call(NULL, 0, buffer.bytes, buffer.size, buffer.used);
    }
}

static void *hand(void *nothing) {
    while (running) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        hand_back(setting("STAND_IN_HOLD_MS", 0) * 1000000);
    }
    return nothing;
}

int cuptiGetVersion(uint32_t *version) { *version = setting("STAND_IN_VERSION", 130000); return 0; }
int cuptiGetTimestamp(uint64_t *time) { *time = now(); return 0; }
int cuptiActivityRegisterCallbacks(Wanted w, Completed c) { pthread_mutex_lock(&lock); wanted = w, completed = c; pthread_mutex_unlock(&lock); return 0; }

int cuptiActivityEnable(int kind) {
    int refused, code;
    const char *refuses = getenv("STAND_IN_REFUSES");
    if (refuses && sscanf(refuses, "%d=%d", &refused, &code) == 2 && refused == kind) return code;
    enabled[kind] = 1;
    if (kind == 10 && !running) {
        running = 1;
        for (int at = 0; at < 100; at++) snprintf(names[at], sizeof names[at], at ? "kernel %d" : "_ZN7cutlass6kernelEi", at);
        pthread_create(&handing, NULL, hand, NULL);
        pthread_create(&launching, NULL, launch, NULL);
    }
    return 0;
}
int cuptiActivityDisable(int kind) {
    enabled[kind] = 0;
    if (kind == 10 && running) {
        running = 0;
        pthread_join(launching, NULL);
        pthread_join(handing, NULL);
    }
    return 0;
}
int cuptiActivityFlushAll(uint32_t forced) {
    pthread_mutex_lock(&lock);
    hand_over();
    pthread_mutex_unlock(&lock);
    if (forced || !setting("STAND_IN_HOLD_MS", 0)) hand_back(0);
    return 0;
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + record_size() : buffer;
    if (next + record_size() > buffer + valid) return 12;
    *record = next;
    return 0;
}
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    *dropped = unserved - reported;
    reported = unserved;
    return 0;
}

/* For the test: what was handed to buffers, what found none; and another client takes the callbacks. */
int64_t stand_in_emitted(void) { return emitted; }
int64_t stand_in_unserved(void) { return unserved; }
static void other_wanted(uint8_t **b, size_t *s, size_t *m) { *m = 0, *s = 1 << 16, *b = malloc(1 << 16); }
static void other_completed(void *c, uint32_t s, uint8_t *b, size_t n, size_t v) { (void)c, (void)s, (void)n, (void)v; free(b); }
void stand_in_steal(void) { cuptiActivityRegisterCallbacks(other_wanted, other_completed); }
