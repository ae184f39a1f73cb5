// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

namespace cuslice {

// Memory that a slow path needs for a moment, all zero: a host's threads may have stacks of 32 KiB, of which the driver
// wants most. Some pages are there once for all, as the kernel's take a call to come, one to go and a fault each in
// between. A bit says that a page is in use. Whoever leaves in the middle (a longjmp, a fork beside another thread)
// leaves bits behind, and if there is no run of pages any more the kernel is asked.
class ScratchPages {
  public:
    static constexpr size_t kPage = 4096, kPages = 16;

    // Null if there is no such run.
    static void* take(size_t bytes) {
        const size_t count = pages_of(bytes);
        if (count > kPages)
            return nullptr;
        uint32_t taken = taken_.load(std::memory_order_relaxed);
        for (size_t first = 0; first + count <= kPages;) {
            if (taken & run(first, count)) {
                first++;
            } else if (taken_.compare_exchange_weak(taken, taken | run(first, count), std::memory_order_acquire,
                                                    std::memory_order_relaxed)) {
                return std::memset(pages_[first], 0, bytes);
            }
        }
        return nullptr;
    }
    // False if it is not from here.
    static bool give_back(void* memory, size_t bytes) {
        const uintptr_t offset = reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(pages_);
        if (offset >= sizeof(pages_))
            return false;
        taken_.fetch_and(~run(offset / kPage, pages_of(bytes)), std::memory_order_release);
        return true;
    }

  private:
    static constexpr size_t pages_of(size_t bytes) { return (bytes + kPage - 1) / kPage; }
    static constexpr uint32_t run(size_t first, size_t count) { return ((1u << count) - 1) << first; }

    alignas(kPage) static inline constinit char pages_[kPages][kPage] = {};
    static inline constinit std::atomic<uint32_t> taken_{0};  // elsewhere, as it would have a page to itself
};

// Null if the kernel gives none.
inline void* take_scratch(size_t bytes) {
    if (void* const memory = ScratchPages::take(bytes))
        return memory;
    const int saved_errno = errno;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? nullptr : memory;
}
inline void give_back_scratch(void* memory, size_t bytes) {
    if (memory && !ScratchPages::give_back(memory, bytes))
        munmap(memory, bytes);
}

// The same for one large value. False if there is no memory.
template <typename T>
class Scratch {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= ScratchPages::kPage);

  public:
    Scratch() {
        void* const memory = take_scratch(sizeof(T));
        value_ = memory ? new (memory) T : nullptr;
    }
    ~Scratch() { give_back_scratch(static_cast<void*>(value_), sizeof(T)); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    explicit operator bool() const { return value_ != nullptr; }
    T& operator*() const { return *value_; }
    T* operator->() const { return value_; }

  private:
    T* value_;
};

}  // namespace cuslice
