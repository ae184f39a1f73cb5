// SPDX-License-Identifier: Apache-2.0
// Reads facts about an executable or a library from its file, without loading it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "virtual_gpu/driver/elf_machine.h"

namespace cuslice::cli {

/// A file, mapped to be read. Of what is no ELF file of 64 bits, or is cut off, nothing is known: empty answers.
class ElfFile {
  public:
    explicit ElfFile(const std::string& path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    /// True for an ELF file of any kind, also of 32 bits.
    bool is_elf() const { return elf_; }
    /// True for one of 64 bits, for this machine.
    bool is_native() const { return whole_ && header_.e_machine == kElfMachine; }
    /// PT_INTERP: the loader that the kernel starts in its place. Empty if it has none, as what is linked statically.
    std::string_view interpreter() const;
    /// DT_SONAME.
    std::string_view soname() const;
    /// True if it needs a library whose name begins with `prefix`.
    bool needs(std::string_view prefix) const;
    /// DT_RPATH or DT_RUNPATH, as written: a list with colons.
    std::string_view search_path(Elf64_Sxword tag) const;
    bool has_section(std::string_view name) const;
    /// True if .dynsym defines the symbol for others (exports), or wants it from others (asks_for).
    bool exports(std::string_view symbol) const { return has_symbol(symbol, true); }
    bool asks_for(std::string_view symbol) const { return has_symbol(symbol, false); }
    /// True if the file has these bytes anywhere.
    bool contains(std::string_view bytes) const;

  private:
    template <typename Item>
    bool read(std::uint64_t offset, std::uint64_t index, Item* item) const;
    std::string_view text(std::uint64_t offset) const;
    bool has_symbol(std::string_view name, bool defined) const;
    bool segment(std::uint32_t type, Elf64_Phdr* found) const;
    std::uint64_t offset_of(std::uint64_t address) const;
    std::string_view name_of(Elf64_Sxword tag) const;
    template <typename Visit>
    void each_name(Visit visit) const;

    void* data_;
    std::size_t size_ = 0;
    bool elf_ = false, whole_ = false;
    Elf64_Ehdr header_{};
};

}  // namespace cuslice::cli
