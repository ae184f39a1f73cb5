// SPDX-License-Identifier: Apache-2.0
// ELF files of 64 bits and little-endian, read piece by piece: they are never mapped, as a mapping of a file that
// becomes shorter ends the process with SIGBUS. Any file may be read: nothing in it makes these functions read or write
// outside what they were given, or go on for long. Thread-safe as far as the source is.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Bytes that lie somewhere. Whoever has them puts this struct first into its own.
struct elf_source {
    /// Copies up to `size` bytes from `offset` on, and returns how many there were.
    size_t (*read)(struct elf_source* source, uint64_t offset, void* into, size_t size);
};

/// True for the beginning of an ELF file of 64 bits, little-endian.
bool elf_is_known(const Elf64_Ehdr* header);
/// True if it is for this build's processor as well.
bool elf_is_native(const Elf64_Ehdr* header);

struct elf_file {
    struct elf_source* source;
    Elf64_Ehdr header;
};

/// False for a source that begins otherwise than elf_is_known() wants.
bool elf_open(struct elf_file* file, struct elf_source* source);

enum { elf_most_segments = 128, elf_most_dynamic_entries = 1024 };  // what comes behind is left out
#define ELF_NOWHERE UINT64_MAX

/// The header of a segment or section; false past the last one, or where the file ends before.
bool elf_segment(const struct elf_file* file, size_t index, Elf64_Phdr* segment);
bool elf_section(const struct elf_file* file, size_t index, Elf64_Shdr* section);
/// The last segment of this type, which is the one that the loader heeds.
bool elf_find_segment(const struct elf_file* file, uint32_t type, Elf64_Phdr* found);
/// Offset in the file of the byte that is loaded to this address; ELF_NOWHERE if there is none.
uint64_t elf_offset_of(const struct elf_file* file, uint64_t address);

/// The dynamic section of a file: where its entries and its texts are.
struct elf_dynamic {
    uint64_t entries, texts;  // offsets in the file; ELF_NOWHERE
};
struct elf_dynamic elf_find_dynamic(const struct elf_file* file);
/// An entry of it; false at its end.
bool elf_dynamic_entry(const struct elf_file* file, const struct elf_dynamic* dynamic, size_t index, Elf64_Dyn* entry);
/// Offset in the file of the text that an entry names; ELF_NOWHERE if there are no texts.
uint64_t elf_text_of(const struct elf_dynamic* dynamic, const Elf64_Dyn* entry);

#ifdef __cplusplus
}
#endif
