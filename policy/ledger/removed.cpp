// SPDX-License-Identifier: Apache-2.0
// Files that were removed while processes use them: /proc shows them as descriptors of a name that is no more.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "config/directory_entry.h"
#include "policy/base/kernel_clock.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/locks.h"

namespace cuslice::ledger {

namespace {

constexpr unsigned kPatience = 20;  // milliseconds, for the lock of a file that is gone: its owner may be stopped
// For all of /proc, in nanoseconds of this thread's own: a busy machine is no reason to miss anybody.
constexpr uint64_t kMaxWork = 500'000'000;

constexpr char kRemoved[] = ".ledger (deleted)";

// "/dev/shm/cuslice/1000-GPU-….6.ledger (deleted)" or "….6-3.ledger (deleted)", as /proc will have it: what is before
// ".ledger" or the dash of the number, by the folder's real name, which is that of a file which lies in it now.
bool text_of_removed(int made, const char* path, char (&text)[kPathBytes]) {
    const ssize_t length = readlink(DescriptorLink(made).text, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    char* const slash = strrchr(text, '/');
    const char* const name = strrchr(path, '/');
    if (!slash || !name)
        return false;
    const auto left = static_cast<size_t>(text + sizeof text - slash);
    if (static_cast<size_t>(snprintf(slash, left, "%s", name)) >= left)
        return false;
    char* const end = strstr(slash, ".ledger");
    if (!end)
        return false;
    *end = '\0';
    char* const version = strrchr(slash, '.');
    char* const number = version ? strchr(version, '-') : nullptr;
    if (number)
        *number = '\0';
    return true;
}

bool is_name_of_removed(const char* link, size_t length, const char* text) {
    const size_t before = strlen(text), behind = sizeof kRemoved - 1;
    if (length < before + behind || memcmp(link, text, before) != 0)
        return false;
    if (memcmp(link + length - behind, kRemoved, behind) != 0)
        return false;
    const size_t between = length - before - behind;
    return between == 0 || (link[before] == '-' && between <= 4);
}

bool is_number(const char* name) { return *name && name[strspn(name, "0123456789")] == '\0'; }

// Calls `visit(name)` for each entry that is a number, until this thread's clock says `end`.
template <typename Visit>
void for_each_number(int folder, uint64_t end, const Visit& visit) {
    alignas(DirectoryEntry) char entries[1024];
    for_each_entry(folder, entries, [&](const DirectoryEntry& entry) {
        if (kernel_clock(CLOCK_THREAD_CPUTIME_ID) >= end)
            return false;
        if (is_number(entry.name))
            visit(entry.name);
        return true;
    });
}

}  // namespace

// A process that leaves one of them for another opens that one first, and leaves under the lock: so once nothing new
// is seen under the locks of all, nobody is missed.
Removed::Removed(int made, const char* path, const char* uuid, const OpenFile* own, const Locker& self)
    : uuid_(uuid), self_(self), looks_(text_of_removed(made, path, text_)), made_(identity_of(made)) {
    const int saved_errno = errno;
    if (own)
        add(*own, true);
    for (bool locked = false;; locked = true) {
        const unsigned known = count_;
        look_around();
        if (count_ == 0 || (locked && known == count_))
            break;
        unlock();
        lock();
    }
    errno = saved_errno;
}

Removed::~Removed() {
    const int saved_errno = errno;
    unlock();
    for (unsigned i = 0; i < count_; i++)
        if (!files_[i].own)
            close_file(&files_[i].open);
    errno = saved_errno;
}

void Removed::lock() {
    std::sort(files_, files_ + count_, [](const One& a, const One& b) { return is_locked_before(a.open, b.open); });
    for (unsigned i = 0; i < count_; i++)
        files_[i].locked = lock_header_until(files_[i].open.file->header, self_, Deadline(kPatience));
}

void Removed::unlock() {
    for (unsigned i = 0; i < count_; i++) {
        One& one = files_[i];
        if (one.locked)
            unlock_header(one.open.file->header, self_);
        one.locked = false;
    }
}

void Removed::add(const OpenFile& file, bool own) { files_[count_++] = {file, false, own, false}; }

// Looks at processes of this user alone, as others' descriptors can't be looked at.
void Removed::look_around() {
    if (!looks_)
        return;
    const int processes = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (processes < 0)
        return;
    const uint64_t end = kernel_clock(CLOCK_THREAD_CPUTIME_ID) + kMaxWork;
    const uid_t self = geteuid();
    for_each_number(processes, end, [&](const char* pid) {
        struct stat info {};
        if (syscall(SYS_newfstatat, processes, pid, &info, 0) != 0 || info.st_uid != self)
            return;
        char name[32];
        snprintf(name, sizeof name, "%.16s/fd", pid);
        const int descriptors = openat(processes, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptors < 0)
            return;
        for_each_number(descriptors, end, [&](const char* number) {
            char link[kPathBytes];
            const ssize_t length = readlinkat(descriptors, number, link, sizeof link);
            if (length <= 0 || !is_name_of_removed(link, static_cast<size_t>(length), text_))
                return;
            look_at(descriptors, number);
        });
        ::close(descriptors);
    });
    ::close(processes);
}

// One descriptor of one of them, which may be of a file that is known already.
void Removed::look_at(int descriptors, const char* number) {
    struct stat info {};
    if (count_ == kMax || syscall(SYS_newfstatat, descriptors, number, &info, 0) != 0)
        return;
    const FileIdentity seen = identity_of(info);
    const auto is_it = [&](const One& one) { return one.open.identity == seen; };
    if (seen == made_ || std::any_of(files_, files_ + count_, is_it))
        return;
    const int file = openat(descriptors, number, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    OpenFile found;
    if (map_removed(file, uuid_, &found))
        return add(found, false);
    if (file >= 0)
        ::close(file);
}

bool Removed::carry_to(const OpenFile& fresh) {
    for (unsigned i = 0; i < count_; i++) {
        files_[i].retired = is_retired(*files_[i].open.file);
        set_retired(*files_[i].open.file, true);
    }
    // A process that has a place in one of them may have been carried to another: places come first.
    for (const Carried which : {Carried::places, Carried::entries})
        for (unsigned i = 0; i < count_; i++)
            if (!carry_over(files_[i].open, fresh, which, self_.where))
                return restore(), false;
    return true;
}

void Removed::carry_rest_to(const OpenFile& fresh) {
    const int saved_errno = errno;
    const unsigned known = count_;
    look_around();
    for (unsigned i = known; i < count_; i++) {
        One& one = files_[i];
        one.locked = lock_header_until(one.open.file->header, self_, Deadline(kPatience));
        set_retired(*one.open.file, true);
    }
    for (const Carried which : {Carried::places, Carried::entries})
        for (unsigned i = known; i < count_; i++)
            carry_over(files_[i].open, fresh, which, self_.where);
    errno = saved_errno;
}

// One that was retired before has had another in its place already, or will have.
void Removed::restore() {
    for (unsigned i = 0; i < count_; i++)
        if (!files_[i].retired)
            set_retired(*files_[i].open.file, false);
}

}  // namespace cuslice::ledger
