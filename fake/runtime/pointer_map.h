// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace cuslice::fake {

/// From host addresses to what was registered for them. Open addressing with linear probing; no exceptions and no
/// destructor (a program's own destructors may still launch at exit). Not thread-safe.
template <class Value>
class PointerMap {
  public:
    /// Null where nothing is registered.
    Value* find(const void* key) const {
        if (capacity_ == 0)
            return nullptr;
        for (size_t i = slot_of(key);; i = (i + 1) & (capacity_ - 1)) {
            if (slots_[i].key == key)
                return slots_[i].value;
            if (slots_[i].key == nullptr)
                return nullptr;
        }
    }

    /// Registers `value`, in the place of an earlier one. False: no host memory.
    bool insert(const void* key, Value* value) {
        if (2 * (used_ + 1) > capacity_ && !grow())
            return false;
        for (size_t i = slot_of(key);; i = (i + 1) & (capacity_ - 1)) {
            if (slots_[i].key == nullptr) {
                slots_[i] = {key, value};
                ++used_;
                return true;
            }
            if (slots_[i].key == key) {
                slots_[i].value = value;
                return true;
            }
        }
    }

    /// Forgets `key` if it still belongs to `value`. The slot keeps its key, so that probing goes on past it.
    void erase(const void* key, const Value* value) {
        for (size_t i = slot_of(key); capacity_ != 0 && slots_[i].key != nullptr; i = (i + 1) & (capacity_ - 1)) {
            if (slots_[i].key == key) {
                if (slots_[i].value == value)
                    slots_[i].value = nullptr;
                return;
            }
        }
    }

  private:
    struct Slot {
        const void* key;
        Value* value;
    };

    size_t slot_of(const void* key) const {
        // Fibonacci hashing: addresses differ in their middle bits, the product carries them to the top.
        return (reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15u >> 20) & (capacity_ - 1);
    }

    bool grow() {
        PointerMap larger;
        larger.capacity_ = capacity_ == 0 ? 64 : capacity_ * 2;
        larger.slots_ = static_cast<Slot*>(std::calloc(larger.capacity_, sizeof(Slot)));
        if (larger.slots_ == nullptr)
            return false;
        for (size_t i = 0; i < capacity_; ++i) {
            if (slots_[i].value != nullptr)
                larger.insert(slots_[i].key, slots_[i].value);
        }
        std::free(slots_);
        *this = larger;
        return true;
    }

    Slot* slots_ = nullptr;
    size_t capacity_ = 0;
    size_t used_ = 0;
};

}  // namespace cuslice::fake
