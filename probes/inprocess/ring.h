/* The producer's end of a ring, for native code: ring.py says what stands where. One writer at a time.
 *
 * What finds no room is dropped and counted; nobody waits. The space is taken from the disk before anything is written,
 * so a full disk cannot raise SIGBUS in the workload. */
#ifndef INFLIGHT_RING_H
#define INFLIGHT_RING_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    RING_HEAD = 8, RING_TAIL = 16, RING_RECORDS = 24, RING_LOST = 25, RING_COST = 26, RING_CLOSED = 27,
    RING_NODES_UNTIL = 28, RING_OFF = 29, RING_STEPS = 30, RING_BUSY = 31,
    RING_LOST_BY_TABLE = 32,             /* these are numbers of u64 */
    RING_JSON_AT = 1024, RING_PAGE = 4096,
    RING_SMALL = 8 << 20,                /* where the disk has no room for more */
    RING_NAMES = 0xFFFF,
};

typedef struct {
    _Atomic uint64_t *words;             /* the head of the file; NULL: no ring, all calls do nothing */
    uint8_t *data;
    uint64_t capacity, position;
} Ring;

struct ring_frame { uint32_t size; uint16_t table, zero; uint32_t rows, used; uint64_t position; };
_Static_assert(sizeof(struct ring_frame) == 24, "as ring.py packs it");

/* As ring.py's rank(). */
static inline long ring_rank(void) {
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", ""}, {"PMIX_RANK", ""}, {"PMI_RANK", ""}, {"RANK", "WORLD_SIZE"}};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        const char *text = getenv(names[at][0]);
        size_t length = text ? strspn(text, "0123456789") : 0;
        if (length && length < 7 && !text[length] && (!*names[at][1] || getenv(names[at][1]))) return atol(text);
    }
    return -1;
}

/* Make the file; `layouts` is the JSON object of tables. 0, or an errno. */
static inline int ring_open(Ring *ring, const char *path, const char *role, const char *layouts, uint64_t capacity) {
    char json[RING_PAGE * 4];
    int length = snprintf(json, sizeof json, "{\"format\":1,\"pid\":%ld,\"rank\":%ld,\"role\":\"%s\",\"clock\":\"monotonic\",\"layouts\":%s}",
                          (long)getpid(), ring_rank(), role, layouts);
    if (length < 0 || length >= (int)sizeof json) return EINVAL;
    uint32_t start = (RING_JSON_AT + length + RING_PAGE - 1) / RING_PAGE * RING_PAGE;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    int error = posix_fallocate(file, 0, start + capacity);
    if (error == ENOSPC && capacity > RING_SMALL) error = posix_fallocate(file, 0, start + (capacity = RING_SMALL));
    /* Cut to what was reserved: the reader takes the capacity from the size of the file. */
    if (!error && ftruncate(file, start + capacity)) error = errno;
    void *map = error ? MAP_FAILED : mmap(NULL, start + capacity, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!error && map == MAP_FAILED) error = errno;
    close(file);
    if (error) {
        unlink(path);
        return error;
    }
    uint8_t *bytes = map;
    uint32_t sizes[2] = {start, (uint32_t)length};
    memcpy(bytes + RING_JSON_AT, json, length);
    memcpy(bytes + 8, sizes, sizeof sizes);
    ring->data = bytes + start;
    ring->capacity = capacity;
    ring->position = 0;
    ring->words = map;
    /* Last, so that who finds the magic finds a whole head. */
    atomic_thread_fence(memory_order_release);
    memcpy(bytes, "INFLRING", 8);
    return 0;
}

/* Say that nothing more comes, and let go of the file, which stays. */
static inline void ring_close(Ring *ring) {
    if (!ring->words) return;
    atomic_store(&ring->words[RING_CLOSED], 1);
    void *map = (void *)ring->words;
    uint64_t size = ring->data - (uint8_t *)map + ring->capacity;
    ring->words = NULL;
    munmap(map, size);
}

static inline void ring_copy(Ring *ring, uint64_t position, const void *from, uint64_t size) {
    uint64_t at = position % ring->capacity, until_end = ring->capacity - at;
    uint64_t first = size < until_end ? size : until_end;
    memcpy(ring->data + at, from, first);
    memcpy(ring->data, (const uint8_t *)from + first, size - first);
}

/* Append a frame: for RING_NAMES `rows` is the id of the text. 0 when there is no room. */
static inline int ring_put(Ring *ring, uint16_t table, uint32_t rows, const void *payload, uint32_t used) {
    uint64_t size = (sizeof(struct ring_frame) + used + 7) & ~7ull;
    uint64_t free = ring->capacity - (ring->position - atomic_load_explicit(&ring->words[RING_TAIL], memory_order_acquire));
    /* A tail ahead of the head, or too far behind, is nothing to trust: as good as full. */
    if (size > free || free > ring->capacity) return 0;
    struct ring_frame frame = {(uint32_t)size, table, 0, rows, used, ring->position};
    ring_copy(ring, ring->position, &frame, sizeof frame);
    ring_copy(ring, ring->position + sizeof frame, payload, used);
    ring->position += size;
    atomic_store_explicit(&ring->words[RING_HEAD], ring->position, memory_order_release);
    return 1;
}

#endif
