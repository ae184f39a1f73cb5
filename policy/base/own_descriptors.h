// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>

#include <compare>
#include <cstddef>
#include <cstdint>

// Files of ours in somebody else's process. The program may close every descriptor that it doesn't know and have files
// of its own under the numbers; a write may end it by a signal, or stop it. Nothing here changes errno, but as it says.
namespace cuslice {

// Identity of the file that a descriptor stands for.
struct FileIdentity {
    uint64_t device = 0, inode = 0;
    uint32_t mode = 0;  // st_mode; 0: there is none
    auto operator<=>(const FileIdentity&) const = default;
};
inline FileIdentity identity_of(const struct stat& info) { return {info.st_dev, info.st_ino, info.st_mode & S_IFMT}; }
// A mode of 0 if it is closed.
FileIdentity identity_of(int descriptor);
// True if the descriptor is open, and of this file.
bool is_of(int descriptor, const FileIdentity& file);

// Moves a descriptor that is to stay open to a number that programs don't count on (10 or above) and closes it at exec.
// Returns the new number, or the old one where there is no other, as far as RLIMIT_NOFILE goes.
int keep_descriptor(int descriptor);

// The same for one that may outlive an exec, when the program is to have it.
int keep_descriptor(int descriptor, bool over_exec);

// False where the kernel would answer a file of that size with SIGXFSZ, which ends the program (RLIMIT_FSIZE).
bool file_may_have(uint64_t bytes);

// Writes a text where it can be written at once: nothing waits for a full pipe or a stopped terminal, and the program
// gets no signal for a reader that has gone, a file that is too large or a terminal in the foreground of others. What
// can't be written is lost.
void write_at_once(int descriptor, const char* text, size_t bytes);

}  // namespace cuslice
