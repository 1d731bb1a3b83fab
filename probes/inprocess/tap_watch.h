/* The tap's watchdog: work goes on, but no records of it come. Included by tap.c alone.
 *
 * The tap itself cannot tell work that is not recorded from no work. The recorder can: it sees the engine's iterations
 * end, and NVML say that the GPU is busy, and counts both in the head of the ring. Why there are no records is what the
 * tap knows: whether CUPTI asked for buffers, found none, or gave records that tell no time. */
#ifndef INFLIGHT_TAP_WATCH_H
#define INFLIGHT_TAP_WATCH_H

#include <stdint.h>

enum { WATCH_NS_DEFAULT = 3000000000ll, WATCH_STEPS = 3, WATCH_BUSY = 10 };

/* What was counted so far: records with a time, those without, buffers asked for, asked in vain, and handed back; dropped
 * by CUPTI itself; iterations that ended and readings of a busy GPU, as the recorder says. */
struct watched { int64_t records, zeros, asked, unserved, handed, dropped, steps, busy; };

static struct { struct watched before; int64_t since; const char *says; } watch;

static const char *watch_reason(const struct watched *now, int busy_only) {
    const struct watched *before = &watch.before;
    if (now->unserved > before->unserved)
        return "no kernel records come although work goes on: all buffers are with CUPTI, which hands none back";
    if (now->dropped > before->dropped)
        return "no kernel records come although work goes on: CUPTI drops them for want of memory on the device";
    if (now->zeros > before->zeros)
        return "no kernel records come although work goes on: CUPTI gives them without a time; record for shorter, or whole "
               "graphs only";
    if (now->asked > before->asked && now->handed == before->handed)
        return "no kernel records come although work goes on: CUPTI holds its buffers back, as while a very long kernel runs";
    if (busy_only)
        return "the GPU is busy but no kernel of this process is recorded: another process works on it, or another profiler "
               "has taken CUPTI's callbacks here";
    return "no kernel records come although iterations end: another client of CUPTI (torch.profiler, a profiling tool) has "
           "taken its callbacks or switched its records off; stop and start kernel records to take them back";
}

/* Looks once; a sentence while records fail to come, NULL while they come or nothing is to be recorded. */
static const char *watch_look(struct watched now, int64_t time, int64_t patience) {
    if (!watch.since || now.records != watch.before.records) {
        watch.before = now, watch.since = time, watch.says = NULL;
    } else if (time - watch.since >= patience && !watch.says) {
        int stepped = now.steps - watch.before.steps >= WATCH_STEPS;
        if (stepped || now.busy - watch.before.busy >= WATCH_BUSY) watch.says = watch_reason(&now, !stepped);
        else if (now.steps == watch.before.steps && now.busy == watch.before.busy) watch.before = now, watch.since = time;
    }
    return watch.says;
}

static void watch_reset(void) { watch.since = 0, watch.says = NULL; }

#endif
