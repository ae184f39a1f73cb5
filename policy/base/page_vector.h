// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "policy/base/kernel_memory.h"

namespace cuslice {

// A growing array of plain values in memory of the kernel's, for use where the host's malloc must not be called. Not
// thread-safe. Never shrinks, and frees its memory only when told to, as most of these live as long as the process.
template <typename T>
class PageVector {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    size_t size() const { return size_; }
    T& operator[](size_t i) { return data_[i]; }

    // False, and nothing changed, if the kernel gives no memory.
    bool push_back(const T& value) {
        if (size_ == capacity_ && !grow())
            return false;
        data_[size_++] = value;
        return true;
    }
    // Both keep the order of the others; insert_at is false, and nothing changed, if the kernel gives no memory.
    bool insert_at(size_t i, const T& value) {
        if (!push_back(value))
            return false;
        std::memmove(data_ + i + 1, data_ + i, (size_ - 1 - i) * sizeof(T));
        data_[i] = value;
        return true;
    }
    void erase_at(size_t i) { std::memmove(data_ + i, data_ + i + 1, (--size_ - i) * sizeof(T)); }

    // Order is not kept.
    void remove_at(size_t i) { data_[i] = data_[--size_]; }
    void release() {
        if (data_)
            munmap(data_, capacity_ * sizeof(T));
        data_ = nullptr;
        size_ = capacity_ = 0;
    }

  private:
    bool grow() {
        const size_t first = sizeof(T) > 4096 ? sizeof(T) : 4096;
        const size_t bytes = capacity_ ? capacity_ * sizeof(T) * 2 : first;
        void* const memory = map_kernel_memory(bytes);
        if (!memory)
            return false;
        if (data_) {
            std::memcpy(memory, data_, size_ * sizeof(T));
            munmap(data_, capacity_ * sizeof(T));
        }
        data_ = static_cast<T*>(memory);
        capacity_ = bytes / sizeof(T);
        return true;
    }

    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace cuslice
