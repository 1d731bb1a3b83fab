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
#include "tap_cupti.h"
#include "tap_names.h"
#include "tap_rows.h"
#include "tap_watch.h"

enum { NO_RING = -3, NO_THREAD = -4, STARTED = -5 };                             /* beside those of tap_cupti.h */
enum { FOR_PROFILER = 1, ON_DEMAND = 2 };                                       /* why it may be held */
enum { BUFFER = 1 << 20, MOST_BUFFERS = 96, BATCH = 4096, ZEROS = 100 };
enum { TICK_NS = 100000000, SECOND_NS = 1000000000 };
static const int64_t LONGEST_BURST_NS = 60000000000ll;

static Ring ring;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER, pooling = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t controlling = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *pool[MOST_BUFFERS], *own[MOST_BUFFERS];
static int pooled, made;
static pthread_t flusher;
static volatile int on, held;
/* Level of graphs: as asked at the start, as it is now, and whether single kernels are out of the question. */
static int base_nodes, nodes, no_nodes;
static int64_t records, lost, cost, zeros, unserved, asked, handed, dropped_by_cupti, clock_offset;
static const char *message = "";

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- records ---- */

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
        k.work.name = name_of(&ring, text);
        add(KERNELS, &k);
        return;
    }
    case MEMCPY: case MEMSET: {
        int table = u32(r, 0) == MEMCPY ? MEMCPYS : MEMSETS;
        struct copy c = {{0, 0, u32(r, 32), u32(r, 40), -1, u32(r, 44)}, u64(r, 8), u64(r, 64), u32(r, 36)};
        if (!timed(&c.work, u64(r, 16), u64(r, 24))) { lose(table, 1); return; }
        c.work.name = name_of(&ring, table == MEMCPYS ? copy_name(r[4]) : "Memset");
        add(table, &c);
        return;
    }
    case GRAPH: {
        struct graph g = {{0, 0, u32(r, 24), u32(r, 36), -1, u32(r, 4)}, u32(r, 28), u32(r, 32)};
        if (!timed(&g.work, u64(r, 8), u64(r, 16))) { lose(GRAPHS, 1); return; }
        g.work.name = name_of(&ring, "CUDA graph");
        add(GRAPHS, &g);
        return;
    }
    }
}

static void wanted(uint8_t **buffer, size_t *size, size_t *most) {
    *most = 0, *size = BUFFER;
    pthread_mutex_lock(&pooling);
    *buffer = NULL;
    asked++;
    if (pooled) *buffer = pool[--pooled];
    else if (made < MOST_BUFFERS && (*buffer = aligned_alloc(64, BUFFER))) own[made++] = *buffer;
    if (!*buffer) *size = 0, unserved++;
    pthread_mutex_unlock(&pooling);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    int64_t begun = now(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_lock(&writing);
    handed++;
    if (ring.words) {
        uint8_t *record = NULL;
        size_t dropped = 0;
        while (valid && cupti.next(buffer, valid, &record) == 0) take(record);
        for (int table = 0; table < 4; table++) send_batch(&batches[table]);
        if (cupti.dropped && cupti.dropped(NULL, 0, &dropped) == 0 && dropped) {
            dropped_by_cupti += dropped;
            lose(KERNELS, dropped);
        }
        cost += now(CLOCK_THREAD_CPUTIME_ID) - begun;
        publish();
    }
    pthread_mutex_unlock(&writing);
    /* Back into the pool, never freed: CUPTI may still own buffers when the process ends. One that another client gave
     * before we took the callbacks back is of another size, and not ours. */
    pthread_mutex_lock(&pooling);
    for (int at = 0; at < made; at++)
        if (own[at] == buffer) pool[pooled++] = buffer;
    pthread_mutex_unlock(&pooling);
}

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

/* What it does now, in a row of `probes`. */
static void tell(void) {
    const char *says = watch.says ? watch.says : held & ON_DEMAND ? "stopped on demand" : message;
    int state = !on ? (*message ? FAILED : OFF) : held & ON_DEMAND ? OFF : held ? PAUSED : watch.says ? FAILED : RUNNING;
    if (held & FOR_PROFILER) says = "paused for torch.profiler";
    else if (!held && !*says && nodes && !base_nodes) says = "every kernel of CUDA graphs, for a while";
    pthread_mutex_lock(&writing);
    if (ring.words) {
        int32_t name = name_of(&ring, "kernel tap"), said = *says ? name_of(&ring, says) : -1;
        struct probe p = {now(CLOCK_MONOTONIC), name, state, records, lost, cost, said};
        ring_put(&ring, PROBES, 1, &p, sizeof p);
        publish();
    }
    pthread_mutex_unlock(&writing);
}

/* ---- what is recorded: the kinds, the level of graphs, or nothing for a while. `controlling` is held ---- */

static const int KINDS[] = {KERNEL, MEMCPY, MEMSET};

static int enable_all(void) {
    int failed = cupti.registering((void *)wanted, (void *)completed);
    for (int at = 0; !failed && at < 3; at++) failed = cupti.enable(KINDS[at]);
    if (!failed && !nodes) cupti.enable(GRAPH);                                  /* not in every CUPTI */
    watch_reset();
    return failed;
}

static void disable_all(void) {
    for (int at = 0; at < 3; at++) cupti.disable(KINDS[at]);
    if (!nodes) cupti.disable(GRAPH);
}

/* Record nothing for one more reason, or for one less. */
static int hold(int reasons) {
    int failed = 0, before = held;
    if (!before && reasons) cupti.flush(0), disable_all(), watch_reset();
    if (before && !reasons && (failed = enable_all())) message = "CUPTI did not let it resume";
    else if (before && !reasons) message = "";
    held = reasons;
    if (before != reasons) tell();
    return failed;
}

static int set_nodes(int wanted_nodes) {
    if (wanted_nodes == nodes) return 0;
    static const char *const cannot = "CUPTI does not change the level of CUDA graphs while it runs";
    int failed = held ? 0 : wanted_nodes ? cupti.disable(GRAPH) : cupti.enable(GRAPH);
    if (!failed) nodes = wanted_nodes;
    if (!failed || message != cannot) {
        if (failed) message = cannot, no_nodes = 1;
        tell();
    }
    return failed;
}

/* What the recorder wants, as it stands in the head of the ring: node level until some time, or nothing at all. */
static void obey(int64_t time) {
    int64_t until = (int64_t)atomic_load_explicit(&ring.words[RING_NODES_UNTIL], memory_order_relaxed) - time;
    int off = atomic_load_explicit(&ring.words[RING_OFF], memory_order_relaxed) == 1;
    int burst = until > 0 && until <= LONGEST_BURST_NS;
    hold(off ? held | ON_DEMAND : held & ~ON_DEMAND);
    set_nodes(!no_nodes && (base_nodes || burst));
}

/* ---- our own thread ---- */

static void look_for_trouble(int64_t time, int64_t patience, int64_t *zeros_before, int64_t *unserved_before) {
    if (nodes && zeros - *zeros_before > ZEROS) {
        /* Known of long node-level captures: from some record on no time is valid any more. */
        message = "time stamps became invalid: whole graphs from here on", no_nodes = 1;
        set_nodes(0);
    } else if (unserved > *unserved_before) {
        message = "buffers ran out: records are missing";
    }
    *zeros_before = zeros, *unserved_before = unserved;
    struct watched counts = {records, zeros, asked, unserved, handed, dropped_by_cupti,
                             atomic_load_explicit(&ring.words[RING_STEPS], memory_order_relaxed),
                             atomic_load_explicit(&ring.words[RING_BUSY], memory_order_relaxed)};
    const char *said = watch.says;
    if (watch_look(counts, time, patience) != said) tell();
}

/* The next time to look: ten times a second, and when a burst ends. */
static void doze(void) {
    int64_t until = (int64_t)atomic_load_explicit(&ring.words[RING_NODES_UNTIL], memory_order_relaxed) - now(CLOCK_MONOTONIC);
    struct timespec pause = {0, until > 0 && until < TICK_NS ? until : TICK_NS};
    nanosleep(&pause, NULL);
}

static void *flushing(void *nothing) {
    const char *setting = getenv("TLLM_INSPECTOR_WATCH_MS");
    int64_t told = 0, zeros_before = 0, unserved_before = 0;
    int64_t patience = setting && atoll(setting) > 0 ? atoll(setting) * 1000000 : WATCH_NS_DEFAULT;
    while (on) {
        doze();
        /* Who pauses, resumes or ends the tap right now has the word; tap_stop waits for this very thread. */
        if (!on || pthread_mutex_trylock(&controlling)) continue;
        int64_t time = now(CLOCK_MONOTONIC);
        obey(time);
        if (!held) {
            pthread_mutex_lock(&writing);
            pair_clocks();
            pthread_mutex_unlock(&writing);
            cupti.flush(0);
            look_for_trouble(time, patience, &zeros_before, &unserved_before);
        }
        if (time - told >= SECOND_NS) told = time, tell();
        pthread_mutex_unlock(&controlling);
    }
    return nothing;
}

/* As at the very beginning: of names that were sent and rows that were counted nothing is in a new ring. */
static void forget(void) {
    names = 0, records = lost = cost = zeros = unserved = asked = handed = dropped_by_cupti = 0;
    memset(known, 0, sizeof known);
    for (int table = 0; table < 4; table++) batches[table].rows = 0, batches[table].used = 0;
    watch_reset();
}

/* A child has the parent's ring and none of its threads: it leaves the one alone and may start anew. */
static void forked(void) {
    ring.words = NULL, on = 0, held = 0;
    forget();
    pthread_mutex_init(&writing, NULL), pthread_mutex_init(&pooling, NULL), pthread_mutex_init(&controlling, NULL);
}

/* ---- control: one caller at a time ---- */

static void at_exit(void);

/* Begin to record into the ring file `path`. `how`: 1 for each kernel of a CUDA graph, not the graph as a whole; 2 when
 * the process may have launched work before. 0; below 0 an error of ours (see the enum); above 0 a CUptiResult. */
int tap_start(const char *cupti_path, const char *path, int how, uint64_t capacity) {
    pthread_mutex_lock(&controlling);
    int result = 0;
    if (on) { result = STARTED; goto out; }
    if ((result = cupti_find(cupti_path, how & 2))) goto out;
    if (!ring.words) {
        forget();
        if (ring_open(&ring, path, "kernels", LAYOUTS, capacity)) { result = NO_RING; goto out; }
    }
    if (!names) send_name(&ring, "kernels");                                            /* the name of the process */
    base_nodes = nodes = how & 1, no_nodes = 0, held = 0, message = "";
    pair_clocks();
    if ((result = enable_all())) {
        message = "CUPTI refused";
        tell();
        goto out;
    }
    on = 1;
    tell();
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
    if (on) hold(held | FOR_PROFILER);
    pthread_mutex_unlock(&controlling);
}

int tap_resume(void) {
    pthread_mutex_lock(&controlling);
    int failed = on ? hold(held & ~FOR_PROFILER) : 0;
    pthread_mutex_unlock(&controlling);
    return failed;
}

/* Every kernel of CUDA graphs (1), or graphs as a whole (0), from here on. */
int tap_level(int node_level) {
    pthread_mutex_lock(&controlling);
    base_nodes = node_level, no_nodes = 0;
    int failed = on ? set_nodes(node_level) : 0;
    pthread_mutex_unlock(&controlling);
    return failed;
}

/* End. No cuptiFinalize: it breaks CUPTI for everybody else in the process. */
void tap_stop(void) {
    pthread_mutex_lock(&controlling);
    if (on) {
        on = 0;
        pthread_join(flusher, NULL);
        if (!held) cupti.flush(0), disable_all(), cupti.flush(1);
        held = 0, message = "";
        watch_reset();
        tell();
        /* CUPTI may hand buffers back later still: they find no ring. */
        pthread_mutex_lock(&writing);
        ring_close(&ring);
        pthread_mutex_unlock(&writing);
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
