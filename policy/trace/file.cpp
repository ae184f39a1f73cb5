#include "policy/trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/base/own_descriptors.h"
#include "policy/trace/row.h"

namespace cuslice::trace {

namespace {

constexpr unsigned kMaxNames = 100;
constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK, which older headers don't know

// The C library's stat carries a version that old ones lack.
bool about(const char* path, struct stat* result) { return syscall(SYS_newfstatat, AT_FDCWD, path, result, 0) == 0; }

bool fail(Reason& why, std::string_view what, const Path& path, const FileError& error) {
    why.assign(what).append(" ").append(path.view()).append(": ").append(error.text());
    return false;
}

bool fail(Reason& why, std::string_view what, const Path& path, int error) {
    return fail(why, what, path, FileError{error, nullptr});
}

}  // namespace

Path file_name(std::string_view name, pid_t pid, unsigned attempt) {
    Path path;
    const auto number = static_cast<std::uint64_t>(pid);
    bool has_pid = false;
    for (std::size_t at = 0; at < name.size(); at++) {
        const bool here = name[at] == '%' && at + 1 < name.size() && name[at + 1] == 'p';
        if (here)
            path.append_number(number);
        else
            path.append(name[at]);
        at += here ? 1 : 0;
        has_pid = has_pid || here;
    }
    if (attempt != 0 && !has_pid) path.append('.').append_number(number);
    if (attempt > (has_pid ? 0 : 1)) path.append('.').append_number(has_pid ? attempt + 1 : attempt);
    return path;
}

int File::open_existing(FileError& error) { return keep_descriptor(ConfiguredFile(path_.view()).append(error)); }

int File::make_new(FileError& error) { return keep_descriptor(ConfiguredFile(path_.view()).make(error)); }

bool File::note_identity(int file) {
    identity_ = identity_of(file);
    return S_ISCHR(identity_.mode) || S_ISREG(identity_.mode);
}

// A page that the kernel empties in every child, also of those forks that the C library knows nothing of.
void File::note_process() {
    owner_ = getpid();
    void* const page = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, sizeof(int), kWipeOnFork) != 0) {
        munmap(page, sizeof(int));
        return;
    }
    *static_cast<int*>(page) = 1;
    in_owner_ = static_cast<const int*>(page);
}

bool File::make(std::string_view name, Reason& why) {
    const int saved_errno = errno;
    const bool made = try_to_make(name, why);
    errno = saved_errno;
    return made;
}

bool File::try_to_make(std::string_view name, Reason& why) {
    note_process();
    int file = -1;
    for (unsigned attempt = 0; file < 0; attempt++) {
        path_ = file_name(name, owner_, attempt);
        if (path_.cut()) return fail(why, "can't make", path_, ENAMETOOLONG);
        FileError error;
        file = make_new(error);
        if (file >= 0) break;
        if (error.error != EEXIST || attempt + 1 == kMaxNames) return fail(why, "can't make", path_, error);
        // A pipe could stop the program, or end it by a signal when its reader goes.
        struct stat info {};
        if (!about(path_.c_str(), &info) || S_ISREG(info.st_mode)) continue;
        if (!S_ISCHR(info.st_mode)) return why.assign(path_.view()).append(" is not a regular file"), false;
        file = open_existing(error);
        if (file < 0) return fail(why, "can't write to", path_, error);
    }
    if (!note_identity(file)) {
        close(file);
        return fail(why, "can't write to", path_, EINVAL);
    }
    file_.store(file, std::memory_order_release);
    return append(kHeader, why) == Appended::done;
}

bool File::is_ours(int file) const { return file >= 0 && identity_of(file) == identity_; }

// Programs close descriptors that they don't know, and what the number stands for then is not ours to write to.
int File::descriptor() {
    if (const int file = file_.load(std::memory_order_acquire); is_ours(file)) return file;
    const LockGuard lock(mutex_);
    if (const int file = file_.load(std::memory_order_relaxed); is_ours(file)) return file;
    FileError error;
    const int file = open_existing(error);
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

File::Appended File::append(std::string_view rows, Reason& why) {
    const int saved_errno = errno;
    const Appended result = try_to_append(rows, why);
    errno = saved_errno;
    return result;
}

File::Appended File::try_to_append(std::string_view rows, Reason& why) {
    if (in_owner_ ? *in_owner_ == 0 : getpid() != owner_) return Appended::not_ours;
    const int file = descriptor();
    if (file < 0) return fail(why, "can't write to", path_, errno), Appended::failed;
    // Asked each time, as a program may lower its own limit.
    const std::uint64_t end = written_.fetch_add(rows.size(), std::memory_order_relaxed) + rows.size();
    if (S_ISREG(identity_.mode) && !file_may_have(end))
        return fail(why, "can't write to", path_, EFBIG), Appended::failed;
    ssize_t written;
    do written = write(file, rows.data(), rows.size());
    while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(rows.size())) return Appended::done;
    return fail(why, "can't write to", path_, written < 0 ? errno : ENOSPC), Appended::failed;
}

}  // namespace cuslice::trace
