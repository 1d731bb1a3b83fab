/* Counters of one GPU after the other, sampled by its own hardware (CUPTI PM sampling), into a ring for each device.
 *
 * It locks the clocks of the GPU while it runs, so it is for who asks for it, in a process of its own. The hardware
 * fills a buffer; a thread for each device decodes it ten times a second. A sample is the mean since the one before.
 * Tried against a stand-in for CUPTI only; it has not met a GPU. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "pm_cupti.h"
#include "ring.h"

enum { NO_RING = -4, NO_THREAD = -5, NO_METRICS = -6, NO_DEVICE = -7, NO_MEMORY = -8 };
enum { MOST_DEVICES = 64, SERIES = 5, SAMPLES = 1024, BATCH = 512, BUFFER = 64 << 20, EVERY_NS = 100000000 };
enum { COUNTERS, PROBES };
enum { OFF, RUNNING, SAMPLING, PAUSED, FAILED };

static const char *const LAYOUTS =
    "{\"counters\":[[\"time\",\"q\"],[\"series\",\"i\"],[\"unit\",\"i\"],[\"device\",\"i\"],[\"value\",\"d\"]],"
    "\"probes\":[[\"time\",\"q\"],[\"name\",\"i\"],[\"state\",\"b\"],[\"records\",\"q\"],[\"lost\",\"q\"],[\"cost\",\"q\"],"
    "[\"message\",\"i\"]]}";
struct row { int64_t time; int32_t series, unit, device; double value; } __attribute__((packed));
struct probe { int64_t time; int32_t name; int8_t state; int64_t records, lost, cost; int32_t message; } __attribute__((packed));

/* What is wanted, most wanted first, and the names by which one chip or the other has it. The last is for chips that do
 * not count reads and writes apart. */
#define PEAK ".avg.pct_of_peak_sustained_elapsed"
static const struct { const char *series, *unit, *names[4]; } WANTED[SERIES] = {
    {"DRAM read throughput (PM sampling)", "% of peak",
     {"dram__read_throughput" PEAK, "dram__bytes_read" PEAK, "dramc__read_throughput" PEAK}},
    {"DRAM write throughput (PM sampling)", "% of peak",
     {"dram__write_throughput" PEAK, "dram__bytes_write" PEAK, "dramc__write_throughput" PEAK}},
    {"SM active (PM sampling)", "%", {"sm__cycles_active" PEAK}},
    {"tensor cores active (PM sampling)", "%",
     {"sm__pipe_tensor_cycles_active" PEAK, "sm__inst_executed_pipe_tensor" PEAK, "sm__pipe_tensor_op_hmma_cycles_active" PEAK}},
    {"DRAM bandwidth (PM sampling)", "% of peak", {"dram__throughput" PEAK, "dram__bytes" PEAK}},
};

static struct device {
    int number, series[SERIES], chosen[SERIES];
    size_t count;
    const char *names[SERIES];
    Ring ring;
    void *host, *sampler;
    uint8_t *available, *config, *image;
    size_t config_size, image_size;
    uint64_t interval, last_end;
    int64_t offset, accuracy, records, lost, cost, started;
    int is_first, texts, overflowed;
    struct row rows[BATCH];
    int used;
    pthread_t thread;
    volatile int on;
    const char *message;
    int said;
} devices[MOST_DEVICES];

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- what is sampled ---- */

static int open_host(struct device *d, const char *chip) {
    struct pm_host host = {sizeof host, NULL, PM_SAMPLING, chip, d->available, NULL};
    int failed = pm.host(&host);
    d->host = host.host;
    return failed;
}

static void close_host(struct device *d) {
    struct pm_host_end end = {sizeof end, NULL, d->host};
    if (d->host) pm.host_end(&end);
    d->host = NULL;
}

/* Whether this chip has a metric of that name; it is in the configuration then. */
static int add(struct device *d, const char *name) {
    struct pm_metrics metrics = {sizeof metrics, NULL, d->host, &name, 1};
    return !pm.add(&metrics);
}

/* Choose at most `most` metrics into a new configuration, and see in how many passes they are had. */
static int configure(struct device *d, const char *chip, size_t most, size_t *passes) {
    int failed = open_host(d, chip), apart = 0;
    d->count = 0;
    for (int at = 0; !failed && at < SERIES && d->count < most; at++) {
        if (at == SERIES - 1 && apart == 2) break;
        for (int name = 0; name < 4 && WANTED[at].names[name]; name++)
            if (add(d, WANTED[at].names[name])) {
                d->names[d->count] = WANTED[at].names[name], d->chosen[d->count++] = at;
                apart += at < 2;
                break;
            }
    }
    if (!failed && !d->count) return NO_METRICS;
    struct pm_config_size size = {sizeof size, NULL, d->host, 0};
    if (failed || (failed = pm.config_size(&size))) return failed;
    free(d->config);
    if (!(d->config = calloc(1, size.image_size + 1))) return NO_MEMORY;
    d->config_size = size.image_size;
    struct pm_config config = {sizeof config, NULL, d->host, d->config_size, d->config};
    if ((failed = pm.config(&config))) return failed;
    struct pm_passes needed = {sizeof needed, NULL, d->config_size, d->config, 0};
    failed = pm.passes(&needed);
    *passes = needed.passes;
    return failed;
}

/* All that one pass gives: sampling has no second one. */
static int choose(struct device *d, const char *chip) {
    size_t most = SERIES, passes = 0;
    while (1) {
        int failed = configure(d, chip, most, &passes);
        if (failed || passes <= 1) return failed;
        most = d->count - 1;
        if (!most) return NO_METRICS;
        close_host(d);
    }
}

static int available(struct device *d) {
    struct pm_available query = {sizeof query, NULL, d->number, 0, NULL};
    int failed = pm.available(&query);
    if (failed) return failed;
    if (!(query.image = d->available = calloc(1, query.image_size + 1))) return NO_MEMORY;
    return pm.available(&query);
}

static int set_up(struct device *d, const char *chip) {
    struct pm_enable enable = {sizeof enable, NULL, d->number, NULL};
    int failed = pm.enable(&enable);
    if (failed) return failed;
    d->sampler = enable.sampler;
    /* Of these two only the system's clock triggers: its cycles come near enough to a time. */
    int by_time = strncmp(chip, "TU", 2) && strcmp(chip, "GA100");
    uint64_t interval = by_time ? d->interval : d->interval * 14 / 10;
    struct pm_set set = {sizeof set, NULL, d->sampler, d->config_size, d->config, BUFFER, interval,
                         by_time ? BY_TIME : BY_SYSTEM_CLOCK, 0};
    if ((failed = pm.set(&set)) == PM_INVALID_PARAMETER) {
        set.size = SIZE_UP_TO(struct pm_set, trigger);
        failed = pm.set(&set);
    }
    if (failed) return failed;
    struct pm_data_size size = {SIZE_UP_TO(struct pm_data_size, image_size), NULL, d->sampler, d->names, d->count, SAMPLES, 0};
    if ((failed = pm.data_size(&size))) return failed;
    d->image_size = size.image_size;
    if (!(d->image = calloc(1, d->image_size + 1))) return NO_MEMORY;
    struct pm_data data = {sizeof data, NULL, d->sampler, d->image_size, d->image};
    return pm.data(&data);
}

/* ---- samples ---- */

static int32_t text(struct device *d, const char *words) {
    return ring_put(&d->ring, RING_NAMES, d->texts, words, strlen(words)) ? d->texts++ : -1;
}

static void send_rows(struct device *d) {
    if (d->used && !ring_put(&d->ring, COUNTERS, d->used, d->rows, d->used * sizeof *d->rows)) {
        d->lost += d->used;
        atomic_fetch_add(&d->ring.words[RING_LOST_BY_TABLE + COUNTERS], d->used);
    } else {
        d->records += d->used;
    }
    d->used = 0;
}

static void publish(struct device *d) {
    atomic_store(&d->ring.words[RING_RECORDS], d->records);
    atomic_store(&d->ring.words[RING_LOST], d->lost);
    atomic_store(&d->ring.words[RING_COST], d->cost);
}

static void tell(struct device *d, int state) {
    int32_t says = d->message ? text(d, d->message) : d->said;
    struct probe p = {now(CLOCK_MONOTONIC), 1, state, d->records, d->lost, d->cost, says};
    ring_put(&d->ring, PROBES, 1, &p, sizeof p);
    if (says >= 0) d->said = says, d->message = NULL;
    publish(d);
}

static void lose(struct device *d, int64_t samples) {
    d->lost += samples * d->count;
    atomic_fetch_add(&d->ring.words[RING_LOST_BY_TABLE + COUNTERS], samples * d->count);
}

static void take(struct device *d, size_t index) {
    double values[SERIES] = {0};
    struct pm_sample sample = {sizeof sample, NULL, d->sampler, d->image, d->image_size, index, 0, 0};
    struct pm_values evaluated = {sizeof evaluated, NULL, d->host, d->image, d->image_size, index, d->names, d->count, values};
    if (pm.sample(&sample) || pm.values(&evaluated)) { lose(d, 1); return; }
    if (sample.end <= sample.start) return;                                     /* the first ones may span nothing */
    if (d->is_first) {
        /* Its clock is the GPU's own: the first sample began when sampling did. */
        d->offset = d->started - (int64_t)sample.start, d->is_first = 0;
    } else if (sample.start > d->last_end + d->interval / 2) {
        lose(d, (sample.start - d->last_end + d->interval / 2) / d->interval);
    }
    d->last_end = sample.end;
    for (size_t at = 0; at < d->count; at++) {
        if (!isfinite(values[at])) { d->lost++; continue; }
        struct row row = {(int64_t)sample.end + d->offset, d->series[at], WANTED[d->chosen[at]].unit[1] ? 3 : 2, d->number, values[at]};
        d->rows[d->used++] = row;
        if (d->used == BATCH) send_rows(d);
    }
}

/* Take what the hardware has; 0, or why no more will come. */
static int decode(struct device *d) {
    struct pm_decode decoded = {SIZE_UP_TO(struct pm_decode, overflow), NULL, d->sampler, d->image, d->image_size, 0, 0};
    do {
        int failed = pm.decode(&decoded);
        if ((decoded.overflow || failed == PM_OUT_OF_MEMORY) && !d->overflowed++)
            d->message = "the hardware's buffer overflowed: samples are missing";
        if (failed) return failed;
        struct pm_info info = {sizeof info, NULL, d->image, d->image_size, 0, 0, 0};
        if ((failed = pm.info(&info))) return failed;
        for (size_t at = 0; at < info.completed && at < SAMPLES; at++) take(d, at);
        struct pm_data data = {sizeof data, NULL, d->sampler, d->image_size, d->image};
        if ((failed = pm.data(&data))) return failed;
    } while (decoded.why == DATA_FULL && d->on);
    send_rows(d);
    return 0;
}

static void *decoding(void *argument) {
    struct device *d = argument;
    int64_t told = 0;
    while (d->on) {
        struct timespec pause = {0, EVERY_NS};
        nanosleep(&pause, NULL);
        int64_t begun = now(CLOCK_THREAD_CPUTIME_ID);
        int failed = decode(d);
        d->cost += now(CLOCK_THREAD_CPUTIME_ID) - begun;
        if (failed) {
            if (!d->message) d->message = "CUPTI does not decode its samples any more";
            tell(d, FAILED);
            return NULL;
        }
        if (now(CLOCK_MONOTONIC) - told >= 1000000000) told = now(CLOCK_MONOTONIC), tell(d, RUNNING);
    }
    return NULL;
}

/* ---- control ---- */

static void let_go(struct device *d) {
    struct pm_sampler plain = {sizeof plain, NULL, d->sampler};
    if (d->sampler) pm.disable(&plain);
    close_host(d);
    free(d->available), free(d->config), free(d->image);
    memset(d, 0, sizeof *d);
}

static int begin(struct device *d, const char *ring_path) {
    char says[128];
    if (ring_open(&d->ring, ring_path, "pm sampling", LAYOUTS, RING_SMALL)) return NO_RING;
    /* Ids of texts: 0 the process, 1 the probe, 2 and 3 the units, then the series. */
    const char *const first[] = {"PM sampling", "PM sampling", "%", "% of peak"};
    for (int at = 0; at < 4; at++) text(d, first[at]);
    for (size_t at = 0; at < d->count; at++) d->series[at] = text(d, WANTED[d->chosen[at]].series);
    struct pm_sampler plain = {sizeof plain, NULL, d->sampler};
    int64_t before = now(CLOCK_MONOTONIC);
    int failed = pm.start(&plain);
    int64_t after = now(CLOCK_MONOTONIC);
    if (failed) return failed;
    d->started = (before + after) / 2, d->accuracy = after - before, d->is_first = 1;
    snprintf(says, sizeof says, "GPU %d: clocks are locked meanwhile; its times are right to %.1f ms", d->number,
             (d->accuracy + d->interval) / 1e6);
    d->said = text(d, says);
    d->on = 1;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&d->thread, NULL, decoding, d)) d->on = 0, failed = NO_THREAD;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) pm.stop(&plain);
    return failed;
}

/* The number of devices; below 0 an error of ours, as pm_find's. */
int pm_devices(const char *cupti) {
    int (*count)(int *) = NULL, number = 0, failed = pm_find(cupti);
    if (failed) return failed < 0 ? failed : -failed - 1000;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&count = driver ? dlsym(driver, "cuDeviceGetCount") : NULL;
    return count && !count(&number) ? number : NO_DRIVER;
}

/* Sample device `number` every `interval` ns into a new ring file. 0, an error of ours below 0, or a CUptiResult. */
int pm_start(int number, const char *ring_path, uint64_t interval) {
    if (number < 0 || number >= MOST_DEVICES || !pm.version) return NO_DEVICE;
    struct device *d = &devices[number];
    if (d->on) return NO_DEVICE;
    memset(d, 0, sizeof *d);
    d->number = number, d->interval = interval, d->said = -1;
    struct pm_chip chip = {sizeof chip, NULL, number, NULL};
    int failed = pm.chip(&chip);
    if (!failed) failed = available(d);
    if (!failed) failed = choose(d, chip.name);
    if (!failed) failed = set_up(d, chip.name);
    if (!failed) failed = begin(d, ring_path);
    if (failed) {
        if (d->ring.words) unlink(ring_path);
        ring_close(&d->ring);
        let_go(d);
    }
    return failed;
}

/* End. What was not decoded by then would be lost, so it is decoded first. */
void pm_stop(int number) {
    struct device *d = &devices[number];
    if (number < 0 || number >= MOST_DEVICES || !d->on) return;
    d->on = 0;
    pthread_join(d->thread, NULL);
    struct pm_sampler plain = {sizeof plain, NULL, d->sampler};
    decode(d);
    pm.stop(&plain);
    tell(d, OFF);
    ring_close(&d->ring);
    let_go(d);
}
