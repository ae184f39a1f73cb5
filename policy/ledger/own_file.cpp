// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/own_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

namespace {

// True if the name still leads to this file.
bool still_named(const struct stat& mine, const char* path) {
    struct stat named {};
    return syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

bool is_anothers(const char* path) {
    struct stat named {};
    return syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_uid != geteuid();
}

// Another number for each file, whoever makes it.
uint64_t new_id() {
    const uint64_t id = now_realtime() * 0x9e3779b97f4a7c15u ^ image_number();
    return id ? id : 1;
}

// A whole new file; -1 if there can't be one.
int make(const char* path, const char* uuid, uint64_t capacity, LedgerError* why) {
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | kSafely, 0644);
    if (why)
        why->no_place = file < 0 && means_no_room(errno);
    if (file < 0)
        return set_failure(why, "can't make", path), -1;
    Header header{};
    header.magic = kMagic;
    header.version = kVersion;
    header.size = sizeof(File);
    header.capacity = capacity;
    header.id = new_id();
    header.room = kRoom;
    header.unfinished = 1;
    snprintf(header.uuid, sizeof header.uuid, "%s", uuid);
    bool done = may_be_as_large_as(sizeof(File)) && ftruncate(file, sizeof(File)) == 0;
    if (done) {
        errno = posix_fallocate(file, 0, offsetof(File, members));
        done = errno == 0 && allocate_members(file, 0, kRoom) &&
               pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    }
    if (done) {
        fchmod(file, 0644);  // whatever the host's umask: other users read it
        return file;
    }
    if (why)
        why->no_place = means_no_room(errno);
    set_failure(why, "no room for", path);
    close(file);
    return -1;
}

// Gives a new file its name, unless there is one by it. In one step, where the kernel can: whoever is killed between
// two would leave a second name, by which a file that is removed later looks as if it were still there.
bool name(const char* made, const char* path) {
    constexpr unsigned kNoReplace = 1;
    if (syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, kNoReplace) == 0 || errno == EEXIST)
        return true;
    return (errno == ENOSYS || errno == EINVAL) && (link(made, path) == 0 || errno == EEXIST);
}

// The file that is to get the name.
struct Making {
    const Locker& self;
    const char *made, *path, *uuid;
    uint64_t capacity;
    const OpenFile* gone;  // see open_own()
};

// Makes a new file, with what is in those that were removed, before anybody sees it under its name. True also where
// another process has given a file that name meanwhile.
bool put_in_place(const Making& making, LedgerError* why) {
    unlink(making.made);  // of an earlier process of our pid
    OpenFile fresh;
    fresh.descriptor = make(making.made, making.uuid, making.capacity, why);
    if (fresh.descriptor < 0) {
        const int error = errno;
        unlink(making.made);
        errno = error;
        return false;
    }
    fresh.file = map_file(fresh.descriptor);
    bool done = false;
    if (fresh.file) {
        Header& header = fresh.file->header;
        // Nobody is let in before it has been seen that no other file has had the name in between.
        lock_header_until(header, making.self, Deadline(0));
        Removed removed(fresh.descriptor, making.path, making.uuid, making.gone, making.self);
        const bool carried = removed.carry_to(fresh);
        if (!carried && why)
            why->no_place = true;
        if (carried)
            done = name(making.made, making.path);
        const int error = errno;
        if (carried && !done)
            removed.restore();
        if (done) {
            removed.carry_rest_to(fresh);
            header.unfinished = 0;
        }
        unlock_header(header, making.self);
        munmap(fresh.file, sizeof(File));
        errno = carried ? error : ENOSPC;
    }
    const int error = errno;
    if (!done && why && !why->text[0])
        set_failure(why, "can't make", making.path);
    close(fresh.descriptor);
    unlink(making.made);
    errno = error;
    return done;
}

// Takes what is no ledger away from under the name. Another process may have put one there since it was looked at: that
// one gets its name back.
bool take_away(const char* path, const char* aside, const struct stat& bad) {
    if (rename(path, aside) != 0)
        return errno == ENOENT;
    if (still_named(bad, aside))
        return unlink(aside) == 0;
    name(aside, path);
    unlink(aside);
    return true;
}

struct Names {
    char path[kPathBytes], made[kPathBytes + 40], aside[kPathBytes + 48];
};

// A file in the making has its process's name, so that whoever gets the pid next removes what a killed one left.
// Anybody can put something there beforehand. `secret`: a name that nobody knows before.
bool write_names(const UserFolder& where, const char* uuid, unsigned number, bool secret, Names* names) {
    const uint64_t named = own_pid_namespace();
    // Where nobody can tell the namespace, pids alone are not enough for a name.
    const uint64_t space = secret ? random_number() : named ? named : image_number();
    if (!ledger_path(where.path, where.user, uuid, names->path, number))
        return false;
    snprintf(names->made, sizeof names->made, "%s.%d-%llx", names->path, getpid(),
             static_cast<unsigned long long>(space));
    snprintf(names->aside, sizeof names->aside, "%s.aside", names->made);
    return strlen(names->aside) < kPathBytes;
}

// The same file under another of the names, which another process has made at the same moment: one of the two is taken
// away again, and whoever is in it goes to the other.
bool is_doubled_by_us(const UserFolder& where, const char* uuid, unsigned number) {
    return has_name(where, uuid, 0, kMaxNames, number);
}

}  // namespace

bool open_existing(const UserFolder& where, const char* uuid, OpenFile* out, char (&path)[kPathBytes],
                   LedgerError* why) {
    unsigned number = 0;
    if (find_name(where, uuid, &number, nullptr) == Named::by_others)
        number = 0;
    if (!ledger_path(where.path, where.user, uuid, path, number))
        return false;
    const int file = open(path, O_RDWR | kSafely);
    if (file < 0)
        return set_failure(why, "can't open", path), false;
    struct stat info {};
    if (stat_of(file, &info) && is_ours(info, path, why)) {
        if (File* mapped = map_good(file, info, uuid)) {
            *out = opened(mapped, file, path, info, false, Found::good);
            return true;
        }
        if (why)
            snprintf(why->text, sizeof why->text, "%s is damaged", path);
    }
    close(file);
    return false;
}

bool open_own(const Locker& self, const char* uuid, uint64_t capacity, bool keep_over_exec, Deadline deadline,
              OpenFile* out, char (&path)[kPathBytes], LedgerError* why, const OpenFile* gone) {
    const UserFolder& where = self.where;
    if (geteuid() != where.owner) {  // a program that has given its rights back: the file would be another user's
        errno = EPERM;
        return set_failure(why, "can't make a ledger of who started this program in", where.path), false;
    }
    Names names;
    Found found = Found::good;
    // Others may be making or replacing it at the same time: whoever is first wins, and all look again. So does who has
    // made one when the time is over.
    constexpr unsigned kMaxMade = 3;
    unsigned made_count = 0;
    bool made_one = false, secret = false;
    // Once: under a name that nobody knows, if another user has put something where this process makes its file.
    const auto may_try_again = [&] {
        const bool squatted = errno == EEXIST || errno == EPERM || errno == EISDIR;
        if (secret || !squatted)
            return false;
        if (why)
            *why = {};
        return secret = true;
    };
    do {
        made_one = false;
        unsigned number = 0;
        LedgerError stranger;
        const Named named = find_name(where, uuid, &number, &stranger);
        if (named == Named::by_others) {
            set_taken(why, where.path, stranger.stranger_user);
            errno = EPERM;
            return false;
        }
        if (!write_names(where, uuid, number, secret, &names)) {
            errno = ENAMETOOLONG;
            return set_failure(why, "can't use", where.path), false;
        }
        snprintf(path, sizeof path, "%s", names.path);
        const int file = open(path, O_RDWR | kSafely);
        if (file < 0 && errno == EWOULDBLOCK)
            continue;  // a lease, which its holder has been told to give up
        if (file < 0 && errno != ENOENT) {
            set_failure(why, "can't open", path);
            if (named == Named::free && is_anothers(path))
                continue;  // who was quicker
            return false;
        }
        if (file >= 0) {
            struct stat info {};
            if (!stat_of(file, &info) || !is_ours(info, path, why)) {
                close(file);
                if (named == Named::free)
                    continue;  // another user was quicker
                return false;
            }
            File* mapped = map_good(file, info, uuid);
            if (mapped && still_named(info, path)) {
                *out = opened(mapped, file, path, info, keep_over_exec, found);
                return true;
            }
            if (mapped)
                munmap(mapped, sizeof(File));
            close(file);
            if (mapped)
                continue;
            if (!take_away(path, names.aside, info)) {
                if (may_try_again())
                    continue;
                return set_failure(why, "can't replace", path), false;
            }
            found = Found::rebuilt;
        }
        if (!put_in_place({self, names.made, path, uuid, capacity, gone}, why)) {
            if (may_try_again())
                continue;
            return false;
        }
        made_one = true;
        if (found == Found::good)
            found = Found::made;
        if (is_doubled_by_us(where, uuid, number))
            unlink(path);
    } while ((made_one && made_count++ < kMaxMade) || deadline.pause());
    errno = EAGAIN;
    return set_failure(why, "can't have in time, as another process has it leased or replaces it:", path), false;
}

}  // namespace cuslice::ledger
