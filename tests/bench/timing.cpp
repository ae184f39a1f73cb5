// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/timing.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cuslice::bench {

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

bool pin(unsigned place) {
    // Cores of the process at its start: a thread that was pinned before would see one core alone.
    static const cpu_set_t allowed = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof(set), &set);
        return set;
    }();
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || place-- != 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        return sched_setaffinity(0, sizeof(one), &one) == 0;
    }
    return false;
}

double ns_per_tick() {
    static const double value = [] {
        const int64_t start = now_ns();
        const uint64_t first = ticks();
        while (now_ns() - start < 50'000'000) {
        }
        return static_cast<double>(now_ns() - start) / static_cast<double>(ticks() - first);
    }();
    return value;
}

uint64_t empty_interval() {
    static const uint64_t value = [] {
        uint64_t least = ~0ull;
        for (int i = 0; i < 10000; i++) {
            const uint64_t start = ticks();
            least = std::min(least, ticks() - start);
        }
        return least;
    }();
    return value;
}

double percentile(std::vector<double> values, double share) {
    if (values.empty())
        return 0;
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    const auto at = values.begin() + (rank < 1 ? 0 : static_cast<ptrdiff_t>(rank) - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace cuslice::bench
