// SPDX-License-Identifier: Apache-2.0
#include "policy/ledger/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "policy/ledger/users.h"

namespace cuslice::ledger {

namespace {

bool good(const Header& header, const char* uuid) {
    return header.magic == kMagic && header.version == kVersion && header.size == sizeof(File) &&
           header.members <= kMembers && header.room <= kMembers &&
           strnlen(header.uuid, sizeof header.uuid) < sizeof header.uuid && (!uuid || strcmp(header.uuid, uuid) == 0);
}

// Opens a name. -1 unless it leads to the file that is expected.
int open_same(const char* name, int flags, const OpenFile& expected) {
    const int file = open(name, flags | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || is_of(file, expected.identity))
        return file;
    close(file);
    return -1;
}

// By its name or, where it was removed or the program has changed its root, by its descriptor.
int open_once_more(const OpenFile& open_file, const char* path, int flags) {
    const int named = open_same(path, flags | O_NOFOLLOW, open_file);
    return named >= 0 ? named : open_same(DescriptorLink(open_file.descriptor).text, flags, open_file);
}

// False where the host has closed the descriptor.
bool stat_open(const OpenFile& open_file, struct stat* info) {
    return stat_of(open_file.descriptor, info) && identity_of(*info) == open_file.identity;
}

}  // namespace

DescriptorLink::DescriptorLink(int descriptor) { snprintf(text, sizeof text, "/proc/self/fd/%d", descriptor); }

bool read_at(int file, void* to, size_t bytes, size_t offset) {
    return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

bool is_ours(const struct stat& info, const char* path, LedgerError* why) {
    if (!S_ISREG(info.st_mode))
        return set_text(why, "%s is no regular file", path), false;
    if (info.st_uid != geteuid())
        return set_text(why, "%s belongs to user %u", path, info.st_uid), false;
    return true;
}

// By a description of the file that is not the one for locks: a forked child keeps the mapping, and must not keep a
// lock that its parent had in this moment.
File* map_file(int file) {
    const int own = open(DescriptorLink(file).text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
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

OpenFile opened(File* mapped, int file, const char* path, const struct stat& info, bool keep_over_exec) {
    OpenFile open_file{.file = mapped, .descriptor = file, .identity = identity_of(info)};
    const int reads = open_once_more(open_file, path, O_RDONLY);
    if (reads >= 0)
        close(file);
    // By `file` it can be changed: that one isn't left to another program.
    open_file.descriptor = reads >= 0 ? keep_descriptor(reads, keep_over_exec) : keep_descriptor(file);
    return open_file;
}

bool may_be_as_large_as(size_t bytes) {
    if (file_may_have(bytes))
        return true;
    errno = EFBIG;
    return false;
}

bool allocate(int file, size_t from, size_t bytes) {
    errno = posix_fallocate(file, static_cast<off_t>(from), static_cast<off_t>(bytes));
    return errno == 0;
}

bool allocate_members(int file, uint32_t from, uint32_t to) {
    constexpr size_t kOfMember = kStripes * sizeof(Stripe);
    return allocate(file, offsetof(File, members) + from * sizeof(Member), (to - from) * sizeof(Member)) &&
           allocate(file, offsetof(File, stripes) + from * kOfMember, (to - from) * kOfMember);
}

bool map_removed(int file, const char* uuid, OpenFile* out) {
    struct stat info {};
    if (!stat_of(file, &info) || !is_ours(info, "", nullptr) || info.st_nlink != 0)
        return false;
    File* mapped = map_good(file, info, uuid);
    if (mapped)
        *out = {.file = mapped, .descriptor = file, .identity = identity_of(info)};
    return mapped != nullptr;
}

void close_file(OpenFile* open_file) {
    if (open_file->file)
        munmap(open_file->file, sizeof(File));
    leave_to_parent(open_file);
}

void leave_to_parent(OpenFile* open_file) {
    if (is_of(open_file->descriptor, open_file->identity))
        close(open_file->descriptor);
    *open_file = {};
}

void LeftCopy::take(File* copy) {
    if (copy_)
        madvise(copy_, sizeof(File), MADV_DONTNEED);
    copy_ = copy;
}

void LeftCopy::drop() {
    if (copy_)
        munmap(copy_, sizeof(File));
    copy_ = nullptr;
}

State state_of(const OpenFile& open_file, const char* uuid) {
    struct stat info {};
    if (!stat_open(open_file, &info))
        return State::unknown;
    if (info.st_nlink == 0)
        return State::gone;
    return good(open_file.file->header, uuid) ? State::whole : State::damaged;
}

namespace {

// Nothing is opened, so that whatever another user has put under the name is another file, too.
bool is_gone_by_name(const OpenFile& open_file, const char* path) {
    struct stat info {};
    return stat_name(AT_FDCWD, path, &info) ? identity_of(info) != open_file.identity : errno == ENOENT;
}

}  // namespace

bool looks_gone(const OpenFile& open_file, const char* path) {
    struct stat info {};
    return stat_open(open_file, &info) ? info.st_nlink == 0 : is_gone_by_name(open_file, path);
}

bool open_again(const char* path, OpenFile* open_file, bool* gone) {
    const int file = open_same(path, O_RDONLY | O_NOFOLLOW, *open_file);
    const int error = errno;
    *gone = file < 0 && is_gone_by_name(*open_file, path);
    errno = error;
    if (file >= 0)
        open_file->descriptor = keep_descriptor(file);
    return file >= 0;
}

bool make_room(const OpenFile& open_file, const char* path, uint32_t count) {
    Header& header = open_file.file->header;
    if (count <= header.room)
        return true;
    const uint32_t more = std::min(header.room + kRoom, kMembers);
    if (count > more || !may_be_as_large_as(sizeof(File)))
        return false;
    const int file = open_once_more(open_file, path, O_RDWR);
    if (file < 0)
        return false;
    const bool done = allocate_members(file, header.room, more);
    close(file);
    if (done)
        header.room = more;
    return done;
}

namespace {

constexpr char kNotTheUsers[] = "does not belong to the user in its name";

// Reason, for people, that an open file isn't that user's ledger; null: it is.
const char* fault_of(int file, unsigned user) {
    struct stat info {};
    if (!stat_of(file, &info) || !S_ISREG(info.st_mode))
        return "is no regular file";
    if (!belongs_to(info.st_uid, user))
        return kNotTheUsers;
    Header header{};
    const bool read = info.st_size == static_cast<off_t>(sizeof(File)) && read_at(file, &header, sizeof header, 0);
    return read && good(header, nullptr) ? nullptr : "is damaged";
}

}  // namespace

int open_foreign(const char* path, unsigned user, bool* missing, LedgerError* why, unsigned* owner) {
    struct stat named {};
    *missing = !stat_name(AT_FDCWD, path, &named);
    if (*missing)
        return set_failure(why, "can't open", path), -1;
    if (owner)
        *owner = named.st_uid;
    if (!belongs_to(named.st_uid, user)) {
        *missing = true;
        return set_text(why, "%s %s", path, kNotTheUsers), -1;
    }
    const int file = open(path, O_RDONLY | kSafely);
    *missing = file < 0 && errno == ENOENT;
    if (file < 0)
        return set_failure(why, "can't open", path), -1;
    const char* const wrong = fault_of(file, user);
    if (!wrong)
        return file;
    set_text(why, "%s %s", path, wrong);
    close(file);
    return -1;
}

}  // namespace cuslice::ledger
