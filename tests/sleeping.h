// SPDX-License-Identifier: Apache-2.0
// Waits until another thread of this process sleeps, by the state that the kernel shows.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace cuslice::tests {

inline pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// Returns when the thread sleeps in the kernel, or has ended.
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
