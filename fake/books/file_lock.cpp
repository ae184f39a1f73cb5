// SPDX-License-Identifier: Apache-2.0
#include "fake/books/file_lock.h"

#include <unistd.h>

#include <cerrno>

#include "fake/books/liveness.h"

namespace cuslice::fake {
namespace {

constexpr useconds_t kNap = 200;  // microseconds
constexpr int kNaps =
    200'000 / kNap;                 // a holder needs microseconds; on a busy machine it may have to wait for its turn
constexpr int kNapsBeforeLook = 5;  // to look for the holder costs more than most have to wait

bool holder_is_stopped(int file) {
    struct flock lock = lock_of(F_WRLCK, 0);
    return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0 && is_stopped(lock.l_pid);
}

}  // namespace

FileLock::FileLock(int file) : file_(file) {
    for (int nap = 0; nap < kNaps; nap++) {
        held_ = set_lock(file_, 0, F_WRLCK, F_SETLK) == 0;
        if (held_ || (errno != EAGAIN && errno != EACCES && errno != EINTR))
            return;
        if (nap >= kNapsBeforeLook && holder_is_stopped(file_))
            return;
        usleep(kNap);
    }
}

FileLock::~FileLock() {
    if (held_)
        set_lock(file_, 0, F_UNLCK, F_SETLK);
}

}  // namespace cuslice::fake
