/* The tables of the tap's ring, and their rows as they lie in it. Included by tap.c alone. */
#ifndef INFLIGHT_TAP_ROWS_H
#define INFLIGHT_TAP_ROWS_H

#include <stdint.h>

enum { KERNELS, MEMCPYS, MEMSETS, GRAPHS, PROBES };                             /* in the order of the layouts */
enum { OFF, RUNNING, SAMPLING, PAUSED, FAILED };                                /* probes.state */

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

#endif
