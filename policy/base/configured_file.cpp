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
    struct statfs system {};
    return fstatfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// /proc is the host's root's. In a user namespace that doesn't have it, that is a number of nobody's.
bool is_hosts_root(uid_t user) {
    const int proc = open("/proc", kFolder);
    struct stat info {};
    if (proc < 0)
        return false;
    const bool is = is_proc(proc) && stat_of(proc, info) && info.st_uid == user;
    close(proc);
    return is;
}

bool others_can_write(int folder) {
    struct stat info {};
    if (!stat_of(folder, info))
        return true;
    const bool owner_is_trusted = info.st_uid == 0 || info.st_uid == geteuid() || is_hosts_root(info.st_uid);
    const bool group_writes = (info.st_mode & S_IWGRP) && info.st_gid != getegid();
    return !owner_is_trusted || group_writes || (info.st_mode & S_IWOTH);
}

int in_kernels_words(ConfiguredFile::Access access) {
    switch (access) {
        case ConfiguredFile::Access::map:
            return O_RDWR;
        case ConfiguredFile::Access::look:
            return O_RDONLY;
        default:
            return O_WRONLY;
    }
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool same_change(const struct stat& a, const struct stat& b) {
    return a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

bool is_link(int folder, const char* name) {
    struct stat info {};
    return stat_at(folder, name, info) && S_ISLNK(info.st_mode);
}

}  // namespace

const char* FileError::text() const { return refused ? refused : strerror(error); }

ConfiguredFile::ConfiguredFile(std::string_view path, Access access) : access_(in_kernels_words(access)) {
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

// Ends with the name of what is in the folder, or a failure.
void ConfiguredFile::walk() {
    char* at = rest_;
    for (;;) {
        at += strspn(at, "/");
        char* const end = at + strcspn(at, "/");
        const bool last = end[strspn(end, "/")] == '\0';
        const bool ends_in_slash = last && *end != '\0';
        if (*at == '\0' || ends_in_slash) {
            failure_.error = EISDIR;
            return;
        }
        others_write_ = others_can_write(folder_);
        if (last) {
            if (arrive(at))
                return;
        } else {
            *end = '\0';
            if (enter(at)) {
                at = end + 1;
                continue;
            }
            if (failure_.error != 0)
                return;
            *end = '/';
        }
        if (!replace(at, end))
            return;
        at = rest_;
    }
}

// At the last component. False: it is a link that has to be followed.
bool ConfiguredFile::arrive(const char* component) {
    name_ = component;
    const bool link = is_link(folder_, component);
    magic_ = link && !others_write_ && is_proc(folder_);
    return !link || magic_;
}

// Puts a link's text in the place of its name. The rest of the path stays behind it.
bool ConfiguredFile::replace(const char* component, const char* end) {
    char name[256];
    const auto length = static_cast<size_t>(end - component);
    if (length >= sizeof name) {
        failure_.error = ENAMETOOLONG;
        return false;
    }
    memcpy(name, component, length);
    name[length] = '\0';
    memmove(rest_, end, strlen(end) + 1);
    return follow(name);
}

// False without a failure: it is a link.
bool ConfiguredFile::enter(const char* component) {
    int next = openat(folder_, component, kFolder | O_NOFOLLOW);
    const int error = errno;
    const bool no_folder = next < 0 && (error == ENOTDIR || error == ELOOP);
    if (no_folder && is_link(folder_, component)) {
        if (others_write_ || !is_proc(folder_))
            return false;
        next = openat(folder_, component, kFolder);
    }
    if (next < 0) {
        failure_.error = error;
        return false;
    }
    close(folder_);
    folder_ = next;
    return true;
}

bool ConfiguredFile::follow(const char* component) {
    char target[kLinkBytes];
    const ssize_t length = readlinkat(folder_, component, target, sizeof target);
    const size_t behind = strlen(rest_);
    if (length <= 0)
        failure_.error = length < 0 ? errno : ENOENT;
    else if (others_write_)
        failure_ = {ELOOP, kLink};
    else if (++links_ > kMaxLinks)
        failure_.error = ELOOP;
    else if (length == sizeof target || static_cast<size_t>(length) + behind >= sizeof rest_)
        failure_.error = ENAMETOOLONG;
    if (failure_.error != 0)
        return false;
    memmove(rest_ + length, rest_, behind + 1);
    memcpy(rest_, target, static_cast<size_t>(length));
    if (rest_[0] != '/')
        return true;
    const int root = open("/", kFolder);
    if (root < 0) {
        failure_.error = errno;
        return false;
    }
    close(folder_);
    folder_ = root;
    return true;
}

// Null: it may be written to.
const char* ConfiguredFile::refusal(const struct stat& info) const {
    if (S_ISBLK(info.st_mode))
        return kBlockDevice;
    if (!others_write_)
        return nullptr;
    if (S_ISLNK(info.st_mode))
        return kLink;
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return kDevice;
    struct stat folder {};
    const bool owners = stat_of(folder_, folder) && info.st_uid == folder.st_uid;
    if (info.st_uid != geteuid() && !owners)
        return kForeign;
    return info.st_nlink > 1 ? kTwoNames : nullptr;
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
        struct stat counted {};
        const bool there = stat_at(folder_, name_, named) && same_file(named, first);
        if (!there || !stat_of(file, counted))
            return false;
        const bool one_name = named.st_nlink == 1 && counted.st_nlink == 1;
        if (!one_name || !same_change(counted, first))
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
    const char* const refused = refusal(before);
    return {refused ? EPERM : 0, refused};
}

// And again afterwards. EAGAIN: it isn't the file that was looked at.
FileError ConfiguredFile::look_after(int file, const struct stat& before) const {
    struct stat after {};
    if (!stat_of(file, after))
        return {EAGAIN, nullptr};
    if (const char* const refused = refusal(after))
        return {EPERM, refused};
    const bool same = magic_ || (same_file(before, after) && stays(file, after));
    return {same ? 0 : EAGAIN, nullptr};
}

int ConfiguredFile::open_there(FileError& error) {
    for (unsigned attempt = 0; attempt < kMaxTries; attempt++) {
        struct stat before {};
        error = look_before(before);
        if (error.error != 0)
            return -1;
        const int file = openat(folder_, name_, kAppend | access_ | (magic_ ? 0 : O_NOFOLLOW));
        if (file < 0 && errno == ELOOP)
            continue;
        if (file < 0) {
            error = {errno, nullptr};
            return -1;
        }
        error = look_after(file, before);
        if (error.error == 0)
            return file;
        close(file);
        if (error.error != EAGAIN)
            return -1;
    }
    error = {EAGAIN, nullptr};
    return -1;
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
        const bool could_be_made = failure_.error == 0 && error.error == ENOENT;
        if (there >= 0 || !could_be_made)
            return there;
        const int made = make(error);
        if (made >= 0 || error.error != EEXIST)
            return made;
    }
    return -1;
}

void ConfiguredFile::remove() const {
    if (failure_.error == 0)
        unlinkat(folder_, name_, 0);
}

}  // namespace cuslice
