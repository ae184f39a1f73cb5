// SPDX-License-Identifier: Apache-2.0
#include "fake/time/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "fake/books/byte_lock.h"
#include "fake/time/futex.h"

namespace cuslice::fake {
namespace {

std::string file_path(const std::string& folder) { return folder + "/time"; }

}  // namespace

bool TimeMapping::open_lock(const std::string& folder, std::string& error) {
    if (lock_file_ >= 0)
        return true;
    const std::string path = file_path(folder) + ".lock";
    lock_file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_file_ < 0)
        error = "can't open " + path + ": " + std::strerror(errno);
    return lock_file_ >= 0;
}

bool TimeMapping::map(int file) {
    struct stat info {};
    if (fstat(file, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(TimeFile)))
        return false;
    void* memory = mmap(nullptr, sizeof(TimeFile), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED)
        return false;
    file_ = static_cast<TimeFile*>(memory);
    file_descriptor_ = file;
    inode_ = info.st_ino;
    return true;
}

bool TimeMapping::open(const std::string& folder) {
    const int file = ::open(file_path(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    if (!map(file)) {
        ::close(file);
        return false;
    }
    const TimeHeader& header = file_->header;
    if (header.magic == kTimeMagic && header.version == kTimeVersion && keeper_lives())
        return true;
    close();
    return false;
}

bool TimeMapping::create(const std::string& folder, bool is_virtual, std::string& error) {
    const std::string path = file_path(folder), made = path + ".new";
    unlink(made.c_str());
    const int file = ::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const int failed = file < 0                                 ? errno
                       : ftruncate(file, sizeof(TimeFile)) != 0 ? errno
                                                                : posix_fallocate(file, 0, offsetof(TimeFile, rings));
    if (failed != 0 || !map(file)) {
        error = "can't make " + made + ": " + std::strerror(failed != 0 ? failed : errno);
        if (file >= 0)
            ::close(file);
        return false;
    }
    TimeHeader& header = file_->header;
    header.version = kTimeVersion;
    header.is_virtual = is_virtual ? 1 : 0;
    header.now = monotonic_time();
    header.magic = kTimeMagic;
    if (rename(made.c_str(), path.c_str()) == 0)
        return true;
    error = "can't make " + path + ": " + std::strerror(errno);
    return false;
}

void TimeMapping::close() {
    munmap(file_, sizeof(TimeFile));
    ::close(file_descriptor_);
    file_ = nullptr;
    file_descriptor_ = -1;
}

bool TimeMapping::lock(off_t byte) const { return set_lock(lock_file_, byte, F_WRLCK, F_SETLK) == 0; }

void TimeMapping::unlock(off_t byte) const { set_lock(lock_file_, byte, F_UNLCK, F_SETLK); }

bool TimeMapping::keeper_lives() const {
    struct flock lock = lock_of(F_WRLCK, 0);
    return fcntl(lock_file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool TimeMapping::take_room(const TimedRing& ring) const {
    const auto at = reinterpret_cast<const char*>(&ring) - reinterpret_cast<const char*>(file_);
    return posix_fallocate(file_descriptor_, at, sizeof(TimedRing)) == 0;
}

void ring(TimeHeader& header) {
    if (header.sleeping.load() != 0)
        futex_raise(header.bell);
}

}  // namespace cuslice::fake
