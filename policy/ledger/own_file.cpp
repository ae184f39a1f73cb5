// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/own_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/process_identity.h"

namespace cuslice::ledger {

namespace {

// True if the name still leads to this file.
bool still_named(const FileIdentity& mine, const char* path) {
    struct stat named {};
    return stat_name(AT_FDCWD, path, &named) && identity_of(named) == mine;
}

bool is_anothers(const char* path) {
    struct stat named {};
    return stat_name(AT_FDCWD, path, &named) && named.st_uid != geteuid();
}

// Another number for each file, whoever makes it.
uint64_t new_id() {
    const uint64_t id = now_realtime() * 0x9e3779b97f4a7c15u ^ image_number();
    return id ? id : 1;
}

// A whole new file; -1 if there can't be one.
int make(const char* path, const char* uuid, uint64_t capacity, LedgerError* why) {
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | kSafely, 0644);
    if (file < 0)
        return set_no_room(why, "can't make", path), -1;
    Header header{};
    header.magic = kMagic;
    header.version = kVersion;
    header.size = sizeof(File);
    header.capacity = capacity;
    header.id = new_id();
    header.room = kRoom;
    header.unfinished = 1;
    snprintf(header.uuid, sizeof header.uuid, "%s", uuid);
    const bool large = may_be_as_large_as(sizeof(File)) && ftruncate(file, sizeof(File)) == 0;
    const bool has_room = large && allocate(file, 0, offsetof(File, members)) && allocate_members(file, 0, kRoom);
    const bool written = has_room && pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    if (!written)
        set_no_room(why, "no room for", path);
    else if (let_all_read(file))
        return file;
    else
        set_failure(why, "can't let others read", path);
    close(file);
    return -1;
}

// Gives a new file its name, unless there is one by it. In one step, where the kernel can: whoever is killed between
// two would leave a second name, by which a file that is removed later looks as if it were still there.
bool name(const char* made, const char* path) {
    constexpr unsigned kNoReplace = 1;
    bool named = syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, kNoReplace) == 0;
    // A sandbox that doesn't know the call may say EPERM.
    if (!named && (errno == ENOSYS || errno == EINVAL || errno == EPERM))
        named = link(made, path) == 0;
    return named || errno == EEXIST;
}

// The file that is to get the name.
struct Making {
    const Locker& self;
    const char *made, *path, *uuid;
    uint64_t capacity;
    const OpenFile* gone;  // see open_own()
};

// Gives a new file its name, with what is in those that were removed.
bool fill_and_name(const Making& making, const OpenFile& fresh, LedgerError* why) {
    Header& header = fresh.file->header;
    // Nobody is let in before it has been seen that no other file has had the name in between.
    lock_header_until(header, making.self, Deadline(0));
    Removed removed(fresh.descriptor, making.path, making.uuid, making.gone, making.self);
    const bool carried = removed.carry_to(fresh);
    const bool done = carried && name(making.made, making.path);
    const int error = carried ? errno : ENOSPC;
    if (why && !carried)
        why->no_place = true;
    if (done) {
        removed.carry_rest_to(fresh);
        header.unfinished = 0;
    } else if (carried) {
        removed.restore();
    }
    unlock_header(header, making.self);
    errno = error;
    return done;
}

// Makes a new file before anybody sees it under its name. True also where another process has given a file that name
// meanwhile.
bool put_in_place(const Making& making, LedgerError* why) {
    unlink(making.made);  // of an earlier process of our pid
    OpenFile fresh;
    fresh.descriptor = make(making.made, making.uuid, making.capacity, why);
    fresh.identity = identity_of(fresh.descriptor);
    if (fresh.descriptor >= 0)
        fresh.file = map_file(fresh.descriptor);
    const bool done = fresh.there() && fill_and_name(making, fresh, why);
    const int error = errno;
    if (!done && why && !why->text[0])
        set_failure(why, "can't make", making.path);
    close_file(&fresh);
    unlink(making.made);
    errno = error;
    return done;
}

// Takes what is no ledger away from under the name. Another process may have put one there since it was looked at: that
// one gets its name back.
bool take_away(const char* path, const char* aside, const FileIdentity& bad) {
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

// Result of a look at what lies under the name.
enum class Step : uint8_t { done, again, make, replace, failed };

// Opens the user's ledger that has the name. `was_free`: nothing had it a moment ago, so that another user was quicker
// where something of that user's has it now. `*bad`: what is to be replaced.
Step open_named(const char* path, const char* uuid, bool was_free, bool keep_over_exec, OpenFile* out,
                FileIdentity* bad, LedgerError* why) {
    const int file = open(path, O_RDWR | kSafely);
    if (file < 0) {
        if (errno == ENOENT)
            return Step::make;
        if (errno == EWOULDBLOCK)
            return Step::again;  // a lease, which its holder has been told to give up
        set_failure(why, "can't open", path);
        return was_free && is_anothers(path) ? Step::again : Step::failed;
    }
    struct stat info {};
    if (!stat_of(file, &info) || !is_ours(info, path, why)) {
        close(file);
        return was_free ? Step::again : Step::failed;
    }
    if (File* mapped = map_good(file, info, uuid)) {
        *out = opened(mapped, file, path, info, keep_over_exec);
        return Step::done;
    }
    close(file);
    *bad = identity_of(info);
    return Step::replace;
}

}  // namespace

bool open_existing(const UserFolder& where, const char* uuid, OpenFile* out, char (&path)[kPathBytes],
                   LedgerError* why) {
    unsigned number = 0, stranger = 0;
    if (find_name(where, uuid, &number, &stranger) == Named::by_others)
        number = 0;
    if (!ledger_path(where.path, where.user, uuid, path, number))
        return false;
    FileIdentity bad;
    const Step step = open_named(path, uuid, false, false, out, &bad, why);
    if (step == Step::replace)
        set_text(why, "%s is damaged", path);
    if (step == Step::make || step == Step::again)
        set_failure(why, "can't open", path);
    return step == Step::done;
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
        unsigned number = 0, stranger = 0;
        const Named named = find_name(where, uuid, &number, &stranger);
        if (named == Named::by_others) {
            set_taken(why, where.path, stranger);
            errno = EPERM;
            return false;
        }
        if (!write_names(where, uuid, number, secret, &names)) {
            errno = ENAMETOOLONG;
            return set_failure(why, "can't use", where.path), false;
        }
        snprintf(path, sizeof path, "%s", names.path);
        FileIdentity bad;
        const Step step = open_named(path, uuid, named == Named::free, keep_over_exec, out, &bad, why);
        if (step == Step::failed)
            return false;
        if (step == Step::again)
            continue;
        if (step == Step::done) {
            out->found = found;
            if (still_named(out->identity, path))
                return true;
            close_file(out);
            continue;
        }
        bool free = step == Step::make;
        if (step == Step::replace) {
            free = take_away(path, names.aside, bad);
            if (free)
                found = Found::rebuilt;
            else
                set_failure(why, "can't replace", path);
        }
        made_one = free && put_in_place({self, names.made, path, uuid, capacity, gone}, why);
        if (!made_one) {
            if (may_try_again())
                continue;
            return false;
        }
        found = std::max(found, Found::made);
        // The same file under another of the names, which another process has made at the same moment: one of the two
        // is taken away again, and whoever is in it goes to the other.
        if (has_name(where, uuid, kMaxNames, number))
            unlink(path);
    } while ((made_one && made_count++ < kMaxMade) || deadline.pause());
    errno = EAGAIN;
    return set_failure(why, "can't have in time, as another process has it leased or replaces it:", path), false;
}

}  // namespace cuslice::ledger
