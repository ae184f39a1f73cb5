#pragma once
#include "policy/ledger/layout.h"
#include "policy/ledger/locks.h"

// The ledger's files in their folder, where anybody may put anything: nothing in it is trusted before its kind and its
// owner are known, and nothing is waited for past a deadline.
namespace cuslice::ledger {

inline constexpr std::size_t kPathBytes = 512;

// Why a ledger can't be used, for people: what was tried and what the kernel said.
struct Failure {
    char text[kPathBytes + 128] = {};
    // The machine has no place for one under this name, as in a container with little or no /dev/shm: whoever was to
    // share a limit can't. (What another user has put there, or has locked, is no such reason: nobody may stop others.)
    bool no_place = false;
};

// What was repaired: said once by whoever asks for it.
enum class Found : std::uint8_t { good, made, rebuilt };

// A user's file of one GPU, mapped. Its descriptor stays open as long as it is used: closing any descriptor of a file
// gives up all locks of the process on it.
struct OpenFile {
    File* file = nullptr;
    int descriptor = -1;
    std::uint64_t device = 0, inode = 0;  // which file the descriptor has to be of: the host may close or reuse it
    Found found = Found::good;
    bool there() const { return file != nullptr; }
};

// "/dev/shm/cuslice/1000-GPU-….4.ledger": user, GPU, version. False if it is too long.
bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]);
// The reverse, of a file's name in the folder; false for what is no ledger of this version.
bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]);

// Makes the folder if it is not there: the usual one for everybody and sticky, like /tmp; one that somebody names for
// that user alone, since a setting may come from someone who would like to write there.
bool make_folder(const char* folder, Failure* why);
unsigned folder_mode(const char* folder);

// Maps this user's file of a GPU of `capacity` bytes, and makes it if need be: the space is taken before it is used,
// for a page that can't be had later would be a SIGBUS in the host. A file of another size or with garbage is replaced,
// its old users keeping what they have mapped. `keep_over_exec`: the descriptor, and with it this process's locks,
// outlives exec. A file that is made begins with what processes hold that still use one which was removed (carry.h), of
// which this process may have one mapped: `gone`, or null.
bool open_own(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec,
              const Deadline& deadline, OpenFile* out, Failure* why, const OpenFile* gone = nullptr);

// The same, but only if it is there and good.
bool open_existing(const char* folder, const char* uuid, OpenFile* out, Failure* why);

// Maps a file of ours that has no name any more. `file` stays the caller's if it is none.
bool map_removed(int file, const char* uuid, OpenFile* out);

void close_file(OpenFile* open_file);
// In a forked child: its copy of the descriptor could keep a lock of the parent's.
void leave_to_parent(OpenFile* open_file);

// Whether its place in the folder is still its own, and its header whole.
enum class State : std::uint8_t { whole, gone, damaged, unknown };
State state_of(const OpenFile& open_file, const char* uuid);

// Whether the descriptor is still this file's: a program may have closed all it found.
bool has_descriptor(const OpenFile& open_file);
// Whether the descriptor, which the host may have closed, or the name says that the file is gone: without its lock.
// What can't be told is not gone.
bool looks_gone(const OpenFile& open_file, const char* path);
// Opens the file again under its name. False if that can't be done; `*gone`: there is another file by now, or none.
bool open_again(const char* path, OpenFile* open_file, bool* gone);

// Takes the space of the members below `count`, and of their lanes. With byte 0 locked.
bool make_room(const OpenFile& open_file, std::uint32_t count);

// Another user's file, to be read; -1 unless it belongs to who its name says, is whole and of this version. `*missing`:
// there is none.
int open_foreign(const char* path, unsigned user, bool* missing, Failure* why);

}  // namespace cuslice::ledger
