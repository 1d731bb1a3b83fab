/* A stand-in for CUPTI's PM sampling and for the driver, for tests only. It insists on the sizes that CUPTI's headers give
 * to each structure. Set by the environment:
 *   PM_VERSION   cuptiGetVersion (130000)            PM_REFUSES  call=code, e.g. enable=35
 *   PM_CHIP      GH100                               PM_METRICS  metrics that the chip has, between commas
 *   PM_ONE_PASS  how many of them one pass gives (9) PM_GAP      n samples are missing after the 50th
 *   PM_OVERFLOW  the n-th decoding overflows         PM_NAN      every n-th sample has no value
 * Sample k of metric m of device d is 10 m + d + k % 7. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../probes/inprocess/pm_cupti.h"

struct image { uint32_t magic, most; int64_t first, count; };
static struct state {
    int enabled, running, configured, decoded, added;
    int64_t base, next, interval;
} states[2];
static int initialised, hosts, metrics_in_host, config_metrics;

static long setting(const char *name, long otherwise) { const char *v = getenv(name); return v ? atol(v) : otherwise; }
static int64_t gpu_now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ll + t.tv_nsec + 77000000000ll; }
static int refuses(const char *call) {
    const char *v = getenv("PM_REFUSES");
    size_t n = strlen(call);
    return v && !strncmp(v, call, n) && v[n] == '=' ? atoi(v + n + 1) : 0;
}
static struct state *of(void *object) { return &states[(uintptr_t)object - 1]; }
#define CALL(name, expected) \
    int refused = refuses(#name); \
    if (p->size != (expected) || p->zero) return 1; \
    if (refused) return refused

int cuInit(unsigned flags) { return flags ? 1 : refuses("driver"); }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuptiGetVersion(uint32_t *version) { *version = setting("PM_VERSION", 130000); return 0; }
int cuptiProfilerInitialize(struct pm_plain *p) { CALL(initialize, 16); initialised++; return 0; }
int cuptiDeviceGetChipName(struct pm_chip *p) { CALL(chip, 32); p->name = getenv("PM_CHIP") ? getenv("PM_CHIP") : "GH100"; return initialised ? 0 : 15; }
int cuptiPmSamplingGetCounterAvailability(struct pm_available *p) {
    CALL(available, 40);
    if (!p->image) p->image_size = 100;
    else memset(p->image, 7, 100);
    return p->image_size == 100 ? 0 : 10;
}
int cuptiProfilerHostInitialize(struct pm_host *p) {
    CALL(host, 48);
    if (p->profiler != 1 || !p->available || p->available[99] != 7 || !p->chip) return 1;
    p->host = (void *)(uintptr_t)++hosts, metrics_in_host = 0;
    return 0;
}
int cuptiProfilerHostDeinitialize(struct pm_host_end *p) { CALL(host_end, 24); return 0; }
int cuptiProfilerHostConfigAddMetrics(struct pm_metrics *p) {
    CALL(add, 40);
    const char *known = getenv("PM_METRICS");
    char wanted[200];
    snprintf(wanted, sizeof wanted, ",%s,", known ? known : "dram__read_throughput,dram__write_throughput,sm__cycles_active,sm__pipe_tensor_cycles_active,dram__throughput");
    for (size_t at = 0; at < p->count; at++) {
        char name[100];
        const char *end = strstr(p->names[at], ".avg.pct_of_peak_sustained_elapsed");
        snprintf(name, sizeof name, ",%.*s,", end ? (int)(end - p->names[at]) : 0, p->names[at]);
        if (!end || !strstr(wanted, name)) return 17;
    }
    metrics_in_host += p->count;
    return 0;
}
int cuptiProfilerHostGetConfigImageSize(struct pm_config_size *p) { CALL(config_size, 32); p->image_size = 64; return 0; }
int cuptiProfilerHostGetConfigImage(struct pm_config *p) { CALL(config, 40); config_metrics = metrics_in_host; memset(p->image, 9, 64); return p->image_size == 64 ? 0 : 10; }
int cuptiProfilerHostGetNumOfPasses(struct pm_passes *p) { CALL(passes, 40); p->passes = 1 + (config_metrics - 1) / setting("PM_ONE_PASS", 9); return p->image[63] == 9 ? 0 : 1; }
int cuptiPmSamplingEnable(struct pm_enable *p) {
    CALL(enable, 32);
    if (p->device > 1) return 2;
    if (states[p->device].enabled) return 7;
    states[p->device].enabled = 1;
    p->sampler = (void *)(p->device + 1);
    return 0;
}
int cuptiPmSamplingDisable(struct pm_sampler *p) { CALL(disable, 24); of(p->sampler)->enabled = 0; return 0; }
int cuptiPmSamplingSetConfig(struct pm_set *p) {
    CALL(set, setting("PM_VERSION", 130000) == 24 ? 60u : 64u);
    int old = getenv("PM_CHIP") && !strcmp(getenv("PM_CHIP"), "GA100");
    if (p->image[0] != 9 || p->trigger != !old || p->buffer < 1 << 20) return 27;
    of(p->sampler)->interval = old ? p->interval * 10 / 14 : p->interval, of(p->sampler)->configured = 1;
    return 0;
}
int cuptiPmSamplingGetCounterDataSize(struct pm_data_size *p) { CALL(data_size, 56); p->image_size = sizeof(struct image); return p->most && p->count ? 0 : 1; }
int cuptiPmSamplingCounterDataImageInitialize(struct pm_data *p) {
    CALL(data, 40);
    struct image image = {4711, 100, 0, 0};
    memcpy(p->image, &image, sizeof image);
    return p->image_size == sizeof image ? 0 : 10;
}
int cuptiPmSamplingStart(struct pm_sampler *p) {
    CALL(start, 24);
    struct state *s = of(p->sampler);
    if (!s->configured || !s->enabled) return 7;
    s->base = gpu_now(), s->next = -1, s->running = 1;
    return 0;
}
int cuptiPmSamplingStop(struct pm_sampler *p) { CALL(stop, 24); of(p->sampler)->running = 0; return 0; }
int cuptiPmSamplingDecodeData(struct pm_decode *p) {
    CALL(decode, 45);
    struct state *s = of(p->sampler);
    struct image *image = (void *)p->image;
    if (!s->running || image->magic != 4711 || image->count) return 7;
    if (++s->decoded == setting("PM_OVERFLOW", -1)) { p->overflow = 1; return 8; }
    int64_t there = (gpu_now() - s->base) / s->interval;
    image->first = s->next;
    image->count = there - s->next < image->most ? there - s->next : image->most;
    s->next += image->count;
    p->why = image->count == image->most ? 1 : 2;
    return 0;
}
int cuptiPmSamplingGetCounterDataInfo(struct pm_info *p) {
    CALL(info, 56);
    const struct image *image = (const void *)p->image;
    p->total = image->most, p->populated = p->completed = image->count;
    return 0;
}
int cuptiPmSamplingCounterDataGetSampleInfo(struct pm_sample *p) {
    CALL(sample, 64);
    struct state *s = of(p->sampler);
    int64_t number = ((const struct image *)(const void *)p->image)->first + p->index;
    int64_t later = number > 50 ? setting("PM_GAP", 0) : 0;
    /* The first one spans nothing. */
    p->start = number < 0 ? s->base : s->base + (number + later) * s->interval;
    p->end = number < 0 ? s->base : s->base + (number + later + 1) * s->interval;
    return 0;
}
int cuptiProfilerHostEvaluateToGpuValues(struct pm_values *p) {
    CALL(values, 72);
    int64_t number = ((const struct image *)(const void *)p->image)->first + p->index;
    long nothing = setting("PM_NAN", 0);
    for (size_t at = 0; at < p->count; at++)
        p->values[at] = nothing && number % nothing == 0 ? NAN : 10.0 * at + number % 7;
    return 0;
}
