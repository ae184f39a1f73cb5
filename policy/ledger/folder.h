// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "policy/base/own_descriptors.h"

// The folder of all ledgers, where anybody may put anything, and the names of the files in it.
namespace cuslice::ledger {

inline constexpr size_t kPathBytes = 512;

// Why a ledger can't be used, for people: what was tried and what the kernel said.
struct LedgerError {
    char text[kPathBytes + 128] = {};
    // The machine has no place for one under this name, as in a container with little or no /dev/shm: whoever was to
    // share a limit can't. (What another user has put there, or has locked, is no such reason: nobody may stop others.)
    bool no_place = false;
    // Another user stands in the way: whoever owns what has the name, or most of what the folder is full of.
    bool stranger = false;
    unsigned stranger_user = 0;
};

// Sets why->text, as printf writes it. `why` may be null.
[[gnu::format(printf, 2, 3)]] void set_text(LedgerError* why, const char* format, ...);
// Sets it to "`what` `path`: " and what errno means. `why` may be null.
void set_failure(LedgerError* why, const char* what, const char* path);
// The same of a file that can't be made: there may be no room for one.
void set_no_room(LedgerError* why, const char* what, const char* path);
// Sets who stands in the way. `why` may be null.
void set_stranger(LedgerError* why, unsigned user);
// Sets it to say that another user has every name that this user's ledger could have. `why` may be null.
void set_taken(LedgerError* why, const char* folder, unsigned user);
// True if the error means that the machine, or this user, has no space left.
bool means_no_room(int error);

/// So many names a user's ledger of one GPU may have: anybody may have put something under one of them. The first that
/// belongs to the user counts.
inline constexpr unsigned kMaxNames = 256;
/// "/dev/shm/cuslice/1000-GPU-….6.ledger": user, GPU, version; "….6-3.ledger" is name number 3. False if it is too
/// long.
bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes], unsigned number = 0);
/// The reverse, of a file's name in the folder; false for what is no ledger of this version. `number` may be null.
bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64], unsigned* number = nullptr);

/// The C library's fstat carries a version that old ones lack. False: errno says why not.
bool stat_of(int file, struct stat* info);
/// The same for a name in a folder, or for a path where that is AT_FDCWD. A link isn't followed.
bool stat_name(int folder, const char* name, struct stat* info);
/// Lets all users read a file of this user's, whatever the host's umask. False where that is refused: errno says why.
bool let_all_read(int file);

/// The folder, and the user whose files in it are meant.
struct UserFolder {
    int descriptor = -1;
    unsigned user = 0;   // as the names have it
    unsigned owner = 0;  // as this process sees who owns the files
    // Null until it is known. An empty text would be an address, which the loader writes into each of many objects.
    const char* path = nullptr;
};

/// Finds the name of this user's ledger. Nothing is opened: what another user put there is not even looked
/// at. `*number`: that one, or else the first that is free. `*stranger`: who has the first one, where others have all.
enum class Named : uint8_t { by_us, free, by_others };
Named find_name(const UserFolder& where, const char* uuid, unsigned* number, unsigned* stranger);
/// True if the user has a ledger under one of the first `count` names, `without` left out.
bool has_name(const UserFolder& where, const char* uuid, unsigned count, unsigned without);

/// The folder, open for as long as a ledger is, for programs that change their root or close what they find.
class FolderHandle {
  public:
    /// False: errno says why it can't be opened.
    bool open(const char* path);
    /// -1: the program has closed it, and the path leads to another one, or to none. Of one that was removed: the one
    /// that has its place by now.
    int descriptor();
    void close();
    /// In a forked child, whose copy it is.
    void forget() { close(); }

  private:
    bool take(int opened);
    char path_[kPathBytes] = {};
    int descriptor_ = -1;
    FileIdentity identity_;
};

// Makes the folder if it is not there: the usual one for everybody and sticky, like /tmp; one that somebody names for
// that user alone, since a setting may come from someone who would like to write there.
bool make_folder(const char* folder, LedgerError* why);
unsigned folder_mode(const char* folder);

}  // namespace cuslice::ledger
