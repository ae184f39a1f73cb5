// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>

#include "policy/allocator/statistics.h"

// A process's report of its caches: a file of its own beside the ledgers, which it maps and writes, and which others
// of the same user read. Nothing depends on it.
namespace cuslice::stats {

inline constexpr uint64_t kMagic = 0x73657275'67696663;  // "cfigures"
inline constexpr uint32_t kVersion = 1;
inline constexpr unsigned kGpus = 64;

// One GPU's, at the place of its ordinal. Whoever reads `sequence` before and after the rest, and finds the same even
// number that is not 0, has read figures of one moment.
struct Gpu {
    std::atomic<uint64_t> sequence;  // 0: nothing has been written yet; odd while it is being written
    uint64_t written;                // CLOCK_MONOTONIC, milliseconds
    char uuid[64];
    char name[96];
    uint32_t mode;      // AllocatorMode
    uint32_t contexts;  // that have a cache now
    Statistics statistics;
};

struct File {
    uint64_t magic;
    uint32_t version, size;
    Gpu gpus[kGpus];
};

}  // namespace cuslice::stats
