/* CUPTI's activity interface as the tap uses it: found in the process, and read by offset. Included by tap.c alone. */
#ifndef INFLIGHT_TAP_CUPTI_H
#define INFLIGHT_TAP_CUPTI_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KERNEL = 10, MEMCPY = 1, MEMSET = 2, GRAPH = 51 };                       /* CUpti_ActivityKind */
enum { NO_CUPTI = -1, TOO_OLD = -2, TOO_OLD_LATE = -6 };
/* CUPTI_API_VERSION: 19 is that of CUDA 12.0, 24 that of 12.6; since 13.0 it is 130000 and so on. */
enum { OLDEST = 19, OLDEST_LATE = 24 };

static struct {
    int (*next)(uint8_t *, size_t, uint8_t **), (*flush)(uint32_t), (*enable)(int), (*disable)(int);
    int (*dropped)(void *, uint32_t, size_t *), (*timestamp)(uint64_t *), (*registering)(void *, void *);
} cupti;

static inline uint32_t u32(const uint8_t *record, int at) { uint32_t v; memcpy(&v, record + at, 4); return v; }
static inline uint64_t u64(const uint8_t *record, int at) { uint64_t v; memcpy(&v, record + at, 8); return v; }

static void *cupti_library(const char *path) {
    const char *const candidates[] = {path, "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    /* A second libcupti would be a second client: the one that is there comes first. */
    for (int loaded = 1; loaded >= 0; loaded--)
        for (int at = 0; at < 4; at++) {
            void *found = candidates[at] && *candidates[at] ? dlopen(candidates[at], RTLD_NOW | (loaded ? RTLD_NOLOAD : 0)) : NULL;
            if (found) return found;
        }
    return NULL;
}

/* Fill the table; 0 or one of the errors above. `late`: CUDA graphs may have been captured before, which ended the
 * process where records began afterwards, before 12.6. */
static int cupti_find(const char *path, int late) {
    void *library = cupti_library(path);
    int (*version)(uint32_t *) = NULL;
    uint32_t number = 0;
    if (!library) return NO_CUPTI;
    *(void **)&version = dlsym(library, "cuptiGetVersion");
    if (!version || version(&number) || number < OLDEST) return TOO_OLD;
    if (late && number < OLDEST_LATE) return TOO_OLD_LATE;
    *(void **)&cupti.next = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&cupti.flush = dlsym(library, "cuptiActivityFlushAll");
    *(void **)&cupti.enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&cupti.disable = dlsym(library, "cuptiActivityDisable");
    *(void **)&cupti.dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
    *(void **)&cupti.timestamp = dlsym(library, "cuptiGetTimestamp");
    *(void **)&cupti.registering = dlsym(library, "cuptiActivityRegisterCallbacks");
    int whole = cupti.next && cupti.flush && cupti.enable && cupti.disable && cupti.timestamp && cupti.registering;
    return whole ? 0 : TOO_OLD;
}

#endif
