// SPDX-License-Identifier: Apache-2.0
// How the kernel started this process, and the same program once more in its place.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

/// The words that the kernel has put on the stack: all of it can be changed before the program sees it.
struct start {
    char** arguments;
    char** environment;
    Elf64_auxv_t* facts;
};

/// True where the loader tells the place on the stack.
bool find_start(struct start* start);

/// The value of an entry of the auxiliary vector; 0 if there is none.
uint64_t fact(const struct start* start, uint64_t type);

/// The last entry that begins with `name`, which is "NAME=", or null. The loader heeds the last, getenv() the first.
char** last_variable(const struct start* start, const char* name);

/// How this process was started once more, by its own word: that is in the environment, where anybody could have put
/// it. It decides nothing, unless against the program.
enum how {
    at_first,
    with_library = 'l',  // in LD_PRELOAD, as its first entry
    without_gpus = 'n',  // as the library is broken
    with_older = 'o',    // without GPUs, and with the older library in LD_PRELOAD
    in_order = 'c',      // without the C library in LD_PRELOAD
};
enum how how_started(const struct start* start);
bool is_marked(const struct start* start);
void remove_mark(const struct start* start);

/// Takes the traces of a second start away: the mark, `library` as LD_PRELOAD's first entry, and the names that the
/// kernel has for the process and its file.
void tidy_up(const struct start* start, const char* library);

/// A variable that is another for the program's second start. Null: it is left out.
struct variable {
    const char* name;  // "NAME="
    const char* value;
};

/// Starts the running file once more, in this process. Comes back where that can't be done.
void start_again(const struct start* start, enum how how, const struct variable* changed);

/// Ends the process with exit code 127, also where a filter keeps the kernel from that.
_Noreturn void end_program(void);
