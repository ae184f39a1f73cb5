// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuslice {

// Copies `size` bytes of this process's own memory at `memory`, which may be anything: where nothing is mapped, a load
// of ours would fault, and the kernel says so instead. How many bytes there were. Keeps errno. Thread-safe; no
// cancellation point.
size_t read_own_memory(uintptr_t memory, void* into, size_t size);

// The first bytes of an object of somebody else's, read at once, as far as there are any.
template <size_t Capacity>
class OwnMemory {
  public:
    explicit OwnMemory(uintptr_t memory) : size_(read_own_memory(memory, bytes_, Capacity)) {}
    // The number at this offset; 0 where nothing was read.
    template <typename T>
    T at(size_t offset) const {
        T value{};
        if (has(offset, sizeof value))
            __builtin_memcpy(&value, bytes_ + offset, sizeof value);
        return value;
    }
    bool has(size_t offset, size_t size) const { return size <= size_ && offset <= size_ - size; }
    // Only where has() says so.
    const unsigned char* bytes(size_t offset) const { return bytes_ + offset; }

  private:
    unsigned char bytes_[Capacity];
    size_t size_;
};

}  // namespace cuslice
