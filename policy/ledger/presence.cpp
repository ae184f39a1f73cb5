// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/number.h"
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

bool stat_presence(const UserFolder& where, uint64_t id, struct stat* info) {
    return stat_name(where.descriptor, Name(where.user, id).text, info);
}

int open_presence(const UserFolder& where, uint64_t id, int flags) {
    return openat(where.descriptor, Name(where.user, id).text, flags | kSafely, 0600);
}

void remove_presence(const UserFolder& where, uint64_t id) { unlinkat(where.descriptor, Name(where.user, id).text, 0); }

bool is_presence(const struct stat& info, const UserFolder& where) {
    return S_ISREG(info.st_mode) && info.st_uid == where.owner;
}

// Another user may have put something there that can't be opened, as a file of his with a lease.
bool is_anothers(const UserFolder& where, uint64_t id) {
    struct stat info {};
    return stat_presence(where, id, &info) && info.st_uid != where.owner;
}

void say_not_locked(LedgerError* why, const char* folder) {
    set_no_room(why, "can't make a file in", folder);
    if (errno == ENOLCK || errno == EPERM || errno == ENOSYS || errno == EINVAL)
        set_text(why, "the ledger can't be locked: %s", strerror(errno));
}

Life life_by_lock(const UserFolder& where, int file) {
    struct stat info {};
    if (!stat_of(file, &info) || !is_presence(info, where))
        return Life::missing;
    bool unknown = false;
    const bool locked = is_locked(file, 0, &unknown);
    const bool published = info.st_mode & S_IROTH;  // it is locked before
    if (unknown || (!locked && !published))
        return Life::unknown;
    return locked ? Life::lives : Life::ended;
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
    const int file = open_presence(where, id, O_RDONLY);
    if (file < 0)
        return errno == ENOENT || errno == ELOOP || is_anothers(where, id) ? Life::missing : Life::unknown;
    const Life life = life_by_lock(where, file);
    close(file);
    return life;
}

bool remove_ended(const UserFolder& where, uint64_t id) {
    if (life_of(where, id) != Life::ended)
        return false;
    remove_presence(where, id);
    return true;
}

bool Presence::is_there(const UserFolder& where) const {
    struct stat info {};
    if (!stat_presence(where, id_, &info))
        return errno != ENOENT;  // what can't be told has not changed
    return identity_of(info) == identity_;
}

bool Presence::has_descriptor() const { return is_of(descriptor_, identity_); }

// A lock of the process is lost with any descriptor of the file that the process closes.
bool Presence::lock_again(const UserFolder& where) {
    if (!has_descriptor()) {
        const int file = open_presence(where, id_, O_RDWR);
        if (file < 0)
            return false;
        descriptor_ = keep_descriptor(file, lasts_ == Lasts::over_exec);
    }
    return has_descriptor() && lock_byte_for_process(descriptor_, 0);
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

bool Presence::make(const UserFolder& where, const char* uuid, Lasts lasts, LedgerError* why) {
    const uint64_t id = new_id(uuid);
    int file = open_presence(where, id, O_RDWR | O_CREAT | O_EXCL);
    if (file < 0)
        return set_no_room(why, "can't make a file in", where.path), false;
    struct stat info {};
    const LockKind kind = stat_of(file, &info) ? lock_new(&file, lasts) : LockKind::none;
    if (kind == LockKind::none)
        say_not_locked(why, where.path);
    // Others take it for one in the making until they may read it.
    const bool published = kind != LockKind::none && let_all_read(file);
    if (kind != LockKind::none && !published)
        set_failure(why, "can't let others read a file in", where.path);
    if (!published) {
        drop_anchor();
        remove_presence(where, id);
        close(file);
        return false;
    }
    if (kind == LockKind::open_file)
        close(file);
    else
        descriptor_ = file;
    take(id, kind, lasts, identity_of(info));
    return true;
}

void Presence::take(uint64_t id, LockKind kind, Lasts lasts, const FileIdentity& identity) {
    id_ = id;
    kind_ = kind;
    lasts_ = lasts;
    identity_ = identity;
    process_ = this_process();
}

bool Presence::keep(const UserFolder& where, const char* uuid, Lasts lasts, LedgerError* why) {
    if (!id_)
        return make(where, uuid, lasts, why);
    const bool there = is_there(where);
    if (there && (kind_ == LockKind::open_file || lock_again(where)))
        return true;
    // Where no other can be made, as by a program that has given its rights back, this one has to do.
    Presence fresh;
    if (geteuid() != where.owner || !fresh.make(where, uuid, lasts, nullptr))
        return true;
    give_up(where, there);
    *this = fresh;
    return true;
}

bool Presence::adopt(const UserFolder& where, uint64_t id, int descriptor) {
    if (id_ == id)
        return lock_again(where);
    struct stat info {};
    if (id_ || !stat_presence(where, id, &info) || !is_presence(info, where))
        return false;
    descriptor_ = descriptor;
    take(id, LockKind::process, Lasts::over_exec, identity_of(info));
    if (lock_again(where))
        return true;
    if (descriptor_ != descriptor && has_descriptor())
        close(descriptor_);
    *this = {};
    return false;
}

void Presence::give_up(const UserFolder& where, bool remove) {
    if (id_ && remove && is_there(where))
        remove_presence(where, id_);
    drop_anchor();
    forget();
}

void Presence::drop_anchor() {
    if (anchor_)
        munmap(anchor_, kPage);
    anchor_ = nullptr;
}

void Presence::forget() {
    if (has_descriptor())
        close(descriptor_);
    *this = {};
}

}  // namespace cuslice::ledger
