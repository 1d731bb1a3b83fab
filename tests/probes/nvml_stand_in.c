/* A stand-in for libnvidia-ml.so.1, for tests only: two GPUs whose answers come from the environment.
 * STAND_IN_GPM: "no" (older GPU), "refused" (no permission). STAND_IN_LOST: device 1 is gone after that many samples.
 * STAND_IN_REFUSES: name of a function = error, on device 1 only; after a colon for how many calls it answers before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int number; } Device;
static Device devices[2] = {{0}, {1}};
static int asked;

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, GPU_IS_LOST = 15 };

static int is(const char *name, const char *value) { const char *v = getenv(name); return v && !strcmp(v, value); }
static int refused(const Device *d, const char *function) {
    static int calls;
    char name[80];
    int code, before = 0;
    const char *v = getenv("STAND_IN_REFUSES");
    if (!v || d->number != 1 || sscanf(v, "%79[^=]=%d:%d", name, &code, &before) < 2 || strcmp(name, function)) return 0;
    return calls++ < before ? 0 : code;
}
#define state(d) state_of(d, __func__)
static int state_of(const Device *d, const char *function) {
    int code = refused(d, function);
    if (code) return code;
    const char *lost = getenv("STAND_IN_LOST");
    return lost && d->number == 1 && asked > atoi(lost) ? GPU_IS_LOST : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return is("STAND_IN_INIT", "refused") ? 9 : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "stand-in"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    if (index > 1) return NOT_FOUND;
    *device = &devices[index];
    return refused(&devices[index], __func__);
}
int nvmlDeviceGetName(Device *d, char *name, unsigned length) {
    strncpy(name, d->number ? "Stand-in B" : "Stand-in A", length);
    return state(d);
}
int nvmlDeviceGetPcieThroughput(Device *d, int counter, unsigned *value) {
    *value = counter ? 3000 : 2000;                                              /* kB/s: 1 is received */
    return state(d);
}
typedef struct { unsigned gpu, memory; } Rates;
int nvmlDeviceGetUtilizationRates(Device *d, Rates *rates) {
    asked += d->number == 1;
    rates->gpu = 97;
    rates->memory = 55;
    return state(d);
}
typedef struct { unsigned long long total, free, used; } Memory;
int nvmlDeviceGetMemoryInfo(Device *d, Memory *m) {
    m->total = 150ull << 30; m->used = (100ull + d->number) << 30; m->free = m->total - m->used;
    return state(d);
}
int nvmlDeviceGetPowerUsage(Device *d, unsigned *milliwatts) { *milliwatts = 512500; return state(d); }
int nvmlDeviceGetClockInfo(Device *d, int kind, unsigned *mhz) { *mhz = kind == 2 ? 2619 : 1980; return state(d); }
int nvmlDeviceGetMaxClockInfo(Device *d, int kind, unsigned *mhz) { *mhz = kind == 2 ? 3201 : 1980; return state(d); }
int nvmlDeviceGetMemoryBusWidth(Device *d, unsigned *bits) { *bits = 6144; return state(d); }
int nvmlDeviceGetTemperature(Device *d, int sensor, unsigned *celsius) {
    (void)sensor; *celsius = 61;
    return d->number ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetCurrentClocksEventReasons(Device *d, unsigned long long *reasons) { *reasons = 0x4; return state(d); }

typedef struct { unsigned version, supported; } Support;
int nvmlGpmQueryDeviceSupport(Device *d, Support *s) { s->supported = !is("STAND_IN_GPM", "no"); return state(d); }
typedef struct { int number; int count; } Sample;
int nvmlGpmSampleAlloc(Sample **s) { *s = calloc(1, sizeof **s); return refused(&devices[1], __func__); }
int nvmlGpmSampleFree(Sample *s) { free(s); return SUCCESS; }
int nvmlGpmSampleGet(Device *d, Sample *s) {
    static int count;
    if (is("STAND_IN_GPM", "refused")) return NO_PERMISSION;
    s->number = d->number; s->count = ++count;
    return state(d);
}
typedef struct { unsigned id; int result; double value; struct { char *a, *b, *c; } info; } Metric;
typedef struct { unsigned version, count; Sample *first, *second; Metric metrics[]; } Get;
int nvmlGpmMetricsGet(Get *get) {
    int code = refused(&devices[get->first->number], __func__);
    if (code) return code;
    /* The older sample comes first, both of one device. */
    if (get->first->count >= get->second->count || get->first->number != get->second->number) return 2;
    for (unsigned i = 0; i < get->count; i++) {
        Metric *m = &get->metrics[i];
        m->result = m->id == 60 || m->id == 61 ? NOT_SUPPORTED : SUCCESS;
        m->value = m->id == 10 ? 63.5 : m->id == 20 ? 2.0 : 1.0;
    }
    return SUCCESS;
}
