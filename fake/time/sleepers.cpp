// SPDX-License-Identifier: Apache-2.0
#include "fake/time/sleepers.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fake/proc_text.h"

namespace cuslice::fake {
namespace {

uint64_t number_behind(const char* text, const char* name) {
    const char* const at = std::strstr(text, name);
    return at == nullptr ? 0 : std::strtoull(at + std::strlen(name), nullptr, 10);
}

/// The switches of one thread; 0 if it runs. One that has just ended has none, and isn't in the way.
uint64_t sleeps_of_thread(const std::string& status) {
    constexpr uint64_t kEnded = 1;
    char text[4096];
    if (!read_proc_text(status.c_str(), text))
        return kEnded;
    const char* const state = std::strstr(text, "\nState:\t");
    if (state == nullptr)
        return 0;
    switch (state[8]) {
        case 'S':
        case 'T':
        case 't':
            return 1 + number_behind(text, "\nvoluntary_ctxt_switches:") +
                   number_behind(text, "\nnonvoluntary_ctxt_switches:");
        case 'Z':
        case 'X':
            return kEnded;
        default:
            return 0;
    }
}

}  // namespace

uint64_t sleeps_of(int pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    DIR* const tasks = opendir(folder.c_str());
    if (tasks == nullptr)
        return 0;
    uint64_t sum = 0;
    bool all = true;
    while (const dirent* entry = all ? readdir(tasks) : nullptr) {
        if (entry->d_name[0] == '.')
            continue;
        const uint64_t one = sleeps_of_thread(folder + "/" + entry->d_name + "/status");
        all = one != 0;
        sum += one;
    }
    closedir(tasks);
    return all ? sum : 0;
}

}  // namespace cuslice::fake
