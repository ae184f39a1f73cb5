// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/publisher.h"

#include <cerrno>
#include <cstdio>

#include "policy/base/kernel_clock.h"
#include "policy/base/machine.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

void Publisher::open(const char* folder) {
    if (tried_.exchange(true, std::memory_order_acq_rel))
        return;
    const int saved_errno = errno;
    stats::File* const file = stats::make_own(folder, &failure_);
    file_.store(file, std::memory_order_release);
    failed_.store(!file, std::memory_order_release);
    errno = saved_errno;
}

const stats::LedgerError* Publisher::failure() {
    if (!failed_.load(std::memory_order_acquire))
        return nullptr;
    return told_.exchange(true, std::memory_order_relaxed) ? nullptr : &failure_;
}

void Publisher::changed(const Source& caches, const VirtualGpu& gpu) {
    stats::File* file = file_.load(std::memory_order_acquire);
    const auto ordinal = static_cast<unsigned>(gpu.ordinal());
    if (!file || ordinal >= stats::kGpus)
        return;
    // A thread that finds another one writing leaves the rest to that one, which checks again.
    std::atomic<unsigned>& pending = pending_[ordinal];
    if (pending.fetch_add(1, std::memory_order_acq_rel) != 0)
        return;
    // The others don't stop for this thread: in the end a change of theirs may have to wait for the next one.
    constexpr int kMaxRounds = 8;
    unsigned seen = 1;
    for (int round = 0; round < kMaxRounds; round++) {
        write(file->gpus[ordinal], caches, gpu);
        if (pending.compare_exchange_strong(seen, 0, std::memory_order_acq_rel))
            return;
    }
    pending.store(0, std::memory_order_release);
}

void Publisher::write(stats::Gpu& into, const Source& caches, const VirtualGpu& gpu) {
    unsigned contexts = 0;
    const Statistics statistics = caches.read(caches.self, gpu, &contexts);
    const uint64_t before = into.sequence.load(std::memory_order_relaxed);
    into.sequence.store(before + 1, std::memory_order_relaxed);
    store_fence();
    if (before == 0) {
        std::snprintf(into.uuid, sizeof into.uuid, "%s", gpu.identity().uuid);
        std::snprintf(into.name, sizeof into.name, "%s", gpu.name());
        into.mode = static_cast<uint32_t>(gpu.slice().allocator);
    }
    into.written = coarse_clock() / 1'000'000;
    into.contexts = contexts;
    into.statistics = statistics;
    into.sequence.store(before + 2, std::memory_order_release);
}

void Publisher::remove(const char* folder) const {
    if (!file_.load(std::memory_order_acquire))
        return;
    const int saved_errno = errno;
    stats::remove_own(folder);
    errno = saved_errno;
}

void Publisher::forget() {
    file_.store(nullptr, std::memory_order_relaxed);
    tried_.store(false, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    for (auto& pending : pending_)
        pending.store(0, std::memory_order_relaxed);
}

}  // namespace cuslice
