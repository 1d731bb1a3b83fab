/* Kernel records of this process, from the CUPTI that it already has, into a ring: no Python, no CUDA headers.
 *
 * One library, three ways in: tap_start() for who loads it, InitializeInjection() for CUDA_INJECTION64_PATH, and either
 * of them for who attaches. It uses the old activity interface and never subscribes, since a subscriber keeps a later
 * torch.profiler from ever seeing a GPU. Records are read by offset: the prefix that is used is the same in every
 * CUPTI from 12.0 to 13.5. Tried against a stand-in for CUPTI only; it has not met a GPU.
 *
 * CUPTI asks for buffers on launching threads, so that is a pop from a pool. It hands them back on a thread of its own,
 * and on ours, which flushes ten times a second, since a buffer that is not full would otherwise stay. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "ring.h"

enum { KERNEL = 10, MEMCPY = 1, MEMSET = 2, GRAPH = 51 };                       /* CUpti_ActivityKind */
enum { KERNELS, MEMCPYS, MEMSETS, GRAPHS, PROBES };                             /* tables of the ring, in this order */
enum { OFF, RUNNING, SAMPLING, PAUSED, FAILED };                                /* probes.state */
enum { NO_CUPTI = -1, TOO_OLD = -2, NO_RING = -3, NO_THREAD = -4, STARTED = -5 };
enum { OLDEST = 120000, BUFFER = 1 << 20, MOST_BUFFERS = 96, BATCH = 4096, SLOTS = 1 << 16, ZEROS = 100 };

#define WORK "[\"start\",\"q\"],[\"end\",\"q\"],[\"device\",\"i\"],[\"stream\",\"q\"],[\"name\",\"i\"],[\"correlation\",\"q\"]"
#define NODE "[\"graph_node\",\"q\"],[\"context\",\"i\"]"
static const char *const LAYOUTS =
    "{\"kernels\":[" WORK "," NODE "],\"memcpys\":[" WORK ",[\"bytes\",\"q\"]," NODE "],\"memsets\":[" WORK
    ",[\"bytes\",\"q\"]," NODE "],\"graphs\":[" WORK ",[\"graph\",\"q\"],[\"context\",\"i\"]],\"probes\":[[\"time\",\"q\"],"
    "[\"name\",\"i\"],[\"state\",\"b\"],[\"records\",\"q\"],[\"lost\",\"q\"],[\"cost\",\"q\"],[\"message\",\"i\"]]}";

struct work { int64_t start, end; int32_t device; int64_t stream; int32_t name; int64_t correlation; } __attribute__((packed));
struct kernel { struct work work; int64_t node; int32_t context; } __attribute__((packed));
struct copy { struct work work; int64_t bytes, node; int32_t context; } __attribute__((packed));
struct graph { struct work work; int64_t graph; int32_t context; } __attribute__((packed));
struct probe { int64_t time; int32_t name; int8_t state; int64_t records, lost, cost; int32_t message; } __attribute__((packed));

static struct {
    int (*next)(uint8_t *, size_t, uint8_t **), (*flush)(uint32_t), (*enable)(int), (*disable)(int);
    int (*dropped)(void *, uint32_t, size_t *), (*timestamp)(uint64_t *), (*registering)(void *, void *);
} cupti;
static Ring ring;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER, pooling = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t controlling = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *pool[MOST_BUFFERS];
static int pooled, made;
static pthread_t flusher;
static volatile int on, paused, nodes;
static int64_t records, lost, cost, zeros, unserved, clock_offset;
static const char *known[SLOTS];
static int32_t ids[SLOTS], names;
static const char *message = "";

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- names: a text is sent once, and stands for its address from then on ---- */

static int32_t send_name(const char *text) {
    size_t length = strnlen(text, 65536);
    if (names == INT32_MAX || !ring_put(&ring, RING_NAMES, names, text, length)) return -1;
    return names++;
}

static int32_t name_of(const char *text) {
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
    int32_t id = send_name(plain && !failed ? plain : text);
    free(plain);
    if (id >= 0) known[slot] = text, ids[slot] = id;
    return id;
}

static const char *copy_name(uint8_t kind) {
    static const char *const kinds[] = {"Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA",
                                        "Memcpy AtoD", "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
    return kinds[kind < sizeof kinds / sizeof *kinds ? kind : 0];
}

/* ---- records ---- */

static uint32_t u32(const uint8_t *record, int at) { uint32_t v; memcpy(&v, record + at, 4); return v; }
static uint64_t u64(const uint8_t *record, int at) { uint64_t v; memcpy(&v, record + at, 8); return v; }

static void publish(void) {
    atomic_store_explicit(&ring.words[RING_RECORDS], records, memory_order_relaxed);
    atomic_store_explicit(&ring.words[RING_LOST], lost, memory_order_relaxed);
    atomic_store_explicit(&ring.words[RING_COST], cost, memory_order_relaxed);
}

static void lose(int table, int64_t rows) {
    lost += rows;
    atomic_fetch_add_explicit(&ring.words[RING_LOST_BY_TABLE + table], rows, memory_order_relaxed);
}

static struct batch { int table, rows; uint32_t width, used; uint8_t bytes[BATCH * sizeof(struct copy)]; } batches[4] = {
    {KERNELS, 0, sizeof(struct kernel), 0, {0}}, {MEMCPYS, 0, sizeof(struct copy), 0, {0}},
    {MEMSETS, 0, sizeof(struct copy), 0, {0}}, {GRAPHS, 0, sizeof(struct graph), 0, {0}}};

static void send_batch(struct batch *batch) {
    if (batch->rows && !ring_put(&ring, batch->table, batch->rows, batch->bytes, batch->used)) lose(batch->table, batch->rows);
    batch->rows = 0, batch->used = 0;
}

static void add(int table, const void *row) {
    struct batch *batch = &batches[table];
    memcpy(batch->bytes + batch->used, row, batch->width);
    batch->used += batch->width;
    records++;
    if (++batch->rows == BATCH) send_batch(batch);
}

/* The times of a record on CLOCK_MONOTONIC; 0 when CUPTI could not tell them, which is counted and not shown. */
static int timed(struct work *work, uint64_t start, uint64_t end) {
    if (!start || !end || end < start) {
        zeros++;
        return 0;
    }
    work->start = (int64_t)start + clock_offset;
    work->end = (int64_t)end + clock_offset;
    return 1;
}

static void take(const uint8_t *r) {
    switch (u32(r, 0)) {
    case KERNEL: case 3: {
        struct kernel k = {{0, 0, u32(r, 40), u32(r, 48), -1, u32(r, 92)}, u64(r, 144), u32(r, 44)};
        const char *text;
        memcpy(&text, r + 104, sizeof text);
        if (!timed(&k.work, u64(r, 16), u64(r, 24))) { lose(KERNELS, 1); return; }
        k.work.name = name_of(text);
        add(KERNELS, &k);
        return;
    }
    case MEMCPY: case MEMSET: {
        int table = u32(r, 0) == MEMCPY ? MEMCPYS : MEMSETS;
        struct copy c = {{0, 0, u32(r, 32), u32(r, 40), -1, u32(r, 44)}, u64(r, 8), u64(r, 64), u32(r, 36)};
        if (!timed(&c.work, u64(r, 16), u64(r, 24))) { lose(table, 1); return; }
        c.work.name = name_of(table == MEMCPYS ? copy_name(r[4]) : "Memset");
        add(table, &c);
        return;
    }
    case GRAPH: {
        struct graph g = {{0, 0, u32(r, 24), u32(r, 36), -1, u32(r, 4)}, u32(r, 28), u32(r, 32)};
        if (!timed(&g.work, u64(r, 8), u64(r, 16))) { lose(GRAPHS, 1); return; }
        g.work.name = name_of("CUDA graph");
        add(GRAPHS, &g);
        return;
    }
    }
}

static void wanted(uint8_t **buffer, size_t *size, size_t *most) {
    *most = 0, *size = BUFFER;
    pthread_mutex_lock(&pooling);
    *buffer = NULL;
    if (pooled) *buffer = pool[--pooled];
    else if (made < MOST_BUFFERS && (*buffer = aligned_alloc(64, BUFFER))) made++;
    if (!*buffer) *size = 0, unserved++;
    pthread_mutex_unlock(&pooling);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    int64_t begun = now(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_lock(&writing);
    if (ring.words) {
        uint8_t *record = NULL;
        size_t dropped = 0;
        while (valid && cupti.next(buffer, valid, &record) == 0) take(record);
        for (int table = 0; table < 4; table++) send_batch(&batches[table]);
        if (cupti.dropped && cupti.dropped(NULL, 0, &dropped) == 0 && dropped) lose(KERNELS, dropped);
        cost += now(CLOCK_THREAD_CPUTIME_ID) - begun;
        publish();
    }
    pthread_mutex_unlock(&writing);
    /* Back into the pool, never freed: CUPTI may still own buffers when the process ends. */
    pthread_mutex_lock(&pooling);
    if (buffer && pooled < MOST_BUFFERS) pool[pooled++] = buffer;
    pthread_mutex_unlock(&pooling);
}

/* ---- our own thread ---- */

/* CUPTI stamps by the wall clock, which can be set; ours cannot. The best of some readings pairs the two. */
static void pair_clocks(void) {
    int64_t best = INT64_MAX;
    for (int at = 0; at < 5; at++) {
        uint64_t stamp = 0;
        int64_t before = now(CLOCK_MONOTONIC);
        if (cupti.timestamp(&stamp)) return;
        int64_t after = now(CLOCK_MONOTONIC);
        if (after - before < best) {
            best = after - before;
            clock_offset = (before + after) / 2 - (int64_t)stamp;
        }
    }
}

static void tell(int state) {
    pthread_mutex_lock(&writing);
    if (ring.words) {
        struct probe p = {now(CLOCK_MONOTONIC), name_of("kernel tap"), state, records, lost, cost, *message ? name_of(message) : -1};
        ring_put(&ring, PROBES, 1, &p, sizeof p);
        publish();
    }
    pthread_mutex_unlock(&writing);
}

static void *flushing(void *nothing) {
    int64_t told = 0, zeros_before = 0, unserved_before = 0;
    while (on) {
        struct timespec pause = {0, 100000000};
        nanosleep(&pause, NULL);
        if (!on || paused) continue;
        pthread_mutex_lock(&writing);
        pair_clocks();
        pthread_mutex_unlock(&writing);
        cupti.flush(0);
        if (nodes && zeros - zeros_before > ZEROS) {
            /* Known of long node-level captures: from some record on no time is valid any more. */
            cupti.enable(GRAPH);
            nodes = 0;
            message = "time stamps became invalid: whole graphs from here on";
        } else if (unserved > unserved_before) {
            message = "buffers ran out: records are missing";
        }
        zeros_before = zeros, unserved_before = unserved;
        if (now(CLOCK_MONOTONIC) - told >= 1000000000) told = now(CLOCK_MONOTONIC), tell(RUNNING);
    }
    return nothing;
}

/* A child has the parent's ring and none of its threads: it leaves the one alone and may start anew. */
static void forked(void) {
    ring.words = NULL, on = 0, names = 0, records = lost = cost = zeros = unserved = 0;
    memset(known, 0, sizeof known);
    for (int table = 0; table < 4; table++) batches[table].rows = 0, batches[table].used = 0;
    pthread_mutex_init(&writing, NULL), pthread_mutex_init(&pooling, NULL), pthread_mutex_init(&controlling, NULL);
}

/* ---- control: one caller at a time ---- */

static const int KINDS[] = {KERNEL, MEMCPY, MEMSET};

static int enable_all(void) {
    int failed = cupti.registering((void *)wanted, (void *)completed);
    for (int at = 0; !failed && at < 3; at++) failed = cupti.enable(KINDS[at]);
    if (!failed && !nodes) cupti.enable(GRAPH);                                  /* not in every CUPTI */
    return failed;
}

static void disable_all(void) {
    for (int at = 0; at < 3; at++) cupti.disable(KINDS[at]);
    if (!nodes) cupti.disable(GRAPH);
}

static void *find_cupti(const char *path) {
    const char *const candidates[] = {path, "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    /* A second libcupti would be a second client: the one that is there comes first. */
    for (int loaded = 1; loaded >= 0; loaded--)
        for (int at = 0; at < 4; at++) {
            void *found = candidates[at] && *candidates[at] ? dlopen(candidates[at], RTLD_NOW | (loaded ? RTLD_NOLOAD : 0)) : NULL;
            if (found) return found;
        }
    return NULL;
}

static void at_exit(void);

/* Begin to record into the ring file `path`. `node_level`: each kernel of a CUDA graph, not the graph as a whole.
 * 0; below 0 an error of ours (see the enum); above 0 a CUptiResult. */
int tap_start(const char *cupti_path, const char *path, int node_level, uint64_t capacity) {
    pthread_mutex_lock(&controlling);
    int result = 0;
    void *library = on ? NULL : find_cupti(cupti_path);
    int (*version)(uint32_t *) = NULL;
    uint32_t number = 0;
    if (on) { result = STARTED; goto out; }
    if (!library) { result = NO_CUPTI; goto out; }
    *(void **)&version = dlsym(library, "cuptiGetVersion");
    if (!version || version(&number) || number < OLDEST) { result = TOO_OLD; goto out; }
    *(void **)&cupti.next = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&cupti.flush = dlsym(library, "cuptiActivityFlushAll");
    *(void **)&cupti.enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&cupti.disable = dlsym(library, "cuptiActivityDisable");
    *(void **)&cupti.dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
    *(void **)&cupti.timestamp = dlsym(library, "cuptiGetTimestamp");
    *(void **)&cupti.registering = dlsym(library, "cuptiActivityRegisterCallbacks");
    if (!cupti.next || !cupti.flush || !cupti.enable || !cupti.disable || !cupti.timestamp || !cupti.registering) {
        result = TOO_OLD;
        goto out;
    }
    if (!ring.words && ring_open(&ring, path, "kernels", LAYOUTS, capacity)) { result = NO_RING; goto out; }
    if (!names) send_name("kernels");                                            /* the name of the process */
    nodes = node_level, paused = 0, message = "";
    pair_clocks();
    if ((result = enable_all())) {
        message = "CUPTI refused";
        tell(FAILED);
        goto out;
    }
    on = 1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);                                 /* signals are for the workload's threads */
    if (pthread_create(&flusher, NULL, flushing, NULL)) on = 0, result = NO_THREAD;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    static int registered;
    if (!result && !registered++) pthread_atfork(NULL, NULL, forked), atexit(at_exit);
out:
    pthread_mutex_unlock(&controlling);
    return result;
}

/* Stand aside for another client of CUPTI (torch.profiler), and come back: it has taken the callbacks meanwhile. */
void tap_pause(void) {
    pthread_mutex_lock(&controlling);
    if (on && !paused) {
        paused = 1;
        cupti.flush(0);
        disable_all();
        message = "paused for torch.profiler";
        tell(PAUSED);
    }
    pthread_mutex_unlock(&controlling);
}

int tap_resume(void) {
    pthread_mutex_lock(&controlling);
    int failed = 0;
    if (on && paused) {
        failed = enable_all();
        paused = 0;
        message = failed ? "CUPTI did not let it resume" : "";
        tell(failed ? FAILED : RUNNING);
    }
    pthread_mutex_unlock(&controlling);
    return failed;
}

/* Every kernel of CUDA graphs (1), or graphs as a whole (0), from here on. */
int tap_level(int node_level) {
    pthread_mutex_lock(&controlling);
    int failed = on && !paused && node_level != nodes ? (node_level ? cupti.disable(GRAPH) : cupti.enable(GRAPH)) : 0;
    if (!failed) nodes = node_level;
    pthread_mutex_unlock(&controlling);
    return failed;
}

/* End. No cuptiFinalize: it breaks CUPTI for everybody else in the process. */
void tap_stop(void) {
    pthread_mutex_lock(&controlling);
    if (on) {
        on = 0;
        pthread_join(flusher, NULL);
        if (!paused) cupti.flush(0), disable_all(), cupti.flush(1);
        tell(OFF);
        if (ring.words) atomic_store(&ring.words[RING_CLOSED], 1);
    }
    pthread_mutex_unlock(&controlling);
}

static void at_exit(void) { tap_stop(); }

/* Records, lost, ns of CPU time, records without a time, requests for a buffer that found none. */
int64_t tap_count(int which) {
    int64_t counts[] = {records, lost, cost, zeros, unserved};
    return which >= 0 && which < 5 ? counts[which] : -1;
}

/* What the CUDA driver calls in a process whose CUDA_INJECTION64_PATH names this library. */
int InitializeInjection(void) {
    const char *folder = getenv("TLLM_INSPECTOR_RUN");
    if (!folder || !*folder) return 1;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/kernels-%ld.ring", folder, (long)getpid());
    const char *level = getenv("TLLM_INSPECTOR_GRAPHS");
    if (length > 0 && length < (int)sizeof path)
        tap_start(getenv("TLLM_INSPECTOR_CUPTI"), path, level && !strcmp(level, "node"), 64 << 20);
    return 1;
}
