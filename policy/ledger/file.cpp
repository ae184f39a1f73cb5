// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "policy/base/own_descriptors.h"
#include "policy/ledger/users.h"

namespace cuslice::ledger {

namespace {

bool good(const Header& header, const char* uuid) {
    return header.magic == kMagic && header.version == kVersion && header.size == sizeof(File) &&
           header.members <= kMembers && header.room <= kMembers &&
           strnlen(header.uuid, sizeof header.uuid) < sizeof header.uuid && (!uuid || strcmp(header.uuid, uuid) == 0);
}

bool is_same(int file, const OpenFile& expected) {
    struct stat info {};
    return file >= 0 && stat_of(file, &info) && info.st_dev == expected.device && info.st_ino == expected.inode;
}

}  // namespace

bool stat_of(int file, struct stat* info) { return syscall(SYS_fstat, file, info) == 0; }

bool is_ours(const struct stat& info, const char* path, LedgerError* why) {
    if (S_ISREG(info.st_mode) && info.st_uid == geteuid())
        return true;
    if (!why)
        return false;
    if (S_ISREG(info.st_mode))
        snprintf(why->text, sizeof why->text, "%s belongs to user %u", path, static_cast<unsigned>(info.st_uid));
    else
        snprintf(why->text, sizeof why->text, "%s is no regular file", path);
    return false;
}

// By a description of the file that is not the one for locks: a forked child keeps the mapping, and must not keep a
// lock that its parent had in this moment.
File* map_file(int file) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const int own = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, own < 0 ? file : own, 0);
    if (own >= 0)
        close(own);
    return memory == MAP_FAILED ? nullptr : static_cast<File*>(memory);
}

File* map_good(int file, const struct stat& info, const char* uuid) {
    if (info.st_size != static_cast<off_t>(sizeof(File)))
        return nullptr;
    File* mapped = map_file(file);
    if (!mapped || good(mapped->header, uuid))
        return mapped;
    munmap(mapped, sizeof(File));
    return nullptr;
}

OpenFile opened(File* mapped, int file, const char* path, const struct stat& info, bool keep_over_exec, Found found) {
    OpenFile open_file{mapped, file, info.st_dev, info.st_ino, found};
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    for (const char* name : {path, static_cast<const char*>(link)}) {
        const int reads = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (is_same(reads, open_file)) {
            close(file);
            open_file.descriptor = keep_descriptor(reads, keep_over_exec);
            return open_file;
        }
        if (reads >= 0)
            close(reads);
    }
    open_file.descriptor = keep_descriptor(file);  // by which the file can be changed: not for another program
    return open_file;
}

bool may_be_as_large_as(size_t bytes) {
    if (file_may_have(bytes))
        return true;
    errno = EFBIG;
    return false;
}

bool allocate_members(int file, uint32_t from, uint32_t to) {
    const auto at = [](size_t offset) { return static_cast<off_t>(offset); };
    int error =
        posix_fallocate(file, at(offsetof(File, members) + from * sizeof(Member)), at((to - from) * sizeof(Member)));
    if (error == 0)
        error = posix_fallocate(file, at(offsetof(File, stripes) + size_t{from} * kStripes * sizeof(Stripe)),
                                at(size_t{to - from} * kStripes * sizeof(Stripe)));
    errno = error;
    return error == 0;
}

bool map_removed(int file, const char* uuid, OpenFile* out) {
    struct stat info {};
    if (file < 0 || !stat_of(file, &info) || !is_ours(info, "", nullptr) || info.st_nlink != 0)
        return false;
    File* const mapped = map_good(file, info, uuid);
    if (mapped)
        *out = {mapped, file, info.st_dev, info.st_ino, Found::good};
    return mapped != nullptr;
}

void close_file(OpenFile* open_file) {
    if (open_file->file)
        munmap(open_file->file, sizeof(File));
    if (is_same(open_file->descriptor, *open_file))
        close(open_file->descriptor);
    *open_file = {};
}

void leave_to_parent(OpenFile* open_file) {
    if (is_same(open_file->descriptor, *open_file))
        close(open_file->descriptor);
    *open_file = {};
}

State state_of(const OpenFile& open_file, const char* uuid) {
    struct stat info {};
    if (!stat_of(open_file.descriptor, &info) || info.st_dev != open_file.device || info.st_ino != open_file.inode)
        return State::unknown;
    if (info.st_nlink == 0)
        return State::gone;
    return good(open_file.file->header, uuid) ? State::whole : State::damaged;
}

namespace {

// Nothing is opened, so that whatever another user has put under the name is another file, too.
bool is_gone_by_name(const OpenFile& open_file, const char* path) {
    struct stat info {};
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return info.st_dev != open_file.device || info.st_ino != open_file.inode;
}

}  // namespace

bool looks_gone(const OpenFile& open_file, const char* path) {
    struct stat info {};
    if (stat_of(open_file.descriptor, &info) && info.st_dev == open_file.device && info.st_ino == open_file.inode)
        return info.st_nlink == 0;
    return is_gone_by_name(open_file, path);
}

bool open_again(const char* path, OpenFile* open_file, bool* gone) {
    *gone = false;
    const int file = open(path, O_RDONLY | kSafely);
    if (!is_same(file, *open_file)) {
        const int error = errno;
        *gone = is_gone_by_name(*open_file, path);
        if (file >= 0)
            close(file);
        errno = error;
        return false;
    }
    open_file->descriptor = keep_descriptor(file);
    return true;
}

namespace {

int open_to_write(const OpenFile& open_file, const char* path) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", open_file.descriptor);
    int file = open(path, O_RDWR | kSafely);
    if (is_same(file, open_file))
        return file;
    if (file >= 0)
        close(file);
    file = open(link, O_RDWR | O_NONBLOCK | O_CLOEXEC);  // it was removed, or the program has changed its root
    if (is_same(file, open_file))
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

}  // namespace

bool make_room(const OpenFile& open_file, const char* path, uint32_t count) {
    Header& header = open_file.file->header;
    if (count <= header.room)
        return true;
    const uint32_t more = header.room + kRoom < kMembers ? header.room + kRoom : kMembers;
    if (count > more || !may_be_as_large_as(sizeof(File)))
        return false;
    const int file = open_to_write(open_file, path);
    if (file < 0)
        return false;
    const bool done = allocate_members(file, header.room, more);
    close(file);
    if (done)
        header.room = more;
    return done;
}

int open_foreign(const char* path, unsigned user, bool* missing, LedgerError* why, unsigned* owner) {
    struct stat named {};
    *missing = syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) != 0;
    if (*missing)
        return set_failure(why, "can't open", path), -1;
    if (owner)
        *owner = named.st_uid;
    if (!belongs_to(named.st_uid, user)) {
        *missing = true;
        if (why)
            snprintf(why->text, sizeof why->text, "%s does not belong to the user in its name", path);
        return -1;
    }
    const int file = open(path, O_RDONLY | kSafely);
    *missing = file < 0 && errno == ENOENT;
    if (file < 0)
        return set_failure(why, "can't open", path), -1;
    struct stat info {};
    Header header{};
    const char* wrong = nullptr;
    if (!stat_of(file, &info) || !S_ISREG(info.st_mode))
        wrong = "is no regular file";
    else if (!belongs_to(info.st_uid, user))
        wrong = "does not belong to the user in its name";
    else if (info.st_size != static_cast<off_t>(sizeof(File)) ||
             pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) || !good(header, nullptr))
        wrong = "is damaged";
    if (!wrong)
        return file;
    if (why)
        snprintf(why->text, sizeof why->text, "%s %s", path, wrong);
    close(file);
    return -1;
}

}  // namespace cuslice::ledger
