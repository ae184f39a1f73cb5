#pragma once
#include <cstddef>

// The folder of all ledgers, where anybody may put anything, and the names of the files in it.
namespace cuslice::ledger {

inline constexpr std::size_t kPathBytes = 512;

// Why a ledger can't be used, for people: what was tried and what the kernel said.
struct LedgerError {
    char text[kPathBytes + 128] = {};
    // The machine has no place for one under this name, as in a container with little or no /dev/shm: whoever was to
    // share a limit can't. (What another user has put there, or has locked, is no such reason: nobody may stop others.)
    bool no_place = false;
};

// Sets why->text to "`what` `path`: " and what errno means. `why` may be null.
void set_failure(LedgerError* why, const char* what, const char* path);
// Whether the machine, or this user, has no space left.
bool means_no_room(int error);

// "/dev/shm/cuslice/1000-GPU-….5.ledger": user, GPU, version. False if it is too long.
bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]);
// The reverse, of a file's name in the folder; false for what is no ledger of this version.
bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]);

// Makes the folder if it is not there: the usual one for everybody and sticky, like /tmp; one that somebody names for
// that user alone, since a setting may come from someone who would like to write there.
bool make_folder(const char* folder, LedgerError* why);
unsigned folder_mode(const char* folder);

}  // namespace cuslice::ledger
