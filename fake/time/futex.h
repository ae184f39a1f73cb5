// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sleep on a word that several processes map.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace cuslice::fake {

/// Sleeps while the word is `seen`, for so many nanoseconds at most; may wake up for no reason.
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, uint64_t nanoseconds) {
    const timespec span{static_cast<time_t>(nanoseconds / 1'000'000'000),
                        static_cast<long>(nanoseconds % 1'000'000'000)};
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, &span, nullptr, 0);
}

/// Changes the word and wakes all who sleep on it.
inline void futex_raise(std::atomic<uint32_t>& word) {
    word.fetch_add(1);
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// CLOCK_MONOTONIC in nanoseconds.
inline uint64_t monotonic_time() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace cuslice::fake
