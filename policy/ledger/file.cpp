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

#include "config/key.h"
#include "policy/guest_file.h"
#include "policy/ledger/liveness.h"

namespace cuslice::ledger {

namespace {

constexpr unsigned kPatience = 1000;  // milliseconds

// The C library's fstat and stat carry a version that old ones lack.
bool about(int file, struct stat* result) { return syscall(SYS_fstat, file, result) == 0; }

void fail(Failure* why, const char* what, const char* path) {
    if (why) snprintf(why->text, sizeof why->text, "%s %s: %s", what, path, strerror(errno));
}

bool good(const Header& header, const char* uuid) {
    return header.magic == kMagic && header.version == kVersion && header.size == sizeof(File) &&
           header.members <= kMembers && strnlen(header.uuid, sizeof header.uuid) < sizeof header.uuid &&
           (!uuid || strcmp(header.uuid, uuid) == 0);
}

bool is_same(int file, const OpenFile& expected) {
    struct stat info {};
    return file >= 0 && about(file, &info) && info.st_dev == expected.device && info.st_ino == expected.inode;
}

OpenFile opened(File* mapped, int file, Found found) {
    struct stat info {};
    about(file, &info);
    return {mapped, file, info.st_dev, info.st_ino, found};
}

// Ours and of the right size; what is in it is looked at when it is mapped.
bool plausible(int file, unsigned user) {
    struct stat info {};
    return about(file, &info) && S_ISREG(info.st_mode) && info.st_uid == user &&
           info.st_size == static_cast<off_t>(sizeof(File));
}

File* map(int file) {
    void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<File*>(memory);
}

// Whether the name still leads to this file.
bool still_named(int file, const char* path) {
    struct stat mine {
    }, named{};
    return about(file, &mine) && syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

// A whole new file.
bool make(const char* path, const char* uuid, std::uint64_t capacity, Failure* why) {
    // The kernel would end the process by a signal.
    if (!file_may_have(sizeof(File))) {
        errno = EFBIG;
        return fail(why, "no room for", path), false;
    }
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) return fail(why, "can't make", path), false;
    const int full = posix_fallocate(file, 0, sizeof(File));
    Header header{};
    header.magic = kMagic;
    header.version = kVersion;
    header.size = sizeof(File);
    header.capacity = capacity;
    snprintf(header.uuid, sizeof header.uuid, "%s", uuid);
    errno = full;
    if (full != 0 || pwrite(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
        fail(why, "no room for", path);
        close(file);
        return false;
    }
    fchmod(file, 0644);  // whatever the host's umask: other users read it
    close(file);
    return true;
}

}  // namespace

bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]) {
    return static_cast<std::size_t>(snprintf(path, sizeof path, "%s/%u-%s.ledger", folder, user, uuid)) < sizeof path;
}

bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]) {
    char* end = nullptr;
    const unsigned long number = strtoul(name, &end, 10);
    const char* last = strrchr(name, '.');
    if (end == name || *end != '-' || !last || strcmp(last, ".ledger") != 0 || number > 0xfffffffful) return false;
    const std::size_t length = static_cast<std::size_t>(last - end - 1);
    if (length == 0 || length >= sizeof uuid) return false;
    memcpy(uuid, end + 1, length);
    uuid[length] = '\0';
    *user = static_cast<unsigned>(number);
    return true;
}

unsigned folder_mode(const char* folder) { return folder == traits_of(Key::dir).default_value ? 01777 : 0700; }

bool make_folder(const char* folder, Failure* why) {
    if (mkdir(folder, folder_mode(folder)) == 0) {
        chmod(folder, folder_mode(folder));  // whatever the host's umask
        return true;
    }
    struct stat info {};
    if (errno == EEXIST && syscall(SYS_newfstatat, AT_FDCWD, folder, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        // Where everybody may replace what is there, nobody's file says anything.
        const bool anybody = (info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX);
        if (S_ISDIR(info.st_mode) && !anybody) return true;
        errno = S_ISDIR(info.st_mode) ? EPERM : ENOTDIR;
        fail(why, anybody ? "everybody may delete files in (chmod +t it)" : "can't use", folder);
        return false;
    }
    fail(why, "can't make the folder", folder);
    return false;
}

bool open_existing(const char* folder, const char* uuid, OpenFile* out) {
    char path[kPathBytes];
    if (!ledger_path(folder, geteuid(), uuid, path)) return false;
    const int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    File* mapped = plausible(file, geteuid()) ? map(file) : nullptr;
    if (mapped && good(mapped->header, uuid)) {
        *out = opened(mapped, file, Found::good);
        return true;
    }
    if (mapped) munmap(mapped, sizeof(File));
    close(file);
    return false;
}

bool open_own(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec, OpenFile* out,
              Failure* why) {
    char path[kPathBytes], made[kPathBytes];
    if (!ledger_path(folder, geteuid(), uuid, path) ||
        static_cast<std::size_t>(snprintf(made, sizeof made, "%s.%d", path, getpid())) >= sizeof made) {
        errno = ENAMETOOLONG;
        return fail(why, "can't use", folder), false;
    }
    if (!make_folder(folder, why)) return false;
    const int flags = keep_over_exec ? 0 : O_CLOEXEC;
    Found found = Found::good;
    // Others may be making or replacing it at the same time: whoever is first wins, and all look again.
    for (int attempt = 0; attempt < 8; attempt++) {
        const int file = open(path, O_RDWR | O_NOFOLLOW | flags);
        const bool missing = file < 0 && errno == ENOENT;
        if (file < 0 && !missing) return fail(why, "can't open", path), false;
        if (file >= 0) {
            File* mapped = plausible(file, geteuid()) ? map(file) : nullptr;
            if (mapped && good(mapped->header, uuid) && still_named(file, path)) {
                *out = opened(mapped, file, found);
                return true;
            }
            if (mapped) munmap(mapped, sizeof(File));
        }
        // Whoever replaces a bad file holds its lock, and looks once more whether it is still the one to replace.
        const bool replace = !missing && lock_byte_within(file, 0, kPatience) && still_named(file, path);
        bool made_one = true;
        if (missing || replace) {
            unlink(made);  // of an earlier process of our pid
            made_one = make(made, uuid, capacity, why) &&
                       (replace ? rename(made, path) == 0 : link(made, path) == 0 || errno == EEXIST);
            if (made_one) found = replace ? Found::rebuilt : Found::made;
            const int error = errno;
            unlink(made);
            errno = error;
        }
        if (file >= 0) close(file);
        if (!made_one) {
            if (why && !why->text[0]) fail(why, "can't make", path);
            return false;
        }
    }
    errno = EAGAIN;
    return fail(why, "can't agree with others on", path), false;
}

void close_file(OpenFile* open_file) {
    if (open_file->file) munmap(open_file->file, sizeof(File));
    if (open_file->descriptor >= 0) close(open_file->descriptor);
    *open_file = {};
}

bool same_file(const char* path, OpenFile* open_file, bool* again) {
    *again = false;
    if (is_same(open_file->descriptor, *open_file)) return true;
    const int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (!is_same(file, *open_file)) {
        if (file >= 0) close(file);
        return false;
    }
    open_file->descriptor = file;
    *again = true;
    return true;
}

int open_foreign(const char* path, unsigned user) {
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return -1;
    Header header{};
    if (plausible(file, user) && pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
        good(header, nullptr))
        return file;
    close(file);
    return -1;
}

}  // namespace cuslice::ledger
