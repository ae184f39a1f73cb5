// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/ledger/folder.h"
#include "policy/stats/layout.h"

namespace cuslice::stats {

using ledger::LedgerError;

// The process that a file is of. A pid alone is used again; with its start time it never is.
struct Name {
    uint64_t pid_namespace = 0;  // the inode of /proc/PID/ns/pid: where `pid` means something
    int32_t pid = 0;
    uint64_t start_time = 0;  // field 22 of /proc/PID/stat
};

using NameText = char[96];

// "4026531836-812-31415.figures"
void write_name(const Name& name, NameText& text);
// False for what is no such file's.
bool parse_name(const char* text, Name* name);

/// Makes this process's file in the folder, for its owner alone, and maps it for as long as the process lives. All of
/// its space is taken first: a page that can't be had later would be a SIGBUS in the host. Null if it can't be had.
File* make_own(const char* folder, LedgerError* why);

/// Removes the name of this process's file at its end; a mapping of it stays. Does nothing in a process that made none,
/// such as a forked child. Thread-safe.
void remove_own(const char* folder);

/// Removes files whose processes are gone, as far as this user may. /proc tells nothing of other pid namespaces: their
/// files stay.
void remove_dead(const char* folder);

}  // namespace cuslice::stats
