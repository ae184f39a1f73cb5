// SPDX-License-Identifier: Apache-2.0
// Reads facts about an executable or a library from its file, without loading it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "elf/file.h"
#include "elf/window.h"

namespace cuslice::cli {

/// A file that is open to be read. Of what is no ELF file of 64 bits, or is cut off, nothing is known: empty answers.
class ElfFile {
  public:
    explicit ElfFile(const std::string& path);
    ~ElfFile();
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;

    /// True for an ELF file of any kind, also of 32 bits.
    bool is_elf() const;
    /// True for one of 64 bits, for this machine.
    bool is_native() const { return known_ && elf_is_native(&file_.header); }
    /// PT_INTERP: the loader that the kernel starts in its place. Empty if it has none, as what is linked statically.
    std::string interpreter() const;
    /// DT_SONAME.
    std::string soname() const { return name_of(DT_SONAME); }
    /// True if it needs a library whose name begins with `prefix`.
    bool needs(std::string_view prefix) const;
    /// DT_RPATH or DT_RUNPATH, as written: a list with colons.
    std::string search_path(Elf64_Sxword tag) const { return name_of(tag); }
    bool has_section(std::string_view name) const;
    /// True if .dynsym defines the symbol for others (exports), or wants it from others (asks_for).
    bool exports(std::string_view symbol) const { return has_symbol(symbol, true); }
    bool asks_for(std::string_view symbol) const { return has_symbol(symbol, false); }
    /// True if the file has these bytes anywhere.
    bool contains(std::string_view bytes) const;

  private:
    struct Source : elf_source {
        int descriptor = -1;
        off_t size = 0;
    };
    static size_t read(elf_source* source, uint64_t offset, void* into, size_t size);
    std::string read_all(uint64_t offset, uint64_t size) const;
    std::string text(uint64_t offset) const;
    std::string name_of(Elf64_Sxword tag) const;
    template <typename Visit>
    bool any_name(Elf64_Sxword tag, Visit visit) const;
    bool has_symbol(std::string_view name, bool defined) const;

    mutable Source source_;
    mutable elf_window window_{};
    elf_file file_{};
    bool known_ = false;
};

}  // namespace cuslice::cli
