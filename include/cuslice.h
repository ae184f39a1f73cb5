// SPDX-License-Identifier: Apache-2.0
/* What a program that runs under cuslice may ask of it. No program needs to.
 *
 * There is nothing to link: the preloaded library has the functions, and a program that may also run without it looks
 * them up.
 *
 *     cuslice_memory_stats_function *ask = (cuslice_memory_stats_function *)dlsym(RTLD_DEFAULT,
 * "cuslice_memory_stats"); struct cuslice_stats stats = {sizeof stats}; if (ask && ask(0, &stats) == 0)
 * printf("%llu bytes\n", (unsigned long long)stats.allocated.current);
 */
#ifndef CUSLICE_H
#define CUSLICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that rise and fall. */
struct cuslice_tally {
    uint64_t current;
    uint64_t peak;      /* the most that `current` has been */
    uint64_t allocated; /* since the beginning */
    uint64_t freed;     /* since the beginning */
};

/* What the caching allocators of one GPU hold and have done: all of the process's contexts on it together, those that
 * have ended too. A peak is exact as long as one context at a time has a cache; of several it is the sum of theirs, so
 * no less than it was. What a thread serves from its own store is in the peaks of `allocated`,
 * `requested` and `active` only from its next refill on. */
struct cuslice_stats {
    size_t size;                    /* before the call: sizeof the structure; after it: how much of it is filled in */
    struct cuslice_tally allocated; /* bytes that the program holds, as blocks are rounded */
    struct cuslice_tally requested; /* the same, as the program asked for them */
    struct cuslice_tally active;    /* bytes that the program holds, or freed and the GPU may still be using */
    struct cuslice_tally reserved;  /* bytes that the allocators have from the driver: used, parked or free */
    uint64_t allocations;           /* allocations that succeeded */
    uint64_t frees;                 /* the program's; what ended with a context is none */
    uint64_t segments;              /* pieces that `reserved` is made of, now */
    uint64_t retries;               /* allocations that succeeded only after cached memory had been given back */
    uint64_t ooms;                  /* allocations that were refused */
    uint64_t syncs;        /* waits for the GPU when memory was short; the wait of each strict free not counted */
    uint64_t largest_free; /* bytes of the largest free piece, within 3% */
    uint64_t own_memory;   /* bytes of host memory that the allocators need for themselves */
};

/* Fills in the figures of the GPU that CUDA counts as `device`. Any thread may call it at any time; it asks neither the
 * driver nor the GPU. Returns
 *     0  success
 *     1  `stats` is null, or its `size` is smaller than the structure was in the first version
 *     3  CUDA has not been initialised
 *   101  there is no such device
 *   801  no memory is cached on it: its `allocator` is direct, or this is a forked child */
int cuslice_memory_stats(int device, struct cuslice_stats* stats);
typedef int cuslice_memory_stats_function(int device, struct cuslice_stats* stats);

/* Has this process hold no more than `bytes` of the GPU that CUDA counts as `device`, within what it was given: never
 * more than that, whatever is asked for. ~0 (UINT64_MAX) is all that it was given. The bytes are those of the limit:
 * with the context, unless that comes on top. Memory that the program holds already stays with it; memory that is
 * cached goes back, and until no more is held than that every allocation is refused. It holds for all threads, and in a
 * forked child, until it is set again. Any thread may call it at any time, before CUDA is initialised as well, and then
 * also where nothing limits the device. Returns
 *     0  success
 *     1  `device` is negative, or above 63
 *   101  there is no such device, as far as CUDA has been initialised
 *   801  nothing limits the device, so that nothing is counted there, or its `allocator` is prealloc */
int cuslice_set_slice(int device, uint64_t bytes);
typedef int cuslice_set_slice_function(int device, uint64_t bytes);

/* What this process may hold of one GPU, and holds. Bytes. */
struct cuslice_own_slice {
    size_t size;      /* before the call: sizeof the structure */
    uint64_t limit;   /* the most now: of its own and of those that it shares the smallest */
    uint64_t used;    /* by this process */
    uint64_t driver;  /* part of that which the driver takes by itself: contexts, modules */
    uint64_t refused; /* requests that were refused since the process began */
};

/* Fills in the figures of the GPU that CUDA counts as `device`. Any thread may call it at any time; it asks neither the
 * driver nor the GPU. Returns
 *     0  success
 *     1  `slice` is null, or its `size` is smaller than the structure
 *     3  CUDA has not been initialised
 *   101  there is no such device
 *   801  nothing limits it */
int cuslice_get_slice(int device, struct cuslice_own_slice* slice);
typedef int cuslice_get_slice_function(int device, struct cuslice_own_slice* slice);

#ifdef __cplusplus
}
#endif

#endif
