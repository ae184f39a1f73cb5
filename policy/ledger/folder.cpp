// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "config/key.h"
#include "config/number.h"
#include "policy/ledger/layout.h"

namespace cuslice::ledger {

bool stat_of(int file, struct stat* info) { return syscall(SYS_fstat, file, info) == 0; }

bool stat_name(int folder, const char* name, struct stat* info) {
    return syscall(SYS_newfstatat, folder, name, info, AT_SYMLINK_NOFOLLOW) == 0;
}

bool let_all_read(int file) {
    if (fchmod(file, 0644) == 0)
        return true;
    const int error = errno;
    struct stat info {};
    const bool readable = stat_of(file, &info) && info.st_mode & S_IROTH;
    errno = error;
    return readable;
}

void set_text(LedgerError* why, const char* format, ...) {
    if (!why)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(why->text, sizeof why->text, format, values);
    va_end(values);
}

void set_failure(LedgerError* why, const char* what, const char* path) {
    set_text(why, "%s %s: %s", what, path, strerror(errno));
}

void set_stranger(LedgerError* why, unsigned user) {
    if (!why)
        return;
    why->stranger = true;
    why->stranger_user = user;
}

void set_no_room(LedgerError* why, const char* what, const char* path) {
    if (why)
        why->no_place = means_no_room(errno);
    set_failure(why, what, path);
}

void set_taken(LedgerError* why, const char* folder, unsigned user) {
    set_text(why, "in %s user %u has taken every name that this user's ledger could have", folder, user);
    set_stranger(why, user);
}

bool means_no_room(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS; }

bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes], unsigned number) {
    char behind[16] = "";
    if (number)
        snprintf(behind, sizeof behind, "-%u", number);
    return static_cast<size_t>(
               snprintf(path, sizeof path, "%s/%u-%s.%u%s.ledger", folder, user, uuid, kVersion, behind)) < sizeof path;
}

bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64], unsigned* number) {
    char end[24], again[kPathBytes];
    const int behind = snprintf(end, sizeof end, ".%u", kVersion);
    const char* dash = nullptr;
    const uint64_t owner = read_number(name, &dash);
    if (*dash != '-')
        return false;
    const char* const version = strstr(dash + 1, end);
    if (!version)
        return false;
    const auto length = static_cast<size_t>(version - (dash + 1));
    if (length == 0 || length >= sizeof uuid)
        return false;
    uint64_t place = 0;
    if (version[behind] == '-')
        place = read_number(version + behind + 1);
    if (place >= kMaxNames)
        return false;
    memcpy(uuid, dash + 1, length);
    uuid[length] = '\0';
    *user = static_cast<unsigned>(owner);
    if (number)
        *number = static_cast<unsigned>(place);
    // One name for each: " 1000-…", "01000-…" and "4294968296-…" would be the same user once more.
    return ledger_path("", *user, uuid, again, static_cast<unsigned>(place)) && strcmp(again + 1, name) == 0;
}

namespace {

// By the folder's descriptor: whose a file of that name is. False: there is none, or it can't be told.
bool owner_of_name(const UserFolder& where, const char* uuid, unsigned number, unsigned* owner) {
    char path[kPathBytes];
    struct stat info {};
    if (!ledger_path("", where.user, uuid, path, number) || !stat_name(where.descriptor, path + 1, &info))
        return false;
    *owner = info.st_uid;
    return true;
}

}  // namespace

Named find_name(const UserFolder& where, const char* uuid, unsigned* number, unsigned* stranger) {
    unsigned owner = 0, free = kMaxNames;
    for (unsigned i = 0; i < kMaxNames; i++) {
        if (!owner_of_name(where, uuid, i, &owner)) {
            free = std::min(free, i);
            // Nobody is in the way, as mostly: whoever has another number had a name before this one taken.
            if (i == 0 && !has_name(where, uuid, kMaxNames, 0))
                break;
            continue;
        }
        if (owner == where.owner)
            return *number = i, Named::by_us;
        if (i == 0)
            *stranger = owner;
    }
    *number = free;
    return free == kMaxNames ? Named::by_others : Named::free;
}

bool has_name(const UserFolder& where, const char* uuid, unsigned count, unsigned without) {
    unsigned owner = 0;
    for (unsigned i = 0; i < count; i++)
        if (i != without && owner_of_name(where, uuid, i, &owner) && owner == where.owner)
            return true;
    return false;
}

bool FolderHandle::take(int opened) {
    struct stat info {};
    if (opened < 0)
        return false;
    if (!stat_of(opened, &info))
        return ::close(opened), false;
    identity_ = identity_of(info);
    descriptor_ = keep_descriptor(opened);
    return true;
}

bool FolderHandle::open(const char* path) {
    if (descriptor_ >= 0)
        return true;
    if (!take(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)))
        return false;
    snprintf(path_, sizeof path_, "%s", path);
    return true;
}

int FolderHandle::descriptor() {
    struct stat info {};
    const bool known = stat_of(descriptor_, &info) && identity_of(info) == identity_;
    if (!path_[0] || (known && info.st_nlink != 0))
        return descriptor_;
    const int again = ::open(path_, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (known) {  // it was removed: another one is in its place, or will be
        const int old = descriptor_;
        if (take(again))
            ::close(old);
        return descriptor_;
    }
    if (is_of(again, identity_))
        return descriptor_ = keep_descriptor(again);
    if (again >= 0)
        ::close(again);
    return descriptor_ = -1;
}

void FolderHandle::close() {
    if (is_of(descriptor_, identity_))
        ::close(descriptor_);
    descriptor_ = -1;
    path_[0] = '\0';
}

unsigned folder_mode(const char* folder) { return folder == traits_of(Key::dir).default_value ? 01777 : 0700; }

namespace {

// A folder that mkdir() has made for us just now: it has no more rights than were asked for, and is sticky where that
// was, which no umask changes. An access control list and the group come from around it.
bool is_just_made(const struct stat& info, unsigned mode) {
    constexpr unsigned kRights = 01777;
    return info.st_uid == geteuid() && (info.st_mode & kRights & ~mode) == 0 &&
           (info.st_mode & S_ISVTX) == (mode & S_ISVTX);
}

// By a descriptor: where the folder around it isn't sticky, somebody may have put another one into its place, or a
// link, and that one's rights are not ours to give. False: errno says why it isn't the one that was made.
bool restore_mode(const char* folder, unsigned mode) {
    struct stat info {};
    const int made = ::open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        return false;
    const bool known = stat_of(made, &info) && is_just_made(info, mode);
    if (known)
        fchmod(made, mode);  // one that a file system refuses leaves a folder for fewer
    else
        errno = EPERM;
    ::close(made);
    return known;
}

}  // namespace

bool make_folder(const char* folder, LedgerError* why) {
    struct stat info {};
    const auto there = [&] { return stat_name(AT_FDCWD, folder, &info); };
    // Looked for first, as it mostly is there: to make it the kernel locks the folder around it, even in vain, and the
    // processes of a job that start together would wait for each other.
    if (!there()) {
        if (mkdir(folder, folder_mode(folder)) == 0) {
            if (restore_mode(folder, folder_mode(folder)))
                return true;  // whatever the host's umask
            set_failure(why, "can't set the rights of the folder", folder);
            return false;
        }
        if (errno != EEXIST || !there()) {
            if (why)
                why->no_place = errno != EEXIST;
            set_failure(why, "can't make the folder", folder);
            return false;
        }
    }
    // Where everybody may replace what is there, nobody's file says anything.
    const bool anybody = (info.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH;
    if (S_ISDIR(info.st_mode) && !anybody)
        return true;
    errno = S_ISDIR(info.st_mode) ? EPERM : ENOTDIR;
    set_failure(why, anybody ? "everybody may delete files in (chmod +t it)" : "can't use", folder);
    return false;
}

}  // namespace cuslice::ledger
