// SPDX-License-Identifier: Apache-2.0
// A source that asks another one for pages, not for each few bytes: a file's beginning, which describes it, stays.
#pragma once

#include "elf/file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { elf_window_size = 4096 };

/// A piece of a source, as it was when it was read.
struct elf_piece {
    uint64_t offset;
    size_t size;  // of what was read
    char bytes[elf_window_size];
};

struct elf_window {
    struct elf_source source;
    struct elf_source* from;
    struct elf_piece head, last;
};

/// Reads the beginning of `from`, which must outlive the window.
void elf_open_window(struct elf_window* window, struct elf_source* from);

/// Length of the text at `offset`, without its end, as far as it was copied into `into`, which has `size` bytes. False
/// for one that is longer or that the source ends in; `into` holds anything then.
bool elf_read_text(struct elf_source* source, uint64_t offset, char* into, size_t size, size_t* length);

#ifdef __cplusplus
}
#endif
