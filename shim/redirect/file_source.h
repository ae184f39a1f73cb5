// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "elf/file.h"
#include "shim/redirect/file_copy.h"

namespace cuslice {

// An open file for elf_open().
class FileSource {
  public:
    explicit FileSource(int file) : source_{read}, file_(file) {}
    operator elf_source*() { return &source_; }
    // The kernel has refused to read it.
    bool failed() const { return failed_; }

  private:
    static size_t read(elf_source* source, uint64_t offset, void* into, size_t size) {
        auto& from = *reinterpret_cast<FileSource*>(source);
        return read_at(from.file_, offset, into, size, &from.failed_);
    }

    elf_source source_;
    int file_;
    bool failed_ = false;
};

}  // namespace cuslice
