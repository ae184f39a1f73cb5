// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/model_time.h"

#include <time.h>

#include <atomic>

namespace cuslice::fake {
namespace {

constinit std::atomic<uint64_t> spent{0};

}  // namespace

void spend_model_time() { spent.fetch_add(kModelWorkNanoseconds, std::memory_order_relaxed); }

uint64_t model_time() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const auto host = static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
    return host + spent.load(std::memory_order_relaxed);
}

}  // namespace cuslice::fake
