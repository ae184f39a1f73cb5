// SPDX-License-Identifier: Apache-2.0
// Threads that sleep, by what the kernel shows of them.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace cuslice::tests {

inline pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// How often the thread has gone to sleep. 0 if it has ended.
inline uint64_t naps_of(int pid, int thread) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/status");
    const std::string key = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(status, line);)
        if (line.rfind(key, 0) == 0)
            return std::stoull(line.substr(key.size()));
    return 0;
}

/// Returns when the thread of this process sleeps in the kernel, or has ended.
inline void await_sleep(pid_t thread) {
    const std::string file = "/proc/self/task/" + std::to_string(thread) + "/stat";
    for (char state = 0; state != 'S'; std::this_thread::yield()) {
        std::string text;
        std::ifstream stat(file);
        std::getline(stat, text);
        const auto name = text.rfind(')');
        state = name + 2 < text.size() ? text[name + 2] : 'S';
    }
}

}  // namespace cuslice::tests
