// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "policy/base/table_memory.h"

namespace cuslice {

// Address → what lies there, for every address of the process, without a lock: a table of two levels with an entry for
// each granule. An entry is of the user's making, and 0 where nothing is. Readers may run at any time beside writers;
// what they find is as it was a moment ago.
template <uint64_t kGranule>
class PageMap {
  public:
    using Entry = uintptr_t;
    static constexpr uint64_t kEnd = 1ull << 49;  // of the addresses that it has room for

    Entry at(uint64_t address) const {
        const uint64_t leaf = address / kLeafBytes;
        if (leaf >= kLeaves)
            return 0;
        const auto* entries = leaves_[leaf].load(std::memory_order_acquire);
        return entries ? entries[address / kGranule % kLeafEntries].load(std::memory_order_acquire) : 0;
    }

    // Makes room for entries in [begin, end). False if the kernel gives no memory, or the addresses are beyond kEnd.
    // Thread-safe.
    bool cover(uint64_t begin, uint64_t end) {
        for (uint64_t leaf = begin / kLeafBytes; leaf <= (end - 1) / kLeafBytes; leaf++) {
            if (leaf >= kLeaves)
                return false;
            if (leaves_[leaf].load(std::memory_order_acquire))
                continue;
            constexpr size_t kBytes = kLeafEntries * sizeof(std::atomic<Entry>);
            auto* entries = static_cast<std::atomic<Entry>*>(take_table_memory(kBytes));
            if (!entries)
                return false;
            std::atomic<Entry>* nobody_elses = nullptr;
            if (!leaves_[leaf].compare_exchange_strong(nobody_elses, entries, std::memory_order_acq_rel))
                give_back_table_memory(entries, kBytes);
        }
        return true;
    }

    // Only where there is room.
    void set(uint64_t address, Entry entry) {
        leaves_[address / kLeafBytes].load(std::memory_order_relaxed)[address / kGranule % kLeafEntries].store(
            entry, std::memory_order_release);
    }

    // From the granule of `begin` to the last one that begins before `end`.
    void set_all(uint64_t begin, uint64_t end, Entry entry) {
        for (uint64_t granule = begin / kGranule, last = (end + kGranule - 1) / kGranule; granule < last;) {
            auto* entries = leaves_[granule / kLeafEntries].load(std::memory_order_relaxed);
            const uint64_t stop = std::min(last, (granule / kLeafEntries + 1) * kLeafEntries);
            for (; granule < stop; granule++)
                entries[granule % kLeafEntries].store(entry, std::memory_order_release);
        }
    }

    // Makes it nothing, where it is `entry`; false if it is anything else.
    bool clear_if(uint64_t address, Entry entry) {
        return leaves_[address / kLeafBytes]
            .load(std::memory_order_relaxed)[address / kGranule % kLeafEntries]
            .compare_exchange_strong(entry, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
    }

  private:
    static constexpr uint64_t kLeafEntries = 1 << 16;
    static constexpr uint64_t kLeafBytes = kLeafEntries * kGranule;
    static constexpr uint64_t kLeaves = kEnd / kLeafBytes;
    std::atomic<std::atomic<Entry>*> leaves_[kLeaves]{};  // pages that are never touched cost nothing
};

}  // namespace cuslice
