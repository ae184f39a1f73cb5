// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "elf/file.h"
#include "elf/object.h"
#include "shim/redirect/file_copy.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

// The symbol table of a program's or a library's own file, which the loader doesn't map. For one thread.
class ObjectSymbols {
  public:
    ObjectSymbols() = default;
    ObjectSymbols(const ObjectSymbols&) = delete;
    ObjectSymbols& operator=(const ObjectSymbols&) = delete;
    ~ObjectSymbols();

    enum class Found : uint8_t {
        table,
        no_file,     // another one than what is mapped, as the loader's is for a program that it was told to start
        unreadable,  // or there is no memory for a copy of the table
        stripped,    // no symbol table
        no_runtime,  // no name in it is one that NVIDIA's static runtime alone has (kPrivateNames)
    };
    // One of both, once. Whatever the file has in it, nothing outside is read.
    Found read_program();
    // A library that the loader has mapped and not yet relocated.
    Found read_library(const link_map& library);

    const SymbolTable& table() const { return table_; }
    // Device code, as nvcc puts it into a program. Known even of one that is stripped.
    bool has_device_code() const { return device_code_; }
    // A shared runtime, by its name in what the object is linked to.
    bool shares_runtime() const { return shares_runtime_; }
    // The loader writes to the code (DT_TEXTREL): what it writes is not in the file.
    bool text_changes() const { return text_changes_; }
    // Offset in the file of an address of the code.
    uint64_t offset_of(uintptr_t code) const { return code - table_.code.begin + code_offset_; }
    // Descriptor of the file, as long as this lives; -1 if there is none.
    int file() const { return file_; }

  private:
    Found read(const char* path);
    void heed_all(const elf_object& object);
    void heed(const elf_object& object, const Elf64_Dyn& entry);
    bool measure();
    bool is_of_object(elf_file& file) const;
    Found read_sections();
    Found copy_table(const Elf64_Shdr& symbols, const Elf64_Shdr& texts);
    bool names_runtime(const Elf64_Shdr& texts, bool* failed) const;

    int file_ = -1;
    FileCopy symbols_, texts_;
    SymbolTable table_;
    uint64_t code_offset_ = 0;
    bool device_code_ = false, text_changes_ = false, shares_runtime_ = false;
    std::span<const Elf64_Phdr> segments_;
};

}  // namespace cuslice
