// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/skipped_kernels.h"

#include <atomic>
#include <string>

#include "fake/driver/log.h"

namespace cuslice::fake {

namespace {

std::atomic<uint64_t> skipped{0};

}  // namespace

Task skip_kernel() {
    return [] { skipped.fetch_add(1, std::memory_order_relaxed); };
}

void log_skipped(const KernelInfo& info, const Image& image) {
    static std::atomic<bool> said{false}, said_of_opaque{false};
    if (!said.exchange(true))
        log_line(
            "kernels are checked, not run: what they would compute is not there (CUSLICE_FAKE_KERNELS=error refuses "
            "them)");
    if (image.opaque.empty() || said_of_opaque.exchange(true))
        return;
    log_line(
        "kernel '" + info.name + "' is launched from " + image.opaque +
        ", which the fake GPU can't read: any name is taken for a kernel there, and its parameters aren't checked");
}

void log_all_skipped() {
    const uint64_t count = skipped.load(std::memory_order_relaxed);
    if (count == 0)
        return;
    log_line(std::to_string(count) + (count == 1 ? " launch of a kernel was" : " launches of kernels were") +
             " skipped in this process: results were not computed");
}

}  // namespace cuslice::fake
