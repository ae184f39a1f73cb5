// SPDX-License-Identifier: Apache-2.0
#include "policy/lease/lease_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/lease/file_maker.h"
#include "policy/lease/published.h"
#include "policy/lease/steps.h"
#include "policy/ledger/file.h"

namespace cuslice::lease {

namespace {

using ledger::kPathBytes;
using ledger::UserFolder;

bool is_whole(const Header& header) {
    return header.magic == kMagic && header.version == kVersion && header.size == sizeof(File);
}

// Where there is no memory to read it with, it isn't called damaged.
bool is_whole(const File& file) {
    const ScratchState state;
    if (!state.get())
        return true;
    uint64_t seen = 0;
    return is_whole(file.header) && read_current(file, state.get(), &seen) && lease::is_whole(*state.get());
}

// Result of a look at what lies under a name.
struct Named {
    enum class Is : uint8_t { ours, free, anothers, damaged, not_to_be_had };
    Is is = Is::not_to_be_had;
    File* file = nullptr;
    FileIdentity identity;
};

Named not_found() { return {errno == ENOENT ? Named::Is::free : Named::Is::not_to_be_had}; }

bool looks_like_lease(const struct stat& info, unsigned owner) {
    const bool large = info.st_size == static_cast<off_t>(sizeof(File));
    return large && S_ISREG(info.st_mode) && info.st_uid == owner;
}

Named map_named(int file, unsigned owner, int protection) {
    struct stat info {};
    if (!ledger::stat_of(file, &info) || !looks_like_lease(info, owner))
        return {Named::Is::damaged};
    File* const mapped = map_lease(file, protection);
    if (!mapped)
        return {Named::Is::not_to_be_had};
    if (is_whole(*mapped))
        return {Named::Is::ours, mapped, identity_of(info)};
    munmap(mapped, sizeof(File));
    return {Named::Is::damaged};
}

Named look_at(const UserFolder& where, const char* path, int protection) {
    struct stat info {};
    if (!ledger::stat_name(AT_FDCWD, path, &info))
        return not_found();
    if (info.st_uid != where.owner)
        return {Named::Is::anothers};
    const int access = protection & PROT_WRITE ? O_RDWR : O_RDONLY;
    const int file = open(path, access | O_CLOEXEC | ledger::kSafely);
    if (file < 0)
        return not_found();
    const Named named = map_named(file, where.owner, protection);
    close(file);
    return named;
}

bool take(const Named& named, OpenLease* out) {
    out->file = named.file;
    out->identity = named.identity;
    return true;
}

// Makes room for a file of ours, and puts it there. False: the name is not to be had.
bool put_new(const Named& named, const char* path, const Terms& terms, LedgerError* why) {
    const bool damaged = named.is == Named::Is::damaged;
    if (damaged && !take_lease_away(path))
        return ledger::set_failure(why, "can't open", path), false;
    return make_lease(path, terms, why);
}

// `*anothers`: another user has the name.
bool open_named(const UserFolder& where, const Terms& terms, OpenLease* out, bool* anothers, LedgerError* why) {
    constexpr unsigned kTries = 4;  // others make and take away as well
    for (unsigned i = 0; i < kTries; i++) {
        const Named named = look_at(where, out->path, PROT_READ | PROT_WRITE);
        *anothers = named.is == Named::Is::anothers;
        if (named.is == Named::Is::ours)
            return take(named, out);
        if (*anothers || named.is == Named::Is::not_to_be_had)
            break;
        if (!put_new(named, out->path, terms, why))
            return false;
    }
    ledger::set_failure(why, "can't open", out->path);
    return false;
}

}  // namespace

bool lease_path(const char* folder, unsigned user, unsigned number, char (&path)[kPathBytes]) {
    char suffix[16] = "";
    if (number)
        snprintf(suffix, sizeof suffix, "-%u", number);
    const int length = snprintf(path, sizeof path, "%s/%u.%u%s.lease", folder, user, kVersion, suffix);
    return length > 0 && static_cast<size_t>(length) < sizeof path;
}

// The first name that no other user has taken, as anybody may put anything there.
bool open_lease(const UserFolder& where, const Terms& terms, OpenLease* out, LedgerError* why) {
    bool anothers = true;
    for (unsigned number = 0; anothers && number < ledger::kMaxNames; number++) {
        if (!lease_path(where.path, where.user, number, out->path))
            return ledger::set_text(why, "the path of %s is too long", where.path), false;
        if (open_named(where, terms, out, &anothers, why))
            return true;
    }
    return false;
}

namespace {

bool find_lease(const UserFolder& where, int protection, OpenLease* out, LedgerError* why) {
    for (unsigned number = 0; number < ledger::kMaxNames; number++) {
        if (!lease_path(where.path, where.user, number, out->path))
            break;
        const Named named = look_at(where, out->path, protection);
        if (named.is == Named::Is::ours)
            return take(named, out);
        if (named.is != Named::Is::anothers)
            break;
    }
    return ledger::set_text(why, "there is no lease in %s", where.path), false;
}

}  // namespace

bool open_existing_lease(const UserFolder& where, OpenLease* out, LedgerError* why) {
    return find_lease(where, PROT_READ | PROT_WRITE, out, why);
}

bool open_lease_to_read(const UserFolder& where, OpenLease* out, LedgerError* why) {
    return find_lease(where, PROT_READ, out, why);
}

bool is_lost(const OpenLease& open) {
    struct stat info {};
    return ledger::stat_name(AT_FDCWD, open.path, &info) ? identity_of(info) != open.identity : errno == ENOENT;
}

void close_lease(OpenLease* open) {
    if (open->file)
        munmap(open->file, sizeof(File));
    *open = {};
}

}  // namespace cuslice::lease
