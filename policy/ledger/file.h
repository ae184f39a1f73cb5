// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include "policy/base/own_descriptors.h"
#include "policy/ledger/folder.h"
#include "policy/ledger/layout.h"

// One ledger's file, mapped: nothing that lies under its name is trusted before its kind and its owner are known.
namespace cuslice::ledger {

// Condition in which the file was found. Whoever asks for it reports a repair, once.
enum class Found : uint8_t { good, made, rebuilt };

// A user's file of one GPU, mapped. Its descriptor, for reading, stays open as long as it is used.
struct OpenFile {
    File* file = nullptr;
    int descriptor = -1;
    Found found = Found::good;
    FileIdentity identity;  // of the file that the descriptor has to be of: the host may close or reuse it
    bool there() const { return file != nullptr; }
};

// How a file is opened that somebody else may have put there: it may be a FIFO, or under a lease.
inline constexpr int kSafely = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
// "/proc/self/fd/3", which leads to the descriptor's file also where that has no name any more.
struct DescriptorLink {
    explicit DescriptorLink(int descriptor);
    char text[40];
};
// Reads all of them. False if that can't be done.
bool read_at(int file, void* to, size_t bytes, size_t offset);
// True if it is a regular file of this user's. `why`, which may be null, says what it is otherwise.
bool is_ours(const struct stat& info, const char* path, LedgerError* why);
// Maps a file, whatever is in it; null if the kernel won't.
File* map_file(int file);
// The same if it is a ledger of this version, and of this GPU unless `uuid` is null; otherwise null.
File* map_good(int file, const struct stat& info, const char* uuid);
/// The mapping of map_good(), with a descriptor for reading alone, where the host doesn't expect one: a program that
/// inherits it can neither change nor shorten the file. `keep_over_exec`: it is left to the program that this process
/// becomes, so that a file which is removed can be found by it.
OpenFile opened(File* mapped, int file, const char* path, const struct stat& info, bool keep_over_exec);

// Maps a file of ours that has no name any more. `file` stays the caller's if it is none.
bool map_removed(int file, const char* uuid, OpenFile* out);

void close_file(OpenFile* open_file);
// In a forked child, whose copy it is.
void leave_to_parent(OpenFile* open_file);

/// The copy that a process leaves in the place of a file that it has lost: threads may be about to read a figure there.
class LeftCopy {
  public:
    /// One before it takes no memory any more, and can still be read: a thread may have been held up all the time.
    void take(File* copy);
    /// Nobody reads there any more.
    void drop();

  private:
    File* copy_ = nullptr;
};

// State of a file. gone: its place in the folder is no longer its own. damaged: its header isn't whole. unknown: the
// descriptor is not this file's any more, as a program may have closed all it found.
enum class State : uint8_t { whole, gone, damaged, unknown };
State state_of(const OpenFile& open_file, const char* uuid);

// True if the descriptor or, where the host has closed that, the name says that the file is gone. Takes no lock of
// the file's. False where it can't be told.
bool looks_gone(const OpenFile& open_file, const char* path);
// Opens the file again under its name. False if that can't be done; `*gone`: there is another file by now, whatever it
// is, or none.
bool open_again(const char* path, OpenFile* open_file, bool* gone);

// True if the process may have a file so large: past its limit the kernel sends a signal, which would end the host.
bool may_be_as_large_as(size_t bytes);
// Takes the space, which a file may have as a hole. Sets errno.
bool allocate(int file, size_t from, size_t bytes);
// Takes the space of members [from, to) and of their stripes.
bool allocate_members(int file, uint32_t from, uint32_t to);
// Takes the space of the members below `count`, and of their stripes. With the header's lock. The file is opened for
// writing by its name or by /proc; false also where neither leads to it.
bool make_room(const OpenFile& open_file, const char* path, uint32_t count);

// Another user's file, to be read; -1 unless it belongs to who its name says, is whole and of this version. `*missing`:
// there is none, or another user put it there: that is looked at before anything is opened. `*owner`, which may be
// null: as this process sees who owns it.
int open_foreign(const char* path, unsigned user, bool* missing, LedgerError* why, unsigned* owner = nullptr);

}  // namespace cuslice::ledger
