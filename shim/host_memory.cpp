// SPDX-License-Identifier: Apache-2.0
#include "shim/host_memory.h"

#include <string.h>

#include <atomic>
#include <cstdint>

#include "config/size.h"
#include "policy/base/kernel_clock.h"
#include "shim/log.h"

namespace cuslice {

namespace {

constexpr uint64_t kMinute = 60'000'000'000;

// True for the first thread that comes a minute or more after the one before.
bool is_due() {
    static constinit std::atomic<uint64_t> last{0};
    const uint64_t now = coarse_clock();
    uint64_t before = last.load(std::memory_order_relaxed);
    if (before != 0 && now - before < kMinute)
        return false;
    return last.compare_exchange_strong(before, now, std::memory_order_relaxed);
}

}  // namespace

void report_no_host_memory(size_t bytes, int error) {
    if (!is_due())
        return;
    LogLine line("the kernel gives no host memory for cuslice's records (");
    line.append(format_size(bytes), ": ", strerror(error));
    log_line(LogLevel::warn, line.append("), and CUDA calls that need them fail as out of memory. Raise the limit of "
                                         "the address space (ulimit -v) or of the container's memory"));
}

}  // namespace cuslice
