// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuslice {

// Part of a file in memory of its own: a mapping of a file that becomes shorter ends the process.
class FileCopy {
  public:
    FileCopy() = default;
    FileCopy(const FileCopy&) = delete;
    FileCopy& operator=(const FileCopy&) = delete;
    ~FileCopy();

    // In place of what was there. A zero follows what was copied. False if the file ends before, or there is no memory.
    bool read(int file, uint64_t offset, uint64_t bytes);
    const void* data() const { return data_; }

  private:
    void remove();

    void* data_ = nullptr;
    size_t bytes_ = 0;
};

// Copies up to `size` bytes from `offset` on, and returns how many there were. Sets `failed` where the kernel refuses;
// a file that ends before is no failure.
size_t read_at(int file, uint64_t offset, void* into, size_t size, bool* failed);

}  // namespace cuslice
