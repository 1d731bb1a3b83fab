/* CUPTI's PM sampling, as its headers of 12.6 to 13.5 have it, found in a library that is loaded. Included by pm.c alone.
 *
 * Each call takes one structure, which begins with its size: a later CUPTI knows from it that it was not meant to look
 * further. Of what later versions have added nothing is used. */
#ifndef INFLIGHT_PM_CUPTI_H
#define INFLIGHT_PM_CUPTI_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIZE_UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

struct pm_plain { size_t size; void *zero; };
struct pm_chip { size_t size; void *zero; size_t device; const char *name; };
struct pm_available { size_t size; void *zero; size_t device, image_size; uint8_t *image; };
struct pm_host { size_t size; void *zero; int profiler; const char *chip; const uint8_t *available; void *host; };
struct pm_host_end { size_t size; void *zero, *host; };
struct pm_metrics { size_t size; void *zero, *host; const char **names; size_t count; };
struct pm_config_size { size_t size; void *zero, *host; size_t image_size; };
struct pm_config { size_t size; void *zero, *host; size_t image_size; uint8_t *image; };
struct pm_passes { size_t size; void *zero; size_t image_size; uint8_t *image; size_t passes; };
struct pm_enable { size_t size; void *zero; size_t device; void *sampler; };
struct pm_sampler { size_t size; void *zero, *sampler; };                       /* start, stop, disable */
struct pm_set {
    size_t size; void *zero, *sampler; size_t image_size; const uint8_t *image; size_t buffer; uint64_t interval;
    int trigger, append;                                                        /* `append` not in 12.6 */
};
struct pm_data_size { size_t size; void *zero, *sampler; const char **names; size_t count; uint32_t most; size_t image_size; };
struct pm_data { size_t size; void *zero, *sampler; size_t image_size; uint8_t *image; };
struct pm_decode { size_t size; void *zero, *sampler; uint8_t *image; size_t image_size; int why; uint8_t overflow; };
struct pm_info { size_t size; void *zero; const uint8_t *image; size_t image_size, total, populated, completed; };
struct pm_sample {
    size_t size; void *zero, *sampler; const uint8_t *image; size_t image_size, index; uint64_t start, end;
};
struct pm_values {
    size_t size; void *zero, *host; const uint8_t *image; size_t image_size, index; const char **names; size_t count;
    double *values;
};

enum { PM_SAMPLING = 1, BY_SYSTEM_CLOCK = 0, BY_TIME = 1, DATA_FULL = 1 };
enum { PM_INVALID_PARAMETER = 1, PM_OUT_OF_MEMORY = 8 };                            /* CUptiResult */
enum { NO_DRIVER = -1, NO_CUPTI = -2, TOO_OLD = -3 };
enum { FIRST_WITH_PM = 24 };                                                    /* CUPTI_API_VERSION of 12.6 */

typedef int (*PmCall)(void *);
static struct {
    PmCall initialize, chip, available, host, host_end, add, config_size, config, passes, values;
    PmCall enable, disable, set, start, stop, data_size, data, decode, info, sample;
    uint32_t version;
} pm;

/* Load the driver and CUPTI from `path`, once; 0, an error of ours below 0, or a CUresult plus 10000. */
static inline int pm_find(const char *path) {
    static const struct { PmCall *call; const char *name; } calls[] = {
        {&pm.initialize, "cuptiProfilerInitialize"}, {&pm.chip, "cuptiDeviceGetChipName"},
        {&pm.available, "cuptiPmSamplingGetCounterAvailability"}, {&pm.host, "cuptiProfilerHostInitialize"},
        {&pm.host_end, "cuptiProfilerHostDeinitialize"}, {&pm.add, "cuptiProfilerHostConfigAddMetrics"},
        {&pm.config_size, "cuptiProfilerHostGetConfigImageSize"}, {&pm.config, "cuptiProfilerHostGetConfigImage"},
        {&pm.passes, "cuptiProfilerHostGetNumOfPasses"}, {&pm.values, "cuptiProfilerHostEvaluateToGpuValues"},
        {&pm.enable, "cuptiPmSamplingEnable"}, {&pm.disable, "cuptiPmSamplingDisable"},
        {&pm.set, "cuptiPmSamplingSetConfig"}, {&pm.start, "cuptiPmSamplingStart"}, {&pm.stop, "cuptiPmSamplingStop"},
        {&pm.data_size, "cuptiPmSamplingGetCounterDataSize"}, {&pm.data, "cuptiPmSamplingCounterDataImageInitialize"},
        {&pm.decode, "cuptiPmSamplingDecodeData"}, {&pm.info, "cuptiPmSamplingGetCounterDataInfo"},
        {&pm.sample, "cuptiPmSamplingCounterDataGetSampleInfo"}};
    if (pm.version) return 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *library = dlopen(path, RTLD_NOW);
    int (*init)(unsigned) = NULL, (*version)(uint32_t *) = NULL;
    uint32_t number = 0;
    if (driver) *(void **)&init = dlsym(driver, "cuInit");
    if (!init) return NO_DRIVER;
    int failed = init(0);
    if (failed) return 10000 + failed;
    if (!library) return NO_CUPTI;
    *(void **)&version = dlsym(library, "cuptiGetVersion");
    if (!version || version(&number) || number < FIRST_WITH_PM) return TOO_OLD;
    for (size_t at = 0; at < sizeof calls / sizeof *calls; at++)
        if (!(*(void **)calls[at].call = dlsym(library, calls[at].name))) return TOO_OLD;
    struct pm_plain plain = {sizeof plain, NULL};
    if ((failed = pm.initialize(&plain))) return failed;
    pm.version = number;
    return 0;
}

#endif
