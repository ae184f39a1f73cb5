// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <new>

#include "policy/base/table_memory.h"

namespace cuslice {

// Records of one kind, from the kernel's memory. One that is given back may be handed out again, but its memory is
// never anything else: whoever reads one that has just been given back reads a record. Not thread-safe. T needs a
// `next`.
template <typename T>
class Records {
  public:
    // Null if the kernel gives no memory.
    T* take() {
        if (!free_ && !more())
            return nullptr;
        T* record = free_;
        free_ = record->next;
        return new (record) T;
    }
    void give_back(T* record) {
        record->next = free_;
        free_ = record;
    }

    // Bytes of the kernel's memory in use by records of this kind. From any thread: a moment's figure.
    size_t memory() const { return __atomic_load_n(&memory_, __ATOMIC_RELAXED); }

  private:
    bool more() {
        constexpr size_t kChunk = 64 << 10;
        auto* records = static_cast<T*>(take_table_memory(kChunk));
        if (!records)
            return false;
        __atomic_store_n(&memory_, memory_ + kChunk, __ATOMIC_RELAXED);
        for (size_t i = kChunk / sizeof(T); i-- > 0;)
            give_back(&records[i]);
        return true;
    }
    T* free_ = nullptr;
    size_t memory_ = 0;
};

}  // namespace cuslice
