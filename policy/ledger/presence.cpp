// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/number.h"
#include "policy/base/own_descriptors.h"
#include "policy/ledger/file.h"
#include "policy/ledger/locks.h"

namespace cuslice::ledger {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kNameBytes = 48;
constexpr char kEnd[] = ".alive";
constexpr size_t kEndLength = sizeof kEnd - 1;
constexpr uint64_t kMark = 0xffff;  // the bits of a number that say which GPU it is for

struct Name {
    Name(unsigned user, uint64_t id) {
        snprintf(text, sizeof text, "%u-%016llx%s", user, static_cast<unsigned long long>(id), kEnd);
    }
    char text[kNameBytes];
};

uint64_t mark_of(const char* uuid) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (; *uuid; uuid++)
        hash = (hash ^ static_cast<unsigned char>(*uuid)) * 0x100000001b3;
    return (hash ^ hash >> 32) & kMark;
}

uint64_t new_id(const char* uuid) {
    const uint64_t id = (random_number() & ~kMark) | mark_of(uuid);
    return id ? id : kMark + 1;
}

bool stat_name(const UserFolder& where, uint64_t id, struct stat* info) {
    const Name name(where.user, id);
    return syscall(SYS_newfstatat, where.descriptor, name.text, info, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

bool parse_presence_name(const char* name, unsigned* user, uint64_t* id) {
    // Most names of a folder that somebody has filled aren't worth more.
    const size_t length = strlen(name);
    if (length < kEndLength || memcmp(name + length - kEndLength, kEnd, kEndLength) != 0)
        return false;
    const char* end = nullptr;
    *user = static_cast<unsigned>(read_number(name, &end));
    if (end == name || *end != '-')
        return false;
    *id = read_number(end + 1, nullptr, 16);
    return strcmp(Name(*user, *id).text, name) == 0;
}

bool is_of_gpu(uint64_t id, const char* uuid) { return (id & kMark) == mark_of(uuid); }

Life life_of(const UserFolder& where, uint64_t id) {
    if (!id)
        return Life::missing;
    if (where.descriptor < 0)
        return Life::unknown;
    const Name name(where.user, id);
    const int file = openat(where.descriptor, name.text, O_RDONLY | kSafely);
    struct stat info {};
    if (file < 0) {
        // Another user may have put something there that can't be opened, as a file of his with a lease.
        const bool none = errno == ENOENT || errno == ELOOP;
        return none || (stat_name(where, id, &info) && info.st_uid != where.owner) ? Life::missing : Life::unknown;
    }
    Life life = Life::missing;
    if (stat_of(file, &info) && S_ISREG(info.st_mode) && info.st_uid == where.owner) {
        const bool published = info.st_mode & S_IROTH;  // it is locked before
        bool unknown = false;
        life = is_locked(file, 0, &unknown) ? Life::lives : Life::ended;
        if (unknown || (life == Life::ended && !published))
            life = Life::unknown;
    }
    close(file);
    return life;
}

bool remove_ended(const UserFolder& where, uint64_t id) {
    if (life_of(where, id) != Life::ended)
        return false;
    unlinkat(where.descriptor, Name(where.user, id).text, 0);
    return true;
}

bool Presence::is_there(const UserFolder& where) const {
    struct stat info {};
    if (!stat_name(where, id_, &info))
        return errno != ENOENT;  // what can't be told has not changed
    return info.st_dev == device_ && info.st_ino == inode_;
}

bool Presence::has_descriptor() const {
    struct stat info {};
    return descriptor_ >= 0 && stat_of(descriptor_, &info) && info.st_dev == device_ && info.st_ino == inode_;
}

// A lock of the process is lost with any descriptor of the file that the process closes.
bool Presence::lock_again(const UserFolder& where) {
    if (!has_descriptor()) {
        const int file = openat(where.descriptor, Name(where.user, id_).text, O_RDWR | kSafely);
        if (file < 0)
            return false;
        descriptor_ = keep_descriptor(file, lasts_ == Lasts::over_exec);
        if (!has_descriptor())
            return false;
    }
    return lock_byte_for_process(descriptor_, 0);
}

LockKind Presence::lock_new(int* file, Lasts lasts) {
    if (lasts == Lasts::until_exec) {
        void* const memory = mmap(nullptr, kPage, PROT_NONE, MAP_SHARED, *file, 0);
        if (memory == MAP_FAILED)
            return LockKind::none;
        if (madvise(memory, kPage, MADV_DONTFORK) == 0 && lock_byte(*file, 0) == LockKind::open_file) {
            anchor_ = memory;
            return LockKind::open_file;
        }
        munmap(memory, kPage);
    }
    *file = keep_descriptor(*file, lasts == Lasts::over_exec);  // before it is locked: this closes a descriptor
    return lock_byte_for_process(*file, 0) ? LockKind::process : LockKind::none;
}

bool Presence::make(const UserFolder& where, const char* uuid, Lasts lasts) {
    const uint64_t id = new_id(uuid);
    const Name name(where.user, id);
    int file = openat(where.descriptor, name.text, O_RDWR | O_CREAT | O_EXCL | kSafely, 0600);
    if (file < 0)
        return false;
    struct stat info {};
    const LockKind kind = stat_of(file, &info) ? lock_new(&file, lasts) : LockKind::none;
    const int error = errno;
    if (kind == LockKind::none) {
        unlinkat(where.descriptor, name.text, 0);
        close(file);
        errno = error;
        return false;
    }
    fchmod(file, 0644);  // whatever the host's umask: other users ask for the lock
    if (kind == LockKind::open_file)
        close(file);
    else
        descriptor_ = file;
    id_ = id;
    kind_ = kind;
    lasts_ = lasts;
    device_ = info.st_dev;
    inode_ = info.st_ino;
    process_ = this_process();
    return true;
}

bool Presence::keep(const UserFolder& where, const char* uuid, Lasts lasts, LedgerError* why) {
    if (id_) {
        const bool there = is_there(where);
        if (there && (kind_ == LockKind::open_file || lock_again(where)))
            return true;
        // Where no other can be made, as by a program that has given its rights back, this one has to do.
        Presence fresh;
        if (geteuid() != where.owner || !fresh.make(where, uuid, lasts))
            return true;
        give_up(where, there);
        *this = fresh;
        return true;
    }
    if (make(where, uuid, lasts))
        return true;
    if (why) {
        const bool locks = errno == ENOLCK || errno == EPERM || errno == ENOSYS || errno == EINVAL;
        why->no_place = means_no_room(errno);
        if (locks)
            snprintf(why->text, sizeof why->text, "the ledger can't be locked: %s", strerror(errno));
        else
            set_failure(why, "can't make a file in", where.path);
    }
    return false;
}

bool Presence::adopt(const UserFolder& where, uint64_t id, int descriptor) {
    if (id_ == id)
        return lock_again(where);
    struct stat info {};
    if (id_ || !stat_name(where, id, &info) || !S_ISREG(info.st_mode) || info.st_uid != where.owner)
        return false;
    id_ = id;
    kind_ = LockKind::process;
    lasts_ = Lasts::over_exec;
    descriptor_ = descriptor;
    device_ = info.st_dev;
    inode_ = info.st_ino;
    process_ = this_process();
    if (lock_again(where))
        return true;
    if (descriptor_ != descriptor && has_descriptor())
        close(descriptor_);
    *this = {};
    return false;
}

void Presence::give_up(const UserFolder& where, bool remove) {
    if (id_ && remove && is_there(where))
        unlinkat(where.descriptor, Name(where.user, id_).text, 0);
    if (anchor_)
        munmap(anchor_, kPage);
    if (has_descriptor())
        close(descriptor_);
    *this = {};
}

void Presence::forget() {
    if (has_descriptor())
        close(descriptor_);
    *this = {};
}

}  // namespace cuslice::ledger
