// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/host_room.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <vector>

#include "fake/driver/log.h"
#include "fake/spec/keys.h"

namespace cuslice::fake {
namespace {

constexpr size_t kDefaultBound = size_t{8} << 30;

size_t bound = kDefaultBound;
constinit std::mutex files_lock;
// Bytes that the files had when they were last measured, plus the most that can have been added since.
std::atomic<size_t> known{0};

auto& files() {
    static auto* all = new std::vector<int>;
    return *all;
}

/// Bytes that the files take now; with the lock held.
size_t measured() {
    size_t bytes = 0;
    for (const int file : files()) {
        struct stat info {};
        if (fstat(file, &info) == 0)
            bytes += static_cast<size_t>(info.st_blocks) * 512;
    }
    return bytes;
}

void log_full(size_t more) {
    static std::atomic<bool> said{false};
    if (said.exchange(true))
        return;
    const auto mib = [](size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
    log_line("the contents of the fake GPUs' memory would take " + mib(more) + " more of the host's, beyond the " +
             mib(bound) + " that a process may take (CUSLICE_FAKE_HOST): CUDA_ERROR_OUT_OF_MEMORY");
}

}  // namespace

size_t machine_memory() {
    const long pages = sysconf(_SC_PHYS_PAGES);
    size_t bytes = pages > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : ~size_t{0};
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        size_t limit = 0;  // a group without a limit has the word "max", or a number that no machine has
        if (std::ifstream(path) >> limit)
            bytes = std::min(bytes, limit);
    }
    return bytes;
}

bool set_host_bound(const char* text, std::string& error) {
    if (text != nullptr && *text != '\0') {
        uint64_t bytes = 0;
        if (!parse_size(text, bytes, error)) {
            error = "CUSLICE_FAKE_HOST: " + error;
            return false;
        }
        bound = bytes;
        return true;
    }
    bound = std::min(kDefaultBound, machine_memory() / 2);
    return true;
}

void count_file(int file) {
    const std::lock_guard hold(files_lock);
    files().push_back(file);
}

void forget_file(int file) {
    const std::lock_guard hold(files_lock);
    std::erase(files(), file);
}

bool host_has_room(size_t most, const std::function<size_t()>& exactly) {
    if (known.fetch_add(most, std::memory_order_relaxed) + most <= bound)
        return true;
    const size_t more = exactly();
    const std::lock_guard hold(files_lock);
    const size_t now = measured();
    if (more > bound || now > bound - more) {
        known.store(now, std::memory_order_relaxed);
        if (more == 0)
            return true;
        log_full(more);
        return false;
    }
    known.store(now + more, std::memory_order_relaxed);
    return true;
}

}  // namespace cuslice::fake
