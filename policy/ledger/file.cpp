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
#include "policy/base/guest_file.h"
#include "policy/ledger/carry.h"
#include "policy/ledger/liveness.h"
#include "policy/ledger/users.h"

namespace cuslice::ledger {

namespace {

// A file that somebody else put there may be a FIFO, or under a lease.
constexpr int kSafely = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

// The C library's fstat and stat carry a version that old ones lack.
bool about(int file, struct stat* result) { return syscall(SYS_fstat, file, result) == 0; }

void fail(Failure* why, const char* what, const char* path) {
    if (why) snprintf(why->text, sizeof why->text, "%s %s: %s", what, path, strerror(errno));
}

bool means_no_room(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS; }

bool good(const Header& header, const char* uuid) {
    return header.magic == kMagic && header.version == kVersion && header.size == sizeof(File) &&
           header.members <= kMembers && header.room <= kMembers &&
           strnlen(header.uuid, sizeof header.uuid) < sizeof header.uuid && (!uuid || strcmp(header.uuid, uuid) == 0);
}

bool is_same(int file, const OpenFile& expected) {
    struct stat info {};
    return file >= 0 && about(file, &info) && info.st_dev == expected.device && info.st_ino == expected.inode;
}

// Says in `why` what is wrong with what lies under the name.
bool is_ours(const struct stat& info, const char* path, Failure* why) {
    if (S_ISREG(info.st_mode) && info.st_uid == geteuid()) return true;
    if (!why) return false;
    if (S_ISREG(info.st_mode))
        snprintf(why->text, sizeof why->text, "%s belongs to user %u", path, static_cast<unsigned>(info.st_uid));
    else
        snprintf(why->text, sizeof why->text, "%s is no regular file", path);
    return false;
}

// By a description of the file that is not the one for locks: a forked child keeps the mapping, and must not keep a
// lock that its parent had in this moment.
File* map(int file) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const int own = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, own < 0 ? file : own, 0);
    if (own >= 0) close(own);
    return memory == MAP_FAILED ? nullptr : static_cast<File*>(memory);
}

// Maps a file of ours if it is a ledger.
File* map_good(int file, const struct stat& info, const char* uuid) {
    if (info.st_size != static_cast<off_t>(sizeof(File))) return nullptr;
    File* mapped = map(file);
    if (!mapped || good(mapped->header, uuid)) return mapped;
    munmap(mapped, sizeof(File));
    return nullptr;
}

OpenFile opened(File* mapped, int file, const struct stat& info, bool keep_over_exec, Found found) {
    return {mapped, out_of_the_way(file, keep_over_exec), info.st_dev, info.st_ino, found};
}

// Whether the name still leads to this file.
bool still_named(const struct stat& mine, const char* path) {
    struct stat named {};
    return syscall(SYS_newfstatat, AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

// Past the limit of a process's files the kernel sends a signal, which would end the host.
bool may_be_as_large_as(std::size_t bytes) {
    if (file_may_have(bytes)) return true;
    errno = EFBIG;
    return false;
}

// Takes the space of members [from, to) and of their lanes.
bool fill(int file, std::uint32_t from, std::uint32_t to) {
    const auto at = [](std::size_t offset) { return static_cast<off_t>(offset); };
    int error =
        posix_fallocate(file, at(offsetof(File, members) + from * sizeof(Member)), at((to - from) * sizeof(Member)));
    if (error == 0)
        error = posix_fallocate(file, at(offsetof(File, lanes) + from * kLanes * sizeof(Lane)),
                                at((to - from) * kLanes * sizeof(Lane)));
    errno = error;
    return error == 0;
}

// Another number for each file, whoever makes it.
std::uint64_t new_id() {
    const std::uint64_t id = now_realtime() * 0x9e3779b97f4a7c15u ^ image_number();
    return id ? id : 1;
}

// A whole new file; -1 if there can't be one.
int make(const char* path, const char* uuid, std::uint64_t capacity, Failure* why) {
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | kSafely, 0644);
    if (why) why->no_place = file < 0 && means_no_room(errno);
    if (file < 0) return fail(why, "can't make", path), -1;
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
        done = errno == 0 && fill(file, 0, kRoom) &&
               pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    }
    if (done) {
        fchmod(file, 0644);  // whatever the host's umask: other users read it
        return file;
    }
    if (why) why->no_place = means_no_room(errno);
    fail(why, "no room for", path);
    close(file);
    return -1;
}

// Gives a new file its name, unless there is one by it. In one step, where the kernel can: whoever is killed between
// two would leave a second name, by which a file that is removed later looks as if it were still there.
bool name(const char* made, const char* path) {
    constexpr unsigned kNoReplace = 1;
    if (syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, path, kNoReplace) == 0 || errno == EEXIST) return true;
    return (errno == ENOSYS || errno == EINVAL) && (link(made, path) == 0 || errno == EEXIST);
}

// The file that is to get the name.
struct Making {
    const char *made, *path, *uuid;
    std::uint64_t capacity;
    bool replace;          // what lies under the name now
    const OpenFile* gone;  // see open_own()
};

// Makes a new file, with what is in those that were removed, before anybody sees it under its name. True also where
// another process has given a file that name meanwhile.
bool put_in_place(const Making& making, Failure* why) {
    unlink(making.made);  // of an earlier process of our pid
    OpenFile fresh;
    fresh.descriptor = make(making.made, making.uuid, making.capacity, why);
    if (fresh.descriptor < 0) {
        const int error = errno;
        unlink(making.made);
        errno = error;
        return false;
    }
    fresh.file = map(fresh.descriptor);
    bool done = false;
    if (fresh.file) {
        Removed removed(fresh.descriptor, making.path, making.uuid, making.gone);
        const bool carried = removed.carry_to(fresh);
        if (!carried && why) why->no_place = true;
        // Nobody is let in before it has been seen that no other file has had the name in between.
        lock_byte(fresh.descriptor, 0);
        if (carried) done = making.replace ? rename(making.made, making.path) == 0 : name(making.made, making.path);
        const int error = errno;
        if (carried && !done) removed.restore();
        if (done) {
            removed.carry_rest_to(fresh);
            fresh.file->header.unfinished = 0;
        }
        munmap(fresh.file, sizeof(File));
        errno = carried ? error : ENOSPC;
    }
    const int error = errno;
    if (!done && why && !why->text[0]) fail(why, "can't make", making.path);
    close(fresh.descriptor);
    unlink(making.made);
    errno = error;
    return done;
}

}  // namespace

bool ledger_path(const char* folder, unsigned user, const char* uuid, char (&path)[kPathBytes]) {
    return static_cast<std::size_t>(snprintf(path, sizeof path, "%s/%u-%s.%u.ledger", folder, user, uuid, kVersion)) <
           sizeof path;
}

bool parse_ledger_name(const char* name, unsigned* user, char (&uuid)[64]) {
    char end[24], again[kPathBytes];
    snprintf(end, sizeof end, ".%u.ledger", kVersion);
    char* dash = nullptr;
    const unsigned long number = strtoul(name, &dash, 10);
    if (dash == name || *dash != '-' || number > 0xfffffffful) return false;
    const std::size_t length = strlen(dash + 1), behind = strlen(end);
    if (length <= behind || length - behind >= sizeof uuid) return false;
    memcpy(uuid, dash + 1, length - behind);
    uuid[length - behind] = '\0';
    *user = static_cast<unsigned>(number);
    // One name for each: " 1000-…" and "01000-…" would be the same user once more.
    return ledger_path("", *user, uuid, again) && strcmp(again + 1, name) == 0;
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
    if (why) why->no_place = errno != EEXIST;
    fail(why, "can't make the folder", folder);
    return false;
}

bool open_existing(const char* folder, const char* uuid, OpenFile* out, Failure* why) {
    char path[kPathBytes];
    if (!ledger_path(folder, this_user(folder), uuid, path)) return false;
    const int file = open(path, O_RDWR | kSafely);
    if (file < 0) return fail(why, "can't open", path), false;
    struct stat info {};
    if (about(file, &info) && is_ours(info, path, why)) {
        if (File* mapped = map_good(file, info, uuid)) {
            *out = opened(mapped, file, info, false, Found::good);
            return true;
        }
        if (why) snprintf(why->text, sizeof why->text, "%s is damaged", path);
    }
    close(file);
    return false;
}

bool open_own(const char* folder, const char* uuid, std::uint64_t capacity, bool keep_over_exec,
              const Deadline& deadline, OpenFile* out, Failure* why, const OpenFile* gone) {
    char path[kPathBytes], made[kPathBytes];
    const std::uint64_t named = read_pid_namespace();
    // Where nobody can tell the namespace, pids alone are not enough for a name.
    const std::uint64_t space = named ? named : image_number();
    if (!ledger_path(folder, this_user(folder), uuid, path) ||
        static_cast<std::size_t>(snprintf(made, sizeof made, "%s.%d-%llx", path, getpid(),
                                          static_cast<unsigned long long>(space))) >= sizeof made) {
        errno = ENAMETOOLONG;
        return fail(why, "can't use", folder), false;
    }
    if (!make_folder(folder, why)) return false;
    Found found = Found::good;
    // Others may be making or replacing it at the same time: whoever is first wins, and all look again. So does who has
    // made one when the time is over.
    constexpr unsigned kMostMade = 3;
    unsigned made_count = 0;
    bool made_one = false;
    do {
        const int file = open(path, O_RDWR | kSafely);
        const bool missing = file < 0 && errno == ENOENT;
        if (file < 0 && errno == EWOULDBLOCK) continue;  // a lease, which its holder has been told to give up
        if (file < 0 && !missing) return fail(why, "can't open", path), false;
        bool replace = false;
        if (file >= 0) {
            struct stat info {};
            if (!about(file, &info) || !is_ours(info, path, why)) return close(file), false;
            File* mapped = map_good(file, info, uuid);
            if (mapped && still_named(info, path)) {
                *out = opened(mapped, file, info, keep_over_exec, found);
                return true;
            }
            if (mapped) munmap(mapped, sizeof(File));
            // Whoever replaces a bad file holds its lock, and looks once more whether it is still the one to replace.
            replace = !mapped && lock_byte_until(file, 0, deadline) != LockKind::none && still_named(info, path);
        }
        made_one = (missing || replace) && put_in_place({made, path, uuid, capacity, replace, gone}, why);
        if (made_one) found = replace ? Found::rebuilt : Found::made;
        const int error = errno;
        if (file >= 0) close(file);
        errno = error;
        if ((missing || replace) && !made_one) return false;
    } while ((made_one && made_count++ < kMostMade) || deadline.pause());
    errno = EAGAIN;
    return fail(why, "can't have in time, as another process has it locked or leased:", path), false;
}

bool map_removed(int file, const char* uuid, OpenFile* out) {
    struct stat info {};
    if (file < 0 || !about(file, &info) || !is_ours(info, "", nullptr) || info.st_nlink != 0) return false;
    File* const mapped = map_good(file, info, uuid);
    if (mapped) *out = {mapped, file, info.st_dev, info.st_ino, Found::good};
    return mapped != nullptr;
}

void close_file(OpenFile* open_file) {
    if (open_file->file) munmap(open_file->file, sizeof(File));
    if (is_same(open_file->descriptor, *open_file)) close(open_file->descriptor);
    *open_file = {};
}

void leave_to_parent(OpenFile* open_file) {
    if (is_same(open_file->descriptor, *open_file)) close(open_file->descriptor);
    *open_file = {};
}

State state_of(const OpenFile& open_file, const char* uuid) {
    struct stat info {};
    if (!about(open_file.descriptor, &info)) return State::unknown;
    if (info.st_nlink == 0) return State::gone;
    return good(open_file.file->header, uuid) ? State::whole : State::damaged;
}

bool looks_gone(const OpenFile& open_file, const char* path) {
    struct stat info {};
    if (about(open_file.descriptor, &info) && info.st_dev == open_file.device && info.st_ino == open_file.inode)
        return info.st_nlink == 0;
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    return info.st_dev != open_file.device || info.st_ino != open_file.inode;
}

bool has_descriptor(const OpenFile& open_file) { return is_same(open_file.descriptor, open_file); }

bool open_again(const char* path, OpenFile* open_file, bool* gone) {
    *gone = false;
    const int file = open(path, O_RDWR | kSafely);
    if (!is_same(file, *open_file)) {
        *gone = file >= 0 || errno == ENOENT;
        if (file >= 0) close(file);
        return false;
    }
    open_file->descriptor = out_of_the_way(file, false);
    return true;
}

bool make_room(const OpenFile& open_file, std::uint32_t count) {
    Header& header = open_file.file->header;
    if (count <= header.room) return true;
    const std::uint32_t more = header.room + kRoom < kMembers ? header.room + kRoom : kMembers;
    if (count > more || !may_be_as_large_as(sizeof(File)) || !fill(open_file.descriptor, header.room, more))
        return false;
    header.room = more;
    return true;
}

int open_foreign(const char* path, unsigned user, bool* missing, Failure* why) {
    const int file = open(path, O_RDONLY | kSafely);
    *missing = file < 0 && errno == ENOENT;
    if (file < 0) return fail(why, "can't open", path), -1;
    struct stat info {};
    Header header{};
    const char* wrong = nullptr;
    if (!about(file, &info) || !S_ISREG(info.st_mode))
        wrong = "is no regular file";
    else if (!belongs_to(info.st_uid, user))
        wrong = "does not belong to the user in its name";
    else if (info.st_size != static_cast<off_t>(sizeof(File)) ||
             pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) || !good(header, nullptr))
        wrong = "is damaged";
    if (!wrong) return file;
    if (why) snprintf(why->text, sizeof why->text, "%s %s", path, wrong);
    close(file);
    return -1;
}

}  // namespace cuslice::ledger
