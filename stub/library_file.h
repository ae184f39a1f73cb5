// SPDX-License-Identifier: Apache-2.0
// A library as its file describes it, which is not loaded.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stub/work.h"

struct library_file {
    const char *rpath, *runpath;  // null where there is none; rpath too where there is a runpath, as for the loader
    const char** needs;           // the names as they are in the file
    size_t needs_count;
    bool incomplete;  // there may be more than was read
};

enum reading_result { no_library, library_read, library_unknown };

/// no_library for a file that is not there, or is nothing that the loader would open; library_unknown where that can't
/// be told now, as the kernel or `work` has no room. One that is only odd is read as far as it goes: what becomes of it
/// is for the loader to say. Whatever is in the file, nothing but `work` is written to; texts and arrays lie there. The
/// file is read with pread, so that one that becomes shorter meanwhile does no harm, and neither does one that is no
/// file but a pipe or a terminal.
enum reading_result read_library_file(const char* path, struct work* work, struct library_file* library);
