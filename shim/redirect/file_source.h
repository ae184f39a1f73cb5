// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "elf/file.h"
#include "elf/window.h"
#include "shim/redirect/file_copy.h"
#include "virtual_gpu/driver/scratch.h"

namespace cuslice {

// An open file for elf_open(), of which whole pages are read.
class FileSource {
  public:
    explicit FileSource(int file) : source_{read}, file_(file) {
        if (pages_)
            elf_open_window(&*pages_, &source_);
    }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;
    operator elf_source*() { return pages_ ? &pages_->source : &source_; }
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
    Scratch<elf_window> pages_;
};

}  // namespace cuslice
