// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "elf/file.h"
#include "elf/object.h"
#include "shim/redirect/file_copy.h"
#include "shim/redirect/symbol_table.h"

namespace cuslice {

// The symbol table of the program's own file, which the loader doesn't map. For one thread.
class ProgramSymbols {
  public:
    ProgramSymbols() = default;
    ProgramSymbols(const ProgramSymbols&) = delete;
    ProgramSymbols& operator=(const ProgramSymbols&) = delete;
    ~ProgramSymbols();

    enum class Found : uint8_t {
        table,
        no_file,       // another one than what runs: the loader's, which was started by name
        unreadable,    // or there is no memory for a copy of the table
        stripped,      // no symbol table
        text_changes,  // the loader writes to the program's code (DT_TEXTREL): what it wrote is not in the file
    };
    // Once. Whatever the file has in it, nothing outside is read.
    Found read();

    const SymbolTable& table() const { return table_; }
    // Device code, as nvcc puts it into a program. Known even of one that is stripped.
    bool has_device_code() const { return device_code_; }
    // A shared runtime, by its name in what the program is linked to.
    bool shares_runtime() const { return shares_runtime_; }
    // Offset in the file of an address of the program's code.
    uint64_t offset_of(uintptr_t code) const { return code - table_.code.begin + code_offset_; }
    // From now on names stay for good.
    void keep_names() { texts_.keep(); }
    // Descriptor of the file, as long as this lives; -1 if there is none.
    int file() const { return file_; }

  private:
    bool find_program();
    void heed(const elf_object& object, const Elf64_Dyn& entry);
    bool is_of_program(elf_file& file) const;
    Found read_sections();
    Found copy_table(const Elf64_Shdr& symbols, const Elf64_Shdr& texts);

    int file_ = -1;
    FileCopy symbols_, texts_;
    SymbolTable table_;
    uint64_t code_offset_ = 0;
    bool device_code_ = false, text_changes_ = false, shares_runtime_ = false;
    std::span<const Elf64_Phdr> segments_;
};

}  // namespace cuslice
