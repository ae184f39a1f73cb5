// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/unlisted_memory.h"

#include <algorithm>

namespace cuslice {

void UnlistedMemory::open(const NvmlGpu& nvml, unsigned pid, const InFlight& frees, Mutex& mutex) {
    nvml_ = nvml;
    pid_ = pid;
    frees_ = &frees;
    mutex_ = &mutex;
}

uint64_t UnlistedMemory::begin(uint64_t own) {
    under_way_.fetch_add(1, std::memory_order_acq_rel);
    NvmlGpu::Unlisted now;
    if (!nvml_.unlisted(pid_, &now))
        return 0;
    // Without a context this process is in no list, and all that it has is among the rest.
    return now.lists_self ? now.bytes : now.bytes - std::min(now.bytes, own);
}

// One of several releases at once may have read its figure after another one's driver call. The lower figure is from
// before both.
void UnlistedMemory::keep(uint64_t bytes, Budget& from, uint64_t before) {
    before_ = this->bytes() ? std::min(before_, before) : before;
    unsigned at = 0;
    while (at < count_ && parts_[at].budget != &from)
        at++;
    if (at == count_) {
        if (count_ == kMaxBudgets)
            return;  // there are no more partitions than that
        parts_[count_++] = {&from, 0};
    }
    parts_[at].bytes += Budget::charged(bytes);
    bytes_.store(this->bytes() + Budget::charged(bytes), std::memory_order_relaxed);
}

void UnlistedMemory::look() {
    constexpr int kTries = 4;
    for (int i = 0; i < kTries && bytes(); i++) {
        const uint64_t frees = frees_->snapshot();
        NvmlGpu::Unlisted now;
        if (!nvml_.unlisted(pid_, &now))
            return;
        const LockGuard lock(*mutex_);
        // The figure hasn't yet what was kept meanwhile.
        if (!frees_->settled(frees))
            continue;
        return let_go(now.bytes - std::min(now.bytes, before_));
    }
}

// NVML doesn't tell whose is gone: the first partition's goes first. With the lock held.
void UnlistedMemory::let_go(uint64_t left) {
    uint64_t gone = bytes() - std::min(bytes(), Budget::charged(left));
    for (unsigned i = 0; i < count_ && gone; i++) {
        const uint64_t here = std::min(gone, parts_[i].bytes);
        if (!here)
            continue;
        parts_[i].budget->release(here);
        parts_[i].bytes -= here;
        bytes_.store(bytes() - here, std::memory_order_relaxed);
        gone -= here;
    }
}

}  // namespace cuslice
