// SPDX-License-Identifier: Apache-2.0
// The files of physical memory that can be exported. They have names beside the books, since a descriptor that was
// handed out keeps the memory on the GPU when every process that held it is gone: then whoever reads the books has to
// find out whether one is still open, and the kernel alone knows, as it may be under way between processes. A lock of
// the open file says it: copies of a descriptor share it, and it ends with the last of them.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "fake/books/books.h"
#include "fake/books/file_lock.h"

namespace cuslice::fake {
namespace {

// Headers of the C library 2.17 lack the names.
constexpr int kOfdGetlk = 36, kOfdSetlk = 37;
// The bytes that a descriptor has locked which was handed out, and a process that has the memory.
constexpr off_t kHandedOut = 0, kHeld = 1;

bool lock_open_file(int file, off_t byte) { return set_lock(file, byte, F_RDLCK, kOfdSetlk) == 0; }

/// True unless no open file has a lock there. `bytes`: 0 for all of them.
bool may_be_locked(int file, off_t byte, off_t bytes) {
    struct flock lock = lock_of(F_WRLCK, byte, bytes);
    return fcntl(file, kOfdGetlk, &lock) != 0 || lock.l_type != F_UNLCK;
}

int open_locked(const std::string& path, int flags, off_t byte) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (file < 0 || lock_open_file(file, byte))
        return file;
    close(file);
    return -1;
}

/// Where the books of GPU-… lie, the folder and "memory-GPU-…-".
std::string beginning_of_names(const std::string& books) {
    const size_t name = books.rfind('/') + 1;
    return books.substr(0, name) + "memory-" + books.substr(name) + "-";
}

}  // namespace

std::string Books::memory_file_path(uint64_t id) const {
    char number[17];
    std::snprintf(number, sizeof number, "%016" PRIx64, id);
    return beginning_of_names(path_) + number;
}

int Books::make_memory_file(uint64_t id) {
    const FileLock lock(lock_file_);
    const std::string path = memory_file_path(id);
    const int file = open_locked(path, O_CREAT | O_EXCL, kHeld);
    struct stat books {};
    // Every user who may read the books has to see the locks that keep the memory.
    if (file >= 0 && fstat(lock_file_, &books) == 0)
        fchmod(file, books.st_mode & 0666);
    if (file < 0)
        unlink(path.c_str());
    return file;
}

int Books::hand_out_memory_file(uint64_t id) { return open_locked(memory_file_path(id), 0, kHandedOut); }

int Books::open_memory_file(uint64_t id) { return open_locked(memory_file_path(id), 0, kHeld); }

void Books::remove_memory_file(uint64_t id) { unlink(memory_file_path(id).c_str()); }

bool Books::is_handed_out(uint64_t id) const {
    const int file = ::open(memory_file_path(id).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return errno != ENOENT;  // another user's may be
    const bool is = may_be_locked(file, kHandedOut, 1);
    close(file);
    return is;
}

// Processes that were killed before they had shared their memory have left them.
void Books::remove_stray_files() const {
    const std::string beginning = beginning_of_names(path_);
    const size_t name = beginning.rfind('/') + 1;
    DIR* const folder = opendir(beginning.substr(0, name).c_str());
    if (folder == nullptr)
        return;
    while (const dirent* entry = readdir(folder)) {
        const std::string path = beginning.substr(0, name) + entry->d_name;
        if (!path.starts_with(beginning))
            continue;
        const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file < 0)
            continue;
        if (!may_be_locked(file, 0, 0))
            unlink(path.c_str());
        close(file);
    }
    closedir(folder);
}

}  // namespace cuslice::fake
