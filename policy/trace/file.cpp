// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/base/own_descriptors.h"
#include "policy/trace/copy.h"
#include "policy/trace/record.h"

namespace cuslice::trace {

namespace {

constexpr unsigned kMaxNames = 100;
constexpr mode_t kWriting = 0222;
constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK, which older headers don't know

// The C library's stat carries a version that old ones lack.
bool about(const char* path, struct stat* result) { return syscall(SYS_newfstatat, AT_FDCWD, path, result, 0) == 0; }
bool about(int file, struct stat* result) { return syscall(SYS_fstat, file, result) == 0; }

bool fail(Reason& why, std::string_view what, const Path& path, const FileError& error) {
    why.assign(what, " ", path, ": ", error.text());
    return false;
}

bool fail(Reason& why, std::string_view what, const Path& path, int error) {
    return fail(why, what, path, FileError{error, nullptr});
}

}  // namespace

Path file_name(std::string_view name, pid_t pid, unsigned attempt) {
    Path path;
    const auto number = static_cast<uint64_t>(pid);
    bool has_pid = false;
    for (size_t at = 0; at < name.size(); at++) {
        const bool here = name[at] == '%' && at + 1 < name.size() && name[at + 1] == 'p';
        if (here)
            path.append(number);
        else
            path.append(name[at]);
        at += here ? 1 : 0;
        has_pid = has_pid || here;
    }
    if (attempt != 0 && !has_pid)
        path.append('.', number);
    if (attempt > (has_pid ? 0 : 1))
        path.append('.', has_pid ? attempt + 1 : attempt);
    return path;
}

Form form_of(std::string_view name) {
    constexpr std::string_view kEnd = ".trace";
    const bool compact = name.size() > kEnd.size() && slice(name, name.size() - kEnd.size()) == kEnd;
    return compact ? Form::compact : Form::csv;
}

int File::make_new(FileError& error) {
    return keep_descriptor(ConfiguredFile(path_, ConfiguredFile::Access::map).make(error));
}

// A page that the kernel empties in every child, also of those forks that the C library knows nothing of.
void File::note_process() {
    owner_ = getpid();
    void* const page = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, sizeof(int), kWipeOnFork) != 0) {
        munmap(page, sizeof(int));
        return;
    }
    *static_cast<int*>(page) = 1;
    in_owner_ = static_cast<const int*>(page);
}

bool File::make(std::string_view name, Reason& why, Columns columns) {
    const int saved_errno = errno;
    const bool made = try_to_make(name, columns, why);
    errno = saved_errno;
    return made;
}

// Under the first name that is free, or the device that has the first name.
bool File::open_there(std::string_view name, int& file, Reason& why) {
    for (unsigned attempt = 0;; attempt++) {
        path_ = file_name(name, owner_, attempt);
        if (path_.cut())
            return fail(why, "can't make", path_, ENAMETOOLONG);
        FileError error;
        file = make_new(error);
        if (file >= 0)
            return true;
        if (error.error != EEXIST || attempt + 1 == kMaxNames)
            return fail(why, "can't make", path_, error);
        // A pipe could stop the program, or end it by a signal when its reader goes.
        struct stat info {};
        if (!about(path_.c_str(), &info) || S_ISREG(info.st_mode))
            continue;
        if (!S_ISCHR(info.st_mode))
            return why.assign(path_, " is not a regular file"), false;
        file = keep_descriptor(ConfiguredFile(path_).append(error));
        return file >= 0 || fail(why, "can't write to", path_, error);
    }
}

bool File::try_to_make(std::string_view name, Columns columns, Reason& why) {
    note_process();
    form_ = form_of(name);
    int file = -1;
    if (!open_there(name, file, why))
        return false;
    identity_ = identity_of(file);
    if (!S_ISCHR(identity_.mode) && !S_ISREG(identity_.mode)) {
        close(file);
        return fail(why, "can't write to", path_, EINVAL);
    }
    file_.store(file, std::memory_order_release);
    int error = 0;
    if (write_header(columns, error) != Appended::done)
        return cant_write(error, why), false;
    begin_to_map(file);
    return true;
}

File::Appended File::write_header(Columns columns, int& error) {
    if (form_ == Form::csv)
        return write_row(header_for(columns), error);
    const Header header = header_of(owner_);
    return write_row({reinterpret_cast<const char*>(&header), sizeof header}, error);
}

void File::cant_write(int error, Reason& why) const { fail(why, "can't write to", path_, error); }

// Nobody else than the superuser can shorten it then by mistake, which would end this process by SIGBUS.
void File::begin_to_map(int file) {
    struct stat info {};
    if (!S_ISREG(identity_.mode) || !Windows::suits(file) || !about(file, &info))
        return;
    mode_ = info.st_mode & 07777;
    fchmod(file, mode_ & ~kWriting);
    windows_.open(written_.load(std::memory_order_relaxed));
    by_write_.store(false, std::memory_order_release);
}

bool File::is_owner_by_pid() const { return getpid() == owner_; }

bool File::is_ours(int file) const { return is_of(file, identity_); }

// Programs close descriptors that they don't know, and what the number stands for then is not ours to write to.
int File::descriptor() {
    if (const int file = file_.load(std::memory_order_acquire); is_ours(file))
        return file;
    const DisablingLockGuard lock(mutex_);
    return descriptor_again();
}

// -1, with errno, where the file can't be had.
int File::descriptor_again() {
    if (const int file = file_.load(std::memory_order_relaxed); is_ours(file))
        return file;
    FileError error;
    const int file = open_again(error);
    if (file < 0) {
        errno = error.error;
        return -1;
    }
    if (!is_ours(file)) {
        close(file);
        errno = ENOENT;
        return -1;
    }
    file_.store(file, std::memory_order_release);
    return file;
}

int File::open_again(FileError& error) {
    if (!S_ISREG(identity_.mode))
        return keep_descriptor(ConfiguredFile(path_).append(error));
    const int file = ConfiguredFile(path_, ConfiguredFile::Access::map).append(error);
    if (file >= 0 || error.error != EACCES || !let_write(error))
        return keep_descriptor(file);
    const int again = keep_descriptor(ConfiguredFile(path_, ConfiguredFile::Access::map).append(error));
    if (is_ours(again))
        fchmod(again, mode_ & ~kWriting);
    return again;
}

// Its owner may always change its mode, and needs no right to write for that.
bool File::let_write(FileError& error) {
    const int file = ConfiguredFile(path_, ConfiguredFile::Access::look).append(error);
    const bool done = is_ours(file) && fchmod(file, mode_) == 0;
    if (file >= 0)
        close(file);
    return done;
}

File::Appended File::append(std::string_view row, int& error) {
    Windows::Claim claim;
    if (!windows_.claim(row.size(), claim)) [[unlikely]]
        return append_slowly(row, error);
    // A child has claimed in memory of its own alone. One that is forked by a signal in the middle of this writes what
    // its parent writes, too, and where.
    if (!is_owner())
        return Appended::not_ours;
    form_ == Form::csv ? copy_row(claim.to(), row) : copy_records(claim.to(), row);
    claim.done();
    return Appended::done;
}

File::Appended File::append_slowly(std::string_view row, int& error) {
    const int saved_errno = errno;
    Appended result = Appended::not_ours;
    Windows::Claim claim;
    if (is_owner()) {
        if (make_room())
            result = append(row, error);
        else if (settled())
            result = write_row(row, error);
        else
            error = errno, result = Appended::failed;
    }
    errno = saved_errno;
    return result;
}

// False: rows are written from now on.
bool File::make_room() {
    if (by_write_.load(std::memory_order_acquire))
        return false;
    const DisablingLockGuard lock(mutex_);
    if (windows_.has_room())
        return true;
    if (!windows_.is_open())
        return false;
    const int file = descriptor_again();
    // Asked each time, as a program may lower its own limit.
    if (file >= 0 && file_may_have(windows_.next_size()) && windows_.extend(file, form_ == Form::csv ? '\n' : '\0'))
        return true;
    settle();
    return false;
}

// Bytes that were claimed before are still written: they are not cut off. A cut that fails is tried again (settled).
void File::settle() {
    if (windows_.is_open())
        written_.store(windows_.close(), std::memory_order_relaxed);
    const int file = descriptor_again();
    if (file < 0 || ftruncate(file, static_cast<off_t>(written_.load(std::memory_order_relaxed))) != 0)
        return;
    fchmod(file, mode_);
    by_write_.store(true, std::memory_order_release);
}

// False, with errno: the file can't be had.
bool File::settled() {
    if (by_write_.load(std::memory_order_acquire))
        return true;
    const DisablingLockGuard lock(mutex_);
    if (!by_write_.load(std::memory_order_relaxed))
        settle();
    return by_write_.load(std::memory_order_relaxed);
}

File::Appended File::write_row(std::string_view row, int& error) {
    const int file = descriptor();
    if (file < 0)
        return error = errno, Appended::failed;
    // Asked each time, as a program may lower its own limit.
    const uint64_t end = written_.fetch_add(row.size(), std::memory_order_relaxed) + row.size();
    if (S_ISREG(identity_.mode) && !file_may_have(end))
        return error = EFBIG, Appended::failed;
    ssize_t written;
    do
        written = write(file, row.data(), row.size());
    while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(row.size()))
        return Appended::done;
    return error = written < 0 ? errno : ENOSPC, Appended::failed;
}

void File::finish() {
    if (by_write_.load(std::memory_order_acquire) || !is_owner())
        return;
    const int saved_errno = errno;
    {
        const DisablingLockGuard lock(mutex_);
        settle();
    }
    errno = saved_errno;
}

}  // namespace cuslice::trace
