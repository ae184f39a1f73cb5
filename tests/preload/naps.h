// SPDX-License-Identifier: Apache-2.0
// How often a guest's threads have gone to sleep, as the kernel counts it: each pause of a wait is one voluntary
// switch. So what waits is told from what doesn't without a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "tests/preload/guest.h"
#include "tests/sleeping.h"

namespace cuslice::tests {

/// Naps of the thread that carries out the commands, which sleeps once for each.
inline uint64_t naps(Guest& guest) {
    const int pid = guest.pid();
    return naps_of(pid, pid);
}

/// Each of the guest's other threads, with its naps: with idle-release one of them looks for what is idle.
inline std::map<int, uint64_t> naps_of_others(int pid) {
    std::map<int, uint64_t> all;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
        const int thread = std::stoi(task.path().filename());
        if (thread != pid)
            all[thread] = naps_of(pid, thread);
    }
    return all;
}

/// True if `then` has threads, and each has napped at least `times` more since.
inline bool napped_since(int pid, const std::map<int, uint64_t>& then, uint64_t times) {
    return !then.empty() && std::all_of(then.begin(), then.end(),
                                        [&](const auto& one) { return naps_of(pid, one.first) >= one.second + times; });
}

}  // namespace cuslice::tests
