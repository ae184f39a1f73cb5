// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "config/text.h"
#include "elf/file.h"
#include "shim/redirect/file_copy.h"
#include "shim/redirect/plan.h"

namespace cuslice {

// The file of a shared runtime, by the names that it exports, as it can't be loaded yet. For one thread.
class RuntimeFile {
  public:
    RuntimeFile() = default;
    RuntimeFile(const RuntimeFile&) = delete;
    RuntimeFile& operator=(const RuntimeFile&) = delete;
    ~RuntimeFile() { forget(); }

    // In place of the one before. False for a file that can't be read, or is none of this major version for this
    // processor. Whatever is in it, nothing outside is read.
    bool read(const char* path, int major);
    // Its functions, which have no addresses: only whether there is one.
    SharedRuntime functions();

  private:
    bool read_sections(elf_file& file, int descriptor);
    bool has_soname(const elf_file& file, int major) const;
    bool note_names(size_t symbols, size_t text_bytes);
    void forget();
    static void* find(const char* name, void* self);
    bool exports(const char* name) const;

    // CUDA 13.0's runtime exports some 500 names.
    static constexpr size_t kMost = 65536;

    FixedText<4096> path_;
    FileCopy symbols_, texts_;
    const char** names_ = nullptr;  // in their order
    size_t room_ = 0, count_ = 0;
};

}  // namespace cuslice
