// SPDX-License-Identifier: Apache-2.0
#include "policy/base/configured_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace cuslice {

namespace {

constexpr unsigned kMaxLinks = 40;  // as the kernel's MAXSYMLINKS
constexpr unsigned kMaxTries = 16;  // while somebody exchanges the file under us
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kAppend = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
constexpr mode_t kMode = 0644;

constexpr char kLink[] = "a symbolic link leads there, in a folder that others can write to";
constexpr char kForeign[] = "it is another user's, in a folder that others can write to";
constexpr char kTwoNames[] = "it has another name too, in a folder that others can write to";
constexpr char kDevice[] = "it is a device, in a folder that others can write to";
constexpr char kBlockDevice[] = "it is a block device";

// The C library's stat carries a version that old ones lack.
bool stat_at(int folder, const char* name, struct stat& info) {
    return syscall(SYS_newfstatat, folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}
bool stat_of(int file, struct stat& info) { return syscall(SYS_fstat, file, &info) == 0; }

bool is_proc(int folder) {
    struct statfs system {};  // as it stays where the kernel doesn't say
    fstatfs(folder, &system);
    return system.f_type == PROC_SUPER_MAGIC;
}

// /proc is the host's root's. In a user namespace that doesn't have it, that is a number of nobody's.
bool is_hosts_root(uid_t user) {
    const int proc = open("/proc", kFolder);
    struct stat info {};
    const bool is = is_proc(proc) && stat_of(proc, info) && info.st_uid == user;
    close(proc);
    return is;
}

bool others_can_write(int folder) {
    struct stat info {};
    if (!stat_of(folder, info))
        return true;
    const bool owner_is_trusted = info.st_uid == 0 || info.st_uid == geteuid() || is_hosts_root(info.st_uid);
    const mode_t others = info.st_gid == getegid() ? S_IWOTH : S_IWOTH | S_IWGRP;
    return !owner_is_trusted || (info.st_mode & others);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool same_change(const struct stat& a, const struct stat& b) {
    return a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

bool is_link(int folder, const char* name) {
    struct stat info {};
    stat_at(folder, name, info);
    return S_ISLNK(info.st_mode);
}

}  // namespace

const char* FileError::text() const { return refused ? refused : strerror(error); }

ConfiguredFile::ConfiguredFile(std::string_view path, Access access) : access_(static_cast<int>(access)) {
    if (path.empty()) {
        failure_.error = ENOENT;
        return;
    }
    if (path.size() >= sizeof rest_) {
        failure_.error = ENAMETOOLONG;
        return;
    }
    memcpy(rest_, path.data(), path.size());
    rest_[path.size()] = '\0';
    folder_ = open(rest_[0] == '/' ? "/" : ".", kFolder);
    if (folder_ < 0)
        failure_.error = errno;
    else
        walk();
}

ConfiguredFile::~ConfiguredFile() {
    if (folder_ >= 0)
        close(folder_);
}

// Ends with the name of what is in the folder, or a failure. Each step returns the next component's place, or null.
void ConfiguredFile::walk() {
    for (char* at = rest_; at != nullptr;) {
        at += strspn(at, "/");
        char* const end = at + strcspn(at, "/");
        const bool last = end[strspn(end, "/")] == '\0';
        const bool ends_in_slash = last && *end != '\0';
        if (*at == '\0' || ends_in_slash) {
            failure_.error = EISDIR;
            return;
        }
        others_write_ = others_can_write(folder_);
        at = last ? arrive(at, end) : enter(at, end);
    }
}

// At the last component, which may be a link that has to be followed.
char* ConfiguredFile::arrive(char* component, char* end) {
    name_ = component;
    const bool link = is_link(folder_, component);
    magic_ = link && may_have_magic();
    return link && !magic_ ? follow(component, end, '\0') : nullptr;
}

// Links of /proc stand for what somebody has open, whatever their text.
bool ConfiguredFile::may_have_magic() const { return !others_write_ && is_proc(folder_); }

char* ConfiguredFile::enter(char* component, char* end) {
    *end = '\0';
    int next = openat(folder_, component, kFolder | O_NOFOLLOW);
    const int error = errno;
    if (next < 0 && is_link(folder_, component)) {
        if (!may_have_magic())
            return follow(component, end, '/');
        next = openat(folder_, component, kFolder);
    }
    return move_to(next, error) ? end + 1 : nullptr;
}

// `error`: why there is no such folder.
bool ConfiguredFile::move_to(int folder, int error) {
    if (folder < 0) {
        failure_.error = error;
        return false;
    }
    close(folder_);
    folder_ = folder;
    return true;
}

// Puts a link's text in the place of its name, which ends at `end`. The rest of the path stays behind it, with `mark`
// as its first character.
char* ConfiguredFile::follow(const char* component, char* end, char mark) {
    char target[kLinkBytes];
    const ssize_t length = readlinkat(folder_, component, target, sizeof target);
    *end = mark;
    const size_t behind = strlen(end);
    if (length <= 0)
        failure_.error = length < 0 ? errno : ENOENT;
    else if (others_write_)
        failure_ = {ELOOP, kLink};
    else if (++links_ > kMaxLinks)
        failure_.error = ELOOP;
    else if (length == sizeof target || static_cast<size_t>(length) + behind >= sizeof rest_)
        failure_.error = ENAMETOOLONG;
    if (failure_.error != 0)
        return nullptr;
    memmove(rest_ + length, end, behind + 1);
    memcpy(rest_, target, static_cast<size_t>(length));
    if (rest_[0] != '/')
        return rest_;
    const int root = open("/", kFolder);
    return move_to(root, errno) ? rest_ : nullptr;
}

// No error: it may be written to.
FileError ConfiguredFile::refusal(const struct stat& info) const {
    if (S_ISBLK(info.st_mode))
        return {EPERM, kBlockDevice};
    if (!others_write_)
        return {};
    if (S_ISLNK(info.st_mode))
        return {EPERM, kLink};
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return {EPERM, kDevice};
    struct stat folder {};
    const bool owners = stat_of(folder_, folder) && info.st_uid == folder.st_uid;
    if (info.st_uid != geteuid() && !owners)
        return {EPERM, kForeign};
    if (info.st_nlink > 1)
        return {EPERM, kTwoNames};
    return {};
}

namespace {

// Waits until nobody is in the middle of taking a name out of the folder: for that long the kernel still finds the
// name, and no longer counts it. Removing takes the folder's lock before it finds that no name is as long as this one.
void await_removals(int folder) {
    char none[NAME_MAX + 2];
    memset(none, 'x', sizeof none - 1);
    none[sizeof none - 1] = '\0';
    unlinkat(folder, none, 0);
}

}  // namespace

// Somebody who may link to others' files (fs.protected_hardlinks = 0) can take the other name away just when names are
// counted, but not keep in step with us: the name has to be there each time that it isn't looked at with its count.
bool ConfiguredFile::stays(int file, const struct stat& first) const {
    constexpr unsigned kLooks = 8;
    for (unsigned look = 0; others_write_ && look < kLooks; look++) {
        await_removals(folder_);
        struct stat named {};
        struct stat counted {};  // what is gone has no name
        stat_at(folder_, name_, named);
        stat_of(file, counted);
        const bool one_name = named.st_nlink == 1 && counted.st_nlink == 1;
        if (!one_name || !same_file(named, first) || !same_change(counted, first))
            return false;
    }
    return true;
}

// Before it is opened, since opening a device can already do something.
FileError ConfiguredFile::look_before(struct stat& before) const {
    if (magic_)
        return {};
    if (!stat_at(folder_, name_, before))
        return {errno, nullptr};
    if (S_ISDIR(before.st_mode))
        return {EISDIR, nullptr};
    return refusal(before);
}

// And again afterwards. EAGAIN: it isn't the file that was looked at.
FileError ConfiguredFile::look_after(int file, const struct stat& before) const {
    struct stat after {};
    if (!stat_of(file, after))
        return {EAGAIN, nullptr};
    const FileError refused = refusal(after);
    if (refused.error != 0)
        return refused;
    const bool same = magic_ || (same_file(before, after) && stays(file, after));
    return {same ? 0 : EAGAIN, nullptr};
}

// EAGAIN: somebody has exchanged it meanwhile.
int ConfiguredFile::open_once(FileError& error) const {
    struct stat before {};
    error = look_before(before);
    if (error.error != 0)
        return -1;
    const int file = openat(folder_, name_, kAppend | access_ | (magic_ ? 0 : O_NOFOLLOW));
    if (file < 0) {
        error.error = errno == ELOOP ? EAGAIN : errno;
        return -1;
    }
    error = look_after(file, before);
    if (error.error == 0)
        return file;
    close(file);
    return -1;
}

int ConfiguredFile::open_there(FileError& error) const {
    int file = -1;
    error.error = EAGAIN;
    for (unsigned attempt = 0; error.error == EAGAIN && attempt < kMaxTries; attempt++)
        file = open_once(error);
    return file;
}

int ConfiguredFile::make(FileError& error) {
    error = failure_;
    if (failure_.error != 0)
        return -1;
    const int file = openat(folder_, name_, kAppend | access_ | O_CREAT | O_EXCL | O_NOFOLLOW, kMode);
    if (file < 0)
        error.error = errno;
    return file;
}

int ConfiguredFile::append(FileError& error) {
    error = failure_;
    return failure_.error != 0 ? -1 : open_there(error);
}

int ConfiguredFile::append_or_make(FileError& error) {
    for (unsigned attempt = 0; attempt < kMaxTries; attempt++) {
        const int there = append(error);
        if (error.error != ENOENT)
            return there;
        const int made = make(error);
        if (error.error != EEXIST)
            return made;
    }
    return -1;
}

void ConfiguredFile::remove() const {
    if (failure_.error == 0)
        unlinkat(folder_, name_, 0);
}

}  // namespace cuslice
