// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/syscall.h>
#include <time.h>

#include <cstdint>

#include "policy/base/machine.h"

namespace cuslice {

// A clock of the kernel's, in nanoseconds: CLOCK_MONOTONIC or CLOCK_REALTIME. Not by the C library's function, in whose
// place a library such as libfaketime may stand: a wait that ends by a clock which stands still never ends. A system
// call, so not for what is done often.
inline uint64_t kernel_clock(clockid_t clock) {
    timespec now{};
    system_call(SYS_clock_gettime, clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Nanoseconds since 1970.
inline uint64_t now_realtime() { return kernel_clock(CLOCK_REALTIME); }

// CLOCK_MONOTONIC_COARSE, in nanoseconds, for what is done often.
inline uint64_t coarse_clock() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// The same in milliseconds.
inline int64_t coarse_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// The same in seconds.
inline uint64_t now_monotonic_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec);
}

}  // namespace cuslice
