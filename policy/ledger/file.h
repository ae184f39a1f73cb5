#pragma once
#include "policy/ledger/layout.h"

// The ledger's files in their folder.
namespace cuslice::ledger {

inline constexpr std::size_t kPathBytes = 512;

// Why a ledger can't be used, for people: what was tried and what the kernel said.
struct Failure {
    char text[kPathBytes + 128] = {};
};

// What was repaired: said once by whoever asks for it.
enum class Found : std::uint8_t { good, made, rebuilt };

// A user's file of one GPU, mapped. Its descriptor stays open as long as it is used: closing any descriptor of a file
// gives up all locks that a process has on it.
struct OpenFile {
    File* file = nullptr;
    int descriptor = -1;
    std::uint64_t device = 0, inode = 0;  // which file the descriptor has to be of: the host may close or reuse it
    Found found = Found::good;
    bool there() const { return file != nullptr; }
};

// "/dev/shm/cuslice/1000-GPU-….ledger". False if it is too long.
bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]);
// The reverse, of a file's name in the folder; false for what is no ledger.
bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]);

// Makes the folder if it is not there: the usual one for everybody and sticky, like /tmp; one that somebody names for
// that user alone, since a setting may come from someone who would like to write there.
bool make_folder(const char* folder, Failure* why);
unsigned folder_mode(const char* folder);

// Maps this user's file of a GPU of `capacity` bytes, and makes it if need be: all of its space is taken first, for a
// page that can't be had later would be a SIGBUS in the host. A file of another version, another size or with garbage
// is replaced, its old users keeping what they have mapped. `keep_over_exec`: the descriptor, and with it this
// process's locks, outlives exec.
bool open_own(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, OpenFile* out,
              Failure* why);

// The same, but only if it is there and good.
bool open_existing(const char* folder, const char* uuid, OpenFile* out);

void close_file(OpenFile* open_file);

// Makes sure that the descriptor is this file's: a program may have closed all it found. Opens the file again under its
// name then. False if that is another file by now; `*again`: a new descriptor, on which no lock is held.
bool same_file(const char* path, OpenFile* open_file, bool* again);

// Another user's file, to be read: true only if it belongs to who its name says, is whole and of this version.
int open_foreign(const char* path, unsigned user);

}  // namespace cuslice::ledger
